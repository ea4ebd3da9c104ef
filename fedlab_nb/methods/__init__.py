"""The methods, by name. Importing this package registers them all; `METHODS` is what panels, command line and docs
are made from.

Every module and every package beside this file is imported, and registers what methods it has: a new one is a new file
or folder, and nothing here is edited. Not methods themselves: the contract (`base`, `context`, `results`, `poison`) and
`parts`, what several methods share.
"""

import importlib
import pkgutil

from .base import (
    METHODS,
    EnsembleModel,
    GlobalModel,
    Method,
    NetworkModel,
    Progress,
    Report,
    grouped,
    knob,
    label_of,
    register,
    short,
)

# In the order in which people meet them: where to start, the five systems, one-shot baselines, many rounds, a
# reference.
ORDER = tuple(
    "local fedavg ensemble fens fedlpa fusefl fedet coboosting "
    "feddf fedkd fedkt fadi fdafl dense fisher_merge regmean matching fedma ties fedcvae distilled fedov afl deepafl "
    "gauss fedpft fedavg_multi fedprox scaffold fednova fedadam fedyogi moon dsfl centralized".split()
)
for _beside in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_beside.name}")
for _name in [*ORDER, *(name for name in METHODS if name not in ORDER)]:
    METHODS[_name] = METHODS.pop(_name)
