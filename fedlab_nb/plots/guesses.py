"""The guesses of a lesson against what was measured: a row a guess, small enough to be kept or sent."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .kit import describe_picture, make_blank_picture
from .style import ACCENT, FAINT, INK, QUIET, SECOND, Picture, drawing, heading, legend
from .words import build_table, join_words

LETTERS = 95  # of a question in each of its two lines


@dataclass(frozen=True)
class Guess:
    """A guess and what was measured: places on the scale of the question, 0 its left end and 1 its right end, and how
    they are written. steps: the choices of the question, 0 where any number is allowed
    """

    question: str
    guess: float
    truth: float
    written: tuple[str, str]
    gap: str
    steps: int = 0


def draw_guesses(guesses: Sequence[Guess]) -> Picture:
    """Each guess as a circle and what was measured as a diamond, on the scale of its question. What is off the scale
    stands at its end, and the words say the true number.
    """
    if not guesses:
        return make_blank_picture(
            "No guess yet that has an answer. Guess first, then come back.", setting=""
        )
    with drawing(size=(7.2, 0.8 + 0.95 * len(guesses))) as (figure, ax):
        heading(ax, "What I guessed, and what was measured")
        for row, of in enumerate(guesses):
            ends = np.clip([of.guess, of.truth], 0, 1)
            ax.plot([0, 1], [row, row], color=FAINT, lw=5, solid_capstyle="round", zorder=0)
            ax.plot(np.linspace(0, 1, of.steps), [row] * of.steps, "|", color=QUIET, ms=8, zorder=1)
            ax.plot(ends, [row, row], color=INK, lw=1.2, zorder=2)
            ax.plot(
                ends[:1], [row], "o", ms=11, mfc="white", mec=SECOND, mew=2, zorder=3, label="guess"
            )
            ax.plot(ends[1:], [row], "D", ms=6, color=ACCENT, zorder=4, label="measured")
            question = textwrap.fill(of.question, LETTERS, max_lines=2, placeholder=" …")
            ax.text(0, row - 0.2, question, fontsize=9, color=INK, va="bottom")
            said = f"guessed {of.written[0]}, measured {of.written[1]}: {of.gap}"
            ax.text(0, row + 0.15, said, fontsize=9, color=QUIET, va="top")
        ax.set(xlim=(-0.03, 1.03), ylim=(len(guesses) - 0.3, -0.8))
        ax.set_axis_off()
        legend(ax, handles=ax.lines[3:5], loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    table = build_table(
        "question | guess | measured | gap", [(of.question, *of.written, of.gap) for of in guesses]
    )
    return describe_picture(
        figure,
        "Guesses against what was measured",
        "",
        f"By guess: {join_words([of.gap for of in guesses])}.",
        table,
    )
