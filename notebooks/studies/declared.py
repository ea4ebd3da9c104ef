"""A declared study of the texts: its runs, the figures computed from them, and the claims that the texts make.

A figure is a value for each seed: accuracies of one method, another column, a difference of two figures on the same
seeds, or a constant that `measures.py` computes without any run.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fedlab_nb as fl
from fedlab_nb.declared import parse
from fedlab_nb.study.engine import row_of
from fedlab_nb.study.grid import Cell, Study
from fedlab_nb.study.settings import content_key
from fedlab_nb.study.statistics import band
from fedlab_nb.study.store import Store
from fedlab_nb.study.tasks import recall

from . import measures

SEEDS = tuple(range(10))
SERIES = re.compile(r"(?P<runs>\w+)/(?P<method>\w+)(?:\[(?P<at>[^]]*)\])?(?::(?P<column>.+))?")
PLAIN = ("accuracy", "bytes_up", "bytes_down", "parameters")
Values = dict[int, float]  # by seed
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """Of a claim on some seeds. `holds`: None where the order is the same but not clear on these seeds."""

    holds: bool | None
    words: str


@dataclass(frozen=True)
class Declared:
    """runs: {name: keyword arguments of `fl.study`};   figures, claims: {name: what it is computed from}
    quotes: {file: templates} of figures in files that take no comments
    """

    path: Path
    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    quotes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.stem.partition("_")[0]

    # ------------------------------------------------------------------------------------------------ runs and rows
    def study(self, runs: str, seeds: Sequence[int] | None = None) -> Study:
        """The grid of one group of runs, on its own seeds or on others."""
        settings = dict(self.runs[runs])
        own = settings.pop("seeds", SEEDS)
        return Study.declare(settings.pop("methods"), seeds=list(seeds) if seeds is not None else own, **settings)

    def columns(self, runs: str, method: str) -> set[str]:
        """What the figures read of a method in these runs beside accuracy, bytes and parameters."""
        series = [SERIES.fullmatch(text) for text in self.figures.values()]
        read = {m["column"] for m in series if m and (m["runs"], m["method"]) == (runs, method) and m["column"]}
        return read - set(PLAIN)

    def run(self, seeds: Sequence[int] | None = None, *, workers: int = 1, only: Sequence[str] | None = None) -> Rows:
        """All rows, one a cell. What is in the store is not computed again. RuntimeError if a cell fails."""
        rows = []
        for runs in self.runs if only is None else only:
            plan = self.study(runs, seeds)
            results = fl.study(plan, workers=workers)
            if results.failed:
                raise RuntimeError(f"{self.name}/{runs}: {results.failed[0]['error']}")
            rows += [made_row(runs, cell, self.columns(runs, cell.plan.name)) for cell in cells(plan)]
        return rows

    def make(self, *, workers: int = 1) -> None:
        """Run everything, and write the results beside the declaration."""
        lines = ",\n".join(json.dumps(row, sort_keys=True) for row in self.run(workers=workers))
        self.path.with_suffix(".json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")

    def results(self) -> Rows:
        path = self.path.with_suffix(".json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []

    def stale(self) -> list[str]:
        """What the stored rows lack, or were made with other settings of the methods than today's."""
        stored = {(row["runs"], row["method"], key_of(row), row["seed"]): row for row in self.results()}
        lines = []
        for runs in self.runs:
            for cell in cells(self.study(runs)):
                now = head(runs, cell)
                row = stored.get((runs, now["method"], key_of(now), now["seed"]))
                if (
                    row is None
                    or row["made"] != now["made"]
                    or not self.columns(runs, now["method"]) <= set(row["more"])
                ):
                    why = "rows are missing" if row is None else "rows were made with other settings"
                    lines.append(
                        f"{self.name}/{runs}/{now['method']}: {why}; run python notebooks/quoted.py {self.name}"
                    )
        return list(dict.fromkeys(lines))

    # ------------------------------------------------------------------------------------------------ figures, claims
    def value(self, text: str, rows: Rows) -> Values:
        """A figure's values by seed; `text`: its name, or an expression."""
        text = text.strip()
        if text in self.figures:
            return self.value(self.figures[text], rows)
        if text.startswith("="):
            name, _, arguments = text[1:].strip().partition("(")
            return {0: float(getattr(measures, name)(*ast.literal_eval(f"({arguments.rstrip(')')},)")))}
        for sign in (" - ", " / "):
            if sign in text:
                a, b = (self.value(part, rows) for part in text.rsplit(sign, 1))
                return {s: a[s] - b[s] if sign == " - " else a[s] / b[s] for s in a if s in b}
        match = SERIES.fullmatch(text)
        if match is None:
            raise ValueError(f"{self.path.name} has no figure {text!r}; it has {', '.join(self.figures)}.")
        at = [part.split("=") for part in (match["at"] or "").replace(" ", "").split(",") if part]
        column = match["column"] or "accuracy"
        by_seed = {}
        for row in rows:
            fits = all(str(row["at"].get(k, row["at"].get(f"{row['method']}.{k}"))) == v for k, v in at)
            if (row["runs"], row["method"]) == (match["runs"], match["method"]) and fits:
                if row["seed"] in by_seed:
                    raise ValueError(f"{self.path.name}: {text!r} fits more than one run; name its axes in brackets.")
                by_seed[row["seed"]] = row[column] if column in PLAIN else row["more"][column]
        if not by_seed:
            raise ValueError(f"{self.path.name}: no run fits {text!r}.")
        return by_seed

    def judge(self, claim: str, rows: Rows) -> Verdict:
        """Whether a claim holds on `rows`: `a > b` (clear), `a ~ b` (within the noise), `a > 0.3` (its whole band)."""
        left, sign, right = re.fullmatch(r"(.+?) ([>~]) (.+)", self.claims[claim]).groups()
        number = re.fullmatch(r"-?[\d.]+", right)
        gap = self.value(left, rows) if number else self.value(f"{left} - {right}", rows)
        of = band({seed: value - (float(right) if number else 0) for seed, value in gap.items()})
        words = f"{100 * of.mean:+.1f} ± {100 * of.half_width:.1f}, {of.verdict}"
        if sign == "~":
            return Verdict(True if of.is_noise else None, words)
        if of.mean <= 0:
            return Verdict(False, f"{words}: REVERSED")
        return Verdict(True if of.verdict == "clear" else None, words)

    def needed(self) -> list[str]:
        """The groups of runs that the claims read."""

        def runs(text: str) -> Iterator[str]:
            for part in re.split(r" [->~/] ", text):
                if part in self.figures:
                    yield from runs(self.figures[part])
                elif match := SERIES.fullmatch(part):
                    yield match["runs"]

        needed = {name for claim in self.claims.values() for name in runs(claim)}
        return [name for name in self.runs if name in needed]


def load(path: Path) -> Declared:
    return Declared(path, **parse(path.read_text(encoding="utf-8")))


def load_all(folder: Path) -> dict[str, Declared]:
    """{name: study}; the name is what stands before the first underscore of the file's name."""
    return {study.name: study for study in map(load, sorted(folder.glob("*.toml")))}


def cells(plan: Study) -> list[Cell]:
    return [cell for group in plan.groups() for row in group for cell in row]


def head(runs: str, cell: Cell) -> dict[str, Any]:
    """What names a row, and the key of the settings that it was made with."""
    row = row_of(cell, None, "")
    made = content_key({name: row[name] for name in ("recipe", "options", "model")})[:12]
    return {"runs": runs, "method": cell.plan.name, "at": dict(cell.values), "seed": cell.seed, "made": made}


def key_of(row: Mapping[str, Any]) -> str:
    """The point of the axes that a row stands for."""
    return json.dumps(row["at"], sort_keys=True)


def made_row(runs: str, cell: Cell, columns: set[str]) -> dict[str, Any]:
    """The row of a cell whose run is in the store, with the columns that its figures read."""
    outcome = recall(cell.plan)
    more = {column: column_of(column, cell, outcome) for column in sorted(columns)}
    values = {name: getattr(outcome, name) for name in PLAIN}
    return {**head(runs, cell), **values, "accuracy": round(outcome.accuracy, 6), "more": more}


def column_of(column: str, cell: Cell, outcome: Any) -> float | None:
    """`report.heads.ccvr`: a path into the outcome, whole numbers being positions; `probes.mean`: what the function
    `probes` of `measures.py` says under "mean" (kept in the store). None where this method has nothing of the kind."""
    name, *path = column.split(".")
    if not hasattr(measures, name):
        return at(outcome, [name, *path])
    store = Store("measures")
    key = content_key({"run": cell.plan.run_key(), "measure": name, "code": measures.code()})
    if (stored := store.get(key)) is None:
        stored = getattr(measures, name)(outcome), {}
        store.put(key, *stored)
    return at(stored[0], path)


def at(value: Any, path: Sequence[str]) -> float | None:
    for step in path:
        if value is None:
            return None
        if re.fullmatch(r"-?\d+", step):
            value = value[int(step)]
        else:
            value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
    return None if value is None else round(float(value), 6)
