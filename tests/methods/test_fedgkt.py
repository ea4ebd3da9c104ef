"""FedGKT: its loss by hand, bytes, and plain training on labels where the distillation weight is 0."""

import math
from dataclasses import replace

import pytest
import torch
from method_runs import make_context, make_torch_generator
from torch import tensor

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedgkt import (
    FedGKT,
    copy_and_join_halves,
    copy_lower_half_with_new_classifier,
    copy_upper_half,
    make_transfer_loss,
)
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import iterate_training_of_clients_in_place

SHORT = {"rounds": 2, "local_epochs": 1, "server_epochs": 1}


def test_loss_by_hand():
    """Two classes, logits (0, 0), label 0: cross-entropy log 2. The teacher says (log 3, 0): 3/4 and 1/4 at
    temperature 1."""
    kl = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    teacher = tensor([[math.log(3.0), 0.0]], dtype=torch.float64).expand(3, 2)
    weights = tensor([0.0, 1.0, 0.5])
    features_logits_labels = (
        None,
        torch.zeros(3, 2, dtype=torch.float64),
        torch.zeros(3, dtype=torch.long),
    )
    by_hand = [math.log(2) + weight * kl for weight in (0, 1, 0.5)]
    assert make_transfer_loss(1.0)(
        *features_logits_labels, teacher, weights
    ).tolist() == pytest.approx(by_hand)
    assert float(
        make_transfer_loss(3.0)(*features_logits_labels, 3 * teacher, weights)[2]
    ) == pytest.approx(math.log(2) + 0.5 * 9 * kl)


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet8"])
def test_the_two_halves_make_up_the_network(name):
    network = build(name, (1, 8, 8), 10, generator=make_torch_generator()).eval()
    x = torch.rand(5, 1, 8, 8)
    lower, upper = (
        copy_lower_half_with_new_classifier(network, make_torch_generator()),
        copy_upper_half(network),
    )
    h = lower.eval().features(x)
    assert h.dim() == 2 and lower(x).shape == (5, 10)
    torch.testing.assert_close(upper.eval()(h), network(x))
    torch.testing.assert_close(copy_and_join_halves(lower, upper).eval()(x), network(x))


def test_bytes_by_hand():
    """64 pixels, 64 features, 10 classes, two rounds: a half network down, logits once down, twice up with features."""
    ctx = make_context(clients=3)
    exhaust_generator(FedGKT(**SHORT).run(ctx))
    half = 64 * 65 + 10 * 65
    for k, (up, down) in ctx.link.ledger.by_client().items():
        n = ctx.sizes[k]
        assert (up, down) == (4 * n * (2 * (64 + 10) + 1), 4 * half + 4 * n * 10)


def test_a_new_participant_downloads_its_half_but_no_logits():
    """One of three clients a round: each client's bytes by the number of rounds for which it was drawn."""
    ctx = make_context(clients=3)
    exhaust_generator(FedGKT(rounds=4, local_epochs=1, server_epochs=1, per_round=1).run(ctx))
    participants = [
        int(torch.randperm(3, generator=ctx.generator("participants", t))[0]) for t in range(4)
    ]
    for k, (up, down) in ctx.link.ledger.by_client().items():
        n, rounds = ctx.sizes[k], participants.count(k)
        assert up == 4 * n * (rounds * (64 + 10) + 1) * (rounds > 0)
        assert down == (4 * (64 * 65 + 10 * 65) + 4 * n * 10 * (rounds - 1)) * (rounds > 0)


def test_with_weight_0_both_sides_train_on_labels_alone():
    """Each client trains its half alone, round by round; the server trains one network on all features."""
    ctx = make_context(clients=2)
    model = exhaust_generator(FedGKT(weight=0.0, **SHORT).run(ctx))
    edges = [
        copy_lower_half_with_new_classifier(
            ctx.initial_model(k), ctx.generator("fedgkt", "classifier")
        )
        for k in range(2)
    ]
    server = copy_upper_half(ctx.initial_model())
    shards = [ctx.private.train(k) for k in range(2)]
    recipe = replace(ctx.recipe, epochs=1)
    for t in range(2):
        options = {"seed": ctx.seed, "backend": "loop"}
        stream = f"batches of round {t}" if t else "batches"
        exhaust_generator(
            iterate_training_of_clients_in_place(edges, shards, recipe, stream=stream, **options)
        )
        pooled = torch.cat(
            [e.eval().features(x).detach() for e, (x, _) in zip(edges, shards, strict=True)]
        )
        features_and_labels = pooled, torch.cat([y for _, y in shards])
        exhaust_generator(
            iterate_training_of_clients_in_place(
                [server], [features_and_labels], recipe, stream=f"fedgkt server {t}", **options
            )
        )
    for k in range(2):
        by_hand = copy_model_state(copy_and_join_halves(edges[k], server))
        state = copy_model_state(model.clients.module(k))
        for name, expected in by_hand.items():
            torch.testing.assert_close(state[name], expected, rtol=1e-4, atol=1e-5)


def test_with_weight_1_the_servers_logits_change_the_clients():
    halves = []
    for weight in (0.0, 1.0):
        out = exhaust_generator(FedGKT(weight=weight, **SHORT).run(make_context(clients=2)))
        halves.append(out.clients.module(0).body[0].state_dict())
    assert not all(torch.allclose(number, halves[1][name]) for name, number in halves[0].items())


def test_a_network_of_one_block_is_refused():
    with pytest.raises(UsageError, match="single block"):
        FedGKT().validate(make_context(model="mlp1", clients=2))
