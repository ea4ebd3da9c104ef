"""Training of the aggregator against pooled Adam and SGD with the gradient of softmax regression, in float64."""

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
    compute_shares_of_proxy_owners,
    draw_batch_indices,
    draw_participants_of_rounds,
)
from fedlab_nb.rng import make_torch_generator

M, C, IMAGE = 5, 4, (1, 8, 8)
SIZES = [3, 40, 11, 1, 17]
TOLERANCE = {"rtol": 0, "atol": 1e-12}
BY_CLIENT, AT_ONCE = False, True
both_forms = pytest.mark.parametrize("at_once", [BY_CLIENT, AT_ONCE], ids=["by client", "at once"])


def draw_proxy_samples(sizes=SIZES, clients=M):
    proxies = []
    for i, n in enumerate(sizes):
        stream = make_torch_generator(0, "proxy", i)
        z = 3 * torch.randn(n, clients, C, generator=stream, dtype=torch.float64)
        x = torch.rand(n, *IMAGE, generator=stream, dtype=torch.float64)
        proxies.append(ProxySamples(z, torch.randint(0, C, (n,), generator=stream), x))
    return proxies


def make_batch_stream(i):
    return make_torch_generator(0, "batches", i)


def draw_batches(proxies, plan):
    steps = plan.rounds * plan.local_steps
    return [
        draw_batch_indices(proxy, plan.batch, steps, make_batch_stream(i))
        for i, proxy in enumerate(proxies)
    ]


def make_rule(name, clients=M):
    return rules.make_trainable_aggregator(
        name,
        clients,
        C,
        hidden_units=6,
        input_shape=IMAGE,
        start="xavier",
        generator=make_torch_generator(7),
    ).double()


def train_rule(at_once, name, plan, parts=None):
    parts = draw_proxy_samples() if parts is None else parts
    rule = make_rule(name)
    losses = torch.stack(
        list(
            plan.train_aggregator_in_place(
                rule, dict(enumerate(parts)), make_batch_stream, should_pool_gradients=at_once
            )
        )
    )
    return torch.cat([p.detach().flatten() for p in rule.parameters()]), losses


def compute_pooled_gradient(table, z, labels):
    """Mean cross-entropy of softmax(sum_i lambda_i z_i) by lambda[i, c]: mean_b (p - onehot)[b, c] z[b, i, c]."""
    scores = (z * table).sum(1)
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    return np.einsum("bc,bic->ic", p, z) / len(labels)


def train_by_numpy(plan, server):
    """Per-class weights moved by one optimiser step a round on the union of all clients' mini-batches; numpy only."""
    proxies = draw_proxy_samples()
    batches = draw_batches(proxies, plan)
    table = make_rule("per_class").table.detach().numpy().copy()
    m, v = np.zeros_like(table), np.zeros_like(table)
    for t, participants in enumerate(
        draw_participants_of_rounds(range(M), plan.per_round, plan.rounds, make_batch_stream)
    ):
        z = np.concatenate([proxies[i].logits.numpy()[batches[i][t].numpy()] for i in participants])
        labels = np.concatenate(
            [proxies[i].labels.numpy()[batches[i][t].numpy()] for i in participants]
        )
        step = plan.eta_l * compute_pooled_gradient(table, z, labels)
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
def test_with_one_local_step_training_is_pooled_sgd_or_adam(at_once, server, options):
    plan = Fens(rounds=20, batch=8, **options)
    torch.testing.assert_close(
        train_rule(at_once, "per_class", plan)[0], train_by_numpy(plan, server), **TOLERANCE
    )


@both_forms
def test_sampling_clients_is_adam_on_their_samples(at_once):
    """Two of five clients a round: a step on the union of their mini-batches. per_round = 5 equals per_round = 0."""
    plan = Fens(rounds=20, batch=8, per_round=2, eta_s=0.05)
    rounds = draw_participants_of_rounds(range(M), 2, 20, make_batch_stream)
    assert {len(set(participants)) for participants in rounds} == {2} and len(
        set(map(tuple, rounds))
    ) > 4
    torch.testing.assert_close(
        train_rule(at_once, "per_class", plan)[0], train_by_numpy(plan, "adam"), **TOLERANCE
    )
    without_sampling, _ = train_rule(at_once, "per_class", Fens(rounds=20, batch=8, per_round=0))
    all_sampled, _ = train_rule(at_once, "per_class", Fens(rounds=20, batch=8, per_round=M))
    assert torch.equal(without_sampling, all_sampled)


@pytest.mark.slow
@pytest.mark.parametrize("weights", list(CLIENT_WEIGHTS))
@pytest.mark.parametrize("name", rules.TRAINED)
@pytest.mark.parametrize("batch", [8, 128])
def test_training_by_client_and_pooled_training_are_equal(name, weights, batch):
    for server in ("fedadam", "fedyogi"):
        plan = Fens(rounds=20, batch=batch, server=server, client_weights=weights)
        loop, pooled = (train_rule(at_once, name, plan) for at_once in (BY_CLIENT, AT_ONCE))
        torch.testing.assert_close(loop[0], pooled[0], **TOLERANCE)
        torch.testing.assert_close(loop[1], pooled[1], **TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("name", rules.TRAINED)
def test_one_client_with_plain_averaging_trains_by_local_sgd(name):
    proxies = draw_proxy_samples(sizes=[30], clients=M)
    plan = Fens(rounds=6, local_steps=3, batch=8, eta_l=0.05, server="fedavg")
    federated, _ = train_rule(BY_CLIENT, name, plan, proxies)
    rule = make_rule(name)
    sgd = torch.optim.SGD(rule.parameters(), lr=0.05)
    for rows in draw_batches(proxies, plan)[0]:
        sgd.zero_grad()
        cross_entropy(
            rule(proxies[0].logits[rows], proxies[0].inputs[rows]), proxies[0].labels[rows]
        ).backward()
        sgd.step()
    torch.testing.assert_close(
        federated, torch.cat([p.detach().flatten() for p in rule.parameters()]), **TOLERANCE
    )


@both_forms
def test_a_client_without_samples_takes_no_part(at_once):
    plan = Fens(rounds=10, batch=8)
    with_empty = dict(enumerate(draw_proxy_samples([3, 0, 11])))
    without = {i: proxy for i, proxy in with_empty.items() if i != 1}
    rule = make_rule("per_class")
    rule_without_empty = make_rule("per_class")
    link = Link(3)
    list(
        plan.train_aggregator_in_place(
            rule, with_empty, make_batch_stream, link, should_pool_gradients=at_once
        )
    )
    list(
        plan.train_aggregator_in_place(
            rule_without_empty, without, make_batch_stream, should_pool_gradients=at_once
        )
    )
    assert torch.equal(rule.table, rule_without_empty.table)
    size = 10 * 8 * rule.trained_parameter_count  # ten rounds of float64
    assert link.ledger.by_client() == {0: (size, size), 1: (0, 0), 2: (size, size)}
    assert link.ledger.by_phase() == {"aggregator": (2 * size, 2 * size)}
    assert all(row["messages"] == 10 for row in link.ledger.rows())
    for kind, expected in (("samples", {0: 3 / 11, 2: 8 / 11}), ("uniform", {0: 0.5, 2: 0.5})):
        assert compute_shares_of_proxy_owners(with_empty, 8, kind) == expected


def test_without_any_sample_training_is_refused():
    with pytest.raises(UsageError, match="No client has a proxy sample"):
        compute_shares_of_proxy_owners(dict(enumerate(draw_proxy_samples([0, 0]))), 128, "samples")


def test_batches_are_shuffled_passes_that_do_not_depend_on_the_number_of_steps():
    ten, three, none = draw_proxy_samples([10, 3, 0])
    short, long = (
        draw_batch_indices(ten, 3, steps, make_torch_generator(0, "batches", 2))
        for steps in (4, 50)
    )
    assert long.shape == (50, 3) and torch.equal(long[:4], short)
    # Three batches of three make a pass: nine different samples of ten.
    for first_step in range(0, 48, 3):
        assert len(set(long[first_step : first_step + 3].flatten().tolist())) == 9
    assert long.unique().tolist() == list(range(10))
    assert torch.equal(
        draw_batch_indices(three, 3, 2, make_torch_generator(0)),
        torch.tensor([[0, 1, 2], [0, 1, 2]]),
    )
    assert draw_batch_indices(none, 3, 2, make_torch_generator(0)).shape == (2, 0)


def test_gradients_are_computed_outside_of_the_server_block():
    open_blocks = []
    is_inside_block = []

    class ServerBlock:
        def __enter__(self):
            open_blocks.append(True)

        def __exit__(self, *_):
            open_blocks.pop()

    class RecordingRule(rules.WeightedSum):
        def forward(self, z, x=None):
            is_inside_block.append(bool(open_blocks))
            return super().forward(z, x)

    for steps in (1, 2):
        rule = RecordingRule(torch.full((M, C), 1 / M, dtype=torch.float64), C, trained=True)
        plan = Fens(rounds=3, local_steps=steps)
        list(
            plan.train_aggregator_in_place(
                rule,
                dict(enumerate(draw_proxy_samples())),
                make_batch_stream,
                make_server_block=ServerBlock,
            )
        )
    assert is_inside_block and not any(is_inside_block)
