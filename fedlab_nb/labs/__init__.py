"""The labs: `lab("fens")` opens the panel of a method, with its own knobs and views.

The lab of a method is the folder of its name. It has a `LAB`, which is a `LabSpec`. A new lab is a
new folder: nothing in this file has to be edited. A method without a folder gets a panel with its
knobs alone.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any

from ..errors import check_allowed_name
from ..methods import METHODS
from ..panels import LabPanel, LabSpec, Panel
from .coboosting.images import DATA_FREE, make_data_free_lab_spec

__all__ = ["find_lab_spec", "lab"]


def lab(method: str, *, methods: Iterable[str] | None = None, **options: Any) -> Panel:
    """Make the panel of one method: its knobs as controls, its own views, and a few methods to compare it with.

    method:   the name of any registered method
    methods:  the other methods; the default is the lab's own choice
    options:  as for `playground`, and the method's knobs: `rounds=100`, or with the method's name
              `**{"fens.rounds": 100}`

    Raises UsageError for a name or value that no control takes.
    """
    return LabPanel(
        find_lab_spec(check_allowed_name("method", method, METHODS)), methods=methods, **options
    )


def find_lab_spec(method: str) -> LabSpec:
    """Find the method, knobs and views of the lab of a registered `method`."""
    folders = {module.name for module in pkgutil.iter_modules(__path__) if module.ispkg}
    if method in folders:
        return importlib.import_module(f"{__name__}.{method}").LAB
    if method in DATA_FREE:
        return make_data_free_lab_spec(method)
    return LabSpec(method=method, companions=("fedavg", "ensemble"), name="lab")
