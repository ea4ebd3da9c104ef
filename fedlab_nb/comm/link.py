"""The link between clients and server: everything that crosses it is copied, and counted in bytes.

    received = link.up(k, copy_model_state(model), phase="models")     # client k -> server
    received = link.down(k, quantise_state(state), phase="ensemble")
    link.ledger.by_phase()                                        # {"models": (up, down), ...}

A payload is a tensor, a `QuantisedTensor`, None, or dicts, lists and tuples of those. Its body is
counted: each tensor's numbers at the size of its own dtype (float32: 4 bytes, float64: 8, int64: 8,
bool: 1) and each quantised tensor's packed codes with its scale. Its header is not counted: names
and shapes, and Python ints, strings and booleans inside the payload (such as a count or the name of
a part). Python floats are refused: a measured or learnt number belongs in a tensor, where it is
counted. Compression, encryption and latency are not modelled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypedDict

import torch

from ..errors import UsageError, check_whole_number
from ..value_types import Bytes, ClientIndex, JsonObject, JsonValue
from .codec import QuantisedTensor

Direction = Literal["up", "down"]  # from a client to the server, from the server to a client
# A tensor, a `QuantisedTensor`, None, or dicts, lists and tuples of those (see above).
Payload = Any
BytesAndMessages = list[int]  # two numbers: how many bytes, and how many messages


class LedgerRow(TypedDict):
    """The bytes and the number of messages of one client in one direction and one phase."""

    client: ClientIndex
    direction: Direction
    phase: str
    bytes: int
    messages: int


class Link:
    """The only way between the server and its clients. `ledger` records what has been sent.

    clients: the number of clients that take part; they are numbered from 0
    absent: the number of absent clients, numbered after the others; they get no broadcast
    """

    def __init__(self, clients: int, absent: int = 0) -> None:
        self.clients = clients
        self.ledger = Ledger(clients + absent)

    def up(self, client: ClientIndex, payload: Payload, *, phase: str) -> Payload:
        """Send from client to server.

        Returns what the server receives: a deep copy without gradient history.
        """
        return self._record_bytes_and_copy(client, payload, "up", phase)

    def down(self, client: ClientIndex, payload: Payload, *, phase: str) -> Payload:
        """Send from server to client.

        Returns what the client receives: a deep copy without gradient history.
        """
        return self._record_bytes_and_copy(client, payload, "down", phase)

    def broadcast(
        self, payload: Payload, *, phase: str, clients: Iterable[int] | None = None
    ) -> Payload:
        """Send one payload to every client, or to `clients`; it is counted once for each of them.

        Returns a single copy for all of them.
        """
        received = _copy_payload(payload)
        count = count_payload_bytes(payload)
        if clients is None:
            clients = range(self.clients)
        for client in clients:
            self.ledger.add(client, "down", phase, count)
        return received

    def _record_bytes_and_copy(
        self, client: ClientIndex, payload: Payload, direction: Direction, phase: str
    ) -> Payload:
        received = _copy_payload(payload)  # first, so that a refused payload leaves no entry
        self.ledger.add(client, direction, phase, count_payload_bytes(payload))
        return received


class UpDown(NamedTuple):
    """Bytes from clients to the server (`up`) and from the server to clients (`down`)."""

    up: int
    down: int

    def with_added_bytes(self, direction: Direction, byte_count: int) -> UpDown:
        """The sums after `byte_count` more bytes in `direction`."""
        if direction == "up":
            return UpDown(self.up + byte_count, self.down)
        return UpDown(self.up, self.down + byte_count)


BytesByClient = dict[int, UpDown]  # of every client
BytesByPhase = dict[str, UpDown]  # of all clients together


class Ledger:
    """Exact bytes by client, direction and phase.

    Each such triple has one entry, so more rounds need no more memory.
    """

    def __init__(self, clients: int) -> None:
        self.clients = check_whole_number("clients", clients, 1)
        self.up = 0  # bytes, all clients together
        self.down = 0
        # (client, direction, phase) -> [bytes, messages]
        self._entries: dict[tuple[int, Direction, str], BytesAndMessages] = {}

    @property
    def total(self) -> Bytes:
        """Bytes in both directions."""
        return self.up + self.down

    def add(
        self,
        client: ClientIndex,
        direction: Direction,
        phase: str,
        byte_count: int,
        message_count: int = 1,
    ) -> None:
        """Record `byte_count` bytes. UsageError for an unknown client or direction, or an empty phase."""
        entry = self._find_entry(client, direction, phase)
        if entry is None:
            entry = self._find_or_make_checked_entry(client, direction, phase)
        entry[0] += byte_count
        entry[1] += message_count
        if direction == "up":
            self.up += byte_count
        else:
            self.down += byte_count

    def _find_entry(
        self, client: ClientIndex, direction: Direction, phase: str
    ) -> BytesAndMessages | None:
        """The entry of this triple; None if there is none yet. Needs no check: entries were checked when made."""
        # True == 1 and 1.0 == 1 as keys: only the exact types may find an entry.
        if type(client) is int and type(direction) is str and type(phase) is str:
            return self._entries.get((client, direction, phase))  # type: ignore[arg-type]
        return None

    def _find_or_make_checked_entry(
        self, client: ClientIndex, direction: Direction, phase: str
    ) -> BytesAndMessages:
        """A new entry, or the existing one if only the types differ (numpy's 2). UsageError as in `add`."""
        client = check_whole_number("client", client, 0, self.clients - 1)
        if direction not in ("up", "down") or not isinstance(phase, str) or not phase:
            raise UsageError(
                "A message needs a direction, up or down, and a phase's name, not "
                f"{direction!r} and {phase!r}."
            )
        return self._entries.setdefault((client, direction, phase), [0, 0])

    def by_client(self) -> BytesByClient:
        """{client: bytes up and down} of every client; 0 and 0 for one without a message."""
        sums = dict.fromkeys(range(self.clients), UpDown(0, 0))
        for (client, direction, _phase), (count, _messages) in self._entries.items():
            sums[client] = sums[client].with_added_bytes(direction, count)
        return sums

    def by_phase(self) -> BytesByPhase:
        """{phase: bytes up and down} of all clients together; phases in order of first appearance."""
        sums: dict[str, UpDown] = {}
        for (_client, direction, phase), (count, _messages) in self._entries.items():
            sums[phase] = sums.get(phase, UpDown(0, 0)).with_added_bytes(direction, count)
        return sums

    def rows(self) -> list[LedgerRow]:
        """One row per entry, in the order of their first messages."""
        rows = []
        for (client, direction, phase), (count, messages) in self._entries.items():
            row = LedgerRow(
                client=client, direction=direction, phase=phase, bytes=count, messages=messages
            )
            rows.append(row)
        return rows

    def to_json(self) -> JsonObject:
        """A dict that `json.dumps` takes and `from_json` reads."""
        return {"clients": self.clients, "rows": self.rows()}

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Ledger:
        """The ledger that `to_json` gave; UsageError if `data` is anything else."""
        try:
            ledger = cls(data["clients"])
            for row in data["rows"]:
                count = check_whole_number("bytes", row["bytes"], 0)
                messages = check_whole_number("messages", row["messages"], 0)
                ledger.add(row["client"], row["direction"], row["phase"], count, messages)
        except (KeyError, TypeError) as error:
            raise UsageError(f"This is not a ledger as to_json writes it: {error!r}.") from error
        return ledger

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return False
        return self.clients == other.clients and self._entries == other._entries

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Ledger(clients={self.clients}, up={self.up}, down={self.down})"


def serialise_payload(payload: Payload) -> bytes:
    """The body of a payload: the raw bytes of its tensors, one after the other, in their order."""
    body = []
    for tensor in _iterate_tensors(payload):
        values = tensor.detach().cpu().contiguous().reshape(-1)
        if values.numel():  # an empty tensor may have stride 0, which `view` refuses
            body.append(values.view(torch.uint8).numpy().tobytes())
    return b"".join(body)


def count_payload_bytes(payload: Payload) -> Bytes:
    """`len(serialise_payload(payload))`, without making the bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in _iterate_tensors(payload))


def _iterate_tensors(payload: Payload) -> Iterator[torch.Tensor]:
    """Every tensor of a payload, depth first. UsageError for anything that a payload cannot hold."""
    if isinstance(payload, torch.Tensor):
        if payload.layout != torch.strided or payload.is_meta:
            raise UsageError(
                "A payload's tensors must be dense and hold numbers, not "
                f"{payload.layout} on {payload.device}."
            )
        yield payload
    elif isinstance(payload, QuantisedTensor):
        yield from payload.codes_and_scale
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
            f"A {type(payload).__name__} cannot be sent; put its numbers into tensors, so "
            "that their bytes can be counted."
        )


def _copy_payload(payload: Payload) -> Payload:
    """A copy of a payload whose tensors share no memory and no gradient history with the original's."""
    if isinstance(payload, torch.Tensor):
        return payload.detach().clone(memory_format=torch.contiguous_format)
    if isinstance(payload, QuantisedTensor):
        codes = _copy_payload(payload.codes)
        scale = _copy_payload(payload.scale)
        return dataclasses.replace(payload, codes=codes, scale=scale)
    if isinstance(payload, dict):
        return {name: _copy_payload(item) for name, item in payload.items()}
    if isinstance(payload, tuple):
        return tuple(_copy_payload(item) for item in payload)
    if isinstance(payload, list):
        return [_copy_payload(item) for item in payload]
    return payload  # header or None; `count_payload_bytes` refuses the rest
