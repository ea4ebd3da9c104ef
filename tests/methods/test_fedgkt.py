"""FedGKT: its loss by hand, bytes, and what is left of it where nobody listens to the other."""

import math
from dataclasses import replace

import pytest
import torch
from method_runs import context, seeded
from torch import tensor

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedgkt import (
    FedGKT,
    copy_lower_half_with_new_classifier,
    copy_upper_half,
    join_halves,
    make_transfer_loss,
)
from fedlab_nb.models import build, model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import train_clients

SHORT = {"rounds": 2, "local_epochs": 1, "server_epochs": 1}


def test_loss_by_hand():
    """Two classes, logits (0, 0), label 0: log 2. The other says (log 3, 0), so 3/4 and 1/4 at temperature 1."""
    kl = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    others, weights = (
        tensor([[math.log(3.0), 0.0]], dtype=torch.float64).expand(3, 2),
        tensor([0.0, 1.0, 0.5]),
    )
    at = (None, torch.zeros(3, 2, dtype=torch.float64), torch.zeros(3, dtype=torch.long))
    by_hand = [math.log(2) + weight * kl for weight in (0, 1, 0.5)]
    assert make_transfer_loss(1.0)(*at, others, weights).tolist() == pytest.approx(by_hand)
    assert float(make_transfer_loss(3.0)(*at, 3 * others, weights)[2]) == pytest.approx(
        math.log(2) + 0.5 * 9 * kl
    )


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet8"])
def test_the_halves_make_the_network(name):
    network, x = build(name, (1, 8, 8), 10, generator=seeded()).eval(), torch.rand(5, 1, 8, 8)
    lower, upper = copy_lower_half_with_new_classifier(network, seeded()), copy_upper_half(network)
    h = lower.eval().features(x)
    assert h.dim() == 2 and lower(x).shape == (5, 10)
    torch.testing.assert_close(upper.eval()(h), network(x))
    torch.testing.assert_close(join_halves(lower, upper).eval()(x), network(x))


def test_bytes():
    """64 pixels, 64 features, 10 classes, two rounds: a half network down, logits once down, twice up with features."""
    ctx = context(clients=3)
    exhaust_generator(FedGKT(**SHORT).run(ctx))
    half = 64 * 65 + 10 * 65
    for k, (up, down) in ctx.link.ledger.by_client().items():
        n = ctx.sizes[k]
        assert (up, down) == (4 * n * (2 * (64 + 10) + 1), 4 * half + 4 * n * 10)


def test_a_client_that_comes_for_the_first_time_gets_no_answers_but_its_half():
    """One of three clients a round: bytes of each by how often it was drawn."""
    ctx = context(clients=3)
    exhaust_generator(FedGKT(rounds=4, local_epochs=1, server_epochs=1, per_round=1).run(ctx))
    drawn = [
        int(torch.randperm(3, generator=ctx.generator("participants", t))[0]) for t in range(4)
    ]
    for k, (up, down) in ctx.link.ledger.by_client().items():
        n, times = ctx.sizes[k], drawn.count(k)
        assert up == 4 * n * (times * (64 + 10) + 1) * (times > 0)
        assert down == (4 * (64 * 65 + 10 * 65) + 4 * n * 10 * (times - 1)) * (times > 0)


def test_without_weight_both_sides_train_on_labels_alone():
    """Clients: their halves as if each trained alone, round by round. Server: one network on all features."""
    ctx = context(clients=2)
    out = exhaust_generator(FedGKT(weight=0.0, **SHORT).run(ctx))
    edges = [
        copy_lower_half_with_new_classifier(
            ctx.initial_model(k), ctx.generator("fedgkt", "classifier")
        )
        for k in range(2)
    ]
    server, own = copy_upper_half(ctx.initial_model()), [ctx.private.train(k) for k in range(2)]
    recipe = replace(ctx.recipe, epochs=1)
    for t in range(2):
        ways = {"seed": ctx.seed, "backend": "loop"}
        for _ in train_clients(
            edges, own, recipe, stream=f"batches of round {t}" if t else "batches", **ways
        ):
            pass
        pooled = torch.cat(
            [e.eval().features(x).detach() for e, (x, _) in zip(edges, own, strict=True)]
        )
        shard = pooled, torch.cat([y for _, y in own])
        for _ in train_clients([server], [shard], recipe, stream=f"fedgkt server {t}", **ways):
            pass
    for k in range(2):
        by_hand, state = (
            model_state(join_halves(edges[k], server)),
            model_state(out.clients.module(k)),
        )
        for name, number in by_hand.items():
            torch.testing.assert_close(state[name], number, rtol=1e-4, atol=1e-5)


def test_with_weight_the_answers_matter():
    halves = []
    for weight in (0.0, 1.0):
        out = exhaust_generator(FedGKT(weight=weight, **SHORT).run(context(clients=2)))
        halves.append(out.clients.module(0).body[0].state_dict())
    assert not all(torch.allclose(number, halves[1][name]) for name, number in halves[0].items())


def test_one_block_is_refused():
    with pytest.raises(UsageError, match="single block"):
        FedGKT().validate(context(model="mlp1", clients=2))
