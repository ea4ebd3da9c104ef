"""Phase 2 against another derivation, in float64: pooled Adam and SGD with the gradient of softmax regression."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedlab_nb.comm import Link
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fens import Fens
from fedlab_nb.methods.fens import aggregators as rules
from fedlab_nb.methods.fens.training import (
    CLIENT_WEIGHTS,
    ProxySamples,
    compute_weights_of_proxy_owners,
    draw_batch_indices,
    draw_participants_of_rounds,
)
from fedlab_nb.rng import generator

M, C, IMAGE = 5, 4, (1, 8, 8)
SIZES = [3, 40, 11, 1, 17]
TOLERANCE = {"rtol": 0, "atol": 1e-12}
BY_CLIENT, AT_ONCE = False, True
both_forms = pytest.mark.parametrize("at_once", [BY_CLIENT, AT_ONCE], ids=["by client", "at once"])


def proxies(sizes=SIZES, clients=M):
    made = []
    for i, n in enumerate(sizes):
        draw = generator(0, "proxy", i)
        z = 3 * torch.randn(n, clients, C, generator=draw, dtype=torch.float64)
        x = torch.rand(n, *IMAGE, generator=draw, dtype=torch.float64)
        made.append(ProxySamples(z, torch.randint(0, C, (n,), generator=draw), x))
    return made


def stream(i):
    return generator(0, "batches", i)


def batches(parts, plan):
    steps = plan.rounds * plan.local_steps
    return [draw_batch_indices(own, plan.batch, steps, stream(i)) for i, own in enumerate(parts)]


def start(name, clients=M):
    return rules.make_trained_aggregator(
        name, clients, C, hidden_units=6, input_shape=IMAGE, start="xavier", generator=generator(7)
    ).double()


def trained(at_once, name, plan, parts=None):
    parts = proxies() if parts is None else parts
    rule = start(name)
    losses = torch.stack(
        list(
            plan.train_aggregator_in_place(
                rule, dict(enumerate(parts)), stream, should_pool_gradients=at_once
            )
        )
    )
    return torch.cat([p.detach().flatten() for p in rule.parameters()]), losses


def pooled_gradient(table, z, labels):
    """Mean cross-entropy of softmax(sum_i lambda_i z_i) by lambda[i, c]: mean_b (p - onehot)[b, c] z[b, i, c]."""
    scores = (z * table).sum(1)
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return np.einsum("bc,bic->ic", p, z) / len(labels)


def independent(plan, server):
    """Per-class weights moved by one optimiser step a round on the union of all clients' mini-batches; numpy only."""
    parts = proxies()
    chosen = batches(parts, plan)
    table = start("per_class").table.detach().numpy().copy()
    m, v = np.zeros_like(table), np.zeros_like(table)
    for t, own in enumerate(
        draw_participants_of_rounds(range(M), plan.per_round, plan.rounds, stream)
    ):
        z = np.concatenate([parts[i].logits.numpy()[chosen[i][t].numpy()] for i in own])
        labels = np.concatenate([parts[i].labels.numpy()[chosen[i][t].numpy()] for i in own])
        step = plan.eta_l * pooled_gradient(table, z, labels)
        if server == "sgd":
            table = table - step
        else:
            m = plan.beta1 * m - (1 - plan.beta1) * step
            v = plan.beta2 * v + (1 - plan.beta2) * step**2
            table = table + plan.eta_s * m / (np.sqrt(v) + plan.tau)
    return torch.from_numpy(table).flatten()


@pytest.mark.parametrize(
    ("server", "options"),
    [
        ("adam", {"eta_l": 0.7, "eta_s": 0.05}),
        ("adam", {"eta_s": 0.05, "beta1": 0.5, "beta2": 0.9, "tau": 0.1}),
        ("sgd", {"eta_l": 0.05, "server": "fedavg"}),
    ],
)
@both_forms
def test_one_step_is_pooled_sgd_or_adam_without_bias_correction(at_once, server, options):
    plan = Fens(rounds=20, batch=8, **options)
    torch.testing.assert_close(
        trained(at_once, "per_class", plan)[0], independent(plan, server), **TOLERANCE
    )


@both_forms
def test_some_clients_a_round_are_adam_on_their_samples(at_once):
    """S_t of 2 among 5: a step on the union of their mini-batches alone. All 5 are 0 of them, bit for bit."""
    plan = Fens(rounds=20, batch=8, per_round=2, eta_s=0.05)
    rounds = draw_participants_of_rounds(range(M), 2, 20, stream)
    assert {len(set(own)) for own in rounds} == {2} and len(set(map(tuple, rounds))) > 4
    torch.testing.assert_close(
        trained(at_once, "per_class", plan)[0], independent(plan, "adam"), **TOLERANCE
    )
    every, everyone = (
        trained(at_once, "per_class", Fens(rounds=20, batch=8, per_round=m))[0] for m in (0, M)
    )
    assert torch.equal(every, everyone)


@pytest.mark.parametrize("weights", list(CLIENT_WEIGHTS))
@pytest.mark.parametrize("name", rules.TRAINED)
@pytest.mark.parametrize("batch", [8, 128])
def test_the_loop_and_the_pooled_form_give_the_same_numbers(name, weights, batch):
    for server in ("fedadam", "fedyogi"):
        plan = Fens(rounds=20, batch=batch, server=server, client_weights=weights)
        loop, pooled = (trained(at_once, name, plan) for at_once in (BY_CLIENT, AT_ONCE))
        torch.testing.assert_close(loop[0], pooled[0], **TOLERANCE)
        torch.testing.assert_close(loop[1], pooled[1], **TOLERANCE)


@pytest.mark.parametrize("name", rules.TRAINED)
def test_one_client_and_plain_averaging_is_local_sgd(name):
    parts = proxies(sizes=[30], clients=M)
    plan = Fens(rounds=6, local_steps=3, batch=8, eta_l=0.05, server="fedavg")
    federated, _ = trained(BY_CLIENT, name, plan, parts)
    rule = start(name)
    sgd = torch.optim.SGD(rule.parameters(), lr=0.05)
    for chosen in batches(parts, plan)[0]:
        sgd.zero_grad()
        cross_entropy(
            rule(parts[0].logits[chosen], parts[0].inputs[chosen]), parts[0].labels[chosen]
        ).backward()
        sgd.step()
    torch.testing.assert_close(
        federated, torch.cat([p.detach().flatten() for p in rule.parameters()]), **TOLERANCE
    )


@both_forms
def test_a_client_without_samples_takes_no_part(at_once):
    plan = Fens(rounds=10, batch=8)
    with_empty = dict(enumerate(proxies([3, 0, 11])))
    without = {i: own for i, own in with_empty.items() if i != 1}
    one, two = start("per_class"), start("per_class")
    link = Link(3)
    list(
        plan.train_aggregator_in_place(one, with_empty, stream, link, should_pool_gradients=at_once)
    )
    list(plan.train_aggregator_in_place(two, without, stream, should_pool_gradients=at_once))
    assert torch.equal(one.table, two.table)
    size = 10 * 8 * one.trained_parameter_count  # ten rounds of float64
    assert link.ledger.by_client() == {0: (size, size), 1: (0, 0), 2: (size, size)}
    assert link.ledger.by_phase() == {"aggregator": (2 * size, 2 * size)}
    assert all(row["messages"] == 10 for row in link.ledger.rows())
    for kind, expected in (("samples", {0: 3 / 11, 2: 8 / 11}), ("uniform", {0: 0.5, 2: 0.5})):
        assert compute_weights_of_proxy_owners(with_empty, 8, kind) == expected


def test_nobody_with_a_sample_is_an_error():
    with pytest.raises(UsageError, match="No client has a proxy sample"):
        compute_weights_of_proxy_owners(dict(enumerate(proxies([0, 0]))), 128, "samples")


def test_batches_are_shuffled_passes_and_a_longer_plan_begins_with_a_shorter_one():
    ten, three, none = proxies([10, 3, 0])
    short, long = (
        draw_batch_indices(ten, 3, steps, generator(0, "batches", 2)) for steps in (4, 50)
    )
    assert long.shape == (50, 3) and torch.equal(long[:4], short)
    for first in range(
        0, 48, 3
    ):  # three batches of three make a pass: nine different samples of ten
        assert len(set(long[first : first + 3].flatten().tolist())) == 9
    assert long.unique().tolist() == list(range(10))
    assert torch.equal(
        draw_batch_indices(three, 3, 2, generator(0)), torch.tensor([[0, 1, 2], [0, 1, 2]])
    )
    assert draw_batch_indices(none, 3, 2, generator(0)).shape == (2, 0)


def test_the_server_part_is_guarded_and_the_gradients_are_not():
    inside, seen = [], []

    class Guard:
        def __enter__(self):
            inside.append(True)

        def __exit__(self, *_):
            inside.pop()

    class Watched(rules.WeightedSum):
        def forward(self, z, x=None):
            seen.append(bool(inside))
            return super().forward(z, x)

    for steps in (1, 2):
        rule = Watched(torch.full((M, C), 1 / M, dtype=torch.float64), C, trained=True)
        plan = Fens(rounds=3, local_steps=steps)
        list(
            plan.train_aggregator_in_place(
                rule, dict(enumerate(proxies())), stream, make_server_block=Guard
            )
        )
    assert seen and not any(seen)
