"""The exercises of a lesson, from a TOML file beside its code, so that teachers edit or translate them without Python.

    # course/fens/lesson.py reads the exercises.toml beside it. Its Python has the claims on records, and runs that
    # support them.
    q1, q2, q3 = exercises(__name__, q3=(check_trained_weights_beat_class_counts_in_one_setting_only, run_solution))
    TRUST = load_lesson_text_or_list(__name__, "trust")

    [q1]                                    # an exercise whose answer is a number
    question = "…"
    answer = 0.5
    tolerance = 0.005
    hints = ["…", "…"]                      # the mildest first
    explanation = "… {answer} …"
    slips = [[0.4, "…"]]                    # wrong answers, each with the mistake behind it
    units = ["bytes", "B"]                  # may be absent: units that the number may have; "%": it is in per cent

    [q3]                                    # its answer is the learner's record of runs
    question = "…"
    hints = ["…"]
    explanation = "… {verdict}"             # {verdict}: the claim's message on the solution's own runs
    [q3.claim]                              # texts for `claims.judge_one_gap_clear_and_one_not`
    clear = "…"                             # and other, both, right, nothing

    [q4]                                    # its answer is a function that the learner completes: q4=Build(…)
    question = "…"
    hints = ["…"]
    explanation = "…"                       # shown before the right function
    [q4.slips]                              # a text for each of the Build's wrong functions, by its name
    rows = "…"

    [words]                                 # other texts of the lesson, such as the options of a guess
    trust = ["…", "…"]
    [words.findings]                        # findings; their numbers are figures of the lesson's figures.toml
    learning = "… {gain:effect} …"

A line break inside a text counts as a space.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...declared import read_toml
from ...errors import UsageError, check_allowed_name
from .problem import (
    Build,
    BuildProblem,
    NumberProblem,
    Problem,
    RecordProblem,
    RunOutcome,
    Verdict,
)
from .view import ProblemView

# Kinds of fields, in the words of an error.
TEXT = "a text"
TEXTS = "a list of texts"
NUMBER = "a number"
NUMBERS = "a list of numbers"
TABLE = "a table"
SLIPS = "a list of pairs [number, text]"

COMMON_FIELDS = {"question": TEXT, "hints": TEXTS, "explanation": TEXT}
NUMBER_FIELDS = {**COMMON_FIELDS, "answer": NUMBER, "tolerance": NUMBER, "slips": SLIPS}
BUILD_FIELDS = {**COMMON_FIELDS, "slips": TABLE}
CLAIM_FIELDS = dict.fromkeys(("clear", "other", "both", "right", "nothing"), TEXT)
# The claim on a record, and the function that makes the runs of its solution.
ClaimAndSolution = tuple[Callable[..., Verdict], Callable[[], Sequence[RunOutcome]]]
FieldKind = str  # TEXT, TEXTS, …
TomlValue = Any  # a text, a number, a truth value, a list or a table
TomlTable = Mapping[str, TomlValue]


class ExerciseFile(NamedTuple):
    """The TOML file of a lesson's exercises, such as "course/fens/exercises.toml"."""

    name: str
    tables: dict[str, TomlValue]


def load_exercise_file(module_name: str) -> ExerciseFile:
    """Load the exercises.toml beside a lesson's module; UsageError if it is not valid.

    module_name: `__name__` of the module
    """
    folders = module_name.split(".")[1:-1]
    file = "/".join([*folders, "exercises.toml"])
    try:
        return ExerciseFile(file, read_toml(file))
    except ValueError as error:
        raise UsageError(f"The file {file} is not valid TOML: {error}.") from None


def load_lesson_text_or_list(module_name: str, text_name: str) -> TomlValue:
    """Load what the table [words] of a lesson has under a name: a text, a table, or a list as a tuple."""
    _, tables = load_exercise_file(module_name)
    return join_lines_and_make_lists_tuples(tables["words"][text_name])


def exercises(module_name: str, **judges: ClaimAndSolution | Build) -> tuple[ProblemView, ...]:
    """Make all exercises of a lesson, in the order of its file. UsageError, with file and place, if one
    is not valid.

    module_name: `__name__` of the lesson's module
    judges: by exercise name. If the answer is a record: the claim on it, and the function that makes
        the runs of its solution (see `RecordProblem`); a claim gets the texts of the file's table
        [NAME.claim] as keywords. If the answer is a function: its `Build`
    """
    file, tables = load_exercise_file(module_name)
    unwrap_fields_or_raise(tables, dict.fromkeys(tables, TABLE), file)
    views = []
    for name, table in tables.items():
        if name != "words":
            views.append(ProblemView(make_problem_from_table(name, table, file, judges.get(name))))
    return tuple(views)


def make_problem_from_table(
    exercise_name: str,
    table: TomlTable,
    file_name: str,
    judge: ClaimAndSolution | Build | None,
) -> Problem:
    """Make the exercise `exercise_name` from its `table` in `file_name`.

    judge: what judges its answer; None: the answer is a number, which the table has
    """
    if judge is None:
        return make_number_problem(exercise_name, table, file_name)
    if isinstance(judge, Build):
        return make_build_problem(exercise_name, table, file_name, judge)
    return make_record_problem(exercise_name, table, file_name, judge)


def make_title_of_exercise(exercise_name: str) -> str:
    """Make the title of an exercise: "Exercise 1" for "q1"."""
    return f"Exercise {exercise_name[1:]}"


def make_number_problem(exercise_name: str, table: TomlTable, file_name: str) -> NumberProblem:
    """Make an exercise whose answer is a number."""
    kinds = dict(NUMBER_FIELDS)
    if "units" in table:
        kinds["units"] = TEXTS
    if "spreads" in table:
        kinds["spreads"] = NUMBERS
    fields = unwrap_fields_or_raise(table, kinds, f"[{exercise_name}] of {file_name}")
    answer = fields.pop("answer")
    return NumberProblem(title=make_title_of_exercise(exercise_name), right_answer=answer, **fields)


def make_build_problem(
    exercise_name: str, table: TomlTable, file_name: str, build: Build
) -> BuildProblem:
    """Make an exercise whose answer is a function."""
    fields = unwrap_fields_or_raise(table, BUILD_FIELDS, f"[{exercise_name}] of {file_name}")
    slip_kinds = dict.fromkeys(build.slips, TEXT)
    slips = unwrap_fields_or_raise(
        fields.pop("slips"), slip_kinds, f"[{exercise_name}.slips] of {file_name}"
    )
    return BuildProblem(
        title=make_title_of_exercise(exercise_name),
        right_answer=build.right,
        build=build,
        slips=slips,
        **fields,
    )


def make_record_problem(
    exercise_name: str, table: TomlTable, file_name: str, claim_and_solution: ClaimAndSolution
) -> RecordProblem:
    """Make an exercise whose answer is a record of runs."""
    claim, make_runs = claim_and_solution
    kinds = dict(COMMON_FIELDS)
    if "claim" in table:
        kinds["claim"] = TABLE
    fields = unwrap_fields_or_raise(table, kinds, f"[{exercise_name}] of {file_name}")
    if "claim" in fields:
        words = unwrap_fields_or_raise(
            fields.pop("claim"), CLAIM_FIELDS, f"[{exercise_name}.claim] of {file_name}"
        )
        claim = partial(claim, **words)
    return RecordProblem(
        title=make_title_of_exercise(exercise_name), right_answer=make_runs, claim=claim, **fields
    )


def unwrap_fields_or_raise(
    table: TomlTable, expected_kinds: Mapping[str, FieldKind], place_for_errors: str
) -> dict[str, TomlValue]:
    """Return the fields of `table`, unwrapped; UsageError unless they are those of `expected_kinds`.

    expected_kinds:   {field: its kind}
    place_for_errors: where the table stands, as an error says it
    """
    for field in {**table, **expected_kinds}:
        kind = expected_kinds[
            check_allowed_name(f"field in {place_for_errors}:", field, expected_kinds)
        ]
        if field not in table:
            raise UsageError(f"{place_for_errors} has no {field}: add it, {kind}.")
        if find_field_kind_or_none(table[field]) != kind:
            raise UsageError(f"{field} in {place_for_errors} is {table[field]!r}: write {kind}.")
    return {field: join_lines_and_make_lists_tuples(value) for field, value in table.items()}


def find_field_kind_or_none(value: TomlValue) -> FieldKind | None:
    """Return the kind of a value: TEXT, NUMBER, TABLE, TEXTS, NUMBERS or SLIPS; None if it is none of these."""
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
    if all(find_field_kind_or_none(item) == NUMBER for item in value):
        return NUMBERS
    if all(is_number_and_text_pair(item) for item in value):
        return SLIPS
    return None


def is_number_and_text_pair(item: TomlValue) -> bool:
    """Whether an item is a pair [number, text]."""
    if not isinstance(item, list):
        return False
    return [find_field_kind_or_none(part) for part in item] == [NUMBER, TEXT]


def join_lines_and_make_lists_tuples(value: TomlValue) -> TomlValue:
    """Return a text without its line breaks, a list as a tuple, anything else as it is."""
    if isinstance(value, str):
        return value.replace("\n", " ")
    if isinstance(value, list):
        return tuple(join_lines_and_make_lists_tuples(item) for item in value)
    return value
