"""Runs of a method as the work of a view's button: with progress, one after the other.

    def work(self, state):                                   # of a LabView
        outcomes = yield from run_method_on_all_seeds("fens", {**state.settings, "fens.bits": 4})   # {seed: Outcome}
        outcome = yield from rerun_with_method(state.outcome, "ensemble")      # same federation, same seed
        changes = {"4 bits": {"fens.bits": 4}, "8 bits": {"fens.bits": 8}}
        planned = plan_runs("fens", state.settings, changes)
        return (yield from run_planned_runs(planned))                       # {"4 bits": {seed: Outcome}, …}

Trained clients are cached, so a run costs only what comes after local training. A run that was made
before comes from the cache at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..methods import METHODS
from ..panels import MethodAndArgumentsByName, PanelState, ProgressThenResult
from ..plots import format_percent, join_with_and
from ..plots.array_types import CountPerClass
from ..plots.words import SettingCaption, format_client_for_sentence, make_setting_caption
from ..studies import Outcome, job
from ..studies.settings import RECIPE_FIELDS, Settings
from ..value_types import SettingsByName, SettingValue

OutcomesBySeed = dict[int, Outcome]
OutcomesByRun = dict[Any, OutcomesBySeed]  # by the name of the planned run
ClientTitle = str
ClientIndex = int  # from 0
NAMED_CLASSES = 3  # how many classes `describe_commonest_classes` names


def describe_setting(outcome_or_state: Outcome | PanelState, *extra_words: str) -> SettingCaption:
    """Describe the setting of one run: 'digits, α = 0.1, 10 clients, seed 0'.

    outcome_or_state: an Outcome, or a PanelState; for a state, the setting of its first outcome, or
        without an outcome that of the controls
    extra_words: words that are added at the end
    """
    outcome = getattr(outcome_or_state, "outcome", None)
    settings = outcome_or_state.settings if outcome is None else outcome.settings
    if not isinstance(settings, Mapping):
        settings = vars(settings)
    return make_setting_caption(settings, f"seed {settings['seed']}", *extra_words)


def list_client_menu_options(state: PanelState) -> list[tuple[ClientTitle, ClientIndex]]:
    """List the clients of the run's first outcome as options of a menu: [("client A", 0), …]."""
    setting = describe_setting(state)
    clients = len(state.outcome.label_counts)
    return [(f"client {format_client_for_sentence(k, setting)}", k) for k in range(clients)]


def describe_commonest_classes(samples_per_class: CountPerClass, class_names: Sequence[str]) -> str:
    """Describe a client's commonest classes: 'mostly 3 (60 %), 5 (30 %) and 1 (5 %)'.

    samples_per_class: the client's samples by class `[C]`
    """
    parts = []
    for c in np.argsort(-samples_per_class, kind="stable")[:NAMED_CLASSES]:
        if samples_per_class[c] > 0:
            share = samples_per_class[c] / samples_per_class.sum()
            parts.append(f"{class_names[c]} ({format_percent(share)})")
    return "mostly " + (join_with_and(parts) or "no class")


def select_settings_of_method(method: str, settings: SettingsByName) -> dict[str, SettingValue]:
    """Select those of `settings` that a run of `method` takes, without the knobs of other methods."""
    allowed = {"seeds", "cache", *RECIPE_FIELDS}
    allowed.update(field.name for field in fields(Settings) if field.name != "overrides")
    allowed.update(knob.name for knob in METHODS[method].fields())
    prefix = f"{method}."
    return {name: value for name, value in settings.items() if name.removeprefix(prefix) in allowed}


def run_method_on_all_seeds(
    method: str,
    settings: SettingsByName,
    run_label: str = "",
    part_index: int = 0,
    part_count: int = 1,
) -> ProgressThenResult[OutcomesBySeed]:
    """Run `method` on all seeds, and return {seed: Outcome}. A run that fails raises its error.

    settings:   as for `study.job`; knobs of other methods are left out
    run_label:  stands before the phase in the words that are yielded
    part_index: which part of the whole work this is, from 0
    part_count: the number of parts of the whole work

    Yields (done, total, words).
    """
    outcomes: dict[int, Any] = {}
    seeds = settings.get("seeds", 1)
    for event in job(method, **select_settings_of_method(method, settings)):
        if event.error is not None:
            raise event.error
        if event.outcome is None:
            share_of_seed = event.done / max(event.total, 1)
        else:
            outcomes[event.seed] = event.outcome
            share_of_seed = 0.0
        share = min(1.0, (len(outcomes) + share_of_seed) / seeds)
        words = ", ".join(text for text in (run_label, event.phase) if text)
        yield 100 * part_index + int(100 * share), 100 * part_count, words
    return outcomes


def rerun_with_method(
    outcome: Outcome,
    method: str,
    changed_settings: SettingsByName | None = None,
    run_label: str = "",
) -> ProgressThenResult[Outcome]:
    """Run `method` with the settings and the seed of `outcome`, except for `changed_settings`.

    Returns its outcome.
    """
    settings = {**outcome.settings.to_keywords(), **(changed_settings or {})}
    outcomes = yield from run_method_on_all_seeds(method, settings, run_label)
    return outcomes[outcome.settings.seed]


def get_or_run_ensemble(state: PanelState) -> ProgressThenResult[Outcome]:
    """Return the outcome of the plain ensemble of the run's clients, which is run unless it was run
    already.
    """
    outcomes = state.others.get("ensemble", {})
    outcome = outcomes.get(state.outcome.settings.seed)
    if outcome is None:
        outcome = yield from rerun_with_method(state.outcome, "ensemble")
    return outcome


def plan_runs(
    method: str,
    settings: SettingsByName,
    changed_settings_by_run_name: Mapping[Any, SettingsByName],
) -> MethodAndArgumentsByName:
    """Plan the runs of `method` that a view's button makes.

    changed_settings_by_run_name: for each run, the settings in which it differs from `settings`
    """
    planned = {}
    for name, changes in changed_settings_by_run_name.items():
        planned[name] = (method, select_settings_of_method(method, {**settings, **changes}))
    return planned


def run_planned_runs(planned_runs: MethodAndArgumentsByName) -> ProgressThenResult[OutcomesByRun]:
    """Make the `planned_runs` runs, one after the other; returns {name: {seed: Outcome}}."""
    outcomes: dict[Any, dict[int, Any]] = {}
    for part, (name, (method, settings)) in enumerate(planned_runs.items()):
        outcomes[name] = yield from run_method_on_all_seeds(
            method, settings, str(name), part, len(planned_runs)
        )
    return outcomes
