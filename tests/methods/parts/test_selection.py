"""Ensemble selection: who is chosen, what is sent, and what a missing class costs."""

import itertools

import pytest
import torch
from byte_formulas import ensemble_selection_bytes
from fens_runs import M, context, x_test

from fedlab_nb.data import federate
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.ensemble import BY, Ensemble, best_of_clusters, clusters
from fedlab_nb.rng import generator
from fedlab_nb.study import compare, run
from fedlab_nb.study.experiment import finished


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.1, clients=M, seed=0)


@pytest.fixture(scope="module")
def selected(federation):
    """{(by, keep): (context, model)}, made when asked for."""
    made = {}

    def of(by, keep):
        if (by, keep) not in made:
            ctx = context(federation)
            made[by, keep] = ctx, finished(Ensemble(keep=keep, by=by).run(ctx))
        return made[by, keep]

    return of


@pytest.mark.parametrize("by", BY)
def test_all_of_them_is_the_ensemble_itself(federation, selected, by):
    x, plain = x_test(federation), context(federation)
    everybody = finished(Ensemble().run(plain)).logits(x)
    for keep in (0, M, M + 3):
        ctx, model = selected(by, keep)
        assert torch.equal(model.logits(x), everybody) and model.report.members is None
        assert ctx.link.ledger.by_phase() == plain.link.ledger.by_phase()


@pytest.mark.parametrize("keep", range(1, M))
def test_by_validation_and_by_size_take_the_best(selected, keep):
    ctx, model = selected("validation", keep)
    clients = finished(context_of_all(ctx))
    own = []
    for k in range(M):
        x, y = ctx.private.held_out(k)
        own.append((float((clients.module(k)(x).argmax(1) == y).float().mean()), ctx.sizes[k], -k))
    assert model.report.members == sorted(sorted(range(M), key=lambda k: own[k])[-keep:])
    sizes = sorted(range(M), key=lambda k: (-ctx.sizes[k], k))[:keep]
    assert selected("size", keep)[1].report.members == [k for k in sorted(sizes)]


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
    assert len(model.clients) == keep == len(model.report.members) and model.parameters == keep * numbers
    phases = ctx.link.ledger.by_phase()
    assert phases["local models"] == (4 * numbers * keep, 0) and phases["scores"] == (extra * M, 0)
    total = keep * 4 * numbers if by == "random" else ensemble_selection_bytes(numbers, keep, M, extra // 4 - 2)
    assert ctx.link.ledger.up == total


def test_at_random_every_choice_comes_up_and_none_is_preferred():
    drawn = {}
    for seed in range(400):
        members = tuple(sorted(torch.randperm(5, generator=generator(seed, "ensemble", "selection"))[:2].tolist()))
        drawn[members] = drawn.get(members, 0) + 1
    assert set(drawn) == set(itertools.combinations(range(5), 2)) and min(drawn.values()) > 15


def test_at_random_is_that_draw(selected):
    members = torch.randperm(M, generator=generator(0, "ensemble", "selection"))[:2].tolist()
    assert selected("random", 2)[1].report.members == sorted(members)


def test_clusters_find_three_heaps_and_the_best_of_each_is_taken():
    stream = torch.Generator().manual_seed(0)
    heaps = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]]).repeat(4, 1)
    member = clusters(heaps + torch.randn(12, 2, generator=stream), 3, 5)
    assert all(len(set(member[i::3].tolist())) == 1 for i in range(3)) and len(set(member.tolist())) == 3
    ranked = [7, 4, 10, 0, 2, 1, 3, 5, 6, 8, 9, 11]  # 7, 4, 10 and 1 are of one heap
    assert best_of_clusters(member, ranked, 3) == [7, 0, 2]


def test_equal_models_fill_up_by_rank():
    member = clusters(torch.ones(6, 3), 3, 2)
    assert best_of_clusters(member, [2, 0, 1, 3, 4, 5], 3) == [2, 0, 1]


def test_a_class_that_no_chosen_client_has_is_hardly_found():
    """Recall of a class that the members never saw is low, whatever the others know."""
    out = run("ensemble", keep=1, by="size", alpha=0.05, clients=5, seed=1)
    (member,) = out.report.members
    absent = [c for c in range(10) if out.label_counts[member][c] == 0]
    assert absent and max(out.per_class[c] for c in absent) < 0.05


def test_what_it_needs(federation):
    mixed = context(federation)
    mixed.architectures[0] = ("cnn", *mixed.architectures[0][1:])
    with pytest.raises(UsageError, match="diversity"):
        Ensemble(keep=2, by="diversity").validate(mixed)
    for by in ("validation", "diversity"):
        assert Ensemble(keep=2, by=by).holds_out
        with pytest.raises(UsageError, match="held-out"):
            Ensemble(keep=2, by=by).validate(context(federation, holdout=0))
    for by in ("size", "random"):
        method = Ensemble(keep=1, by=by)
        method.validate(context(federation, holdout=0))
        assert "chosen" in method.leaks


@pytest.mark.slow
def test_all_clients_beat_three_at_random():
    setting = {"alpha": 0.1, "clients": 10, "seeds": 8, "seed": 100}
    everybody, three = (compare("ensemble", keep=k, by="random", **setting) for k in (0, 3))
    assert everybody.mean("ensemble") >= three.mean("ensemble") + 0.1
