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
from ..errors import demand
from .experiment import run
from .outcome import Outcome
from .settings import Settings

ONCE = ("initial model", "local models")  # phases of what the others need not repeat


@dataclass(frozen=True)
class Late:
    """`before`: the result without the client, `after`: with everybody.

    alone: whether the late client is the only one that sends or receives something;   bytes: that come to pass then, up
    and down: its own, or also those of everybody's phases, but the initial and the local models of the others
    """

    before: Outcome
    after: Outcome
    alone: bool
    bytes: int


def late(method: str, client: Any = 1, **settings: Any) -> Late:
    """What it takes to add a client to a finished result of `method`. `client`: a number, letter or name in a list,
    such as "3," or "D", or 1 for the last one; `settings`: of the run with everybody."""
    after = run(method, **settings)
    everybody: Settings = after.settings
    (number, *more) = parse_clients(
        "client", client, everybody.clients, after.federation().dataset.client_names
    )
    demand(
        not more and number in everybody.members,
        f"client is {client!r}, but must be one that takes part.",
    )
    before = run(
        method, **{**settings, "absent": format_clients(sorted((*everybody.gone[0], number)))}
    )
    place = everybody.members.index(number)
    asked = others(after, place)
    alone = asked == others(before, len(before.label_counts)) and all(
        times == 1 for *_, times in asked
    )
    rows = after.ledger.rows()
    counted = [row for row in rows if row["client"] == place or not (alone or row["phase"] in ONCE)]
    return Late(before, after, alone, sum(int(row["bytes"]) for row in counted))


def others(outcome: Outcome, place: int) -> Counter:
    """How often a client other than that of `place` has (direction, phase, bytes, messages)."""
    rows = [
        row
        for row in outcome.ledger.rows()
        if int(row["client"]) < len(outcome.label_counts) and row["client"] != place
    ]
    return Counter((row["direction"], row["phase"], row["bytes"], row["messages"]) for row in rows)
