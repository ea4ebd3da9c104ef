"""`digits`: scikit-learn's 1,797 bundled images of handwritten digits, 8x8, split once and for all.

The split is part of the dataset: it does not depend on a run's seed, so every run is tested on the same 360 images.
Samples are ordered by a hash of their number, not by a random generator, so that no library's version can change it.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fedlab_nb.data.dataset import Dataset, Description
from fedlab_nb.rng import seed_for

TEST, PUBLIC, TOTAL = 360, 200, 1797
# SHA-256 of the arrays that load() returns; a test computes it anew.
DIGEST = "5cb0462460b24692b26d54dfcaf00ca8"


def load() -> Dataset:
    """Train 1,237, test 360, public 200 (unlabelled), the classes in the same proportions; x [N, 1, 8, 8] in [0, 1]."""
    import torch

    rows = read()
    x = torch.from_numpy(rows[:, :64].astype(np.float32).reshape(-1, 1, 8, 8) / 16.0)
    y = torch.from_numpy(rows[:, 64].astype(np.int64))
    test, public, train = (torch.from_numpy(i) for i in split(y.numpy()))
    names = tuple(str(c) for c in range(10))
    return Dataset("digits", x[train], y[train], x[test], y[test], x[public], names, DIGEST, y_public=y[public])


def read() -> np.ndarray:
    """`[1797, 65]`: 64 pixels from 0 to 16, and the class, of each image.

    They are a file in scikit-learn's package. It is read here, since that package's import takes a second, which a
    first picture would wait for.
    """
    package = find_spec("sklearn")
    home = Path(package.origin if package and package.origin else "nowhere").parent
    file = home / "datasets" / "data" / "digits.csv.gz"
    if file.is_file():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    return np.column_stack(load_digits(return_X_y=True))


def describe() -> Description:
    return Description("digits", (1, 8, 8), 10, TOTAL - TEST - PUBLIC, TEST, PUBLIC, DIGEST)


def split(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted indices of the test, public and training samples; each class gives its share of the first two."""
    key = np.array([seed_for(0, "digits split", i) for i in range(len(labels))])
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    counts = np.bincount(labels)
    for c, (n_test, n_public) in enumerate(zip(shares(counts, TEST), shares(counts, PUBLIC), strict=True)):
        members = np.flatnonzero(labels == c)
        members = members[np.argsort(key[members])]
        for part, chosen in zip(parts, np.split(members, [n_test, n_test + n_public]), strict=True):
            part.append(chosen)
    test, public, train = (np.sort(np.concatenate(part)) for part in parts)
    return test, public, train


def shares(counts: np.ndarray, total: int) -> np.ndarray:
    """`total` dealt out in proportion to `counts` by largest remainders; sums to `total` exactly.

    >>> shares(np.array([50, 30, 20]), 7).tolist()
    [4, 2, 1]
    """
    exact = counts * total / counts.sum()
    whole = np.floor(exact).astype(int)
    short = total - whole.sum()
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return whole
