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

SharedConditions = Hashable  # the conditions that runs must share to be compared
Variant = Hashable  # what differs between such runs

DATASET = "digits"
CLIENTS = 10
SEEDS = 3
ALPHA = 0.1
MANY = 10  # seeds of a claim; a band's half width is 0.7 standard deviations of a seed, with three seeds 2.5
# FedENS as in its paper, the mean of logits, which is not the package's default.
LOGITS = {"ensemble.rule": "logits"}


def runs(methods: str | Sequence[str], alpha: float = ALPHA, **settings: SettingValue) -> Outcomes:
    """Make a lesson's runs: `fl.compare` on digits, with ten clients and seeds 0–2 unless
    `settings` differ.
    """
    usual = {"dataset": DATASET, "clients": CLIENTS, "seeds": SEEDS}
    return compare(methods, alpha=alpha, **{**usual, **settings})


title = choose_method_label  # a method's name in words: 'fens' -> 'FENS'


def select_outcomes_by_seed(outcomes: Iterable[Outcome], method: str) -> OutcomeBySeed:
    """Return {seed: outcome} of one method; of several runs with the same seed, the first one."""
    chosen: dict[int, Outcome] = {}
    for outcome in outcomes:
        if outcome.method == method:
            chosen.setdefault(outcome.settings.seed, outcome)
    return chosen


def select_accuracies_by_seed(outcomes: Iterable[Outcome], method: str) -> ValuesBySeed:
    """Return {seed: test accuracy 0–1} of one method."""
    return {
        seed: outcome.accuracy
        for seed, outcome in select_outcomes_by_seed(outcomes, method).items()
    }


def percent(outcomes: Iterable[Outcome], method: str) -> float:
    """Compute the mean test accuracy of `method` in percent, over all its `outcomes`."""
    return 100 * mean(outcome.accuracy for outcome in outcomes if outcome.method == method)


def group_comparable_accuracies(
    outcomes: Iterable[Outcome],
    get_conditions_and_variant: Callable[[Outcome], tuple[SharedConditions, Variant] | None]
    | None = None,
    uses_validation_accuracy: bool = False,
) -> dict[SharedConditions, dict[Variant, ValuesBySeed]]:
    """Group runs that can be compared: {conditions that they share: {variant: {seed: accuracy}}}.

    get_conditions_and_variant: of an outcome, or None to leave it out. The default
        `(outcome.conditions, outcome.method)` compares methods under equal settings
    uses_validation_accuracy: for choosing settings; outcomes without validation images are left out
    """
    groups: dict[SharedConditions, dict[Variant, ValuesBySeed]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for outcome in outcomes:
        if get_conditions_and_variant is None:
            position: tuple[SharedConditions, Variant] | None = (outcome.conditions, outcome.method)
        else:
            position = get_conditions_and_variant(outcome)
        accuracy = outcome.accuracy_validation if uses_validation_accuracy else outcome.accuracy
        if position is None or accuracy is None:
            continue
        shared, variant = position
        groups[shared][variant][outcome.settings.seed] = accuracy
    return groups
