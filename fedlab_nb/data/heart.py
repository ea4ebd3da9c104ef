"""`heart`: 920 patients of four hospitals, 13 findings, heart disease yes or no. The hospitals are the clients.

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
cholesterol. A model can read the hospital off the gaps.

A fifth of each hospital's patients, with and without disease, is for testing. `heart:switzerland` (or another one)
leaves a hospital out: all of its patients are the test set, and the other three hospitals are the clients.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from fedlab_nb.data import tables
from fedlab_nb.data.dataset import Dataset, Description, digest_of
from fedlab_nb.declared import declared

CARD = declared("data/datasets.toml")["menu"]["heart"]["card"]
FILE = Path(__file__).with_name("heart.csv")
HOSPITALS = ("Cleveland", "Hungary", "Long Beach", "Switzerland")  # as `tables` sorts them
LEFT_OUT = {f"heart:{hospital.lower().replace(' ', '-')}": hospital for hospital in HOSPITALS}
NAMES = ("heart", *LEFT_OUT)


@cache
def load(name: str = "heart") -> Dataset:
    """x [N, 25], y 1 for disease; `client_train` names the hospitals."""

    def split(y: np.ndarray, owner: np.ndarray) -> np.ndarray:
        if name in LEFT_OUT:
            return owner == HOSPITALS.index(LEFT_OUT[name])
        return tables.drawn(len(HOSPITALS) * y + owner, owner)  # a fifth of each class of each hospital

    made = tables.load(FILE, {}, digest_of(name, tables.VERSION, FILE.read_bytes()), split, name=name)
    return replace(made, note=f"{CARD} {made.note}")


def describe(name: str = "heart") -> Description:
    return load(name).description()
