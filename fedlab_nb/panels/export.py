"""The export of a panel: a folder with runs.csv, runs.json, reproduce.py and each picture as PNG and SVG; and the
Python lines.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data import find_dataset_in_memory
from ..errors import RunError
from ..files import expand_path, write_file
from ..plots import Picture
from ..studies import results
from ..studies.outcome import ROUNDED
from ..value_types import JsonObject, JsonValue, SettingsByName
from .record import MethodRun, RunRecord

COLUMNS = ("run", *results.COLUMNS[:-1], "parameters", *ROUNDED)


def export_runs_to_free_folder(
    wanted_folder: str | Path,
    runs: RunRecord,
    pictures_by_name: Mapping[str, Picture],
    python_code_if_no_results: str,
) -> Path:
    """Write everything to `wanted_folder`, or to `folder-2`, … if it has something in it already.

    Returns the folder. RunError if it cannot be written.

    python_code_if_no_results: for reproduce.py; with results it has the code that computes them again
    """
    from pandas import DataFrame

    try:
        place = find_missing_or_empty_folder(expand_path(wanted_folder))
        place.mkdir(parents=True, exist_ok=True)
        rows = []
        for row in runs.rows:
            for outcome in row.outcomes.values():
                rows.append({"run": row.run, **outcome.to_json()})
        details = json.dumps(
            list_results_with_details_for_json(runs), indent=1, default=convert_to_json_value
        )
        python_file = make_reproduction_script(runs) if runs.outcomes else python_code_if_no_results
        write_file(place / "runs.csv", DataFrame(rows, columns=COLUMNS).to_csv(index=False))
        write_file(place / "runs.json", details)
        write_file(place / "reproduce.py", python_file + "\n")
        for name, picture in pictures_by_name.items():
            if picture.figure is not None:
                picture.save(place / f"{name}.png")
                picture.save(place / f"{name}.svg")
    except OSError as error:
        raise RunError(
            f"The export could not be written to {wanted_folder}: {error.strerror or error}; "
            "choose another folder."
        ) from None
    return place


def find_missing_or_empty_folder(wanted_folder: Path) -> Path:
    """Find the first of `folder`, `folder-2`, `folder-3`, … that is missing or empty; it is not made."""
    free_folder = wanted_folder
    number = 1
    while free_folder.is_file() or (free_folder.is_dir() and any(free_folder.iterdir())):
        number += 1
        free_folder = wanted_folder.with_name(f"{wanted_folder.name}-{number}")
    return free_folder


def list_results_with_details_for_json(runs: RunRecord) -> list[JsonObject]:
    """List all results with what the CSV has no room for: curves, accuracies by class and client, the
    ledger."""
    details = []
    for row in runs.rows:
        for outcome in row.outcomes.values():
            details.append(
                {
                    "run": row.run,
                    "pinned": row.pinned,
                    **outcome.to_json(),
                    "setting": outcome.about(),
                    "ledger": outcome.ledger.to_json(),
                    "history": outcome.history,
                    "per_class": outcome.per_class,
                    "per_client": outcome.per_client,
                }
            )
    return details


def convert_to_json_value(value: object) -> JsonValue:
    """Convert numpy numbers and arrays to plain ones, and anything else to text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def make_code_of_next_run_and_pinned_runs(
    methods: Sequence[str], settings: SettingsByName, runs: RunRecord
) -> str:
    """Make the Python lines that do what Run would do now, and what the pinned runs were."""
    lines = ["import fedlab_nb as fl", *list_comments_on_datasets_in_memory([settings])]
    lines.append(f"outs = {make_compare_call_code(methods, settings)}")
    pinned_rows = [row for row in runs.rows if row.pinned]
    for run in dict.fromkeys(row.run for row in pinned_rows):
        rows = [row for row in pinned_rows if row.run == run]
        call = make_compare_call_code([row.method for row in rows], rows[0].settings)
        lines.append(f"run_{run} = {call}")
    lines.append("outs.table()")
    return "\n".join(lines)


SCRIPT = Path(__file__).with_name("reproduce.txt").read_text(encoding="utf-8")


def make_reproduction_script(runs: RunRecord) -> str:
    """Make a Python file that computes every result of runs.csv again and prints it beside the exported
    one."""
    rows_of: dict[tuple[int, int], list[MethodRun]] = {}  # by run and seed
    for row in runs.rows:
        for seed in row.outcomes:
            rows_of.setdefault((row.run, seed), []).append(row)
    lines = list_comments_on_datasets_in_memory([row.settings for row in runs.rows])
    for (run, seed), rows in rows_of.items():
        settings = {**rows[0].settings, "seed": seed, "seeds": 1}
        call = make_compare_call_code([row.method for row in rows], settings, cache="CACHE")
        lines.append(f"results += [({run}, o) for o in {call}]")
    return SCRIPT.replace("# RUNS", "\n".join(lines)).strip()


def list_comments_on_datasets_in_memory(settings_of_runs: Sequence[SettingsByName]) -> list[str]:
    """List a comment on each data set that is only in memory: elsewhere, `fl.add_dataset` comes first."""
    remarks = []
    for name in dict.fromkeys(str(each.get("dataset", "")) for each in settings_of_runs):
        if find_dataset_in_memory(name) is not None:
            remarks.append(
                f"# {name!r} is in this session's memory: elsewhere, "
                f"fl.add_dataset({name!r}, ...) first"
            )
    return remarks


def make_compare_call_code(
    methods: Sequence[str], settings: SettingsByName, **code_by_argument: str
) -> str:
    """Make the call of `fl.compare` that does what Run does, as Python code.

    code_by_argument: further arguments, as code; they have precedence over the settings
    """
    arguments = [repr(list(methods))]
    dotted = {}  # a method's own settings, whose names are no Python names
    for name, value in settings.items():
        if "." in name:
            dotted[name] = value
        elif name not in code_by_argument:
            arguments.append(f"{name}={value!r}")
    for name, code in code_by_argument.items():
        arguments.append(f"{name}={code}")
    if dotted:
        arguments.append(f"**{dotted!r}")
    return f"fl.compare({', '.join(arguments)})"
