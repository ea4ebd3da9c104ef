"""A picture of guesses beside the measured values, a row for each guess."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from .kit import describe_picture, make_blank_picture
from .style import ACCENT, FAINT, INK, QUIET, SECOND, Picture, add_legend, drawing, write_axes_title
from .words import build_table, join_with_and

LINE_LENGTH = 95  # characters in each of a question's two lines


@dataclass(frozen=True)
class GuessAndTruth:
    """One guess and the measured value.

    guess, truth: positions on the question's scale, from 0 at its left end to 1 at its right end
    written:      the guess and the measured value as text
    gap:          the distance between the two as text
    steps:        number of choices that the question offers, 0 if any number is allowed
    """

    question: str
    guess: float
    truth: float
    written: tuple[str, str]
    gap: str
    steps: int = 0


def draw_guesses(guesses: Sequence[GuessAndTruth]) -> Picture:
    """Draw each guess as a circle and the measured value as a diamond, on the question's scale.

    A value beyond the scale is drawn at the nearer end; the text gives the true number.
    """
    if not guesses:
        return make_blank_picture(
            "No guess yet that has an answer. Guess first, then come back.", setting=""
        )
    with drawing(size=(7.2, 0.8 + 0.95 * len(guesses))) as (figure, ax):
        write_axes_title(ax, "What I guessed, and what was measured")
        for row, guess in enumerate(guesses):
            draw_guess_row(ax, guess, row)
        ax.set(xlim=(-0.03, 1.03), ylim=(len(guesses) - 0.3, -0.8))
        ax.set_axis_off()
        add_legend(ax, handles=ax.lines[3:5], loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    gaps = [guess.gap for guess in guesses]
    rows = [(guess.question, *guess.written, guess.gap) for guess in guesses]
    return describe_picture(
        figure,
        "Guesses against what was measured",
        "",
        f"By guess: {join_with_and(gaps)}.",
        build_table("question | guess | measured | gap", rows),
    )


def draw_guess_row(ax: Axes, guess: GuessAndTruth, row_index: int) -> None:
    """Draw one guess: its scale, the choices on it, both marks and both lines of text."""
    ends = np.clip([guess.guess, guess.truth], 0, 1)
    choices = np.linspace(0, 1, guess.steps)
    ax.plot([0, 1], [row_index, row_index], color=FAINT, lw=5, solid_capstyle="round", zorder=0)
    ax.plot(choices, [row_index] * guess.steps, "|", color=QUIET, ms=8, zorder=1)
    ax.plot(ends, [row_index, row_index], color=INK, lw=1.2, zorder=2)
    circle = {"ms": 11, "mfc": "white", "mec": SECOND, "mew": 2, "zorder": 3}
    ax.plot(ends[:1], [row_index], "o", **circle, label="guess")
    ax.plot(ends[1:], [row_index], "D", ms=6, color=ACCENT, zorder=4, label="measured")
    question = textwrap.fill(guess.question, LINE_LENGTH, max_lines=2, placeholder=" …")
    ax.text(0, row_index - 0.2, question, fontsize=9, color=INK, va="bottom")
    guess_text, truth_text = guess.written
    result = f"guessed {guess_text}, measured {truth_text}: {guess.gap}"
    ax.text(0, row_index + 0.15, result, fontsize=9, color=QUIET, va="top")
