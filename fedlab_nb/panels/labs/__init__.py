"""The labs: one file for each method that has views of its own; any other method gets a panel with its knobs alone."""

from __future__ import annotations

import importlib

from ..lab_view import LabSpec
from . import data_free

LABS = ("fens", "fedet", "coboosting", "fusefl", "fedlpa")


def spec_of(method: str) -> LabSpec:
    """What the lab of `method` (a registered one) consists of."""
    if method in LABS:
        return importlib.import_module(f"{__name__}.{method}").LAB
    if method in data_free.KNOBS:
        return data_free.spec_of(method)
    return LabSpec(method=method, companions=("fedavg", "ensemble"), name="lab")
