"""A data set seen through a network that was trained on ImageNet and that nobody trains: a frozen body
(`models/lite0.py`).

    fl.run("fens", dataset="glyphs:16g", features="lite0")

Each image becomes 112 numbers, once: they are kept in the store. What a method trains, averages, distils or sends is
then a small network on these, its head; of the body nothing travels, since everybody has this package. The numbers are
standardised as the columns of a table are (`data/tables.py`), by all training samples, those of `unseen` clients too.
What is done to images (cues, other public ones) is done before.
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


def body_features(dataset: Dataset) -> dict[str, np.ndarray]:
    """What the body makes of the images, float32 `[N, 112]`, by part; computed once, then from the store."""
    store, key = Store("features"), hash_parts(dataset.digest, "lite0")
    there = [part for part in PARTS if getattr(dataset, part) is not None]
    found = store.get(key)
    if found is None:
        body = lite0.lite0()
        found = {}, {part: body(getattr(dataset, part)).numpy() for part in there}
        store.put(key, *found)
    return {part: found[1][part] for part in there}


def body_schema(dataset: Dataset) -> InputSchema:
    """How the body's numbers of a new image are standardised: by those of the training images of `dataset`."""
    _, schema, _ = scale_samples(body_features(dataset))
    return schema


def seen(dataset: Dataset) -> Dataset:
    """`dataset` with features `[N, 112]` in place of its images, float32, each column standardised. Its schema stays
    that of the images."""
    key = hash_parts(dataset.digest, "lite0")
    ready, _, _ = scale_samples(body_features(dataset))
    changed: dict[str, Any] = {part: torch.from_numpy(x) for part, x in ready.items()}
    numbers, (up, down) = parameter_count(lite0.lite0()), tables.count_sums_bytes(lite0.FEATURES)
    note = (
        f"A network that was trained on ImageNet turns each image into {lite0.FEATURES} numbers; its {numbers} weights "
        f"({2 * numbers} bytes in 16 bits) are in this package, so that they are not sent. These numbers are "
        f"standardised by sums over the clients: each sends {up} bytes once, and gets {down} back, which a run's bytes "
        f"do not count."
    )
    return replace(dataset, **changed, digest=key, note=f"{dataset.note} {note}".strip())


def dealt(dataset: str, public: str | float, body: bool, **options: Any) -> Federation:
    """The data set with its `public` samples, dealt out by `federate`; seen through a `body`, if there is one."""
    made = data.federate(data.with_public(data.load(dataset), public), **options)
    return replace(made, dataset=seen(made.dataset)) if body else made


def seen_description(about: Description) -> Description:
    """What can be said of it before it is loaded."""
    digest = None if about.digest is None else hash_parts(about.digest, "lite0")
    return replace(about, input_shape=(lite0.FEATURES,), digest=digest)
