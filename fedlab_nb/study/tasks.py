"""A study's work in pieces that other processes can carry out: train clients, run one method from them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..errors import FedlabError
from ..training.backend import suitable_threads
from .clients import TrainedClients
from .experiment import Run, one, rerun
from .grid import Cell
from .outcome import Outcome
from .settings import Plan
from .store import Store

Done = tuple[Cell, Outcome | None, str]  # a cell, and its outcome or why it failed
Trained = Mapping[str, Mapping[str, Any]]  # {clients' key: states, history, seconds}


def train(plans: Sequence[Plan], cache: bool) -> dict[str, Any]:
    """Train the clients of `plans` (one recipe, other seeds) together; those whose training fails are left out, since
    their own runs will tell."""
    clients, store = TrainedClients(limit=max(len(plans), 1)), Store("clients") if cache else None
    for plan in plans:
        if clients.get(plan.clients_key(), store) is None:
            run = Run(plan, clients, cache, plans, whole=True)
            with suppress(FedlabError), suitable_threads(plan.settings.device, run.federation.dataset.input_shape):
                run.begin()
                for _ in run.watch(run.ctx.local_training()):
                    pass
    entries = {plan.clients_key(): clients.get(plan.clients_key(), store) for plan in plans}
    return {key: entry for key, entry in entries.items() if entry is not None}


def run_one(plan: Plan, trained: Trained | None, cache: bool) -> Outcome:
    """One run, from clients that `train` has trained."""
    clients = TrainedClients()
    if trained is not None and (entry := trained.get(plan.clients_key())) is not None:
        clients.put(plan.clients_key(), dict(entry), None)
    outcomes = [event.outcome for event in one(plan, clients, cache) if event.outcome is not None]
    return outcomes[-1]


def recall(plan: Plan) -> Outcome | None:
    """The outcome in the store, or None."""
    entry = Store("runs").get(plan.run_key())
    return None if entry is None else restored(plan, entry)


def restored(plan: Plan, entry: tuple[dict[str, Any], dict[str, Any]]) -> Outcome:
    """An outcome from its stored form."""
    return Outcome.from_entry(*entry, plan=plan, model=lambda: rerun(plan))
