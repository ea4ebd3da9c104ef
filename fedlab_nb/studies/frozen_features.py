"""Data sets as a frozen network sees them: its features in place of the images (`models/lite0.py`).

    fl.run("fens", dataset="glyphs:16g", features="lite0")

The network, called the body, was trained on ImageNet and is never trained here. It turns each image
once into 112 numbers, which are kept in the store. What a method trains, averages, distils or sends
is then a small network on these numbers, the head. The body itself is never sent, since every
participant has this package. The numbers are standardised like the columns of a table
(`data/tables.py`), by all training samples, also those of `unseen` clients. Changes of the images
(cues, public images of another data set) are made before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .. import data
from ..data import Dataset, DatasetDescription, Federation, tables
from ..data.array_types import FeatureArray
from ..data.arrays import scale_samples
from ..data.dataset import hash_parts_to_short_id
from ..data.schema import InputSchema
from ..models import count_parameters, lite0
from ..value_types import SettingValue
from .store import Store

FeaturesOfXTrainXTestAndXPublic = dict[str, FeatureArray]  # x_public only if the data set has one

PARTS = ("x_train", "x_test", "x_public")


def load_or_compute_feature_arrays(dataset: Dataset) -> FeaturesOfXTrainXTestAndXPublic:
    """Return the features of all images, float32 `[N, 112]`, without labels. They are computed
    once, and then read from the store.
    """
    store = Store("features")
    key = hash_parts_to_short_id(dataset.digest, "lite0")
    stored = store.get(key)
    if stored is not None:
        _, features = stored
    else:
        body = lite0.load_lite0()
        features = {}
        for part in PARTS:
            images = getattr(dataset, part)
            if images is not None:
                features[part] = body(images).numpy()
        store.write_entry_if_possible(key, {}, features)
    return {part: features[part] for part in PARTS if getattr(dataset, part) is not None}


def make_schema_of_frozen_features(dataset: Dataset) -> InputSchema:
    """Make the schema that standardises the features of a new image, by those of the training
    images of `dataset`.
    """
    _, schema, _ = scale_samples(load_or_compute_feature_arrays(dataset))
    return schema


def replace_images_by_features(dataset: Dataset) -> Dataset:
    """Return `dataset` with features `[N, 112]` in place of its images, float32, each column
    standardised. Its schema stays that of the images.
    """
    key = hash_parts_to_short_id(dataset.digest, "lite0")
    standardised, _, _ = scale_samples(load_or_compute_feature_arrays(dataset))
    changes: dict[str, Any] = {part: torch.from_numpy(x) for part, x in standardised.items()}
    weights = count_parameters(lite0.load_lite0())
    up, down = tables.count_bytes_to_standardise_columns(lite0.FEATURES)
    note = (
        f"A network that was trained on ImageNet turns each image into {lite0.FEATURES} numbers; "
        f"its {weights} weights ({2 * weights} bytes in 16 bits) are in this package, so that they "
        f"are not sent. These numbers are standardised by sums over the clients: each sends {up} "
        f"bytes once, and gets {down} back, which a run's bytes do not count."
    )
    return replace(dataset, **changes, digest=key, note=f"{dataset.note} {note}".strip())


def make_federation_with_public_data(
    dataset: str, public: str | float, reads_frozen_features: bool, **options: SettingValue
) -> Federation:
    """Load the data set with its `public` samples, and divide it by `federate`.

    reads_frozen_features: whether networks read what the frozen body makes of the images
    options: those of `federate`
    """
    federation = data.federate(data.add_public_part(data.load(dataset), public), **options)
    if not reads_frozen_features:
        return federation
    return replace(federation, dataset=replace_images_by_features(federation.dataset))


def describe_dataset_as_features(description: DatasetDescription) -> DatasetDescription:
    """Describe a data set whose images become features; nothing is loaded."""
    digest = (
        None if description.digest is None else hash_parts_to_short_id(description.digest, "lite0")
    )
    return replace(description, input_shape=(lite0.FEATURES,), digest=digest)
