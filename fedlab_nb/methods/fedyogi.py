"""FedYogi (Reddi et al., ICLR 2021): FedAdam with a second moment that moves by a bounded amount.

v_{t+1} = v_t - (1 - β₂) Δ_t² sign(v_t - Δ_t²) in place of v_{t+1} = β₂ v_t + (1 - β₂) Δ_t²: after a few large changes
FedAdam's step grows back fast, FedYogi's slowly. Everything else is `fedadam`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import register
from .fedadam import FedAdam


@register(
    "fedyogi",
    title="FedYogi",
    paper="Reddi et al., ICLR 2021",
    rounds="R rounds",
    traffic="2 S_θ R",
    needs=["one architecture"],
    leaks="each client's model, every round",
)
@dataclass(frozen=True)
class FedYogi(FedAdam):
    """FedAdam with steps that grow back more slowly after large changes."""

    server: ClassVar[str] = "fedyogi"
