"""Experiments: settings, the run itself, and the store that remembers."""

from .experiment import Event, Outcomes, compare, job, run
from .outcome import Outcome
from .settings import Plan, Settings, plan
from .store import Store, StoreWarning, store_folder
from .sweep import sweep

__all__ = [
    "Event",
    "Outcome",
    "Outcomes",
    "Plan",
    "Settings",
    "Store",
    "StoreWarning",
    "compare",
    "job",
    "plan",
    "run",
    "store_folder",
    "sweep",
]
