"""For all tests: an empty store of their own, so that no result of another day is read and none is left behind; and one
thread a process, because the suite runs a process on each core. The processes of one suite share the store."""

import gc
import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" not in os.environ:
    _store = tempfile.TemporaryDirectory(prefix="fedlab_nb-tests-")
    os.environ["FEDLAB_NB_STORE"] = (
        _store.name
    )  # workers, notebooks' kernels and subprocesses inherit it
os.environ.setdefault("OMP_NUM_THREADS", "1")

# On a busy machine the first examples can take seconds, which says nothing of the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

gc.set_threshold(
    10_000
)  # imports and tests make so many objects that it need not look after every 700
# panels on a stand-in for `study.job`; what nbval compares, and how it starts kernels
pytest_plugins = ["panel_fixtures", "measured_outputs", "kernel_start"]
collect_ignore = ["benchmarks"]  # scripts, with no test and no doctest in them


@pytest.fixture
def forget_names(monkeypatch):
    """Names of data sets that a test adds are gone after it."""
    from fedlab_nb.data import registry

    monkeypatch.setattr(registry, "_added", {})
    before = dict(registry.DATASETS)
    yield
    registry.DATASETS.clear()
    registry.DATASETS.update(before)


def pytest_collection_finish(session):
    """What the imports and the collection have made stays: the garbage collector need not look at it in every test."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session):
    """So that extension modules can take leave of what is theirs."""
    gc.unfreeze()
