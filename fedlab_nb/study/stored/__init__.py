"""The stored table of results: what the first view of a panel shows before anything has been run.

Every method on the digits, and on the second classroom set, at the settings that `grids.toml` names, computed by this
package (`python -m fedlab_nb.study.stored digits`, `… glyphs:16g`) and kept as one file a data set. `load()` and
`load("glyphs:16g")` read them; nothing is trained for that.
"""

from .table import ALPHAS, CLIENTS, DIGITS, FILE, GRIDS, SEEDS, Grid, Stored, file_of, load, sets
