"""How the classroom's knobs are chosen: one study for all methods, on validation images.

`tries.toml` says what is tried, and by which rule one is taken; `digits.json` is what came out, made by `python -m
fedlab_nb.study.tuning`, and `glyphs16g.json` that of the second classroom set. `choice(method)` reads from it the knobs
that the method's defaults have to equal.
"""

from .table import FILE, Tried, choice, file_of, load, read
from .tries import PARTS, SETS, Part, part, parts, validation_digits, validation_set
