"""The learner's page to keep: all guesses of the course against what was measured, the plane of
accuracy and bytes, a sentence for a friend, and what the learner still doubts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import ipywidgets as widgets

from ...errors import FedlabError, RunError
from ...files import check_replaceable, expand_path, write_file
from ...plots.guesses import GuessAndTruth, draw_guesses
from ...plots.style import make_image_html
from ..kit import Card, FormWidget
from ..kit.guess_book import load_guesses

if TYPE_CHECKING:
    from .desk import Case

INTRO = (
    "Two sentences, and the course is a page: your guesses of all lessons against what was "
    "measured, your plane of accuracy and bytes, what you would tell a friend, and what you still "
    "doubt. It stays on this machine."
)
SENTENCE = "The sentence I would tell a friend"
DOUBT = "What I still doubt"
UNANSWERED = "(not written yet)"
STYLE = (
    ":root{color-scheme:light}"  # to be printed; its pictures, too
    "body{font:16px/1.6 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
    "body{color:#1f2328;background:#fff}"
    "img{max-width:100%}blockquote{font-size:1.25em;border-left:4px solid #0072B2;margin-left:0;padding-left:1em}"
)


class Closing(FormWidget):
    """Two fields, a button, and the page. file: where the page was written last, None before"""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.file: Path | None = None
        wide = widgets.Layout(width="44em")
        self.friend = widgets.Textarea(placeholder=SENTENCE, layout=wide)
        self.doubt = widgets.Textarea(placeholder=DOUBT, layout=wide)
        self.friend.description = "Friend"
        self.doubt.description = "Doubt"
        self.folder = widgets.Text(value="reports", description="Folder")
        self.button = widgets.Button(description="Make my page", button_style="primary")
        self.button.on_click(lambda _: self._write_and_show_page())
        self.note = widgets.HTML()
        self.page = widgets.HTML()
        row = widgets.HBox([self.folder, self.button])
        parts = [self.friend, self.doubt, row, self.note, self.page]
        super().__init__(Card("exercise", INTRO, "Your page"), parts)

    def _write_and_show_page(self) -> None:
        """Write the page and show it. If it cannot be written, say why."""
        try:
            self.file = self.save(self.folder.value or ".")
            card = Card(
                "right", f"Written to {self.file}: open it in any browser, or print it.", "Kept"
            )
            self.page.value = self.build_body_html()
        except FedlabError as error:
            card = Card("wrong", str(error))
        self.note.value = card._repr_html_()

    def build_body_html(self) -> str:
        """Build the page as HTML, without head and body tags. What a person typed is escaped."""
        guesses = load_guesses()
        parts = [f"<h1>{html.escape(self._make_page_title())}</h1>"]
        parts.append(f"<h2>{SENTENCE}</h2>{quote_as_html(self.friend.value)}")
        parts.append(
            f"<h2>My guesses against the truth</h2><p>{describe_guess_count_and_closeness(guesses)}</p>"
        )
        if guesses:
            parts.append(make_image_html(draw_guesses(guesses)))
        parts.append("<h2>My budget plane</h2>")
        if self.case.record.tries:
            plane = self.case.tries()
            parts.append(f"{make_image_html(plane)}<p>{html.escape(plane.sentence)}</p>")
        else:
            parts.append(f"<p>No try yet with the code word {html.escape(self.case.code)}.</p>")
        parts.append(f"<p>{html.escape(describe_submissions_of_case(self.case))}</p>")
        parts.append(f"<h2>{DOUBT}</h2>{quote_as_html(self.doubt.value)}")
        return "\n".join(parts)

    def build_page_html(self) -> str:
        """Build the page as a file for any browser. It loads nothing from elsewhere."""
        title = html.escape(self._make_page_title())
        head = f'<head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
        return f'<!doctype html>\n<html lang="en">{head}\n<body>\n{self.build_body_html()}\n</body></html>\n'

    def save(self, folder: str | Path = ".", *, force: bool = False) -> Path:
        """Write the page, and return its path.

        force: replace a file of this name even if this package did not write it
        Raises RunError if the folder cannot be written to, UsageError if such a file is there.
        """
        parts = ["page", self.case.code, self.case.name]
        stem = "_".join(re.sub(r"[^\w-]+", "-", part) for part in parts if part)
        file = expand_path(folder) / f"{stem}.html"
        check_replaceable([file], force=force)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, self.build_page_html(), force=force)
        except OSError as error:
            reason = f"{error.strerror or error}; choose another folder"
            raise RunError(f"The page cannot be written to {folder}: {reason}.") from None
        return file

    def _make_page_title(self) -> str:
        owner = f" of {self.case.name}" if self.case.name else ""
        return f"One-shot federated learning: the page{owner}"


def quote_as_html(typed_text: str) -> str:
    """Make an HTML quotation of what a person typed, or of "(not written yet)"."""
    return f"<blockquote>{html.escape(typed_text.strip() or UNANSWERED)}</blockquote>"


def describe_guess_count_and_closeness(guesses: Sequence[GuessAndTruth]) -> str:
    """Say how many guesses there are, and how many were right or very near."""
    if not guesses:
        return "No guess with an answer has been kept on this machine."
    close_guesses = sum(guess.gap in ("right", "very near") for guess in guesses)
    count = "1 guess" if len(guesses) == 1 else f"{len(guesses)} guesses"
    return (
        f"{count}, {close_guesses} of them right or very near. The others are why the lessons were "
        "worth it."
    )


def describe_submissions_of_case(case: Case) -> str:
    """Say which try was submitted first, and how many submissions there are."""
    submissions = case.record.submissions
    if not submissions:
        return "Nothing has been submitted yet."
    first_submission = submissions[0]
    submitted_try = case.record.tries[first_submission["choice"] - 1]
    return (
        f"Handed in: {submitted_try.method_title}, with {100 * first_submission['accuracy']:.1f} % "
        f"of the test images right. Submissions: {len(submissions)}."
    )
