"""Guesses with their answers, kept on this machine from lesson to lesson, for the last lesson's closing page.

One JSON file in the store; the last guess at a question counts. A damaged file is taken for an empty one.
"""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from pathlib import Path

from ...declared import read_toml
from ...files import store_folder
from ...plots.guesses import Guess


def get_guess_book_path() -> Path:
    """Return the path of the file in which guesses are stored; it need not exist."""
    return store_folder() / "course" / "guesses.json"


def load_guesses() -> list[Guess]:
    """Load all guesses that have an answer, in the order in which they were first made.

    A question that is worded otherwise by now has its new words; of two guesses at it the later one counts.
    """
    guesses: dict[str, Guess] = {}
    new_words = read_toml("course/kit/reworded.toml")
    try:
        rows = json.loads(get_guess_book_path().read_text(encoding="utf-8"))
        for row in rows:
            guess = Guess(**{**row, "written": tuple(row["written"])})
            question = new_words.get(guess.question, guess.question)
            guesses[question] = dataclasses.replace(guess, question=question)
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return list(guesses.values())


def store_guess(guess: Guess) -> None:
    """Put a guess into the book; one at the same question is replaced. Where nothing can be written, nothing is."""
    by_question = {kept.question: kept for kept in load_guesses()}
    by_question[guess.question] = guess
    rows = [dataclasses.asdict(kept) for kept in by_question.values()]
    with suppress(OSError):
        get_guess_book_path().parent.mkdir(parents=True, exist_ok=True)
        get_guess_book_path().write_text(
            json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8"
        )
