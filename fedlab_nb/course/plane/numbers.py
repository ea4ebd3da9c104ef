"""What the lessons quote of the toy: one accuracy, and a comparison over ten seeds."""

from collections.abc import Sequence

from ...plots.words import apart, mean_percent
from ...study.lesson_runs import MANY
from ..kit.view import Card, worked
from .squares import VIEWS, inside, predictor
from .toy import Toy


def right(view: str, *, alpha: float, seed: int = 0, start: str = "common") -> int:
    """Test accuracy of a predictor, in percent."""
    toy = Toy(alpha, seed, start)
    return round(100 * toy.accuracy(predictor(toy, view)))


def over_seeds(first: str, second: str, settings: Sequence[tuple[float, str]] = ((0.1, "common"),)) -> Card:
    """Two predictors on seeds 0 to 9 at each (α, start): their mean accuracies, and their difference with its band."""
    lines = []
    for alpha, start in settings:
        toys = {seed: Toy(alpha, seed, start) for seed in range(MANY)}
        a, b = ({k: toy.accuracy(predictor(toy, view)) for k, toy in toys.items()} for view in (first, second))
        names = (inside(VIEWS[view]) for view in (first, second))
        values = ", ".join(f"{name} {mean_percent(of)}" for name, of in zip(names, (a, b), strict=True))
        starts = "common start" if start == "common" else "own starts"
        lines.append(f"α = {alpha:g}, {starts}: {values}; difference {apart(a, b)}")
    return worked(*lines, f"Points in the plane, means of seeds 0 to {MANY - 1}.")
