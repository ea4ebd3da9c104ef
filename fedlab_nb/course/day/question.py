"""The first result of the course: a button below a guess, which shows what ten networks answer together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ...studies import Outcome
from ..kit.view import Card, FormWidget, Prediction

INTRO = "Ten networks are trained and waiting. Make your guess, then ask them."
CLOSED = "Nobody has been asked yet."
FIRST = "Guess first, above: an answer is more fun when you can be wrong."
PLACE = widgets.Layout(min_height="4.5em")  # room for a card of two lines


class Question(FormWidget):
    """The button, and a gate for what follows: `Snapshot(…, after=question)` opens when it was pressed.

    guess:   the prediction of how many images are called “8”
    outcome: of the ten networks together
    """

    # A `Snapshot` draws the number of a guess into its picture; a question has no number.
    unit = ""
    guess = None

    def __init__(self, guess: Prediction, outcome: Outcome) -> None:
        self.prediction = guess
        self.outcome = outcome
        self.is_settled = False
        self.callbacks: list[Callable[[], Any]] = []
        self.button = widgets.Button(description="Ask all ten", button_style="primary")
        self.button.on_click(lambda _: self.reveal_count_or_ask_for_guess())
        # The answer appears above the button, so it is never below the screen. Its place is reserved beforehand.
        self.note = widgets.HTML(CLOSED, layout=PLACE)
        super().__init__(Card("unattempted", INTRO), [self.note, self.button])

    @property
    def count_of_images_called_eight(self) -> int:
        """How many images the ten together call “8”."""
        return int((self.outcome.test_predictions == 8).sum())

    def reveal_count_or_ask_for_guess(self) -> str:
        """Show how near the guess was, and open what is folded; before the guess, ask for it.

        Returns the text that is shown.
        """
        if not self.prediction.is_settled:
            card = Card("hint", FIRST)
        else:
            self.prediction.reveal(self.count_of_images_called_eight)
            card = Card("reveal", self.prediction.describe_answer_compared_with_guess())
            self.is_settled = True
            self.button.disabled = True
            for callback in self.callbacks:
                callback()
        self.note.value = card._repr_html_()
        return repr(card)


def make_ask_all_button(guess: Prediction, outcome: Outcome) -> Question:
    """Make the button under a guess that asks the ten networks of `outcome` together."""
    return Question(guess, outcome)
