"""Projects features into the plane by PCA and t-SNE, and measures how well classes are apart in the
original features, so that nobody reads too much into a map. It draws nothing.

scikit-learn is imported only when a t-SNE is computed.
"""

import os
import sys
import time
from collections.abc import Generator

import numpy as np

from ..value_types import Accuracy0To1
from .array_types import FeatureRows, MapPoints, PrincipalComponents, SampleLabels

POINTS = 300  # number of test points in a map; t-SNE's time grows faster than their number
PRINCIPAL = 30  # number of principal components that t-SNE gets


def project_by_pca(features: FeatureRows, dimension_count: int = 2) -> PrincipalComponents:
    """Project features on the leading principal components `[N, dimensions]`, each with a fixed
    sign.

    If the features have fewer components, the others are 0.
    """
    x = np.asarray(features, dtype=np.float64)
    x = x - x.mean(0)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    scores = u[:, :dimension_count] * s[:dimension_count]
    largest = scores[np.abs(scores).argmax(0), np.arange(scores.shape[1])]
    scores *= np.where(largest < 0, -1, 1)
    return np.pad(scores, ((0, 0), (0, dimension_count - scores.shape[1])))


def project_by_tsne(features: FeatureRows) -> MapPoints:
    """Project features by t-SNE to `[N, 2]`. It starts from PCA, so the same points give the same
    map.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    x = np.asarray(features, dtype=np.float64)
    if len(x) < 5 or not np.ptp(x, axis=0).any():
        return project_by_pca(x)
    x = project_by_pca(x, min(PRINCIPAL, x.shape[1], len(x)))
    options = {"init": "pca", "random_state": 0, "max_iter": 500, "n_jobs": 1}
    with threadpool_limits(1):
        return TSNE(2, perplexity=min(30, (len(x) - 1) / 3), **options).fit_transform(x)


def compute_tsne_in_subprocess(features: FeatureRows) -> Generator[None, None, MapPoints]:
    """Compute `project_by_tsne` in another process, so that this one stays responsive. Yields while
    it works. If no process can be started, the map is computed here.

    The process is kept for the next map.
    """
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.backend.reduction import cloudpickle

    # By value, so that the process imports numpy and scikit-learn alone.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    # A lower priority, so that the page and its pictures come first.
    set_priority = getattr(os, "nice", None)
    try:
        executor = get_reusable_executor(1, timeout=60, initializer=set_priority, initargs=(10,))
        future = executor.submit(project_by_tsne, features)
        while not future.done():
            yield
            time.sleep(0.02)
        return future.result()
    except (OSError, RuntimeError):
        return project_by_tsne(features)


def compute_neighbour_accuracy(
    features: FeatureRows, labels: SampleLabels, neighbour_count: int = 10
) -> Accuracy0To1:
    """Compute the leave-one-out accuracy of the k nearest neighbours in the *original* features,
    0–1.

    It is about 1/classes for features without information, and 1 for separate classes. Ties go to
    the class with the nearest member.
    """
    x = np.asarray(features, dtype=np.float64)
    y = np.asarray(labels)
    neighbour_count = min(neighbour_count, len(x) - 1)
    if neighbour_count < 1:
        return float("nan")
    squares = (x * x).sum(1)
    distance = squares[:, None] + squares[None] - 2 * x @ x.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :neighbour_count]
    votes = np.zeros((len(x), int(y.max()) + 1))
    for rank in range(neighbour_count):  # slightly more weight for a nearer neighbour breaks ties
        votes[np.arange(len(x)), y[nearest[:, rank]]] += 1 + (neighbour_count - rank) * 1e-6
    return float((votes.argmax(1) == y).mean())
