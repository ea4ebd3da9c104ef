"""Estimate how long the runs of the papers' tables take that are not stored.

python -m fedlab_nb.papers.estimates             # all
python -m fedlab_nb.papers.estimates fedlpa:20   # these tables
python -m fedlab_nb.papers.estimates --measure 0 # by forecasts alone, which are right within a factor of three or four

A run that is forecast to take no longer than `--measure` seconds is run once, with seed 0, and its processor time is
measured; for a longer one the forecast is used. The result is written into `tables/durations.toml`, which the texts
read.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..files import write_file
from ..studies.cost import estimate_seconds_of_runs
from ..value_types import ExitCode
from .cells import SEEDS, merge_runs_into_distinct_points, plan_table_runs
from .durations import FILE, describe_duration_in_words, read_durations_of_longer_runs
from .points import MethodSettingPoint, compute_point_rows
from .published import TABLES, load_paper_table

MEASURED = 30.0  # seconds: a run that is forecast to take longer is not measured
HEAD = (
    "# Made by `python -m fedlab_nb.papers.estimates`: seconds that ten seeds take on one core,\n"
    "# measured where a run is short, else a forecast, which is right within a factor of three or four.\n"
)


def estimate_seconds_of_ten_seeds_of_table(
    table_name: str,
    overrides: Mapping[str, Any],
    measuring_limit_seconds: float,
    measured_seconds_by_point_key: dict[str, float],
) -> float:
    """Estimate the seconds that ten seeds of a table take on one core, with `overrides` for its settings.

    measuring_limit_seconds: a run that is forecast to take longer is not measured
    measured_seconds_by_point_key: {a point's key: the seconds that were measured}; new measurements are added
    """
    table = load_paper_table(table_name)
    settings = {"device": "cpu", **overrides}
    dataset = str(settings.pop("dataset", ""))
    plan = plan_table_runs(table, "classroom", dataset, range(SEEDS), settings)
    seconds = 0.0
    for point in merge_runs_into_distinct_points(plan.runs):
        seconds += SEEDS * estimate_seconds_of_one_run(
            point, measuring_limit_seconds, measured_seconds_by_point_key
        )
    return seconds


def estimate_seconds_of_one_run(
    point: MethodSettingPoint,
    measuring_limit_seconds: float,
    measured_seconds_by_point_key: dict[str, float],
) -> float:
    """Estimate the seconds of one run of a point; see `estimate_seconds_of_ten_seeds_of_table`."""
    if point.key in measured_seconds_by_point_key:
        return measured_seconds_by_point_key[point.key]
    forecast = estimate_seconds_of_runs([point.make_plan_of_seed(0)])
    if forecast is None or forecast <= measuring_limit_seconds:
        measured_seconds_by_point_key[point.key] = measure_processor_seconds_of_run(point)
        return measured_seconds_by_point_key[point.key]
    return forecast


def measure_processor_seconds_of_run(point: MethodSettingPoint) -> float:
    """Run a point with seed 0; returns the processor time that it took."""
    start = time.process_time()
    for _ in compute_point_rows([replace(point, seeds=(0,))], cache=False):
        pass
    return time.process_time() - start


def format_seconds_by_table_as_toml(
    seconds_by_run_by_table: Mapping[str, Mapping[str, float]],
) -> str:
    """Format the text of the file, tables in order."""
    lines = [HEAD]
    for table in TABLES:
        if table in seconds_by_run_by_table:
            lines.append(f'["{table}"]')
            for name, seconds in seconds_by_run_by_table[table].items():
                lines.append(f"{name} = {round(seconds)}")
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main() -> ExitCode:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fedlab_nb.papers.estimates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as fusefl:2; default: all")
    parser.add_argument(
        "--measure",
        type=float,
        default=MEASURED,
        metavar="SECONDS",
        help=f"forecast up to which a run is measured (default: {MEASURED:g})",
    )
    options = parser.parse_args()
    names = options.tables or TABLES
    durations = {}
    for table, seconds_by_name in read_durations_of_longer_runs().items():
        durations[table] = dict(seconds_by_name)
    measured: dict[str, float] = {}
    # In an empty store, since a cached run would take no time.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEDLAB_NB_STORE"] = folder
        for table in names:
            longer = load_paper_table(table).longer
            durations.pop(table, None)
            for name, overrides in longer.items():
                seconds = estimate_seconds_of_ten_seeds_of_table(
                    table, overrides, options.measure, measured
                )
                durations.setdefault(table, {})[name] = seconds
                print(f"{table} {name}: {describe_duration_in_words(seconds)}", flush=True)
            path = Path(__file__).parents[1] / FILE
            write_file(path, format_seconds_by_table_as_toml(durations), force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
