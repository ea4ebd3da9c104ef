"""Forward passes without gradients, in chunks, and the accuracies that are read off them."""

from collections.abc import Callable

import torch
from torch import Tensor

CHUNK = 2048


@torch.no_grad()
def in_chunks(function: Callable[[Tensor], Tensor], x: Tensor, dim: int = 0, chunk: int = CHUNK) -> Tensor:
    """`function` over `x` in chunks of samples, results joined along `dim` (the sample axis of the result)."""
    if len(x) <= chunk:
        return function(x)
    return torch.cat([function(part) for part in x.split(chunk)], dim=dim)


def accuracy(predictions: Tensor, labels: Tensor) -> float:
    """Share of `predictions [N]` that equal `labels [N]`, 0–1."""
    return float((predictions == labels).double().mean())


def class_accuracy(predictions: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Accuracy on each class's samples, `[C]`; NaN for a class without samples."""
    right = torch.zeros(classes, dtype=torch.float64).index_add_(
        0, labels.cpu(), (predictions == labels).double().cpu()
    )
    return right / torch.bincount(labels.cpu(), minlength=classes)


def client_accuracy(per_class: Tensor, label_counts: Tensor) -> Tensor:
    """What each client would see at home, `[M]`: class accuracies `[C]` weighted by its own label mix `label_counts
    [M, C]`."""
    weights = label_counts.double()
    known = torch.nan_to_num(per_class, nan=0.0)
    return (weights * known).sum(1) / weights.sum(1)
