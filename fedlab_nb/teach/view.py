"""How problems and messages look in a notebook: a card with a word and a colour, and a form with buttons."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets as widgets

from .problem import NumberProblem, Problem

# label and edge colour (Okabe–Ito); the label says the same as the colour
STYLES = {
    "right": ("Right", "#009E73"),
    "wrong": ("Not yet", "#D55E00"),
    "unattempted": ("Your turn", "#0072B2"),
    "hint": ("Hint", "#E69F00"),
    "solution": ("Solution", "#CC79A7"),
    "reveal": ("Predicted and measured", "#0072B2"),
    "worked": ("With numbers", "#56B4E9"),
}


class Card:
    """A short message in a notebook; its plain text is what a saved notebook and a test compare."""

    def __init__(self, style: str, text: str) -> None:
        self.style, self.text = style, text

    def __repr__(self) -> str:
        return f"{STYLES[self.style][0]}: {self.text}"

    def _repr_html_(self) -> str:
        label, colour = STYLES[self.style]
        body = html.escape(self.text).replace("\n", "<br>")
        return (
            f'<div class="fl-card fl-card-{self.style}" role="status" style="border-left:4px solid {colour};'
            f'padding:.4em .8em;margin:.3em 0;line-height:1.5"><b>{label}.</b> {body}</div>'
        )


class ProblemView:
    """A problem in a notebook: `check(answer)`, `hint(n)`, `solution()` return cards, `form()` has buttons for them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __repr__(self) -> str:
        return f"{self.problem.title}: {self.problem.question}"

    def check(self, answer: Any = None) -> Card:
        """Judge `answer`; without one, a reminder of the question."""
        verdict = self.problem.check(answer)
        reminder = f" {self.problem.question}" if verdict.state == "unattempted" else ""
        return Card(verdict.state, verdict.message + reminder)

    def hint(self, number: int = 1) -> Card:
        """Hint `number` (1 is the mildest)."""
        return Card("hint", self.problem.hint(number).removeprefix("Hint "))

    def solution(self) -> Card:
        """The answer and why it is the answer."""
        return Card("solution", self.problem.solution())

    def form(self, record: Any = None) -> widgets.VBox:
        """The question, an answer box and buttons; with `record` (a panel) its runs are the answer, without a box."""
        question = widgets.HTML(f"<b>{html.escape(self.problem.title)}.</b> {html.escape(self.problem.question)}")
        box = widgets.Text(placeholder="a number", description="Answer", layout=widgets.Layout(width="16em"))
        check, hint, solution = (widgets.Button(description=name) for name in ("Check", "Hint", "Solution"))
        message = widgets.HTML(layout=widgets.Layout(min_height="6em"))
        hints_seen = 0

        def show(card: Card) -> None:
            message.value = card._repr_html_()

        def on_hint(_: Any) -> None:
            nonlocal hints_seen
            hints_seen += 1
            show(self.hint(hints_seen))

        check.on_click(lambda _: show(self.check(_number(box.value) if record is None else record)))
        hint.on_click(on_hint)
        solution.on_click(lambda _: show(self.solution()))
        answer = [box] if isinstance(self.problem, NumberProblem) else []
        return Handout([question, widgets.HBox([*answer, check, hint, solution]), message], repr(self))


class Handout(widgets.VBox):
    """A box of widgets that saves `text` beside itself: a notebook opened without a kernel can still be read."""

    def __init__(self, children: list[widgets.Widget], text: str) -> None:
        super().__init__(children)
        self._text = text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        return {**bundle, "text/plain": self._text, "text/html": f"<p>{html.escape(self._text)}</p>"}


def _number(text: str) -> float | str | None:
    """What was typed, as a number where it is one (a decimal comma too), None for an empty box."""
    if not text.strip():
        return None
    try:
        return float(text.strip().removesuffix("%").replace(",", "."))
    except ValueError:
        return text
