"""The ensemble: both plain means from one forward pass, β-predictive Bayes, and the selection of members."""

import functools

import pytest
import torch
from byte_formulas import count_beta_bytes, count_ensemble_selection_bytes_of_all_clients
from fens_runs import C, M, get_test_images, make_context

from fedlab_nb.cli import format_outcome_as_line
from fedlab_nb.data import federate
from fedlab_nb.methods import choose_method_label
from fedlab_nb.methods.ensemble import (
    BY,
    GRID,
    Ensemble,
    EnsembleReport,
    assign_to_k_means_clusters,
    blend_mean_and_product_of_probabilities,
    choose_best_of_clusters_then_next_best,
)
from fedlab_nb.panels.record import MethodRun, RunRecord
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.studies import compare, run
from fedlab_nb.studies.engine import study
from fedlab_nb.studies.experiment import exhaust_generator


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.1, clients=M, seed=0)


@pytest.mark.parametrize("rule", ["logits", "probabilities", "votes"])
def test_both_means_are_measured_from_one_forward_pass(federation, rule, monkeypatch):
    model = exhaust_generator(Ensemble(rule=rule).run(make_context(federation)))
    x, y = get_test_images(federation).clone(), federation.dataset.y_test
    passes = []
    real_function = model.client_logits.function

    def count_pass(x):
        passes.append(len(x))
        return real_function(x)

    monkeypatch.setattr(model.client_logits, "function", count_pass)
    accuracies = model.complete_report_on_test_samples(x, y).accuracy_by_rule
    client_logits = torch.stack([module(x) for module in model.clients.modules])  # [M, N, C]
    by_hand = {"logits": client_logits.mean(0), "probabilities": client_logits.softmax(-1).mean(0)}
    assert accuracies == {
        name: float((scores.argmax(1) == y).double().mean()) for name, scores in by_hand.items()
    }
    assert accuracies.get(rule, model.accuracy(x, y)) == model.accuracy(x, y)
    assert model.features(x).shape == (len(x), M * C) and passes == [len(x)]
    assert model.complete_report_on_test_samples(x, y).get_accuracies_under_other_rules() == {
        choose_method_label("ensemble", {"rule": name}): accuracies[name]
        for name in by_hand
        if name != rule
    }
    x.mul_(0)  # changed in place, so that the cached logits no longer hold
    assert model.logits(x).shape == (len(x), C) and len(passes) == 2


def test_comparisons_show_the_other_mean_as_well():
    setting = {
        "dataset": "digits",
        "rule": "logits",
        "clients": 3,
        "epochs": 2,
        "seeds": 2,
        "alpha": 0.1,
    }
    outcomes = compare(["ensemble", "fedavg"], **setting)
    outcome = outcomes[0]
    accuracy_of_other_mean = outcome.report.get_accuracies_under_other_rules()[
        "mean of probabilities"
    ]
    assert f"mean of probabilities {accuracy_of_other_mean:.1%}" in format_outcome_as_line(outcome)
    assert "mean of" not in format_outcome_as_line(outcomes[1])
    row = MethodRun(
        1,
        "ensemble",
        setting,
        2,
        outcomes={
            result.settings.seed: result for result in outcomes if result.method == "ensemble"
        },
    )
    chosen_mean, other_mean = RunRecord((row,), 1).list_results_of_shown_rows(
        adds_other_rules_of_methods=True
    )
    assert (
        other_mean.name == "mean of probabilities"
        and other_mean.accuracies[0] == accuracy_of_other_mean
    )
    assert (
        chosen_mean.name == "FedENS: mean of logits"
        and chosen_mean.accuracies[0] == outcome.accuracy
    )
    assert len(RunRecord((row,), 1).list_results_of_shown_rows()) == 1
    table = study(["ensemble", "fedavg"], **setting).table("markdown")
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == [
        "| FedENS: mean of logits", "| fedavg", "| mean of probabilities",
    ]  # fmt: skip
    assert EnsembleReport().get_accuracies_under_other_rules() == {}


# --------------------------------------------------------------------------------------------------- β-predictive Bayes
# Its limits at β = 0 and 1, and how β is chosen and its bytes are counted.


def draw_logits(clients=5, samples=300, scale=4.0, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return scale * torch.randn(clients, samples, 7, generator=stream, dtype=torch.float64)


@pytest.mark.parametrize("scale", [0.1, 4.0, 100.0])
def test_beta_1_predicts_the_class_of_the_mean_of_logits_for_every_sample(scale):
    z = draw_logits(samples=5000, scale=scale)
    assert torch.equal(
        blend_mean_and_product_of_probabilities(z, 1.0).argmax(1), z.mean(0).argmax(1)
    )


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.5, 1.0])
def test_probabilities_sum_to_1_and_those_of_one_client_are_unchanged(beta):
    z = draw_logits()
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


def test_beta_is_the_best_on_the_pooled_held_out_samples_and_its_bytes_are_counted(federation):
    ctx = make_context(federation)
    model = exhaust_generator(Ensemble(rule="beta").run(ctx))
    x, y = (
        torch.cat(part) for part in zip(*[ctx.private.held_out(k) for k in range(M)], strict=True)
    )
    client_logits = torch.stack([module(x).detach() for module in model.clients.modules])
    nll_by_beta = [
        float(
            torch.nn.functional.nll_loss(
                blend_mean_and_product_of_probabilities(client_logits, beta), y
            )
        )
        for beta in GRID
    ]
    assert model.report.held_out_nll == pytest.approx(nll_by_beta, rel=1e-5)
    assert model.report.beta == GRID[nll_by_beta.index(min(nll_by_beta))]
    size = 4 * model.clients.parameters[0]
    phases = ctx.link.ledger.by_phase()
    assert phases["ensemble"] == (0, M * M * size)
    assert phases["likelihoods"] == (M * 4 * len(GRID), 0)
    assert phases["local models"] == (M * size, 0)
    assert ctx.link.ledger.total == M * count_beta_bytes(model.clients.parameters[0], M, len(GRID))


def test_a_given_beta_costs_no_further_bytes(federation):
    ctx, plain = make_context(federation), make_context(federation)
    model = exhaust_generator(Ensemble(rule="beta", beta=0.3).run(ctx))
    mean = exhaust_generator(Ensemble().run(plain))
    assert ctx.link.ledger.by_phase() == plain.link.ledger.by_phase() and model.report.grid is None
    x = get_test_images(federation)
    assert torch.allclose(
        model.logits(x), blend_mean_and_product_of_probabilities(model.client_logits(x), 0.3)
    )
    assert model.logits(x).shape == (len(x), C)
    assert not torch.equal(model.logits(x), mean.logits(x))


def test_samples_are_held_out_only_where_they_tune_or_rank():
    assert Ensemble(rule="beta").holds_out and not Ensemble(rule="beta", beta=0.5).holds_out
    assert [Ensemble(keep=2, by=by).holds_out for by in BY] == [True, False, False, True]


@pytest.mark.slow
def test_the_product_is_overconfident_and_the_chosen_beta_has_the_best_likelihood():
    """For each seed the mixture's NLL is below the product's, and the chosen β's below both. Accuracies are in that
    order only on average."""
    accuracies = {0: [], 1: []}
    for seed in range(100, 108):
        setting = {"alpha": 0.1, "clients": 10, "seed": seed, "rule": "beta"}
        mixture, chosen, product = (run("ensemble", beta=beta, **setting) for beta in (0, -1, 1))
        assert chosen.nll < mixture.nll < product.nll
        accuracies[0].append(mixture.accuracy)
        accuracies[1].append(product.accuracy)
    assert sum(accuracies[0]) / 8 > sum(accuracies[1]) / 8 + 0.03


# ------------------------------------------------------------------------------------------------- selection of members
# Which clients are chosen, what is sent, and what a missing class costs.


@pytest.fixture(scope="module")
def select_members(federation):
    """A function that gives the context and the model of a selection; each is run once."""

    @functools.cache
    def select(by, keep):
        ctx = make_context(federation)
        return ctx, exhaust_generator(Ensemble(keep=keep, by=by).run(ctx))

    return select


@pytest.mark.parametrize("by", BY)
def test_keeping_all_clients_is_the_plain_ensemble(federation, select_members, by):
    x, plain = get_test_images(federation), make_context(federation)
    everybody = exhaust_generator(Ensemble().run(plain)).logits(x)
    for keep in (0, M, M + 3):
        ctx, model = select_members(by, keep)
        assert torch.equal(model.logits(x), everybody) and model.report.members is None
        assert ctx.link.ledger.by_phase() == plain.link.ledger.by_phase()


@pytest.mark.parametrize("keep", range(1, M))
def test_validation_and_size_keep_the_best_clients_and_random_the_drawn_ones(select_members, keep):
    ctx, model = select_members("validation", keep)
    clients = train_all_clients()
    ranks = []
    for k in range(M):
        x, y = ctx.private.held_out(k)
        accuracy = float((clients.module(k)(x).argmax(1) == y).float().mean())
        ranks.append(
            (accuracy, ctx.sizes[k], -k)
        )  # ties go to the larger, then to the first client
    best = sorted(range(M), key=lambda k: ranks[k])[-keep:]
    assert model.report.members == sorted(best)
    largest = sorted(range(M), key=lambda k: (-ctx.sizes[k], k))[:keep]
    assert select_members("size", keep)[1].report.members == sorted(largest)
    drawn = torch.randperm(M, generator=make_torch_generator(0, "ensemble", "selection"))[
        :keep
    ].tolist()
    assert select_members("random", keep)[1].report.members == sorted(drawn)


@functools.cache
def train_all_clients():
    """The clients of a further local training with the same seed."""
    ctx = make_context(federate("digits", alpha=0.1, clients=M, seed=0))
    return exhaust_generator(ctx.local_training())


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("keep", [1, M - 1])
def test_only_chosen_clients_upload_models(select_members, by, keep):
    ctx, model = select_members(by, keep)
    numbers = model.clients.parameters[0]
    last_layer = 10 * 33
    score_bytes = {"random": 0, "diversity": 8 + 4 * last_layer}.get(by, 8)
    assert len(model.clients) == keep == len(model.report.members)
    assert model.parameters == keep * numbers
    phases = ctx.link.ledger.by_phase()
    assert phases["local models"] == (4 * numbers * keep, 0) and phases["scores"] == (
        score_bytes * M,
        0,
    )
    if by == "random":
        expected = keep * 4 * numbers
    else:
        expected = count_ensemble_selection_bytes_of_all_clients(
            numbers, keep, M, score_bytes // 4 - 2
        )
    assert ctx.link.ledger.up == expected


def test_k_means_finds_three_clusters_and_the_best_client_of_each_is_kept():
    stream = torch.Generator().manual_seed(0)
    centres = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]]).repeat(4, 1)
    cluster = assign_to_k_means_clusters(centres + torch.randn(12, 2, generator=stream), 3, 5)
    assert all(len(set(cluster[i::3].tolist())) == 1 for i in range(3))
    assert len(set(cluster.tolist())) == 3
    ranked = [7, 4, 10, 0, 2, 1, 3, 5, 6, 8, 9, 11]  # 7, 4, 10 and 1 are in one cluster
    assert choose_best_of_clusters_then_next_best(cluster, ranked, 3) == [7, 0, 2]


def test_with_fewer_clusters_than_members_the_ranking_fills_up():
    member = assign_to_k_means_clusters(torch.ones(6, 3), 3, 2)
    assert choose_best_of_clusters_then_next_best(member, [2, 0, 1, 3, 4, 5], 3) == [2, 0, 1]


def test_recall_of_a_class_that_no_member_has_is_low():
    """Whatever the clients that were left out know."""
    out = run("ensemble", keep=1, by="size", alpha=0.05, clients=5, seed=1)
    (member,) = out.report.members
    absent = [c for c in range(10) if out.label_counts[member][c] == 0]
    assert absent and max(out.per_class[c] for c in absent) < 0.05


@pytest.mark.slow
def test_all_clients_beat_three_at_random():
    setting = {"alpha": 0.1, "clients": 10, "seeds": 8, "seed": 100}
    everybody, three = (compare("ensemble", keep=k, by="random", **setting) for k in (0, 3))
    assert everybody.mean("ensemble") >= three.mean("ensemble") + 0.1
