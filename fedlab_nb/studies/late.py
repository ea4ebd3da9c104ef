"""A client that comes late: what the result becomes with it, who has to send something again, and how many bytes.

    late = fl.late("afl", "J", clients=10)
    late.alone, late.bytes, late.before.accuracy, late.after.accuracy

Where every client uploads once, the server adds one upload more to a sum, or does its part again with the uploads that
it has kept, and the result is the one of a run with everybody. It is so where the ledgers of the runs without that
client and with it say the same of all others, at most one message in each phase. In all other methods everybody takes
part once more: FENS trains its aggregator anew, FuseFL every block, and methods of many rounds go through them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..data import format_clients, parse_clients
from ..errors import UsageError
from .experiment import run
from .outcome import Outcome
from .settings import Settings

ONCE = ("initial model", "local models")  # phases that the others need not repeat


@dataclass(frozen=True)
class Late:
    """What it takes to add a client to a finished result.

    before: the result without the client
    after: the result with everybody
    alone: whether the late client is the only one that sends or receives something
    bytes: what is sent then, up and down: its own bytes, or also those of everybody's phases, but the initial and the
        local models of the others
    """

    before: Outcome
    after: Outcome
    alone: bool
    bytes: int


def late(method: str, client: int | str = 1, **settings: Any) -> Late:
    """What it takes to add a client to a finished result of `method`.

    client: a number, letter or name in a list, such as "3," or "D", or 1 for the last one
    settings: of the run with everybody
    """
    after = run(method, **settings)
    everybody: Settings = after.settings
    names = after.federation().dataset.client_names
    chosen = parse_clients("client", client, everybody.clients, names)
    if len(chosen) != 1 or chosen[0] not in everybody.members:
        raise UsageError(f"client is {client!r}, but must be one that takes part.")
    number = chosen[0]
    absent = format_clients(sorted((*everybody.absent_clients, number)))
    before = run(method, **{**settings, "absent": absent})
    place = everybody.members.index(number)
    messages = count_messages(after, place)
    messages_before = count_messages(before, len(before.label_counts))
    is_sent_once = all(times == 1 for *_, times in messages)
    alone = messages == messages_before and is_sent_once
    total = 0
    for row in after.ledger.rows():
        is_repeated = not alone and row["phase"] not in ONCE
        if row["client"] == place or is_repeated:
            total += int(row["bytes"])
    return Late(before, after, alone, total)


def count_messages(outcome: Outcome, place: int) -> Counter:
    """How many clients, other than that of `place` and the absent ones, have (direction, phase, bytes, messages)."""
    messages: Counter = Counter()
    for row in outcome.ledger.rows():
        takes_part = int(row["client"]) < len(outcome.label_counts)
        if takes_part and row["client"] != place:
            messages[row["direction"], row["phase"], row["bytes"], row["messages"]] += 1
    return messages
