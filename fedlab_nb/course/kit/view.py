"""What a lesson displays in a notebook: cards, exercises as forms with buttons, guesses, and the score.

A learner makes a guess before the run, and the answer says how far off it was. Whatever would give
the answer away is folded until the guess is made (`Snapshot`).
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display

from ...declared import read_toml
from ...errors import UsageError, check_allowed_name, check_number
from ...plots import Picture, render_picture_png
from ...plots.accuracy import draw_guess_line_on_accuracy_bars
from ...plots.guesses import GuessAndTruth, draw_guesses
from ...plots.style import make_image_html
from ...plots.words import describe_guess_error, format_count_and_noun
from .answers import LearnerAnswer
from .guess_book import store_guess
from .problem import BuildProblem, NumberProblem, Problem

if TYPE_CHECKING:
    from ...panels import Panel

RunsRecord = Any  # a panel, or the outcomes of `fl.compare`
NotebookValue = Any  # the value of a variable of the running notebook
Displayable = (
    Any  # a panel, a picture or a card: it has `still()`, or IPython's `_repr_mimebundle_`
)
GuessOption = str  # one of the options of a `Prediction`
GuessValue = Any  # one of the options, or a number in the unit of the question
Mimebundle = tuple[dict[str, Any], dict[str, Any]]  # {MIME type: content} and metadata, for IPython

STYLES = read_toml("course/kit/styles.toml")  # {style: (label, colour)}
# The guesses and exercises that this kernel has shown so far, for the score.
PREDICTIONS: dict[str, Prediction] = {}  # {question: its last form}
EXERCISES: dict[str, bool] = {}  # {question of an exercise that was shown: whether it was solved}


# ---------------------------------------------------------------------------------- cards and forms
CODE = re.compile(r"`([^`]+)`")  # a name from the code, within a text


class Card:
    """A short message in a notebook; its plain text is what a saved notebook and a test compare."""

    def __init__(self, style: str, text: str, label: str = "") -> None:
        self.style = style
        self.text = text
        self.label = label or STYLES[style][0]

    def __repr__(self) -> str:
        return f"{self.label}: {self.text}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Mimebundle:
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


def make_worked_card(*lines: str) -> Card:
    """Make a card of worked numbers, line by line."""
    return Card("worked", "\n".join(lines))


class FormWidget(widgets.VBox):
    """Widgets below a question.

    The question is an output of its own, so that it can be read in a notebook without a kernel.
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

    def check(self, answer: LearnerAnswer = None) -> Card:
        """Judge `answer`, and make the card of the verdict; without an answer it repeats the question."""
        question = self.problem.question
        verdict = self.problem.check(answer)
        was_solved = EXERCISES.get(question, False)
        EXERCISES[question] = was_solved or verdict.state == "right"
        text = verdict.message
        if verdict.state == "unattempted":
            text += f" {question}"
        return Card(verdict.state, text)

    def hint(self, hint_number: int = 1) -> Card:
        """Make the card of a hint: number 1 is the mildest; for a number beyond the last one, the last one."""
        return Card("hint", self.problem.hint(hint_number).removeprefix("Hint "))

    def solution(self) -> Card:
        """Make the card of the answer and why it is the answer."""
        return Card("solution", self.problem.solution())

    def form(self, record: RunsRecord | None = None) -> FormWidget:
        """Make the question, an answer box and buttons.

        record: a panel whose runs are the answer; then there is no box

        The answer to a build exercise is the notebook's function of the right name, as it is when
        Check is pressed.
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

        def read_answer() -> LearnerAnswer:
            if record is not None:
                return record
            if isinstance(self.problem, BuildProblem):
                return get_notebook_variable_or_none(self.problem.function_name)
            return box.value

        def on_hint(_: Any) -> None:
            nonlocal hints_shown
            hints_shown += 1
            show(self.hint(hints_shown))

        def on_check(_: Any) -> None:
            # Judging may take seconds; until then the verdict on the last answer must not be shown.
            message.value = "Checking …"
            show(self.check(read_answer()))

        check.on_click(on_check)
        hint.on_click(on_hint)
        solution.on_click(lambda _: show(self.solution()))
        row = [check, hint, solution]
        if isinstance(self.problem, NumberProblem):
            row.insert(0, box)
        card = Card("exercise", self.problem.question, self.problem.title)
        return FormWidget(card, [widgets.HBox(row), message])


def get_notebook_variable_or_none(variable_name: str) -> NotebookValue | None:
    """Return the value of a variable of the running notebook; None if there is none."""
    shell = get_ipython()
    return None if shell is None else shell.user_ns.get(variable_name)


# ---------------------------------------------------------------------------------- what is folded
class Snapshot:
    """A panel, a picture or a card as it is now, without controls; below a picture stands its sentence.

    after: a prediction, or several. Until each of them is made or skipped, the snapshot is folded, and
        a panel covers its results unless Run is pressed. Then a snapshot that is on the page already
        opens by itself. In bars of accuracy a dashed line marks a guess in per cent.
    """

    def __init__(self, shown: Displayable, after: Any = ()) -> None:
        self.shown = shown.still() if hasattr(shown, "still") else shown
        self.after = after if isinstance(after, Sequence) else [after]
        is_panel = hasattr(shown, "controls")
        if is_panel and not self.is_settled:
            self._cover_results_until_settled(shown)

    def _cover_results_until_settled(self, panel: Panel) -> None:
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
        """Whether each prediction of `after` is made or skipped."""
        return all(prediction.is_settled for prediction in self.after)

    def __repr__(self) -> str:
        return repr(self.shown)

    def _repr_mimebundle_(self, **kwargs: Any) -> Mimebundle:
        for prediction in self.after:
            if prediction.unit == "%" and prediction.guess is not None:
                draw_guess_line_on_accuracy_bars(
                    getattr(self.shown, "figure", None), prediction.guess / 100
                )
        data, metadata = self.shown._repr_mimebundle_()
        text = repr(self)
        content = data.get("text/html", html.escape(text))
        is_image_alone = isinstance(self.shown, Picture) and not self.shown.tabled
        if is_image_alone and "image/png" in data:
            content += make_caption_html(text)
        if not self.is_settled:
            content = f"<details><summary>Guess first, then open this.</summary>{content}</details>"
            text = f"Guess first, then read: {text}"
        # The PNG stays, for slides; what shows HTML shows the fold instead.
        return {**data, "text/html": content, "text/plain": text}, metadata

    def _ipython_display_(self, **options: Any) -> None:
        """Display the snapshot.

        options: arguments of `display` that update a snapshot which is on the page already
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


def make_caption_html(text: str) -> str:
    """Make the HTML of the sentence below a picture."""
    return f'<p style="white-space:pre-line">{html.escape(text)}</p>'


# ---------------------------------------------------------------------------- guesses and the score
@dataclass(eq=False, repr=False)
class Prediction:
    """A form that asks for a guess: one of `options`, or a number from `low` to `high` in `unit`.

    `guess` is None until `commit`; `skip` is for readers who do not want to guess. The notebook's
    code calls `reveal` with the answer. A reader may run cell by cell, guess, and then see the answer.
    Or all cells are run first: then the answer, and each `Snapshot` whose `after` is this prediction,
    is folded until the guess is made or skipped. Each commit or skip calls all `callbacks`.
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

    def commit(self, guess: GuessValue) -> str:
        """Keep `guess`; returns a sentence, which compares it with the answer if that is known.

        UsageError if it is none of the options, or outside the range.
        """
        if self.options:
            self.guess = check_allowed_name("guess", guess, self.options)
        else:
            self.guess = check_number("The guess", guess, self.low, self.high)
        return self._run_callbacks_and_describe(
            f"Noted: {self._format_guess_with_unit(self.guess)}. Read on and see."
        )

    def skip(self) -> str:
        """Open what is folded without a guess; returns a sentence, with the answer if that is known."""
        self.is_skipped = True
        return self._run_callbacks_and_describe("Skipped. Read on and see.")

    def _run_callbacks_and_describe(self, message_before_reveal: str) -> str:
        """Call all callbacks; return the comparison with the answer, or the message without an answer."""
        for callback in self.callbacks:
            callback()
        self._store_guess_if_answered()
        return (
            self.describe_answer_compared_with_guess()
            if self._is_revealed
            else message_before_reveal
        )

    def reveal(self, value: GuessValue, why: str = "") -> Snapshot:
        """Make the card that compares the guess with the measured `value`; folded until the prediction is
        settled.

        why: a closing sentence, or its name in `reveals.toml`; there it does not give the answer away
            to a reader of the notebook's code
        """
        self._answer = value
        self._reason = read_toml("course/kit/reveals.toml").get(why, why)
        self._is_revealed = True
        self._store_guess_if_answered()
        card = Card("reveal", self.describe_answer_compared_with_guess())

        def update_card() -> None:
            card.text = self.describe_answer_compared_with_guess()

        self.callbacks.append(update_card)
        return Snapshot(card, after=self)

    def _store_guess_if_answered(self) -> None:
        """Store a guess whose answer is known, for the closing page of the last lesson."""
        if self._is_revealed and self.guess is not None:
            store_guess(self.make_answered_guess())

    @property
    def gap_in_words(self) -> str:
        """How near the guess is: 'right', 'not it', 'very near', '41 points too high'; '' before
        `reveal`.
        """
        if not self._is_revealed:
            return ""
        if self.options:
            return "right" if self.guess == self._answer else "not it"
        tolerance = max(self.step, 0.02 * (self.high - self.low))
        return describe_guess_error(
            self.guess, self._answer, self.unit, tolerance_in_unit=tolerance
        )

    def make_answered_guess(self) -> GuessAndTruth:
        """Describe the guess and its answer, both scaled to 0–1, for the picture of the score."""
        words = (
            self._format_guess_with_unit(self.guess),
            self._format_guess_with_unit(self._answer),
        )
        guess = self._scale_to_unit_interval(self.guess)
        answer = self._scale_to_unit_interval(self._answer)
        return GuessAndTruth(
            self.question, guess, answer, words, self.gap_in_words, len(self.options)
        )

    def _scale_to_unit_interval(self, value: GuessValue) -> float:
        """Scale a guess or an answer to 0–1, from the left to the right end of the question's scale."""
        if self.options:
            return list(self.options).index(value) / (len(self.options) - 1)
        return (value - self.low) / (self.high - self.low)

    def describe_answer_compared_with_guess(self) -> str:
        """Say what the answer is, and compare it with the guess if there is one."""
        answer = self._format_guess_with_unit(self._answer)
        if self.guess is None:
            text = f"The answer is {answer}."
        elif not self.options:
            text = f"You guessed {self._format_guess_with_unit(self.guess)}, measured {answer}: {self.gap_in_words}."
        elif self.gap_in_words == "right":
            text = f"You guessed “{self.guess}”: so it is."
        else:
            text = f"You guessed “{self.guess}”: it is “{answer}”."
        return f"{text} {self._reason}".strip()

    def _format_guess_with_unit(self, value: GuessValue) -> str:
        """Format a number with its unit; an option stays as it is."""
        return value if isinstance(value, str) else f"{value:.3g} {self.unit}".strip()

    def _ipython_display_(self) -> None:
        self.form()._ipython_display_()

    def form(self) -> FormWidget:
        """Make the question with a choice or a slider, two buttons, and a line for what was noted."""
        entry = self._make_guess_widget()
        button = widgets.Button(description="That is my guess")
        skip = widgets.Button(description="Skip")
        note = widgets.HTML(layout=widgets.Layout(min_height="2em"))

        def on_commit(_: Any) -> None:
            if entry.value is None:
                note.value = "Choose an answer first."
            else:
                self.commit(entry.value)
                # The answer stands further below, after the picture that explains it.
                note.value = html.escape(
                    f"Noted: {self._format_guess_with_unit(self.guess)}. Read on and see."
                )

        def on_skip(_: Any) -> None:
            self.skip()
            note.value = "Skipped. Read on and see."

        button.on_click(on_commit)
        skip.on_click(on_skip)
        if self.options:
            allowed = " / ".join(self.options)
        else:
            allowed = f"{self.low:g} to {self._format_guess_with_unit(self.high)}"
        card = Card("predict", f"{self.question} ({allowed})")
        return FormWidget(card, [entry, widgets.HBox([button, skip]), note])

    def _make_guess_widget(self) -> widgets.Widget:
        """Make the widget in which the guess is made."""
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


class Score(FormWidget):
    """A button that shows the score: of all guesses and exercises that this kernel has shown so far.

    The score has a picture of the guesses, which can be saved. It is not saved with the notebook.

    tell: the lesson in one sentence for a friend, folded until each guess is made or skipped
    """

    def __init__(self, tell: str = "") -> None:
        button = widgets.Button(description="Show my score")
        self.note = widgets.HTML()
        button.on_click(lambda _: self._show_score())
        intro = (
            "How near were your guesses, and which exercises are right? Only you see it. Guesses stay "
            "on this machine, for the closing page of lesson 6."
        )
        super().__init__(Card("score", intro), [button, self.note])
        self.tell = None
        if tell:
            self.tell = Snapshot(Card("tell", tell), after=list(PREDICTIONS.values()))

    def _show_score(self) -> None:
        self.note.value = self.build_page_html()

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        if self.tell is not None:
            self.tell._ipython_display_()

    def __repr__(self) -> str:
        predictions = list(PREDICTIONS.values())
        guessed = [prediction for prediction in predictions if prediction.guess is not None]
        text = f"{len(guessed)} of {format_count_and_noun(len(predictions), 'guess')} made"
        gaps = [prediction.gap_in_words for prediction in guessed if prediction.gap_in_words]
        if gaps:
            text += f" ({'; '.join(gaps)})"
        solved = sum(EXERCISES.values())
        return f"{text}. {solved} of {format_count_and_noun(len(EXERCISES), 'exercise')} right."

    def picture(self) -> Picture:
        """Draw the guesses against what was measured; `score().picture().save("guesses.png")` keeps
        it.
        """
        answered = []
        for prediction in PREDICTIONS.values():
            if prediction.guess is not None and prediction.gap_in_words:
                answered.append(prediction.make_answered_guess())
        return draw_guesses(answered)

    def build_page_html(self) -> str:
        """Build the HTML of the score with its picture, and a link that saves the picture."""
        picture = self.picture()
        image = make_image_html(picture)
        png = base64.b64encode(render_picture_png(picture)).decode()
        address = f"data:image/png;base64,{png}"
        link = f'<a download="guesses.png" href="{address}">Save the picture</a>'
        return f"{Card('score', repr(self))._repr_html_()}{image}<p>{link}</p>"
