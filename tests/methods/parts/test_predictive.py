"""β-predictive Bayes: its two ends, and how β is chosen and counted."""

import pytest
import torch
from byte_formulas import beta_bytes
from fens_runs import C, M, context, x_test

from fedlab_nb.data import federate
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.ensemble import GRID, Ensemble, between
from fedlab_nb.study import run
from fedlab_nb.study.experiment import finished


def logits(clients=5, samples=300, sharp=4.0, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return sharp * torch.randn(clients, samples, 7, generator=stream, dtype=torch.float64)


def test_beta_0_is_the_mean_of_probabilities():
    z = logits()
    assert torch.allclose(between(z, 0.0).exp(), z.softmax(-1).mean(0), atol=1e-14)


@pytest.mark.parametrize("sharp", [0.1, 4.0, 100.0])
def test_beta_1_names_the_class_of_the_mean_of_logits_for_every_sample(sharp):
    z = logits(samples=5000, sharp=sharp)
    assert torch.equal(between(z, 1.0).argmax(1), z.mean(0).argmax(1))
    # and it is the product itself, not its M-th root
    product = z.softmax(-1).log().sum(0).exp() if sharp < 10 else None
    if product is not None:
        assert torch.allclose(between(z, 1.0).exp(), product / product.sum(1, keepdim=True), atol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.5, 1.0])
def test_it_is_a_distribution_and_one_client_keeps_its_own(beta):
    z = logits()
    assert torch.allclose(between(z, beta).exp().sum(1), torch.ones(300, dtype=torch.float64))
    assert torch.allclose(between(z[:1], beta), z[0].log_softmax(-1), atol=1e-12)
    by_hand = torch.ones(300, 7, dtype=torch.float64)
    for c in range(7):
        product = torch.stack([z[k].softmax(-1)[:, c] for k in range(5)]).prod(0)
        by_hand[:, c] = product**beta * z.softmax(-1)[:, :, c].mean(0) ** (1 - beta)
    assert torch.allclose(between(z, beta).exp(), by_hand / by_hand.sum(1, keepdim=True), atol=1e-10)


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.1, clients=M, seed=0)


def test_beta_is_the_best_on_the_pooled_held_out_samples_and_its_price_is_counted(federation):
    ctx = context(federation)
    model = finished(Ensemble(rule="beta").run(ctx))
    x, y = (torch.cat(part) for part in zip(*[ctx.private.held_out(k) for k in range(M)], strict=True))
    answers = torch.stack([module(x).detach() for module in model.clients.modules])
    slow = [float(torch.nn.functional.nll_loss(between(answers, beta), y)) for beta in GRID]
    assert model.report.held_out_nll == pytest.approx(slow, rel=1e-5)
    assert model.report.beta == GRID[slow.index(min(slow))]
    size = 4 * model.clients.parameters[0]
    phases = ctx.link.ledger.by_phase()
    assert phases["ensemble"] == (0, M * M * size) and phases["likelihoods"] == (M * 4 * len(GRID), 0)
    assert phases["local models"] == (M * size, 0)
    assert ctx.link.ledger.total == M * beta_bytes(model.clients.parameters[0], M, len(GRID))


def test_a_given_beta_costs_nothing_more(federation):
    ctx, plain = context(federation), context(federation)
    model, mean = finished(Ensemble(rule="beta", beta=0.3).run(ctx)), finished(Ensemble().run(plain))
    assert ctx.link.ledger.by_phase() == plain.link.ledger.by_phase() and model.report.grid is None
    x = x_test(federation)
    assert torch.allclose(model.logits(x), between(model.client_logits(x), 0.3))
    assert model.logits(x).shape == (len(x), C)
    assert not torch.equal(model.logits(x), mean.logits(x))


def test_what_it_needs(federation):
    assert (
        Ensemble(rule="beta").holds_out and not Ensemble(rule="beta", beta=0.5).holds_out and not Ensemble().holds_out
    )
    with pytest.raises(UsageError, match="held-out"):
        Ensemble(rule="beta").validate(context(federation, holdout=0))
    Ensemble(rule="beta", beta=0.1).validate(context(federation, holdout=0))
    with pytest.raises(UsageError, match=r"beta is -0\.5"):
        Ensemble(rule="beta", beta=-0.5).validate(context(federation))


@pytest.mark.slow
def test_the_product_is_too_sure_and_beta_repairs_the_likelihood():
    """Of each seed: the NLL of the mixture below the product's, that of the chosen β below both. The accuracies are in
    that order on average alone."""
    shares = {0: [], 1: []}
    for seed in range(100, 108):
        setting = {"alpha": 0.1, "clients": 10, "seed": seed, "rule": "beta"}
        mixture, chosen, product = (run("ensemble", beta=b, **setting) for b in (0, -1, 1))
        assert chosen.nll < mixture.nll < product.nll
        shares[0].append(mixture.accuracy)
        shares[1].append(product.accuracy)
    assert sum(shares[0]) / 8 > sum(shares[1]) / 8 + 0.03
