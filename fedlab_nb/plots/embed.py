"""Features in the plane: PCA, t-SNE, and the neighbour score that keeps both from being over-read. No matplotlib here.

scikit-learn is imported when the first t-SNE is asked for. As a script this file is the process that makes maps apart.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

SCRIPT = "import sys; name = sys.argv[1]; exec(compile(open(name, encoding='utf-8').read(), name, 'exec'))"
POINTS = 300  # of the fixed test points; t-SNE's time grows faster than their number
PRINCIPAL = 30  # dimensions that t-SNE gets


def pca(features: np.ndarray, dimensions: int = 2) -> np.ndarray:
    """The leading principal components `[N, dimensions]` (zeros where there are fewer), each with a fixed sign."""
    x = np.asarray(features, dtype=np.float64)
    x = x - x.mean(0)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    scores = u[:, :dimensions] * s[:dimensions]
    signs = np.sign(scores[np.abs(scores).argmax(0), np.arange(scores.shape[1])])
    scores = scores * np.where(signs == 0, 1, signs)
    return np.pad(scores, ((0, 0), (0, dimensions - scores.shape[1])))


def tsne(features: np.ndarray) -> np.ndarray:
    """t-SNE `[N, 2]` of the leading principal components, from a PCA start: the same points give the same map."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    x = np.asarray(features, dtype=np.float64)
    if len(x) < 5 or not np.ptp(x, axis=0).any():
        return pca(x)
    x = pca(x, min(PRINCIPAL, x.shape[1], len(x)))
    perplexity = min(30, (len(x) - 1) / 3)
    with threadpool_limits(1):
        return TSNE(2, perplexity=perplexity, init="pca", random_state=0, max_iter=500, n_jobs=1).fit_transform(x)


@contextmanager
def tsne_apart() -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """A `tsne` that works in a process of its own, started at once: meanwhile this one can draw at full speed. Where no
    process can be had, the maps are made here.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except OSError:
        yield tsne
        return

    def apart(x: np.ndarray) -> np.ndarray:
        try:
            send(process.stdin, x)
            made = receive(process.stdout)
        except OSError:
            made = None
        return tsne(x) if made is None else made

    try:
        yield apart
    finally:
        process.kill()
        process.communicate()


def send(pipe: IO[bytes], x: np.ndarray) -> None:
    """Write a table of numbers: its shape, then its rows."""
    pipe.write(struct.pack("2q", *x.shape) + np.ascontiguousarray(x, dtype=np.float64).tobytes())
    pipe.flush()


def receive(pipe: IO[bytes]) -> np.ndarray | None:
    """Read what `send` wrote; None at the end."""
    head = pipe.read(16)
    if len(head) < 16:
        return None
    rows, columns = struct.unpack("2q", head)
    body = pipe.read(8 * rows * columns)
    return np.frombuffer(body).reshape(rows, columns) if len(body) == 8 * rows * columns else None


def neighbour_accuracy(features: np.ndarray, labels: np.ndarray, k: int = 10) -> float:
    """Leave-one-out accuracy of the k nearest neighbours in the *original* feature space, 0–1.

    Ties go to the class whose member is nearest. 1/classes for features that say nothing, 1 for separate classes.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(labels)
    k = min(k, len(x) - 1)
    if k < 1:
        return float("nan")
    squares = (x * x).sum(1)
    distance = squares[:, None] + squares[None] - 2 * x @ x.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :k]
    votes = np.zeros((len(x), int(y.max()) + 1))
    for rank in range(k):  # a hair more weight for a nearer one breaks ties
        votes[np.arange(len(x)), y[nearest[:, rank]]] += 1 + (k - rank) * 1e-6
    return float((votes.argmax(1) == y).mean())


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # the page and the pictures that somebody looks at come first
    import sklearn.manifold  # noqa: F401 - a second of work that need not wait for the first table

    while (one := receive(sys.stdin.buffer)) is not None:
        send(sys.stdout.buffer, tsne(one))
