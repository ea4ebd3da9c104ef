"""The ensemble Σ_k w_k f_k of a finished run: its clients' logits on the shown test images, what weights achieve."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ...methods import METHODS
from ...studies.settings import RECIPE_FIELDS, Settings
from ..runs import Steps, one_run

NAMES = {"ensemble": "equal weights", "fedavg": "FedAvg", "dense": "DENSE", "feddf": "FedDF"}
# Weights from real images do not depend on synthetic images or on a student: as few as possible of both.
FROM_REAL = {"ee": True, "ee_data": "real", "answer": "ensemble", "dhs": False, "generator_steps": 1}


def settings_for(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `settings` that a run of `method` alone takes: not those of a method beside it."""
    own = {*RECIPE_FIELDS, *(f.name for f in fields(Settings)), *(knob.name for knob in METHODS[method].fields())}
    own |= {"seeds", "cache"}
    return {k: v for k, v in settings.items() if k.removeprefix(f"{method}.") in own - {"overrides"}}


def beside(outcome: Any, method: str, words: str, **changes: Any) -> Steps:
    """Run `method` as `outcome` was run, with the options of `coboosting` that `changes` names: returns its outcome."""
    settings = {**asdict(outcome.settings), **dict(outcome.settings.overrides)}
    settings |= {f"coboosting.{name}": value for name, value in changes.items()}
    outcomes = yield from one_run(method, settings_for(method, settings), words)
    return outcomes[outcome.settings.seed]


def last_of_ensemble(outcomes: Mapping[int, Any]) -> dict[int, float]:
    """{seed: test accuracy of f̄_w after the last epoch} of {seed: outcome of Co-Boosting}."""
    return {seed: o.report.ensemble_curve[-1] for seed, o in outcomes.items()}


def server_points(outcome: Any) -> list[tuple[float, float]]:
    """(epoch, accuracy) of the server model; empty where the run predicted with the ensemble."""
    if outcome.options["answer"] == "ensemble":
        return []
    epochs = len(outcome.report.ensemble_curve)
    points = [p for p in outcome.history if p["phase"] == "distillation"]
    return [(round((2 * p["progress"] - 1) * epochs), p["accuracy"]) for p in points]


def client_logits(ensemble: Any) -> np.ndarray:
    """Every client's logits `[N, M, C]` on the shown test images: the features of an outcome of `ensemble`."""
    return ensemble.test_features.astype(np.float32).reshape(len(ensemble.test_labels), len(ensemble.label_counts), -1)


def halves(images: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the tune and the judge half of so many images, always the same."""
    order = np.random.default_rng(0).permutation(images)
    return order[::2], order[1::2]


def correct(logits: np.ndarray, w: Sequence[float]) -> np.ndarray:
    """Classes `[N]` that Σ_k w_k f_k says, from client logits `[N, M, C]`; equal weights where all are 0."""
    w = np.asarray(w, dtype=np.float32)
    return np.einsum("m,nmc->nc", w if w.sum() > 0 else np.ones_like(w), logits).argmax(1)


def by_class(right: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Accuracy for each class `[C]`, nan where there is no image."""
    count = np.bincount(labels, minlength=classes)
    return np.where(count > 0, np.bincount(labels, right, minlength=classes) / np.maximum(count, 1), np.nan)


def shares_of(w: Sequence[float]) -> np.ndarray:
    """w / Σ w; equal shares where Σ w = 0."""
    w = np.asarray(w, dtype=float)
    return w / w.sum() if w.sum() > 0 else np.full(len(w), 1 / len(w))
