"""Liars at inference: the certificate against every lie that there is, the lie that is told, and who can be asked."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from method_runs import context

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.ensemble import Ensemble
from fedlab_nb.methods.fedavg import FedAvg
from fedlab_nb.methods.fens import Fens
from fedlab_nb.methods.parts.lies import SURE, certified, taught, with_lies
from fedlab_nb.studies.experiment import finished


def answers(clients, samples=60, classes=3, seed=0):
    stream = torch.Generator().manual_seed(seed)
    own = torch.randn(clients, samples, classes, generator=stream, dtype=torch.float64)
    return (
        2 * own + 5 * torch.randn(samples, classes, generator=stream, dtype=torch.float64)
    ).softmax(-1)


def changed(honest, liars):
    """`[N]`: whether some lie of some `liars` clients changes the class of the mean. The mean is linear in each answer,
    so the worst answers are corners, one class with certainty."""
    clients, samples, classes = honest.shape
    before, corners = honest.mean(0).argmax(-1), torch.eye(classes, dtype=honest.dtype)
    found = torch.zeros(samples, dtype=torch.bool)
    for who in itertools.combinations(range(clients), liars):
        for said in itertools.product(range(classes), repeat=liars):
            told = honest.clone()
            told[list(who)] = corners[list(said)][:, None].expand(-1, samples, -1)
            found |= told.mean(0).argmax(-1) != before
    return found


@pytest.mark.parametrize(("clients", "liars"), [(3, 1), (5, 1), (5, 2), (4, 0)])
def test_the_certificate_is_exact(clients, liars):
    honest = answers(clients, seed=clients)
    safe = certified(honest, liars)
    assert torch.equal(safe, ~changed(honest, liars))
    assert liars == 0 or 0 < safe.sum() < len(safe)  # there are both


def test_the_lie_is_the_worst_of_these_liars():
    """If any answer of theirs changes the class of the mean, the second most likely class does."""
    logits = answers(5, seed=7).log()

    def mean(logits):
        return logits.softmax(-1).mean(0)

    said = with_lies(mean, logits, [1, 4])
    second = mean(logits[[0, 2, 3]]).topk(2).indices[:, 1]
    assert torch.equal(said[1], SURE * F.one_hot(second, 3).double()) and torch.equal(
        said[1], said[4]
    )
    told = mean(said)
    first = logits[[0, 2, 3]].softmax(-1).mean(0).argmax(-1)
    found = torch.zeros(60, dtype=torch.bool)
    for said in itertools.product(range(3), repeat=2):
        other = logits.softmax(-1).clone()
        other[[1, 4]] = torch.eye(3, dtype=logits.dtype)[list(said)][:, None].expand(-1, 60, -1)
        found |= other.mean(0).argmax(-1) != first
    assert torch.equal(told.argmax(-1) != first, found)
    assert with_lies(mean, logits, []) is logits and torch.equal(
        with_lies(mean, logits, [1])[0], logits[0]
    )


def test_another_rule_is_lied_to_as_harms_it_most():
    """No other class that two liars both name leaves the honest one less ahead; under weights that can be negative,
    as trained ones are, the mean's lie does."""
    logits = answers(7, classes=4, seed=3).log()
    liars, honest, weights = (
        [0, 6],
        [1, 2, 3, 4, 5],
        torch.tensor([-1.0, 1, 1, 1, 1, 1, -1])[:, None, None],
    )

    def rule(logits):
        return (weights * logits.softmax(-1)).sum(0)

    right = logits[honest].softmax(-1).mean(0).argmax(-1)
    rows = torch.arange(60)

    def ahead(told):
        scores = rule(told)
        own = scores[rows, right]
        scores[rows, right] = -torch.inf
        return own - scores.amax(-1)

    found = ahead(with_lies(rule, logits, liars))
    for said in range(4):
        told = logits.clone()
        told[liars] = SURE * torch.eye(4, dtype=torch.float64)[said]
        assert bool((found <= ahead(told)).all())
    assert bool(
        (found < ahead(with_lies(lambda told: told.softmax(-1).mean(0), logits, liars))).any()
    )


def test_taught_lies_are_of_so_many_clients_anew_for_each_sample():
    logits = answers(5, samples=200, seed=2).log().transpose(0, 1)
    told = taught(logits, 2, torch.Generator().manual_seed(0))
    lying = (told != logits).any(2)  # [n, M]
    assert bool((lying.sum(1) == 2).all()) and len(lying.unique(dim=0)) == 10  # all pairs of five
    for own, said, who in zip(logits, told, lying, strict=True):
        second = own[~who].softmax(-1).mean(0).topk(2).indices[1]
        assert torch.equal(said[who], SURE * F.one_hot(second, 3).double().expand(2, -1))


def test_robust_rules_hold_where_the_mean_does_not():
    remembered = []
    accuracy = {}
    for rule in ("probabilities", "trimmed", "median"):
        for poison in ("none", "lie:2"):
            ctx = context(clients=7, alpha=100, poison=poison, remembered=remembered, epochs=10)
            model = finished(Ensemble(rule=rule, assumed=2).run(ctx))
            data = ctx.private._x, ctx.private._y
            accuracy[rule, poison] = model.accuracy(*data)
            report = model.measured(*data)
            assert (report.certified is None) == (poison == "none")
    assert (
        accuracy["probabilities", "lie:2"]
        < accuracy["trimmed", "lie:2"]
        <= accuracy["trimmed", "none"]
    )
    assert report.certified <= accuracy["probabilities", "lie:2"]


def test_who_can_lie():
    for method in (Ensemble(), Fens(rounds=2)):
        method.check_poison(context(poison="lie:1"))
    with pytest.raises(UsageError, match="labels:1"):
        FedAvg().check_poison(context(poison="lie:1"))
    with pytest.raises(UsageError, match="distil=false"):
        Fens(distil=True).validate(context(poison="lie:1"))
    with pytest.raises(UsageError, match="at least one"):
        Ensemble().check_poison(context(poison="lie:3"))
    with pytest.raises(UsageError, match="fens.assumed is 3"):
        Fens(assumed=3).validate(context())
    with pytest.raises(UsageError, match="needs 5 clients"):
        Fens(assumed=2, aggregator="deepset").validate(context())
    Fens(assumed=2).validate(context())


def test_fens_is_trained_honestly_and_lied_to():
    remembered = []
    models = {
        p: finished(Fens(rounds=3).run(context(poison=p, remembered=remembered)))
        for p in ("none", "lie:1")
    }
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    honest, lied = models.values()
    assert torch.equal(honest.rule.weights(), lied.rule.weights())
    assert not torch.equal(honest.logits(x), lied.logits(x))
