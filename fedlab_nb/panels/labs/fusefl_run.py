"""What FuseFL's views read off a run: its own settings, its federation, its clients trained alone, its replay."""

from __future__ import annotations

from typing import Any

from ...data import Federation, federate
from ...draw.fusefl_steps import Replay
from ...errors import UsageError
from ...study.settings import Settings
from ..lab_view import Look
from ..scene import words


def run_of(look: Look) -> dict[str, Any]:
    """Keyword arguments of `study.job` that the present run was started with, `seeds` left out."""
    row = next(row for row in look.record.current if row.method == "fusefl")
    return {name: value for name, value in row.settings.items() if name != "seeds"}


def settings_of(look: Look) -> Settings:
    """The present run's settings for the seed that is shown."""
    return Settings.make(**run_of(look)).with_seed(look.outcome.setting["seed"])


def where(look: Look) -> str:
    """The setting of the one seed that is shown, in words."""
    return words({**run_of(look), "seed": look.outcome.setting["seed"], "seeds": 1})


def federation_of(look: Look) -> Federation:
    """Who held what in the present run: the controls may have moved on since."""
    settings = settings_of(look)
    return federate(settings.dataset, **settings.federation_options())


def alone(look: Look) -> tuple[Any, list[Any]]:
    """(object with `logits(x) [M, N, C]`, the M networks) of clients trained alone: the ensemble's where it ran beside,
    at full width; else FuseFL's own after its first round.
    """
    ensemble = look.others.get("ensemble", {}).get(look.outcome.setting["seed"])
    if ensemble is not None:
        clients = ensemble.model.clients
        return clients, list(clients.modules)
    rounds = look.outcome.model.notes.rounds
    if not rounds:
        raise UsageError("These networks are too large to keep their clients: tick Ensemble beside FuseFL, and run.")
    return rounds[0], list(rounds[0].models)


def replay_of(look: Look) -> Replay:
    """The present run as steps; while it runs, as much of it as the knobs say."""
    outcome = look.outcome
    if outcome is None:
        knobs, federation = look.knobs, look.federation
        return Replay(federation.clients, knobs["blocks"], look.setting, knobs["adaptor"], knobs["head"])
    options, extras = outcome.setting["options"], outcome.extras
    home = outcome.artefacts.get("home")
    return Replay(
        outcome.setting["clients"], options["blocks"], where(look), options["adaptor"], options["head"],
        phases=outcome.ledger.by_phase(), shapes=extras["shapes"], trainable=extras["trainable"],
        home=() if home is None else home.tolist(), outside=extras.get("outside", ()), heads=extras["heads"],
    )  # fmt: skip
