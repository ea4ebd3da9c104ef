"""Types of the arguments that a user may give: data sets, arrays, rows, pictures, clients.

They name the arguments in signatures. The functions check what they are given, and their errors say
what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame
    from PIL.Image import Image

    from fedlab_nb.data.dataset import Dataset

# An array, a tensor, a Series, a DataFrame, a sparse matrix or a list.
ArrayLike: TypeAlias = Any
ArraysByName: TypeAlias = Mapping[str, ArrayLike]  # x_train, y_train, ... or x and y

# A name, a path, a Dataset in memory, a table, or arrays by name.
DatasetSource: TypeAlias = "str | PathLike | Dataset | DataFrame | ArraysByName"

# A DataFrame, a dict or a list of dicts (by name), an array, a tensor or a list of rows (by place).
FrameDictsOrArray: TypeAlias = Any
# Rows of a table, or arrays, pictures, or the path of a file with such samples.
FrameDictsArrayPicturesOrPath: TypeAlias = Any
CellValue: TypeAlias = Any  # one cell: a text, a number, a date, a truth value, or nothing

PictureOrPath: TypeAlias = "Image | str | Path"

# For each client the indices of its training samples.
SampleIndexListPerClient: TypeAlias = "Sequence[Sequence[int] | np.ndarray | torch.Tensor]"
ClientIndices: TypeAlias = tuple[int, ...]  # sorted, from 0
# How many clients (the last ones), or a list of their indices, letters or names, such as "0,3".
ClientListOrCountOfLast: TypeAlias = "int | str | Sequence[int | str]"

# Of a file: "label", "sep" and the like. A list of texts means the same as these joined by commas.
FileOptionValue: TypeAlias = "str | float | Sequence[str] | set[str] | None"
FileOptions: TypeAlias = Mapping[str, FileOptionValue]
FileOptionTexts: TypeAlias = Mapping[str, str]  # the same, checked and as texts
# Of `load`: those of a file, or of the data set that is named, such as `n_train` of `glyphs`.
DatasetOptionValue: TypeAlias = Any
DatasetOptions: TypeAlias = Mapping[str, DatasetOptionValue]
