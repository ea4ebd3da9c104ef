"""Centres in place of images, without any label: k-FED and one-shot principal components.

k-FED (Dennis, Li, Smith, ICML 2021, arXiv 2103.00697): each client clusters its own points into its few k' clusters and
sends the centres; the server starts with those of one client, adds the farthest centre until there are k, and makes one
step of Lloyd's algorithm on the centres. Departure: the clients' step is plain k-means with several starts, where the
paper has that of Awasthi and Sheffet.

One-shot PCA: the sum of the clients' scatter matrices gives the pooled components exactly; the mean of their projectors
U Uᵀ (Fan et al., Annals of Statistics 2019) is an approximation that sends d · r numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...plots import Picture
from ...plots.axes import two_axes
from ...plots.kit import told
from ...plots.style import ACCENT, QUIET, SECOND, dress, heading
from ...plots.words import percent, plural, tabled

STARTS, STEPS = 10, 50
POINTS = 1000  # drawn of each half


def square_distances(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """‖x_i - z_j‖², `[n, k]`."""
    return np.maximum(np.square(x).sum(1)[:, None] - 2 * x @ centres.T + np.square(centres).sum(1), 0)


def kmeans(x: np.ndarray, k: int, draw: np.random.Generator, starts: int = STARTS, spread: bool = True) -> np.ndarray:
    """`k` centres of `x [n, d]`, the best of `starts` starts, which are far apart (`spread`, k-means++) or anywhere."""
    from sklearn.cluster import KMeans  # takes a second: not before somebody asks for it

    start, seed = "k-means++" if spread else "random", int(draw.integers(2**31))
    return KMeans(min(k, len(x)), init=start, n_init=starts, max_iter=STEPS, random_state=seed).fit(x).cluster_centers_


def kfed(centres: Sequence[np.ndarray], k: int) -> np.ndarray:
    """The server's part: `k` centres `[k, d]` from those of the clients, `[k', d]` each."""
    every = np.concatenate(list(centres))
    chosen = max(centres, key=len)[:k]
    while len(chosen) < min(k, len(every)):
        far = square_distances(every, chosen).min(1)
        chosen = np.concatenate([chosen, every[far.argmax()][None]])
    members = square_distances(every, chosen).argmin(1)
    return np.stack([every[members == c].mean(0) if (members == c).any() else chosen[c] for c in range(len(chosen))])


def agreement(clusters: np.ndarray, truth: np.ndarray, k: int) -> float:
    """Share of points whose cluster `[n]` is their class `truth [n]`, under the best naming of the clusters."""
    table = np.zeros((k, k))
    np.add.at(table, (clusters, truth), 1)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(truth))


@dataclass(frozen=True, eq=False)
class Grid:
    """Points `x` and `truth` of each client, the `sent` centres, the server's `centres`."""

    x: list[np.ndarray]
    truth: list[np.ndarray]
    sent: list[np.ndarray]
    centres: np.ndarray

    @property
    def accuracy(self) -> float:
        """Share of points that are named by their own cluster: nearest sent centre, then nearest of the server's."""
        named = []
        for x, own in zip(self.x, self.sent, strict=True):
            of_centre = square_distances(own, self.centres).argmin(1)
            named.append(of_centre[square_distances(x, own).argmin(1)])
        return agreement(np.concatenate(named), np.concatenate(self.truth), len(self.centres))


def grid(few: bool, spacing: float = 10.0, clients: int = 30, points: int = 90, held: int = 3, seed: int = 0) -> Grid:
    """k-FED on 16 unit Gaussians, `spacing` apart, of which each client holds `held` (`few`), or some points of all 16.

    Each client has `points` points and sends as many centres as it holds Gaussians, by k-means with STARTS starts.
    """
    draw = np.random.default_rng([seed, few])
    means = spacing * np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), -1).reshape(16, 2)
    deck = np.concatenate([draw.permutation(16) for _ in range(-(-clients * held // 16))])  # every one is somewhere
    made: tuple[list[np.ndarray], ...] = ([], [], [])
    for client in range(clients):
        own = np.unique(deck[client * held : (client + 1) * held]) if few else np.arange(16)
        truth = np.concatenate([own, draw.choice(own, points - len(own))])
        x = means[truth] + draw.normal(size=(points, 2))
        for part, value in zip(made, (x, truth, kmeans(x, len(own), draw)), strict=True):
            part.append(value)
    return Grid(*made, kfed(made[2], 16))


def in_one_place(of: Grid, starts: int = 1, spread: bool = False, seed: int = 0) -> float:
    """`Grid.accuracy` of k-means on all points together."""
    x, truth = np.concatenate(of.x), np.concatenate(of.truth)
    centres = kmeans(x, 16, np.random.default_rng(seed), starts, spread)
    return agreement(square_distances(x, centres).argmin(1), truth, 16)


def two_grids(grids: Mapping[str, Grid], spacing: float) -> Picture:
    """Points (grey), centres sent (crosses) and the server's 16 centres (rings), for each of two kinds of clients."""
    with two_axes(between=0.12, left=0.05) as (figure, *axes):
        for ax, (name, of) in zip(axes, grids.items(), strict=True):
            x = np.concatenate(of.x)
            dress(ax)
            ax.plot(*x[:: max(1, len(x) // POINTS)].T, ".", color=QUIET, alpha=0.35, ms=3)
            ax.plot(*np.concatenate(of.sent).T, "x", color=SECOND, ms=6, mew=1.4)
            ax.plot(*of.centres.T, "o", mfc="none", mec=ACCENT, ms=11, mew=1.8)
            ax.set(xticks=[], yticks=[], aspect="equal")
            heading(ax, f"{name}: {percent(of.accuracy)}")
    words = "; ".join(f"{name} {percent(of.accuracy)}" for name, of in grids.items())
    rows = ((name, sum(map(len, of.sent)), percent(of.accuracy)) for name, of in grids.items())
    table = tabled("clients | centres sent | points in the right cluster", rows)
    clients = plural(len(next(iter(grids.values())).x), "client")
    title = "Points, the centres that clients send, and the 16 centres of the server"
    sentence = f"Share of the points that k-FED puts into the right cluster: {words}."
    return told(figure, title, f"16 Gaussians {spacing:g} apart at {clients}", sentence, table)


# ------------------------------------------------------------------------------------------------ principal components
def scatter(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """What a client sends for exact PCA: Σ x xᵀ `[d, d]`, Σ x `[d]`, n."""
    return x.T @ x, x.sum(0), len(x)


def from_scatter(parts: Sequence[tuple[np.ndarray, np.ndarray, int]], r: int) -> np.ndarray:
    """The `r` leading principal components `[d, r]` of all clients' points together."""
    squares, total, n = (sum(column) for column in zip(*parts, strict=True))
    return leading(squares / n - np.outer(total, total) / n**2, r)


def components(x: np.ndarray, r: int) -> np.ndarray:
    """The `r` leading principal components `[d, r]` of the points `x [n, d]`; fewer of fewer points."""
    _, sizes, directions = np.linalg.svd(x - x.mean(0), full_matrices=False)
    return directions[:r][sizes[:r] > 1e-9 * max(1.0, sizes[0])].T


def leading(matrix: np.ndarray, r: int) -> np.ndarray:
    """Eigenvectors `[d, r]` of the `r` largest eigenvalues of a symmetric matrix."""
    return np.linalg.eigh(matrix)[1][:, ::-1][:, :r]


def mean_of_projectors(bases: Sequence[np.ndarray], r: int) -> np.ndarray:
    """The `r` leading eigenvectors `[d, r]` of the mean of the projectors U Uᵀ."""
    return leading(np.mean([u @ u.T for u in bases], 0), r)


def spanned(basis: np.ndarray, of: np.ndarray) -> float:
    """Share of the subspace `of [d, r]` that lies in that of `basis [d, r]`: tr(P Q) / r, 1 where they are the same."""
    return float(np.square(basis.T @ of).sum() / of.shape[1])
