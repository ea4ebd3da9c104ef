"""The terms of Fed-ET's Theorem 1, to be looked at beside the true loss.

For a loss in [0, 1] that is convex in the prediction, fixed weights ω_k and probability 1 - δ,

    L_D(Σ ω_k ĥ_k) <= Σ ω_k L̂_k(ĥ_k)  +  √log(1/δ) Σ ω_k / √n_k  +  ½ Σ ω_k d(D_k, D)  +  Σ ω_k ν_k
                      (i) local loss      (ii) small data            (iii) skew            (iv) joint error

What to keep in mind: the derivation gives √(log(2/δ) / 2n_k) in (ii), less than what is printed for every δ <= ½;
both are here. Hoeffding's inequality is applied to a model chosen on the same samples, and δ is not shared out over
clients. The weights of the algorithm change with the sample, these do not. Nothing is said of the distilled model or
of λ_div. The sum is linear in ω, so it is least with all weight on one client: it can justify distrust in bad clients,
never why ensembles help. And 0-1 loss is not convex: measure with `brier`. ½ d in (iii) cannot be computed: what
`label_distance` gives is an upper bound of it, so a pile with it says how loose that is, not how loose the theorem.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import number


def theorem_1(
    local_loss: Tensor, sizes: Tensor, distance: Tensor, joint_error: Tensor | None = None,
    weights: Tensor | None = None, *, delta: float = 0.05, derived: bool = False,
) -> dict[str, float]:  # fmt: skip
    """The right side of Theorem 1, in float64: name -> term, summed over the clients, in the order of the theorem.

    local_loss `[m]`: mean loss in [0, 1] of each client's model on its own training samples; sizes `[m]`: n_k;
    distance `[m]`: ½ d(D_k, D), under pure label skew at most `label_distance`; joint_error `[m]`: ν_k, which only an
    oracle with labelled target data can estimate (None: 0, and the sum is then no bound); weights `[m]`: ω_k, brought
    to sum 1 (None: equal); derived: term (ii) as the proof has it, not as printed. UsageError for a delta that cannot
    be.
    """
    delta = number("delta", delta, 0, 1, open_low=True)
    loss = local_loss.double()
    ones = torch.ones_like(loss)
    parts = [ones if weights is None else weights, sizes, distance, 0 * ones if joint_error is None else joint_error]
    alpha, n, half_d, nu = (part.double().to(loss.device) for part in parts)
    alpha = alpha / alpha.sum()
    deviation = (math.log(2 / delta) / (2 * n)).sqrt() if derived else math.sqrt(math.log(1 / delta)) / n.sqrt()
    terms = {"local_loss": loss, "small_data": deviation, "skew": half_d, "joint_error": nu}
    return {name: float((alpha * term).sum()) for name, term in terms.items()}


def label_distance(counts: Tensor, target: Tensor | None = None) -> Tensor:
    """½ Σ_c |p_k(c) - p(c)|, `[m]`: total variation of each client's label mix from the target's.

    counts `[m, C]`: samples by client and class; target `[C]`: the target's mix (None: everybody's samples together).
    Under pure label skew it bounds ½ d(D_k, D).
    """
    mix = counts.double()
    whole = mix.sum(0) if target is None else target.double()
    return (mix / mix.sum(1, keepdim=True) - whole / whole.sum()).abs().sum(1) / 2


def brier(outputs: Tensor, labels: Tensor) -> Tensor:
    """½ ‖p - e_y‖² of each sample, in [0, 1] and convex in p: `outputs [..., B, C]`, `labels [B]` -> `[..., B]`.

    The loss to look at beside the bound, which accuracy cannot be.
    """
    return (outputs - F.one_hot(labels, outputs.shape[-1])).square().sum(-1) / 2
