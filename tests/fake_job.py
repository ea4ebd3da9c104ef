"""A stand-in for `study.job`: outcomes without training, a gate that holds steps up, methods that fail."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from fedlab_nb.comm import Ledger
from fedlab_nb.data import federate
from fedlab_nb.methods import Report
from fedlab_nb.studies import Event
from fedlab_nb.training.calibration import Calibration

LOCAL = "local training"


@dataclass(eq=False)
class FakeOutcome:
    """What panels read of an outcome."""

    method: str
    setting: dict
    accuracy: float
    ledger: Ledger
    per_class: list
    per_client: list
    label_counts: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    history: list = field(default_factory=list)
    report: Report = Report()

    calibration: Calibration = Calibration(
        "logits", 1.5, (0,) * 10 + (40,) * 5, (0,) * 10 + (20,) * 5, (34.0,) * 15
    )

    seconds_local, seconds_method = 1.0, 0.5
    settings = property(lambda self: SimpleNamespace(**self.setting))
    bytes_up = property(lambda self: self.ledger.up)
    bytes_down = property(lambda self: self.ledger.down)

    def about(self):
        return self.setting

    def without_model(self, features=True):
        return self

    def to_json(self):
        return {
            **self.setting,
            "method": self.method,
            "accuracy": self.accuracy,
            "bytes_up": self.bytes_up,
        }


class FakeJob:
    """Called like `study.job`.

    gate: an event for which each step waits
    fails: {method: error}
    warns: the text of a warning in each run, or ""
    calls: [(methods, seeds, settings)] so far; closed: how many of these have ended
    """

    def __init__(self):
        self.gate = threading.Event()
        self.fails = {}
        self.warns = ""
        self.gate.set()
        self.calls = []
        self.closed = 0
        self.steps, self.report = 4, None

    def __call__(self, methods, *, seeds=1, **settings):
        self.calls.append((list(methods), seeds, settings))
        return self._events(list(methods), seeds, settings)

    def _events(self, methods, seeds, settings):
        try:
            if self.warns:
                warnings.warn(self.warns, UserWarning, stacklevel=1)
            for seed in range(settings["seed"], settings["seed"] + seeds):
                for method in methods:
                    yield from self._run_one(method, seed, settings)
        finally:
            self.closed += 1

    def _run_one(self, method, seed, settings):
        for step in range(self.steps):
            self.gate.wait(60)
            point = {
                "phase": LOCAL,
                "progress": step / 2 / self.steps,
                "accuracy": step / 10,
                "bytes": 10 * step,
            }
            yield Event(method, seed, LOCAL, step + 1, self.steps, curve=point, report=self.report)
        if method in self.fails:
            yield Event(method, seed, "failed", error=self.fails[method])
            return
        outcome = make_outcome(method, seed, settings)
        yield Event(method, seed, "done", 1, 1, outcome=outcome)


def make_outcome(method, seed, settings):
    """An outcome on a real federation, with random numbers that depend on method and seed."""
    federation = federate("digits", alpha=settings["alpha"], clients=settings["clients"], seed=seed)
    rng = np.random.default_rng(sum(map(ord, method)) + seed)
    ledger = Ledger(federation.clients)
    for k in range(federation.clients):
        ledger.add(k, "down", "initial model", 1000)
        ledger.add(k, "up", "local models", 1000 + len(method))
    labels = rng.integers(0, 10, 40)
    accuracy = float(rng.uniform(0.2, 0.9))
    end = {"phase": "end", "progress": 1.0, "accuracy": accuracy, "bytes": ledger.total}
    history = [{"phase": LOCAL, "progress": 0.5, "accuracy": 0.3, "bytes": 1}, end]
    return FakeOutcome(
        method, {**settings, "seed": seed}, accuracy, ledger, rng.uniform(0, 1, 9).tolist() + [None],
        rng.uniform(0, 1, federation.clients).tolist(), federation.label_counts.numpy(),
        np.eye(10)[labels] + rng.normal(0, 0.1, (40, 10)), labels, history,
    )  # fmt: skip
