"""The ensemble: both plain means from one pass through the clients, and where comparisons show the other one."""

import pytest
import torch
from byte_formulas import beta_bytes, ensemble_selection_bytes
from fens_runs import C, M, context, x_test

from fedlab_nb.cli import format_outcome
from fedlab_nb.data import federate
from fedlab_nb.methods import choose_method_label
from fedlab_nb.methods.ensemble import (
    BY,
    GRID,
    Ensemble,
    EnsembleReport,
    assign_to_k_means_clusters,
    blend_mean_and_product_of_probabilities,
    choose_best_client_of_each_cluster,
)
from fedlab_nb.panels.record import Row, Runs
from fedlab_nb.rng import generator
from fedlab_nb.studies import compare, run
from fedlab_nb.studies.engine import study
from fedlab_nb.studies.experiment import exhaust_generator


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.1, clients=M, seed=0)


@pytest.mark.parametrize("rule", ["logits", "probabilities", "votes"])
def test_both_means_are_measured_from_one_pass(federation, rule, monkeypatch):
    model = exhaust_generator(Ensemble(rule=rule).run(context(federation)))
    x, y = x_test(federation).clone(), federation.dataset.y_test
    passes, ask = [], model.client_logits.function
    monkeypatch.setattr(model.client_logits, "function", lambda x: passes.append(len(x)) or ask(x))
    shares = model.measured(x, y).accuracy_by_rule
    answers = torch.stack([module(x) for module in model.clients.modules])  # [M, N, C]
    by_hand = {"logits": answers.mean(0), "probabilities": answers.softmax(-1).mean(0)}
    assert shares == {
        name: float((scores.argmax(1) == y).double().mean()) for name, scores in by_hand.items()
    }
    assert shares.get(rule, model.accuracy(x, y)) == model.accuracy(x, y)
    assert model.features(x).shape == (len(x), M * C) and passes == [len(x)]
    assert model.measured(x, y).others() == {
        choose_method_label("ensemble", {"rule": name}): shares[name]
        for name in by_hand
        if name != rule
    }
    x.mul_(0)  # written to since: asked anew
    assert model.logits(x).shape == (len(x), C) and len(passes) == 2


def test_comparisons_show_the_other_mean():
    quick = {
        "dataset": "digits",
        "rule": "logits",
        "clients": 3,
        "epochs": 2,
        "seeds": 2,
        "alpha": 0.1,
    }
    outcomes = compare(["ensemble", "fedavg"], **quick)
    first = outcomes[0]
    other = first.report.others()["mean of probabilities"]
    assert f"mean of probabilities {other:.1%}" in format_outcome(
        first
    ) and "mean of" not in format_outcome(outcomes[1])
    row = Row(
        1,
        "ensemble",
        quick,
        2,
        outcomes={o.settings.seed: o for o in outcomes if o.method == "ensemble"},
    )
    own, beside = Runs((row,), 1).list_series(includes_other_rules=True)
    assert beside.name == "mean of probabilities" and beside.accuracies[0] == other
    assert own.name == "FedENS: mean of logits" and own.accuracies[0] == first.accuracy
    assert len(Runs((row,), 1).list_series()) == 1
    table = study(["ensemble", "fedavg"], **quick).table("markdown")
    assert [text.split(" | ")[0] for text in table.splitlines()[2:]] == [
        "| FedENS: mean of logits", "| fedavg", "| mean of probabilities",
    ]  # fmt: skip
    assert EnsembleReport().others() == {}


# ------------------------------------------------------------------------------------------------------ test predictive
# β-predictive Bayes: its two ends, and how β is chosen and counted.


def logits(clients=5, samples=300, sharp=4.0, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return sharp * torch.randn(clients, samples, 7, generator=stream, dtype=torch.float64)


@pytest.mark.parametrize("sharp", [0.1, 4.0, 100.0])
def test_beta_1_names_the_class_of_the_mean_of_logits_for_every_sample(sharp):
    z = logits(samples=5000, sharp=sharp)
    assert torch.equal(
        blend_mean_and_product_of_probabilities(z, 1.0).argmax(1), z.mean(0).argmax(1)
    )


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.5, 1.0])
def test_it_is_a_distribution_and_one_client_keeps_its_own(beta):
    z = logits()
    assert torch.allclose(
        blend_mean_and_product_of_probabilities(z, beta).exp().sum(1),
        torch.ones(300, dtype=torch.float64),
    )
    assert torch.allclose(
        blend_mean_and_product_of_probabilities(z[:1], beta), z[0].log_softmax(-1), atol=1e-12
    )
    by_hand = torch.ones(300, 7, dtype=torch.float64)
    for c in range(7):
        product = torch.stack([z[k].softmax(-1)[:, c] for k in range(5)]).prod(0)
        by_hand[:, c] = product**beta * z.softmax(-1)[:, :, c].mean(0) ** (1 - beta)
    assert torch.allclose(
        blend_mean_and_product_of_probabilities(z, beta).exp(),
        by_hand / by_hand.sum(1, keepdim=True),
        atol=1e-10,
    )


def test_beta_is_the_best_on_the_pooled_held_out_samples_and_its_price_is_counted(federation):
    ctx = context(federation)
    model = exhaust_generator(Ensemble(rule="beta").run(ctx))
    x, y = (
        torch.cat(part) for part in zip(*[ctx.private.held_out(k) for k in range(M)], strict=True)
    )
    answers = torch.stack([module(x).detach() for module in model.clients.modules])
    slow = [
        float(
            torch.nn.functional.nll_loss(blend_mean_and_product_of_probabilities(answers, beta), y)
        )
        for beta in GRID
    ]
    assert model.report.held_out_nll == pytest.approx(slow, rel=1e-5)
    assert model.report.beta == GRID[slow.index(min(slow))]
    size = 4 * model.clients.parameters[0]
    phases = ctx.link.ledger.by_phase()
    assert phases["ensemble"] == (0, M * M * size) and phases["likelihoods"] == (
        M * 4 * len(GRID),
        0,
    )
    assert phases["local models"] == (M * size, 0)
    assert ctx.link.ledger.total == M * beta_bytes(model.clients.parameters[0], M, len(GRID))


def test_a_given_beta_costs_nothing_more(federation):
    ctx, plain = context(federation), context(federation)
    model, mean = (
        exhaust_generator(Ensemble(rule="beta", beta=0.3).run(ctx)),
        exhaust_generator(Ensemble().run(plain)),
    )
    assert ctx.link.ledger.by_phase() == plain.link.ledger.by_phase() and model.report.grid is None
    x = x_test(federation)
    assert torch.allclose(
        model.logits(x), blend_mean_and_product_of_probabilities(model.client_logits(x), 0.3)
    )
    assert model.logits(x).shape == (len(x), C)
    assert not torch.equal(model.logits(x), mean.logits(x))


def test_what_is_tuned_or_ranked_on_held_out_samples_holds_them_out():
    assert Ensemble(rule="beta").holds_out and not Ensemble(rule="beta", beta=0.5).holds_out
    assert [Ensemble(keep=2, by=by).holds_out for by in BY] == [True, False, False, True]


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


# ------------------------------------------------------------------------------------------------------- test selection
# Ensemble selection: who is chosen, what is sent, and what a missing class costs.


@pytest.fixture(scope="module")
def selected(federation):
    """{(by, keep): (context, model)}, made when asked for."""
    made = {}

    def of(by, keep):
        if (by, keep) not in made:
            ctx = context(federation)
            made[by, keep] = ctx, exhaust_generator(Ensemble(keep=keep, by=by).run(ctx))
        return made[by, keep]

    return of


@pytest.mark.parametrize("by", BY)
def test_all_of_them_is_the_ensemble_itself(federation, selected, by):
    x, plain = x_test(federation), context(federation)
    everybody = exhaust_generator(Ensemble().run(plain)).logits(x)
    for keep in (0, M, M + 3):
        ctx, model = selected(by, keep)
        assert torch.equal(model.logits(x), everybody) and model.report.members is None
        assert ctx.link.ledger.by_phase() == plain.link.ledger.by_phase()


@pytest.mark.parametrize("keep", range(1, M))
def test_by_validation_and_by_size_take_the_best_and_at_random_the_draw(selected, keep):
    ctx, model = selected("validation", keep)
    clients = exhaust_generator(context_of_all(ctx))
    own = []
    for k in range(M):
        x, y = ctx.private.held_out(k)
        own.append((float((clients.module(k)(x).argmax(1) == y).float().mean()), ctx.sizes[k], -k))
    assert model.report.members == sorted(sorted(range(M), key=lambda k: own[k])[-keep:])
    sizes = sorted(range(M), key=lambda k: (-ctx.sizes[k], k))[:keep]
    assert selected("size", keep)[1].report.members == sorted(sizes)
    drawn = torch.randperm(M, generator=generator(0, "ensemble", "selection"))[:keep].tolist()
    assert selected("random", keep)[1].report.members == sorted(drawn)


def context_of_all(ctx):
    """The same local training again; its trained clients."""
    again = context(federate("digits", alpha=0.1, clients=M, seed=0))
    return again.local_training()


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("keep", [1, M - 1])
def test_only_the_chosen_upload(selected, by, keep):
    ctx, model = selected(by, keep)
    numbers, last = model.clients.parameters[0], 10 * 33
    extra = {"random": 0, "diversity": 8 + 4 * last}.get(by, 8)
    assert (
        len(model.clients) == keep == len(model.report.members)
        and model.parameters == keep * numbers
    )
    phases = ctx.link.ledger.by_phase()
    assert phases["local models"] == (4 * numbers * keep, 0) and phases["scores"] == (extra * M, 0)
    total = (
        keep * 4 * numbers
        if by == "random"
        else ensemble_selection_bytes(numbers, keep, M, extra // 4 - 2)
    )
    assert ctx.link.ledger.up == total


def test_clusters_find_three_heaps_and_the_best_of_each_is_taken():
    stream = torch.Generator().manual_seed(0)
    heaps = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]]).repeat(4, 1)
    member = assign_to_k_means_clusters(heaps + torch.randn(12, 2, generator=stream), 3, 5)
    assert (
        all(len(set(member[i::3].tolist())) == 1 for i in range(3))
        and len(set(member.tolist())) == 3
    )
    ranked = [7, 4, 10, 0, 2, 1, 3, 5, 6, 8, 9, 11]  # 7, 4, 10 and 1 are of one heap
    assert choose_best_client_of_each_cluster(member, ranked, 3) == [7, 0, 2]


def test_equal_models_fill_up_by_rank():
    member = assign_to_k_means_clusters(torch.ones(6, 3), 3, 2)
    assert choose_best_client_of_each_cluster(member, [2, 0, 1, 3, 4, 5], 3) == [2, 0, 1]


def test_a_class_that_no_chosen_client_has_is_hardly_found():
    """Recall of a class that the members never saw is low, whatever the others know."""
    out = run("ensemble", keep=1, by="size", alpha=0.05, clients=5, seed=1)
    (member,) = out.report.members
    absent = [c for c in range(10) if out.label_counts[member][c] == 0]
    assert absent and max(out.per_class[c] for c in absent) < 0.05


@pytest.mark.slow
def test_all_clients_beat_three_at_random():
    setting = {"alpha": 0.1, "clients": 10, "seeds": 8, "seed": 100}
    everybody, three = (compare("ensemble", keep=k, by="random", **setting) for k in (0, 3))
    assert everybody.mean("ensemble") >= three.mean("ensemble") + 0.1
