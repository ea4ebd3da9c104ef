"""Guesses with their answers, stored on this machine, for the closing page of the last lesson.

They are in one JSON file of the store. Of several guesses at a question the last one counts. A damaged file counts as
empty.
"""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from pathlib import Path

from ...declared import read_toml
from ...files import find_store_folder
from ...plots.guesses import GuessAndTruth


def get_guess_book_path() -> Path:
    """Return the path of the file in which guesses are stored; it need not exist."""
    return find_store_folder() / "course" / "guesses.json"


def load_guesses() -> list[GuessAndTruth]:
    """Load all guesses that have an answer, in the order in which they were first made.

    If the wording of a question has changed, it has its new wording here. If there is a guess at the old and one at the
    new wording, the later one counts.
    """
    guesses: dict[str, GuessAndTruth] = {}
    new_words = read_toml("course/kit/reworded.toml")
    try:
        rows = json.loads(get_guess_book_path().read_text(encoding="utf-8"))
        for row in rows:
            guess = GuessAndTruth(**{**row, "written": tuple(row["written"])})
            question = new_words.get(guess.question, guess.question)
            guesses[question] = dataclasses.replace(guess, question=question)
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return list(guesses.values())


def store_guess(guess: GuessAndTruth) -> None:
    """Store a guess in place of an earlier one at the same question. A file that cannot be written stays as it is."""
    by_question = {stored.question: stored for stored in load_guesses()}
    by_question[guess.question] = guess
    rows = [dataclasses.asdict(answered) for answered in by_question.values()]
    with suppress(OSError):
        get_guess_book_path().parent.mkdir(parents=True, exist_ok=True)
        get_guess_book_path().write_text(
            json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8"
        )
