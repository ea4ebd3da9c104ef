"""Predict, then reveal: a guess that the learner commits to before Run, and the gap named after it."""

from collections.abc import Iterable

import ipywidgets as widgets

from ..methods import METHODS
from ..plots.words import percent
from .theme import made, named, offer

NO_GUESS = ("no guess", "")


class Guess:
    """One row: which method, how many percent. `committed` is (method, share) or None."""

    def __init__(self) -> None:
        self.method, self.share = named("guess", options=[NO_GUESS], value=""), named("share")
        self.row = made(widgets.HBox, "fl-guess", children=[self.method, self.share, widgets.HTML("%")])
        self.method.observe(lambda change: setattr(self.share, "disabled", not change["new"]), "value")

    def offer(self, methods: Iterable[str]) -> None:
        """Guesses can be made for `methods`; a guess for another one is withdrawn."""
        offer(self.method, (NO_GUESS, *((METHODS[name].info.title, name) for name in methods)))

    @property
    def committed(self) -> tuple[str, float] | None:
        return (self.method.value, self.share.value / 100) if self.method.value else None


def reveal(title: str, guessed: float, accuracies: Iterable[float]) -> str:
    """'You guessed 40 % for FENS; it is 88 % (mean of 3 seeds): 48 points too low.'"""
    values = list(accuracies)
    truth = sum(values) / len(values)
    points = round(100 * guessed) - round(100 * truth)
    gap = "exactly right" if not points else f"{abs(points)} points too {'high' if points > 0 else 'low'}"
    of = f" (mean of {len(values)} seeds)" if len(values) > 1 else ""
    return f"You guessed {percent(guessed)} for {title}; it is {percent(truth)}{of}: {gap}."
