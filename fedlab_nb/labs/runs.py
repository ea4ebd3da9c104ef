"""Runs of a method as the work of a view's button: with progress, one after the other.

    def work(self, state):                                   # of a LabView
        outcomes = yield from run_method("fens", {**state.settings, "fens.bits": 4})   # {seed: Outcome}
        outcome = yield from rerun(state.outcome, "ensemble")      # same federation, same seed
        changes = {"4 bits": {"fens.bits": 4}, "8 bits": {"fens.bits": 8}}
        planned = plan_runs("fens", state.settings, changes)
        return (yield from run_all(planned))                       # {"4 bits": {seed: Outcome}, …}

Trained clients are cached, so that a run costs only what comes after them. A run that was made
before is answered at once.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..methods import METHODS
from ..panels import PanelState, PlannedRuns
from ..plots import join_words, percent
from ..plots.words import Setting, make_setting, plain_client_name
from ..studies import Outcome, job
from ..studies.settings import RECIPE_FIELDS, Settings

Steps = Generator[tuple[int, int, str], None, Any]
NAMED_CLASSES = 3  # how many classes `describe_classes` names


def describe_setting(source: Any, *more: str) -> Setting:
    """The setting of one run in words: 'digits, α = 0.1, 10 clients, seed 0'.

    source: an Outcome, or a PanelState: then its first outcome, or without one what the controls
        say
    more:   words that are added at the end
    """
    outcome = getattr(source, "outcome", None)
    settings = source.settings if outcome is None else outcome.settings
    if not isinstance(settings, Mapping):
        settings = vars(settings)
    return make_setting(settings, f"seed {settings['seed']}", *more)


def list_clients(state: PanelState) -> list[tuple[str, int]]:
    """The clients of the run as options of a menu: (name, index) pairs."""
    setting = describe_setting(state)
    clients = len(state.outcome.label_counts)
    return [(f"client {plain_client_name(k, setting)}", k) for k in range(clients)]


def describe_classes(counts: np.ndarray, names: Sequence[str]) -> str:
    """A client's commonest classes in words: 'mostly 3 (60 %), 5 (30 %) and 1 (5 %)'.

    counts: the client's samples by class `[C]`
    """
    shares = []
    for c in np.argsort(-counts, kind="stable")[:NAMED_CLASSES]:
        if counts[c] > 0:
            shares.append(f"{names[c]} ({percent(counts[c] / counts.sum())})")
    return "mostly " + (join_words(shares) or "no class")


def select_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `settings` that a run of `method` takes, without the knobs of other methods."""
    allowed = {"seeds", "cache", *RECIPE_FIELDS}
    allowed.update(field.name for field in fields(Settings) if field.name != "overrides")
    allowed.update(knob.name for knob in METHODS[method].fields())
    prefix = f"{method}."
    return {name: value for name, value in settings.items() if name.removeprefix(prefix) in allowed}


def run_method(
    method: str, settings: Mapping[str, Any], name: str = "", part: int = 0, parts: int = 1
) -> Steps:
    """Run `method` on all seeds, and return {seed: Outcome}. A run that fails raises its error.

    settings:    as for `study.job`; what belongs to other methods is left out
    name:        comes before the phase in the words that are yielded
    part, parts: which part of the whole work this is (from 0), and of how many

    Yields (done, total, words).
    """
    outcomes: dict[int, Any] = {}
    seeds = settings.get("seeds", 1)
    for event in job(method, **select_settings(method, settings)):
        if event.error is not None:
            raise event.error
        if event.outcome is None:
            share_of_seed = event.done / max(event.total, 1)
        else:
            outcomes[event.seed] = event.outcome
            share_of_seed = 0.0
        share = min(1.0, (len(outcomes) + share_of_seed) / seeds)
        words = ", ".join(text for text in (name, event.phase) if text)
        yield 100 * part + int(100 * share), 100 * parts, words
    return outcomes


def rerun(
    outcome: Outcome, method: str, changes: Mapping[str, Any] | None = None, name: str = ""
) -> Steps:
    """Run `method` with the settings and the seed of `outcome`, except for `changes`.

    Returns its outcome.
    """
    settings = {**outcome.settings.to_keywords(), **(changes or {})}
    outcomes = yield from run_method(method, settings, name)
    return outcomes[outcome.settings.seed]


def get_ensemble(state: PanelState) -> Steps:
    """The outcome of the plain ensemble of the run's clients. It runs only if it did not run
    yet.
    """
    outcomes = state.others.get("ensemble", {})
    outcome = outcomes.get(state.outcome.settings.seed)
    if outcome is None:
        outcome = yield from rerun(state.outcome, "ensemble")
    return outcome


def plan_runs(
    method: str, settings: Mapping[str, Any], changes_by_name: Mapping[Any, Mapping[str, Any]]
) -> PlannedRuns:
    """The runs of `method` that a view's button makes.

    changes_by_name: for each run how its settings differ from `settings`
    """
    return {
        name: (method, select_settings(method, {**settings, **changes}))
        for name, changes in changes_by_name.items()
    }


def run_all(planned: PlannedRuns) -> Steps:
    """Make the `planned` runs, one after the other: returns {name: {seed: Outcome}}."""
    outcomes: dict[Any, dict[int, Any]] = {}
    for part, (name, (method, settings)) in enumerate(planned.items()):
        outcomes[name] = yield from run_method(method, settings, str(name), part, len(planned))
    return outcomes
