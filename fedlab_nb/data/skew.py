r"""Label skew of a partition as two numbers, from the table of label counts alone.

With n_k samples at client k, N in all, p_k the label distribution of client k and p = sum_k (n_k/N) p_k the pooled one,

    jensen_shannon    = [entropy(p) - sum_k (n_k/N) entropy(p_k)] / entropy(p)
    effective_classes = mean_k exp(entropy(p_k))

The bracket is the generalised Jensen-Shannon divergence of the p_k with weights n_k/N; it equals the mutual
information of client and label, so the quotient is the share of the label's entropy that knowing the client explains: 0
when all clients have the same label distribution, 1 when every client holds a single class (and more than one class
exists). Since the mutual information is at most log M, it cannot exceed log(M) / entropy(p): few clients cannot be
fully skewed over many classes.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Skew:
    """jensen_shannon: 0 (all clients alike) to 1 (one class a client). effective_classes: 1 to C, mean over clients."""

    jensen_shannon: float
    effective_classes: float


def skew_of(label_counts: np.ndarray) -> Skew:
    """Skew of a [M, C] table of label counts; clients without samples count in neither number.

    >>> skew_of(np.array([[5, 0], [0, 5]]))
    Skew(jensen_shannon=1.0, effective_classes=1.0)
    >>> skew_of(np.array([[5, 5], [2, 2]]))
    Skew(jensen_shannon=0.0, effective_classes=2.0)
    """
    counts = np.asarray(label_counts, dtype=np.float64)
    counts = counts[counts.sum(axis=1) > 0]
    if len(counts) == 0:
        return Skew(0.0, 0.0)
    sizes = counts.sum(axis=1)
    per_client = entropy(counts / sizes[:, None])
    pooled = float(entropy(counts.sum(axis=0) / sizes.sum()))
    within = float(sizes @ per_client / sizes.sum())
    share = (pooled - within) / pooled if pooled > 0 else 0.0
    return Skew(min(1.0, max(0.0, share)), float(np.exp(per_client).mean()))  # rounding may leave 0..1 by an ulp


def entropy(p: np.ndarray) -> np.ndarray:
    """Entropy in nats along the last axis, with 0 log 0 = 0."""
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)
