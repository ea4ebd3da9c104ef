"""Predict, then reveal: the learner commits to a guess before the run, and the reveal names the gap."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import ipywidgets as widgets

from ...declared import declared
from ...errors import UsageError, choose, number
from .view import Card, Form, Snapshot

ASKED: dict[str, Prediction] = {}  # {question: its last form}


@dataclass(eq=False, repr=False)
class Prediction:
    """A form that asks `question`: a choice among `options`, or a number from `low` to `high` in `unit`.

    `guess` is None until `commit`; `skip` is for who does not want to guess. A guess after `reveal` is answered at
    once. So both orders work: cell by cell, and "Run All" first, where `reveal`, and each `Snapshot` whose `after` is
    this prediction, stay folded until it is `settled`. Each commit or skip calls all that is `waiting`.
    """

    question: str
    options: Sequence[str] = ()
    _: KW_ONLY
    low: float = 0
    high: float = 100
    step: float = 1
    unit: str = ""
    guess: Any = field(default=None, init=False)
    skipped: bool = field(default=False, init=False)
    _answer: tuple[Any, str] | None = field(default=None, init=False)
    waiting: list[Callable[[], Any]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if len(self.options) == 1:
            raise UsageError("A prediction needs at least two options.")
        ASKED[self.question] = self

    @property
    def settled(self) -> bool:
        """Whether the answer may be seen: the guess was made, or skipped."""
        return self.skipped or self.guess is not None

    def commit(self, guess: Any) -> str:
        """Keep `guess` and say so, or name the gap if the answer is known; UsageError outside options or range."""
        if self.options:
            self.guess = choose("guess", guess, self.options)
        else:
            self.guess = number("The guess", guess, self.low, self.high)
        return self._settle(f"Noted: {self._with_unit(self.guess)}. Read on and see.")

    def skip(self) -> str:
        """Open what is folded without a guess, and say so, or give the answer if it is known."""
        self.skipped = True
        return self._settle("Skipped. Read on and see.")

    def _settle(self, words: str) -> str:
        for call in self.waiting:
            call()
        return self._verdict() if self._answer else words

    def reveal(self, value: Any, why: str = "") -> Snapshot:
        """Compare the guess with what was measured, folded while it is not `settled`.

        why: a closing sentence, or its name in `reveals.toml`, where a notebook's code cannot give the answer away
        """
        self._answer = value, declared("course/kit/reveals.toml").get(why, why)
        card = Card("reveal", self._verdict())
        self.waiting.append(lambda: setattr(card, "text", self._verdict()))
        return Snapshot(card, after=self)

    @property
    def gap(self) -> str:
        """How near the guess is: 'right', 'not it', 'very near', '41 points too high'; '' before `reveal`."""
        if self._answer is None:
            return ""
        if self.options:
            return "right" if self.guess == self._answer[0] else "not it"
        gap = self.guess - self._answer[0]
        if abs(gap) < max(self.step, 0.02 * (self.high - self.low)):
            return "very near"
        points = f"{abs(gap):.3g} {'points' if self.unit == '%' else self.unit}".strip()
        return f"{points} too {'high' if gap > 0 else 'low'}"

    def _verdict(self) -> str:
        value, why = self._answer
        shown = self._with_unit(value)
        if self.guess is None:
            text = f"The answer is {shown}."
        elif self.options:
            text = f"You guessed “{self.guess}”: " + ("so it is." if self.gap == "right" else f"it is “{shown}”.")
        else:
            text = f"You guessed {self._with_unit(self.guess)}, measured {shown}: {self.gap}."
        return f"{text} {why}".strip()

    def _with_unit(self, value: Any) -> str:
        return value if isinstance(value, str) else f"{value:.3g} {self.unit}".strip()

    def _ipython_display_(self) -> None:
        self.form()._ipython_display_()

    def form(self) -> Form:
        """The question with a choice or a slider, two buttons, and a line that says what was noted."""
        if self.options:
            entry = widgets.RadioButtons(options=self.options, value=None, layout=widgets.Layout(width="auto"))
            allowed = " / ".join(self.options)
        else:
            middle = (self.low + self.high) / 2
            form = ".0f" if float(self.step).is_integer() else ".1f"
            entry = widgets.FloatSlider(middle, min=self.low, max=self.high, step=self.step, readout_format=form)
            entry.layout.width, entry.description = "28em", "Guess"
            allowed = f"{self.low:g} to {self._with_unit(self.high)}"
        button, skip = (widgets.Button(description=words) for words in ("That is my guess", "Skip"))
        note = widgets.HTML(layout=widgets.Layout(min_height="2em"))

        def on_commit(_: Any) -> None:
            note.value = "Choose an answer first." if entry.value is None else html.escape(self.commit(entry.value))

        button.on_click(on_commit)
        skip.on_click(lambda _: setattr(note, "value", html.escape(self.skip())))
        return Form(Card("predict", f"{self.question} ({allowed})"), [entry, widgets.HBox([button, skip]), note])


predict = Prediction
