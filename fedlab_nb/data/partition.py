"""Who gets which training sample: the papers' partitions as functions of labels, number of clients and a random stream.

Every partition is a disjoint cover of the samples with a promised minimum per client. A rule (one of RULES) draws an
owner for each sample; a client left with fewer than the minimum is then helped either by moving the few samples needed
(`repair="move"`: one draw, always answers) or by drawing again (`repair="redraw"`: what the papers' codes do, bounded
here). Only numpy, and no images: a slider may call this while it is dragged.

The partition `natural` has no rule: the data say who holds what. In `fonts` they say which samples belong together.

Label skew is two numbers, from the table of label counts alone (`skew_of`). With n_k samples at client k, N in all, p_k
the label distribution of client k and p = sum_k (n_k/N) p_k the pooled one,

    jensen_shannon    = [entropy(p) - sum_k (n_k/N) entropy(p_k)] / entropy(p)
    effective_classes = mean_k exp(entropy(p_k))

The bracket is the generalised Jensen-Shannon divergence of the p_k with weights n_k/N; it equals the mutual
information of client and label, so the quotient is the share of the label's entropy that knowing the client explains: 0
when all clients have the same label distribution, 1 when every client holds a single class (and more than one class
exists). Since the mutual information is at most log M, it cannot exceed log(M) / entropy(p): few clients cannot be
fully skewed over many classes.
"""

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlab_nb.declared import declared
from fedlab_nb.errors import RunError, UsageError, choose, number, whole

PARTITIONS: dict[str, str] = declared("data/datasets.toml")["partitions"]
RULES = {name: text for name, text in PARTITIONS.items() if name not in ("fonts", "natural")}
SIZED = ("dirichlet", "client_dirichlet")  # the rules that `size_sigma` can make unequal
ALPHA_HINT = "smaller is more skewed, 0.1 is a strong skew"
REPAIRS = ("move", "redraw")
MOST_DRAWS = 1000  # of a redraw


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
    size_sigma: float = 0.0,
    minimum: int | None = None,
    repair: str = "move",
) -> Cut:
    """Partition samples with `labels` [N] (0..C-1) among M clients. `size_sigma`: of the logarithm of the clients'
    wished sizes, in the rules SIZED.

    Raises UsageError for a value out of range, and RunError when MOST_DRAWS redraws did not reach the minimum.

    >>> cut(np.array([0, 0, 1, 1]), 2, 2, np.random.default_rng(0), partition="classes", classes_per_client=1).shards
    [array([0, 1]), array([2, 3])]
    """
    n = len(labels)
    choose("partition", partition, RULES)
    choose("repair", repair, REPAIRS)
    alpha = number("alpha", alpha, 0, open_low=True, hint=ALPHA_HINT)
    clients = whole("clients", clients, 1, n, hint="every client needs one training sample or more")
    wanted = whole("classes_per_client", classes_per_client, 1, classes)
    sigma = number("size_sigma", size_sigma, 0, 10, hint="0 is no lognormal sizes")
    if sigma and partition not in SIZED:
        others = f"use {' or '.join(SIZED)}, or partition='quantity' with alpha = 1/sigma²"
        raise UsageError(
            f"size_sigma is {sigma:g}, but partition {partition!r} has no lognormal sizes; {others}."
        )
    if minimum is None:
        minimum = default_minimum(n, clients)
    minimum = whole(
        "minimum", minimum, 1, n // clients, hint=f"{clients} clients share {n} training samples"
    )

    note = ""
    for draws in range(1, (MOST_DRAWS if repair == "redraw" else 1) + 1):
        if partition == "dirichlet":
            owner = dirichlet(
                labels, clients, rng, alpha, lognormal(clients, rng, sigma) if sigma else None
            )
        elif partition == "client_dirichlet":
            sizes = (
                cut_counts(lognormal(clients, rng, sigma), n) if sigma else even_sizes(n, clients)
            )
            owner = client_dirichlet(labels, classes, sizes, rng, alpha)
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
        drawn = f"None of {MOST_DRAWS} draws of the {partition} partition (alpha={alpha:g}, {clients} clients) left"
        mend = "use repair='move', a larger alpha, fewer clients or a smaller minimum"
        raise RunError(f"{drawn} every client at least {minimum} of the {n} samples; {mend}.")
    shards, moved = top_up(group(owner, clients), minimum, rng)
    note += f" {moved} of {n} samples were moved: each client has at least {minimum}."
    return Cut(shards, minimum, moved, 1, note.strip())


def dirichlet(
    labels: np.ndarray,
    clients: int,
    rng: np.random.Generator,
    alpha: float,
    shares: np.ndarray | None = None,
) -> np.ndarray:
    """Owner [N] of each sample. For each class c: p ~ Dir(alpha 1_M), with p_k = 0 where client k already holds N/M
    samples or more, renormalised; the shuffled samples of c are cut at the cumulative sums of p (procedure of
    NIID-Bench, used by FENS, FedLPA, FuseFL).

    shares: [M], summing to 1: client k's wished part of all samples. Its p_k is then multiplied by M shares_k, and it
    is full at N shares_k instead of N/M.
    """
    n = len(labels)
    owner = np.empty(n, dtype=np.int64)
    held = np.zeros(clients, dtype=np.int64)
    for members in members_of_classes(labels, rng):
        p = dirichlet_draw(rng, alpha, clients)
        # never all False here: the sum of `held` is below N, that of the wished sizes, while samples are left
        room = held * clients < n if shares is None else held < n * shares
        if shares is not None:
            room |= ~room.any()  # but for rounding
            p = p * shares
        p = np.where(room, p, 0.0)
        if p.sum() > 0:
            p = p / p.sum()
        else:  # at tiny alpha the whole mass can lie on clients that are full: draw among the others
            p[room] = dirichlet_draw(rng, alpha, int(room.sum()))
        counts = cut_counts(p, len(members))
        owner[members] = np.repeat(np.arange(clients), counts)
        held += counts
    return owner


def client_dirichlet(
    labels: np.ndarray, classes: int, sizes: np.ndarray, rng: np.random.Generator, alpha: float
) -> np.ndarray:
    """Owner [N] of each sample; client k gets exactly sizes_k of them. Client k draws its mix of classes
    q_k ~ Dir(alpha 1_C). Then, in random order, a client with room asks for one sample of a class drawn from its mix;
    a class that has run out counts no more, and the mixes are renormalised (Co-Boosting's code draws again instead, and
    under strong skew it never ends).
    """
    clients = len(sizes)
    pools = [np.empty(0, dtype=np.int64)] * classes
    for members in members_of_classes(labels, rng):
        pools[labels[members[0]]] = members
    left = np.array([len(pool) for pool in pools])
    mix = np.stack([dirichlet_draw(rng, alpha, classes) for _ in range(clients)])
    asks = rng.permutation(np.repeat(np.arange(clients), sizes))
    owner = np.empty(len(labels), dtype=np.int64)
    while len(asks):  # until the first class runs out, once for each class at most
        drawn = draw_classes(mix, left > 0, asks, rng, alpha)
        last = len(asks)
        for c in np.flatnonzero(left):
            where = np.flatnonzero(drawn == c)
            last = min(last, where[left[c] - 1] + 1) if len(where) >= left[c] else last
        for c in np.flatnonzero(left):
            who = asks[:last][drawn[:last] == c]
            owner[pools[c][left[c] - len(who) : left[c]]] = who
            left[c] -= len(who)
        asks = asks[last:]
    return owner


def draw_classes(
    mix: np.ndarray, there: np.ndarray, asks: np.ndarray, rng: np.random.Generator, alpha: float
) -> np.ndarray:
    """A class [n] for each asking client [n], from its row of `mix` [M, C] among the classes that are `there` [C]. A
    client whose mix has nothing of these draws another mix of them."""
    p = np.where(there, mix, 0.0)
    for k in np.flatnonzero(p.sum(axis=1) < 1e-100):
        p[k, there] = dirichlet_draw(rng, alpha, int(there.sum()))
    ends = np.cumsum(p, axis=1)
    ends = (
        np.minimum(ends / ends[:, -1:], 1.0) + np.arange(len(p))[:, None]
    )  # client k's lie in k..k+1
    drawn = (
        np.searchsorted(ends.ravel(), asks + rng.random(len(asks)), side="right")
        - asks * p.shape[1]
    )
    most = (
        p.shape[1] - 1 - (p[:, ::-1] > 0).argmax(axis=1)
    )  # a sum that is rounded up stays in its row
    return np.minimum(drawn, most[asks])


def lognormal(clients: int, rng: np.random.Generator, sigma: float) -> np.ndarray:
    """Shares [M] of all samples in proportion to exp(sigma z), z standard normal; they sum to 1."""
    z = sigma * rng.standard_normal(clients)
    weights = np.exp(z - z.max())
    return weights / weights.sum()


def even_sizes(n: int, clients: int) -> np.ndarray:
    """M sizes that sum to n and differ by one at most.

    >>> even_sizes(8, 3).tolist()
    [3, 3, 2]
    """
    return np.bincount(np.arange(n) % clients, minlength=clients)


def by_classes(
    labels: np.ndarray, clients: int, rng: np.random.Generator, wanted: int
) -> tuple[np.ndarray, str]:
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
    covered, dealt = len(present) - len(left), f"the other {len(left)} were dealt out in turn"
    note = f"{clients} clients with {wanted} classes each cover {covered} of {len(present)} classes; {dealt}."
    owner = np.empty(len(labels), dtype=np.int64)
    for c, members in enumerate(members_of_classes(labels, rng)):
        holders = np.flatnonzero(holds[:, c])
        for holder, part in zip(holders, np.array_split(members, len(holders)), strict=True):
            owner[part] = holder
    return owner, note if len(left) else ""


def quantity(n: int, clients: int, rng: np.random.Generator, alpha: float) -> np.ndarray:
    """Owner [N]: random samples, sizes in proportion to exp(z / sqrt(alpha)) with z standard normal."""
    sizes = cut_counts(lognormal(clients, rng, alpha**-0.5), n)
    return rng.permutation(np.repeat(np.arange(clients), sizes))


def iid(n: int, clients: int, rng: np.random.Generator) -> np.ndarray:
    """Owner [N]: random samples, sizes equal to within one."""
    return rng.permutation(np.arange(n) % clients)


def by_fonts(fonts: np.ndarray, clients: int, rng: np.random.Generator) -> Cut:
    """Each client gets all samples of fonts of its own: the fonts that occur, shuffled and cut evenly. `fonts` [N]: of
    each sample, -1 for one that becomes nobody's.

    >>> by_fonts(np.array([7, 3, 7, -1]), 2, np.random.default_rng(0)).shards
    [array([1]), array([0, 2])]
    """
    there = rng.permutation(np.unique(fonts[fonts >= 0]))
    hint = f"the samples are in {len(there)} fonts, and each client needs one of its own"
    parts = np.array_split(there, whole("clients", clients, 1, len(there), hint=hint))
    shards = [np.flatnonzero(np.isin(fonts, own)) for own in parts]
    many = " to ".join(sorted({str(len(own)) for own in parts}, key=int))
    return Cut(
        shards,
        min(map(len, shards)),
        0,
        1,
        f"Each client has its own fonts, {many} of {len(there)}.",
    )


def top_up(
    shards: list[np.ndarray], minimum: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], int]:
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


# ------------------------------------------------------------------------------------------------------------- skew
def shares(counts: np.ndarray, total: int) -> np.ndarray:
    """`total` dealt out in proportion to `counts` by largest remainders; sums to `total` exactly.

    >>> shares(np.array([50, 30, 20]), 7).tolist()
    [4, 2, 1]
    """
    exact = counts * total / counts.sum()
    whole = np.floor(exact).astype(int)
    short = total - whole.sum()
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return whole


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
    return Skew(
        min(1.0, max(0.0, share)), float(np.exp(per_client).mean())
    )  # rounding may leave 0..1 by an ulp


def entropy(p: np.ndarray) -> np.ndarray:
    """Entropy in nats along the last axis, with 0 log 0 = 0."""
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)
