"""FedLPA's server: from the uploads to one linear system a layer, which `solvers.py` solves."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from ...comm.codec import from_upper_triangle
from ..base import weighted_mean
from ..parts.kronecker import Factors, layer_matrix
from ..parts.posterior import Posterior


def layer_systems(
    received: Sequence[Mapping[str, Any]], weights: str = "samples"
) -> tuple[dict[str, Tensor], dict[str, Posterior]]:
    """From M uploads: the weighted average of the states, and the linear system of each layer that has factors."""
    trust = [r["samples"] if weights == "samples" else 1 for r in received]
    states = [r["state"] for r in received]
    systems = {}
    for name in received[0]["factors"]:
        triangles = [r["factors"][name] for r in received]
        factors = [Factors(from_upper_triangle(t["a"]), from_upper_triangle(t["b"])) for t in triangles]
        matrices = [layer_matrix(state, name) for state in states]
        systems[name] = Posterior.of(matrices, factors, [n / sum(trust) for n in trust])
    return weighted_mean(states, trust), systems
