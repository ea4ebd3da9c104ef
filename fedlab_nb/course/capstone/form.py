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

from ...errors import FedlabError, UsageError, assigned, reason
from ...methods import METHODS
from ...plots.words import data_size, number
from ...rng import numpy_rng
from ...studies.lesson_runs import title
from ..kit import Card, Form, exercises, worked
from ..kit.claims import figures_of

if TYPE_CHECKING:
    from ...studies import Outcomes
    from .desk import Case
    from .report import Report

INTRO = (
    "Try methods as often as you like: each try is judged on validation images and is in your report. "
    "Then choose a try, say why, and submit. Submitting opens the test images."
)
WIDE = widgets.Layout(width="44em")


class CaseForm(Form):
    """The widgets of a `Case`. `report`: of the last submission, None before it."""

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
        self.tries = widgets.HTML()
        self.choice = widgets.Dropdown(description="Choice")
        self.name = widgets.Text(value=case.name, description="Your name")
        self.argument = widgets.Textarea(
            placeholder="Why this one?", description="Argument", rows=5, layout=WIDE
        )
        self.folder = widgets.Text(value="reports", description="Folder")
        self.message = widgets.HTML(layout=widgets.Layout(min_height="3em"))
        self.page = widgets.HTML()
        self.buttons = {
            "Try": self._make_button("Try", self._try),
            "Submit": self._make_button("Submit", self._submit),
            "Save the report": self._make_button("Save the report", self._save),
        }
        self.method.observe(lambda _: self._refresh(), "value")
        parts = [
            self.method,
            self.knobs,
            self.help,
            self.buttons["Try"],
            self.tries,
            self.choice,
            self.name,
            self.argument,
            self.buttons["Submit"],
            widgets.HBox([self.folder, self.buttons["Save the report"]]),
            self.message,
            self.page,
        ]
        super().__init__(Card("exercise", INTRO, f"Capstone {case.code}"), parts)
        self._refresh()

    def _make_button(self, text: str, action: Callable[[], Card]) -> widgets.Button:
        button = widgets.Button(description=text)
        button.on_click(lambda _: self._do(action))
        return button

    def _do(self, action: Callable[[], Card]) -> None:
        """Carry out what a button does; a refusal becomes a line, and no button works meanwhile."""
        for button in self.buttons.values():
            button.disabled = True
        self.message.value = Card("unattempted", "One moment …", "Running")._repr_html_()
        try:
            card = action()
        except FedlabError as error:
            card = Card("wrong", str(error))
        except Exception as error:  # in a callback nobody would see it
            card = Card("wrong", f"Unexpected {reason(error)}")
        self.message.value = card._repr_html_()
        for button in self.buttons.values():
            button.disabled = False
        self._refresh()

    def _try(self) -> Card:
        parts = self.knobs.value.replace(";", ",").split(",")
        settings = [part.strip() for part in parts if part.strip()]
        knobs = assigned(settings, "write NAME=VALUE, such as rounds=20, with commas between them")
        card = self.case.trial(self.method.value, **knobs)
        self._was_try_pressed = True
        return card

    def _submit(self) -> Card:
        self.report = self.case.submit(self.choice.value, self.argument.value, self.name.value)
        self.page.value = self.report.body()
        return Card("right", f"{self.report.standing} Now press “Save the report”.", "Submitted")

    def _save(self) -> Card:
        if self.report is None:
            raise UsageError(
                "There is no report yet; choose a try, say why, and press Submit first."
            )
        file = self.report.save(self.folder.value or ".")
        return Card("right", f"Written to {file}, with .html and .jsonl.", "Saved")

    def _refresh(self) -> None:
        """The list of tries, what can be chosen, and what can be set for the method."""
        tries = self.case.record.tries
        chosen = self.choice.value
        self.choice.options = [
            (f"{result.number}: {result.title} ({result.settings})", result.number)
            for result in tries
        ]
        self.choice.value = chosen
        lines = []
        for result in tries:
            line = (
                f"{result.title} ({result.settings}): validation accuracy {number(result.band)} %, "
                f"{data_size(result.bytes)}"
            )
            if result.bytes > self.case.budget:
                line += ", over the budget"
            lines.append(line)
        # The lesson's own tries stay folded: they are behind its guess.
        title = f"Tries so far: {len(lines)}"
        self.tries.value = list_html(title, lines, is_open=self._was_try_pressed)
        knob_lines = self.case.describe_knobs(self.method.value)
        self.help.value = list_html("What can be set", knob_lines)


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
    """Which of WAYS is right most often, on average over the seeds."""
    return WAYS[max(WAYS, key=outcomes.mean)]


def best(case: Case) -> str:
    """Title of that one of the lesson's own tries that is best on validation images."""
    own_tries = []
    for result in case.record.tries:
        if result.method in FIRST and not result.knobs:
            own_tries.append(result)
    return max(own_tries, key=lambda result: result.band.mean).title


def luck(tries: int = 10, images: int = 250, share: float = 0.85) -> Card:
    """How good the best of many equal tries looks: the mean over 2,000 draws of binomial luck."""
    right = numpy_rng(0, "luck").binomial(images, share, (2000, tries))
    best_share = right.max(1).mean() / images
    gain = round(100 * (best_share - share), 1) + 0.0  # no "-0.0"
    spread = 100 * math.sqrt(share * (1 - share) / images)
    return worked(
        f"{tries} methods, each of them right for {100 * share:.0f} % of all images, are tried on "
        f"{images} images.",
        f"The best of them looks {gain:.1f} points better than it is. "
        f"One of them alone is off by about {spread:.1f} points.",
    )


q1, q2 = exercises(__name__)
