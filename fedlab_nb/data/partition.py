"""Deal the training samples out to clients by the papers' partitions, and measure the skew.

A partition is a function of the labels, the number of clients and a random stream. It gives each
sample to exactly one client, and each client at least a given minimum. A rule (one of RULES) draws
the client of each sample. If a client then has fewer samples than the minimum, either the few missing
ones are moved to it (`repair="move"`: one draw, and always a result), or all samples are drawn again
(`repair="redraw"`: as in the papers' codes, but with a limit on the tries). The code needs NumPy only
and no images, so that it is fast enough for a slider while it is dragged.

The partition `natural` has no rule: the data say which client holds each sample. For `fonts` they say
which samples belong together.

Label skew is two numbers, from the table of label counts alone (`measure_skew`). With n_k samples
at client k, N in all, p_k the label distribution of client k and p = sum_k (n_k/N) p_k the pooled
one,

    jensen_shannon    = [entropy(p) - sum_k (n_k/N) entropy(p_k)] / entropy(p)
    effective_classes = mean_k exp(entropy(p_k))

The bracket is the generalised Jensen-Shannon divergence of the p_k with weights n_k/N; it equals
the mutual information of client and label, so the quotient is the share of the label's entropy that
knowing the client explains: 0 when all clients have the same label distribution, 1 when every
client holds a single class (and more than one class exists). Since the mutual information is at
most log M, it cannot exceed log(M) / entropy(p): few clients cannot be fully skewed over many
classes.
"""

import heapq
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fedlab_nb.data.array_types import (
    BooleanPerClass,
    ClientClassCountArray,
    ClientClassShares,
    ClientOfSample,
    CountPerClass,
    CountPerClient,
    FontOfSample,
    IndexArray,
    LabelArray,
    SharePerClient,
    Shares,
)
from fedlab_nb.declared import read_toml
from fedlab_nb.errors import (
    RunError,
    UsageError,
    check_allowed_name,
    check_number,
    check_whole_number,
)

PARTITIONS: dict[str, str] = read_toml("data/datasets.toml")["partitions"]
RULES = {name: text for name, text in PARTITIONS.items() if name not in ("fonts", "natural")}
SIZED = ("dirichlet", "client_dirichlet")  # the rules that `size_sigma` applies to
ALPHA_HINT = "smaller is more skewed, 0.1 is a strong skew"
REPAIRS = ("move", "redraw")
PartitionName = Literal[
    "dirichlet", "client_dirichlet", "classes", "quantity", "iid", "fonts", "natural"
]
SkewRule = Literal["dirichlet", "client_dirichlet", "classes", "quantity", "iid"]
WayToReachMinimum = Literal["move", "redraw"]
MOST_DRAWS = 1000  # draws until a redraw gives up


@dataclass(frozen=True)
class Partition:
    """The samples that each client holds.

    shards: M sorted arrays of sample indices
    minimum: the samples that every client has at least
    moved: the number of samples that were moved to reach this minimum
    draws: how often the owners were drawn
    note: a text for the reader; "" for none
    """

    shards: list[np.ndarray]
    minimum: int
    moved: int
    draws: int
    note: str


class ClientOfSampleAndNote(NamedTuple):
    """The client that holds each sample.

    owners: int64 [N], the client that holds each sample
    note: a text for the reader; "" for none
    """

    owners: ClientOfSample
    note: str


@dataclass(frozen=True)
class PartitionRule:
    """A rule of RULES with its checked settings, as `partition_samples` takes them."""

    name: SkewRule
    alpha: float
    classes_per_client: int
    size_sigma: float

    def assign_clients_to_samples(
        self, labels: LabelArray, class_count: int, client_count: int, rng: np.random.Generator
    ) -> ClientOfSampleAndNote:
        """Deal out the samples of a data set by this rule."""
        samples = len(labels)
        if self.name == "dirichlet":
            shares = None
            if self.size_sigma:
                shares = draw_lognormal_shares(client_count, rng, self.size_sigma)
            owners = assign_by_dirichlet(labels, client_count, rng, self.alpha, shares)
            return ClientOfSampleAndNote(owners, "")
        if self.name == "client_dirichlet":
            sizes = split_count_evenly(samples, client_count)
            if self.size_sigma:
                shares = draw_lognormal_shares(client_count, rng, self.size_sigma)
                sizes = convert_shares_to_sizes(shares, samples)
            owners = assign_by_client_dirichlet(labels, class_count, sizes, rng, self.alpha)
            return ClientOfSampleAndNote(owners, "")
        if self.name == "classes":
            return assign_fixed_number_of_classes_per_client(
                labels, client_count, rng, self.classes_per_client
            )
        if self.name == "quantity":
            return ClientOfSampleAndNote(
                assign_with_lognormal_client_sizes(samples, client_count, rng, self.alpha), ""
            )
        return ClientOfSampleAndNote(assign_iid(samples, client_count, rng), "")


def partition_samples(
    labels: LabelArray,
    class_count: int,
    client_count: int,
    rng: np.random.Generator,
    *,
    partition: SkewRule = "dirichlet",
    alpha: float = 0.1,
    classes_per_client: int = 2,
    size_sigma: float = 0.0,
    minimum: int | None = None,
    repair: WayToReachMinimum = "move",
) -> Partition:
    """Partition samples with `labels` [N] (0..C-1) among M clients by one of RULES.

    alpha: Dirichlet concentration
    classes_per_client: the classes that each client gets by the rule `classes`
    size_sigma: for the rules SIZED, the standard deviation of the logarithm of the target sizes
    minimum: the samples that each client gets at least; None: as `choose_default_minimum_per_client` says
    repair: how clients get the minimum, one of REPAIRS

    Raises UsageError for a value out of range, and RunError when MOST_DRAWS redraws did not reach
    the minimum.

    >>> labels = np.array([0, 0, 1, 1])
    >>> rng = np.random.default_rng(0)
    >>> partition_samples(labels, 2, 2, rng, partition="classes", classes_per_client=1).shards
    [array([0, 1]), array([2, 3])]
    """
    n = len(labels)
    check_allowed_name("partition", partition, RULES)
    check_allowed_name("repair", repair, REPAIRS)
    alpha = check_number("alpha", alpha, 0, excludes_low=True, hint=ALPHA_HINT)
    client_count = check_whole_number(
        "clients", client_count, 1, n, hint="every client needs one training sample or more"
    )
    classes_per_client = check_whole_number(
        "classes_per_client", classes_per_client, 1, class_count
    )
    size_sigma = check_number("size_sigma", size_sigma, 0, 10, hint="0 is no lognormal sizes")
    if size_sigma and partition not in SIZED:
        raise UsageError(
            f"size_sigma is {size_sigma:g}, but partition {partition!r} has no lognormal sizes; "
            f"use {' or '.join(SIZED)}, or partition='quantity' with alpha = 1/sigma²."
        )
    if minimum is None:
        minimum = choose_default_minimum_per_client(n, client_count)
    hint = f"{client_count} clients share {n} training samples"
    minimum = check_whole_number("minimum", minimum, 1, n // client_count, hint=hint)

    rule = PartitionRule(partition, alpha, classes_per_client, size_sigma)
    most_draws = MOST_DRAWS if repair == "redraw" else 1
    for draws in range(1, most_draws + 1):
        owner, note = rule.assign_clients_to_samples(labels, class_count, client_count, rng)
        sizes = np.bincount(owner, minlength=client_count)
        if sizes.min() >= minimum:
            return Partition(group_indices_by_client(owner, client_count), minimum, 0, draws, note)
    if repair == "redraw":
        raise RunError(
            f"None of {MOST_DRAWS} draws of the {partition} partition (alpha={alpha:g}, {client_count} "
            f"clients) left every client at least {minimum} of the {n} samples; use repair='move', "
            "a larger alpha, fewer clients or a smaller minimum."
        )
    shards, moved_count = move_samples_to_reach_minimum(
        group_indices_by_client(owner, client_count), minimum, rng
    )
    note = f"{note} {moved_count} of {n} samples were moved: each client has at least {minimum}."
    return Partition(shards, minimum, moved_count, 1, note.strip())


def choose_default_minimum_per_client(sample_count: int, client_count: int) -> int:
    """Choose the minimum of samples per client if none is given: the papers' 10, or half the mean size
    if that is less."""
    return min(10, max(1, sample_count // (2 * client_count)))


# ------------------------------------------------------------------------------- the papers' rules
def assign_by_dirichlet(
    labels: LabelArray,
    client_count: int,
    rng: np.random.Generator,
    alpha: float,
    client_shares: SharePerClient | None = None,
) -> ClientOfSample:
    """Assign each sample an owner, [N], by the procedure of NIID-Bench, which FENS, FedLPA and FuseFL
    use.

    For each class c, p ~ Dir(alpha 1_M) is drawn. p_k becomes 0 if client k already holds N/M samples
    or more, and p is renormalised. The shuffled samples of c are cut at the cumulative sums of p.

    client_shares: the target share of all samples for each client. p_k is then multiplied by the
        client's share, and client k is full at N client_shares[k] instead of N/M
    """
    n = len(labels)
    owner = np.empty(n, dtype=np.int64)
    sizes = np.zeros(client_count, dtype=np.int64)
    for members in shuffle_indices_by_class(labels, rng):
        p = draw_symmetric_dirichlet(rng, alpha, client_count)
        # Never all False here: while samples are left, the sum of `sizes` is below N, which is the
        # sum of the target sizes.
        if client_shares is None:
            has_room = sizes * client_count < n
        else:
            has_room = sizes < n * client_shares
            if not has_room.any():  # only rounding errors lead here
                has_room[:] = True
            p = p * client_shares
        p = np.where(has_room, p, 0.0)
        if p.sum() > 0:
            p = p / p.sum()
        else:
            # At tiny alpha all of p can fall on full clients: draw among the others.
            p[has_room] = draw_symmetric_dirichlet(rng, alpha, int(has_room.sum()))
        counts = convert_shares_to_sizes(p, len(members))
        owner[members] = np.repeat(np.arange(client_count), counts)
        sizes += counts
    return owner


def assign_by_client_dirichlet(
    labels: LabelArray,
    class_count: int,
    client_sample_counts: CountPerClient,
    rng: np.random.Generator,
    alpha: float,
) -> ClientOfSample:
    """Assign each sample an owner, [N]; client k gets exactly client_sample_counts[k]
    samples.

    Client k draws its mix of classes q_k ~ Dir(alpha 1_C). Then the clients that are not
    full, in random order, each ask for one sample of a class drawn from their mix. A class that has
    run out is dropped, and the mixes are renormalised. (Co-Boosting's code draws again instead; under
    strong skew it never ends.)
    """
    clients = len(client_sample_counts)
    pools = [np.empty(0, dtype=np.int64)] * class_count
    for members in shuffle_indices_by_class(labels, rng):
        pools[labels[members[0]]] = members
    samples_left = np.array([len(pool) for pool in pools])  # samples of each class without an owner
    mixes = np.stack([draw_symmetric_dirichlet(rng, alpha, class_count) for _ in range(clients)])
    # The clients in the order in which they ask, one sample each time.
    queue = rng.permutation(np.repeat(np.arange(clients), client_sample_counts))
    owner = np.empty(len(labels), dtype=np.int64)
    while len(queue):  # until the first class runs out, once for each class at most
        drawn_classes = draw_class_for_each_client(mixes, samples_left > 0, queue, rng, alpha)
        served = count_draws_until_class_runs_out(drawn_classes, samples_left)
        for c in np.flatnonzero(samples_left):
            askers = queue[:served][drawn_classes[:served] == c]
            owner[pools[c][samples_left[c] - len(askers) : samples_left[c]]] = askers
            samples_left[c] -= len(askers)
        queue = queue[served:]
    return owner


def count_draws_until_class_runs_out(
    drawn_classes: LabelArray, samples_left_by_class: CountPerClass
) -> int:
    """Count how many of `drawn_classes` [n] can be served, in order, until a class has run out; n if
    none does.

    samples_left_by_class: [C], the samples of each class that have no owner yet
    """
    served = len(drawn_classes)
    for c in np.flatnonzero(samples_left_by_class):
        positions = np.flatnonzero(drawn_classes == c)
        if len(positions) >= samples_left_by_class[c]:
            served = min(served, positions[samples_left_by_class[c] - 1] + 1)
    return served


def draw_class_for_each_client(
    class_shares_of_clients: ClientClassShares,
    classes_with_samples_left: BooleanPerClass,
    client_queue: IndexArray,
    rng: np.random.Generator,
    alpha: float,
) -> LabelArray:
    """Draw a class [n] for each client of `client_queue` [n], from its row of
    `class_shares_of_clients` [M, C].

    Only classes of `classes_with_samples_left` [C] are drawn. A client whose mix contains none of
    these draws a new mix of them.
    """
    clients, classes = class_shares_of_clients.shape
    p = np.where(classes_with_samples_left, class_shares_of_clients, 0.0)
    for k in np.flatnonzero(p.sum(axis=1) < 1e-100):
        p[k, classes_with_samples_left] = draw_symmetric_dirichlet(
            rng, alpha, int(classes_with_samples_left.sum())
        )
    # One search for all clients: the cumulative sums of client k lie in k..k+1.
    ends = np.cumsum(p, axis=1)
    ends = np.minimum(ends / ends[:, -1:], 1.0) + np.arange(clients)[:, None]
    points = client_queue + rng.random(len(client_queue))
    drawn_classes = np.searchsorted(ends.ravel(), points, side="right") - client_queue * classes
    # A point that is rounded up to the end of its row gets the row's last class with p > 0.
    last_class = classes - 1 - (p[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(drawn_classes, last_class[client_queue])


def assign_fixed_number_of_classes_per_client(
    labels: LabelArray, client_count: int, rng: np.random.Generator, classes_per_client: int
) -> ClientOfSampleAndNote:
    """Give each client a fixed number of classes, and split each class evenly among its clients.

    Client i gets class i mod C, then other classes at random until it has `classes_per_client`.
    Classes that no client has yet come first. This is #C=k of NIID-Bench and FedLPA; there a class may
    go to no client, and its samples stay unused.
    """
    present = np.unique(labels)
    count = min(classes_per_client, len(present))
    holds = np.zeros((client_count, len(present)), dtype=bool)
    holds[np.arange(client_count), np.arange(client_count) % len(present)] = True
    is_held = holds.sum(axis=0) > 0
    for k in range(client_count):
        for _ in range(count - 1):
            if is_held.all():
                candidates = np.flatnonzero(~holds[k])
            else:
                candidates = np.flatnonzero(~is_held)
            c = rng.choice(candidates)
            holds[k, c] = True
            is_held[c] = True
    slots_left = np.flatnonzero(~is_held)
    holds[np.arange(len(slots_left)) % client_count, slots_left] = True
    note = ""
    if len(slots_left):
        note = (
            f"{client_count} clients with {count} classes each cover "
            f"{len(present) - len(slots_left)} of {len(present)} classes; "
            f"the other {len(slots_left)} were dealt out in turn."
        )
    owner = np.empty(len(labels), dtype=np.int64)
    for c, members in enumerate(shuffle_indices_by_class(labels, rng)):
        holders = np.flatnonzero(holds[:, c])
        for holder, part in zip(holders, np.array_split(members, len(holders)), strict=True):
            owner[part] = holder
    return ClientOfSampleAndNote(owner, note)


def assign_with_lognormal_client_sizes(
    sample_count: int, client_count: int, rng: np.random.Generator, alpha: float
) -> ClientOfSample:
    """Assign owners [N] at random, with sizes in proportion to exp(z / sqrt(alpha)), z standard
    normal."""
    sizes = convert_shares_to_sizes(
        draw_lognormal_shares(client_count, rng, alpha**-0.5), sample_count
    )
    return rng.permutation(np.repeat(np.arange(client_count), sizes))


def assign_iid(sample_count: int, client_count: int, rng: np.random.Generator) -> ClientOfSample:
    """Assign owners [N] at random, with sizes equal to within one."""
    return rng.permutation(np.arange(sample_count) % client_count)


def partition_by_fonts(
    font_of_sample: FontOfSample, client_count: int, rng: np.random.Generator
) -> Partition:
    """Give each client all samples of its own fonts: the fonts that occur, shuffled and split evenly.

    font_of_sample: [N], the font of each sample; -1 for one that goes to nobody

    >>> partition_by_fonts(np.array([7, 3, 7, -1]), 2, np.random.default_rng(0)).shards
    [array([1]), array([0, 2])]
    """
    present_fonts = rng.permutation(np.unique(font_of_sample[font_of_sample >= 0]))
    hint = f"the samples are in {len(present_fonts)} fonts, and each client needs one of its own"
    client_count = check_whole_number("clients", client_count, 1, len(present_fonts), hint=hint)
    fonts_of_clients = np.array_split(present_fonts, client_count)
    shards = [
        np.flatnonzero(np.isin(font_of_sample, client_fonts)) for client_fonts in fonts_of_clients
    ]
    counts = sorted({len(client_fonts) for client_fonts in fonts_of_clients})
    counts_text = " to ".join(map(str, counts))
    return Partition(
        shards=shards,
        minimum=min(len(shard) for shard in shards),
        moved=0,
        draws=1,
        note=f"Each client has its own fonts, {counts_text} of {len(present_fonts)}.",
    )


# ------------------------------------------------------------------------------------- their steps
class ShardsAndMovedCount(NamedTuple):
    """The sorted shards after samples were moved, and the number of moved samples."""

    shards: list[np.ndarray]
    moved: int


def move_samples_to_reach_minimum(
    shards: list[IndexArray], minimum_samples: int, rng: np.random.Generator
) -> ShardsAndMovedCount:
    """Bring every client to `minimum_samples` with as few moves as possible.

    Each client below it takes random samples of the client that is the largest at that moment. Taking
    all of them from one client keeps the skew, since they have that client's labels.
    """
    shards = list(shards)
    sizes = [len(shard) for shard in shards]
    donors = [(-size, k) for k, size in enumerate(sizes) if size > minimum_samples]
    heapq.heapify(donors)  # the largest first
    shuffled_clients: set[int] = set()
    moved_count = 0
    for k, size in enumerate(sizes):
        missing_count = minimum_samples - size
        gifts = [shards[k]]
        while missing_count > 0:
            negative_size, donor = donors[0]
            donor_size = -negative_size
            if donor not in shuffled_clients:
                shards[donor] = rng.permutation(shards[donor])
                shuffled_clients.add(donor)
            count = min(missing_count, donor_size - minimum_samples)
            remaining_size = donor_size - count
            gifts.append(shards[donor][remaining_size:])
            shards[donor] = shards[donor][:remaining_size]
            missing_count -= count
            moved_count += count
            if remaining_size > minimum_samples:
                heapq.heapreplace(donors, (-remaining_size, donor))
            else:
                heapq.heappop(donors)
        if len(gifts) > 1:
            shards[k] = np.concatenate(gifts)
    return ShardsAndMovedCount([np.sort(shard) for shard in shards], moved_count)


def group_indices_by_client(
    client_of_sample: ClientOfSample, client_count: int
) -> list[IndexArray]:
    """List the sorted sample indices of each client, from the owner of each sample."""
    order = np.argsort(client_of_sample, kind="stable")
    ends = np.cumsum(np.bincount(client_of_sample, minlength=client_count))
    return np.split(order, ends[:-1])


def shuffle_indices_by_class(labels: LabelArray, rng: np.random.Generator) -> list[IndexArray]:
    """Shuffle the sample indices of each class that occurs; the classes are in rising order."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    ends = np.cumsum(counts[counts > 0])
    return np.split(order, ends[:-1])


def draw_symmetric_dirichlet(rng: np.random.Generator, alpha: float, dimension: int) -> Shares:
    """Draw p ~ Dir(alpha 1_dimension), or its limit (one-hot or uniform) if alpha is so extreme that
    NumPy's draw is NaN."""
    with np.errstate(all="ignore"):
        p = rng.dirichlet(np.full(dimension, alpha))
    if np.isfinite(p).all() and 0.5 < p.sum() < 1.5:
        return p
    if alpha > 1:
        return np.full(dimension, 1.0 / dimension)
    return np.eye(dimension)[rng.integers(dimension)]


def draw_lognormal_shares(
    client_count: int, rng: np.random.Generator, log_size_sigma: float
) -> SharePerClient:
    """Draw shares [M] in proportion to exp(sigma z), z standard normal; they sum to 1."""
    z = log_size_sigma * rng.standard_normal(client_count)
    weights = np.exp(z - z.max())
    return weights / weights.sum()


def convert_shares_to_sizes(shares: SharePerClient, sample_count: int) -> CountPerClient:
    """Cut `sample_count` samples at the cumulative sums of `shares`, rounded down, and return the
    pieces' sizes.

    >>> convert_shares_to_sizes(np.array([0.5, 0.0, 0.25, 0.25]), 10).tolist()
    [5, 0, 2, 3]
    """
    # 1e-9, since rounding errors may put a whole sum just below its number; rounded down, it would
    # give a sample to a client with share 0
    ends = np.minimum((np.cumsum(shares) * sample_count + 1e-9).astype(np.int64), sample_count)
    ends[-1] = sample_count
    return np.diff(ends, prepend=0)


def split_count_evenly(sample_count: int, client_count: int) -> CountPerClient:
    """Split `sample_count` into M sizes that differ by one at most.

    >>> split_count_evenly(8, 3).tolist()
    [3, 3, 2]
    """
    return np.bincount(np.arange(sample_count) % client_count, minlength=client_count)


def apportion_total_by_counts(counts: np.ndarray, total: int) -> np.ndarray:
    """Split `total` in proportion to `counts` by largest remainders; the parts sum to `total`
    exactly.

    >>> apportion_total_by_counts(np.array([50, 30, 20]), 7).tolist()
    [4, 2, 1]
    """
    exact = counts * total / counts.sum()
    parts = np.floor(exact).astype(int)
    remainder = total - parts.sum()
    largest_remainders = np.argsort(parts - exact, kind="stable")[:remainder]
    parts[largest_remainders] += 1
    return parts


# -------------------------------------------------------------------------------------------- skew
@dataclass(frozen=True)
class Skew:
    """How unequal the clients' labels are.

    jensen_shannon: from 0 (all clients have the same labels) to 1 (each client has one class)
    effective_classes: from 1 to C, the mean over clients
    """

    jensen_shannon: float
    effective_classes: float


def measure_skew(label_counts: ClientClassCountArray) -> Skew:
    """Measure the skew of an [M, C] table of label counts, without the clients that have no samples.

    >>> measure_skew(np.array([[5, 0], [0, 5]]))
    Skew(jensen_shannon=1.0, effective_classes=1.0)
    >>> measure_skew(np.array([[5, 5], [2, 2]]))
    Skew(jensen_shannon=0.0, effective_classes=2.0)
    """
    counts = np.asarray(label_counts, dtype=np.float64)
    counts = counts[counts.sum(axis=1) > 0]
    if len(counts) == 0:
        return Skew(0.0, 0.0)
    sizes = counts.sum(axis=1)
    entropies = compute_entropy_in_nats_along_last_axis(counts / sizes[:, None])
    pooled = float(compute_entropy_in_nats_along_last_axis(counts.sum(axis=0) / sizes.sum()))
    within = float(sizes @ entropies / sizes.sum())
    explained = 0.0
    if pooled > 0:
        # Rounding errors may leave the range 0..1.
        explained = min(1.0, max(0.0, (pooled - within) / pooled))
    return Skew(explained, float(np.exp(entropies).mean()))


def compute_entropy_in_nats_along_last_axis(shares: Shares) -> np.ndarray:
    """Compute the entropy in nats along the last axis, with 0 log 0 = 0."""
    return -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=-1)
