"""A declared study: which points it wants, which rows are stored beside it, whether they still hold, making them again.

`Declared` is the engine. Studies differ in the points that they want: grids of runs with the figures and claims of
texts (`Figures`), tries of the classroom's values (`studies/tuning`), and the cells of the papers' tables.
"""

from __future__ import annotations

import ast
import importlib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from ... import __version__
from ...declared import parse
from ..code_version import torch_version
from ..experiment import Event
from ..grid import Study
from ..outcome import Outcome
from ..papers import stored_points
from ..papers.reproduction import FILE as TABLES_FILE
from ..rows import Point, Row, computed, key_of, read, save
from ..statistics import band
from ..tuning import SETS, file_of, tuning_points

SEEDS = tuple(range(10))
PLAIN = ("accuracy", "bytes_up", "bytes_down", "parameters")
SERIES = re.compile(r"(?P<runs>\w+)/(?P<method>\w+)(?:\[(?P<at>[^]]*)\])?(?::(?P<column>\S+))?")
NUMBER = re.compile(r"-?[\d.]+")
ARITHMETIC = {" + ": operator.add, " - ": operator.sub, " / ": operator.truediv}  # the first one binds least
OPERATOR = re.compile(r" [->~+/] ")
COMMAND = "python -m fedlab_nb.studies.declared"
HERE = Path(__file__).parent
LESSONS = HERE.parents[1] / "course"
Values = dict[int, float]  # by seed


@dataclass(frozen=True)
class Declared:
    """A study by name. path: its results;   note: what its file says of them;   decimals: of a number in a row

    wanted: gives the points that are wanted, from the rows that are there already (for a study that goes on from what
    came out)
    """

    name: str
    path: Path
    note: str = ""
    decimals: int = 4
    wanted: Callable[[Sequence[Row]], Iterator[Point]] | None = None

    def points(self, rows: Sequence[Row]) -> Iterator[Point]:
        """What is wanted."""
        return self.wanted(rows) if self.wanted else iter(())

    def rows(self) -> list[Row]:
        """The stored rows, none if nothing was stored yet."""
        return read(self.path)[1] if self.path.exists() else []

    def missing(self, rows: Sequence[Row]) -> list[Point]:
        """The points that have no row, or one that was made with other settings."""
        stored = {key_of(row): row for row in rows}
        return [point for point in self.points(rows) if not point.is_now(stored.get(point.key))]

    def stale(self) -> list[str]:
        """What `missing` says of the stored rows, a sentence for each method."""
        parts = dict.fromkeys(f"{self.name}/{point.runs}/{point.method}" for point in self.missing(self.rows()))
        return [f"{part}: rows are missing or have other settings; run {COMMAND} {self.name}" for part in parts]

    def make(
        self, *, anew: Sequence[str] = (), workers: int = 1, watch: Callable[[Event], None] = lambda event: None
    ) -> dict[str, str]:
        """Compute what is missing, and the methods `anew` in any case, until nothing is. A call that was stopped keeps
        its rows, and goes on where it was. Returns why points failed, by key."""
        rows = {key_of(row): row for row in self.rows()}
        done: set[str] = set()
        try:
            while todo := [
                point
                for point in self.points(list(rows.values()))
                if point.key not in done and (point.method in anew or not point.is_now(rows.get(point.key)))
            ]:
                for point, row in computed(todo, self.decimals, workers=workers, watch=watch):
                    rows[point.key] = row
                    done.add(point.key)
        finally:
            if done or not self.path.exists():
                self.save(rows)
        return {key: rows[key]["failed"] for key in done if "failed" in rows[key]}

    def save(self, rows: Mapping[str, Row]) -> None:
        """Write the rows that are wanted, in the order of the study."""
        wanted = [rows[point.key] for point in self.points(list(rows.values())) if point.key in rows]
        made = {"version": __version__, "torch": torch_version(), "date": date.today().isoformat()}
        save(self.path, {**made, "command": f"{COMMAND} {self.name}", "note": self.note}, wanted)


# ---------------------------------------------------------------------------------------------------- figures of texts
@dataclass(frozen=True)
class Figures(Declared):
    """Runs, the figures that are computed from them, and the claims that the texts make.

    A figure is a value for each seed: accuracies of one method, another column, a difference of two figures on the same
    seeds, or a constant that a function of `measures` computes without any run.

    runs: {name: keyword arguments of `fl.study`};   columns: what each row keeps, beside what the figures read
    figures, claims: {name: what it is computed from};   quotes: {file: templates} in files that take no comments
    measures: the module of functions that measure more than a run's own numbers
    """

    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    columns: Sequence[str] = PLAIN
    figures: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    quotes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    measures: str = ""

    def points(self, rows: Sequence[Row] = (), seeds: Sequence[int] = ()) -> Iterator[Point]:
        """`seeds`: others than the declared ones."""
        for runs, declared in self.runs.items():
            grid = Study.declare(**{"seeds": SEEDS, **declared, **({"seeds": seeds} if seeds else {})})
            for cell in replace(grid, seeds=grid.seeds[:1]).cells():
                columns = {name: partial(self.column, name) for name in self.columns_of(runs, cell.plan.name)}
                yield Point(runs, cell.plan.name, cell.values, cell.plan.settings, grid.seeds, columns)

    def columns_of(self, runs: str, method: str) -> list[str]:
        """What the rows of a method in these runs keep."""
        series = [SERIES.fullmatch(part) for text in self.figures.values() for part in OPERATOR.split(text)]
        read = {m["column"] for m in series if m and (m["runs"], m["method"]) == (runs, method) and m["column"]}
        return [*self.columns, *sorted(read - set(self.columns))]

    def column(self, name: str, outcome: Outcome) -> float | None:
        """`report.heads.ccvr`: a path into the outcome, whole numbers being positions; `probes.mean`: what the function
        `probes` of `measures` says under "mean". None where this method has nothing of the kind."""
        value: Any = outcome
        steps = name.split(".")
        if not hasattr(outcome, steps[0]) and self.measures:
            value = getattr(importlib.import_module(self.measures), steps.pop(0))(outcome)
        for step in steps:
            if value is not None and re.fullmatch(r"-?\d+", step):
                value = value[int(step)]
            else:
                value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
        return value

    def value(self, text: str, rows: Sequence[Row]) -> Values:
        """A figure's values by seed; `text`: its name, an expression, or a number, which is the same on every seed."""
        text = text.strip()
        if NUMBER.fullmatch(text):
            return dict.fromkeys((seed for row in rows for seed in row["seeds"]), float(text))
        if text in self.figures:
            return self.value(self.figures[text], rows)
        if text.startswith("="):
            name, _, arguments = text[1:].strip().partition("(")
            function = getattr(importlib.import_module(self.measures), name)
            return {0: float(function(*ast.literal_eval(f"({arguments.rstrip(')')},)")))}
        for sign, calculate in ARITHMETIC.items():
            if sign in text:
                a, b = (self.value(part, rows) for part in text.rsplit(sign, 1))
                return {s: calculate(a[s], b[s]) for s in a if s in b}
        match = SERIES.fullmatch(text)
        if match is None:
            raise ValueError(f"Study {self.name} has no figure {text!r}; it has {', '.join(self.figures)}.")
        at = [part.split("=") for part in (match["at"] or "").replace(" ", "").split(",") if part]
        of = [row for row in rows if (row["runs"], row["method"]) == (match["runs"], match["method"])]
        of = [r for r in of if all(str(r["at"].get(k, r["at"].get(f"{r['method']}.{k}"))) == v for k, v in at)]
        if len(of) != 1:
            raise ValueError(f"Study {self.name}: {text!r} fits {len(of)} runs; name the axes of one in brackets.")
        return dict(zip(of[0]["seeds"], of[0][match["column"] or "accuracy"], strict=True))

    def judge(self, claim: str, rows: Sequence[Row]) -> tuple[bool | None, str]:
        """Whether a claim holds on `rows`, and how: `a > b` (clear), `a ~ b` (within the noise), `a > 0.3` (its whole
        band). None: the order is the same, but not clear on these seeds."""
        left, sign, right = re.split(r" ([>~]) ", self.claims[claim])
        of = band(self.value(f"{left} - {right}", rows))
        words = f"{100 * of.mean:+.1f} ± {100 * of.half_width:.1f}, {of.verdict}"
        if sign == ">" and of.mean <= 0:
            return False, f"{words}: REVERSED"
        return of.verdict == ("clear" if sign == ">" else "within the noise") or None, words


# --------------------------------------------------------------------------------------------------- the other kinds
def load(path: Path) -> Figures:
    """The study that a TOML file declares; its results stand beside it."""
    content = parse(path.read_text(encoding="utf-8"))
    content.pop("about", None)  # for readers of the results
    return Figures(content.pop("name", path.stem), path.with_suffix(".json"), **{"decimals": 6, **content})


def load_all() -> dict[str, Declared]:
    """{name: study} of all declared studies."""
    note = "accuracy: share of the validation images, a fixed fifth of the training images; no test image was used"
    files = [*sorted(LESSONS.glob("*/figures.toml")), *sorted(set(HERE.glob("*.toml")) - {HERE / "tuning.toml"})]
    studies: list[Declared] = sorted(map(load, files), key=lambda study: study.name)
    for name in SETS:
        studies.append(Declared(file_of(name).stem, file_of(name), note, wanted=partial(tuning_points, name)))
    note = "accuracy: share of the 360 test images; by seed"
    studies.append(Declared("tables", TABLES_FILE, note, wanted=lambda rows: iter(stored_points())))
    return {study.name: study for study in studies}
