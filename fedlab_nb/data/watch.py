"""`watch`: what a watch on the wrist records while ten people do seven exercises for the shoulder. The people are the
clients.

Source: "Shoulder Physiotherapy Activity Recognition 9-axis Smartwatch Dataset", by D. Burns, N. Leung, M. Hardisty,
C. Whyne, P. Henry and S. McLachlin (arXiv 1802.01489), as the package seglearn 1.2.5 has it (BSD 3-Clause). There it is
a pickle, which this package never reads. We have read it once, with an unpickler that knows arrays alone, and written
`watch.npz`: the 140 recordings (ten people, two arms, seven exercises; acceleration and turning rate along three axes,
50 a second) cut into windows of 2 seconds that do not overlap, `x` float16 [N, 6, 100] in the order of time. Each
number is within 0.8 %, and a rest of less than 2 seconds is left out. `label`, `person` and `recording` [N] say whose
window it is, and of which recording.

A sample is [C, T], channels before time, as convolutions read it. Each channel is standardised by sums over the
clients, as columns of a table are (`tables.py`).

The last fifth of every recording is for testing, so no test window lies between two training windows. `watch:3` (1 to
10) leaves a person out: all of its windows are the test set, and the other nine people are the clients. That is the
harder question: everybody moves in another way.
"""

from functools import cache
from pathlib import Path

import numpy as np

from fedlab_nb.data import tables
from fedlab_nb.data.arrays import scaled
from fedlab_nb.data.dataset import Dataset, Description, digest_of, of_arrays
from fedlab_nb.declared import declared

FILE = Path(__file__).with_name("watch.npz")
PEOPLE = 10
LEFT_OUT = {f"watch:{k}": f"person {k}" for k in range(1, PEOPLE + 1)}
NAMES = ("watch", *LEFT_OUT)
CARD = declared("data/datasets.toml")["menu"]["watch"]["card"]


def load(name: str = "watch") -> Dataset:
    """x [N, 6, 100], y the exercise; `client_train` names the people."""
    with np.load(FILE, allow_pickle=False) as file:
        x, y, person, recording = (file[key] for key in ("x", "label", "person", "recording"))
        classes = tuple(map(str, file["exercises"]))
    test = person == NAMES.index(name) - 1 if name in LEFT_OUT else last_fifth(recording)
    ready, note = scaled({"x_train": x[~test], "x_test": x[test]})
    there, owner = np.unique(person[~test], return_inverse=True)
    parts = {**ready, "y_train": y[~test], "y_test": y[test], "client_train": owner}
    if name not in LEFT_OUT:
        parts["client_test"] = person[test]
    whole = {key: part if key in ready else part.astype(np.int64) for key, part in parts.items()}
    up, down = tables.sums_bytes(x.shape[1])
    sums = (
        f"Each client sends count, sum and sum of squares of each channel once ({up} bytes), and gets {down} bytes back"
    )
    note = f"{CARD} {note} {sums}; a run's bytes do not count these."
    return of_arrays(name, digest(name), whole, classes, note, tuple(f"person {k + 1}" for k in there))


def describe(name: str = "watch") -> Description:
    return load(name).description()


def last_fifth(recording: np.ndarray) -> np.ndarray:
    """bool [N]: the last fifth of the windows of each recording, rounded down, which stand in the order of time.

    >>> last_fifth(np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])).nonzero()[0].tolist()
    [9]
    """
    test = np.zeros(len(recording), dtype=bool)
    for rows in (np.flatnonzero(recording == own) for own in np.unique(recording)):
        test[rows[len(rows) - len(rows) // 5 :]] = True
    return test


@cache
def digest(name: str) -> str:
    return digest_of(name, 1, FILE.read_bytes())
