"""A lesson's score: how near the guesses were, and which exercises are right. The reader alone sees it."""

import ipywidgets as widgets

from ...plots.words import plural
from . import prediction, view


class Score(view.Form):
    """A button that says the score so far, of everything that this kernel has asked; a notebook does not save it."""

    def __init__(self) -> None:
        button, note = widgets.Button(description="Show my score"), widgets.HTML()
        button.on_click(lambda _: setattr(note, "value", view.Card("score", repr(self))._repr_html_()))
        intro = "How near were your guesses, and which exercises are right? Only you see it, and nothing is saved."
        super().__init__(view.Card("score", intro), [button, note])

    def __repr__(self) -> str:
        asked, right = prediction.ASKED.values(), view.TRIED.values()
        made = [guess for guess in asked if guess.guess is not None]
        near = "; ".join(guess.gap for guess in made if guess.gap)
        guesses = f"{len(made)} of {plural(len(asked), 'guess')} made" + (f" ({near})" if near else "")
        return f"{guesses}. {sum(right)} of {plural(len(right), 'exercise')} right."
