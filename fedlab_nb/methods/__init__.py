"""The methods, by name. Importing this package registers them all; `METHODS` is what panels, command line and docs
are made from.

Every module and every package beside this file is imported, and registers what methods it has: a new one is a new file
or folder, and nothing here is edited. Not methods themselves: the contract (`base`, `context`, `results`, `poison`) and
`parts`, what several methods share.
"""

import importlib
import pkgutil

from ..declared import declared
from .base import METHODS, Method, grouped, knob, label_of, register, short
from .results import EnsembleModel, GlobalModel, NetworkModel, Progress, Report

# In the order in which people meet them.
ORDER = tuple(name for name in declared("methods/costs.toml") if name != "local training")
for _beside in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_beside.name}")
for _name in [*ORDER, *(name for name in METHODS if name not in ORDER)]:
    METHODS[_name] = METHODS.pop(_name)
