"""The influence of a client on a class: against the weights themselves, the gate, and a network's slope by hand."""

import torch

from fedlab_nb.methods.fens import aggregators as rules
from fedlab_nb.methods.fens.training import Proxy, contribution, influence
from fedlab_nb.rng import generator

M, C, IMAGE = 4, 3, (1, 8, 8)
TOLERANCE = {"rtol": 0, "atol": 1e-12}


def proxies(labels=((0, 1, 1, 2), (), (2, 0))):
    """Three clients, one of them without a sample."""
    made = []
    for i, own in enumerate(labels):
        draw = generator(0, "influence", i)
        z = 4 * torch.randn(len(own), M, C, generator=draw, dtype=torch.float64)
        x = torch.rand(len(own), *IMAGE, generator=draw, dtype=torch.float64)
        made.append(Proxy(z, torch.tensor(own, dtype=torch.long), x))
    return made


class Hidden(rules.WeightedSum):
    """A weighted sum that does not tell its weights, so that they have to be found by differentiating."""

    def weights(self):
        return None


def test_of_a_weighted_sum_it_is_the_table():
    table = torch.randn(M, C, generator=generator(1), dtype=torch.float64)
    rule = rules.WeightedSum(table.clone(), C, trained=True)
    before = influence(rule, proxies())
    assert torch.equal(before, table)
    torch.testing.assert_close(influence(Hidden(table, C, trained=True), proxies()), table, **TOLERANCE)
    with torch.no_grad():
        rule.table += 1
    assert torch.equal(before, table)  # a copy: what training changes later does not change it


def test_the_contribution_to_a_weighted_sum_is_weight_times_mean_logit():
    """Over the clients it adds up to the mean score of the true class."""
    rule = rules.WeightedSum(torch.randn(M, C, generator=generator(1), dtype=torch.float64), C, trained=True)
    parts = proxies()
    z, labels, _ = Proxy.joined(parts)
    added = contribution(rule, parts)
    for c in range(C):
        own = z[labels == c]
        torch.testing.assert_close(added[:, c], rule.table.detach()[:, c] * own[:, :, c].mean(0), **TOLERANCE)
        torch.testing.assert_close(added[:, c].sum(), rule(own)[:, c].mean().detach(), **TOLERANCE)


def test_of_a_mixture_it_is_the_mean_gate_of_the_class():
    rule = rules.trained_aggregator("moe", M, C, input_shape=IMAGE, generator=generator(2)).double()
    parts = proxies()
    _, labels, x = Proxy.joined(parts)
    gate = rule.gate(x).softmax(1).detach()
    by_hand = torch.stack([gate[labels == c].mean(0) for c in range(C)], 1)
    torch.testing.assert_close(influence(rule, parts), by_hand, **TOLERANCE)
    torch.testing.assert_close(influence(rule, parts).sum(0), torch.ones(C, dtype=torch.float64), **TOLERANCE)


def test_of_a_network_it_is_the_mean_slope():
    """d f_c / d z_ic = sum over the units j that fire of W_2[c, j] W_1[j, i C + c]."""
    rule = rules.MLP(M, C, k=5, generator=generator(3)).double()
    parts = proxies()
    z, labels, _ = Proxy.joined(parts)
    fires = (rule.hidden(z.flatten(1)) > 0).double()
    by_hand = torch.zeros(M, C, dtype=torch.float64)
    for c in range(C):
        for i in range(M):
            slope = fires @ (rule.output.weight[c] * rule.hidden.weight[:, i * C + c])
            by_hand[i, c] = slope[labels == c].mean()
    torch.testing.assert_close(influence(rule, parts), by_hand, **TOLERANCE)


def test_a_class_without_a_sample_is_judged_on_all_of_them():
    rule = rules.trained_aggregator("moe", M, C, input_shape=IMAGE, generator=generator(2)).double()
    parts = proxies(labels=((0, 1, 1), (0,)))
    _, _, x = Proxy.joined(parts)
    torch.testing.assert_close(influence(rule, parts)[:, 2], rule.gate(x).softmax(1).mean(0), **TOLERANCE)
