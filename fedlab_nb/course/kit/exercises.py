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
    [words.findings]                        # what was found; the numbers are figures of the lesson's figures.toml
    learning = "… {gain:effect} …"

A line break inside a text counts as a space.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...declared import read_toml
from ...errors import UsageError, choose
from .problem import Build, BuildProblem, NumberProblem, Problem, RecordProblem, Verdict
from .view import ProblemView

# Kinds of fields, in the words of an error.
TEXT = "a text"
TEXTS = "a list of texts"
NUMBER = "a number"
TABLE = "a table"
SLIPS = "a list of pairs [number, text]"

COMMON_FIELDS = {"question": TEXT, "hints": TEXTS, "explanation": TEXT}
NUMBER_FIELDS = {**COMMON_FIELDS, "answer": NUMBER, "tolerance": NUMBER, "slips": SLIPS}
BUILD_FIELDS = {**COMMON_FIELDS, "slips": TABLE}
CLAIM_FIELDS = dict.fromkeys(("clear", "other", "both", "right", "nothing"), TEXT)
# The claim on a record, and the function that makes the runs of its solution.
Record = tuple[Callable[..., Verdict], Callable[[], Sequence[Any]]]


def read_tables(module: str) -> tuple[str, dict[str, Any]]:
    """The name of the TOML file beside that module, and its tables; UsageError if it is not
    valid.
    """
    folders = module.split(".")[1:-1]
    file = "/".join([*folders, "exercises.toml"])
    try:
        return file, read_toml(file)
    except ValueError as error:
        raise UsageError(f"The file {file} is not valid TOML: {error}.") from None


def lesson_words(module: str, name: str) -> Any:
    """Words of that name for the lesson's code; a list as a tuple."""
    _, tables = read_tables(module)
    return unwrap_value(tables["words"][name])


def exercises(module: str, **records: Record | Build) -> tuple[ProblemView, ...]:
    """All exercises in the file of that module, in its order; UsageError, with file and place, if
    one is not right.

    records: for each exercise that a record answers, the claim on it and the runs of its solution
    (see `RecordProblem`); a claim whose words are in the file gets them as keywords. For each
    exercise that a function answers, its `Build`
    """
    file, tables = read_tables(module)
    check_fields(tables, dict.fromkeys(tables, TABLE), file)
    views = []
    for name, table in tables.items():
        if name != "words":
            views.append(ProblemView(make_problem(name, table, file, records.get(name))))
    return tuple(views)


def make_problem(
    name: str, table: Mapping[str, Any], file: str, record: Record | Build | None
) -> Problem:
    """The exercise `name`, from its `table` in `file`."""
    if record is None:
        return make_number_problem(name, table, file)
    if isinstance(record, Build):
        return make_build_problem(name, table, file, record)
    return make_record_problem(name, table, file, record)


def make_title(name: str) -> str:
    """The title of the exercise "q1"."""
    return f"Exercise {name[1:]}"


def make_number_problem(name: str, table: Mapping[str, Any], file: str) -> NumberProblem:
    """An exercise whose answer is a number."""
    kinds = dict(NUMBER_FIELDS)
    if "units" in table:
        kinds["units"] = TEXTS
    fields = check_fields(table, kinds, f"[{name}] of {file}")
    answer = fields.pop("answer")
    return NumberProblem(title=make_title(name), right_answer=answer, **fields)


def make_build_problem(
    name: str, table: Mapping[str, Any], file: str, build: Build
) -> BuildProblem:
    """An exercise whose answer is a function."""
    fields = check_fields(table, BUILD_FIELDS, f"[{name}] of {file}")
    slip_kinds = dict.fromkeys(build.slips, TEXT)
    slips = check_fields(fields.pop("slips"), slip_kinds, f"[{name}.slips] of {file}")
    return BuildProblem(
        title=make_title(name), right_answer=build.right, build=build, slips=slips, **fields
    )


def make_record_problem(
    name: str, table: Mapping[str, Any], file: str, record: Record
) -> RecordProblem:
    """An exercise whose answer is a record of runs."""
    claim, make_runs = record
    kinds = dict(COMMON_FIELDS)
    if "claim" in table:
        kinds["claim"] = TABLE
    fields = check_fields(table, kinds, f"[{name}] of {file}")
    if "claim" in fields:
        words = check_fields(fields.pop("claim"), CLAIM_FIELDS, f"[{name}.claim] of {file}")
        claim = partial(claim, **words)
    return RecordProblem(title=make_title(name), right_answer=make_runs, claim=claim, **fields)


def check_fields(table: Mapping[str, Any], kinds: Mapping[str, str], place: str) -> dict[str, Any]:
    """The fields of `table`, unwrapped; UsageError unless they are those of `kinds`.

    kinds: {field: its kind};   place: of the table, for the error
    """
    for field in {**table, **kinds}:
        kind = kinds[choose(f"field in {place}:", field, kinds)]
        if field not in table:
            raise UsageError(f"{place} has no {field}: add it, {kind}.")
        if find_kind(table[field]) != kind:
            raise UsageError(f"{field} in {place} is {table[field]!r}: write {kind}.")
    return {field: unwrap_value(value) for field, value in table.items()}


def find_kind(value: Any) -> str | None:
    """TEXT, NUMBER, TABLE, TEXTS or SLIPS, or None for what is none of them."""
    if isinstance(value, str):
        return TEXT
    if isinstance(value, dict):
        return TABLE
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NUMBER
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(item, str) for item in value):
        return TEXTS
    if all(is_wrong_answer_hint(item) for item in value):
        return SLIPS
    return None


def is_wrong_answer_hint(item: Any) -> bool:
    """Whether an item is a pair [number, text]."""
    if not isinstance(item, list):
        return False
    return [find_kind(part) for part in item] == [NUMBER, TEXT]


def unwrap_value(value: Any) -> Any:
    """Texts without line breaks, lists as tuples."""
    if isinstance(value, str):
        return value.replace("\n", " ")
    if isinstance(value, list):
        return tuple(unwrap_value(item) for item in value)
    return value
