"""The link between clients and server: everything that crosses it is copied, and counted in bytes.

    received = link.up(k, model_state(model), phase="models")     # client k -> server
    received = link.down(k, quantise_state(state), phase="ensemble")
    link.ledger.by_phase()                                        # {"models": (up, down), ...}

A payload is a tensor, a `Quantised` tensor, None, or dicts, lists and tuples of those. What is
counted is the body: each tensor's numbers at the size of its own dtype (float32: 4 bytes, float64:
8, int64: 8, bool: 1) and each quantised tensor's packed codes with its scale. Header is not
counted: names and shapes, and Python ints, strings and booleans inside the payload (a count, a
label of a part). Python floats are refused, since a number that was measured or learnt must be in a
tensor, where it counts. Compression of the bytes, encryption and latency are not modelled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from ..errors import UsageError, check_whole_number
from .codec import Quantised


class Link:
    """The only way between `clients` clients, numbered from 0, and the server. `ledger` has what
    has passed.

    `absent`: how many more clients there are, numbered after these, that nothing is broadcast to.
    """

    def __init__(self, clients: int, absent: int = 0):
        self.clients = clients
        self.ledger = Ledger(clients + absent)

    def up(self, client: int, payload: Any, *, phase: str) -> Any:
        """Send from client to server; returns what the server receives, a deep copy without
        gradient history."""
        return self._send(client, payload, "up", phase)

    def down(self, client: int, payload: Any, *, phase: str) -> Any:
        """Send from server to client; returns what the client receives, a deep copy without
        gradient history."""
        return self._send(client, payload, "down", phase)

    def broadcast(self, payload: Any, *, phase: str, clients: Iterable[int] | None = None) -> Any:
        """Send the same to every client, or to `clients`, counted once for each.

        Returns one copy, which all of them share.
        """
        received = _copy_payload(payload)
        count = count_bytes(payload)
        if clients is None:
            clients = range(self.clients)
        for client in clients:
            self.ledger.add(client, "down", phase, count)
        return received

    def _send(self, client: int, payload: Any, direction: str, phase: str) -> Any:
        received = _copy_payload(payload)  # first, so that a refused payload leaves no entry
        self.ledger.add(client, direction, phase, count_bytes(payload))
        return received


class UpDown(NamedTuple):
    """Bytes from clients to the server (`up`) and from the server to clients (`down`)."""

    up: int
    down: int

    def add(self, direction: str, count: int) -> UpDown:
        """The sums with `count` bytes more in `direction`."""
        if direction == "up":
            return UpDown(self.up + count, self.down)
        return UpDown(self.up, self.down + count)


class Ledger:
    """Exact bytes by client, direction and phase. One entry for each of these triples, so rounds
    cost no memory."""

    def __init__(self, clients: int):
        self.clients = check_whole_number("clients", clients, 1)
        self.up = 0  # bytes, all clients together
        self.down = 0
        self._entries: dict[tuple[int, str, str], list[int]] = {}  # -> [bytes, messages]

    @property
    def total(self) -> int:
        """Bytes in both directions."""
        return self.up + self.down

    def add(self, client: int, direction: str, phase: str, count: int, messages: int = 1) -> None:
        """Record `count` bytes; UsageError for a client or direction that does not exist, or a
        phase without a name."""
        entry = self._find_entry(client, direction, phase)
        if entry is None:
            entry = self._make_entry(client, direction, phase)
        entry[0] += count
        entry[1] += messages
        if direction == "up":
            self.up += count
        else:
            self.down += count

    def _find_entry(self, client: Any, direction: Any, phase: Any) -> list[int] | None:
        """The entry of these three, which were checked with its first message; None if there is
        none yet."""
        # True == 1 and 1.0 == 1 as keys: only the exact types may find an entry.
        if type(client) is int and type(direction) is str and type(phase) is str:
            return self._entries.get((client, direction, phase))
        return None

    def _make_entry(self, client: Any, direction: Any, phase: Any) -> list[int]:
        """A new entry, or the one that an equal client (such as numpy's 2) has; UsageError as `add`
        says."""
        client = check_whole_number("client", client, 0, self.clients - 1)
        if direction not in ("up", "down") or not isinstance(phase, str) or not phase:
            raise UsageError(
                "A message needs a direction, up or down, and a phase's name,"
                f" not {direction!r} and {phase!r}."
            )
        return self._entries.setdefault((client, direction, phase), [0, 0])

    def by_client(self) -> dict[int, UpDown]:
        """{client: bytes up and down}, for every client, also those without any message."""
        sums = dict.fromkeys(range(self.clients), UpDown(0, 0))
        for (client, direction, _phase), (count, _messages) in self._entries.items():
            sums[client] = sums[client].add(direction, count)
        return sums

    def by_phase(self) -> dict[str, UpDown]:
        """{phase: bytes up and down} of all clients together, in the order in which the phases first
        appeared."""
        sums: dict[str, UpDown] = {}
        for (_client, direction, phase), (count, _messages) in self._entries.items():
            sums[phase] = sums.get(phase, UpDown(0, 0)).add(direction, count)
        return sums

    def rows(self) -> list[dict[str, int | str]]:
        """One dict(client, direction, phase, bytes, messages) an entry, in the order of their first
        messages."""
        rows: list[dict[str, int | str]] = []
        for (client, direction, phase), (count, messages) in self._entries.items():
            row: dict[str, int | str] = {"client": client, "direction": direction, "phase": phase}
            row["bytes"] = count
            row["messages"] = messages
            rows.append(row)
        return rows

    def to_json(self) -> dict:
        """A dict that `json.dumps` takes and `from_json` reads."""
        return {"clients": self.clients, "rows": self.rows()}

    @classmethod
    def from_json(cls, data: Mapping) -> Ledger:
        """The ledger that `to_json` gave; UsageError if `data` is anything else."""
        try:
            ledger = cls(data["clients"])
            for row in data["rows"]:
                count = check_whole_number("bytes", row["bytes"], 0)
                messages = check_whole_number("messages", row["messages"], 0)
                ledger.add(row["client"], row["direction"], row["phase"], count, messages)
        except (KeyError, TypeError) as error:
            raise UsageError(f"This is no ledger as to_json writes it: {error!r}.") from error
        return ledger

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return False
        return self.clients == other.clients and self._entries == other._entries

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Ledger(clients={self.clients}, up={self.up}, down={self.down})"


def serialise(payload: Any) -> bytes:
    """The body of a payload: the raw bytes of its tensors one after the other, in the order in
    which they stand."""
    body = []
    for tensor in _iterate_tensors(payload):
        values = tensor.detach().cpu().contiguous().reshape(-1)
        if values.numel():  # an empty tensor may have stride 0, which `view` refuses
            body.append(values.view(torch.uint8).numpy().tobytes())
    return b"".join(body)


def count_bytes(payload: Any) -> int:
    """`len(serialise(payload))`, without making the bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in _iterate_tensors(payload))


def _iterate_tensors(payload: Any) -> Iterator[torch.Tensor]:
    """Every tensor that a payload sends, depth first; UsageError for anything that a payload may
    not hold."""
    if isinstance(payload, torch.Tensor):
        if payload.layout != torch.strided or payload.is_meta:
            raise UsageError(
                "A payload's tensors must be dense and hold numbers,"
                f" not {payload.layout} on {payload.device}."
            )
        yield payload
    elif isinstance(payload, Quantised):
        yield from payload.tensors
    elif isinstance(payload, dict):
        for name, item in payload.items():
            if not isinstance(name, (str, int)):
                raise UsageError(f"A payload's names must be text or whole numbers, not {name!r}.")
            yield from _iterate_tensors(item)
    elif isinstance(payload, (list, tuple)):
        for item in payload:
            yield from _iterate_tensors(item)
    elif payload is not None and not isinstance(payload, (int, str)):
        raise UsageError(
            f"A {type(payload).__name__} cannot be sent; put its numbers into tensors,"
            " so that their bytes can be counted."
        )


def _copy_payload(payload: Any) -> Any:
    """A payload of the same build whose tensors share no memory and no gradient history with the
    original's."""
    if isinstance(payload, torch.Tensor):
        return payload.detach().clone(memory_format=torch.contiguous_format)
    if isinstance(payload, Quantised):
        codes = _copy_payload(payload.codes)
        scale = _copy_payload(payload.scale)
        return dataclasses.replace(payload, codes=codes, scale=scale)
    if isinstance(payload, dict):
        return {name: _copy_payload(item) for name, item in payload.items()}
    if isinstance(payload, tuple):
        return tuple(_copy_payload(item) for item in payload)
    if isinstance(payload, list):
        return [_copy_payload(item) for item in payload]
    return payload  # header or None; `count_bytes` refuses the rest
