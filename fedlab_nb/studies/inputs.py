"""What a saved model keeps of its data: how raw rows are turned into its inputs, and the names of
its classes.

A data set has a schema (`data/schema.py`): columns and their order, means, lists of values, the
scale of images. A model keeps it, so that new rows are prepared exactly like the training rows. If
networks read the features that a frozen body makes of the images (`frozen_features.py`), the means
and scales of these are kept, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

import torch

from ..data import Dataset, load
from ..data.folders import PICTURES
from ..data.input_types import FrameDictsArrayPicturesOrPath
from ..data.registry import HOMES
from ..data.schema import InputSchema
from ..errors import UsageError
from ..files import expand_path
from ..models import lite0
from ..tensor_types import Samples
from ..value_types import JsonObject, JsonValue
from .frozen_features import make_schema_of_frozen_features
from .settings import MethodRunPlan


@dataclass(frozen=True)
class InputPreparation:
    """How a saved model prepares raw rows.

    class_names: in the order of the labels
    schema: of raw rows, or None if the data set has none
    body: schema of the features that the frozen network makes of images, or None if there is no such network
    is_bundled: whether the data set is one of the package's, whose arrays are taken as `fl.load` gives them
    """

    class_names: tuple[str, ...]
    schema: InputSchema | None = None
    body: InputSchema | None = None
    is_bundled: bool = False

    def encode(self, rows: FrameDictsArrayPicturesOrPath) -> Samples:
        """Turn raw rows into the samples that the model reads, float32 `[N, ...]`.

        rows: as `InputSchema.encode` takes them

        UsageError if rows cannot be read, or if the data set does not say how to read them.
        """
        if self.schema is None:
            raise UsageError(
                "This model's data set does not say how raw rows become what the model reads; give "
                "a tensor that is prepared as the data set's own (see fedlab_nb.load)."
            )
        x = torch.from_numpy(self.schema.encode(rows))
        if len(x) == 0:
            raise UsageError("There are no rows to predict; give one at least.")
        if self.body is None:
            return x
        return torch.from_numpy(
            self.body.standardise_by_training_mean_and_scale(lite0.load_lite0()(x).numpy())
        )

    def to_json(self) -> JsonObject:
        """Convert to JSON. `from_json` undoes this."""
        return {
            "class_names": list(self.class_names),
            "schema": None if self.schema is None else self.schema.to_json(),
            "body": None if self.body is None else self.body.to_json(),
            "is_bundled": self.is_bundled,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, JsonValue]) -> InputPreparation:
        """Restore from what `to_json` returned. UsageError for a schema of a newer version."""
        return cls(
            class_names=tuple(values["class_names"]),
            schema=restore_schema_if_given(values["schema"]),
            body=restore_schema_if_given(values["body"]),
            is_bundled=bool(values["is_bundled"]),
        )


def restore_schema_if_given(values: Mapping[str, JsonValue] | None) -> InputSchema | None:
    """Parse a schema from JSON; None if there is none."""
    return None if values is None else InputSchema.from_json(values)


def replace_folder_by_its_pictures(
    rows: FrameDictsArrayPicturesOrPath,
) -> FrameDictsArrayPicturesOrPath:
    """Return the pictures in a folder if `rows` is the path of one; any other path in full;
    anything else as it is.

    UsageError for a folder without pictures.
    """
    if not isinstance(rows, str | PathLike):
        return rows
    path = expand_path(rows)
    if not path.is_dir():
        return str(path)
    files = sorted(path.rglob("*"))
    pictures = [file for file in files if file.suffix.lower() in PICTURES]
    if not pictures:
        raise UsageError(f"The folder {path} has no pictures; give one that has, or the files.")
    return pictures


def make_input_preparation_of_plan(
    plan: MethodRunPlan, dataset: Dataset | None = None
) -> InputPreparation:
    """Make the inputs of a run.

    dataset: the data set of the run; None to load it, with UsageError if its name belongs to other data by now
    """
    settings = plan.settings
    if dataset is None:
        if plan.digest not in (None, settings.describe_dataset().digest):
            raise UsageError(
                f"The name {settings.dataset!r} now belongs to other data than in this run, so "
                "that nobody knows how its rows were read; give the name to the earlier data again."
            )
        dataset = load(settings.dataset)
    body = None
    if settings.reads_frozen_features:
        body = make_schema_of_frozen_features(load(settings.dataset))
    return InputPreparation(
        class_names=dataset.class_names,
        schema=dataset.schema,
        body=body,
        is_bundled=settings.dataset in HOMES,
    )
