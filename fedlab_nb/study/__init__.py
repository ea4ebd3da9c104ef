"""Experiments: settings, the run itself, grids of runs, statistics, and the store that remembers.

The room can be called by its own name, since people write `fl.study([...], alpha=[...], seeds=10)`: see `engine.study`.
"""

import sys
import types
from typing import Any

from . import engine
from .engine import sweep
from .experiment import Event, compare, job, run
from .grid import Study
from .outcome import Outcome
from .overview import Overview, plan
from .results import Results
from .settings import Plan, Settings
from .store import Store, StoreWarning, store_folder
from .table import Outcomes, Table


class _Room(types.ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> Results:
        return engine.study(*arguments, **settings)


sys.modules[__name__].__class__ = _Room
