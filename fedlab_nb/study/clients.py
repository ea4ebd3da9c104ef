"""Trained clients: kept by content key, so that every method of a comparison begins with the same ones, and several
seeds' trained as one stack.

A band over five seeds needs five times as many clients of the same architecture and recipe. Where clients are stacked
anyway, theirs join the stack: as many steps as one seed takes, each a little wider. Every client keeps its own stream
of shuffles, so that it becomes what it would be alone, to rounding.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..methods.context import Context
from ..models import Network, parameter_count
from ..models.state import finite
from ..training import Tick, auto_backend, train_clients
from ..training.clients import by_architecture
from ..training.loop import Shard
from .store import Store

SEEDS = 8  # seeds that are trained together at most
NUMBERS = 2**24  # and numbers in all their models


class TrainedClients:
    """Trained clients, remembered in memory (a few settings) and in the store."""

    def __init__(self, limit: int = 8) -> None:
        self._memory: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._limit = limit

    def get(self, key: str, store: Store | None) -> dict[str, Any] | None:
        if key in self._memory:
            self._memory.move_to_end(key)
            return self._memory[key]
        stored = store.get(key) if store else None
        if stored is None:
            return None
        values, arrays = stored
        states: list[dict[str, torch.Tensor]] = [{} for _ in range(values["clients"])]
        for name, array in arrays.items():
            k, _, tensor = name.partition("/")
            states[int(k)][tensor] = torch.from_numpy(array)
        return self._keep(key, {"states": states, "history": values["history"], "seconds": values["seconds"]})

    def put(self, key: str, entry: dict[str, Any], store: Store | None) -> None:
        self._keep(key, entry)
        if store:
            arrays = {f"{k}/{name}": t.numpy() for k, state in enumerate(entry["states"]) for name, t in state.items()}
            values = {"clients": len(entry["states"]), "history": entry["history"], "seconds": entry["seconds"]}
            store.put(key, values, arrays)

    def unused(self, key: str) -> None:
        """Say of the clients of `key` that they were trained in company and that the first run that asks has not been
        yet: to that run they are its own."""
        self._memory[key]["unused"] = True

    def _keep(self, key: str, entry: dict[str, Any]) -> dict[str, Any]:
        self._memory[key] = entry
        while len(self._memory) > self._limit:
            self._memory.popitem(last=False)
        return entry


@dataclass
class SeedTraining:
    """One seed's clients in a common training."""

    run: Any  # the study's run, which draws the seed's curve and keeps its clients
    context: Context
    models: list[Network]
    shards: Sequence[Shard]

    @property
    def finite(self) -> bool:
        """Whether no client's training diverged."""
        return bool(finite(p for model in self.models for p in model.parameters()))


def further_seeds(context: Context, models: Sequence[Network], count: int) -> int:
    """How many of `count` further seeds should be trained together with `models`: 0 where clients are not stacked."""
    for members in by_architecture(models).values():
        first, together = models[members[0]], len(members) * (count + 1)
        way = auto_backend(context.device.type, first, context.input_shape, together)
        if context.backend == "loop" or (context.backend == "auto" and way == "loop"):
            return 0
    numbers = sum(map(parameter_count, models))
    return max(0, min(count, SEEDS - 1, NUMBERS // numbers - 1))


def train_together(seeds: Sequence[SeedTraining]) -> Iterator[Tick]:
    """Train all clients of all seeds in place, by the first one's recipe."""
    context = seeds[0].context
    return train_clients(
        [model for one in seeds for model in one.models],
        [shard for one in seeds for shard in one.shards],
        context.recipe,
        seed=[one.context.seed for one in seeds for _ in one.models],
        ids=[k for one in seeds for k in range(len(one.models))],
        backend=context.backend,
    )
