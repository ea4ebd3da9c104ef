"""Runs in a lesson: make them, take one method's, average them.

outs = runs(["fens", "ensemble"], alpha=0.05)            # digits, ten clients, three seeds, unless said otherwise
percent(outs, "fens")                                    # 84.0
for (settings, _), methods in alike(outs).items(): ...   # {method: {seed: accuracy}} under each setting
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import mean
from typing import Any

from ..methods import label_of
from .experiment import compare
from .outcome import Outcome
from .results import Outcomes

DATASET, CLIENTS, SEEDS, ALPHA = "digits", 10, 3, 0.1
MANY = 10  # seeds of a claim: the band of three reaches 2.5 standard deviations of a seed, that of ten 0.7
LOGITS = {
    "ensemble.rule": "logits"
}  # FedENS as its paper has it, the mean of logits; the package's choice is another


def runs(methods: str | Sequence[str], alpha: float = ALPHA, **settings: Any) -> Outcomes:
    """A lesson's runs: `fl.compare` on digits, ten clients, seeds 0–2, unless `settings` say otherwise."""
    return compare(
        methods, alpha=alpha, **{"dataset": DATASET, "clients": CLIENTS, "seeds": SEEDS, **settings}
    )


title = label_of  # a method's name in words: 'fens' -> 'FENS'


def by_seed(outcomes: Iterable[Outcome], method: str) -> dict[int, Outcome]:
    """{seed: outcome} of one method; of several runs of a seed, the first."""
    chosen: dict[int, Outcome] = {}
    for o in outcomes:
        if o.method == method:
            chosen.setdefault(o.settings.seed, o)
    return chosen


def accuracies(outcomes: Iterable[Outcome], method: str) -> dict[int, float]:
    """{seed: test accuracy 0–1} of one method."""
    return {seed: o.accuracy for seed, o in by_seed(outcomes, method).items()}


def percent(outcomes: Iterable[Outcome], method: str) -> float:
    """Mean test accuracy of `method` in percent, over all its `outcomes`."""
    return 100 * mean(o.accuracy for o in outcomes if o.method == method)


def alike(
    outcomes: Iterable[Outcome],
    place: Callable[[Outcome], tuple[Hashable, Hashable] | None] | None = None,
    validation: bool = False,
) -> dict[Any, dict[Any, dict[int, float]]]:
    """Runs that can be compared: {what they share: {variant: {seed: accuracy}}}.

    place: gives an outcome's (what it shares with others, variant), or None to leave it out. By default
    `(outcome.conditions, outcome.method)`: methods beside each other, all that was set but their options being the same
    validation: accuracies on validation images, where settings are to be chosen; an outcome without any is left out
    """
    groups: dict[Any, dict[Any, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for o in outcomes:
        at = place(o) if place is not None else (o.conditions, o.method)
        share = o.accuracy_validation if validation else o.accuracy
        if at is not None and share is not None:
            groups[at[0]][at[1]][o.settings.seed] = share
    return groups
