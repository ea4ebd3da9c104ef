"""How a lesson looks in a notebook: a card with a word and a colour; an exercise as a form with
buttons; a guess, and then the answer; the score.

A learner commits to a guess before the run, and the answer names the gap. What would give an answer
away is folded until the guess is made (`Snapshot`).
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display

from ...declared import read_toml
from ...errors import UsageError, check_number, choose
from ...plots import Picture, png
from ...plots.accuracy import draw_guess_line
from ...plots.guesses import Guess, draw_guesses
from ...plots.words import describe_gap, plural
from .guess_book import store_guess
from .problem import BuildProblem, NumberProblem, Problem

STYLES = read_toml("course/kit/styles.toml")  # {style: (label, colour)}
# What this kernel has asked so far, for the score.
PREDICTIONS: dict[str, Prediction] = {}  # {question: its last form}
EXERCISES: dict[str, bool] = {}  # {question of an exercise that was shown: whether it was solved}


# ---------------------------------------------------------------------------------- cards and forms
CODE = re.compile(r"`([^`]+)`")  # a name of the program in a text


class Card:
    """A short message in a notebook; its plain text is what a saved notebook and a test compare."""

    def __init__(self, style: str, text: str, label: str = "") -> None:
        self.style = style
        self.text = text
        self.label = label or STYLES[style][0]

    def __repr__(self) -> str:
        return f"{self.label}: {self.text}"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}, {}

    def _repr_html_(self) -> str:
        _, colour = STYLES[self.style]
        label = html.escape(self.label)
        body = html.escape(self.text).replace("\n", "<br>")
        body = CODE.sub(r"<code>\1</code>", body)
        return (
            f'<div class="fl-card fl-card-{self.style}" role="status" style="border-left:4px solid {colour};'
            f'padding:.4em .8em;margin:.3em 0;line-height:1.5"><b>{label}.</b> {body}</div>'
        )


def worked(*lines: str) -> Card:
    """A card of worked numbers, line by line."""
    return Card("worked", "\n".join(lines))


class Form(widgets.VBox):
    """Widgets under a question. The question is an output of its own, so that it can be read where
    no kernel runs.
    """

    def __init__(self, card: Card, children: list[widgets.Widget]) -> None:
        super().__init__(children)
        self.card = card

    def __repr__(self) -> str:
        return repr(self.card)

    def _ipython_display_(self) -> None:
        data = super()._repr_mimebundle_() or {}
        display(self.card)
        display({**data, "text/plain": "(run this cell to answer)"}, raw=True)


# ---------------------------------------------------------------------------------- exercises
class ProblemView:
    """A problem in a notebook: `check(answer)`, `hint(n)` and `solution()` return cards, `form()`
    has buttons for them.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __repr__(self) -> str:
        return f"{self.problem.title}: {self.problem.question}"

    def check(self, answer: Any = None) -> Card:
        """Judge `answer`; without one, a reminder of the question."""
        question = self.problem.question
        verdict = self.problem.check(answer)
        was_solved = EXERCISES.get(question, False)
        EXERCISES[question] = was_solved or verdict.state == "right"
        text = verdict.message
        if verdict.state == "unattempted":
            text += f" {question}"
        return Card(verdict.state, text)

    def hint(self, number: int = 1) -> Card:
        """Hint `number` (1 is the mildest)."""
        return Card("hint", self.problem.hint(number).removeprefix("Hint "))

    def solution(self) -> Card:
        """The answer and why it is the answer."""
        return Card("solution", self.problem.solution())

    def form(self, record: Any = None) -> Form:
        """The question, an answer box and buttons.

        record: a panel; its runs are then the answer, without a box. The answer of a build exercise
        is the notebook's function of that name, as it is when Check is pressed
        """
        EXERCISES.setdefault(self.problem.question, False)
        box = widgets.Text(
            placeholder="a number", description="Answer", layout=widgets.Layout(width="16em")
        )
        check = widgets.Button(description="Check")
        hint = widgets.Button(description="Hint")
        solution = widgets.Button(description="Solution")
        message = widgets.HTML(layout=widgets.Layout(min_height="6em"))
        hints_shown = 0

        def show(card: Card) -> None:
            message.value = card._repr_html_()

        def read_answer() -> Any:
            if record is not None:
                return record
            if isinstance(self.problem, BuildProblem):
                return read_notebook_variable(self.problem.name)
            return box.value

        def on_hint(_: Any) -> None:
            nonlocal hints_shown
            hints_shown += 1
            show(self.hint(hints_shown))

        def on_check(_: Any) -> None:
            # An answer may take seconds: until then the last verdict is not about it.
            message.value = "Checking …"
            show(self.check(read_answer()))

        check.on_click(on_check)
        hint.on_click(on_hint)
        solution.on_click(lambda _: show(self.solution()))
        row = [check, hint, solution]
        if isinstance(self.problem, NumberProblem):
            row.insert(0, box)
        card = Card("exercise", self.problem.question, self.problem.title)
        return Form(card, [widgets.HBox(row), message])


def read_notebook_variable(name: str) -> Any:
    """The value of a variable of the running notebook; None where there is none."""
    shell = get_ipython()
    return None if shell is None else shell.user_ns.get(name)


# ---------------------------------------------------------------------------------- what is folded
class Snapshot:
    """A panel, a picture or a card as it is now, without controls. Behind `after` it is folded.

    after: a prediction, or several: until each is made or skipped the reader has to unfold what is
    shown, and the panel itself covers its results, unless the reader presses Run. What is on the
    page already opens by itself then. In bars of accuracy a dashed line marks a guess in per cent.
    Under a picture stands its sentence.
    """

    def __init__(self, shown: Any, after: Any = ()) -> None:
        self.shown = shown.still() if hasattr(shown, "still") else shown
        self.after = after if isinstance(after, Sequence) else [after]
        is_panel = hasattr(shown, "controls")
        if is_panel and not self.is_settled:
            self._cover(shown)

    def _cover(self, panel: Any) -> None:
        """Cover the panel's results until all guesses are settled, or Run is pressed."""

        def uncover_if_settled() -> None:
            if self.is_settled:
                panel.remove_class("fl-covered")

        panel.add_class("fl-covered")
        panel.controls.run.on_click(lambda _: panel.remove_class("fl-covered"))
        for prediction in self.after:
            prediction.callbacks.append(uncover_if_settled)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is folded any more."""
        return all(prediction.is_settled for prediction in self.after)

    def __repr__(self) -> str:
        return repr(self.shown)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        for prediction in self.after:
            if prediction.unit == "%" and prediction.guess is not None:
                draw_guess_line(getattr(self.shown, "figure", None), prediction.guess / 100)
        data, metadata = self.shown._repr_mimebundle_()
        text = repr(self)
        if "image/png" in data:
            content = make_image_html(data["image/png"], metadata, text)
        else:
            content = data.get("text/html", html.escape(text))
        if not self.is_settled:
            content = f"<details><summary>Guess first, then open this.</summary>{content}</details>"
            text = f"Guess first, then read: {text}"
        return {"text/html": content, "text/plain": text}, {}

    def _ipython_display_(self, **options: Any) -> None:
        """Display the snapshot; `options`: of `display`, for a snapshot that is on the page
        already.
        """
        data, metadata = self._repr_mimebundle_()
        if options:
            display(data, metadata=metadata, raw=True, **options)
            return
        output = display(data, metadata=metadata, raw=True, display_id=True)
        if output is None:
            return

        def display_again() -> None:
            self._ipython_display_(display_id=output.display_id, update=True)

        for prediction in self.after:
            prediction.callbacks.append(display_again)


def make_image_html(image: bytes, metadata: Mapping[str, Any], text: str) -> str:
    """A PNG image with the text below. metadata: of the image, as `Picture.image_metadata` gives it"""
    source = base64.b64encode(image).decode()
    css_class = ' class="fl-still"' if "needs_background" in metadata else ""
    return (
        f'<img alt="{html.escape(metadata["image/png"]["alt"])}"{css_class} style="max-width:100%;max-height:78vh" '
        f'src="data:image/png;base64,{source}">'
        f'<p style="white-space:pre-line">{html.escape(text)}</p>'
    )


# ---------------------------------------------------------------------------- guesses and the score
@dataclass(eq=False, repr=False)
class Prediction:
    """A form that asks `question`: a choice among `options`, or a number from `low` to `high` in
    `unit`.

    `guess` is None until `commit`; `skip` is for who does not want to guess. A guess after `reveal`
    is answered at once. So both orders work: cell by cell, and "Run All" first, where `reveal`, and
    each `Snapshot` whose `after` is this prediction, stay folded until it is settled. Each commit
    or skip calls all `callbacks`.
    """

    question: str
    options: Sequence[str] = ()
    _: KW_ONLY
    low: float = 0
    high: float = 100
    step: float = 1
    unit: str = ""
    guess: Any = field(default=None, init=False)
    is_skipped: bool = field(default=False, init=False)
    callbacks: list[Callable[[], Any]] = field(default_factory=list, init=False)
    _answer: Any = field(default=None, init=False)
    _reason: str = field(default="", init=False)
    _is_revealed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if len(self.options) == 1:
            raise UsageError("A prediction needs at least two options.")
        PREDICTIONS[self.question] = self

    @property
    def is_settled(self) -> bool:
        """Whether the answer may be seen: the guess was made, or skipped."""
        return self.is_skipped or self.guess is not None

    def commit(self, guess: Any) -> str:
        """Keep `guess` and say so, or name the gap if the answer is known; UsageError outside
        options or range.
        """
        if self.options:
            self.guess = choose("guess", guess, self.options)
        else:
            self.guess = check_number("The guess", guess, self.low, self.high)
        return self._settle(f"Noted: {self._format(self.guess)}. Read on and see.")

    def skip(self) -> str:
        """Open what is folded without a guess, and say so, or give the answer if it is known."""
        self.is_skipped = True
        return self._settle("Skipped. Read on and see.")

    def _settle(self, message: str) -> str:
        """Call all callbacks; return the verdict, or `message` as long as there is none."""
        for callback in self.callbacks:
            callback()
        self._keep()
        return self.describe_answer() if self._is_revealed else message

    def reveal(self, value: Any, why: str = "") -> Snapshot:
        """Compare the guess with what was measured; folded until the prediction is settled.

        why: a closing sentence, or its name in `reveals.toml`, where a notebook's code cannot give
        the answer away
        """
        self._answer = value
        self._reason = read_toml("course/kit/reveals.toml").get(why, why)
        self._is_revealed = True
        self._keep()
        card = Card("reveal", self.describe_answer())

        def update_card() -> None:
            card.text = self.describe_answer()

        self.callbacks.append(update_card)
        return Snapshot(card, after=self)

    def _keep(self) -> None:
        """Keep a guess that has its answer for the closing page of the last lesson."""
        if self._is_revealed and self.guess is not None:
            store_guess(self.to_guess())

    @property
    def gap(self) -> str:
        """How near the guess is: 'right', 'not it', 'very near', '41 points too high'; '' before
        `reveal`.
        """
        if not self._is_revealed:
            return ""
        if self.options:
            return "right" if self.guess == self._answer else "not it"
        near = max(self.step, 0.02 * (self.high - self.low))
        return describe_gap(self.guess, self._answer, self.unit, near=near)

    def to_guess(self) -> Guess:
        """The guess and the answer on the scale of the question, for the picture of the score."""
        words = (self._format(self.guess), self._format(self._answer))
        guess = self._place(self.guess)
        answer = self._place(self._answer)
        return Guess(self.question, guess, answer, words, self.gap, len(self.options))

    def _place(self, value: Any) -> float:
        """Where a guess or an answer stands on the scale of the question, 0–1."""
        if self.options:
            return list(self.options).index(value) / (len(self.options) - 1)
        return (value - self.low) / (self.high - self.low)

    def describe_answer(self) -> str:
        """The answer, beside the guess if there is one."""
        answer = self._format(self._answer)
        if self.guess is None:
            text = f"The answer is {answer}."
        elif not self.options:
            text = f"You guessed {self._format(self.guess)}, measured {answer}: {self.gap}."
        elif self.gap == "right":
            text = f"You guessed “{self.guess}”: so it is."
        else:
            text = f"You guessed “{self.guess}”: it is “{answer}”."
        return f"{text} {self._reason}".strip()

    def _format(self, value: Any) -> str:
        """An option as it is, a number with its unit."""
        return value if isinstance(value, str) else f"{value:.3g} {self.unit}".strip()

    def _ipython_display_(self) -> None:
        self.form()._ipython_display_()

    def form(self) -> Form:
        """The question with a choice or a slider, two buttons, and a line that says what was
        noted.
        """
        entry = self._make_entry()
        button = widgets.Button(description="That is my guess")
        skip = widgets.Button(description="Skip")
        note = widgets.HTML(layout=widgets.Layout(min_height="2em"))

        def on_commit(_: Any) -> None:
            if entry.value is None:
                note.value = "Choose an answer first."
            else:
                self.commit(entry.value)
                # The verdict stands below, behind the picture that explains it.
                note.value = html.escape(f"Noted: {self._format(self.guess)}. Read on and see.")

        def on_skip(_: Any) -> None:
            self.skip()
            note.value = "Skipped. Read on and see."

        button.on_click(on_commit)
        skip.on_click(on_skip)
        if self.options:
            allowed = " / ".join(self.options)
        else:
            allowed = f"{self.low:g} to {self._format(self.high)}"
        card = Card("predict", f"{self.question} ({allowed})")
        return Form(card, [entry, widgets.HBox([button, skip]), note])

    def _make_entry(self) -> widgets.Widget:
        """The widget in which the guess is made."""
        if self.options:
            return widgets.RadioButtons(
                options=self.options, value=None, layout=widgets.Layout(width="auto")
            )
        has_whole_steps = float(self.step).is_integer()
        return widgets.FloatSlider(
            (self.low + self.high) / 2,
            min=self.low,
            max=self.high,
            step=self.step,
            readout_format=".0f" if has_whole_steps else ".1f",
            description="Guess",
            layout=widgets.Layout(width="28em"),
        )


class Score(Form):
    """A button that shows the score so far, of everything that this kernel has asked, with a
    picture of the guesses to keep; a notebook does not save it.

    tell: the lesson in one sentence for a friend, folded until each guess is made or skipped
    """

    def __init__(self, tell: str = "") -> None:
        button = widgets.Button(description="Show my score")
        self.note = widgets.HTML()
        button.on_click(self._show)
        intro = (
            "How near were your guesses, and which exercises are right? Only you see it. Guesses stay "
            "on this machine, for the closing page of lesson 6."
        )
        super().__init__(Card("score", intro), [button, self.note])
        self.tell = None
        if tell:
            self.tell = Snapshot(Card("tell", tell), after=list(PREDICTIONS.values()))

    def _show(self, _: Any) -> None:
        self.note.value = self.page()

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        if self.tell is not None:
            self.tell._ipython_display_()

    def __repr__(self) -> str:
        predictions = list(PREDICTIONS.values())
        guessed = [prediction for prediction in predictions if prediction.guess is not None]
        text = f"{len(guessed)} of {plural(len(predictions), 'guess')} made"
        gaps = [prediction.gap for prediction in guessed if prediction.gap]
        if gaps:
            text += f" ({'; '.join(gaps)})"
        solved = sum(EXERCISES.values())
        return f"{text}. {solved} of {plural(len(EXERCISES), 'exercise')} right."

    def picture(self) -> Picture:
        """The guesses against what was measured; `score().picture().save("guesses.png")` keeps
        it.
        """
        answered = []
        for prediction in PREDICTIONS.values():
            if prediction.guess is not None and prediction.gap:
                answered.append(prediction.to_guess())
        return draw_guesses(answered)

    def page(self) -> str:
        """The score with its picture, and a link that saves the picture."""
        picture = self.picture()
        source = f"data:image/png;base64,{base64.b64encode(png(picture)).decode()}"
        image = f'<img alt="{html.escape(picture.alt)}" style="max-width:100%" src="{source}">'
        link = f'<a download="guesses.png" href="{source}">Save the picture</a>'
        return f"{Card('score', repr(self))._repr_html_()}{image}<p>{link}</p>"
