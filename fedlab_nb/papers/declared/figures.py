"""Figures and claims of texts: declared runs, what is computed from their rows, and whether the texts agree.

`load_all` has all declared studies: these, the tries of the classroom's values (`papers/tuning`), and the runs of the
papers' tables (`papers`).
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...declared import parse_toml
from ...studies.grid import Study
from ...studies.outcome import Outcome
from ...studies.statistics import band
from ...studies.stored_figures import (
    OPERATOR,
    SERIES,
    Values,
    compute_figure,
    format_figure,
    select_seeds,
)
from ...studies.stored_rows import FOLDER, Row, find_file, make_row_key
from ..cells import stored_points
from ..points import COMMAND, Declared, Point
from ..reproduction import FILES
from ..tuning import SETS, tuning_points

SEEDS = tuple(range(10))
PLAIN = ("accuracy", "bytes_up", "bytes_down", "parameters")
FIGURE = re.compile(r"<!--n (?P<study>\w+)\.(?P<what>[^>]+?)-->(?P<shown>.*?)<!--/n-->", re.DOTALL)
CLAIM = re.compile(r"<!--c (?P<study>\w+)\.(?P<claim>\w+)-->")
# On another processor the mean of ten seeds moves: by up to two points where a method searches for images, which
# amplifies rounding, and hardly elsewhere. A claim whose band ends nearer than that says so in its text.
AMPLIFIERS = ("dense", "coboosting", "fdafl")
MOVES_AMPLIFIED, MOVES = 0.02, 0.001
EDGE = "(at the edge"
DECLARATIONS = Path(__file__).parent
ROOT = DECLARATIONS.parents[2]
LESSONS = ROOT / "fedlab_nb" / "course"
TEXTS = ("fedlab_nb/course/*", "notebooks/instructor", "notebooks", ".", "notebooks/guide")


@dataclass(frozen=True)
class Figures(Declared):
    """Runs, the figures that are computed from them, and the claims that the texts make.

    A figure is a value for each seed: accuracies of one method, another column, a difference of two figures on the same
    seeds, or what a function of `measures` gives without any declared run: a constant, or {seed: value}.

    runs: {name: keyword arguments of `fl.study`};   columns: what each row keeps, beside what the figures read
    later: runs that are made only on demand (`with_later`), as they take long: `core_minutes` on one core.
           Rows of them that are there stay, and are wanted like all others
    figures, claims: {name: what it is computed from};   quotes: {file: templates} in files that take no comments
    measures: the module of functions that measure more than a run's own numbers
    """

    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    later: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    columns: Sequence[str] = PLAIN
    figures: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    quotes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    measures: str = ""

    def points(self, rows: Sequence[Row] = (), seeds: Sequence[int] = ()) -> Iterator[Point]:
        """`seeds`: others than the declared ones."""
        for name, declared in self.runs.items():
            yield from self.points_of(name, declared, seeds)
        stored = {make_row_key(row) for row in rows}
        for name, declared in self.later.items():
            for point in self.points_of(name, without_minutes(declared), seeds):
                if point.key in stored:
                    yield point

    def points_of(
        self, name: str, declared: Mapping[str, Any], seeds: Sequence[int]
    ) -> Iterator[Point]:
        """The points of the runs of that name; `seeds`: others than the declared ones."""
        settings = {"seeds": SEEDS, **declared}
        if seeds:
            settings["seeds"] = seeds
        grid = Study.declare(**settings)
        for cell in replace(grid, seeds=grid.seeds[:1]).cells():
            method = cell.plan.name
            columns = {c: partial(self.column, c) for c in self.columns_of(name, method)}
            yield Point(name, method, cell.values, cell.plan.settings, grid.seeds, columns)

    def with_later(self) -> Figures:
        """The same study, which wants the runs that are made only on demand, too."""
        later = {name: without_minutes(declared) for name, declared in self.later.items()}
        return replace(self, runs={**self.runs, **later}, later={})

    def columns_of(self, runs: str, method: str) -> list[str]:
        """What the rows of a method in these runs keep."""
        series = [
            SERIES.fullmatch(part)
            for text in self.figures.values()
            for part in OPERATOR.split(text)
        ]
        read = {
            m["column"]
            for m in series
            if m and (m["runs"], m["method"]) == (runs, method) and m["column"]
        }
        return [*self.columns, *sorted(read - set(self.columns))]

    def measure(self, name: str) -> Any:
        return getattr(importlib.import_module(self.measures), name)

    def column(self, name: str, outcome: Outcome) -> float | None:
        """`report.heads.ccvr`: a path into the outcome, whole numbers being positions; `probes.mean`: what the function
        `probes` of `measures` says under "mean". None where this method has nothing of the kind."""
        value: Any = outcome
        steps = name.split(".")
        if not hasattr(outcome, steps[0]) and self.measures:
            value = self.measure(steps.pop(0))(outcome)
        for step in steps:
            if value is not None and re.fullmatch(r"-?\d+", step):
                value = value[int(step)]
            else:
                value = (
                    value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
                )
        return value

    def value(self, text: str, rows: Sequence[Row]) -> Values:
        """A figure's values by seed; `text`: its name, an expression, or a number, which is the same on every seed."""
        text = self.figures.get(text.strip(), text).strip()
        if text.startswith("="):
            name, _, arguments = text[1:].strip().partition("(")
            measured = self.measure(name)(*ast.literal_eval(f"({arguments.rstrip(')')},)"))
            if isinstance(measured, Mapping):
                return dict(measured)
            return {0: float(measured)}
        try:
            return compute_figure(text, self.figures, rows)
        except ValueError as error:
            raise ValueError(f"Study {self.name}: {error}") from None

    def judge(self, claim: str, rows: Sequence[Row]) -> tuple[bool | None, str]:
        """Whether a claim holds on `rows`, and how: `a > b` (clear), `a ~ b` (within the noise), `a > 0.3` (its whole
        band). None: the order is the same, but not clear on these seeds."""
        left, sign, right = re.split(r" ([>~]) ", self.claims[claim])
        of = band(self.value(f"{left} - {right}", rows))
        words = f"{100 * of.mean:+.1f} ± {100 * of.half_width:.1f}, {of.verdict}"
        if sign == ">" and of.mean <= 0:
            return False, f"{words}: REVERSED"
        return of.verdict == ("clear" if sign == ">" else "within the noise") or None, words

    def methods_of(self, text: str) -> set[str]:
        """The methods whose runs a figure, or an expression of figures, reads."""
        text = text.strip()
        if text in self.figures:
            return self.methods_of(self.figures[text])
        parts = OPERATOR.split(text)
        if len(parts) > 1:
            return set().union(*map(self.methods_of, parts))
        series = SERIES.fullmatch(text)
        return {series["method"]} if series else set()

    def is_at_edge(self, claim: str, rows: Sequence[Row]) -> bool:
        """Whether rounding on another processor could turn a claim that holds on `rows` into one that does not."""
        left, sign, right = re.split(r" ([>~]) ", self.claims[claim])
        of = band(self.value(f"{left} - {right}", rows))
        room = of.low if sign == ">" else min(-of.low, of.high)
        amplified = self.methods_of(f"{left} - {right}") & {*AMPLIFIERS}
        return room < (MOVES_AMPLIFIED if amplified else MOVES)

    def shown(self, what: str, rows: Sequence[Row]) -> str:
        """`server`, `server:mean`, `server@0-2:each` as it is to be written."""
        name, _, form = what.partition(":")
        name, _, seeds = name.partition("@")
        return format_figure(select_seeds(self.value(name, rows), seeds), form)


def without_minutes(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `fl.study` in a declaration of `later`."""
    return {name: value for name, value in declared.items() if name != "core_minutes"}


def load(path: Path) -> Figures:
    """The study that a TOML file declares. The results of the files of this folder stand in `studies/stored/`, a
    lesson's beside its declaration."""
    content = parse_toml(path.read_text(encoding="utf-8"))
    content.pop("bars", None)  # of a lesson's pictures
    results = path.with_suffix(".json")
    if path.parent == DECLARATIONS:
        results = FOLDER / results.name
    return Figures(content.pop("name", path.stem), results, **{"decimals": 6, **content})


def load_all() -> dict[str, Declared]:
    """{name: study} of all declared studies."""
    note = "accuracy: share of the validation images, a fixed fifth of the training images; no test image was used"
    files = [
        *LESSONS.glob("*/figures.toml"),
        *(set(DECLARATIONS.glob("*.toml")) - {DECLARATIONS / "tuning.toml"}),
    ]
    studies: list[Declared] = sorted(map(load, files), key=lambda study: study.name)
    for path, name in ((find_file("tuning", name), name) for name in SETS):
        studies.append(Declared(path.stem, path, note, wanted=partial(tuning_points, name)))
    note = "accuracy: share of the test images; by seed"
    for path, large in zip(FILES, (False, True), strict=True):
        studies.append(Declared(path.stem, path, note, wanted=partial(stored_points, large=large)))
    return {study.name: study for study in studies}


# ------------------------------------------------------------------------------------------------------- in texts
def pages(root: Path) -> Iterator[Path]:
    """All Markdown texts that may name figures."""
    return (path for folder in TEXTS for path in sorted(root.glob(f"{folder}/*.md")))


StoredRows = Mapping[str, Sequence[Row]]  # by study; a text has many figures of the same one


def mended(text: str, studies: Mapping[str, Figures], rows: StoredRows) -> str:
    """`text` with the figures of `studies` as they are now."""

    def put(match: re.Match) -> str:
        name = match["study"]
        if name not in studies:
            return match[0]
        value = studies[name].shown(match["what"], rows[name])
        return f"<!--n {name}.{match['what']}-->{value}<!--/n-->"

    return FIGURE.sub(put, text)


def quoted(text: str, template: str, study: Figures, rows: Sequence[Row]) -> str:
    """`text` with the figures of a template such as "{server} % against {equal:mean} %" as they are now. A space of the
    template stands for any white space. ValueError if the text has no such place."""
    pieces = re.split(r"\{([^}]+)\}", template)
    fixed = [r"\s+".join(map(re.escape, re.split(r"\s+", piece))) for piece in pieces[::2]]
    pattern = re.compile(r"([^\n]{1,60}?)".join(f"({part})" for part in fixed))
    if not pattern.search(text):
        raise ValueError(f"no place reads like {template!r}")
    values = [study.shown(piece, rows) for piece in pieces[1::2]]
    values.append("")

    def put(match: re.Match) -> str:
        return "".join(
            words + value for words, value in zip(match.groups()[::2], values, strict=True)
        )

    return pattern.sub(put, text)


def changes(root: Path, studies: Mapping[str, Figures]) -> dict[Path, str]:
    """{path: the text as it should be} of all texts that name another figure than their study; ValueError where one
    cannot be read."""
    rows = {name: study.rows() for name, study in studies.items()}
    new = {path: mended(path.read_text(encoding="utf-8"), studies, rows) for path in pages(root)}
    for name, study in studies.items():
        for file, templates in study.quotes.items():
            path = root / file
            text = new.get(path) or path.read_text(encoding="utf-8")
            for template in templates:
                text = quoted(text, template, study, rows[name])
            new[path] = text
    return {path: text for path, text in new.items() if text != path.read_text(encoding="utf-8")}


def complaints(root: Path, studies: Mapping[str, Figures]) -> list[str]:
    """One sentence for each text that disagrees with its study, and for each claim that does not hold, stands in no
    text, or in no study."""
    lines = [
        f"{path.name}: a figure differs from its study; run {COMMAND} --texts"
        for path in changes(root, studies)
    ]
    found = (
        match for path in pages(root) for match in CLAIM.finditer(path.read_text(encoding="utf-8"))
    )
    marked = {(match["study"], match["claim"]) for match in found if match["study"] in studies}
    claims = {(name, claim) for name, study in studies.items() for claim in study.claims}
    lines += [
        f"{name}: a text marks {claim!r}, and no such claim is declared"
        for name, claim in marked - claims
    ]
    lines += [
        f"{name}: no text marks the claim with <!--c {name}.{claim}-->"
        for name, claim in claims - marked
    ]
    said = edges_said(root)
    for name, claim in sorted(claims):
        study = studies[name]
        rows = study.rows()
        holds, words = study.judge(claim, rows)
        if not holds:
            lines.append(f"{name}: {claim} ({study.claims[claim]}) does not hold: {words}")
        elif study.is_at_edge(claim, rows) and (name, claim) not in said:
            lines.append(f"{name}: {claim}: {words}; write '{EDGE})' after its mark in the text")
        elif (name, claim) in said and not study.is_at_edge(claim, rows):
            lines.append(f"{name}: {claim}: {words}; it is not at the edge, as the text says")
    return lines


def edges_said(root: Path) -> set[tuple[str, str]]:
    """(study, claim) of the claims of which a text says that they lie at the edge of their band."""
    said = set()
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        for match in CLAIM.finditer(text):
            if text[match.end() :].lstrip().startswith(EDGE):
                said.add((match["study"], match["claim"]))
    return said
