"""What a study gives: tidy rows, one a cell, and what can be said of them; and the table of a comparison's outcomes.

results.summary()                         means over seeds with 95 % bands
results.differences("fedavg")             every method against one, paired by seed
results.choose("fens.rounds")             the best value on validation images, its test accuracy shown once
results.table("markdown"), .table("latex"), .plot("alpha"), .save("folder")
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ..errors import FedlabError, UsageError, choose
from ..files import check_replaceable, expand_path, open_replacement, write_file
from ..methods import METHODS, label_of
from .outcome import QUALITY
from .statistics import (
    Band,
    band,
    compute_band_over_images,
    compute_mean_ranks,
    correct_verdicts_by_holm,
    difference,
)
from .text_tables import FORMATS, Grid, Printable, data_size

# What every row begins with; then come the study's axes and the whole setting.
COLUMNS = (
    "method",
    "dataset",
    "alpha",
    "clients",
    "seed",
    "preset",
    "accuracy",
    "bytes_up",
    "bytes_down",
    "seconds_total",
)
# Columns of a shown table that are said once, above it, where they are the same in all rows.
CONDITIONS = ("dataset", "partition", "alpha", "clients", "preset", "device")
ALWAYS = ("method", "seed")
FILES = ("results.csv", "results.json", "results.parquet")
OTHER = "accuracy by "  # begins the columns of accuracies under another rule (`Report.others`)
# {name of a method: {seed: value}}
BySeed = dict[str, dict[int, float]]
Point = tuple[Any, ...]  # where a cell stands: its values of the shared axes
Naming = Callable[[Mapping[str, Any]], str]  # gives a row of results its name


class Results(Printable):
    """Rows of a study; each row is a flat dict. `axes`: the names of what varies, without method and seed."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], axes: Sequence[str] = ()) -> None:
        self.rows = [dict(row) for row in rows]
        self.axes = tuple(axes)

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
        columns = sorted({name for row in self.rows for name in row})
        for name in values:
            choose("column", name, columns)
        rows = []
        for row in self.rows:
            if all(row.get(name) == value for name, value in values.items()):
                rows.append(row)
        return Results(rows, self.axes)

    # ------------------------------------------------------------------------------------------------ in numbers
    def points(self, value: str = "accuracy", naming: Naming | None = None) -> dict[Point, BySeed]:
        """`{values of the shared axes: {method with its own fields: {seed: value}}}`, failed cells left out.

        value: the column
        naming: gives a row's name, `name_row` unless it is given
        """
        naming = naming or self.name_row
        points: dict[tuple[Any, ...], BySeed] = {}
        for row in self.rows:
            if row.get("error") or row.get(value) is None:
                continue
            position = tuple(row.get(name) for name in self.shared_axes)
            methods = points.setdefault(position, {})
            methods.setdefault(naming(row), {})[int(row["seed"])] = float(row[value])
        return points

    def iterate_points(self) -> Iterator[tuple[dict[str, Any], BySeed]]:
        """What `points` gives, with the shared axes by name."""
        for position, methods in self.points().items():
            yield dict(zip(self.shared_axes, position, strict=True)), methods

    @property
    def shared_axes(self) -> tuple[str, ...]:
        """The axes of all methods; those of one method have its name before a dot."""
        return tuple(name for name in self.axes if "." not in name)

    def name_row(self, row: Mapping[str, Any], title: str = "") -> str:
        """The method, with the values of its own axes: `fens (rounds = 10)`. `title`: in the place of the registered
        name, and of what gives it that title."""
        method = row["method"]
        in_title: list[str] = []  # axes that the title speaks of
        if title:
            for setting in METHODS[method].info.titles:
                knob, _, _ = setting.partition("=")
                in_title.append(f"{method}.{knob}")
        values = []
        for axis in self.axes:
            owner, _, knob = axis.partition(".")
            if owner == method and knob and axis not in in_title:
                values.append(f"{knob} = {row.get(axis)}")
        name = title or method
        return f"{name} ({', '.join(values)})" if values else name

    def label(self, row: Mapping[str, Any]) -> str:
        """What tables and pictures call it: as `name_row`, or by the title that its settings give it."""
        method = row["method"]
        options = json.loads(row.get("options") or "{}")
        title = label_of(method, {**options, **row}, method)
        return self.name_row(row, "" if title == method else title)

    def summary(self) -> list[dict[str, Any]]:
        """Mean test accuracy with its 95 % band over seeds, mean bytes and QUALITY, of each method at each point."""
        columns = {"validation": self.points("accuracy_validation")}
        for name in ("bytes_up", "bytes_down", *QUALITY):
            columns[name] = self.points(name)
        rows = []
        for axes, methods in self.iterate_points():
            for name, accuracies in methods.items():
                test = band(accuracies)
                row = {
                    **axes,
                    "method": name,
                    "seeds": test.n,
                    "accuracy": test.mean,
                    "band": test.half_width,
                }
                for column, points in columns.items():
                    values = points.get(tuple(axes.values()), {}).get(name)
                    row[column] = fmean(values.values()) if values else math.nan
                rows.append(row)
        return rows

    def differences(self, reference: str, *, correct: bool = False) -> list[dict[str, Any]]:
        """Every method minus `reference` at each point, paired by seed, with band and verdict; `correct`: verdicts that
        hold for all rows together (`statistics.holm`)."""
        rows = []
        gaps = []
        for axes, methods in self.iterate_points():
            of_reference = methods[choose("method of this study", reference, methods)]
            for name, accuracies in methods.items():
                if name == reference or not set(accuracies) & set(of_reference):
                    continue
                gap = difference(accuracies, of_reference)
                gaps.append(gap)
                rows.append(
                    {
                        **axes,
                        "method": name,
                        "minus": reference,
                        "seeds": gap.n,
                        "difference": gap.mean,
                        "band": gap.half_width,
                        "verdict": gap.verdict,
                    }
                )
        if correct:
            for row, verdict in zip(rows, correct_verdicts_by_holm(gaps), strict=True):
                row["verdict"] = verdict
        return rows

    def ranks(self) -> list[dict[str, Any]]:
        """Mean rank of each method at each point, over the seeds that all have; 1 is best."""
        rows = []
        for axes, methods in self.iterate_points():
            for name, rank in compute_mean_ranks(methods).items():
                rows.append({**axes, "method": name, "rank": rank})
        return rows

    def choose(self, axis: str) -> list[dict[str, Any]]:
        """For each method and each point of the other axes: the value of `axis` that is best on validation images (mean
        over seeds), and the test accuracy of that choice alone."""
        choose("axis", axis, self.axes)
        chosen = []
        for other_values, options in self._group_by_value(axis).items():
            validation = {}
            for value, rows in options.items():
                validation[value] = fmean(row["accuracy_validation"] for row in rows)
            best = max(validation, key=lambda value: validation[value])
            test = band([row["accuracy"] for row in options[best]])
            chosen.append(
                {
                    **dict(other_values),
                    axis: best,
                    "validation": validation[best],
                    "accuracy": test.mean,
                    "band": test.half_width,
                    "seeds": test.n,
                }
            )
        return chosen

    def _group_by_value(
        self, axis: str
    ) -> dict[tuple[tuple[str, Any], ...], dict[Any, list[dict[str, Any]]]]:
        """`{(method and the other axes, as (name, value)): {value of axis: rows}}`; UsageError for a row without a
        validation accuracy."""
        names = ["method", *(name for name in self.axes if name != axis)]
        groups: dict[tuple[tuple[str, Any], ...], dict[Any, list[dict[str, Any]]]] = {}
        for row in self.rows:
            if row.get("error") or row.get(axis) is None:
                continue
            if row.get("accuracy_validation") is None:
                raise UsageError(
                    f"{row['method']} has no validation accuracy here, so {axis} cannot be chosen."
                )
            other_values = tuple((name, row[name]) for name in names if row.get(name) is not None)
            groups.setdefault(other_values, {}).setdefault(row[axis], []).append(row)
        return groups

    # ------------------------------------------------------------------------------------------------ as text
    def table(self, form: str = "text") -> str:
        """Means with bands, methods down and points across, as aligned text, Markdown or LaTeX."""
        return FORMATS[choose("form of a table", form, FORMATS)](self._make_cells())

    def _make_cells(self) -> Grid:
        """The table's rows, the first one its head."""
        points = self.points(naming=self.label)
        columns = {name for row in self.rows for name in row}
        for column in sorted(columns):
            if column.startswith(OTHER):
                called = partial(self.name_row, title=column.removeprefix(OTHER))
                for position, methods in self.points(column, called).items():
                    points[position] |= methods
        head = ["method"]
        for position in points:
            values = zip(self.shared_axes, position, strict=True)
            head.append(", ".join(f"{axis} = {value}" for axis, value in values) or "accuracy")
        names = list(dict.fromkeys(name for methods in points.values() for name in methods))
        cells = [head]
        for name in names:
            row = [name]
            for methods in points.values():
                row.append(format_accuracy(band(methods[name])) if name in methods else "")
            cells.append(row)
        return cells

    def parts(self) -> list[str | Grid]:
        parts: list[str | Grid] = [self._make_cells() if len(self) else "No cells."]
        if self.failed:
            parts.append(f"{len(self.failed)} of {len(self)} cells failed; see .failed.")
        return parts

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

        path = expand_path(folder)
        check_replaceable([path / name for name in FILES], force=force)  # before one is written
        if not columns:
            names = [name for row in self.rows for name in row]
            columns = list(dict.fromkeys([*COLUMNS, *names]))
        try:
            path.mkdir(parents=True, exist_ok=True)
            table = DataFrame(self.rows, columns=list(columns), dtype=object)
            csv = table.to_csv(index=False, lineterminator="\n")
            rows = [{**row, "axes": self.axes} for row in self.rows]
            write_file(path / "results.csv", csv, force=force)
            write_file(path / "results.json", json.dumps(rows, indent=1), force=force)
            if parquet and find_spec("pyarrow"):
                with open_replacement(path / "results.parquet", force=force) as part:
                    DataFrame(self.rows).to_parquet(part, index=False)
        except OSError as error:
            raise FedlabError(
                f"The results could not be written to {path}: {error}; what was computed is in the store."
            ) from None
        return path

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


def format_accuracy(accuracy: Band) -> str:
    """0.8342 ± 0.021 -> '83.4 ± 2.1'."""
    mean = f"{100 * accuracy.mean:.1f}"
    if math.isnan(accuracy.half_width):
        return mean
    return f"{mean} ± {100 * accuracy.half_width:.1f}"


# ------------------------------------------------------------------------------------------------ of outcomes
def format_share(share: float) -> str:
    """0.8342 -> '83.4 %'."""
    return f"{100 * share:.1f} %"


def format_count(count: int) -> str:
    """12345 -> '12 345'."""
    return f"{count:,}".replace(",", " ")


# Columns of a shown table: {name in a row: (head, how a value is written)}.
ShownColumns = Mapping[str, tuple[str, Callable[[Any], str]]]
NUMBERS: ShownColumns = {
    "accuracy": ("accuracy", format_share),
    "bytes_up": ("up", data_size),
    "bytes_down": ("down", data_size),
    "parameters": ("parameters", format_count),
    "seconds_total": ("seconds", "{:.2f}".format),
}
# Where classes have unequal sizes, this stands first.
BALANCED: ShownColumns = {"balanced_accuracy": ("balanced accuracy", format_share)}


class Table(Printable, list):
    """Rows, each a dict with the keys that the command line prints. It shows the commonest of them; `rows[0]` and
    `pandas.DataFrame(rows)` have all.
    """

    is_unequal: bool = False  # whether classes have unequal sizes: balanced accuracy stands first

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        if not isinstance(index, slice):
            return item
        rows = Table(item)
        rows.is_unequal = self.is_unequal
        return rows

    def parts(self) -> list[str | Grid]:
        """What all rows share, in words; then the head and the lines."""
        if not self:
            return ["No outcomes."]
        names = {name for row in self for name in row}
        shared = []
        for name in CONDITIONS:
            if name in names and len({str(row.get(name)) for row in self}) == 1:
                shared.append(name)
        columns: dict[str, tuple[str, Callable[[Any], str]]] = {}
        for name in (*ALWAYS, *CONDITIONS):
            if name in names and name not in shared:
                columns[name] = (name, str)
        numbers = {**BALANCED, **NUMBERS} if self.is_unequal else NUMBERS
        columns |= {name: column for name, column in numbers.items() if name in names}
        cells = [[head for head, _ in columns.values()]]
        for row in self:
            title = label_of(row.get("method"), row.get("extras"), row.get("method"))
            titled = {**row, "method": title}
            line = []
            for name, (_, write) in columns.items():
                line.append("" if titled.get(name) is None else write(titled[name]))
            cells.append(line)
        if not shared:
            return [cells]
        return [", ".join(f"{name} {self[0][name]}" for name in shared), cells]


class Outcomes(Printable, list):
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
            methods = ", ".join({outcome.method for outcome in self})
            raise FedlabError(f"No outcome of {method!r} is here; there are: {methods}.")
        return sum(values) / len(values)

    def difference(self, method: str, minus: str, *, images: bool = False) -> Band:
        """Accuracy of `method` less that of `minus`, paired by seed. The test images are the same for every seed;
        `images`: the band is for other test images as well (`statistics.compute_band_over_images`)."""
        right: dict[str, dict[int, np.ndarray]] = {}  # by method and seed, 1.0 where it is right
        for outcome in self:
            is_right = outcome.test_predictions == outcome.test_labels
            right.setdefault(outcome.method, {})[outcome.settings.seed] = is_right.astype(float)
        of_method = right[choose("method of this comparison", method, right)]
        of_minus = right[choose("method of this comparison", minus, right)]
        seeds = sorted(set(of_method) & set(of_minus))
        if not seeds:
            raise UsageError(f"{method} and {minus} have no seed in common.")
        gaps = np.array([of_method[seed] - of_minus[seed] for seed in seeds])
        if images:
            return compute_band_over_images(gaps)
        return band(gaps.mean(1).tolist())
