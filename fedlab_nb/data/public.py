"""Choose the unlabelled public samples of a federation.

The argument `choice` is one of

- "own": the public part that comes with the data set;
- a share from 0 to 0.9: this share of the training set, drawn once, whatever the run's seed. With 0
  there are no public samples, and the clients get the whole set;
- the name of another data set or the path of an `.npz`: all of its training and public samples,
  without the labels. The clients then get the whole of the first data set.

For the last two, the data set's own public part first goes back to the training set if its labels are
known, and is left out if they are not. `describe_dataset_with_public_part` makes the same change to a
data set's description, without loading a sample.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data import registry
from fedlab_nb.data.dataset import Dataset, DatasetDescription, hash_parts_to_short_id
from fedlab_nb.errors import UsageError, check_allowed_name, check_number, parse_if_number
from fedlab_nb.rng import make_numpy_generator

if TYPE_CHECKING:
    from fedlab_nb.tensor_types import ClientIndexPerSample, Labels, Samples

OWN = "own"
LARGEST_SHARE = 0.9
SOURCES_OF_FEDET = ("noise", "held-out", "other-mix")
ADVICE = "give a share of the training set, such as public=0.1"

# "own", the name or path of a data set, or a share of the training samples.
PublicShareOrDatasetName = str | float


# ------------------------------------------------------------------------------------------ choice
def convert_and_check_public_choice(
    public_choice: str | float | PathLike, description: DatasetDescription
) -> PublicShareOrDatasetName:
    """Check `public_choice` for the data set `description`, and convert a share to a number. Raises
    UsageError if it is impossible."""
    if isinstance(public_choice, PathLike):
        value: PublicShareOrDatasetName = str(public_choice)
    else:
        value = parse_if_number(public_choice)
    if not isinstance(value, str):
        hint = "it is a share of the training set, or a data set's name"
        return check_number("public", value, 0, LARGEST_SHARE, hint=hint)
    if value == OWN:
        return value
    if value in SOURCES_OF_FEDET:
        raise UsageError(
            f"public={value} is a source of Fed-ET alone; set it as fedet.public={value}."
        )
    if not registry.is_dataset_path(value):
        allowed = (OWN, *registry.DATASETS, "a share from 0 to 0.9", "PATH.npz")
        check_allowed_name("public data", value, allowed)
    check_can_be_public_dataset(value, description)
    return value


def check_can_be_public_dataset(other_name: str, description: DatasetDescription) -> None:
    """Raise UsageError unless `other_name` is a different data set than `description`, with samples of
    the same shape."""
    public_dataset = registry.describe(other_name)
    has_same_name = public_dataset.name == description.name and not registry.is_dataset_path(
        other_name
    )
    has_same_content = bool(description.digest) and public_dataset.digest == description.digest
    if has_same_name or has_same_content:
        raise UsageError(
            f"public names the data set {description.name} itself, whose samples are the clients'; {ADVICE}."
        )
    if public_dataset.input_shape != description.input_shape:
        raise UsageError(
            f"public={public_dataset.name} has samples of shape "
            f"{public_dataset.input_shape}, but those of {description.name} have "
            f"{description.input_shape}; choose like samples, or {ADVICE}."
        )


def count_public_samples(share_0_to_1: float, training_sample_count: int) -> int:
    """Count the samples in a share of the training samples: at least 1 if the share is above 0."""
    if share_0_to_1 == 0:
        return 0
    return max(1, round(share_0_to_1 * training_sample_count))


# ------------------------------------------------------------------------------------- description
def describe_dataset_with_public_part(
    description: DatasetDescription, choice: PublicShareOrDatasetName
) -> DatasetDescription:
    """Describe the result of `add_public_part(dataset, choice)`, from the data set's description."""
    if choice == OWN:
        return description
    sample_count = description.n_train
    if description.public_labelled:
        sample_count += description.n_public
    digest = None
    if isinstance(choice, str):
        public_dataset = registry.describe(choice)
        if description.digest and public_dataset.digest:
            digest = hash_parts_to_short_id(description.digest, "public", public_dataset.digest)
        n_train = sample_count
        n_public = public_dataset.n_train + public_dataset.n_public
    else:
        if description.digest:
            digest = hash_parts_to_short_id(description.digest, "public", choice)
        n_public = count_public_samples(choice, sample_count)
        n_train = sample_count - n_public
    return replace(
        description,
        n_train=n_train,
        n_public=n_public,
        digest=digest,
        public_labelled=not isinstance(choice, str),
    )


# ----------------------------------------------------------------------------------------- samples
def add_public_part(dataset: Dataset, choice: PublicShareOrDatasetName) -> Dataset:
    """Give `dataset` the public samples that `choice` names, and a digest of its own.

    choice: already checked by `convert_and_check_public_choice`

    Samples that return from the public part to the training set belong to no client of the data.
    Raises UsageError if a client of the data loses all of its samples to a share.

    The labels of a share are kept for choosing settings (`y_public`); those of another data set are
    not.
    """
    if choice == OWN:
        return dataset
    dataset = copy_dataset_with_public_part_in_training(dataset)
    if isinstance(choice, str):
        return copy_dataset_with_other_dataset_as_public(dataset, choice)
    digest = hash_parts_to_short_id(dataset.digest, "public", choice)
    size = count_public_samples(choice, len(dataset.y_train))
    if size == 0:
        samples = len(dataset.y_train)
        note = f"All {samples:,} training samples are the clients'; there is no public data."
        return copy_dataset_with_public_samples(dataset, None, None, digest, note)
    return copy_dataset_with_share_held_back_as_public(dataset, choice, size, digest)


def copy_dataset_with_public_part_in_training(dataset: Dataset) -> Dataset:
    """Add the labelled public samples to the training samples, with no client and no known font; the
    public part itself is left as it is."""
    import torch

    if dataset.x_public is None or dataset.y_public is None:
        return dataset
    nobody = torch.full((len(dataset.y_public),), -1)
    changes: dict[str, Any] = {
        "x_train": torch.cat([dataset.x_train, dataset.x_public]),
        "y_train": torch.cat([dataset.y_train, dataset.y_public]),
    }
    if dataset.client_train is not None:
        changes["client_train"] = torch.cat([dataset.client_train, nobody])
    if dataset.font_train is not None:
        changes["font_train"] = torch.cat([dataset.font_train, nobody])
    return replace(dataset, **changes)


def copy_dataset_with_other_dataset_as_public(dataset: Dataset, other_dataset_name: str) -> Dataset:
    """Make all training and public samples of another data set the public samples of `dataset`."""
    import torch

    public_dataset = registry.load(other_dataset_name)
    parts = [public_dataset.x_train]
    if public_dataset.x_public is not None:
        parts.append(public_dataset.x_public)
    x_public = torch.cat(parts)
    note = f"Public data: all {len(x_public):,} training samples of {public_dataset.name}, without labels."
    digest = hash_parts_to_short_id(dataset.digest, "public", public_dataset.digest)
    return copy_dataset_with_public_samples(dataset, x_public, None, digest, note)


def copy_dataset_with_share_held_back_as_public(
    dataset: Dataset, share: float, public_sample_count: int, new_digest: str
) -> Dataset:
    """Draw `public_sample_count` training samples at random and make them the public samples."""
    import torch

    samples = len(dataset.y_train)
    order = make_numpy_generator(0, "public part").permutation(samples)
    public = torch.from_numpy(np.sort(order[:public_sample_count]))
    private = torch.from_numpy(np.sort(order[public_sample_count:]))
    changes: dict[str, Any] = {
        "x_train": dataset.x_train[private],
        "y_train": dataset.y_train[private],
    }
    if dataset.client_train is not None:
        changes["client_train"] = dataset.client_train[private]
        check_every_client_keeps_training_samples(
            changes["client_train"], dataset.client_names, share
        )
    if dataset.font_train is not None:
        changes["font_train"] = dataset.font_train[private]
    note = (
        f"{public_sample_count:,} of {samples:,} training samples are held back as unlabelled "
        "public data."
    )
    return copy_dataset_with_public_samples(
        replace(dataset, **changes),
        dataset.x_train[public],
        dataset.y_train[public],
        new_digest,
        note,
    )


def check_every_client_keeps_training_samples(
    client_of_training_sample: ClientIndexPerSample, client_names: tuple[str, ...], share: float
) -> None:
    """Raise UsageError if a client has no training samples left."""
    present = set(client_of_training_sample.tolist())
    for k, name in enumerate(client_names):
        if k not in present:
            raise UsageError(
                f"public is {share}, which leaves client {name!r} without a training "
                "sample; set a smaller share, or another partition."
            )


def copy_dataset_with_public_samples(
    dataset: Dataset,
    x_public: Samples | None,
    y_public: Labels | None,
    new_digest: str,
    new_note: str,
) -> Dataset:
    """Copy `dataset` with these public samples. Its note is kept unless it describes the old public
    part."""
    if "held back" not in dataset.note:
        new_note = f"{dataset.note} {new_note}".strip()
    return replace(dataset, x_public=x_public, y_public=y_public, digest=new_digest, note=new_note)
