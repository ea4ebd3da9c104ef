"""The link between clients and server: everything that crosses it is copied, and counted in bytes.

    received = link.up(k, model_state(model), phase="models")     # client k -> server
    received = link.down(k, quantise_state(state), phase="ensemble")
    link.ledger.by_phase()                                        # {"models": (up, down), ...}

A payload is a tensor, a `Quantised` tensor, None, or dicts, lists and tuples of those. What is counted is the body:
each tensor's numbers at the size of its own dtype (float32: 4 bytes, float64: 8, int64: 8, bool: 1) and each quantised
tensor's packed codes with its scale. Header is not counted: names and shapes, and Python ints, strings and booleans
inside the payload (a count, a label of a part). Python floats are refused, since a number that was measured or learnt
must be in a tensor, where it counts. Compression of the bytes, encryption and latency are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..errors import UsageError, demand, whole
from .codec import Quantised


class Link:
    """The only way between `clients` clients, numbered from 0, and the server. `ledger` has what has passed.

    `absent`: how many more there are, numbered after these, that nothing is broadcast to.
    """

    def __init__(self, clients: int, absent: int = 0):
        self.clients, self.ledger = clients, Ledger(clients + absent)

    def up(self, client: int, payload: Any, *, phase: str) -> Any:
        """Send from client to server; returns what the server receives, a deep copy without gradient history."""
        return self._send(client, payload, "up", phase)

    def down(self, client: int, payload: Any, *, phase: str) -> Any:
        """Send from server to client; returns what the client receives, a deep copy without gradient history."""
        return self._send(client, payload, "down", phase)

    def broadcast(self, payload: Any, *, phase: str, clients: Iterable[int] | None = None) -> Any:
        """Send the same to every client, or to `clients`, counted once for each; returns one copy, which all of them
        share.
        """
        received, count = _copy(payload), size(payload)
        for client in range(self.clients) if clients is None else clients:
            self.ledger.add(client, "down", phase, count)
        return received

    def _send(self, client: int, payload: Any, direction: str, phase: str) -> Any:
        received = _copy(payload)  # first, so that a refused payload leaves no entry
        self.ledger.add(client, direction, phase, size(payload))
        return received


class Ledger:
    """Exact bytes by client, direction and phase. One entry for each of these triples, so rounds cost no memory."""

    def __init__(self, clients: int):
        self.clients = whole("clients", clients, 1)
        self.up = 0  # bytes, all clients together
        self.down = 0
        self._entries: dict[tuple[int, str, str], list[int]] = {}  # -> [bytes, messages]

    @property
    def total(self) -> int:
        """Bytes in both directions."""
        return self.up + self.down

    def add(self, client: int, direction: str, phase: str, count: int, messages: int = 1) -> None:
        """Record `count` bytes; UsageError for a client or direction that does not exist, or a phase without a name."""
        plain = type(client) is int and type(direction) is type(phase) is str
        entry = self._entries.get((client, direction, phase)) if plain else None
        if entry is None:  # what has an entry was checked with its first message
            client = whole("client", client, 0, self.clients - 1)
            named = direction in ("up", "down") and isinstance(phase, str) and phase
            what = f"not {direction!r} and {phase!r}"
            demand(named, f"A message needs a direction, up or down, and a phase's name, {what}.")
            entry = self._entries.setdefault((client, direction, phase), [0, 0])
        entry[0] += count
        entry[1] += messages
        if direction == "up":
            self.up += count
        else:
            self.down += count

    def by_client(self) -> dict[int, tuple[int, int]]:
        """{client: (up, down)} in bytes, for every client, also those that were never heard of."""
        return self._sums(dict.fromkeys(range(self.clients), (0, 0)), lambda client, phase: client)

    def by_phase(self) -> dict[str, tuple[int, int]]:
        """{phase: (up, down)} in bytes over all clients, in the order in which the phases first appeared."""
        return self._sums({}, lambda client, phase: phase)

    def rows(self) -> list[dict[str, int | str]]:
        """One dict(client, direction, phase, bytes, messages) an entry, in the order of their first messages."""
        return [
            {
                "client": client,
                "direction": direction,
                "phase": phase,
                "bytes": count,
                "messages": messages,
            }
            for (client, direction, phase), (count, messages) in self._entries.items()
        ]

    def to_json(self) -> dict:
        """A dict that `json.dumps` takes and `from_json` reads."""
        return {"clients": self.clients, "rows": self.rows()}

    @classmethod
    def from_json(cls, data: Mapping) -> Ledger:
        """The ledger that `to_json` gave; UsageError if `data` is anything else."""
        try:
            ledger = cls(data["clients"])
            for row in data["rows"]:
                count, messages = (whole(key, row[key], 0) for key in ("bytes", "messages"))
                ledger.add(row["client"], row["direction"], row["phase"], count, messages)
        except (KeyError, TypeError) as error:
            raise UsageError(f"This is no ledger as to_json writes it: {error!r}.") from error
        return ledger

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ledger)
            and self.clients == other.clients
            and self._entries == other._entries
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Ledger(clients={self.clients}, up={self.up}, down={self.down})"

    def _sums(self, start: dict, key: Callable) -> dict:
        for (client, direction, phase), (count, _) in self._entries.items():
            up, down = start.get(key(client, phase), (0, 0))
            start[key(client, phase)] = (
                (up + count, down) if direction == "up" else (up, down + count)
            )
        return start


def serialise(payload: Any) -> bytes:
    """The body of a payload: the raw bytes of its tensors one after the other, in the order in which they stand."""
    sent = (t.detach().cpu().contiguous().reshape(-1) for t in _tensors(payload))
    return b"".join(
        t.view(torch.uint8).numpy().tobytes() for t in sent if t.numel()
    )  # an empty view may have stride 0


def size(payload: Any) -> int:
    """`len(serialise(payload))`, without making the bytes."""
    return sum(t.numel() * t.element_size() for t in _tensors(payload))


def _tensors(payload: Any) -> Iterator[torch.Tensor]:
    """Every tensor that a payload sends, depth first; UsageError for anything that a payload may not hold."""
    if isinstance(payload, torch.Tensor):
        dense = payload.layout == torch.strided and not payload.is_meta
        demand(
            dense,
            f"A payload's tensors must be dense and hold numbers, not {payload.layout} on {payload.device}.",
        )
        yield payload
    elif isinstance(payload, Quantised):
        yield from payload.parts
    elif isinstance(payload, dict):
        for name, part in payload.items():
            demand(
                isinstance(name, (str, int)),
                f"A payload's names must be text or whole numbers, not {name!r}.",
            )
            yield from _tensors(part)
    elif isinstance(payload, (list, tuple)):
        for part in payload:
            yield from _tensors(part)
    else:
        header, what = payload is None or isinstance(payload, (int, str)), type(payload).__name__
        demand(
            header,
            f"A {what} cannot be sent; put its numbers into tensors, so that their bytes can be counted.",
        )


def _copy(payload: Any) -> Any:
    """A payload of the same build whose tensors share no memory and no gradient history with the original's."""
    if isinstance(payload, torch.Tensor):
        return payload.detach().clone(memory_format=torch.contiguous_format)
    if isinstance(payload, Quantised):
        return dataclasses.replace(payload, codes=_copy(payload.codes), scale=_copy(payload.scale))
    if isinstance(payload, dict):
        return {name: _copy(part) for name, part in payload.items()}
    if isinstance(payload, (list, tuple)):
        return (tuple if isinstance(payload, tuple) else list)(_copy(part) for part in payload)
    return payload  # header or None; `size` refuses the rest
