"""The stored table of results: what the first view of a panel shows before anything has been run.

Every method on the digits, at ALPHAS × CLIENTS × SEEDS, computed by this package (`python -m fedlab_nb.study.stored`)
and kept as `digits.json` beside this file. `load()` reads it; nothing is trained for that.
"""

from .table import ALPHAS, CLIENTS, FILE, SEEDS, Stored, load
