"""The exercises of a lesson from a TOML file beside its code: teachers edit or translate them without any Python.

    # course/fens/lesson.py reads the exercises.toml beside it; the Python has what judges a record and supports it
    q1, q2, q3 = exercises(__name__, q3=(two_skews, solution_runs))
    TRUST = lesson_words(__name__, "trust")

    [q1]                                    # an exercise whose answer is a number
    question = "…"
    answer = 0.5
    tolerance = 0.005
    hints = ["…", "…"]                      # the mildest first
    explanation = "… {answer} …"
    slips = [[0.4, "…"]]                    # wrong answers, each with the mistake behind it
    units = ["bytes", "B"]                  # may be absent: words behind the number; "%": it is in per cent

    [q3]                                    # its answer is the learner's record of runs
    question = "…"
    hints = ["…"]
    explanation = "… {verdict}"             # what the claim says of the solution's own runs
    [q3.claim]                              # the words of `claims.two_kinds`, where it judges the record
    clear = "…"                             # and other, both, right, nothing

    [q4]                                    # its answer is a function that the learner completes: q4=Build(…)
    question = "…"
    hints = ["…"]
    explanation = "…"                       # in front of the right function
    [q4.slips]                              # a text for each of the Build's wrong functions, by its name
    rows = "…"

    [words]                                 # other words of the lesson, such as the choices of a guess
    trust = ["…", "…"]

A line break inside a text counts as a space.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...declared import declared
from ...errors import UsageError, choose
from .problem import Build, BuildProblem, NumberProblem, Problem, RecordProblem, Verdict
from .view import ProblemView

TEXT, TEXTS, NUMBER, TABLE = "a text", "a list of texts", "a number", "a table"
SLIPS = "a list of pairs [number, text]"
OF_RECORD = {"question": TEXT, "hints": TEXTS, "explanation": TEXT}
OF_NUMBER = {**OF_RECORD, "answer": NUMBER, "tolerance": NUMBER, "slips": SLIPS}
OF_CLAIM = dict.fromkeys(("clear", "other", "both", "right", "nothing"), TEXT)
Record = tuple[Callable[..., Verdict], Callable[[], Sequence[Any]]]


def read(module: str) -> tuple[str, dict[str, Any]]:
    """The name of the TOML file beside that module, and its tables; UsageError if it is not valid."""
    file = "/".join([*module.split(".")[1:-1], "exercises.toml"])
    try:
        return file, declared(file)
    except ValueError as error:
        raise UsageError(f"The file {file} is not valid TOML: {error}.") from None


def lesson_words(module: str, name: str) -> Any:
    """Words of that name for the lesson's code; a list as a tuple."""
    return folded(read(module)[1]["words"][name])


def exercises(module: str, **records: Record | Build) -> tuple[ProblemView, ...]:
    """All exercises in the file of that module, in its order; UsageError, with file and place, if one is not right.

    records: of each exercise that a record answers, the claim on it and the runs of its solution (see `RecordProblem`);
    a claim whose words are in the file gets them as keywords; of each that a function answers, its `Build`
    """
    file, tables = read(module)
    checked(tables, dict.fromkeys(tables, TABLE), file)
    asked = {name: table for name, table in tables.items() if name != "words"}
    return tuple(
        ProblemView(problem(name, table, file, records.get(name))) for name, table in asked.items()
    )


def problem(
    name: str, table: Mapping[str, Any], file: str, record: Record | Build | None
) -> Problem:
    """The exercise `name` of `file`, which says `table` of it."""
    place, title = f"[{name}] of {file}", f"Exercise {name[1:]}"
    if record is None:
        fields = checked(
            table, {**OF_NUMBER, "units": TEXTS} if "units" in table else OF_NUMBER, place
        )
        return NumberProblem(title=title, right_answer=fields.pop("answer"), **fields)
    if isinstance(record, Build):
        fields = checked(table, {**OF_RECORD, "slips": TABLE}, place)
        texts = checked(
            fields.pop("slips"), dict.fromkeys(record.slips, TEXT), f"[{name}.slips] of {file}"
        )
        return BuildProblem(
            title=title, right_answer=record.right, build=record, slips=texts, **fields
        )
    claim, runs = record
    fields = checked(table, {**OF_RECORD, "claim": TABLE} if "claim" in table else OF_RECORD, place)
    if "claim" in fields:
        claim = partial(
            claim, **checked(fields.pop("claim"), OF_CLAIM, f"[{name}.claim] of {file}")
        )
    return RecordProblem(title=title, right_answer=runs, claim=claim, **fields)


def checked(table: Mapping[str, Any], kinds: Mapping[str, str], place: str) -> dict[str, Any]:
    """`table` without line breaks, lists as tuples; UsageError unless its fields are those of `kinds`."""
    for field in {**table, **kinds}:
        kind = kinds[choose(f"field in {place}:", field, kinds)]
        if field not in table:
            raise UsageError(f"{place} has no {field}: add it, {kind}.")
        if kind_of(table[field]) != kind:
            raise UsageError(f"{field} in {place} is {table[field]!r}: write {kind}.")
    return {field: folded(value) for field, value in table.items()}


def kind_of(value: Any) -> str | None:
    """TEXT, NUMBER, TABLE, TEXTS or SLIPS, or None for what is none of them."""
    for kind, types in ((TEXT, str), (NUMBER, int | float), (TABLE, dict)):
        if isinstance(value, types) and not isinstance(value, bool):
            return kind
    items = value if isinstance(value, list) else []
    kinds = {
        tuple(map(kind_of, item)) if isinstance(item, list) else kind_of(item) for item in items
    }
    return {TEXT: TEXTS, (NUMBER, TEXT): SLIPS}.get(kinds.pop()) if len(kinds) == 1 else None


def folded(value: Any) -> Any:
    """Texts in one line, lists as tuples."""
    if isinstance(value, str):
        return value.replace("\n", " ")
    return tuple(map(folded, value)) if isinstance(value, list) else value
