"""Experiments: settings, the run itself, grids of runs, statistics, and the store of results."""

from . import engine
from .engine import study, sweep
from .experiment import Event, compare, job, run
from .grid import Study
from .outcome import Outcome
from .results import Outcomes, Results, Table
from .settings import MethodRunPlan, Settings
from .store import Store, StoreWarning, find_store_folder
