"""Trained clients: kept by content key, so that every method of a comparison begins with the same ones."""

from collections import OrderedDict
from typing import Any

import torch

from .store import Store


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

    def has(self, key: str, store: Store) -> bool:
        return key in self._memory or store.has(key)

    def put(self, key: str, entry: dict[str, Any], store: Store | None) -> None:
        self._keep(key, entry)
        if store:
            arrays = {f"{k}/{name}": t.numpy() for k, state in enumerate(entry["states"]) for name, t in state.items()}
            values = {"clients": len(entry["states"]), "history": entry["history"], "seconds": entry["seconds"]}
            store.put(key, values, arrays)

    def _keep(self, key: str, entry: dict[str, Any]) -> dict[str, Any]:
        self._memory[key] = entry
        while len(self._memory) > self._limit:
            self._memory.popitem(last=False)
        return entry
