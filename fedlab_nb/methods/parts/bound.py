"""The terms of Fed-ET's Theorem 1, to be looked at beside the true loss.

For a loss in [0, 1] that is convex in the prediction, fixed weights α_i and probability 1 - δ,

    L_D(Σ α_i ĥ_i) <= Σ α_i L̂_i(ĥ_i)  +  √log(1/δ) Σ α_i / √n_i  +  ½ Σ α_i d(D_i, D)  +  Σ α_i ν_i
                      (i) local loss      (ii) small data            (iii) skew            (iv) joint error

What to keep in mind: the derivation gives √(log(2/δ) / 2n_i) in (ii), less than what is printed for every δ <= ½;
both are here. Hoeffding's inequality is applied to a model chosen on the same samples, and δ is not shared out over
clients. The weights of the algorithm change with the sample, these do not. Nothing is said of the distilled model or
of λ. The sum is linear in α, so it is least with all weight on one client: it can justify distrust in bad clients,
never why ensembles help. And 0-1 loss is not convex: measure with `consensus.brier`. Usually the bound is far above
the loss, and (iii) is most of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import UsageError, number


@dataclass(frozen=True)
class Bound:
    """The four terms, each `[m]`: by client and already multiplied by α_i, so that a term's sum is a bar's height."""

    local_loss: Tensor
    small_data: Tensor
    skew: Tensor
    joint_error: Tensor

    @property
    def terms(self) -> dict[str, float]:
        """Name -> the term summed over the clients, in the order of the theorem."""
        return {name: float(getattr(self, name).sum()) for name in ("local_loss", "small_data", "skew", "joint_error")}

    @property
    def total(self) -> float:
        return sum(self.terms.values())


def theorem_1(
    local_loss: Tensor,
    sizes: Tensor,
    distance: Tensor,
    joint_error: Tensor | None = None,
    weights: Tensor | None = None,
    *,
    delta: float = 0.05,
    derived: bool = False,
) -> Bound:
    """The right side of Theorem 1, in float64.

    local_loss `[m]`: mean loss in [0, 1] of each client's model on its own training samples; sizes `[m]`: n_i;
    distance `[m]`: ½ d(D_i, D), under pure label skew at most `label_distance`; joint_error `[m]`: ν_i, which only an
    oracle with labelled target data can estimate (None: 0, and the sum is then no bound); weights `[m]`: α_i, brought
    to sum 1 (None: equal); derived: term (ii) as the proof has it, not as printed. UsageError for shapes or values
    that cannot be.
    """
    delta = number("delta", delta, 0, 1, open_low=True)
    loss = local_loss.double()
    ones = torch.ones_like(loss)
    parts = [ones if weights is None else weights, sizes, distance, 0 * ones if joint_error is None else joint_error]
    alpha, n, half_d, nu = (part.double().to(loss.device) for part in parts)
    if any(part.shape != loss.shape for part in (alpha, n, half_d, nu)) or loss.dim() != 1:
        raise UsageError("Each term of the bound needs one number a client, all of the same length.")
    if not (bool((n >= 1).all()) and bool((alpha >= 0).all()) and float(alpha.sum()) > 0):
        raise UsageError("The bound needs at least one sample a client, and weights that are not negative or all zero.")
    alpha = alpha / alpha.sum()
    deviation = (math.log(2 / delta) / (2 * n)).sqrt() if derived else math.sqrt(math.log(1 / delta)) / n.sqrt()
    return Bound(alpha * loss, alpha * deviation, alpha * half_d, alpha * nu)


def label_distance(counts: Tensor, target: Tensor | None = None) -> Tensor:
    """½ Σ_c |p_i(c) - p(c)|, `[m]`: total variation of each client's label mix from the target's.

    counts `[m, N]`: samples by client and class; target `[N]`: the target's mix (None: everybody's samples together).
    Under pure label skew it bounds ½ d(D_i, D).
    """
    mix = counts.double()
    whole = mix.sum(0) if target is None else target.double()
    return (mix / mix.sum(1, keepdim=True) - whole / whole.sum()).abs().sum(1) / 2
