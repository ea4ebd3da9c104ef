"""For all tests: an empty store, and one thread a process.

So no result of another day is read, and none is left behind; the processes of one suite share the store. One thread,
because the suite runs a process on each core.
"""

import gc
import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" not in os.environ:
    _store = tempfile.TemporaryDirectory(prefix="fedlab_nb-tests-")
    # Workers, notebooks' kernels and subprocesses inherit this variable.
    os.environ["FEDLAB_NB_STORE"] = _store.name
os.environ.setdefault("OMP_NUM_THREADS", "1")

# On a busy machine the first examples can take seconds, which says nothing about the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Imports and tests make so many objects that a collection after every 700 costs seconds.
gc.set_threshold(10_000)
# Panels on a stand-in for `study.job`; what nbval compares; how nbval starts kernels.
pytest_plugins = ["panel_fixtures", "measured_outputs", "kernel_start"]
collect_ignore = ["benchmarks"]  # scripts, with no test and no doctest in them


@pytest.fixture
def forget_names(monkeypatch):
    """Remove the names of data sets that a test adds after the test."""
    from fedlab_nb.data import registry

    monkeypatch.setattr(registry, "_added", {})
    before = dict(registry.DATASETS)
    yield
    registry.DATASETS.clear()
    registry.DATASETS.update(before)


def pytest_collection_finish(session):
    """Keep the garbage collector from looking at all that imports and collection have made, in every test."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session):
    """Let extension modules free their objects at the end."""
    gc.unfreeze()
