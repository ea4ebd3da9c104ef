"""The numbers of Co-Boosting's pictures and of its lesson, read off outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from ...methods import METHODS
from ...study.settings import RECIPE_FIELDS, Settings
from ...study.statistics import Band, band
from ..runs import Steps, one_run

YOURS, EQUAL, LEARNT, REAL = "yours", "equal", "Co-Boosting", "real images"
NAMES = {"ensemble": "equal weights", "fedavg": "FedAvg", "dense": "DENSE", "feddf": "FedDF"}
# Weights from real images do not depend on synthetic images or on a student: as few as possible of both.
FROM_REAL = {"ee": True, "ee_data": "real", "answer": "ensemble", "dhs": False, "generator_steps": 1}


# ------------------------------------------------------------------------------------------------------ runs
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


# ------------------------------------------------------------------------------------------------------ weights by hand
@dataclass(frozen=True)
class Tried:
    """Weights of the ensemble and what they achieve, on two halves of the shown test images; who is one of the words
    above, at least EQUAL and YOURS.

    counts:   training samples `[M, C]`;   shares: {who: w / Σ w `[M]`}
    by_class: {who: `[C]`}, accuracy of EQUAL and YOURS on the tune half, nan where there is no image
    tune, judge: {who: accuracy} on the two halves, 0–1; judge None: still hidden
    gap:      yours minus equal with its 95 % band over the images, 0–1, on the judge half (hidden: on the tune half)
    sizes:    images of the two halves
    """

    counts: np.ndarray
    shares: Mapping[str, np.ndarray]
    by_class: Mapping[str, np.ndarray]
    tune: Mapping[str, float]
    judge: Mapping[str, float] | None
    gap: Band
    sizes: tuple[int, int]


def tried(ensemble: Any, weights: Mapping[str, Sequence[float]], judged: bool) -> Tried:
    """What `weights` {who: [M]}, of which only ratios count, achieve with the models of an outcome of `ensemble`."""
    logits, labels, counts = client_logits(ensemble), ensemble.test_labels, ensemble.label_counts
    right = {who: correct(logits, w) == labels for who, w in weights.items()}
    tune, judge = halves(len(labels))
    half = judge if judged and len(judge) else tune
    difference = right[YOURS][half].astype(float) - right[EQUAL][half]
    return Tried(
        counts,
        {who: shares_of(w) for who, w in weights.items()},
        {who: by_class(right[who][tune], labels[tune], counts.shape[1]) for who in (EQUAL, YOURS)},
        {who: float(r[tune].mean()) for who, r in right.items()},
        {who: float(r[judge].mean()) for who, r in right.items()} if half is judge else None,
        band(difference.tolist()),
        (len(tune), len(judge)),
    )


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
