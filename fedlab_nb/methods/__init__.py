"""The methods, by name. Importing this package registers them all; `METHODS` is what panels, command line and docs
are made from."""

from . import (  # noqa: F401  (each registers itself)
    centralized,
    coboosting,
    dense,
    dsfl,
    ensemble,
    fadi,
    fdafl,
    fedadam,
    fedavg,
    fedavg_multi,
    fedcvae,
    feddf,
    fedet,
    fedkd,
    fedlpa,
    fednova,
    fedov,
    fedprox,
    fedyogi,
    fens,
    fisher_merge,
    fusefl,
    local,
    moon,
    regmean,
    scaffold,
)
from .base import METHODS, PRESETS, GlobalModel, Info, Knob, Method, Progress, knob, register

# In the order in which people meet them: bounds, baselines, systems.
ORDER = (
    "local",
    "fedavg",
    "ensemble",
    "feddf",
    "fedkd",
    "fadi",
    "fdafl",
    "dense",
    "fisher_merge",
    "regmean",
    "fedcvae",
    "fedov",
    "fens",
    "fedet",
    "coboosting",
    "fusefl",
    "fedlpa",
    "fedavg_multi",
    "fedprox",
    "scaffold",
    "fednova",
    "fedadam",
    "fedyogi",
    "moon",
    "dsfl",
    "centralized",
)
METHODS_IN_ORDER = [*ORDER, *(name for name in METHODS if name not in ORDER)]
for _name in METHODS_IN_ORDER:
    METHODS[_name] = METHODS.pop(_name)

__all__ = ["METHODS", "PRESETS", "GlobalModel", "Info", "Knob", "Method", "Progress", "knob", "register"]
