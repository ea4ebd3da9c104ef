"""DeepAFL: AFL with depth. Layer after layer is random features and a least-squares step that adds them
(Tang et al., ICLR 2026, arXiv 2603.00579).

x: frozen features (`parts/frozen.py`); B_t, b_t: drawn from a seed; σ = tanh; Y `[n, C]`: labels, one-hot.

    Φ_0 = σ(x B_0 + b_0)                                    [n, d]
    W_t = argmin ‖Y - Φ_t W‖² + ρ ‖W‖²                      [d, C], as in AFL
    F_t = σ(Φ_t B_{t+1} + b_{t+1})                          [n, h]
    Ω_t = argmin ‖Y - (Φ_t + F_t Ω) W_t‖² + γ ‖Ω‖²          [h, d], "sandwiched" between F_t and W_t
    Φ_{t+1} = Φ_t + F_t Ω_t,         t = 0 … L - 1;         prediction: Φ_L W_L

With R_t = Y - Φ_t W_t the normal equations are F_tᵀF_t Ω W_tW_tᵀ + γ Ω = F_tᵀR_t W_tᵀ. With F_tᵀF_t = U diag(λ) Uᵀ and
W_tW_tᵀ = V diag(μ) Vᵀ they fall apart: (UᵀΩV)_ij = (Uᵀ F_tᵀR_t W_tᵀ V)_ij / (λ_i μ_j + γ).

Each sum is over samples, so that clients' sums add up, and the model is the same, to rounding, whoever holds which
sample. It is not one shot: 2 L + 1 times sums go up, and W_t or Ω_t comes down.

What is ours (we know the equations from the paper's summary and the authors' code): B_t ~ N(0, 1/inputs),
b_t ~ N(0, 1/4); sums are float64 at both ends and travel in the run's dtype; no ridges of the clients' own, which AFL
adds and takes off again; ρ and γ were chosen on validation images. The authors draw PyTorch's usual first weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..rng import make_torch_generator
from ..tensor_types import (
    ClassifierWeights,
    ClassScores,
    Features,
    Samples,
    SquareMatrix,
)
from .base import Context, Progress, Report, Steps, knob, register
from .parts.frozen import FrozenFeatures, FrozenMethod, HeadModel
from .parts.kronecker import add_to_diagonal, make_inverse_multiplier
from .parts.ridge import RidgeSums
from .traffic import FederationSizes, RunBytesUpPlusDown, count_upper_triangle_entries

FeatureClassProducts = Tensor  # [D, C], features times errors of the classes, summed
ResidualMatrix = Tensor  # [h, d], Ω: from a layer's h random features to d changes of its input

# B [i, o] and b [o] of random features σ(x B + b); a plain tuple, as saved models have it.
RandomWeightAndBias = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class DeepAflReport(Report):
    """The fit of the layers to the training samples.

    objective [L + 1]: (‖Y - Φ_t W_t‖² + ρ ‖W_t‖²)/N of the training samples, with t layers; it never grows
    """

    objective: np.ndarray | None = None


def draw_random_layer(
    seed: int,
    layer_index_from_0: int,
    input_size: int,
    output_size: int,
    dtype_device_template: Tensor,
) -> RandomWeightAndBias:
    """The numbers of a layer, the same on every device."""
    stream = make_torch_generator(seed, "deepafl", layer_index_from_0)
    weight = torch.randn(input_size, output_size, generator=stream) / input_size**0.5
    bias = torch.randn(output_size, generator=stream) / 2
    return weight.to(dtype_device_template), bias.to(dtype_device_template)


def compute_random_features(samples: Features, random_layer: RandomWeightAndBias) -> Features:
    """σ(x B + b) `[n, o]` of `samples [n, i]`."""
    weight, bias = random_layer
    return torch.tanh(torch.addmm(bias.to(samples), samples, weight.to(samples)))


def solve_residual_layer(
    feature_moments: SquareMatrix,
    feature_error_products: FeatureClassProducts,
    classifier_weights: ClassifierWeights,
    ridge: float,
) -> ResidualMatrix:
    """Solve for Ω `[h, d]` from FᵀF `[h, h]`, FᵀR `[h, C]` and W `[d, C]`; `ridge` is γ."""
    feature_values, u = torch.linalg.eigh(feature_moments)
    weight_values, v = torch.linalg.eigh(classifier_weights @ classifier_weights.T)
    scale = feature_values.clamp(min=0)[:, None] * weight_values.clamp(min=0) + ridge
    return u @ (u.T @ feature_error_products @ (classifier_weights.T @ v) / scale) @ v.T


class DeepModel(HeadModel):
    """Frozen features, layers (their random map, and Ω; of the `first` one the map alone), and the weights `[d, C]`."""

    score_kind = "regression"
    parts = ("frozen", "first", "layers", "weights")

    def __init__(
        self,
        frozen: FrozenFeatures,
        first: RandomWeightAndBias,
        layers: Sequence[tuple[RandomWeightAndBias, Tensor]],
        weights: Tensor,
        report: DeepAflReport = DeepAflReport(),  # noqa: B008  (frozen)
    ) -> None:
        self.first = first
        self.layers = list(layers)
        self.weights = weights
        tensors = [*first, weights]
        for layer_map, omega in layers:
            tensors += [*layer_map, omega]
        numbers = sum(tensor.numel() for tensor in tensors)
        super().__init__(frozen, lambda x: x @ weights.to(x), numbers, report)

    def features(self, samples: Samples) -> Features:
        features = compute_random_features(self.frozen(samples), self.first)
        for layer_map, omega in self.layers:
            features = features + compute_random_features(features, layer_map) @ omega.to(features)
        return features


class MomentsAndProducts(NamedTuple):
    """The sums over all clients of XᵀX `[d, d]` and XᵀT `[d, C]`."""

    moments: Tensor
    products: Tensor


@register(
    "deepafl",
    title="DeepAFL",
    group="Closed form",
    rounds="2 L + 1 rounds of sums",
    paper="Tang et al., ICLR 2026",
    traffic="(L+1)(d(d+1)/2 + d C) + L (h(h+1)/2 + h C) floats up; L d (C + h) floats and a seed (8 bytes) down",
    sends="two sums, 2 L + 1 times",
    leaks="the second moments of each client's features at every layer, and each of its classes' sum",
)
class DeepAFL(FrozenMethod):
    """Sums as in AFL, layer by layer: random features are added where they lower the error of the fit."""

    report = DeepAflReport

    layers: int = knob(5, "Layers", symbol="L", low=0, high=100)
    width: int = knob(128, "Width", symbol="d", low=1, high=4096, log=True)
    random: int = knob(256, "Random features of a layer", low=1, high=4096, log=True)
    rho: float = knob(10.0, "Ridge of the weights", symbol="ρ", low=1e-9, high=1e6, log=True)
    gamma: float = knob(1.0, "Ridge of a layer", symbol="γ", low=1e-9, high=1e6, log=True)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        width, random, classes = self.width, self.random, sizes.classes
        heads = (self.layers + 1) * (count_upper_triangle_entries(width) + width * classes)
        blocks = self.layers * (count_upper_triangle_entries(random) + random * classes)
        down = self.layers * width * (classes + random)
        return RunBytesUpPlusDown(
            sizes.count_bytes_from_all_clients(heads + blocks + down) + 8 * sizes.clients
        )

    def run(self, ctx: Context) -> Steps[HeadModel]:
        client_features, frozen = yield from self.make_feature_maps(ctx)
        message = torch.tensor([self.features_seed])
        seed = int(ctx.link.broadcast(message, phase="seed of the layers"))
        like = torch.zeros(0, dtype=torch.float64, device=ctx.device)
        first = draw_random_layer(seed, 0, frozen.size, self.width, like)
        # Clients: Φ_0 of their samples; each keeps its own.
        clients = range(ctx.clients_count)
        phi = []
        labels = []
        for k in clients:
            x, y = ctx.private.train(k)
            phi.append(compute_random_features(client_features[k](x).double(), first))
            labels.append(F.one_hot(y, ctx.classes).double())
        layers: list[tuple[RandomWeightAndBias, Tensor]] = []
        objective: list[float] = []
        for t in range(self.layers + 1):
            # Clients, link: ΦᵀΦ and ΦᵀY up. Server: the ridge.
            moments, classes = self.send_and_sum_moments_and_products(ctx, phi, labels, "sums")
            with ctx.server():
                weights = make_inverse_multiplier(add_to_diagonal(moments, self.rho))(classes)
                objective.append(1 - float((classes * weights).sum()) / sum(ctx.sizes))  # ‖Y‖² = N
                report = DeepAflReport(np.array(objective))
                model = DeepModel(frozen, first, layers, weights, report)
            yield Progress("layers", t, max(self.layers, 1), model=model)
            if t == self.layers:
                return model
            # Link: the weights down. Clients: random features, and how they go with what the fit leaves; up.
            weights = ctx.link.broadcast(weights.to(ctx.dtype), phase="weights").double()
            layer_map = draw_random_layer(seed, t + 1, self.width, self.random, like)
            new_features = [compute_random_features(phi[k], layer_map) for k in clients]
            residuals = [labels[k] - phi[k] @ weights for k in clients]
            moments, errors = self.send_and_sum_moments_and_products(
                ctx, new_features, residuals, "layer's sums"
            )
            # Server: Ω; down. Clients: one layer more.
            with ctx.server():
                omega = solve_residual_layer(moments, errors, weights, self.gamma)
            omega = ctx.link.broadcast(omega.to(ctx.dtype), phase="layers").double()
            layers.append((layer_map, omega))
            phi = [phi[k] + new_features[k] @ omega for k in clients]
        raise AssertionError  # the loop returns

    def send_and_sum_moments_and_products(
        self,
        ctx: Context,
        client_features: Sequence[Features],
        client_targets: Sequence[ClassScores],
        phase_in_ledger: str,
    ) -> MomentsAndProducts:
        """Clients and link: the sums over all clients of XᵀX `[d, d]` and XᵀT `[d, C]`.

        `client_features`: each client's X `[n, d]`; `client_targets`: its T `[n, C]`.
        """
        received = []
        for k, (x, target) in enumerate(zip(client_features, client_targets, strict=True)):
            upload = RidgeSums(x.T @ x, x.T @ target).make_message(ctx.dtype)
            received.append(RidgeSums.from_message(ctx.link.up(k, upload, phase=phase_in_ledger)))
        total = sum(received[1:], received[0])
        return MomentsAndProducts(total.moments, total.classes)
