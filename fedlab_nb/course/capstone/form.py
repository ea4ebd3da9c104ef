"""The capstone with buttons: method and settings, Try; choice and argument, Submit; Save. Every
refusal is one line.

Below it the lesson's worked numbers and its two exercises.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import ipywidgets as widgets

from ...errors import FedlabError, UsageError, format_error, parse_assignments
from ...methods import METHODS
from ...plots import png
from ...plots.words import data_size, describe_gap, format_share
from ...rng import numpy_rng
from ...studies.lesson_runs import title
from ..kit import Card, Form, exercises, worked
from ..kit.claims import figures_of
from ..kit.view import make_image_html

if TYPE_CHECKING:
    from ...studies import Outcomes
    from .desk import Case
    from .report import Report, Try

INTRO = (
    "Try methods as often as you like: each try is a point in the plane, is judged on validation images, and is "
    "in your report. Then choose a try, say why, and submit. You are asked once more before the test images are opened."
)
NO_POINT = "Press Try: each try is a point in the plane of accuracy and bytes."
FOLDED = (
    "Tries so far: {tries}, behind the guess above. Press Try, and all of them and yours are points in the plane of "
    "accuracy and bytes."
)
OPEN = "Open the test images"
WIDE = widgets.Layout(width="44em")


class CaseForm(Form):
    """The widgets of a `Case`. `report`: of the last submission, None before it.

    Each refusal stands at its field: `notes` has one below the settings, the choice, the argument and the folder.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.report: Report | None = None
        self._was_try_pressed = False
        methods = [(cls.info.title, name) for name, cls in METHODS.items() if name != "centralized"]
        self.method = widgets.Dropdown(options=methods, value="ensemble", description="Method")
        self.knobs = widgets.Text(
            placeholder="as usual, or for example epochs=20, lr=0.1", description="Settings"
        )
        self.knobs.layout = WIDE
        self.help = widgets.HTML()
        self.plane = widgets.HTML()
        self.tries = widgets.HTML()
        self.choice = widgets.Dropdown(description="Choice", layout=WIDE)
        self.name = widgets.Text(value=case.name, description="Your name")
        self.argument = widgets.Textarea(
            placeholder="Why this one?", description="Argument", rows=5, layout=WIDE
        )
        self.expected = widgets.IntSlider(
            value=50, min=0, max=100, description="I expect %", layout=WIDE
        )
        self.question = widgets.HTML()
        self.folder = widgets.Text(value="reports", description="Folder")
        self.page = widgets.HTML()
        self.notes = {
            field: widgets.HTML() for field in ("settings", "choice", "argument", "folder")
        }
        self.reveal = widgets.HTML()
        self.buttons = {
            "Try": self._make_button("Try", "settings", self._try),
            "Submit": self._make_button("Submit", "choice", self._ask),
            OPEN: self._make_button(OPEN, "argument", self._submit),
            "Not yet": self._make_button("Not yet", "argument", self._stay),
            "Save the report": self._make_button("Save the report", "folder", self._save),
        }
        self.buttons[OPEN].button_style = "warning"
        answers = widgets.HBox([self.buttons[OPEN], self.buttons["Not yet"]])
        self.confirm = widgets.VBox([self.question, self.expected, answers])
        self.confirm.layout.display = "none"
        self.method.observe(lambda _: self._refresh(), "value")
        for field in (self.choice, self.argument):
            field.observe(lambda _: self._close_question(), "value")
        parts = [
            self.method,
            self.knobs,
            self.help,
            self.buttons["Try"],
            self.notes["settings"],
            self.plane,
            self.tries,
            self.choice,
            self.notes["choice"],
            self.name,
            self.argument,
            self.notes["argument"],
            self.buttons["Submit"],
            self.confirm,
            self.reveal,
            self.page,
            widgets.HBox([self.folder, self.buttons["Save the report"]]),
            self.notes["folder"],
        ]
        super().__init__(Card("exercise", INTRO, f"Capstone {case.code}"), parts)
        self._refresh()

    def _make_button(
        self, text: str, field: str, action: Callable[[], Card | None]
    ) -> widgets.Button:
        button = widgets.Button(description=text, layout={"width": "auto"})
        button.on_click(lambda _: self._do(field, action))
        return button

    def _do(self, field: str, action: Callable[[], Card | None]) -> None:
        """Carry out what a button does; what it says, or refuses, stands at the field. No button works meanwhile."""
        for button in self.buttons.values():
            button.disabled = True
        for note in self.notes.values():
            note.value = ""
        note = self.notes[field]
        note.value = Card("unattempted", "One moment …", "Running")._repr_html_()
        try:
            card = action()
        except FieldError as error:
            note.value = ""
            note = self.notes[error.field]
            card = Card("wrong", str(error))
        except FedlabError as error:
            card = Card("wrong", str(error))
        except Exception as error:  # in a callback nobody would see it
            card = Card("wrong", f"Unexpected {format_error(error)}")
        note.value = "" if card is None else card._repr_html_()
        for button in self.buttons.values():
            button.disabled = False
        self._refresh()

    def _try(self) -> Card:
        parts = self.knobs.value.replace(";", ",").split(",")
        settings = [part.strip() for part in parts if part.strip()]
        knobs = parse_assignments(
            settings, "write NAME=VALUE, such as rounds=20, with commas between them"
        )
        card = self.case.trial(self.method.value, **knobs)
        self._was_try_pressed = True
        return card

    def _ask(self) -> None:
        """Before the test images are opened: how much luck may be in the choice, and is it final?"""
        chosen = self._check()
        self.question.value = Card(
            "hint", describe_submission(self.case, chosen), "Before you open them"
        )._repr_html_()
        self.expected.value = round(100 * chosen.band.mean)
        self.confirm.layout.display = ""

    def _check(self) -> Try:
        """The chosen try; FieldError at the field that is wrong."""
        try:
            chosen = self.case.check_choice(self.choice.value)
        except UsageError as error:
            raise FieldError("choice", str(error)) from None
        try:
            self.case.check_argument(self.argument.value)
        except UsageError as error:
            raise FieldError("argument", str(error)) from None
        return chosen

    def _stay(self) -> None:
        """Nothing is opened."""
        self._close_question()

    def _close_question(self) -> None:
        self.confirm.layout.display = "none"

    def _submit(self) -> None:
        chosen = self._check()
        self.report = self.case.submit(self.choice.value, self.argument.value, self.name.value)
        self._close_question()
        said = describe_reveal(self.report, chosen, self.expected.value)
        picture = self.case.tries(self.report)
        card = Card("right", said, "The test images are open")
        self.reveal.value = card._repr_html_() + make_image_html(
            png(picture), picture.image_metadata, ""
        )
        self.page.value = self.report.body()

    def _save(self) -> Card:
        if self.report is None:
            raise UsageError(
                "There is no report yet; choose a try, say why, and press Submit first."
            )
        file = self.report.save(self.folder.value or ".")
        return Card("right", f"Written to {file}, with .html and .jsonl.", "Saved")

    def _refresh(self) -> None:
        """The plane, the list of tries, what can be chosen, and what can be set for the method."""
        tries = self.case.record.tries
        chosen = self.choice.value
        options = [
            (f"{result.number}: {result.title} ({result.settings})", result.number)
            for result in tries
        ]
        if list(self.choice.options) != options:
            self.choice.options = options
            self.choice.value = chosen
        lines = []
        for result in tries:
            line = (
                f"{result.title} ({result.settings}): validation accuracy {format_share(result.band)} %, "
                f"{data_size(result.bytes)}"
            )
            if result.bytes > self.case.budget:
                line += ", over the budget"
            lines.append(line)
        # The lesson's own tries stay folded: they are behind its guess.
        title = f"Tries so far: {len(lines)}"
        self.tries.value = list_html(title, lines, is_open=False)
        self._draw_plane()
        knob_lines = self.case.describe_knobs(self.method.value)
        self.help.value = list_html("What can be set", knob_lines)

    def _draw_plane(self) -> None:
        """Every try a point; before the reader's own first try the plane would give away the lesson's."""
        if not self._was_try_pressed:
            tries = len(self.case.record.tries)
            text = FOLDED.format(tries=tries) if tries else NO_POINT
            self.plane.value = Card("unattempted", text)._repr_html_()
            return
        picture = self.case.tries()
        self.plane.value = make_image_html(png(picture), picture.image_metadata, picture.sentence)


class FieldError(UsageError):
    """A refusal that belongs to one field of the form."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def describe_submission(case: Case, chosen: Try) -> str:
    """What may be luck in a choice, and that it is final."""
    tries = len(case.record.tries)
    images = case.validation_images
    share = chosen.band.mean
    gain, spread = compute_luck(tries, images, share)
    text = (
        f"Try {chosen.number} got {100 * share:.0f} % of {images} validation images right. One such "
        f"result is off by about {spread:.1f} points by luck alone."
    )
    if tries > 1:
        text += (
            f" You made {tries} tries. If all were equally good, the best would still look "
            f"{gain:.1f} points better than it is."
        )
    earlier = len(case.record.submissions)
    if earlier:
        text += " You have submitted before: this one will not be a fair measure."
    return f"{text}\nWhat do you expect on the test images? They can be opened once. Open them for try {chosen.number}?"


def describe_reveal(report: Report, chosen: Try, expected: float) -> str:
    """What was expected, what the validation images said, and what the test images say."""
    test = report.band
    text = (
        f"You expected {expected:.0f} %. The validation images said {format_share(chosen.band)} %. The test "
        f"images say {format_share(test)} %: {describe_gap(expected, 100 * test.mean)}."
    )
    return f"{text} {report.standing} Now press “Save the report”."


def list_html(title: str, lines: Sequence[str], is_open: bool = False) -> str:
    """Lines that unfold under a title, as HTML."""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    attribute = " open" if is_open else ""
    return f"<details{attribute}><summary>{title}</summary><ol>{items}</ol></details>"


# ------------------------------------------------------------------------ worked numbers, exercises
FIRST = ("ensemble", "fens", "distilled")  # the lesson's own tries
TITLES = [title(name) for name in FIRST]  # as the tries are called


# The ways of the four hospitals: the choices of a guess.
WAYS = {
    "local": "one hospital alone",
    "fedavg": "FedAvg",
    "afl": "sums (AFL)",
    "centralized": "one network that has all patients",
}
_, hospitals = figures_of(__name__, "hospitals")


def best_way(outcomes: Outcomes) -> str:
    """Which of WAYS gets most right, on average over the seeds."""
    return WAYS[max(WAYS, key=outcomes.mean)]


def best(case: Case) -> str:
    """Title of that one of the lesson's own tries that is best on validation images."""
    own_tries = []
    for result in case.record.tries:
        if result.method in FIRST and not result.knobs:
            own_tries.append(result)
    return max(own_tries, key=lambda result: result.band.mean).title


def compute_luck(tries: int, images: int, share: float) -> tuple[float, float]:
    """In points: by how much the best of so many equal tries looks too good, the mean over 2,000 draws of binomial
    luck; and the standard deviation of one.
    """
    right = numpy_rng(0, "luck").binomial(images, share, (2000, tries))
    best_share = right.max(1).mean() / images
    gain = round(100 * (best_share - share), 1) + 0.0  # no "-0.0"
    spread = 100 * math.sqrt(share * (1 - share) / images)
    return gain, spread


def luck(tries: int = 10, images: int = 250, share: float = 0.85) -> Card:
    """How good the best of many equal tries looks: the mean over 2,000 draws of binomial luck."""
    gain, spread = compute_luck(tries, images, share)
    return worked(
        f"{tries} methods, each of which gets {100 * share:.0f} % of all images right, are tried on "
        f"{images} images.",
        f"The best of them looks {gain:.1f} points better than it is. "
        f"One of them alone is off by about {spread:.1f} points.",
    )


q1, q2 = exercises(__name__)
