"""Predict, then reveal: a guess that the learner commits to before Run, and the gap named after it."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from ..draw.words import percent
from ..methods import METHODS

NO_GUESS = ""


class Guess:
    """One row: which method, how many percent. `committed` is (method, share) or None."""

    def __init__(self) -> None:
        self.method = widgets.Dropdown(
            options=[("no guess", NO_GUESS)], value=NO_GUESS, description="I guess",
            tooltip="Commit to a guess before you run: the panel names the gap", style={"description_width": "58px"},
        )  # fmt: skip
        self.share = widgets.BoundedIntText(
            50, min=0, max=100, tooltip="Guessed test accuracy in percent", layout={"width": "56px"}
        )
        unit = widgets.HTML("%")
        self.share.disabled = True
        self.row = widgets.HBox([self.method, self.share, unit])
        self.row.add_class("fl-guess")
        self.method.observe(lambda change: setattr(self.share, "disabled", change["new"] == NO_GUESS), "value")

    def offer(self, methods: Iterable[str]) -> None:
        """Guesses can be made for `methods`; a guess for another one is withdrawn."""
        options = [("no guess", NO_GUESS), *((METHODS[name].info.title, name) for name in methods)]
        if list(self.method.options) != options:
            before = self.method.value
            self.method.options = options
            self.method.value = before if any(before == name for _, name in options) else NO_GUESS

    @property
    def committed(self) -> tuple[str, float] | None:
        return None if self.method.value == NO_GUESS else (self.method.value, self.share.value / 100)


def reveal(title: str, guessed: float, accuracies: Iterable[float]) -> str:
    """'You guessed 40 % for FENS; it is 88 % (mean of 3 seeds): 48 points too low.'"""
    values = list(accuracies)
    truth = sum(values) / len(values)
    points = round(100 * guessed) - round(100 * truth)
    gap = "exactly right" if not points else f"{abs(points)} points too {'high' if points > 0 else 'low'}"
    of = f" (mean of {len(values)} seeds)" if len(values) > 1 else ""
    return f"You guessed {percent(guessed)} for {title}; it is {percent(truth)}{of}: {gap}."
