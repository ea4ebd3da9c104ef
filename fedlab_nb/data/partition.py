"""Who gets which training sample: the papers' partitions as functions of labels, number of clients and a random stream.

Every partition is a disjoint cover of the samples with a promised minimum per client. A rule (`dirichlet`, `classes`,
`quantity`, `iid`) draws an owner for each sample; a client left with fewer than the minimum is then helped either by
moving the few samples needed (`repair="move"`: one draw, always answers) or by drawing again (`repair="redraw"`: what
the papers' codes do, bounded here). Only numpy, and no images: a slider may call this while it is dragged.
"""

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlab_nb.errors import RunError, choose, number, sentence, whole

PARTITIONS: dict[str, str] = {
    "dirichlet": "each class is dealt to the clients in shares drawn from a Dirichlet; smaller alpha is more skewed",
    "classes": "each client holds a fixed number of classes, each class cut evenly among its holders",
    "quantity": "the same mix of labels everywhere, but lognormal sizes; smaller alpha makes them more unequal",
    "iid": "a random even cut: no skew",
}
REPAIRS = ("move", "redraw")


@dataclass(frozen=True)
class Cut:
    """The result: M sorted index arrays, the promised minimum, samples moved, draws made, and a note for the reader."""

    shards: list[np.ndarray]
    minimum: int
    moved: int
    draws: int
    note: str


def default_minimum(samples: int, clients: int) -> int:
    """The promised minimum where none is asked for: the papers' 10, or half the mean size where that is less."""
    return min(10, max(1, samples // (2 * clients)))


def cut(
    labels: np.ndarray,
    classes: int,
    clients: int,
    rng: np.random.Generator,
    *,
    partition: str = "dirichlet",
    alpha: float = 0.1,
    classes_per_client: int = 2,
    minimum: int | None = None,
    repair: str = "move",
    max_draws: int = 1000,
) -> Cut:
    """Partition samples with `labels` [N] (0..C-1) among M clients.

    Raises UsageError for a value out of range, and RunError when `max_draws` redraws did not reach the minimum.

    >>> cut(np.array([0, 0, 1, 1]), 2, 2, np.random.default_rng(0), partition="classes", classes_per_client=1).shards
    [array([0, 1]), array([2, 3])]
    """
    n = len(labels)
    choose("partition", partition, PARTITIONS)
    choose("repair", repair, REPAIRS)
    alpha = number("alpha", alpha, 0, open_low=True, hint="smaller is more skewed, 0.1 is a strong skew")
    clients = whole("clients", clients, 1, n, hint="every client needs one training sample or more")
    wanted = whole("classes_per_client", classes_per_client, 1, classes)
    max_draws = whole("max_draws", max_draws, 1)
    if minimum is None:
        minimum = default_minimum(n, clients)
    minimum = whole("minimum", minimum, 1, n // clients, hint=f"{clients} clients share {n} training samples")

    note = ""
    for draws in range(1, (max_draws if repair == "redraw" else 1) + 1):
        if partition == "dirichlet":
            owner = dirichlet(labels, clients, rng, alpha)
        elif partition == "classes":
            owner, note = by_classes(labels, clients, rng, wanted)
        elif partition == "quantity":
            owner = quantity(n, clients, rng, alpha)
        else:
            owner = iid(n, clients, rng)
        sizes = np.bincount(owner, minlength=clients)
        if sizes.min() >= minimum:
            return Cut(group(owner, clients), minimum, 0, draws, note)
    if repair == "redraw":
        asked = {"partition": partition, "alpha": alpha, "clients": clients, "minimum": minimum}
        raise RunError(sentence("dataset.redraw", draws=max_draws, samples=n, **asked))
    shards, moved = top_up(group(owner, clients), minimum, rng)
    note += f" {moved} of {n} samples were moved so that every client has at least {minimum}."
    return Cut(shards, minimum, moved, 1, note.strip())


def dirichlet(labels: np.ndarray, clients: int, rng: np.random.Generator, alpha: float) -> np.ndarray:
    """Owner [N] of each sample. For each class c: p ~ Dir(alpha 1_M), with p_k = 0 where client k already holds N/M
    samples or more, renormalised; the shuffled samples of c are cut at the cumulative sums of p (procedure of
    NIID-Bench, used by FENS, FedLPA, FuseFL).
    """
    n = len(labels)
    owner = np.empty(n, dtype=np.int64)
    held = np.zeros(clients, dtype=np.int64)
    for members in members_of_classes(labels, rng):
        p = dirichlet_draw(rng, alpha, clients)
        room = held * clients < n  # never all False here: the mean of `held` is below N/M while samples are left
        p = np.where(room, p, 0.0)
        if p.sum() > 0:
            p = p / p.sum()
        else:  # at tiny alpha the whole mass can lie on clients that are full: draw among the others
            p[room] = dirichlet_draw(rng, alpha, int(room.sum()))
        counts = cut_counts(p, len(members))
        owner[members] = np.repeat(np.arange(clients), counts)
        held += counts
    return owner


def by_classes(labels: np.ndarray, clients: int, rng: np.random.Generator, wanted: int) -> tuple[np.ndarray, str]:
    """Owner [N], and a note. Client i gets class i mod C, then wanted-1 others at random, classes that nobody holds
    first; each class is cut evenly among its holders (#C=k of NIID-Bench and FedLPA, where a class can remain without
    a holder and its samples unused).
    """
    present = np.unique(labels)
    wanted = min(wanted, len(present))
    holds = np.zeros((clients, len(present)), dtype=bool)
    holds[np.arange(clients), np.arange(clients) % len(present)] = True
    held: Any = holds.any(axis=0)
    for k in range(clients):
        for _ in range(wanted - 1):
            free = np.flatnonzero(~holds[k] if held.all() else ~held)
            c = rng.choice(free)
            holds[k, c] = held[c] = True
    left = np.flatnonzero(~held)
    holds[np.arange(len(left)) % clients, left] = True
    note = ""
    if len(left):
        note = (
            f"{clients} clients with {wanted} classes each cover {len(present) - len(left)} of {len(present)} classes; "
            f"the other {len(left)} were dealt out in turn."
        )
    owner = np.empty(len(labels), dtype=np.int64)
    for c, members in enumerate(members_of_classes(labels, rng)):
        holders = np.flatnonzero(holds[:, c])
        for holder, part in zip(holders, np.array_split(members, len(holders)), strict=True):
            owner[part] = holder
    return owner, note


def quantity(n: int, clients: int, rng: np.random.Generator, alpha: float) -> np.ndarray:
    """Owner [N]: random samples, sizes in proportion to exp(z / sqrt(alpha)) with z standard normal."""
    z = rng.standard_normal(clients) / np.sqrt(alpha)
    weights = np.exp(z - z.max())  # the largest is 1, so that nothing overflows at tiny alpha
    return rng.permutation(np.repeat(np.arange(clients), cut_counts(weights / weights.sum(), n)))


def iid(n: int, clients: int, rng: np.random.Generator) -> np.ndarray:
    """Owner [N]: random samples, sizes equal to within one."""
    return rng.permutation(np.arange(n) % clients)


def top_up(shards: list[np.ndarray], minimum: int, rng: np.random.Generator) -> tuple[list[np.ndarray], int]:
    """Bring every client to `minimum` with as few moves as possible: each one in need takes random samples of the
    client that is the largest at that moment. Taking them from one client, not one from each, keeps the skew: it
    receives that client's labels.

    Returns the shards (sorted) and the number of samples moved.
    """
    shards = list(shards)
    sizes = [len(shard) for shard in shards]
    largest = [(-size, k) for k, size in enumerate(sizes) if size > minimum]
    heapq.heapify(largest)
    shuffled: set[int] = set()
    moved = 0
    for k in [k for k, size in enumerate(sizes) if size < minimum]:
        gifts = [shards[k]]
        need = minimum - sizes[k]
        while need:
            size, donor = -largest[0][0], largest[0][1]
            if donor not in shuffled:
                shards[donor] = rng.permutation(shards[donor])
                shuffled.add(donor)
            give = min(need, size - minimum)
            gifts.append(shards[donor][size - give :])
            shards[donor] = shards[donor][: size - give]
            need, moved = need - give, moved + give
            if size - give > minimum:
                heapq.heapreplace(largest, (give - size, donor))
            else:
                heapq.heappop(largest)
        shards[k] = np.concatenate(gifts)
    return [np.sort(shard) for shard in shards], moved


def group(owner: np.ndarray, clients: int) -> list[np.ndarray]:
    """Sorted sample indices of each client from the owner of each sample."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=clients))[:-1])


def members_of_classes(labels: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """The sample indices of each class that occurs, shuffled; classes in rising order."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    return np.split(order, np.cumsum(counts[counts > 0])[:-1])


def dirichlet_draw(rng: np.random.Generator, alpha: float, size: int) -> np.ndarray:
    """p ~ Dir(alpha 1_size), or its limit (one-hot, uniform) where alpha is so extreme that numpy's draw is NaN."""
    with np.errstate(all="ignore"):
        p = rng.dirichlet(np.full(size, alpha))
    if np.isfinite(p).all() and 0.5 < p.sum() < 1.5:
        return p
    return np.full(size, 1.0 / size) if alpha > 1 else np.eye(size)[rng.integers(size)]


def cut_counts(p: np.ndarray, n: int) -> np.ndarray:
    """Sizes of the pieces when n things are cut at the (rounded down) cumulative sums of p; they sum to n.

    >>> cut_counts(np.array([0.5, 0.0, 0.25, 0.25]), 10).tolist()
    [5, 0, 2, 3]
    """
    # 1e-9: a sum that should be whole is not rounded down to the number below, which would feed a client with p = 0
    ends = np.minimum((np.cumsum(p) * n + 1e-9).astype(np.int64), n)
    ends[-1] = n
    return np.diff(ends, prepend=0)
