"""Data sets as a frozen network sees them: its features in place of the images (`models/lite0.py`).

    fl.run("fens", dataset="glyphs:16g", features="lite0")

The network, called the body, was trained on ImageNet, and nobody trains it here. Each image becomes 112 numbers, once:
they are kept in the store. What a method trains, averages, distils or sends is then a small network on these, its head;
of the body nothing travels, since everybody has this package. The numbers are standardised as the columns of a table
are (`data/tables.py`), by all training samples, those of `unseen` clients too. What is done to images (cues, other
public ones) is done before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .. import data
from ..data import Dataset, Description, Federation, tables
from ..data.arrays import scale_samples
from ..data.dataset import hash_parts
from ..data.schema import InputSchema
from ..models import lite0, parameter_count
from .store import Store

PARTS = ("x_train", "x_test", "x_public")


def compute_features(dataset: Dataset) -> dict[str, np.ndarray]:
    """What the body makes of the images, float32 `[N, 112]`, by part; computed once, then from the store."""
    store = Store("features")
    key = hash_parts(dataset.digest, "lite0")
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
        store.put(key, {}, features)
    return {part: features[part] for part in PARTS if getattr(dataset, part) is not None}


def make_body_schema(dataset: Dataset) -> InputSchema:
    """How the body's numbers of a new image are standardised: by those of the training images of `dataset`."""
    _, schema, _ = scale_samples(compute_features(dataset))
    return schema


def replace_images(dataset: Dataset) -> Dataset:
    """`dataset` with features `[N, 112]` in place of its images, float32, each column standardised. Its schema stays
    that of the images."""
    key = hash_parts(dataset.digest, "lite0")
    standardised, _, _ = scale_samples(compute_features(dataset))
    changes: dict[str, Any] = {part: torch.from_numpy(x) for part, x in standardised.items()}
    weights = parameter_count(lite0.load_lite0())
    up, down = tables.count_sums_bytes(lite0.FEATURES)
    note = (
        f"A network that was trained on ImageNet turns each image into {lite0.FEATURES} numbers; its {weights} weights "
        f"({2 * weights} bytes in 16 bits) are in this package, so that they are not sent. These numbers are "
        f"standardised by sums over the clients: each sends {up} bytes once, and gets {down} back, which a run's bytes "
        f"do not count."
    )
    return replace(dataset, **changes, digest=key, note=f"{dataset.note} {note}".strip())


def make_federation(
    dataset: str, public: str | float, has_body: bool, **options: Any
) -> Federation:
    """The data set with its `public` samples, divided by `federate`.

    has_body: whether networks read what the frozen body makes of the images;   options: those of `federate`
    """
    federation = data.federate(data.add_public_part(data.load(dataset), public), **options)
    if not has_body:
        return federation
    return replace(federation, dataset=replace_images(federation.dataset))


def describe_features(about: Description) -> Description:
    """The description of a data set whose images become features; nothing is loaded."""
    digest = None if about.digest is None else hash_parts(about.digest, "lite0")
    return replace(about, input_shape=(lite0.FEATURES,), digest=digest)
