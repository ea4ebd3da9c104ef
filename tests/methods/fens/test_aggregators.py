"""The aggregation rules as one nested family, their parameter counts, voting by hand, and the influence of clients."""

import math

import pytest
import torch

from fedlab_nb.methods.fens import aggregators as rules
from fedlab_nb.methods.fens.training import (
    ProxySamples,
    Voting,
    compute_mean_client_contributions,
    compute_mean_true_class_gradients,
    count_votes_by_true_class,
)
from fedlab_nb.methods.parts.frozen_ensemble import compute_class_shares
from fedlab_nb.rng import make_torch_generator

M, C, B = 4, 3, 7
IMAGE = (1, 8, 8)


def draw_logits(dtype=torch.float64):
    return torch.randn(B, M, C, generator=make_torch_generator(0, "z"), dtype=dtype) * 5


def draw_images():
    return torch.rand(B, *IMAGE, generator=make_torch_generator(0, "x"), dtype=torch.float64)


def set_weights(rule, values):
    with torch.no_grad():
        rule.table.copy_(values)
    return rule


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def test_averaging_is_the_mean_and_trained_weights_start_there():
    z = draw_logits()
    assert_close(rules.make_averaging_aggregator(M, C).double()(z), z.mean(1))
    for start in (rules.make_linear_aggregator(M, C), rules.make_per_class_aggregator(M, C)):
        assert_close(start.double()(z), z.mean(1))


def test_linear_is_per_class_with_equal_weights_for_all_classes():
    scalars = torch.tensor([[0.5], [-1.0], [2.0], [0.25]])
    linear = set_weights(rules.make_linear_aggregator(M, C).double(), scalars)
    per_class = set_weights(rules.make_per_class_aggregator(M, C).double(), scalars.expand(M, C))
    assert_close(linear(draw_logits()), per_class(draw_logits()))
    assert_close(linear.get_client_weights(), per_class.get_client_weights())


def test_weighted_averaging_is_per_class_with_shares_of_the_counts():
    counts = torch.tensor([[1, 0, 5], [3, 0, 0], [0, 0, 5], [0, 0, 10]])
    weighted = rules.make_weighted_averaging_aggregator(compute_class_shares(counts))
    # Class 0: 1/4 and 3/4. No client has class 1, so the mean. Class 2: 5, 0, 5 and 10 of 20.
    shares = torch.tensor(
        [[0.25, 0.25, 0.25], [0.75, 0.25, 0.0], [0.0, 0.25, 0.25], [0.0, 0.25, 0.5]]
    )
    torch.testing.assert_close(weighted.get_client_weights(), shares)
    assert_close(
        weighted.double()(draw_logits()),
        set_weights(rules.make_per_class_aggregator(M, C).double(), shares)(draw_logits()),
    )
    assert weighted.trained_parameter_count == 0


def test_an_mlp_with_2c_units_can_be_any_per_class_rule():
    """relu(a) - relu(-a) = a: W_1 = [diag(lambda_i), -diag(lambda_i)]_i and W_2 = [I; -I]."""
    table = torch.randn(M, C, generator=make_torch_generator(1), dtype=torch.float64)
    mlp = rules.MLP(M, C, hidden_units=2 * C).double()
    half = torch.cat([torch.diag(row) for row in table], 1)  # [C, M*C]
    eye = torch.eye(C, dtype=torch.float64)
    with torch.no_grad():
        mlp.hidden.weight.copy_(torch.cat([half, -half]))
        mlp.output.weight.copy_(torch.cat([eye, -eye], 1))
        mlp.hidden.bias.zero_()
        mlp.output.bias.zero_()
    assert_close(
        mlp(draw_logits()),
        set_weights(rules.make_per_class_aggregator(M, C).double(), table)(draw_logits()),
    )


def test_a_gate_weights_the_clients_for_each_sample():
    moe = rules.make_trainable_aggregator(
        "moe", M, C, input_shape=IMAGE, generator=make_torch_generator(2)
    ).double()
    z = draw_logits()
    x = draw_images()
    for b in range(B):
        scores = moe.gate(x[b : b + 1])[0].exp()
        expected = sum(scores[i] / scores.sum() * z[b, i] for i in range(M))
        assert_close(moe(z, x)[b], expected)


def test_the_numbers_of_trained_parameters_by_hand():
    m, c = 20, 10
    assert rules.make_averaging_aggregator(m, c).trained_parameter_count == 0
    assert rules.make_linear_aggregator(m, c).trained_parameter_count == 20
    assert rules.make_per_class_aggregator(m, c).trained_parameter_count == 200
    assert rules.make_per_class_aggregator(20, 100).trained_parameter_count == 2000
    mlp = rules.MLP(m, c, hidden_units=40)
    assert mlp.trained_parameter_count == 200 * 40 + 40 + 40 * 10 + 10 == 8450

    def count_parameters_of_gate(clients, classes, input_shape):
        rule = rules.make_trainable_aggregator("moe", clients, classes, input_shape=input_shape)
        return rule.trained_parameter_count

    assert count_parameters_of_gate(m, c, (3, 32, 32)) == 62_856
    assert count_parameters_of_gate(10, c, IMAGE) == 64 * 32 + 32 + 32 * 10 + 10
    assert count_parameters_of_gate(4, 2, (13,)) == 13 * 32 + 32 + 32 * 4 + 4


@pytest.mark.parametrize(
    "shape", [(1, 28, 28), (3, 32, 32), (3, 16, 16), (3, 20, 24), (2, 15, 40), (13,)]
)
def test_a_gate_fits_every_input_shape(shape):
    scores = rules.make_gate_network(shape, client_count=M)(torch.rand(2, *shape))
    assert scores.shape == (2, M)


def test_voting_by_hand():
    counts = torch.tensor([[[3, 1], [0, 2]], [[0, 0], [1, 4]]])
    # With one added everywhere: P_0 = [[4/6, 2/6], [1/4, 3/4]], P_1 = [[1/2, 1/2], [2/7, 5/7]].
    voting = Voting(counts, laplace=1)
    # Votes (0, 1) for the first sample and (1, 1) for the second.
    z = torch.tensor([[[5.0, 1.0], [0.0, 2.0]], [[0.0, 1.0], [-1.0, 0.0]]])
    by_hand = torch.tensor(
        [
            [math.log(4 / 6 * 1 / 2), math.log(1 / 4 * 5 / 7)],
            [math.log(2 / 6 * 1 / 2), math.log(3 / 4 * 5 / 7)],
        ]
    )
    torch.testing.assert_close(voting(z), by_hand)
    assert voting(z).argmax(1).tolist() == [0, 1]
    assert voting.trained_parameter_count == 0
    torch.testing.assert_close(
        voting.get_vote_shares_by_true_class()[1], torch.tensor([[1 / 2, 1 / 2], [2 / 7, 5 / 7]])
    )


def test_without_smoothing_one_zero_count_excludes_a_class():
    counts = torch.tensor([[[3, 1], [0, 2]], [[0, 0], [1, 4]]])
    scores = Voting(counts, laplace=0)(torch.tensor([[[5.0, 1.0], [0.0, 2.0]]]))[0]
    assert scores[1] == -math.inf  # client 0 never voted 0 where the truth was 1
    # Client 1 has no sample of class 0, hence a uniform row.
    assert math.isclose(scores[0].item(), math.log(3 / 4 * 1 / 2), rel_tol=1e-6)


def test_vote_counts_equal_a_plain_loop():
    z = draw_logits()
    labels = torch.tensor([0, 2, 1, 1, 0, 2, 2])
    expected = torch.zeros(M, C, C, dtype=torch.int32)
    for sample, truth in zip(z, labels, strict=True):
        for client in range(M):
            expected[client, truth, sample[client].argmax()] += 1
    assert torch.equal(count_votes_by_true_class(z, labels), expected)
    assert torch.equal(
        count_votes_by_true_class(z[:0], labels[:0]), torch.zeros(M, C, C, dtype=torch.int32)
    )


def test_features_are_the_inputs_of_the_last_linear_layer():
    z = draw_logits()
    assert torch.equal(rules.make_averaging_aggregator(M, C).features(z), z.reshape(B, M * C))
    mlp = rules.MLP(M, C, hidden_units=5).double()
    assert_close(mlp.output(mlp.features(z)), mlp(z))
    assert mlp.features(z).shape == (B, 5)


def test_xavier_weights_have_their_range():
    rule = rules.make_per_class_aggregator(30, 70, "xavier", make_torch_generator(0))
    bound = math.sqrt(6 / 100)
    assert 0.9 * bound < rule.get_client_weights().abs().max() <= bound


# ------------------------------------------------------------------------------------------------ influence
# The influence of a client on a class: against the weights themselves, the gate, and a network's slope by hand.

TOLERANCE = {"rtol": 0, "atol": 1e-12}


def draw_proxy_samples(labels=((0, 1, 1, 2), (), (2, 0))):
    """Three clients, one of them without a sample."""
    proxies = []
    for i, labels_of_client in enumerate(labels):
        stream = make_torch_generator(0, "influence", i)
        z = 4 * torch.randn(len(labels_of_client), M, C, generator=stream, dtype=torch.float64)
        x = torch.rand(len(labels_of_client), *IMAGE, generator=stream, dtype=torch.float64)
        proxies.append(ProxySamples(z, torch.tensor(labels_of_client, dtype=torch.long), x))
    return proxies


class RuleWithoutWeights(rules.WeightedSum):
    """A weighted sum that hides its weights, so that they must be found by differentiation."""

    def weights(self):
        return None


def test_the_influence_in_a_weighted_sum_is_the_weight():
    table = torch.randn(M, C, generator=make_torch_generator(1), dtype=torch.float64)
    rule = rules.WeightedSum(table.clone(), C, trained=True)
    before = compute_mean_true_class_gradients(rule, draw_proxy_samples())
    assert torch.equal(before, table)
    torch.testing.assert_close(
        compute_mean_true_class_gradients(
            RuleWithoutWeights(table, C, trained=True), draw_proxy_samples()
        ),
        table,
        **TOLERANCE,
    )
    with torch.no_grad():
        rule.table += 1
    assert torch.equal(before, table)  # a copy, which later training does not change


def test_the_contribution_to_a_weighted_sum_is_weight_times_mean_logit():
    """Over the clients it adds up to the mean score of the true class."""
    rule = rules.WeightedSum(
        torch.randn(M, C, generator=make_torch_generator(1), dtype=torch.float64), C, trained=True
    )
    proxies = draw_proxy_samples()
    z, labels, _ = ProxySamples.concatenate(proxies)
    contributions = compute_mean_client_contributions(rule, proxies)
    for c in range(C):
        logits_of_class = z[labels == c]
        torch.testing.assert_close(
            contributions[:, c],
            rule.table.detach()[:, c] * logits_of_class[:, :, c].mean(0),
            **TOLERANCE,
        )
        torch.testing.assert_close(
            contributions[:, c].sum(), rule(logits_of_class)[:, c].mean().detach(), **TOLERANCE
        )


def test_the_influence_in_a_mixture_is_the_mean_gate_of_the_class():
    rule = rules.make_trainable_aggregator(
        "moe", M, C, input_shape=IMAGE, generator=make_torch_generator(2)
    ).double()
    proxies = draw_proxy_samples()
    _, labels, x = ProxySamples.concatenate(proxies)
    gate = rule.gate(x).softmax(1).detach()
    by_hand = torch.stack([gate[labels == c].mean(0) for c in range(C)], 1)
    torch.testing.assert_close(
        compute_mean_true_class_gradients(rule, proxies), by_hand, **TOLERANCE
    )
    torch.testing.assert_close(
        compute_mean_true_class_gradients(rule, proxies).sum(0),
        torch.ones(C, dtype=torch.float64),
        **TOLERANCE,
    )


def test_the_influence_in_a_network_is_the_mean_slope():
    """d f_c / d z_ic = sum over the active units j of W_2[c, j] W_1[j, i C + c]."""
    rule = rules.MLP(M, C, hidden_units=5, generator=make_torch_generator(3)).double()
    proxies = draw_proxy_samples()
    z, labels, _ = ProxySamples.concatenate(proxies)
    is_active = (rule.hidden(z.flatten(1)) > 0).double()
    by_hand = torch.zeros(M, C, dtype=torch.float64)
    for c in range(C):
        for i in range(M):
            slope = is_active @ (rule.output.weight[c] * rule.hidden.weight[:, i * C + c])
            by_hand[i, c] = slope[labels == c].mean()
    torch.testing.assert_close(
        compute_mean_true_class_gradients(rule, proxies), by_hand, **TOLERANCE
    )


def test_the_influence_on_a_class_without_samples_is_measured_on_all_samples():
    rule = rules.make_trainable_aggregator(
        "moe", M, C, input_shape=IMAGE, generator=make_torch_generator(2)
    ).double()
    proxies = draw_proxy_samples(labels=((0, 1, 1), (0,)))
    _, _, x = ProxySamples.concatenate(proxies)
    torch.testing.assert_close(
        compute_mean_true_class_gradients(rule, proxies)[:, 2],
        rule.gate(x).softmax(1).mean(0),
        **TOLERANCE,
    )


def test_a_deep_set_ignores_the_order_of_clients_and_trims_when_it_predicts():
    """By hand: phi(p) = (p_0, p_1), rho(h) = h; the probabilities of class 0 are 0.9, 0.8, 0.6, 0.1."""
    rule = rules.make_trainable_aggregator(
        "deepset", 4, 2, hidden_units=2, trimmed_per_side=1
    ).double()
    assert rule.trained_parameter_count == (2 * 2 + 2) * 2 + 2**2 + 2
    with torch.no_grad():
        for layer in (rule.each, rule.hidden, rule.output):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
    z = torch.tensor([[[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.1, 0.9]]], dtype=torch.float64).log()
    torch.testing.assert_close(rule.train()(z), torch.tensor([[0.6, 0.4]], dtype=torch.float64))
    torch.testing.assert_close(rule.eval()(z), torch.tensor([[0.7, 0.3]], dtype=torch.float64))
    torch.testing.assert_close(rule(z[:, [2, 0, 3, 1]]), rule(z))
