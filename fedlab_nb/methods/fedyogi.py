"""FedYogi (Reddi et al., ICLR 2021): FedAdam with a second moment that moves by a bounded amount.

v_{t+1} = v_t - (1 - β₂) Δ_t² sign(v_t - Δ_t²) in place of v_{t+1} = β₂ v_t + (1 - β₂) Δ_t²: after a few large changes
FedAdam's step grows back fast, FedYogi's slowly. Everything else is `fedadam`,
v = 0 at the start included.
"""

from .base import register
from .fedadam import FedAdam
from .parts.iterative import ROUNDS


@register("fedyogi", **ROUNDS, title="FedYogi", paper="Reddi et al., ICLR 2021")
class FedYogi(FedAdam):
    """FedAdam, but after large changes its steps grow again more slowly."""
