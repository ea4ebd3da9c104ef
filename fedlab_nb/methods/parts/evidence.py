"""FedLPA's evidence: what a client measures after its training, what it sends of that, and the server's linear systems.

A run keeps the evidence beside its model, so that the server's part can be done again, from the same clients, with
another λ, π, solver or noise:

    received = [one.upload(damping=1e-6, pi="one") for one in outcome.model.evidence]
    average, layers = systems(received)
    matrix, residuals = solve(layers["classifier"], "cg")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...codec import from_upper_triangle, upper_triangle
from ...models import model_state
from ..base import NetworkModel, weighted_mean
from .kronecker import Factors, damped, damping_ratio, kronecker_factors, layer_matrix
from .noise import noisy_factor, noisy_state
from .posterior import Posterior

WEIGHTS = ("samples", "uniform")
KEPT = 48_000_000  # bytes of evidence of all clients that a model keeps; beyond that (large networks) it keeps none


@dataclass(frozen=True, eq=False)
class Evidence:
    """Of one client: its `samples`, its trained `state` with the names of its `parameters`, and the undamped `factors`
    of each layer.
    """

    samples: int
    state: dict[str, Tensor]
    parameters: tuple[str, ...]
    factors: dict[str, Factors]

    @classmethod
    def measure(cls, module: nn.Module, x: Tensor, y: Tensor, conv_scale: str = "one") -> Evidence:
        """The factor pass over a client's own samples `x [n, ...]`, `y [n]`; the module is left as it was."""
        factors = kronecker_factors(module, x, y, conv_scale=conv_scale)
        names = tuple(name for name, _ in module.named_parameters())
        return cls(len(x), model_state(module), names, factors)

    def ratios(self, pi: str) -> list[float]:
        """pi of each layer under a rule: "one" or "trace"."""
        return [damping_ratio(layer, pi) for layer in self.factors.values()]

    def upload(self, damping: float, pi: str, noise: float = 0.0, stream: torch.Generator | None = None) -> dict:
        """What the client sends: its state and the upper triangles of its damped factors, with n_k in the header.

        `stream` draws the noise, if there is any (a share of each tensor's size, see `noise.py`).
        """
        state = noisy_state(self.state, self.parameters, noise, stream)
        triangles = {}
        for (name, layer), ratio in zip(self.factors.items(), self.ratios(pi), strict=True):
            noised = Factors(*(noisy_factor(factor, noise, stream) for factor in (layer.a, layer.b)))
            precision = damped(noised, damping, ratio)
            triangles[name] = {"a": upper_triangle(precision.a), "b": upper_triangle(precision.b)}
        return {"samples": self.samples, "state": state, "factors": triangles}

    @property
    def size(self) -> int:
        """Bytes of the tensors."""
        tensors = [*self.state.values(), *(t for layer in self.factors.values() for t in (layer.a, layer.b))]
        return sum(t.numel() * t.element_size() for t in tensors)


def systems(received: Sequence[Mapping[str, Any]], weights: str = "samples") -> tuple[dict, dict[str, Posterior]]:
    """From K uploads: the weighted average of the states, and the linear system of each layer that has factors."""
    trust = [r["samples"] if weights == "samples" else 1 for r in received]
    states = [r["state"] for r in received]
    found = {}
    for layer in received[0]["factors"]:
        triangles = [r["factors"][layer] for r in received]
        factors = [Factors(from_upper_triangle(t["a"]), from_upper_triangle(t["b"])) for t in triangles]
        found[layer] = Posterior.of([layer_matrix(s, layer) for s in states], factors, [n / sum(trust) for n in trust])
    return weighted_mean(states, trust), found


class PosteriorModel(NetworkModel):
    """FedLPA's network, with the `evidence` of the clients that it was made from (none where that is too large).

    While it is solved, `live` has the relative residuals so far, `residual.<layer>` [steps].
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        evidence: Sequence[Evidence] = (),
        curves: Mapping[str, Sequence[Tensor]] | None = None,
        **kept: Any,
    ) -> None:
        super().__init__(module, **kept)
        self.keep(evidence)
        self.live = {f"residual.{name}": torch.stack(list(c)).cpu().numpy() for name, c in (curves or {}).items()}

    def keep(self, evidence: Sequence[Evidence]) -> None:
        """Have the clients' evidence at hand, unless it is too large."""
        self.evidence = list(evidence) if sum(one.size for one in evidence) <= KEPT else []
