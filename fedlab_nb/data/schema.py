"""What a data set's samples looked like before they became tensors: `Dataset.schema`.

    data = fl.load("patients.csv")
    data.schema.encode("new_patients.csv")        # float32 [N, D], prepared as the training rows
    InputSchema.from_json(data.schema.to_json())  # the same schema, from a file

A schema travels with the data set and with a saved model. The loaders themselves make their
features by `encode`, so that a new row passes through exactly what the training rows did. It keeps
no rows: names, means, scales, lists of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data import cells, columns, pictures
from fedlab_nb.data.columns import LEFT_OUT, Column
from fedlab_nb.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame

TABLE = "table"
FEATURES = "features"
RECORDINGS = "recordings"
IMAGES = "images"
SCHEMA_VERSION = 1
FILE_OPTIONS = ("sep", "encoding", "sheet", "header")  # of a file of new rows
SHOWN = 8  # names that a sentence lists


@dataclass(frozen=True)
class InputSchema:
    """How raw samples become the tensors of a data set.

    kind:         "table", "features" (arrays [N, D]), "recordings" ([N, C, T]) or "images"
                  ([N, C, H, W])
    input_shape:  of a sample: (D,), (C, T) or (C, H, W)
    class_names:  in the order of the labels 0..C-1
    columns:      of a table: all that are no label, client, split or group, in order, those left
                  out included; of features and recordings: a number for each feature or channel
    names:        of a table: all columns of the file, in order
    has_header:   whether the file had names in its first line; if not, the columns are taken by
                  their place
    label, client, split, group: of a table: the columns that say so, "" for none
    client_names: of the clients that the data name
    missing:      texts that the person counts as missing; none: the usual ones (`data/cells.py`)
    pixels:       of images: from which range they come
    """

    kind: str
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    names: tuple[str, ...] = ()
    has_header: bool = True
    label: str = ""
    client: str = ""
    split: str = ""
    group: str = ""
    client_names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    pixels: pictures.PixelScale | None = None

    # ------------------------------------------------------------------------------------- raw rows
    def encode(self, rows: Any) -> np.ndarray:
        """float32 `[N, D]`, `[N, C, T]` or `[N, C, H, W]` of raw rows, prepared as the training
        rows were.

        rows: of a table, a DataFrame, a dict or a list of dicts (by name), an array or a list of
        rows (by place), or the path of a file; of arrays, an array, a tensor or a list in the
        numbers of the training arrays; of images, arrays, or paths of picture files. One sample is
        a batch of one.

        Columns are found by name: their order is free, and surplus ones are left aside. Raises
        UsageError, in one sentence, for a missing column, a cell that cannot be read, or a category
        that the training rows do not have.
        """
        if self.kind == TABLE:
            table = self.read_rows(rows)
            if not len(table):
                raise UsageError("There are no rows; give one row or more.")
            return self.encode_table(table)
        if self.kind == IMAGES:
            return self.encode_images(rows)
        return self.encode_numbers(rows)

    def read_rows(self, rows: Any) -> DataFrame:
        """The columns that become features, in order, as texts and numbers; the index says in which
        line they stand."""
        if isinstance(rows, str | PathLike):
            from fedlab_nb.data import files

            name, options_of_path = files.split_options(rows)
            options = {} if self.has_header else {"header": "no"}
            options |= files.check_options(options_of_path, FILE_OPTIONS, "new rows")
            table = files.read_table(Path(name), options).cells
        else:
            table = cells.to_cells(cells.make_table(rows, self.choose_names(rows)))
            table.index = table.index + 1
        if not self.has_header and list(table.columns) != list(self.names):
            if table.shape[1] == len(self.names):
                table = table.set_axis(list(self.names), axis=1)
        by_name: dict[str, int] = {}
        for place, name in enumerate(table.columns):
            by_name.setdefault(make_name_key(name), place)
        needed = [column.name for column in self.columns if column.kind != LEFT_OUT]
        lacking = [name for name in needed if make_name_key(name) not in by_name]
        if lacking:
            have = ", ".join(str(name) for name in list(table.columns)[:SHOWN])
            raise UsageError(
                f"The rows lack the column {', '.join(map(repr, lacking[:SHOWN]))}; they have "
                f"{have}: add it, with empty cells where the values are not known."
            )
        places = [by_name[make_name_key(name)] for name in needed]
        return table.iloc[:, places].set_axis(needed, axis=1)

    def choose_names(self, rows: Any) -> list[str]:
        """The names of the columns of rows that have none: of those that become features, of all
        but the label and the like, or of all of the file, whichever are as many as there are values
        in a row."""
        features = [column.name for column in self.columns if column.kind != LEFT_OUT]
        inputs = [column.name for column in self.columns]
        width = count_row_values(rows)
        for names in (features, inputs, list(self.names)):
            if len(names) == width:
                return names
        return features

    def encode_table(self, table: DataFrame, strict: bool = True) -> np.ndarray:
        """float32 [N, D] of cells by column, as `read_rows` gives them."""
        parts = [np.zeros((len(table), 0))]
        for column in self.columns:
            if column.kind != LEFT_OUT:
                parts.append(columns.encode_column(column, table[column.name], strict))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def encode_numbers(self, rows: Any) -> np.ndarray:
        """float32 [N, D] or [N, C, T] of an array of raw numbers; columns of a DataFrame are found
        by name."""
        values = to_number_array(self.name_rows(rows))
        if values.ndim == len(self.input_shape):
            values = values[None]
        if self.kind == RECORDINGS and values.ndim == 3 and values.shape[1] != self.input_shape[0]:
            values = np.moveaxis(values, 2, 1)
        if values.shape[1:] != self.input_shape:
            wanted = "x".join(map(str, self.input_shape))
            raise UsageError(
                f"The samples have shape {tuple(values.shape[1:])}, but the training samples have "
                f"{wanted}; give an array [N, {', '.join(map(str, self.input_shape))}]."
            )
        return self.standardise(values)

    def name_rows(self, rows: Any) -> Any:
        """Rows with names, or in a file, as numbers in the order of the training columns; arrays
        and lists as they are. Raises UsageError for a missing column."""
        import pandas

        if isinstance(rows, Mapping):
            rows = pandas.DataFrame([dict(rows)])
        elif isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping):
            rows = pandas.DataFrame([dict(row) for row in rows])
        elif isinstance(rows, str | PathLike):
            rows = read_number_file(rows)
        if not isinstance(rows, pandas.DataFrame):
            return rows
        names = [column.name for column in self.columns]
        has_names = names != [f"feature {place}" for place in range(1, len(names) + 1)]
        if self.kind != FEATURES or not has_names:
            return rows.to_numpy()
        by_name = {make_name_key(name): name for name in rows.columns}
        lacking = [name for name in names if make_name_key(name) not in by_name]
        if lacking:
            have = ", ".join(str(name) for name in list(rows.columns)[:SHOWN])
            raise UsageError(
                f"The rows lack the column {', '.join(map(repr, lacking[:SHOWN]))}; they have "
                f"{have}: add it, or give an array whose columns stand in the order of training."
            )
        return rows[[by_name[make_name_key(name)] for name in names]].to_numpy()

    def standardise(self, values: np.ndarray) -> np.ndarray:
        """float32 of raw numbers [N, D] or [N, C, T], minus the mean, divided by the scale of each
        column or channel."""
        shape = (1, -1) if self.kind == FEATURES else (1, -1, 1)
        mean = np.array([column.mean for column in self.columns]).reshape(shape)
        scale = np.array([column.scale for column in self.columns]).reshape(shape)
        with np.errstate(over="ignore", invalid="ignore"):
            ready = ((values.astype(np.float64) - mean) / scale).astype(np.float32)
        if not np.isfinite(ready).all():
            raise UsageError(
                "The samples hold NaN, infinity, or numbers that are too large to standardise in "
                "32-bit numbers; replace or drop them."
            )
        return ready

    def encode_images(self, rows: Any) -> np.ndarray:
        """float32 [N, C, H, W] of arrays in the training images' own numbers, or of picture
        files."""
        assert self.pixels is not None
        channels, height, width = self.input_shape
        if pictures.are_pictures(rows):
            values = pictures.read_pictures(
                rows, self.pixels.mode or "RGB", (height, width), self.pixels.resized
            )
        else:
            values = to_number_array(rows)
        shapes_of_one = ((channels, height, width), (height, width, channels))
        if values.ndim == 2 or values.shape in shapes_of_one:
            values = values[None]
        if values.ndim == 3:
            values = values[:, None]
        elif values.ndim == 4 and values.shape[1:] == (height, width, channels):
            values = np.moveaxis(values, 3, 1)
        if values.shape[1:] != self.input_shape:
            raise UsageError(
                f"The images have shape {tuple(values.shape[1:])}, but the training images have "
                f"{self.input_shape} (channels, height, width); give images of that size."
            )
        self.pixels.check(values)
        return self.pixels.apply(values)

    # ----------------------------------------------------------------------------------------- JSON
    def to_json(self) -> dict[str, Any]:
        """The schema as JSON has it. `from_json` gives an equal one."""
        return {"version": SCHEMA_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> InputSchema:
        """The schema that `to_json` wrote. UsageError for one of a newer version."""
        if values.get("version", 0) > SCHEMA_VERSION:
            raise UsageError(
                "The description of the data is of a newer fedlab_nb; update the package."
            )
        names = {field.name for field in fields(cls)}
        arguments: dict[str, Any] = {}
        for name, value in values.items():
            if name in names:
                arguments[name] = tuple(value) if isinstance(value, list) else value
        columns_as_json = values.get("columns", ())
        arguments["columns"] = tuple(Column.from_json(column) for column in columns_as_json)
        if arguments.get("pixels") is not None:
            arguments["pixels"] = pictures.PixelScale(**arguments["pixels"])
        return cls(**arguments)


def make_image_schema(
    shape: tuple[int, ...], class_names: Sequence[str], high: float, number_type: str
) -> InputSchema:
    """Of images `(C, H, W)` of the package, whose raw pixels go from 0 to `high`."""
    mode = "L" if shape[0] == 1 else "RGB"
    pixels = pictures.PixelScale(0.0, float(high), number_type, mode)
    return InputSchema(IMAGES, tuple(shape), tuple(class_names), pixels=pixels)


def read_number_file(path: str | PathLike) -> DataFrame:
    """A table's file whose cells are all numbers. Raises UsageError."""
    import pandas

    from fedlab_nb.data import files

    name, options_of_path = files.split_options(path)
    options = files.check_options(options_of_path, FILE_OPTIONS, "new rows")
    table = files.read_table(Path(name), options).cells
    try:
        return table.apply(pandas.to_numeric)
    except (TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:120]
        raise UsageError(
            f"{Path(name).name} holds cells that are no numbers ({why}), but the training samples "
            "are numbers alone; correct them, or leave such columns out."
        ) from None


def make_name_key(name: Any) -> str:
    """Equal for names that are one column: case and blanks do not count."""
    return " ".join(str(name).split()).casefold()


def count_row_values(rows: Any) -> int | None:
    """How many values one of the rows has, None where that cannot be said."""
    shape = getattr(rows, "shape", None)
    if shape is not None and len(shape) in (1, 2):
        return int(shape[-1])
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        return None
    first_row = rows[0]
    is_array = hasattr(first_row, "shape") and len(first_row.shape) > 0
    if is_array or isinstance(first_row, list | tuple):
        return len(first_row)
    return len(rows)


def to_number_array(rows: Any) -> np.ndarray:
    """The numbers of an array, a tensor, a list or a DataFrame. Raises UsageError for what holds no
    numbers."""
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu().numpy()
    if isinstance(rows, np.ma.MaskedArray) and rows.mask.any():
        raise UsageError("The samples have masked values; fill or drop them.")
    try:
        values = np.asarray(rows)
        if values.dtype.kind == "O":
            values = values.astype(float)
    except (TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:120]
        raise UsageError(
            f"The samples are no array of numbers ({why}); give arrays, tensors or lists."
        ) from None
    if values.dtype.kind not in "biuf":
        raise UsageError(f"The samples hold {values.dtype}, but they must be numbers.")
    return values
