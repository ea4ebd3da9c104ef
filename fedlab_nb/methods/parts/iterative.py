"""What all methods of many rounds let people set, and what the tables say of them; `rounds.py` is their round."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import demand
from ...training import Recipe
from ..base import Method, knob
from ..context import Context

# What the tables say of a method of T rounds with one architecture, in `register`.
ROUNDS: dict[str, Any] = {
    "rounds": "T rounds",
    "traffic": "2 S_θ T",
    "leaks": "each client's model and sample count, every round",
    "needs": ["one architecture"],
}


def epochs_knob(default: int) -> Any:
    """The field `local_epochs` of an iterative method."""
    text = "How often a client goes through its own data in a round."
    return knob(default, "Epochs per round", text, symbol="E", low=1, high=1000)


@dataclass(frozen=True)
class Iterative(Method):
    """The numbers that every iterative method has.

    FENS gives its iterative baselines up to 100 rounds of 2 local epochs. Here a client of the digits has so few
    samples that 2 epochs are about 8 steps of SGD, and 20 such rounds end far below what the rounds could reach: 10
    epochs are the default (4 for SCAFFOLD), five times the passes of a one-shot method. With 2 epochs the local work
    of 20 rounds is that of one shot (`local_passes`).
    """

    trains_locally = False

    rounds: int = knob(20, "Rounds", symbol="T", low=1, high=1000)
    local_epochs: int = epochs_knob(10)
    per_round: int = knob(0, "Clients per round", symbol="m", low=0, high=10_000)

    # Whether it reads the mean gradient off how far a client has moved, for which clients must train by SGD.
    counts_steps: ClassVar[bool] = False

    def validate(self, ctx: Context) -> None:
        super().validate(ctx)
        fits = ctx.recipe.optimizer == "sgd" or not self.counts_steps
        demand(
            fits,
            f"{self.info.title} counts SGD steps, but the clients train with {ctx.recipe.optimizer}; set "
            "optimizer=sgd.",
        )

    def local_passes(self, recipe: Recipe, sizes: Sequence[float]) -> float:
        taking_part = min(self.per_round or len(sizes), len(sizes)) / len(sizes)
        return self.rounds * self.local_epochs * taking_part
