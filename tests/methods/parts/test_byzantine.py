"""Clients that lie at inference: the certificate against every possible lie, the attack, and where it applies."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from method_runs import make_context

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.ensemble import Ensemble
from fedlab_nb.methods.fedavg import FedAvg
from fedlab_nb.methods.fens import Fens
from fedlab_nb.methods.fens.aggregators import ProbabilityAggregator, make_trainable_aggregator
from fedlab_nb.methods.parts.byzantine import (
    CERTAIN_LOGIT,
    MATCH_HONEST,
    are_predictions_safe_from_liars,
    choose_lie_logit,
    replace_answers_of_liars,
    replace_answers_of_random_liars,
)
from fedlab_nb.methods.poison import Poison
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.studies.settings import Settings, make_plans


def draw_probabilities(clients, samples=60, classes=3, seed=0):
    """`[clients, samples, classes]`: answers that agree more often than not."""
    stream = torch.Generator().manual_seed(seed)
    of_client = torch.randn(clients, samples, classes, generator=stream, dtype=torch.float64)
    common = torch.randn(samples, classes, generator=stream, dtype=torch.float64)
    return (2 * of_client + 5 * common).softmax(-1)


def lie_with_certainty(probabilities, liars, classes_of_lies):
    """A copy in which each liar answers its class with certainty for every sample."""
    with_lies = probabilities.clone()
    certain = torch.eye(probabilities.shape[-1], dtype=probabilities.dtype)
    for liar, lie in zip(liars, classes_of_lies, strict=True):
        with_lies[liar] = certain[lie]
    return with_lies


def can_be_changed(honest, liar_count):
    """`[N]`: whether some lie of some clients changes the class of the mean. The mean is linear in each answer, so the
    worst answers are one class with certainty."""
    clients, samples, classes = honest.shape
    honest_class = honest.mean(0).argmax(-1)
    changed = torch.zeros(samples, dtype=torch.bool)
    for liars in itertools.combinations(range(clients), liar_count):
        for lies in itertools.product(range(classes), repeat=liar_count):
            with_lies = lie_with_certainty(honest, liars, lies)
            changed |= with_lies.mean(0).argmax(-1) != honest_class
    return changed


@pytest.mark.parametrize(("clients", "liar_count"), [(3, 1), (5, 1), (5, 2), (4, 0)])
def test_the_certificate_is_exact(clients, liar_count):
    honest = draw_probabilities(clients, seed=clients)
    is_certified = are_predictions_safe_from_liars(honest, liar_count)
    assert torch.equal(is_certified, ~can_be_changed(honest, liar_count))
    assert liar_count == 0 or 0 < is_certified.sum() < len(is_certified)  # both cases occur


def test_the_attack_on_the_mean_is_the_worst_of_these_liars():
    """If any answers of the liars change the class of the mean, then answering the second most likely class does."""
    logits = draw_probabilities(5, seed=7).log()
    liars = [1, 4]
    honest_clients = [0, 2, 3]

    def take_mean(logits):
        return logits.softmax(-1).mean(0)

    attacked = replace_answers_of_liars(take_mean, logits, liars, CERTAIN_LOGIT)
    second_class = take_mean(logits[honest_clients]).topk(2).indices[:, 1]
    expected_lie = CERTAIN_LOGIT * F.one_hot(second_class, 3).double()
    assert torch.equal(attacked[1], expected_lie)
    assert torch.equal(attacked[4], expected_lie)
    honest_class = take_mean(logits[honest_clients]).argmax(-1)
    can_change = torch.zeros(60, dtype=torch.bool)
    for lies in itertools.product(range(3), repeat=2):
        with_lies = lie_with_certainty(logits.softmax(-1), liars, lies)
        can_change |= with_lies.mean(0).argmax(-1) != honest_class
    assert torch.equal(take_mean(attacked).argmax(-1) != honest_class, can_change)
    assert replace_answers_of_liars(take_mean, logits, [], CERTAIN_LOGIT) is logits
    one_liar = replace_answers_of_liars(take_mean, logits, [1], CERTAIN_LOGIT)
    assert torch.equal(one_liar[0], logits[0])


def test_the_attack_on_another_rule_does_it_the_most_harm():
    """Of all classes that both liars may answer, the attack leaves the honest class the smallest lead. For weights that
    can be negative, as trained ones are, the attack on the mean is weaker."""
    logits = draw_probabilities(7, classes=4, seed=3).log()
    liars = [0, 6]
    honest_clients = [1, 2, 3, 4, 5]
    weights = torch.tensor([-1.0, 1, 1, 1, 1, 1, -1])[:, None, None]

    def apply_rule(logits):
        return (weights * logits.softmax(-1)).sum(0)

    honest_class = logits[honest_clients].softmax(-1).mean(0).argmax(-1)
    samples = torch.arange(60)

    def measure_lead(logits):
        """Of the honest class before the best other class."""
        scores = apply_rule(logits)
        score = scores[samples, honest_class]
        scores[samples, honest_class] = -torch.inf
        return score - scores.amax(-1)

    attack = replace_answers_of_liars(apply_rule, logits, liars, CERTAIN_LOGIT)
    for lie in range(4):
        with_lies = logits.clone()
        with_lies[liars] = CERTAIN_LOGIT * torch.eye(4, dtype=torch.float64)[lie]
        assert bool((measure_lead(attack) <= measure_lead(with_lies)).all())

    def take_mean(logits):
        return logits.softmax(-1).mean(0)

    attack_on_mean = replace_answers_of_liars(take_mean, logits, liars, CERTAIN_LOGIT)
    assert bool((measure_lead(attack) < measure_lead(attack_on_mean)).any())


def test_random_liars_are_drawn_for_each_sample():
    logits = draw_probabilities(5, samples=200, seed=2).log().transpose(0, 1)
    stream = torch.Generator().manual_seed(0)
    attacked = replace_answers_of_random_liars(logits, 2, stream, CERTAIN_LOGIT)
    is_lie = (attacked != logits).any(2)  # [samples, clients]
    assert bool((is_lie.sum(1) == 2).all())
    assert len(is_lie.unique(dim=0)) == 10  # all pairs of five clients
    for honest, answer, lies in zip(logits, attacked, is_lie, strict=True):
        second_class = honest[~lies].softmax(-1).mean(0).topk(2).indices[1]
        expected = CERTAIN_LOGIT * F.one_hot(second_class, 3).double()
        assert torch.equal(answer[lies], expected.expand(2, -1))


def test_a_lie_in_logits_is_no_larger_than_an_honest_answer_by_hand():
    """Honest logits (2, 1) and (5, -1): the mean of three clients names class 0, and class 1 for a lie of 5 or more."""
    logits = torch.tensor([[[2.0, 1.0]], [[5.0, -1.0]], [[9.0, 0.0]]])

    def take_mean(logits):
        return logits.mean(0)

    def get_lie(logits, size):
        return replace_answers_of_liars(take_mean, logits, [2], size)[2]

    attacked = replace_answers_of_liars(take_mean, logits, [2], MATCH_HONEST)
    assert torch.equal(
        attacked[2], torch.tensor([[0.0, 5.0]])
    )  # as large as the largest honest logit
    assert torch.equal(take_mean(attacked), torch.tensor([[7 / 3, 5 / 3]]))
    assert torch.equal(get_lie(logits, 20.0), torch.tensor([[0.0, 20.0]]))
    # Where no honest logit is above 0, the lie is 0.
    assert torch.equal(get_lie(-logits.abs(), MATCH_HONEST), torch.zeros(1, 2))
    assert choose_lie_logit(0, rule_reads_probabilities=False) == MATCH_HONEST
    assert choose_lie_logit(0, rule_reads_probabilities=True) == CERTAIN_LOGIT
    assert choose_lie_logit(7, True) == 7
    certain = torch.tensor([0.0, CERTAIN_LOGIT, 0.0]).softmax(0)
    assert certain[1] == 1 and certain.sum() == 1


def test_lies_of_random_liars_are_as_large_as_the_largest_honest_logit():
    logits = draw_probabilities(5, samples=50, seed=4).log().transpose(0, 1) + 9
    stream = torch.Generator().manual_seed(1)
    attacked = replace_answers_of_random_liars(logits, 2, stream, MATCH_HONEST)
    for honest, answer in zip(logits, attacked, strict=True):
        is_lie = (honest != answer).any(1)
        assert torch.equal(answer[is_lie].amax(1), honest[~is_lie].amax().expand(2))


def test_lies_do_not_depend_on_other_samples_of_the_batch():
    logits = draw_probabilities(5, seed=7).log() * 3 + 20

    def attack(logits):
        return replace_answers_of_liars(
            lambda answers: answers.mean(0), logits, [1, 4], MATCH_HONEST
        )

    in_parts = [attack(part) for part in logits.split(7, 1)]
    assert torch.equal(attack(logits), torch.cat(in_parts, 1))


def test_the_size_of_a_lie_is_a_setting():
    with_size = Poison.parse("lie:2:20", 5)
    without_size = Poison.parse("lie:2", 5)
    assert (str(with_size), with_size.logit) == ("lie:2:20", 20)
    assert (str(without_size), without_size.logit) == ("lie:2", 0)
    for wrong in ("lie:2:0", "lie:2:-1", "lie:2:x", "lie:2:3:4", "labels:2:3"):
        with pytest.raises(UsageError):
            Poison.parse(wrong, 5)


def test_rules_on_probabilities_do_not_see_the_size_of_large_lies():
    """FENS on probabilities, its deep set and the mean of probabilities do not change once a lie is certain; FENS on
    logits does."""
    remembered = []
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    methods = {
        "logits": Fens(rounds=3),
        "probabilities": Fens(rounds=3, answers="probabilities"),
        "deepset": Fens(rounds=3, aggregator="deepset"),
        "mean": Ensemble(),
    }
    for name, method in methods.items():
        logits = []
        for poison in ("lie:1", "lie:1:100", "lie:1:1000"):
            ctx = make_context(clients=3, poison=poison, remembered=remembered)
            logits.append(exhaust_generator(method.run(ctx)).logits(x))
        assert (
            torch.equal(logits[0], logits[1])
            == torch.equal(logits[1], logits[2])
            == (name != "logits")
        )


def test_a_probability_aggregator_applies_its_rule_to_probabilities():
    stream = torch.Generator().manual_seed(3)
    z = torch.randn(6, 4, 3, generator=stream)
    for name in ("linear", "per_class", "nn"):
        rule = make_trainable_aggregator(name, 4, 3, generator=torch.Generator().manual_seed(1))
        assert torch.equal(ProbabilityAggregator(rule)(z), rule(z.softmax(2)))
        assert ProbabilityAggregator(rule).trained_parameter_count == rule.trained_parameter_count


def test_robust_rules_withstand_lies_better_than_the_mean():
    remembered = []
    accuracy = {}
    for rule in ("probabilities", "trimmed", "median"):
        for poison in ("none", "lie:2"):
            ctx = make_context(
                clients=7, alpha=100, poison=poison, remembered=remembered, epochs=10
            )
            model = exhaust_generator(Ensemble(rule=rule, assumed=2).run(ctx))
            data = ctx.private._x, ctx.private._y
            accuracy[rule, poison] = model.accuracy(*data)
            report = model.complete_report_on_test_samples(*data)
            assert (report.certified is None) == (poison == "none")
    assert accuracy["probabilities", "lie:2"] < accuracy["trimmed", "lie:2"]
    assert accuracy["trimmed", "lie:2"] <= accuracy["trimmed", "none"]
    assert report.certified <= accuracy["probabilities", "lie:2"]


def test_lies_are_refused_where_no_client_answers():
    for method in (Ensemble(), Fens(rounds=2)):
        method.check_poison_applies_to_method(make_context(poison="lie:1"))
    with pytest.raises(UsageError, match="labels:1"):
        FedAvg().check_poison_applies_to_method(make_context(poison="lie:1"))
    with pytest.raises(UsageError, match="distil=false"):
        Fens(distil=True).validate(make_context(poison="lie:1"))
    with pytest.raises(UsageError, match="at least one"):
        Ensemble().check_poison_applies_to_method(make_context(poison="lie:3"))
    with pytest.raises(UsageError, match="fens.assumed is 3"):
        Fens(assumed=3).validate(make_context())
    with pytest.raises(UsageError, match="needs 5 clients"):
        Fens(assumed=2, aggregator="deepset").validate(make_context())
    Fens(assumed=2).validate(make_context())


def test_liars_train_honestly_in_fens_and_lie_at_inference():
    remembered = []
    honest = exhaust_generator(Fens(rounds=3).run(make_context(remembered=remembered)))
    attacked = exhaust_generator(
        Fens(rounds=3).run(make_context(poison="lie:1", remembered=remembered))
    )
    x = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(honest.rule.get_client_weights(), attacked.rule.get_client_weights())
    assert not torch.equal(honest.logits(x), attacked.logits(x))


def test_lies_change_the_key_of_a_run_but_not_of_local_training():
    plans = [
        make_plans(Settings.make(poison=poison), ["ensemble"])[0]
        for poison in ("none", "lie:1", "lie:2", "lie:2:20", "labels:1")
    ]
    assert len({plan.hash_settings_of_local_training() for plan in plans[:4]}) == 1
    assert plans[4].hash_settings_of_local_training() != plans[0].hash_settings_of_local_training()
    assert len({plan.hash_settings_of_run() for plan in plans}) == 5
