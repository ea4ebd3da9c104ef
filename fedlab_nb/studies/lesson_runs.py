"""Runs in a lesson: make them, take one method's, average them.

outs = runs(["fens", "ensemble"], alpha=0.05)            # digits, ten clients, three seeds, unless said otherwise
percent(outs, "fens")                                    # 84.0
for (settings, _), methods in group_comparable_accuracies(outs).items():
    ...                                                  # {method: {seed: accuracy}} under each setting
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import mean

from ..methods import choose_method_label
from ..value_types import SettingValue
from .experiment import compare
from .outcome import Outcome
from .results import Outcomes
from .statistics import ValuesBySeed

OutcomeBySeed = dict[int, Outcome]

SharedConditions = Hashable  # what runs share that can be compared
Variant = Hashable  # what they are compared by

DATASET = "digits"
CLIENTS = 10
SEEDS = 3
ALPHA = 0.1
MANY = 10  # seeds of a claim: the band of three reaches 2.5 standard deviations of a seed, that of ten 0.7
# FedENS as its paper has it, the mean of logits; the package's choice is another.
LOGITS = {"ensemble.rule": "logits"}


def runs(methods: str | Sequence[str], alpha: float = ALPHA, **settings: SettingValue) -> Outcomes:
    """A lesson's runs: `fl.compare` on digits, ten clients, seeds 0–2, unless `settings` say otherwise."""
    usual = {"dataset": DATASET, "clients": CLIENTS, "seeds": SEEDS}
    return compare(methods, alpha=alpha, **{**usual, **settings})


title = choose_method_label  # a method's name in words: 'fens' -> 'FENS'


def select_outcomes_by_seed(outcomes: Iterable[Outcome], method: str) -> OutcomeBySeed:
    """{seed: outcome} of one method; of several runs of a seed, the first."""
    chosen: dict[int, Outcome] = {}
    for outcome in outcomes:
        if outcome.method == method:
            chosen.setdefault(outcome.settings.seed, outcome)
    return chosen


def select_accuracies_by_seed(outcomes: Iterable[Outcome], method: str) -> ValuesBySeed:
    """{seed: test accuracy 0–1} of one method."""
    return {
        seed: outcome.accuracy
        for seed, outcome in select_outcomes_by_seed(outcomes, method).items()
    }


def percent(outcomes: Iterable[Outcome], method: str) -> float:
    """Mean test accuracy of `method` in percent, over all its `outcomes`."""
    return 100 * mean(outcome.accuracy for outcome in outcomes if outcome.method == method)


def group_comparable_accuracies(
    outcomes: Iterable[Outcome],
    place: Callable[[Outcome], tuple[SharedConditions, Variant] | None] | None = None,
    validation: bool = False,
) -> dict[SharedConditions, dict[Variant, ValuesBySeed]]:
    """Runs that can be compared: {what they share: {variant: {seed: accuracy}}}.

    place: gives an outcome's (what it shares with others, variant), or None to leave it out. By default
    `(outcome.conditions, outcome.method)`: methods beside each other, all that was set but their options being the same
    validation: accuracies on validation images, where settings are to be chosen; an outcome without any is left out
    """
    groups: dict[SharedConditions, dict[Variant, ValuesBySeed]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for outcome in outcomes:
        if place is None:
            position: tuple[SharedConditions, Variant] | None = (outcome.conditions, outcome.method)
        else:
            position = place(outcome)
        accuracy = outcome.accuracy_validation if validation else outcome.accuracy
        if position is None or accuracy is None:
            continue
        shared, variant = position
        groups[shared][variant][outcome.settings.seed] = accuracy
    return groups
