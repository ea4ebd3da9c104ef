"""How a lesson looks in a notebook: a card with a word and a colour, a form with buttons; predict, then reveal; the
score.

A learner commits to a guess before the run, and the reveal names the gap. What would give an answer away is folded
behind the guess (`Snapshot`).
"""

from __future__ import annotations

import base64
import html
import itertools
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display

from ...declared import declared
from ...errors import UsageError, choose, number
from ...plots import Picture, png
from ...plots.accuracy import mark_guess
from ...plots.guesses import Guess, guesses
from ...plots.words import gap, plural
from .problem import BuildProblem, NumberProblem, Problem

STYLES = declared("course/kit/styles.toml")
ASKED: dict[str, Prediction] = {}  # {question: its last form}
TRIED: dict[
    str, bool
] = {}  # {question of an exercise that was shown or answered: whether it is right}


class Card:
    """A short message in a notebook; its plain text is what a saved notebook and a test compare."""

    def __init__(self, style: str, text: str, label: str = "") -> None:
        self.style, self.text, self.label = style, text, label or STYLES[style][0]

    def __repr__(self) -> str:
        return f"{self.label}: {self.text}"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}, {}

    def _repr_html_(self) -> str:
        label, (_, colour) = html.escape(self.label), STYLES[self.style]
        body = html.escape(self.text).replace("\n", "<br>")
        return (
            f'<div class="fl-card fl-card-{self.style}" role="status" style="border-left:4px solid {colour};'
            f'padding:.4em .8em;margin:.3em 0;line-height:1.5"><b>{label}.</b> {body}</div>'
        )


def worked(*lines: str) -> Card:
    """A card of worked numbers, line by line."""
    return Card("worked", "\n".join(lines))


class ProblemView:
    """A problem in a notebook: `check(answer)`, `hint(n)`, `solution()` return cards, `form()` has buttons for them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __repr__(self) -> str:
        return f"{self.problem.title}: {self.problem.question}"

    def check(self, answer: Any = None) -> Card:
        """Judge `answer`; without one, a reminder of the question."""
        verdict = self.problem.check(answer)
        TRIED[self.problem.question] = verdict.state == "right" or TRIED.get(
            self.problem.question, False
        )
        reminder = f" {self.problem.question}" if verdict.state == "unattempted" else ""
        return Card(verdict.state, verdict.message + reminder)

    def hint(self, number: int = 1) -> Card:
        """Hint `number` (1 is the mildest)."""
        return Card("hint", self.problem.hint(number).removeprefix("Hint "))

    def solution(self) -> Card:
        """The answer and why it is the answer."""
        return Card("solution", self.problem.solution())

    def form(self, record: Any = None) -> Form:
        """The question, an answer box and buttons; with `record` (a panel) its runs are the answer, without a box.

        Of a build exercise the answer is the notebook's function of that name, as it is when Check is pressed.
        """
        box = widgets.Text(
            placeholder="a number", description="Answer", layout=widgets.Layout(width="16em")
        )
        check, hint, solution = (
            widgets.Button(description=name) for name in ("Check", "Hint", "Solution")
        )
        message = widgets.HTML(layout=widgets.Layout(min_height="6em"))
        hints = map(self.hint, itertools.count(1))
        TRIED.setdefault(self.problem.question, False)

        def show(card: Card) -> None:
            message.value = card._repr_html_()

        def answered() -> Any:
            if record is not None:
                return record
            return (
                in_notebook(self.problem.name)
                if isinstance(self.problem, BuildProblem)
                else box.value
            )

        check.on_click(lambda _: show(self.check(answered())))
        hint.on_click(lambda _: show(next(hints)))
        solution.on_click(lambda _: show(self.solution()))
        answer = [box] if isinstance(self.problem, NumberProblem) else []
        card = Card("exercise", self.problem.question, self.problem.title)
        return Form(card, [widgets.HBox([*answer, check, hint, solution]), message])


def in_notebook(name: str) -> Any:
    """What has that name in the running notebook; None where there is none."""
    shell = get_ipython()
    return None if shell is None else shell.user_ns.get(name)


class Form(widgets.VBox):
    """Widgets under a question. The question is an output of its own, so that it can be read where no kernel runs."""

    def __init__(self, card: Card, children: list[widgets.Widget]) -> None:
        super().__init__(children)
        self.card = card

    def __repr__(self) -> str:
        return repr(self.card)

    def _ipython_display_(self) -> None:
        data = super()._repr_mimebundle_() or {}
        display(self.card)
        display({**data, "text/plain": "(run this cell to answer)"}, raw=True)


class Snapshot:
    """A panel, a picture or a card as it is now, without controls. Behind `after` it is folded.

    after: a prediction, or several: until each is made or skipped the reader has to unfold what is shown, and the panel
    itself covers its results, unless the reader presses Run. What is on the page already opens by itself then. In bars
    of accuracy a dashed line marks a guess in per cent. Under a picture stands its sentence.
    """

    def __init__(self, shown: Any, after: Any = ()) -> None:
        self.shown = shown.still() if hasattr(shown, "still") else shown
        self.after = after if isinstance(after, Sequence) else [after]
        if hasattr(shown, "controls") and not self.settled:
            shown.add_class("fl-covered").controls.run.on_click(
                lambda _: shown.remove_class("fl-covered")
            )
            for guess in self.after:
                guess.waiting.append(lambda: self.settled and shown.remove_class("fl-covered"))

    @property
    def settled(self) -> bool:
        """Whether nothing is folded any more."""
        return all(guess.settled for guess in self.after)

    def __repr__(self) -> str:
        return repr(self.shown)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        for guess in self.after:
            if guess.unit == "%" and guess.guess is not None:
                mark_guess(getattr(self.shown, "figure", None), guess.guess / 100)
        data, metadata = self.shown._repr_mimebundle_()
        inside, words = data.get("text/html", html.escape(repr(self))), repr(self)
        if "image/png" in data:
            image, alt = (
                base64.b64encode(data["image/png"]).decode(),
                html.escape(metadata["image/png"]["alt"]),
            )
            inside = f'<img alt="{alt}" style="max-width:100%;max-height:78vh" src="data:image/png;base64,{image}">'
            inside += f'<p style="white-space:pre-line">{html.escape(words)}</p>'
        if not self.settled:
            inside = f"<details><summary>Guess first, then open this.</summary>{inside}</details>"
            words = f"Guess first, then read: {words}"
        return {"text/html": inside, "text/plain": words}, {}

    def _ipython_display_(self, **place: Any) -> None:
        data, metadata = self._repr_mimebundle_()
        output = display(data, metadata=metadata, raw=True, **(place or {"display_id": True}))
        for guess in self.after if output and not place else ():
            guess.waiting.append(
                lambda: self._ipython_display_(display_id=output.display_id, update=True)
            )


# ---------------------------------------------------------------------------------- guesses and the score
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
        return gap(
            self.guess,
            self._answer[0],
            self.unit,
            near=max(self.step, 0.02 * (self.high - self.low)),
        )

    def placed(self) -> Guess:
        """The guess and the answer on the scale of the question, for the picture of the score."""
        both = self.guess, self._answer[0]
        if self.options:
            at = [list(self.options).index(value) / (len(self.options) - 1) for value in both]
        else:
            at = [(value - self.low) / (self.high - self.low) for value in both]
        return Guess(
            self.question, *at, tuple(map(self._with_unit, both)), self.gap, len(self.options)
        )

    def _verdict(self) -> str:
        value, why = self._answer
        shown = self._with_unit(value)
        if self.guess is None:
            text = f"The answer is {shown}."
        elif self.options:
            text = f"You guessed “{self.guess}”: " + (
                "so it is." if self.gap == "right" else f"it is “{shown}”."
            )
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
            entry = widgets.RadioButtons(
                options=self.options, value=None, layout=widgets.Layout(width="auto")
            )
            allowed = " / ".join(self.options)
        else:
            middle = (self.low + self.high) / 2
            form = ".0f" if float(self.step).is_integer() else ".1f"
            entry = widgets.FloatSlider(
                middle, min=self.low, max=self.high, step=self.step, readout_format=form
            )
            entry.layout.width, entry.description = "28em", "Guess"
            allowed = f"{self.low:g} to {self._with_unit(self.high)}"
        button, skip = (widgets.Button(description=words) for words in ("That is my guess", "Skip"))
        note = widgets.HTML(layout=widgets.Layout(min_height="2em"))

        def on_commit(_: Any) -> None:
            note.value = (
                "Choose an answer first."
                if entry.value is None
                else html.escape(self.commit(entry.value))
            )

        button.on_click(on_commit)
        skip.on_click(lambda _: setattr(note, "value", html.escape(self.skip())))
        return Form(
            Card("predict", f"{self.question} ({allowed})"),
            [entry, widgets.HBox([button, skip]), note],
        )


class Score(Form):
    """A button that says the score so far, of everything that this kernel has asked, with a picture of the guesses to
    keep; a notebook does not save it.

    tell: the lesson in one sentence for a friend, folded until each guess is made or skipped
    """

    def __init__(self, tell: str = "") -> None:
        button, self.note = widgets.Button(description="Show my score"), widgets.HTML()
        button.on_click(lambda _: setattr(self.note, "value", self.page()))
        intro = "How near were your guesses, and which exercises are right? Only you see it, and nothing is saved."
        super().__init__(Card("score", intro), [button, self.note])
        self.tell = Snapshot(Card("tell", tell), after=[*ASKED.values()]) if tell else None

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        if self.tell is not None:
            self.tell._ipython_display_()

    def __repr__(self) -> str:
        asked, right = ASKED.values(), TRIED.values()
        made = [guess for guess in asked if guess.guess is not None]
        near = "; ".join(guess.gap for guess in made if guess.gap)
        counted = f"{len(made)} of {plural(len(asked), 'guess')} made" + (
            f" ({near})" if near else ""
        )
        return f"{counted}. {sum(right)} of {plural(len(right), 'exercise')} right."

    def picture(self) -> Picture:
        """The guesses against what was measured; `score().picture().save("guesses.png")` keeps it."""
        return guesses(
            [guess.placed() for guess in ASKED.values() if guess.guess is not None and guess.gap]
        )

    def page(self) -> str:
        """The score with its picture, and a link that saves the picture."""
        picture = self.picture()
        image = f"data:image/png;base64,{base64.b64encode(png(picture)).decode()}"
        shown = f'<img alt="{html.escape(picture.alt)}" style="max-width:100%" src="{image}">'
        link = f'<a download="guesses.png" href="{image}">Save the picture</a>'
        return f"{Card('score', repr(self))._repr_html_()}{shown}<p>{link}</p>"
