"""The cost of adding a client late: the result with it, the clients that must send again, and the
bytes.

    late = fl.late("afl", "J", clients=10)
    late.alone, late.bytes, late.before.accuracy, late.after.accuracy

If every client uploads only once, the late client is enough: the server adds its upload to a sum, or repeats the
server's part with the uploads that it has kept, and the result is that of a run with all clients. A method is of this
kind if all other clients have the same messages in the ledgers of the runs without and with the late client, and at
most one in each phase. In all other methods every client takes part again: FENS trains its aggregator anew, FuseFL
trains every block, and iterative methods repeat their rounds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from ..comm.link import Direction
from ..data import format_client_list_as_setting, parse_client_indices
from ..errors import UsageError
from ..value_types import SettingValue
from .experiment import run
from .outcome import Outcome
from .settings import Settings

ONCE = ("initial model", "local models")  # phases that the other clients need not repeat


@dataclass(frozen=True)
class Late:
    """The cost of adding a client to a finished result.

    before: the result without the client
    after: the result with all clients
    alone: whether only the late client has to send or receive something
    bytes: what has to be sent, up and down: the late client's bytes, and, unless it is `alone`, those of all other
        clients in all phases but ONCE
    """

    before: Outcome
    after: Outcome
    alone: bool
    bytes: int


def late(method: str, client: int | str = 1, **settings: SettingValue) -> Late:
    """Compute the cost of adding a client to a finished result of `method`.

    client: a number, letter or name as in a list of clients, such as "3," or "D"; 1 is the last client
    settings: those of the run with all clients
    """
    with_client = run(method, **settings)
    settings_with_all: Settings = with_client.settings
    names = with_client.federation().dataset.client_names
    chosen_clients = parse_client_indices("client", client, settings_with_all.clients, names)
    if len(chosen_clients) != 1 or chosen_clients[0] not in settings_with_all.participating_clients:
        raise UsageError(f"client is {client!r}, but must be one that takes part.")
    number = chosen_clients[0]
    absent = format_client_list_as_setting(sorted((*settings_with_all.absent_clients, number)))
    without_client = run(method, **{**settings, "absent": absent})
    client_index = settings_with_all.participating_clients.index(number)
    messages = count_other_clients_by_message_kind(with_client, client_index)
    messages_before = count_other_clients_by_message_kind(
        without_client, len(without_client.label_counts)
    )
    is_sent_once = all(kind.messages == 1 for kind in messages)
    alone = messages == messages_before and is_sent_once
    total = 0
    for row in with_client.ledger.rows():
        is_repeated = not alone and row["phase"] not in ONCE
        if row["client"] == client_index or is_repeated:
            total += int(row["bytes"])
    return Late(without_client, with_client, alone, total)


class MessageKind(NamedTuple):
    """The messages of one client in one direction and phase: their total bytes and their number."""

    direction: Direction
    phase: str
    bytes: int
    messages: int


def count_other_clients_by_message_kind(
    outcome: Outcome, left_out_client_index: int
) -> Counter[MessageKind]:
    """Count the clients that have each kind of messages, without `left_out_client_index` and the
    absent ones.
    """
    messages: Counter[MessageKind] = Counter()
    for row in outcome.ledger.rows():
        takes_part = int(row["client"]) < len(outcome.label_counts)
        if takes_part and row["client"] != left_out_client_index:
            kind = MessageKind(row["direction"], row["phase"], row["bytes"], row["messages"])
            messages[kind] += 1
    return messages
