"""The results of a study: tidy rows, one for each cell, and their statistics; and the table of a
comparison.

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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..errors import FedlabError, UsageError, check_allowed_name
from ..files import check_replaceable, expand_path, replace_file_at_end_of_block, write_file
from ..methods import METHODS, choose_method_label
from ..studies.statistics import ValuesBySeed
from ..value_types import Accuracy0To1, SettingsByName, SettingValue
from .outcome import QUALITY
from .statistics import (
    Band,
    compute_band,
    compute_band_over_images,
    compute_mean_ranks,
    difference,
    list_verdicts_with_holm_correction,
)
from .text_tables import FORMATS, Paragraph, Printable, TextTable, format_data_size

if TYPE_CHECKING:
    from ..plots.style import Picture

# The first columns of every row; then come the study's axes and all settings.
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
# Columns that are written once, above a shown table, if they are the same in all rows.
CONDITIONS = ("dataset", "partition", "alpha", "clients", "preset", "device")
ALWAYS = ("method", "seed")
FILES = ("results.csv", "results.json", "results.parquet")
OTHER = "accuracy by "  # prefix of the columns of accuracies under another rule (of a `Report`)
# {name of a method: {seed: value}}
MethodValuesBySeed = dict[str, ValuesBySeed]
Point = tuple[SettingValue, ...]  # a cell's values of the shared axes
ResultsRow = dict[str, SettingValue]  # a cell's axes, settings and measures by column
ValuesByPoint = dict[Point, MethodValuesBySeed]
Naming = Callable[[ResultsRow], str]  # gives a row of results its name
# Rows of the tables of a study. Each has the method, the point (the values of the shared axes), and:
# the means over seeds with their bands
SummaryRow = dict[str, SettingValue]
# the difference from the reference, with its band and verdict
DifferenceRow = dict[str, SettingValue]
# the mean rank
RankRow = dict[str, SettingValue]
# the value that was chosen on validation images, with its test accuracy
ChoiceRow = dict[str, SettingValue]
# The name and the value of the method and of each axis but one.
OtherAxisValues = tuple[tuple[str, SettingValue], ...]
RowsBySettingAndAxisValue = dict[OtherAxisValues, dict[SettingValue, list[ResultsRow]]]


class Results(Printable):
    """The rows of a study; each row is a flat dict. `axes`: the settings that vary, besides method
    and seed.
    """

    def __init__(
        self, rows: Iterable[Mapping[str, SettingValue]], axes: Sequence[str] = ()
    ) -> None:
        self.rows = [dict(row) for row in rows]
        self.axes = tuple(axes)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    @property
    def failed(self) -> list[ResultsRow]:
        """The rows of cells that ended in an error, with its reason under `error`."""
        return [row for row in self.rows if row.get("error")]

    def select(self, **values: SettingValue) -> Results:
        """The rows whose columns have these values: `select(alpha=0.1, method="fens")`."""
        columns = sorted({name for row in self.rows for name in row})
        for name in values:
            check_allowed_name("column", name, columns)
        rows = []
        for row in self.rows:
            if all(row.get(name) == value for name, value in values.items()):
                rows.append(row)
        return Results(rows, self.axes)

    # ------------------------------------------------------------------------------------------------ in numbers
    def points(self, value: str = "accuracy", naming: Naming | None = None) -> ValuesByPoint:
        """`{values of the shared axes: {name of the row: {seed: value}}}`, without failed cells.

        value: the column
        naming: a function that names a row; by default `format_method_with_axis_values`
        """
        naming = naming or self.format_method_with_axis_values
        points: dict[Point, MethodValuesBySeed] = {}
        for row in self.rows:
            if row.get("error") or row.get(value) is None:
                continue
            position = tuple(row.get(name) for name in self.shared_axes)
            methods = points.setdefault(position, {})
            methods.setdefault(naming(row), {})[int(row["seed"])] = float(row[value])
        return points

    def iterate_values_by_point(
        self,
    ) -> Iterator[tuple[SettingsByName, MethodValuesBySeed]]:
        """Yield the items of `points()`, with the shared axes by name."""
        for position, methods in self.points().items():
            yield dict(zip(self.shared_axes, position, strict=True)), methods

    @property
    def shared_axes(self) -> tuple[str, ...]:
        """The axes that all methods share; an axis of a single method is called "METHOD.knob"."""
        return tuple(name for name in self.axes if "." not in name)

    def format_method_with_axis_values(self, row: ResultsRow, title: str = "") -> str:
        """The method, with the values of its own axes: `fens (rounds = 10)`.

        title: replaces the registered name; axes that the title mentions are then left out
        """
        method = row["method"]
        in_title: list[str] = []  # axes that the title mentions
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
        if not values:
            return name
        return f"{name} ({', '.join(values)})"

    def label(self, row: ResultsRow) -> str:
        """The name of a row in tables and pictures, with the title that its settings give it."""
        method = row["method"]
        options = json.loads(row.get("options") or "{}")
        title = choose_method_label(method, {**options, **row}, method)
        return self.format_method_with_axis_values(row, "" if title == method else title)

    def summary(self) -> list[SummaryRow]:
        """Mean test accuracy with its 95 % band over seeds, mean bytes and QUALITY, of each method
        at each point.
        """
        columns = {"validation": self.points("accuracy_validation")}
        for name in ("bytes_up", "bytes_down", *QUALITY):
            columns[name] = self.points(name)
        rows = []
        for axes, methods in self.iterate_values_by_point():
            for name, accuracies in methods.items():
                test = compute_band(accuracies)
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

    def differences(self, reference: str, *, correct: bool = False) -> list[DifferenceRow]:
        """Every method minus `reference` at each point, paired by seed, with band and verdict.

        correct: whether the verdicts must hold for all rows together (Holm's correction)
        """
        rows = []
        gaps = []
        for axes, methods in self.iterate_values_by_point():
            reference_accuracies = methods[
                check_allowed_name("method of this study", reference, methods)
            ]
            for name, accuracies in methods.items():
                common_seeds = set(accuracies) & set(reference_accuracies)
                if name == reference or not common_seeds:
                    continue
                gap = difference(accuracies, reference_accuracies)
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
            for row, verdict in zip(rows, list_verdicts_with_holm_correction(gaps), strict=True):
                row["verdict"] = verdict
        return rows

    def ranks(self) -> list[RankRow]:
        """Mean rank of each method at each point, over the seeds that all methods have; 1 is best."""
        rows = []
        for axes, methods in self.iterate_values_by_point():
            for name, rank in compute_mean_ranks(methods).items():
                rows.append({**axes, "method": name, "rank": rank})
        return rows

    def choose(self, axis: str) -> list[ChoiceRow]:
        """For each method and each point of the other axes, choose the best value of `axis`.

        The best value has the highest mean accuracy over seeds on validation images. Only the test
        accuracy of that value is shown.
        """
        check_allowed_name("axis", axis, self.axes)
        choices = []
        for other_values, options in self._group_rows_by_setting_and_axis_value(axis).items():
            validation = {}
            for value, rows in options.items():
                validation[value] = fmean(row["accuracy_validation"] for row in rows)
            best = max(validation, key=lambda value: validation[value])
            test = compute_band([row["accuracy"] for row in options[best]])
            choices.append(
                {
                    **dict(other_values),
                    axis: best,
                    "validation": validation[best],
                    "accuracy": test.mean,
                    "band": test.half_width,
                    "seeds": test.n,
                }
            )
        return choices

    def _group_rows_by_setting_and_axis_value(self, axis: str) -> RowsBySettingAndAxisValue:
        """`{((name, value) of the method and of each other axis): {value of axis: rows}}`.

        UsageError for a row without a validation accuracy.
        """
        names = ["method", *(name for name in self.axes if name != axis)]
        groups: dict[OtherAxisValues, dict[SettingValue, list[ResultsRow]]] = {}
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
    def table(self, form: Literal["text", "markdown", "latex"] = "text") -> str:
        """Means with bands, methods down and points across, as aligned text, Markdown or LaTeX."""
        return FORMATS[check_allowed_name("form of a table", form, FORMATS)](
            self._make_table_cells()
        )

    def _make_table_cells(self) -> TextTable:
        """Make the table's rows; the first one is its header."""
        points = self.points(naming=self.label)
        columns = {name for row in self.rows for name in row}
        for column in sorted(columns):
            if column.startswith(OTHER):
                rule = column.removeprefix(OTHER)
                naming = partial(self.format_method_with_axis_values, title=rule)
                for position, methods in self.points(column, naming).items():
                    points[position] |= methods
        header = ["method"]
        names: dict[str, None] = {}  # used as an ordered set
        for position, methods in points.items():
            values = zip(self.shared_axes, position, strict=True)
            header.append(", ".join(f"{axis} = {value}" for axis, value in values) or "accuracy")
            names |= dict.fromkeys(methods)
        cells = [header]
        for name in names:
            row = [name]
            for methods in points.values():
                if name in methods:
                    row.append(format_accuracy_band_in_percent(compute_band(methods[name])))
                else:
                    row.append("")
            cells.append(row)
        return cells

    def make_paragraphs_and_tables(self) -> list[Paragraph | TextTable]:
        parts: list[Paragraph | TextTable] = [
            self._make_table_cells() if len(self) else "No cells."
        ]
        if self.failed:
            parts.append(f"{len(self.failed)} of {len(self)} cells failed; see .failed.")
        return parts

    def plot(self, against: str = "alpha", **options: object) -> Picture:
        """Draw the accuracies against "alpha", "clients" or another axis, or "bytes"; "alpha x
        clients" draws a map, "differences" the differences. See `fedlab_nb.plots.study`.
        """
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
        """Write `results.csv`, `results.json` and, if pyarrow is installed, `results.parquet`.

        columns: those of `results.csv`; by default all, COLUMNS first

        UsageError if files with these names are there that the package did not write, unless
        `force`.
        """
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
                with replace_file_at_end_of_block(path / "results.parquet", force=force) as part:
                    DataFrame(self.rows).to_parquet(part, index=False)
        except OSError as error:
            raise FedlabError(
                f"The results could not be written to {path}: {error}; what was computed is in the "
                "store."
            ) from None
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """The results that `save` wrote; UsageError if there are none."""
        path = expand_path(folder) / "results.json"
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            axes = [row.pop("axes") for row in rows]
            return cls(rows, axes[0] if axes else ())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} has no results of a study: {error}.") from None


def format_accuracy_band_in_percent(accuracy: Band) -> str:
    """0.8342 ± 0.021 -> '83.4 ± 2.1'."""
    mean = f"{100 * accuracy.mean:.1f}"
    if math.isnan(accuracy.half_width):
        return mean
    return f"{mean} ± {100 * accuracy.half_width:.1f}"


# ------------------------------------------------------------------------------------------------ of outcomes
def format_share_as_percent(share: float) -> str:
    """0.8342 -> '83.4 %'."""
    return f"{100 * share:.1f} %"


def format_count_with_thin_spaces(count: int) -> str:
    """12345 -> '12 345'."""
    return f"{count:,}".replace(",", " ")


# Columns of a shown table: {name in a row: (head, how a value is written)}.
ShownColumns = Mapping[str, tuple[str, Callable[[Any], str]]]
NUMBERS: ShownColumns = {
    "accuracy": ("accuracy", format_share_as_percent),
    "bytes_up": ("up", format_data_size),
    "bytes_down": ("down", format_data_size),
    "parameters": ("parameters", format_count_with_thin_spaces),
    "seconds_total": ("seconds", "{:.2f}".format),
}
# The first of the numbers if classes have unequal sizes.
BALANCED: ShownColumns = {"balanced_accuracy": ("balanced accuracy", format_share_as_percent)}


class Table(Printable, list):
    """Rows, each a dict with the keys that the command line prints.

    The shown table has only the most important of these keys; `rows[0]` and
    `pandas.DataFrame(rows)` have all.
    """

    is_unequal: bool = (
        False  # whether classes have unequal sizes; balanced accuracy then comes first
    )

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        if not isinstance(index, slice):
            return item
        rows = Table(item)
        rows.is_unequal = self.is_unequal
        return rows

    def make_paragraphs_and_tables(self) -> list[Paragraph | TextTable]:
        """The values that all rows share, as text; then the table's header and rows."""
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
            title = choose_method_label(row.get("method"), row.get("extras"), row.get("method"))
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
        """One row an outcome: a list of dicts with the keys that the command line prints, shown as
        a table.
        """
        rows = Table(outcome.to_json() for outcome in self)
        rows.is_unequal = any(outcome.has_unequal_classes for outcome in self)
        return rows

    def make_paragraphs_and_tables(self) -> list[Paragraph | TextTable]:
        return self.table().make_paragraphs_and_tables()

    def mean(self, method: str) -> Accuracy0To1:
        """Mean test accuracy of `method` over the seeds."""
        values = [outcome.accuracy for outcome in self if outcome.method == method]
        if not values:
            methods = ", ".join({outcome.method for outcome in self})
            raise FedlabError(f"No outcome of {method!r} is here; there are: {methods}.")
        return sum(values) / len(values)

    def difference(self, method: str, minus: str, *, images: bool = False) -> Band:
        """Accuracy of `method` minus that of `minus`, paired by seed.

        The test images are the same for every seed.

        images: whether the band covers other test images, too (`compute_band_over_images`)
        """
        scores: dict[
            str, dict[int, np.ndarray]
        ] = {}  # by method and seed, 1.0 for a correct answer
        for outcome in self:
            is_correct = outcome.test_predictions == outcome.test_labels
            scores.setdefault(outcome.method, {})[outcome.settings.seed] = is_correct.astype(float)
        method_scores = scores[check_allowed_name("method of this comparison", method, scores)]
        minus_scores = scores[check_allowed_name("method of this comparison", minus, scores)]
        seeds = sorted(set(method_scores) & set(minus_scores))
        if not seeds:
            raise UsageError(f"{method} and {minus} have no seed in common.")
        gaps = np.array([method_scores[seed] - minus_scores[seed] for seed in seeds])
        if images:
            return compute_band_over_images(gaps)
        return compute_band(gaps.mean(1).tolist())
