"""What FuseFL's views and its lesson share: the lesson's runs, and what both read off a run."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ...data.cues import CUES
from ...errors import demand
from ...panels.lab_view import PanelState
from ...rng import generator
from ...study import Outcomes
from ...study import lesson_runs as lessons
from ...training import ClientModels
from ..runs import where
from .plots.steps import Replay

CLIENTS = 5
MOST = 2000  # test samples and samples of one client that are looked at, at most


def runs(methods: str | Sequence[str] = "fusefl", alpha: float = lessons.ALPHA, **settings: Any) -> Outcomes:
    """The lesson's runs; FuseFL's knobs are given as `blocks=1`, `head="average"`."""
    return lessons.runs(methods, alpha, clients=CLIENTS, **settings)


def alone(state: PanelState) -> ClientModels:
    """Clients trained alone: the ensemble's where it ran beside, at full width; else FuseFL's own after round 1."""
    ensemble = state.others.get("ensemble", {}).get(state.outcome.settings.seed)
    if ensemble is not None:
        return ensemble.model.clients
    rounds = state.outcome.model.rounds
    demand(
        rounds, "These networks are too large to be stored with the run; tick Ensemble beside FuseFL, and press Run."
    )
    return rounds[0]


def by_classifier(outcomes: Iterable[Any]) -> dict[int, dict[str, dict[int, float]]]:
    """{K: {classifier: {seed: accuracy}}} of FuseFL's `outcomes`, a classifier being a key of `FuseFLReport.heads`."""
    accuracies: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for outcome in outcomes:
        for head, accuracy in outcome.report.heads.items():
            accuracies[outcome.options["blocks"]][head][outcome.settings.seed] = accuracy
    return accuracies


def replay_of(state: PanelState) -> Replay:
    """The present run as steps; while it runs, as much of it as the knobs and the report so far say."""
    outcome, report = state.outcome, state.report
    if outcome is None:
        return Replay(state.federation.clients, state.setting, state.knobs, {}, report)
    return Replay(outcome.settings.clients, where(outcome), outcome.options, outcome.ledger.by_phase(), report)


def with_and_without_cue(data: Any, strength: float, seed: int, cue: str = "tint") -> dict[str, torch.Tensor]:
    """Test samples as they are and, of images, with the cue of their own class and with one drawn at random."""
    x, y = data.x_test[:MOST], data.y_test[:MOST]
    if x.ndim != 4:
        return {"clean": x}

    def marked(agree: float) -> torch.Tensor:
        stream = generator(seed, "random cue")
        return CUES[cue](x, y, strength, classes=data.classes, agree=agree, generator=stream)

    return {"clean": x, "tied": marked(1), "untied": marked(0)}
