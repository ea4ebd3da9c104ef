"""Runs of a method as the work of a view's button: with progress, under other settings, one after the other.

    def work(self, state):                                    # of a LabView
        outcomes = yield from one_run("fens", {**state.settings, "fens.bits": 4}, "4 bits")     # {seed: Outcome}
        outcome = yield from again(state.outcome, "ensemble")              # another method, same federation and seed
        bits = choices("fens", state.settings, {"4 bits": {"fens.bits": 4}, "8 bits": {"fens.bits": 8}})
        return (yield from all_of(bits))                                 # {"4 bits": {seed: Outcome}, "8 bits": {…}}

Clients are trained once and remembered, so that a run costs what comes after them; what was run before answers at once.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..methods import METHODS
from ..panels import Asked, PanelState
from ..plots import listed, percent
from ..plots.characters import own_name
from ..plots.words import Setting, setting_of
from ..studies import job
from ..studies.settings import RECIPE_FIELDS, Settings

Steps = Generator[tuple[int, int, str], None, Any]


def where(of: Any, *more: str) -> Setting:
    """The setting of one run in words: 'digits, α = 0.1, 10 clients, seed 0'.

    of: an Outcome, or the PanelState of a view: its first outcome, and before there is one what the controls say
    more: what is said after it
    """
    settings = (getattr(of, "outcome", None) or of).settings
    settings = getattr(settings, "__dict__", settings)
    return setting_of(settings, f"seed {settings['seed']}", *more)


def clients_in(state: PanelState) -> list[tuple[str, int]]:
    """The clients of the run, for a menu: their names and places."""
    return [
        (f"client {own_name(k, where(state))}", k) for k in range(len(state.outcome.label_counts))
    ]


def mostly(counts: np.ndarray, names: Sequence[str]) -> str:
    """'mostly 3 (60 %), 5 (30 %) and 1 (5 %)' of a client's counts `[C]`: at most three classes, the largest first."""
    order = [c for c in np.argsort(-counts, kind="stable")[:3] if counts[c] > 0]
    return "mostly " + listed(
        [f"{names[c]} ({percent(counts[c] / counts.sum())})" for c in order] or ["no class"]
    )


def taken(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `settings` that a run of `method` alone takes: not those of a method beside it."""
    own = {
        *RECIPE_FIELDS,
        *(f.name for f in fields(Settings)),
        *(knob.name for knob in METHODS[method].fields()),
    }
    own = own - {"overrides"} | {"seeds", "cache"}
    return {
        name: value for name, value in settings.items() if name.removeprefix(f"{method}.") in own
    }


def one_run(
    method: str, settings: Mapping[str, Any], name: str = "", part: int = 0, parts: int = 1
) -> Steps:
    """Run `method` with those of `settings` (as for `study.job`) that it takes, all their seeds: returns
    {seed: Outcome}; a failed run raises.

    Yields (done, total, `name` with the phase), as part `part` (from 0) of `parts` of the work.
    """
    outcomes: dict[int, Any] = {}
    for event in job(method, **taken(method, settings)):
        if event.error is not None:
            raise event.error
        if event.outcome is not None:
            outcomes[event.seed] = event.outcome
        begun = 0.0 if event.outcome is not None else event.done / max(event.total, 1)
        share = min(1.0, (len(outcomes) + begun) / settings.get("seeds", 1))
        yield (
            100 * part + int(100 * share),
            100 * parts,
            ", ".join(filter(None, (name, event.phase))),
        )
    return outcomes


def again(
    outcome: Any, method: str, changes: Mapping[str, Any] | None = None, name: str = ""
) -> Steps:
    """Run `method` as `outcome` was run, but for `changes`: returns its outcome."""
    outcomes = yield from one_run(method, {**outcome.settings.keywords(), **(changes or {})}, name)
    return outcomes[outcome.settings.seed]


def plain_ensemble(state: PanelState) -> Steps:
    """The plain ensemble of the run's clients: the one that ran beside it, else again."""
    known = state.others.get("ensemble", {}).get(state.outcome.settings.seed)
    return known or (yield from again(state.outcome, "ensemble"))


def choices(method: str, settings: Mapping[str, Any], of: Mapping[Any, Mapping[str, Any]]) -> Asked:
    """The runs of `method` for each choice `of` {name: changes of the settings}."""
    return {name: (method, taken(method, {**settings, **changes})) for name, changes in of.items()}


def all_of(asked: Asked) -> Steps:
    """Carry out the runs that a view has `asked` for: returns {name: {seed: Outcome}}."""
    outcomes: dict[Any, dict[int, Any]] = {}
    for part, (name, (method, settings)) in enumerate(asked.items()):
        outcomes[name] = yield from one_run(method, settings, str(name), part, len(asked))
    return outcomes
