"""CCVR (Luo et al., NeurIPS 2021): calibrate a classifier on virtual features drawn from the clients' class statistics.

Each client sends, for every class it has, how many samples, their mean feature and the covariance. The server pools
them as if it had seen all features (law of total covariance),

    mu_c = sum_k (n_kc / N_c) mu_kc
    Sigma_c = [ sum_k (n_kc - 1) Sigma_kc + sum_k n_kc (mu_kc - mu_c)(mu_kc - mu_c)^T ] / (N_c - 1),

draws features from N(mu_c, Sigma_c), the same number for every class, and trains the classifier on them. The second
term is FuseFL's  sum_k n_kc mu_kc mu_kc^T - N_c mu_c mu_c^T  without its cancellation. FuseFL's published code drops
the N_c mu_c mu_c^T by a slip of operator precedence.

Statistics are computed and pooled in float64 and travel in the run's own type; of the covariances only the upper
triangles travel. A class with one sample has covariance zero.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...comm import pack_upper_triangle, unpack_upper_triangle
from ...tensor_types import Features, Labels
from ...training import Recipe
from ...training.optim import make_optimizer
from ...training.stacked import compute_weighted_cross_entropy_gradient

# "counts" int32 [C]; of the P classes that a client has, "means" [P, D] and "covariances", the
# upper triangles [P, D (D + 1) / 2].
ClassStatisticsMessage = dict[str, Tensor]


def make_class_statistics_message(
    features: Features, labels: Labels, class_count: int
) -> ClassStatisticsMessage:
    """A client's message about its features `[n, D]`.

    It has the counts of all classes, int32 `[C]`, and of the P classes that the client has, in order, the means
    `[P, D]` and the upper triangles of the unbiased covariances `[P, D (D + 1) / 2]`.
    """
    counts = torch.bincount(labels, minlength=class_count)
    exact_features = features.double()
    means = []
    covariances = []
    for c in counts.nonzero().flatten().tolist():
        class_features = exact_features[labels == c]
        mean = class_features.mean(0)
        centred = class_features - mean
        means.append(mean)
        covariances.append(centred.T @ centred / max(1, len(centred) - 1))
    triangles = pack_upper_triangle(torch.stack(covariances)).to(features.dtype)
    return {
        "counts": counts.int(),
        "means": torch.stack(means).to(features.dtype),
        "covariances": triangles,
    }


class PooledStatistics(NamedTuple):
    """Statistics of the pooled features, float64: counts `[C]`, means `[C, D]`, covariances `[C, D, D]`.

    A class that no client has is all zeros.
    """

    counts: Tensor
    means: Tensor
    covariances: Tensor


def pool_class_statistics(client_statistics: Sequence[ClassStatisticsMessage]) -> PooledStatistics:
    """Counts, means and unbiased covariances of all clients' features together, from what each sent."""
    total = torch.stack([s["counts"].long() for s in client_statistics]).sum(0)
    width = client_statistics[0]["means"].shape[1]
    means = total.new_zeros(len(total), width, dtype=torch.float64)
    for s in client_statistics:
        present = s["counts"].nonzero().flatten()
        shares = s["counts"][present] / total[present].double()
        means[present] += shares[:, None] * s["means"].double()
    scatter = means.new_zeros(len(total), width, width)
    for s in client_statistics:
        present = s["counts"].nonzero().flatten()
        n = s["counts"][present].double()[:, None, None]
        shift = s["means"].double() - means[present]
        within = unpack_upper_triangle(s["covariances"].double())
        scatter[present] += (n - 1) * within + n * shift[:, :, None] * shift[:, None, :]
    return PooledStatistics(total, means, scatter / (total - 1).clamp(min=1)[:, None, None])


class VirtualFeatures(NamedTuple):
    """Features `[n, D]`, float64, and their labels `[n]`."""

    features: Tensor
    labels: Tensor


def draw_virtual_features(
    pooled: PooledStatistics, samples_per_class: int, generator: torch.Generator
) -> VirtualFeatures:
    """`samples_per_class` draws from N(mu_c, Sigma_c) for every class that a client has: float64
    `[P * samples, D]` and labels.

    mu + Sigma^(1/2) e with the symmetric root, which exists for singular Sigma too and is a continuous function of it,
    so that rounding cannot flip a draw as it can with an eigenvector's sign.
    """
    present = pooled.counts.nonzero().flatten()
    values, vectors = torch.linalg.eigh(pooled.covariances[present])
    rounding = 1e-12 * values.amax(1, keepdim=True)  # whose root would not be small
    values = torch.where(values > rounding, values, 0)
    root = (vectors * values.sqrt()[:, None, :]) @ vectors.transpose(1, 2)
    shape = (len(present), samples_per_class, root.shape[-1])
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    draws = pooled.means[present][:, None] + noise.to(root.device) @ root
    return VirtualFeatures(draws.flatten(0, 1), present.repeat_interleave(samples_per_class))


class HeadOrNoneAfterEpochs(NamedTuple):
    """The number of finished epochs, and the trained head, which is None between two epochs."""

    finished_epochs: int
    head: nn.Linear | None


def train_copy_of_head(
    head: nn.Linear,
    features: Features,
    labels: Labels,
    recipe: Recipe,
    generator: torch.Generator,
    should_standardise_features: bool = True,
) -> Iterator[HeadOrNoneAfterEpochs]:
    """Train a copy of `head` on features `[n, D]`; yields after every step, the head only after an epoch.

    `should_standardise_features`: train in coordinates of mean 0 and variance 1 and map the result back, so that one
    learning rate fits every network, and the sum of the clients' features as well as their mean.
    """
    features = features.to(head.weight.dtype)
    centre = torch.zeros_like(features[0])
    scale = torch.ones_like(features[0])
    if should_standardise_features:
        centre = features.mean(0)
        scale = features.std(0)
        # A feature that hardly ever varies must not get an enormous weight.
        scale = scale.clamp(min=0.1 * scale.mean())
        scale = torch.where(scale > 0, scale, 1)
    inner = copy.deepcopy(head)
    weight = inner.weight.detach()  # shares its memory, as does the bias
    bias = inner.bias.detach()
    bias.add_(head.weight.detach() @ centre)
    weight.mul_(scale)
    features = (features - centre) / scale
    optimizer = make_optimizer([weight, bias], recipe)
    for epoch in range(recipe.epochs):
        optimizer.lr = recipe.compute_learning_rate(epoch)
        order = torch.randperm(len(features), generator=generator).to(features.device)
        for rows in order.split(recipe.batch_size):
            # SGD on the mean cross-entropy, with its slope in closed form: three times as fast as autograd.
            x = features.index_select(0, rows)
            y = labels.index_select(0, rows)
            sample_weights = weight.new_full((len(rows),), 1 / len(rows))
            slope = compute_weighted_cross_entropy_gradient(
                F.linear(x, weight, bias), y, sample_weights
            )
            optimizer.step([slope.t() @ x, slope.sum(0)])
            yield HeadOrNoneAfterEpochs(epoch, None)
        outer = copy.deepcopy(inner)
        with torch.no_grad():
            outer.weight.div_(scale)
            outer.bias.sub_(outer.weight @ centre)
        yield HeadOrNoneAfterEpochs(epoch + 1, outer)
