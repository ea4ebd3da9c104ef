"""The capstone as a form with buttons: try a method with settings, submit a choice with an
argument, save the report. Below it in this file are the lesson's computed numbers and its two
exercises.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import ipywidgets as widgets

from ...errors import FedlabError, UsageError, format_error_on_one_line, parse_assignments
from ...methods import METHODS, choose_method_label
from ...plots.style import make_image_html
from ...plots.words import describe_guess_error, format_data_size, format_percent_band
from ...rng import make_numpy_generator
from ...studies.lesson_runs import title
from ..kit import Card, FormWidget, GuessOption, exercises, make_worked_card
from ..kit.claims import make_mean_and_bars_functions
from ..kit.view import make_caption_html

if TYPE_CHECKING:
    from ...studies import Outcomes
    from .desk import Case
    from .report import Report, Try

INTRO = (
    "Try methods as often as you like: each try is a point in the plane, is judged on "
    "validation images, and is in your report. Then choose a try, say why, and submit. You "
    "are asked once more before the test images are opened."
)
NO_POINT = "Press Try: each try is a point in the plane of accuracy and bytes."
FOLDED = (
    "Tries so far: {tries}, behind the guess above. Press Try, and all of them and yours are "
    "points in the plane of accuracy and bytes."
)
OPEN = "Open the test images"
WIDE = widgets.Layout(width="44em")


class CaseForm(FormWidget):
    """The widgets of a `Case`.

    report: of the last submission, None before the first one
    notes:  {field: the text below it}, which says what a button did, or why it refused
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.report: Report | None = None
        self._was_try_pressed = False
        methods = [
            (choose_method_label(name, {}), name) for name in METHODS if name != "centralized"
        ]
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
            "Try": self._make_button("Try", "settings", self._run_entered_trial),
            "Submit": self._make_button("Submit", "choice", self._ask_before_opening_test_images),
            OPEN: self._make_button(OPEN, "argument", self._submit_and_show_report),
            "Not yet": self._make_button("Not yet", "argument", self._hide_question),
            "Save the report": self._make_button("Save the report", "folder", self._save_report),
        }
        self.buttons[OPEN].button_style = "warning"
        answers = widgets.HBox([self.buttons[OPEN], self.buttons["Not yet"]])
        self.confirm = widgets.VBox([self.question, self.expected, answers])
        self.confirm.layout.display = "none"
        self.method.observe(lambda _: self._refresh_lists_and_plane(), "value")
        for field in (self.choice, self.argument):
            field.observe(lambda _: self._hide_question(), "value")
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
        self._refresh_lists_and_plane()

    def _make_button(
        self, label: str, note_field: str, action: Callable[[], Card | None]
    ) -> widgets.Button:
        """Make a button. The card that its action returns is shown at `note_field`, a key of
        `notes`.
        """
        button = widgets.Button(description=label, layout={"width": "auto"})
        button.on_click(lambda _: self._run_action_and_show_note(note_field, action))
        return button

    def _run_action_and_show_note(self, note_field: str, action: Callable[[], Card | None]) -> None:
        """Run the action of a button, and show its card or its error at the field. Meanwhile all
        buttons are disabled.
        """
        for button in self.buttons.values():
            button.disabled = True
        for note in self.notes.values():
            note.value = ""
        note = self.notes[note_field]
        note.value = Card("unattempted", "One moment …", "Running")._repr_html_()
        try:
            card = action()
        except FieldError as error:
            note.value = ""
            note = self.notes[error.field]
            card = Card("wrong", str(error))
        except FedlabError as error:
            card = Card("wrong", str(error))
        except Exception as error:  # nobody would see it, as this is a callback
            card = Card("wrong", f"Unexpected {format_error_on_one_line(error)}")
        try:
            self._refresh_lists_and_plane()  # before the buttons work: a new plane moves what is below it
        finally:
            for button in self.buttons.values():
                button.disabled = False
            note.value = "" if card is None else card._repr_html_()

    def _run_entered_trial(self) -> Card:
        parts = self.knobs.value.replace(";", ",").split(",")
        settings = [part.strip() for part in parts if part.strip()]
        knobs = parse_assignments(
            settings, "write NAME=VALUE, such as rounds=20, with commas between them"
        )
        card = self.case.trial(self.method.value, **knobs)
        self._was_try_pressed = True
        return card

    def _ask_before_opening_test_images(self) -> None:
        """Show how much of the result may be luck, and ask whether to open the test images."""
        chosen_try = self._get_chosen_try_or_raise()
        self.question.value = Card(
            "hint",
            make_text_on_luck_and_opening_tests(self.case, chosen_try),
            "Before you open them",
        )._repr_html_()
        self.expected.value = round(100 * chosen_try.validation_band.mean)
        self.confirm.layout.display = ""

    def _get_chosen_try_or_raise(self) -> Try:
        """Return the chosen try. FieldError if the choice or the argument is wrong."""
        try:
            chosen_try = self.case.get_try_to_submit_or_raise(self.choice.value)
        except UsageError as error:
            raise FieldError("choice", str(error)) from None
        try:
            self.case.check_argument_and_join_its_lines(self.argument.value)
        except UsageError as error:
            raise FieldError("argument", str(error)) from None
        return chosen_try

    def _hide_question(self) -> None:
        """Hide the question. The test images stay closed."""
        self.confirm.layout.display = "none"

    def _submit_and_show_report(self) -> None:
        chosen_try = self._get_chosen_try_or_raise()
        self.report = self.case.submit(self.choice.value, self.argument.value, self.name.value)
        self._hide_question()
        comparison_text = describe_expected_and_test_accuracy(
            self.report, chosen_try, self.expected.value
        )
        picture = self.case.tries(self.report)
        card = Card("right", comparison_text, "The test images are open")
        self.reveal.value = card._repr_html_() + make_image_html(picture)
        self.page.value = self.report.build_body_html()

    def _save_report(self) -> Card:
        if self.report is None:
            raise UsageError(
                "There is no report yet; choose a try, say why, and press Submit first."
            )
        file = self.report.save(self.folder.value or ".")
        return Card("right", f"Written to {file}, with .html and .jsonl.", "Saved")

    def _refresh_lists_and_plane(self) -> None:
        """Refresh the plane, the list of tries, the menu of choices, and the help on the method's
        knobs.
        """
        tries = self.case.record.tries
        chosen_number = self.choice.value
        options = [
            (f"{result.number}: {result.method_title} ({result.knobs_in_words})", result.number)
            for result in tries
        ]
        if list(self.choice.options) != options:
            self.choice.options = options
            self.choice.value = chosen_number
        lines = []
        for result in tries:
            line = (
                f"{result.method_title} ({result.knobs_in_words}): validation accuracy "
                f"{format_percent_band(result.validation_band)} %, {format_data_size(result.bytes)}"
            )
            if result.bytes > self.case.budget_in_bytes:
                line += ", over the budget"
            lines.append(line)
        # The list stays folded, as the lesson's own tries would give away the answer to its guess.
        title = f"Tries so far: {len(lines)}"
        self.tries.value = make_foldable_list_html(title, lines, is_open=False)
        self._refresh_plane()
        knob_lines = self.case.list_knob_description_lines(self.method.value)
        self.help.value = make_foldable_list_html("What can be set", knob_lines)

    def _refresh_plane(self) -> None:
        """Draw every try as a point. Nothing is drawn before the reader's own first try, since the
        lesson's tries would give away the answer to its guess.
        """
        if not self._was_try_pressed:
            tries = len(self.case.record.tries)
            text = FOLDED.format(tries=tries) if tries else NO_POINT
            self.plane.value = Card("unattempted", text)._repr_html_()
            return
        picture = self.case.tries()
        self.plane.value = make_image_html(picture) + make_caption_html(picture.sentence)


class FieldError(UsageError):
    """A refusal that belongs to one field of the form."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def make_text_on_luck_and_opening_tests(case: Case, chosen_try: Try) -> str:
    """Say how much of a try's result may be luck, and that opening the test images is final."""
    tries = len(case.record.tries)
    images = case.validation_images
    share = chosen_try.validation_band.mean
    gain, spread = estimate_luck_of_best_try(tries, images, share)
    text = (
        f"Try {chosen_try.number} got {100 * share:.0f} % of {images} validation images right. "
        f"One such result is off by about {spread:.1f} points by luck alone."
    )
    if tries > 1:
        text += (
            f" You made {tries} tries. If all were equally good, the best would still look "
            f"{gain:.1f} points better than it is."
        )
    earlier_submissions = len(case.record.submissions)
    if earlier_submissions:
        text += " You have submitted before: this one will not be a fair measure."
    return (
        f"{text}\nWhat do you expect on the test images? They can be opened once. Open them "
        f"for try {chosen_try.number}?"
    )


def describe_expected_and_test_accuracy(
    report: Report, chosen_try: Try, expected_accuracy_percent: float
) -> str:
    """Compare the expected accuracy with those on validation and on test images."""
    test = report.test_band
    text = (
        f"You expected {expected_accuracy_percent:.0f} %. The validation images said "
        f"{format_percent_band(chosen_try.validation_band)} %. The test images say "
        f"{format_percent_band(test)} %: "
        f"{describe_guess_error(expected_accuracy_percent, 100 * test.mean)}."
    )
    return f"{text} {report.submission_order_in_words} Now press “Save the report”."


def make_foldable_list_html(
    title_html: str, item_texts: Sequence[str], is_open: bool = False
) -> str:
    """Make the HTML of a list that unfolds under its title."""
    items_html = "".join(f"<li>{html.escape(item)}</li>" for item in item_texts)
    attribute = " open" if is_open else ""
    return f"<details{attribute}><summary>{title_html}</summary><ol>{items_html}</ol></details>"


# ------------------------------------------------------------------------ worked numbers, exercises
FIRST = ("ensemble", "fens", "distilled")  # the lesson's own tries
TITLES = [title(name) for name in FIRST]  # the titles of these tries


# Four ways for hospitals to learn together: the choices of a guess.
WAYS = {
    "local": "one hospital alone",
    "fedavg": "FedAvg",
    "afl": "sums (AFL)",
    "centralized": "one network that has all patients",
}
_, hospitals = make_mean_and_bars_functions(__name__, "hospitals")


def get_most_accurate_hospital_way(outcomes: Outcomes) -> GuessOption:
    """Return the one of WAYS that gets most right, on average over the seeds."""
    return WAYS[max(WAYS, key=outcomes.mean)]


def get_best_first_try_title(case: Case) -> GuessOption:
    """Return the title of the best of the lesson's own tries on validation images."""
    own_tries = []
    for result in case.record.tries:
        if result.method in FIRST and not result.knobs:
            own_tries.append(result)
    return max(own_tries, key=lambda result: result.validation_band.mean).method_title


class LuckInPoints(NamedTuple):
    """How much luck there is in accuracies, in percentage points."""

    gain_of_best: float  # by how much the best of equal tries looks too good, on average
    spread_of_one: float  # standard deviation of one try


def estimate_luck_of_best_try(
    try_count: int, image_count: int, accuracy_0_to_1: float
) -> LuckInPoints:
    """Estimate how much luck is in the best of so many equal tries, from 2,000 draws of binomial
    luck.

    accuracy_0_to_1: of each try, 0–1
    """
    right_answers = make_numpy_generator(0, "luck").binomial(
        image_count, accuracy_0_to_1, (2000, try_count)
    )
    best_share = right_answers.max(1).mean() / image_count
    gain = round(100 * (best_share - accuracy_0_to_1), 1) + 0.0  # no "-0.0"
    spread = 100 * math.sqrt(accuracy_0_to_1 * (1 - accuracy_0_to_1) / image_count)
    return LuckInPoints(gain, spread)


def show_selection_luck(tries: int = 10, images: int = 250, share: float = 0.85) -> Card:
    """Show how good the best of many equal tries looks: the mean over 2,000 draws of binomial luck."""
    gain, spread = estimate_luck_of_best_try(tries, images, share)
    return make_worked_card(
        f"{tries} methods, each of which gets {100 * share:.0f} % of all images right, "
        f"are tried on {images} images.",
        (
            f"The best of them looks {gain:.1f} points better than it is. One of them alone "
            f"is off by about {spread:.1f} points."
        ),
    )


q1, q2 = exercises(__name__)
