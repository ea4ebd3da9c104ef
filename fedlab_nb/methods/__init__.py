"""The methods. Importing this package registers all of them in `METHODS`, from which panels,
command line and docs are made.

Every module and package beside this file is imported, and registers its methods. So a new method is
a new file or folder, and nothing here has to be edited. Some files have no method: the contract
(`base`, `context`, `run_outputs`, `poison`, `memory`, `traffic`), and `parts`, the code that
several methods share.
"""

import importlib
import pkgutil

from .base import (
    METHODS,
    Method,
    choose_method_label,
    group_method_names,
    knob,
    register,
    shorten_method_title,
)
from .run_outputs import EnsembleModel, GlobalModel, NetworkModel, Progress, Report

# The order in which lists show the methods. A method that is not named here comes after all others.
ORDER = """
local fedavg ensemble fens fedlpa fusefl fedet coboosting feddf fedkd fedkt fadi fdafl dense
fisher_merge regmean matching fedma ties fedcvae distilled fedov afl deepafl gauss fedpft
fedavg_multi fedprox scaffold fednova fedadam fedyogi moon dsfl fedgkt centralized
""".split()
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
for _name in [*ORDER, *(name for name in METHODS if name not in ORDER)]:
    METHODS[_name] = METHODS.pop(_name)
