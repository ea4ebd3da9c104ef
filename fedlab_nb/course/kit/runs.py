"""What a lesson makes of its runs beyond `study.lesson_runs`: two methods compared, gaps chosen on validation images, a
picture over α.

versus(outs, "fens", "ensemble")                         # '+12 ± 3 points, clear'
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ...plots import Picture
from ...plots.study import against_alpha
from ...plots.words import apart
from ...study import Outcome
from ...study.lesson_runs import CLIENTS, DATASET, SEEDS, accuracies, alike, runs
from .claims import Gap


def versus(outcomes: Sequence[Outcome], method: str, other: str, **words: str) -> str:
    """`apart` of two methods in the same outcomes."""
    return apart(accuracies(outcomes, method), accuracies(outcomes, other), **words)


def chosen_gaps(
    outcomes: Sequence[Outcome], place: Callable[[Outcome], tuple[Any, Hashable] | None], a: str, b: str, name: Callable
) -> list[Gap]:
    """Variant a − b on validation images, a gap for each group of `alike`, with that on the test images as `tested`.

    name: gives what a gap is called, from what its group shares
    """
    test, validation = (alike(outcomes, place, validation=judged) for judged in (False, True))
    return [Gap(name(at), of[a], of[b], Gap(name(at), test[at][a], test[at][b])) for at, of in validation.items()]


def over_alpha(names: Mapping[str, str], alphas: Sequence[float], **settings: Any) -> Picture:
    """Accuracy of a lesson's runs against α. names: {method: what its line is called}"""
    outcomes = {alpha: runs(list(names), alpha, **settings) for alpha in alphas}
    lines = {name: {a: accuracies(of, method) for a, of in outcomes.items()} for method, name in names.items()}
    setting = f"{DATASET}, {CLIENTS} clients, mean of {SEEDS} seeds and 95 % band of Student's t"
    return against_alpha(lines, setting=setting, chance=0.1, methods={name: m for m, name in names.items()})
