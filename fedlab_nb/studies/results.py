"""What a study gives: tidy rows, one a cell, and what can be said of them; and the table of a comparison's outcomes.

results.summary()                         means over seeds with 95 % bands
results.differences("fedavg")             every method against one, paired by seed
results.choose("fens.rounds")             the best value on validation images, its test accuracy shown once
results.table("markdown"), .table("latex"), .plot("alpha"), .save("folder")
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ..errors import FedlabError, UsageError, choose, demand
from ..files import check_replaceable, expand_path, open_replacement, write_file
from ..methods import METHODS, label_of
from .outcome import QUALITY
from .statistics import Band, band, difference, holm, mean_ranks, over_images

# What every row begins with; then come the study's axes and the whole setting.
COLUMNS = (
    "method", "dataset", "alpha", "clients", "seed", "preset", "accuracy", "bytes_up", "bytes_down", "seconds_total",
)  # fmt: skip

WHAT = (
    "dataset",
    "partition",
    "alpha",
    "clients",
    "preset",
    "device",
)  # said once where it is the same in all rows
ALWAYS = ("method", "seed")
FILES = ("results.csv", "results.json", "results.parquet")
Grid = list[list[str]]  # a table's cells, the head first
OTHER = "accuracy by "  # begins the columns of accuracies under another rule (`Report.others`)


class Shown:
    """What a terminal and a notebook show: `parts()` gives sentences and tables."""

    def parts(self) -> Sequence[str | Grid]:
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = (part if isinstance(part, str) else f"{aligned(part)}\n" for part in self.parts())
        return "\n".join(shown).strip()

    def _repr_html_(self) -> str:
        return "".join(
            f"<p>{escape(part)}</p>" if isinstance(part, str) else html_table(part)
            for part in self.parts()
        )


class Results(Shown):
    """Rows of a study; each row is a flat dict. `axes`: the names of what varies, without method and seed."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], axes: Sequence[str] = ()) -> None:
        self.rows, self.axes = [dict(row) for row in rows], tuple(axes)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The rows of cells that ended in an error, with its reason under `error`."""
        return [row for row in self.rows if row.get("error")]

    def select(self, **values: Any) -> Results:
        """The rows whose columns have these values: `select(alpha=0.1, method="fens")`."""
        for name in values:
            choose("column", name, sorted({key for row in self.rows for key in row}))
        return Results(
            [row for row in self.rows if all(row.get(k) == v for k, v in values.items())], self.axes
        )

    # ------------------------------------------------------------------------------------------------ in numbers
    def points(
        self, value: str = "accuracy", called: Any = None
    ) -> dict[tuple, dict[str, dict[int, float]]]:
        """`{values of the shared axes: {method with its own fields: {seed: value}}}`, failed cells left out.

        called: gives a row's name, `name_of` unless it is given
        """
        table: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
        for row in self.rows:
            if not row.get("error") and row.get(value) is not None:
                at = table.setdefault(tuple(row.get(name) for name in self.shared_axes), {})
                at.setdefault((called or self.name_of)(row), {})[int(row["seed"])] = float(
                    row[value]
                )
        return table

    def each(self) -> Iterator[tuple[dict[str, Any], dict[str, dict[int, float]]]]:
        """What `points` gives, with the shared axes by name."""
        return (
            (dict(zip(self.shared_axes, at, strict=True)), of) for at, of in self.points().items()
        )

    @property
    def shared_axes(self) -> tuple[str, ...]:
        return tuple(name for name in self.axes if "." not in name)

    def name_of(self, row: Mapping[str, Any], title: str = "") -> str:
        """The method, with the values of its own axes: `fens (rounds = 10)`. `title`: in the place of the registered
        name, and of what gives it that title."""
        method = row["method"]
        said = (
            [f"{method}.{at.partition('=')[0]}" for at in METHODS[method].info.titles]
            if title
            else []
        )
        own = [name for name in self.axes if name.startswith(f"{method}.") and name not in said]
        words = ", ".join(f"{name.partition('.')[2]} = {row.get(name)}" for name in own)
        return f"{title or method} ({words})" if words else title or method

    def label(self, row: Mapping[str, Any]) -> str:
        """What tables and pictures call it: as `name_of`, or by the title that its settings give it."""
        title = label_of(
            row["method"], {**json.loads(row.get("options") or "{}"), **row}, row["method"]
        )
        return self.name_of(row, "" if title == row["method"] else title)

    def summary(self) -> list[dict[str, Any]]:
        """Mean test accuracy with its 95 % band over seeds, mean bytes and QUALITY, of each method at each point."""
        means = {"validation": self.points("accuracy_validation")}
        means |= {name: self.points(name) for name in ("bytes_up", "bytes_down", *QUALITY)}
        rows = []
        for at, methods in self.each():
            for name, accuracies in methods.items():
                test = band(accuracies)
                row = at | {
                    "method": name,
                    "seeds": test.n,
                    "accuracy": test.mean,
                    "band": test.half_width,
                }
                of = {
                    column: points.get(tuple(at.values()), {}).get(name)
                    for column, points in means.items()
                }
                rows.append(
                    row | {column: fmean(v.values()) if v else math.nan for column, v in of.items()}
                )
        return rows

    def differences(self, reference: str, *, correct: bool = False) -> list[dict[str, Any]]:
        """Every method minus `reference` at each point, paired by seed, with band and verdict; `correct`: verdicts that
        hold for all rows together (`statistics.holm`)."""
        rows, gaps = [], []
        for at, methods in self.each():
            against = methods[choose("method of this study", reference, methods)]
            for name, accuracies in methods.items():
                if name != reference and set(accuracies) & set(against):
                    gap = difference(accuracies, against)
                    gaps.append(gap)
                    rows.append({**at, "method": name, "minus": reference, "seeds": gap.n, "difference": gap.mean,
                                 "band": gap.half_width, "verdict": gap.verdict})  # fmt: skip
        for row, verdict in zip(rows, holm(gaps) if correct else (), strict=correct):
            row["verdict"] = verdict
        return rows

    def ranks(self) -> list[dict[str, Any]]:
        """Mean rank of each method at each point, over the seeds that all have; 1 is best."""
        ranks = (
            (at, name, rank)
            for at, methods in self.each()
            for name, rank in mean_ranks(methods).items()
        )
        return [{**at, "method": name, "rank": rank} for at, name, rank in ranks]

    def choose(self, axis: str) -> list[dict[str, Any]]:
        """For each method and each point of the other axes: the value of `axis` that is best on validation images (mean
        over seeds), and the test accuracy of that choice alone."""
        choose("axis", axis, self.axes)
        names = ["method", *(name for name in self.axes if name != axis)]
        tried: dict[tuple[tuple[str, Any], ...], dict[Any, list[dict[str, Any]]]] = {}
        for row in self.rows:
            if not row.get("error") and row.get(axis) is not None:
                lacking = (
                    f"{row['method']} has no validation accuracy here, so {axis} cannot be chosen."
                )
                demand(row.get("accuracy_validation") is not None, lacking)
                place = tuple((name, row[name]) for name in names if row.get(name) is not None)
                tried.setdefault(place, {}).setdefault(row[axis], []).append(row)
        chosen = []
        for place, options in tried.items():
            validation = {
                v: fmean(row["accuracy_validation"] for row in rows) for v, rows in options.items()
            }
            best = max(validation, key=lambda value: validation[value])
            test = band([row["accuracy"] for row in options[best]])
            own = {axis: best, "validation": validation[best], "accuracy": test.mean}
            chosen.append({**dict(place), **own, "band": test.half_width, "seeds": test.n})
        return chosen

    # ------------------------------------------------------------------------------------------------ as text
    def table(self, form: str = "text") -> str:
        """Means with bands, methods down and points across, as aligned text, Markdown or LaTeX."""
        return FORM[choose("form of a table", form, FORM)](self._cells())

    def _cells(self) -> Grid:
        """The table's rows, the first one its head."""
        points = self.points(called=self.label)
        for column in sorted({key for row in self.rows for key in row if key.startswith(OTHER)}):
            called = partial(self.name_of, title=column.removeprefix(OTHER))
            for point, methods in self.points(column, called).items():
                points[point] |= methods
        heads = [
            ", ".join(map("{} = {}".format, self.shared_axes, point)) or "accuracy"
            for point in points
        ]
        names = list(dict.fromkeys(name for methods in points.values() for name in methods))
        body = [
            [
                name,
                *(accuracy_words(band(of[name])) if name in of else "" for of in points.values()),
            ]
            for name in names
        ]
        return [["method", *heads], *body]

    def parts(self) -> list[str | Grid]:
        failed = f"{len(self.failed)} of {len(self)} cells failed; see .failed."
        return [self._cells() if len(self) else "No cells.", *[failed] * bool(self.failed)]

    def plot(self, against: str = "alpha", **options: Any) -> Any:
        """A picture: against "alpha", "clients" or another axis, "bytes", "alpha x clients" or "differences"; see
        `fedlab_nb.plots.study`."""
        import fedlab_nb

        return fedlab_nb.plot_study(self, against, **options)

    # ------------------------------------------------------------------------------------------------ as files
    def save(
        self,
        folder: str | Path,
        *,
        parquet: bool = True,
        columns: Sequence[str] = (),
        force: bool = False,
    ) -> Path:
        """`results.csv` (`columns`, or all of them with COLUMNS first), `results.json` and, where pyarrow is installed,
        `results.parquet`. UsageError where files of somebody else's with these names are there, unless `force`."""
        from pandas import DataFrame

        place = expand_path(folder)
        check_replaceable([place / name for name in FILES], force=force)  # before one is written
        columns = list(
            columns or dict.fromkeys([*COLUMNS, *(key for row in self.rows for key in row)])
        )
        try:
            place.mkdir(parents=True, exist_ok=True)
            table = DataFrame(self.rows, columns=columns, dtype=object)
            csv = table.to_csv(index=False, lineterminator="\n")
            rows = [{**row, "axes": self.axes} for row in self.rows]
            write_file(place / "results.csv", csv, force=force)
            write_file(place / "results.json", json.dumps(rows, indent=1), force=force)
            if parquet and find_spec("pyarrow"):
                with open_replacement(place / "results.parquet", force=force) as part:
                    DataFrame(self.rows).to_parquet(part, index=False)
        except OSError as error:
            raise FedlabError(
                f"The results could not be written to {place}: {error}; what was computed is in the store."
            ) from None
        return place

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """The results that `save` wrote; UsageError where there are none."""
        path = expand_path(folder) / "results.json"
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            axes = [row.pop("axes") for row in rows]
            return cls(rows, axes[0] if axes else ())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} has no results of a study: {error}.") from None


def accuracy_words(of: Band) -> str:
    """0.8342 ± 0.021 -> '83.4 ± 2.1'."""
    return f"{100 * of.mean:.1f}" + (
        "" if math.isnan(of.half_width) else f" ± {100 * of.half_width:.1f}"
    )


def numeric(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Of each column, whether it has numbers and nothing else."""
    return [
        all(re.match(r"[+−-]?\d|-?$", cell) for cell in column)
        for column in zip(*rows[1:], strict=True)
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of text; columns of numbers end together, the others begin together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["><"[not right] for right in numeric(rows)]
    return "\n".join(
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Cells as HTML, the first row as its head."""
    sides = ["right" if right else "left" for right in numeric(rows)]
    lines: list[str] = []
    for row in rows:
        tag, scope = ("td", "") if lines else ("th", ' scope="col"')
        cells = zip(row, sides, strict=True)
        line = "".join(
            f'<{tag}{scope} style="text-align:{side}">{escape(cell)}</{tag}>'
            for cell, side in cells
        )
        lines.append(f"<tr>{line}</tr>")
    return f"<table>{''.join(lines)}</table>"


def latex(rows: Sequence[Sequence[str]]) -> str:
    def line(row: Sequence[str]) -> str:
        return (
            " & ".join(
                cell.replace("_", "\\_").replace("%", "\\%").replace("±", "$\\pm$") for cell in row
            )
            + r" \\"
        )

    columns, (head, *body) = "l" + "r" * (len(rows[0]) - 1), map(line, rows)
    begin, rule = f"\\begin{{tabular}}{{{columns}}}", r"\hline"
    return "\n".join([begin, rule, head, rule, *body, rule, r"\end{tabular}"])


FORM = {"text": aligned, "markdown": markdown, "latex": latex}


# ------------------------------------------------------------------------------------------------ of outcomes
def data_size(count: float) -> str:
    """Bytes in decimal units: 26280 -> '26.3 kB'."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}"


NUMBERS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "accuracy": ("accuracy", lambda share: f"{100 * share:.1f} %"),
    "bytes_up": ("up", data_size),
    "bytes_down": ("down", data_size),
    "parameters": ("parameters", lambda count: f"{count:,}".replace(",", " ")),
    "seconds_total": ("seconds", lambda seconds: f"{seconds:.2f}"),
}


BALANCED: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "balanced_accuracy": ("balanced accuracy", lambda share: f"{100 * share:.1f} %"),
}


class Table(Shown, list):
    """Rows, each a dict with the keys that the command line prints. It shows the commonest of them; `rows[0]` and
    `pandas.DataFrame(rows)` have all.
    """

    is_unequal: bool = False  # whether classes have unequal sizes: balanced accuracy stands first

    def __getitem__(self, at: Any) -> Any:
        part = super().__getitem__(at)
        if not isinstance(at, slice):
            return part
        rows = Table(part)
        rows.is_unequal = self.is_unequal
        return rows

    def parts(self) -> list[str | Grid]:
        """What all rows share, in words; then the head and the lines."""
        if not self:
            return ["No outcomes."]
        there = {name for row in self for name in row}
        same = [
            name
            for name in WHAT
            if name in there and len({str(row.get(name)) for row in self}) == 1
        ]
        words: dict[str, tuple[str, Callable]] = {
            name: (name, str) for name in (*ALWAYS, *WHAT) if name not in same
        }
        numbers = {**BALANCED, **NUMBERS} if self.is_unequal else NUMBERS
        shown = {name: own for name, own in {**words, **numbers}.items() if name in there}
        titles = [label_of(row.get("method"), row.get("extras"), row.get("method")) for row in self]
        rows = [{**row, "method": title} for row, title in zip(self, titles, strict=True)]
        body = [
            ["" if row.get(n) is None else form(row[n]) for n, (_, form) in shown.items()]
            for row in rows
        ]
        shared = ", ".join(f"{name} {self[0][name]}" for name in same)
        return [*[shared] * bool(shared), [[head for head, _ in shown.values()], *body]]


class Outcomes(Shown, list):
    """Outcomes of a comparison. A notebook or a terminal shows them as a table."""

    def table(self) -> Table:
        """One row an outcome: a list of dicts with the keys that the command line prints, shown as a table."""
        rows = Table(outcome.to_json() for outcome in self)
        rows.is_unequal = any(outcome.has_unequal_classes for outcome in self)
        return rows

    def parts(self) -> list[str | Grid]:
        return self.table().parts()

    def mean(self, method: str) -> float:
        """Mean test accuracy of `method` over the seeds."""
        values = [outcome.accuracy for outcome in self if outcome.method == method]
        if not values:
            raise FedlabError(
                f"No outcome of {method!r} is here; there are: {', '.join({o.method for o in self})}."
            )
        return sum(values) / len(values)

    def difference(self, method: str, minus: str, *, images: bool = False) -> Band:
        """Accuracy of `method` less that of `minus`, paired by seed. The test images are the same for every seed;
        `images`: the band is for other test images as well (`statistics.over_images`)."""
        right: dict[str, dict[int, np.ndarray]] = {o.method: {} for o in self}
        for o in self:
            right[o.method][o.settings.seed] = (o.test_predictions == o.test_labels).astype(float)
        one, other = (
            right[choose("method of this comparison", name, right)] for name in (method, minus)
        )
        demand(
            seeds := sorted(set(one) & set(other)), f"{method} and {minus} have no seed in common."
        )
        gaps = np.array([one[seed] - other[seed] for seed in seeds])
        return over_images(gaps) if images else band(gaps.mean(1).tolist())
