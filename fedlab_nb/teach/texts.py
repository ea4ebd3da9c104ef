"""The texts of a lesson, in a TOML file beside its code: a teacher edits or translates them without any Python.

    texts = Texts(__name__)                                # labs/fens/exercises.py reads labs/fens/exercises.toml
    q1, q2, q3 = texts.exercises(q3=(two_skews, solution_runs))
    texts.card("two_units", x=3)                           # worked numbers: the text of that name, with its values

    [q1]                                                   # an exercise whose answer is a number
    question = "…"
    answer = 0.5
    tolerance = 0.005
    hints = ["…", "…"]                                     # the mildest first
    explanation = "… {answer} …"
    slips = [[0.4, "…"]]                                   # wrong answers, each with the mistake behind it

    [q3]                                                   # its answer is the learner's record of runs
    question = "…"
    hints = ["…"]
    explanation = "… {verdict}"                            # what the claim says of the solution's own runs
    [q3.claim]                                             # the words of `claims.two_kinds`, where it judges the record
    clear = "…"                                            # and other, both, right, nothing

    [cards]                                                # {name} is a value, to be shown as in Python's str.format
    two_units = ["x = {x:g}", "…"]                         # the lines of one card
    here = "digits, α = {alpha:g}"                         # or a part of a card

A line break inside a text counts as a space.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..declared import declared
from ..errors import UsageError, choose
from .problem import NumberProblem, RecordProblem, Verdict
from .view import Card, ProblemView, worked

TEXT, TEXTS, NUMBER, SLIPS, TABLE = "a text", "a list of texts", "a number", "a list of pairs [number, text]", "a table"
OF_RECORD = {"question": TEXT, "hints": TEXTS, "explanation": TEXT}
OF_NUMBER = {**OF_RECORD, "answer": NUMBER, "tolerance": NUMBER, "slips": SLIPS}
OF_CLAIM = dict.fromkeys(("clear", "other", "both", "right", "nothing"), TEXT)


class Texts:
    """The texts of the module of that name; UsageError, with file and place, for a file that is not right."""

    def __init__(self, module: str) -> None:
        self.file = "/".join(module.split(".")[1:]) + ".toml"
        try:
            tables = declared(self.file)
        except ValueError as error:
            raise UsageError(f"The file {self.file} is not valid TOML: {error}.") from None
        self.tables = self._checked("the top", tables, dict.fromkeys(tables, TABLE))
        cards = self.tables.pop("cards", {})
        lines = {name: [text] if isinstance(text, str) else text for name, text in cards.items()}
        self.cards = self._checked("[cards]", lines, dict.fromkeys(lines, TEXTS))

    def exercises(
        self, **records: tuple[Callable[..., Verdict], Callable[[], Sequence[Any]]]
    ) -> tuple[ProblemView, ...]:
        """All exercises, in the file's order; records: claim and solution's runs of those that a record answers."""
        return tuple(ProblemView(self._problem(name, *records.get(name, ()))) for name in self.tables)

    def line(self, name: str, **values: Any) -> str:
        """The text `name` of the table [cards], with `values` in it; UsageError if it asks for others."""
        try:
            return "\n".join(line.format(**values) for line in self.cards[name])
        except (AttributeError, LookupError, ValueError) as error:
            what = f"{name!r} in [cards] of {self.file}"
            raise UsageError(f"{what} cannot be filled in ({error!r}); it may use {', '.join(values)}.") from None

    def card(self, name: str, **values: Any) -> Card:
        """A card of worked numbers with that text."""
        return worked(self.line(name, **values))

    def _problem(self, name: str, *record: Callable[..., Any]) -> NumberProblem | RecordProblem:
        table, title = self.tables[name], f"Exercise {name[1:]}"
        if not record:
            fields = self._checked(f"[{name}]", table, OF_NUMBER)
            return NumberProblem(title=title, right_answer=fields.pop("answer"), **fields)
        claim, runs = record
        kinds = {"claim": TABLE, **OF_RECORD} if "claim" in table else OF_RECORD
        fields = self._checked(f"[{name}]", table, kinds)
        if "claim" in fields:
            claim = partial(claim, **self._checked(f"[{name}.claim]", fields.pop("claim"), OF_CLAIM))
        return RecordProblem(title=title, right_answer=runs, claim=claim, **fields)

    def _checked(self, place: str, table: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
        """`table` with line breaks taken out and lists as tuples; UsageError unless its fields are of these kinds."""
        for field in {**table, **kinds}:
            kind = kinds[choose(f"field in {place} of {self.file}:", field, kinds)]
            if field not in table:
                raise UsageError(f"{place} of {self.file} has no {field}: add it, {kind}.")
            if kind_of(table[field]) != kind:
                raise UsageError(f"{field} in {place} of {self.file} is {table[field]!r}: write {kind}.")
        return {field: folded(value) for field, value in table.items()}


def kind_of(value: Any) -> str | None:
    """TEXT, NUMBER, TABLE, TEXTS or SLIPS, or None for what is none of them."""
    for kind, types in ((TEXT, str), (NUMBER, int | float), (TABLE, dict)):
        if isinstance(value, types) and not isinstance(value, bool):
            return kind
    items = [kind_of(item) for item in value] if isinstance(value, list) else []
    if items and set(items) == {TEXT}:
        return TEXTS
    pairs = items and all(isinstance(item, list) and [*map(kind_of, item)] == [NUMBER, TEXT] for item in value)
    return SLIPS if pairs else None


def folded(value: Any) -> Any:
    """Texts in one line, lists as tuples."""
    if isinstance(value, str):
        return value.replace("\n", " ")
    return tuple(map(folded, value)) if isinstance(value, list) else value
