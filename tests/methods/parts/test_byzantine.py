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
from fedlab_nb.methods.fens.aggregators import ProbabilityAggregator, make_trained_aggregator
from fedlab_nb.methods.parts.byzantine import (
    CERTAIN_LOGIT,
    MATCH_HONEST,
    are_predictions_certified,
    choose_lie_logit,
    replace_answers_of_liars,
    replace_answers_of_random_liars,
)
from fedlab_nb.methods.poison import Poison
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.studies.settings import Settings, make_plans


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
    safe = are_predictions_certified(honest, liars)
    assert torch.equal(safe, ~changed(honest, liars))
    assert liars == 0 or 0 < safe.sum() < len(safe)  # there are both


def test_the_lie_is_the_worst_of_these_liars():
    """If any answer of theirs changes the class of the mean, the second most likely class does."""
    logits = answers(5, seed=7).log()

    def mean(logits):
        return logits.softmax(-1).mean(0)

    said = replace_answers_of_liars(mean, logits, [1, 4], CERTAIN_LOGIT)
    second = mean(logits[[0, 2, 3]]).topk(2).indices[:, 1]
    assert torch.equal(said[1], CERTAIN_LOGIT * F.one_hot(second, 3).double()) and torch.equal(
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
    assert replace_answers_of_liars(mean, logits, [], CERTAIN_LOGIT) is logits and torch.equal(
        replace_answers_of_liars(mean, logits, [1], CERTAIN_LOGIT)[0], logits[0]
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

    found = ahead(replace_answers_of_liars(rule, logits, liars, CERTAIN_LOGIT))
    for said in range(4):
        told = logits.clone()
        told[liars] = CERTAIN_LOGIT * torch.eye(4, dtype=torch.float64)[said]
        assert bool((found <= ahead(told)).all())
    assert bool(
        (
            found
            < ahead(
                replace_answers_of_liars(
                    lambda told: told.softmax(-1).mean(0), logits, liars, CERTAIN_LOGIT
                )
            )
        ).any()
    )


def test_taught_lies_are_of_so_many_clients_anew_for_each_sample():
    logits = answers(5, samples=200, seed=2).log().transpose(0, 1)
    told = replace_answers_of_random_liars(
        logits, 2, torch.Generator().manual_seed(0), CERTAIN_LOGIT
    )
    lying = (told != logits).any(2)  # [n, M]
    assert bool((lying.sum(1) == 2).all()) and len(lying.unique(dim=0)) == 10  # all pairs of five
    for own, said, who in zip(logits, told, lying, strict=True):
        second = own[~who].softmax(-1).mean(0).topk(2).indices[1]
        assert torch.equal(said[who], CERTAIN_LOGIT * F.one_hot(second, 3).double().expand(2, -1))


def test_a_lie_to_a_sum_of_logits_is_no_larger_than_an_honest_answer():
    """Worked by hand: honest logits (2, 1) and (5, -1); the mean of three says 0, and 1 if the lie is 5 or more."""
    logits = torch.tensor([[[2.0, 1.0]], [[5.0, -1.0]], [[9.0, 0.0]]])

    def mean(logits):
        return logits.mean(0)

    said = replace_answers_of_liars(mean, logits, [2], MATCH_HONEST)
    assert torch.equal(said[2], torch.tensor([[0.0, 5.0]]))  # the honest largest of this sample
    assert torch.equal(mean(said), torch.tensor([[7 / 3, 5 / 3]]))
    assert torch.equal(
        replace_answers_of_liars(mean, logits, [2], 20.0)[2], torch.tensor([[0.0, 20.0]])
    )  # and a larger one names the other class
    below = replace_answers_of_liars(mean, -logits.abs(), [2], MATCH_HONEST)
    assert torch.equal(
        below[2], torch.zeros(1, 2)
    )  # nobody is above 0, so that nothing can be said
    assert choose_lie_logit(0, reads_probabilities=False) == MATCH_HONEST
    assert (
        choose_lie_logit(0, reads_probabilities=True) == CERTAIN_LOGIT
        and choose_lie_logit(7, True) == 7
    )
    certain = torch.tensor([0.0, CERTAIN_LOGIT, 0.0]).softmax(0)
    assert certain[1] == 1 and certain.sum() == 1


def test_taught_lies_are_as_large_as_those_that_are_told():
    logits = answers(5, samples=50, seed=4).log().transpose(0, 1) + 9
    told = replace_answers_of_random_liars(
        logits, 2, torch.Generator().manual_seed(1), MATCH_HONEST
    )
    for own, said in zip(logits, told, strict=True):
        lying = (own != said).any(1)
        assert torch.equal(said[lying].amax(1), own[~lying].amax().expand(2))


def test_lies_do_not_depend_on_the_samples_beside_them():
    logits = answers(5, seed=7).log() * 3 + 20

    def mean(logits):
        return logits.mean(0)

    whole = replace_answers_of_liars(mean, logits, [1, 4], MATCH_HONEST)
    parts = [
        replace_answers_of_liars(mean, part, [1, 4], MATCH_HONEST) for part in logits.split(7, 1)
    ]
    assert torch.equal(whole, torch.cat(parts, 1))


def test_the_size_of_a_lie_is_a_setting():
    assert (
        str(Poison.parse("lie:2:20", 5)) == "lie:2:20" and str(Poison.parse("lie:2", 5)) == "lie:2"
    )
    assert Poison.parse("lie:2:20", 5).logit == 20 and Poison.parse("lie:2", 5).logit == 0
    for wrong in ("lie:2:0", "lie:2:-1", "lie:2:x", "lie:2:3:4", "labels:2:3"):
        with pytest.raises(UsageError):
            Poison.parse(wrong, 5)


def test_a_rule_on_probabilities_hears_the_same_of_every_large_lie():
    """FENS that reads probabilities, its deep set and the mean of probabilities do not see the size of a lie beyond
    certainty; FENS on logits does."""
    remembered = []
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    kinds = {
        "logits": Fens(rounds=3),
        "probabilities": Fens(rounds=3, answers="probabilities"),
        "deepset": Fens(rounds=3, aggregator="deepset"),
        "mean": Ensemble(),
    }
    for kind, method in kinds.items():
        seen = []
        for poison in ("lie:1", "lie:1:100", "lie:1:1000"):
            ctx = context(clients=3, poison=poison, remembered=remembered)
            seen.append(exhaust_generator(method.run(ctx)).logits(x))
        assert torch.equal(seen[0], seen[1]) == torch.equal(seen[1], seen[2]) == (kind != "logits")


def test_a_rule_that_reads_probabilities_is_that_rule_on_them():
    stream = torch.Generator().manual_seed(3)
    z = torch.randn(6, 4, 3, generator=stream)
    for name in ("linear", "per_class", "nn"):
        rule = make_trained_aggregator(name, 4, 3, generator=torch.Generator().manual_seed(1))
        assert torch.equal(ProbabilityAggregator(rule)(z), rule(z.softmax(2)))
        assert ProbabilityAggregator(rule).trained_parameter_count == rule.trained_parameter_count


def test_robust_rules_hold_where_the_mean_does_not():
    remembered = []
    accuracy = {}
    for rule in ("probabilities", "trimmed", "median"):
        for poison in ("none", "lie:2"):
            ctx = context(clients=7, alpha=100, poison=poison, remembered=remembered, epochs=10)
            model = exhaust_generator(Ensemble(rule=rule, assumed=2).run(ctx))
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
        p: exhaust_generator(Fens(rounds=3).run(context(poison=p, remembered=remembered)))
        for p in ("none", "lie:1")
    }
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    honest, lied = models.values()
    assert torch.equal(honest.rule.get_client_weights(), lied.rule.get_client_weights())
    assert not torch.equal(honest.logits(x), lied.logits(x))


def test_liars_train_as_all_others_and_their_runs_are_their_own():
    plans = [
        make_plans(Settings.make(poison=poison), ["ensemble"])[0]
        for poison in ("none", "lie:1", "lie:2", "lie:2:20", "labels:1")
    ]
    assert len({plan.hash_settings_of_local_training() for plan in plans[:4]}) == 1
    assert plans[4].hash_settings_of_local_training() != plans[0].hash_settings_of_local_training()
    assert len({plan.hash_settings_of_run() for plan in plans}) == 5
