"""Predict, then reveal: the learner commits to a guess before the run, and the reveal names the gap."""

import html
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import ipywidgets as widgets

from ..errors import UsageError, choose, number
from .view import Card, Form


@dataclass(eq=False, repr=False)
class Prediction:
    """A form that asks `question`: a choice among `options`, or a number from `low` to `high` in `unit`.

    `guess` is None until `commit`; a guess after `reveal` is answered at once. So both orders work: cell by cell, and
    "Run All" first, where `reveal` folds away what nobody has guessed yet.
    """

    question: str
    options: Sequence[str] = ()
    _: KW_ONLY
    low: float = 0
    high: float = 100
    step: float = 1
    unit: str = ""
    guess: Any = field(default=None, init=False)
    _answer: tuple[Any, str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if len(self.options) == 1:
            raise UsageError("A prediction needs at least two options.")

    def commit(self, guess: Any) -> str:
        """Keep `guess` and say so, or name the gap if the answer is known; UsageError outside options or range."""
        if self.options:
            self.guess = choose("guess", guess, self.options)
        else:
            self.guess = number("The guess", guess, self.low, self.high)
        return self._verdict() if self._answer else f"Noted: {self._with_unit(self.guess)}. Read on and see."

    def reveal(self, value: Any, why: str = "") -> Card:
        """Compare the guess with what was measured; `why` is a closing sentence. Without a guess it is folded."""
        self._answer = (value, why)
        return Card("reveal", self._verdict(), folded=self.guess is None)

    def _verdict(self) -> str:
        value, why = self._answer
        shown = self._with_unit(value)
        if self.guess is None:
            text = f"The answer is {shown}."
        elif self.options:
            text = f"You guessed “{self.guess}”: " + ("so it is." if self.guess == value else f"it is “{shown}”.")
        else:
            gap = self.guess - value
            points = f"{abs(gap):.3g} {'points' if self.unit == '%' else self.unit}".strip()
            near = abs(gap) < max(self.step, 0.02 * (self.high - self.low))
            verdict = "very near" if near else f"{points} too {'high' if gap > 0 else 'low'}"
            text = f"You guessed {self._with_unit(self.guess)}, measured {shown}: {verdict}."
        return f"{text} {why}".strip()

    def _with_unit(self, value: Any) -> str:
        return value if isinstance(value, str) else f"{value:.3g} {self.unit}".strip()

    def _ipython_display_(self) -> None:
        self.form()._ipython_display_()

    def form(self) -> Form:
        """The question with a choice or a slider, a button, and a line that says what was noted."""
        if self.options:
            entry = widgets.RadioButtons(options=self.options, value=None, layout=widgets.Layout(width="auto"))
            allowed = " / ".join(self.options)
        else:
            middle = (self.low + self.high) / 2
            form = ".0f" if float(self.step).is_integer() else ".1f"
            entry = widgets.FloatSlider(middle, min=self.low, max=self.high, step=self.step, readout_format=form)
            entry.layout.width, entry.description = "28em", "Guess"
            allowed = f"{self.low:g} to {self._with_unit(self.high)}"
        button = widgets.Button(description="That is my guess")
        note = widgets.HTML(layout=widgets.Layout(min_height="2em"))

        def on_commit(_: Any) -> None:
            note.value = "Choose an answer first." if entry.value is None else html.escape(self.commit(entry.value))

        button.on_click(on_commit)
        return Form(Card("predict", f"{self.question} ({allowed})"), [entry, button, note])


predict = Prediction
