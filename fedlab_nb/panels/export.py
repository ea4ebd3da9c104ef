"""What a panel gives away: a folder with runs.csv, runs.json, reproduce.py, each picture as PNG and SVG; and the Python
lines.
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


def export_runs(
    folder: str | Path, runs: RunRecord, pictures: Mapping[str, Picture], python_code: str
) -> Path:
    """Write everything to `folder`, or to `folder-2`, … where that has something in it already.
    Returns the folder."""
    from pandas import DataFrame

    try:
        place = find_free_folder(expand_path(folder))
        place.mkdir(parents=True, exist_ok=True)
        rows = []
        for row in runs.rows:
            for outcome in row.outcomes.values():
                rows.append({"run": row.run, **outcome.to_json()})
        details = json.dumps(list_result_details(runs), indent=1, default=convert_to_json_value)
        python_file = make_export_script(runs) if runs.outcomes else python_code
        write_file(place / "runs.csv", DataFrame(rows, columns=COLUMNS).to_csv(index=False))
        write_file(place / "runs.json", details)
        write_file(place / "reproduce.py", python_file + "\n")
        for name, picture in pictures.items():
            if picture.figure is not None:
                picture.save(place / f"{name}.png")
                picture.save(place / f"{name}.svg")
    except OSError as error:
        raise RunError(
            f"The export could not be written to {folder}: {error.strerror or error}; "
            "choose another folder."
        ) from None
    return place


def find_free_folder(folder: Path) -> Path:
    """`folder`, or the first of `folder-2`, `folder-3`, … that is not there or empty."""
    free_folder = folder
    number = 1
    while free_folder.is_file() or (free_folder.is_dir() and any(free_folder.iterdir())):
        number += 1
        free_folder = folder.with_name(f"{folder.name}-{number}")
    return free_folder


def list_result_details(runs: RunRecord) -> list[JsonObject]:
    """Every result with what the CSV has no room for: curves, accuracies by class and client, the
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
    """numpy numbers and arrays as plain ones; anything else as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def make_panel_code(methods: Sequence[str], settings: SettingsByName, runs: RunRecord) -> str:
    """The Python lines that do what Run would do now, and what the pinned runs were."""
    lines = ["import fedlab_nb as fl", *list_comments_on_added_datasets([settings])]
    lines.append(f"outs = {make_compare_call_code(methods, settings)}")
    pinned_rows = [row for row in runs.rows if row.pinned]
    for run in dict.fromkeys(row.run for row in pinned_rows):
        rows = [row for row in pinned_rows if row.run == run]
        call = make_compare_call_code([row.method for row in rows], rows[0].settings)
        lines.append(f"run_{run} = {call}")
    lines.append("outs.table()")
    return "\n".join(lines)


SCRIPT = Path(__file__).with_name("reproduce.txt").read_text(encoding="utf-8")


def make_export_script(runs: RunRecord) -> str:
    """A Python file that computes every result of runs.csv again and prints it beside the exported
    one."""
    rows_of: dict[tuple[int, int], list[MethodRun]] = {}  # by run and seed
    for row in runs.rows:
        for seed in row.outcomes:
            rows_of.setdefault((row.run, seed), []).append(row)
    lines = list_comments_on_added_datasets([row.settings for row in runs.rows])
    for (run, seed), rows in rows_of.items():
        settings = {**rows[0].settings, "seed": seed, "seeds": 1}
        call = make_compare_call_code([row.method for row in rows], settings, cache="CACHE")
        lines.append(f"results += [({run}, o) for o in {call}]")
    return SCRIPT.replace("# RUNS", "\n".join(lines)).strip()


def list_comments_on_added_datasets(settings_of_runs: Sequence[SettingsByName]) -> list[str]:
    """List what is to be done first, elsewhere: data sets of this session's memory are not in the
    package."""
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
    """The Python call that does what Run does.

    code_by_argument: further arguments, as code; they win over the settings
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
