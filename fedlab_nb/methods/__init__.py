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
from .base import (
    METHODS,
    PRESETS,
    EnsembleModel,
    GlobalModel,
    Info,
    Knob,
    Method,
    NetworkModel,
    Progress,
    knob,
    register,
)

# In the order in which people meet them: where to start, the five systems, one-shot baselines, many rounds, the
# upper bound.
ORDER = (
    "local",
    "fedavg",
    "ensemble",
    "fens",
    "fedlpa",
    "fusefl",
    "fedet",
    "coboosting",
    "feddf",
    "fedkd",
    "fadi",
    "fdafl",
    "dense",
    "fisher_merge",
    "regmean",
    "fedcvae",
    "fedov",
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

__all__ = [
    "METHODS",
    "PRESETS",
    "EnsembleModel",
    "GlobalModel",
    "Info",
    "Knob",
    "Method",
    "NetworkModel",
    "Progress",
    "knob",
    "register",
]
