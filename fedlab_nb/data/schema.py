"""Keep how a data set's samples were turned into tensors (`Dataset.schema`), to prepare new samples
in the same way.

    data = fl.load("patients.csv")
    data.schema.encode("new_patients.csv")        # float32 [N, D], prepared as the training rows
    InputSchema.from_json(data.schema.to_json())  # the same schema, from a file

A schema is part of a data set and of a saved model. The loaders make their own features by `encode`,
so new rows are processed exactly as the training rows were. A schema keeps no rows, only names,
means, scales and lists of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from fedlab_nb.data import cells, columns, pictures
from fedlab_nb.data.array_types import FeatureArray, ImageArray, SampleArray
from fedlab_nb.data.columns import LEFT_OUT, ColumnSchema
from fedlab_nb.data.input_types import (
    ArrayLike,
    FrameDictsArrayPicturesOrPath,
    FrameDictsOrArray,
    PictureOrPath,
)
from fedlab_nb.errors import UsageError
from fedlab_nb.value_types import JsonObject, JsonValue, SampleShape

if TYPE_CHECKING:
    from pandas import DataFrame

SampleKind = Literal["table", "features", "recordings", "images"]
TABLE: Final = "table"
FEATURES: Final = "features"
RECORDINGS: Final = "recordings"
IMAGES: Final = "images"
SCHEMA_VERSION = 1
FILE_OPTIONS = ("sep", "encoding", "sheet", "header")  # of a file of new rows
SHOWN_NAMES = 8  # most names that an error message lists


@dataclass(frozen=True)
class InputSchema:
    """The conversion of raw samples to the tensors of a data set.

    kind:         "table", "features" (arrays [N, D]), "recordings" ([N, C, T]) or "images"
                  ([N, C, H, W])
    input_shape:  of a sample: (D,), (C, T) or (C, H, W)
    class_names:  in the order of the labels 0..C-1
    columns:      of a table: all columns but those of label, client, split and group, in order,
                  including the ones left out; of features and recordings: one column of kind
                  "number" for each feature or channel
    names:        of a table: all columns of the file, in order
    has_header:   whether the file's first line had names; if not, columns are found by position
    label, client, split, group: of a table: the names of these columns, "" for none
    client_names: of the clients, if the data name them
    missing:      texts that the user counts as missing values; empty: the usual ones
                  (`data/cells.py`)
    pixels:       of images: the range of the raw pixels
    """

    kind: SampleKind
    input_shape: SampleShape
    class_names: tuple[str, ...]
    columns: tuple[ColumnSchema, ...] = ()
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
    def encode(self, rows: FrameDictsArrayPicturesOrPath) -> SampleArray:
        """Prepare raw rows as the training rows were: float32 `[N, D]`, `[N, C, T]` or `[N, C, H, W]`.

        rows: for a table, a DataFrame, a dict or a list of dicts (columns by name), an array or a
            list of rows (columns by position), or the path of a file; for features and recordings,
            an array, a tensor or a list with the raw numbers; for images, arrays, or paths of
            picture files. A single sample is taken as a batch of one

        Columns are found by name: they may be in any order, and additional ones are ignored. Raises
        UsageError, in one sentence, for a missing column, a cell that cannot be read, or a category
        that the training rows do not have.
        """
        if self.kind == TABLE:
            table = self.read_feature_columns(rows)
            if not len(table):
                raise UsageError("There are no rows; give one row or more.")
            return self.encode_feature_columns(table)
        if self.kind == IMAGES:
            return self.encode_images(rows)
        return self.encode_numbers(rows)

    def read_feature_columns(self, rows: FrameDictsOrArray | str | PathLike) -> DataFrame:
        """Read the columns that become features, in order, as texts and numbers.

        The index of the table is the line of each row in its file.
        """
        if isinstance(rows, str | PathLike):
            from fedlab_nb.data import files

            name, options_of_path = files.split_path_and_options(rows)
            options = {} if self.has_header else {"header": "no"}
            options |= files.check_and_convert_file_options_to_texts(
                options_of_path, FILE_OPTIONS, "new rows"
            )
            table = files.read_table_file(Path(name), options).cells
        else:
            table = cells.convert_nonnumeric_columns_to_texts(
                cells.make_data_frame(rows, self.choose_names_for_nameless_columns(rows))
            )
            table.index = table.index + 1
        if not self.has_header and list(table.columns) != list(self.names):
            if table.shape[1] == len(self.names):
                table = table.set_axis(list(self.names), axis=1)
        by_name: dict[str, int] = {}
        for index, name in enumerate(table.columns):
            by_name.setdefault(normalise_column_name(name), index)
        needed = [column.name for column in self.columns if column.kind != LEFT_OUT]
        lacking = [name for name in needed if normalise_column_name(name) not in by_name]
        if lacking:
            have = ", ".join(str(name) for name in list(table.columns)[:SHOWN_NAMES])
            raise UsageError(
                f"The rows lack the column {', '.join(map(repr, lacking[:SHOWN_NAMES]))}; they have "
                f"{have}: add it, with empty cells where the values are not known."
            )
        column_indices = [by_name[normalise_column_name(name)] for name in needed]
        return table.iloc[:, column_indices].set_axis(needed, axis=1)

    def choose_names_for_nameless_columns(self, rows: FrameDictsOrArray) -> list[str]:
        """Choose names for the columns of rows without names, by the number of values in a row.

        They are the columns that become features, those and the ones left out, or all columns of the
        training file.
        """
        features = [column.name for column in self.columns if column.kind != LEFT_OUT]
        inputs = [column.name for column in self.columns]
        width = count_values_per_row(rows)
        for names in (features, inputs, list(self.names)):
            if len(names) == width:
                return names
        return features

    def encode_feature_columns(
        self, table: DataFrame, reject_unknown_categories: bool = True
    ) -> FeatureArray:
        """Convert cells, as `read_feature_columns` gives them, to features: float32 [N, D]."""
        parts = [np.zeros((len(table), 0))]
        for column in self.columns:
            if column.kind != LEFT_OUT:
                parts.append(
                    columns.encode_cells_as_features(
                        column, table[column.name], reject_unknown_categories
                    )
                )
        return np.concatenate(parts, axis=1).astype(np.float32)

    def encode_numbers(self, rows: ArrayLike | str | PathLike) -> SampleArray:
        """Convert an array of raw numbers: float32 [N, D] or [N, C, T]. Columns of a DataFrame are
        found by name."""
        values = convert_to_numpy_number_array(self.order_columns_by_name(rows))
        if values.ndim == len(self.input_shape):
            values = values[None]
        if self.kind == RECORDINGS and values.ndim == 3 and values.shape[1] != self.input_shape[0]:
            values = np.moveaxis(values, 2, 1)
        if values.shape[1:] != self.input_shape:
            shape_text = "x".join(map(str, self.input_shape))
            raise UsageError(
                f"The samples have shape {tuple(values.shape[1:])}, but the training samples have "
                f"{shape_text}; give an array [N, {', '.join(map(str, self.input_shape))}]."
            )
        return self.standardise_by_training_mean_and_scale(values)

    def order_columns_by_name(self, rows: ArrayLike | str | PathLike) -> ArrayLike:
        """Bring rows with column names, or those of a file, into the order of the training columns.

        Arrays and lists are returned unchanged. Raises UsageError for a missing column.
        """
        import pandas

        if isinstance(rows, Mapping):
            rows = pandas.DataFrame([dict(rows)])
        elif isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping):
            rows = pandas.DataFrame([dict(row) for row in rows])
        elif isinstance(rows, str | PathLike):
            rows = read_table_file_of_numbers(rows)
        if not isinstance(rows, pandas.DataFrame):
            return rows
        names = [column.name for column in self.columns]
        has_names = names != [f"feature {number}" for number in range(1, len(names) + 1)]
        if self.kind != FEATURES or not has_names:
            return rows.to_numpy()
        by_name = {normalise_column_name(name): name for name in rows.columns}
        lacking = [name for name in names if normalise_column_name(name) not in by_name]
        if lacking:
            have = ", ".join(str(name) for name in list(rows.columns)[:SHOWN_NAMES])
            raise UsageError(
                f"The rows lack the column {', '.join(map(repr, lacking[:SHOWN_NAMES]))}; they have "
                f"{have}: add it, or give an array whose columns stand in the order of training."
            )
        return rows[[by_name[normalise_column_name(name)] for name in names]].to_numpy()

    def standardise_by_training_mean_and_scale(self, raw_numbers: np.ndarray) -> SampleArray:
        """Subtract each column's (or channel's) mean from raw numbers [N, D] or [N, C, T], and divide
        by its scale; float32."""
        shape = (1, -1) if self.kind == FEATURES else (1, -1, 1)
        mean = np.array([column.mean for column in self.columns]).reshape(shape)
        scale = np.array([column.scale for column in self.columns]).reshape(shape)
        with np.errstate(over="ignore", invalid="ignore"):
            standardised = ((raw_numbers.astype(np.float64) - mean) / scale).astype(np.float32)
        if not np.isfinite(standardised).all():
            raise UsageError(
                "The samples hold NaN, infinity, or numbers that are too large to standardise in "
                "32-bit numbers; replace or drop them."
            )
        return standardised

    def encode_images(self, images: ArrayLike | Sequence[PictureOrPath]) -> ImageArray:
        """Convert picture files, or arrays in the training images' raw numbers: float32 [N, C, H, W]."""
        assert self.pixels is not None
        channels, height, width = self.input_shape
        if pictures.are_pillow_images_or_paths(images):
            values = pictures.read_pictures(
                images, self.pixels.mode or "RGB", (height, width), self.pixels.resized
            )
        else:
            values = convert_to_numpy_number_array(images)
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
        self.pixels.check_pixel_range(values)
        return self.pixels.scale_to_0_to_1(values)

    # ----------------------------------------------------------------------------------------- JSON
    def to_json(self) -> JsonObject:
        """Convert the schema to JSON; `from_json` restores an equal one."""
        return {"version": SCHEMA_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, JsonValue]) -> InputSchema:
        """Restore the schema that `to_json` wrote. UsageError for one of a newer version."""
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
        arguments["columns"] = tuple(ColumnSchema.from_json(column) for column in columns_as_json)
        if arguments.get("pixels") is not None:
            arguments["pixels"] = pictures.PixelScale(**arguments["pixels"])
        return cls(**arguments)


def make_image_schema(
    shape: SampleShape, class_names: Sequence[str], max_pixel_value: float, numpy_type_name: str
) -> InputSchema:
    """Make the schema of the package's own images `(C, H, W)`, with raw pixels from 0 to `max_pixel_value`."""
    mode: pictures.ColourMode = "L" if shape[0] == 1 else "RGB"
    pixels = pictures.PixelScale(0.0, float(max_pixel_value), numpy_type_name, mode)
    return InputSchema(IMAGES, tuple(shape), tuple(class_names), pixels=pixels)


def read_table_file_of_numbers(path: str | PathLike) -> DataFrame:
    """Read a table's file whose cells are all numbers. Raises UsageError for other cells."""
    import pandas

    from fedlab_nb.data import files

    name, options_of_path = files.split_path_and_options(path)
    options = files.check_and_convert_file_options_to_texts(
        options_of_path, FILE_OPTIONS, "new rows"
    )
    table = files.read_table_file(Path(name), options).cells
    try:
        return table.apply(pandas.to_numeric)
    except (TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:120]
        raise UsageError(
            f"{Path(name).name} holds cells that are not numbers ({why}), but the training samples "
            "are only numbers; correct them, or leave such columns out."
        ) from None


def normalise_column_name(column_name: object) -> str:
    """Write a column's name in a form in which case and blanks do not matter."""
    return " ".join(str(column_name).split()).casefold()


def count_values_per_row(raw_rows: FrameDictsOrArray) -> int | None:
    """Count the values in one of the rows; None if that is not known."""
    shape = getattr(raw_rows, "shape", None)
    if shape is not None and len(shape) in (1, 2):
        return int(shape[-1])
    if not isinstance(raw_rows, Sequence) or isinstance(raw_rows, str) or not raw_rows:
        return None
    first_row = raw_rows[0]
    is_array = hasattr(first_row, "shape") and len(first_row.shape) > 0
    if is_array or isinstance(first_row, list | tuple):
        return len(first_row)
    return len(raw_rows)


def convert_to_numpy_number_array(numbers: ArrayLike) -> np.ndarray:
    """Convert an array, a tensor, a list or a DataFrame to an array of numbers. Raises UsageError if
    it holds anything else."""
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().cpu().numpy()
    if isinstance(numbers, np.ma.MaskedArray) and numbers.mask.any():
        raise UsageError("The samples have masked values; fill or drop them.")
    try:
        values = np.asarray(numbers)
        if values.dtype.kind == "O":
            values = values.astype(float)
    except (TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:120]
        raise UsageError(
            f"The samples are not an array of numbers ({why}); give arrays, tensors or lists."
        ) from None
    if values.dtype.kind not in "biuf":
        raise UsageError(f"The samples hold {values.dtype}, but they must be numbers.")
    return values
