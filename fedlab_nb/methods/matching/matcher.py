"""The server's matching of networks of one width: each client with the reference, then with the mean of the others.

Which units fit is said by a rule of `rules.py`, which of a network's numbers move with a unit by `wiring.py`.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ...models import Network
from ...models.state import copied
from ...training import ClientModels
from ..base import weighted_mean
from ..context import Context
from ..parts.public import public_samples
from . import rules
from .report import MatchingReport
from .wiring import State, Wiring, permuted, wiring_of

SAMPLES = 500  # of public samples or noise, on which activations are compared


class Matcher:
    """One server's matching by `rule`: `orders` of every client after each of `steps`. `on`: see `Matching`."""

    def __init__(self, ctx: Context, uploaded: ClientModels, rule: str, on: str) -> None:
        self.rule, self.modules, self.reference = rule, uploaded.modules, ctx.sizes.index(max(ctx.sizes))
        self.wiring = wiring_of(uploaded.module(0))
        self.states = on_the_cpu(uploaded.states())
        self.orders = [self.wiring.identity() for _ in self.states]
        self.traces: list[list[float]] = [[] for _ in self.states]
        self.stream = ctx.generator("matching")
        self.inputs = None
        if rule == "activations":
            self.inputs = public_samples(ctx, "held-out" if on == "public" else "noise", SAMPLES)

    def steps(self, sizes: Sequence[float], sweeps: int) -> Iterator[int]:
        """Match every client with the reference; then each with the average of the others, sweep by sweep. Yields how
        many are done."""
        reference, count = self.states[self.reference], len(self.states)
        for k in range(count):
            if k != self.reference:
                self.orders[k] = self._match(reference, k)
            yield k + 1
        for sweep in range(1, sweeps + 1):
            for k in range(count):
                others = [j for j in range(count) if j != k]
                if others:
                    standing = [permuted(self.states[j], self.wiring, self.orders[j]) for j in others]
                    self.orders[k] = self._match(weighted_mean(standing, [sizes[j] for j in others]), k)
                yield sweep * count + k + 1

    def _match(self, reference: State, k: int) -> rules.Orders:
        if self.rule == "greedy":
            return rules.greedy(reference, self.states[k], self.wiring)
        if self.rule == "rebasin":
            trace: list[float] = []
            orders = rules.rebasin(reference, self.states[k], self.wiring, self.stream, self.orders[k], trace.append)
            self.traces[k] = self.traces[k] or trace  # of the first time: later ones have another reference
            return orders
        assert self.inputs is not None  # `activations` alone has them
        ours, theirs = (activations(self.modules[k], s, self.wiring, self.inputs) for s in (reference, self.states[k]))
        return rules.by_activations([rules.correlation(a, b) for a, b in zip(ours, theirs, strict=True)])

    def reordered(self, states: Sequence[State]) -> list[dict[str, Tensor]]:
        """The clients' states with their units in these orders."""
        return [permuted(state, self.wiring, order) for state, order in zip(states, self.orders, strict=True)]

    def report(self) -> MatchingReport:
        orders = np.stack([torch.cat(own).numpy() for own in self.orders])
        standing = torch.cat(self.wiring.identity()).numpy()
        distances = []
        for state, own in zip(self.states, self.orders, strict=True):
            both = (self.wiring.identity(), own)
            distances.append([distance(self.states[self.reference], permuted(state, self.wiring, o)) for o in both])
        return MatchingReport(
            self.rule, list(self.wiring.layers), list(self.wiring.units), orders, self.reference,
            [float((own != standing).mean()) for own in orders], distances,
            self.traces if self.rule == "rebasin" else None, sum(self.wiring.units),
        )  # fmt: skip


def on_the_cpu(states: Sequence[State]) -> list[dict[str, Tensor]]:
    """The states in float64 on the CPU, in one transfer."""
    together = torch.stack([torch.cat([t.flatten() for t in state.values()]) for state in states]).cpu().double()
    counts = [t.numel() for t in states[0].values()]
    return [
        {name: part.view_as(states[0][name]) for name, part in zip(states[0], row.split(counts), strict=True)}
        for row in together
    ]


@torch.no_grad()
def activations(module: Network, state: State, wiring: Wiring, x: Tensor) -> list[Tensor]:
    """`[samples, units]` for each group, of a network like `module` with the weights `state`; for convolutions every
    position is a sample."""
    twin, seen = copied(module).eval(), {}
    like = {name: t for name, t in twin.state_dict().items() if t.is_floating_point()}
    for name, tensor in like.items():
        tensor.copy_(state[name])
    for name in wiring.reads:
        twin.get_submodule(name).register_forward_hook(lambda layer, x, out, name=name: seen.update({name: out}))
    twin(x)
    return [seen[name].transpose(0, 1).flatten(1).T for name in wiring.reads]


def distance(one: State, other: State) -> float:
    """‖θ - θ'‖ of two states."""
    return float(sum((one[name] - other[name]).square().sum() for name in one)) ** 0.5
