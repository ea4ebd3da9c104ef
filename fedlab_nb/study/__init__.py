"""Experiments: settings, the run itself, and the store that remembers."""

from .outcome import Outcome
from .experiment import Event, Outcomes, compare, job, run
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
