"""Seeds as a batch dimension: the clients of several seeds of one setting, trained as one stack.

A band over five seeds needs five times as many clients of the same architecture and recipe. Where clients are stacked
anyway, theirs join the stack: as many steps as one seed takes, each a little wider. Every client keeps its own stream
of shuffles, so that it becomes what it would be alone, to rounding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..methods.context import Context
from ..models import Network, parameter_count
from ..models.state import finite
from ..training import Tick, auto_backend, train_clients
from ..training.clients import by_architecture
from ..training.loop import Shard

SEEDS = 8  # seeds that are trained together at most
NUMBERS = 2**24  # and numbers in all their models


@dataclass
class Party:
    """One seed's clients in a common training."""

    run: Any  # the study's run, which draws the seed's curve and keeps its clients
    context: Context
    models: list[Network]
    shards: Sequence[Shard]

    @property
    def finite(self) -> bool:
        """Whether no client's training diverged."""
        return bool(finite(p for model in self.models for p in model.parameters()))


def companions(context: Context, models: Sequence[Network], count: int) -> int:
    """How many of `count` further seeds should be trained together with `models`: 0 where clients are not stacked."""
    for members in by_architecture(models).values():
        first, together = models[members[0]], len(members) * (count + 1)
        way = auto_backend(context.device.type, first, context.input_shape, together)
        if context.backend == "loop" or (context.backend == "auto" and way == "loop"):
            return 0
    numbers = sum(map(parameter_count, models))
    return max(0, min(count, SEEDS - 1, NUMBERS // numbers - 1))


def train_parties(parties: Sequence[Party]) -> Iterator[Tick]:
    """Train all clients of all parties in place, by the first one's recipe."""
    context = parties[0].context
    return train_clients(
        [model for party in parties for model in party.models],
        [shard for party in parties for shard in party.shards],
        context.recipe,
        seed=[party.context.seed for party in parties for _ in party.models],
        ids=[k for party in parties for k in range(len(party.models))],
        backend=context.backend,
    )
