"""A Federation: one dataset and who holds which of its training samples. Immutable, and without a copy of any image.

How samples are shared out, and how skewed that is, is `partition.py`'s matter. `plain` makes settings of what a person
gives as data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlab_nb.data import registry
from fedlab_nb.data.arrays import owners
from fedlab_nb.data.cues import CUES, NOTES, TINT_VERSION
from fedlab_nb.data.dataset import Dataset, digest_of
from fedlab_nb.data.edits import NO_EDITS, Edit, Edits, check_name, letter
from fedlab_nb.data.partition import (
    ALPHA_HINT,
    PARTITIONS,
    RULES,
    Cut,
    Skew,
    by_fonts,
    cut,
    group,
    skew_of,
)
from fedlab_nb.errors import UsageError, choose, demand, number, parsed, whole
from fedlab_nb.rng import generator, numpy_rng
from fedlab_nb.torch_switches import usual_switches

if TYPE_CHECKING:
    import torch


# What says who holds which sample, and so cannot be given beside a Federation as `dataset`.
DEALING = ("alpha", "clients", "partition", "classes_per_client", "size_sigma", "minimum", "repair")


# Settings of a federation, and the values that are as good as not given.
FEDERATION_SETTINGS: Mapping[str, Any] = {
    "alpha": None,
    "clients": None,
    "partition": None,
    "classes_per_client": 2,
    "size_sigma": 0,
    "share": 1,
    "minimum": 0,
    "repair": "move",
    "moves": "",
    "spurious": "",
    "cue": "tint",
    "tint": 0.8,
    "absent": "",
    "unseen": "",
}


@dataclass(frozen=True, eq=False, repr=False)
class Federation:
    """M clients' private shards of one training set.

    shards: M sorted int64 tensors, disjoint, each of at least `minimum` samples; a cover of 0..N-1, unless `share` is
            below 1 or the data give some samples to nobody
    alpha:  Dirichlet concentration; smaller is more skewed
    partition: one of PARTITIONS, or "own" where a person has changed it by hand; with doubles the shards
            are not disjoint, and where a client was emptied they are no cover
    edits:  those changes, in order (see `edits.py`); `move`, `double` and `rename` give a Federation with one more
    moved:  samples moved after the draw to keep the promised minimum;   draws: 1, or more with repair="redraw"
    spurious: clients whose images carry the `cue`, a tint or a small shape (see `cues.py`), of strength `tint`
    note:   what a reader should know about this partition; "" where there is nothing
    absent, unseen: clients that were taken out of the federation `whole`, by their numbers there. Absent ones get the
            initial model, train, and are never heard of again; unseen ones have no part at all, and their samples are
            one more test set. `ids`: the numbers of those that are left
    origin: the keyword arguments of `federate` that make it, `dataset` among them
    """

    dataset: Dataset
    shards: tuple[torch.Tensor, ...]
    partition: str
    alpha: float
    seed: int
    minimum: int
    moved: int
    draws: int
    note: str = ""
    classes_per_client: int = 2
    spurious: tuple[int, ...] = ()
    tint: float = 0.0
    size_sigma: float = 0.0
    share: float = 1.0
    cue: str = "tint"
    absent: tuple[int, ...] = ()
    unseen: tuple[int, ...] = ()
    whole: Federation | None = None
    edits: Edits = NO_EDITS
    origin: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[int, ...]:
        return members((self.whole or self).clients, self.absent, self.unseen)

    def without(self, absent: Sequence[int], unseen: Sequence[int]) -> Federation:
        """The federation of those that are left."""
        left = members(self.clients, absent, unseen)
        words = {"Absent (trained, sent nothing)": absent, "Unseen (a test set of its own)": unseen}
        notes = [
            f"{what}: {len(gone)} of {self.clients} clients."
            for what, gone in words.items()
            if gone
        ]
        shards, note = tuple(self.shards[k] for k in left), " ".join([self.note, *notes]).strip()
        spurious = tuple(at for at, k in enumerate(left) if k in self.spurious)
        changed = replace(self, shards=shards, spurious=spurious, note=note, whole=self)
        return replace(changed, absent=tuple(absent), unseen=tuple(unseen))

    @property
    def clients(self) -> int:
        return len(self.shards)

    @property
    def classes(self) -> int:
        return self.dataset.classes

    @cached_property
    def sizes(self) -> torch.Tensor:
        """Samples per client, int64 [M]."""
        import torch

        return torch.tensor([len(shard) for shard in self.shards])

    @cached_property
    def label_counts(self) -> torch.Tensor:
        """Samples per client and class, int64 [M, C]."""
        import torch

        # In NumPy: a slider waits for it, and PyTorch's threads wait for each other on a busy machine.
        label = self.dataset.y_train.numpy()
        rows = [np.bincount(label[shard.numpy()], minlength=self.classes) for shard in self.shards]
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    @cached_property
    def skew(self) -> Skew:
        return skew_of(self.label_counts.numpy())

    def split(self, fraction: float) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        """For each client (training indices, held-out indices), both sorted, together its shard.

        Client k holds out round(fraction n_k) samples, at least 1 and at most n_k - 1, drawn from its own stream;
        none if it has fewer than 2 or `fraction` is 0.
        """
        import torch

        fraction = number("fraction", fraction, 0, 1)
        parts = []
        for k, shard in zip(self.ids, self.shards, strict=True):
            n = len(shard)
            held = 0 if n < 2 or fraction == 0 else min(n - 1, max(1, round(fraction * n)))
            order = torch.from_numpy(numpy_rng(self.seed, "holdout", k).permutation(n))
            parts.append((shard[order[held:].sort().values], shard[order[:held].sort().values]))
        return tuple(parts)

    def move(
        self, client: int | str, to: int | str | None, *, label: int | str | None = None
    ) -> Federation:
        """A Federation in which samples of one client have gone to another one; this one stays as it is.

        client, to: a letter, a name, or a number, counted as if nobody were absent;   to=None: nobody gets them
        label: the class of the samples, by its index or its name; None: all classes

        The client's last sample stays, because every client of a run needs one. Raises UsageError for a client or a
        class that is not there, and where both clients are the same.

        >>> before = federate("digits", seed=4)
        >>> after = before.move("A", "B", label=3)
        >>> gained = int(after.label_counts[1, 3] - before.label_counts[1, 3])
        >>> gained == int(before.label_counts[0, 3]), str(after.edits)
        (True, '4: A3>B')
        """
        giver = self.client_number(client)
        taker = None if to is None else self.client_number(to)
        if giver == taker:
            raise UsageError(
                f"Client {letter(giver)} cannot give samples to itself; name another client."
            )
        return self.edited(Edit(giver, None if label is None else self.label_index(label), taker))

    def double(self, client: int | str) -> Federation:
        """A Federation with one more client behind the others, which has the same samples as `client`."""
        return self.edited(Edit(self.client_number(client), is_double=True))

    def rename(self, client: int | str, name: str) -> Federation:
        """A Federation in which a client has a name; pictures and sentences show it beside its letter."""
        return self.edited(Edit(self.client_number(client), name=check_name(name)))

    def edited(self, edit: Edit) -> Federation:
        """This federation with one more edit, dealt out again. UsageError where `federate` did not make it."""
        if not self.origin:
            raise UsageError(
                "This Federation was put together by hand, so that it cannot be dealt out again with a "
                "change; make it with fl.federate."
            )
        edits = replace(self.edits, changes=(*self.edits.changes, edit)).pinned(self.seed)
        return federate(**{**self.origin, "moves": edits})

    def client_number(self, client: int | str) -> int:
        """The number of a client, counted as if nobody were absent, from its letter, name or number."""
        count = (self.whole or self).clients
        if isinstance(client, str):
            numbers = {letter(k): k for k in range(count)}
            if self.origin.get("partition") == "natural":
                for k, name in enumerate(self.dataset.client_names):
                    numbers[name] = k
            for k, name in self.edits.names.items():
                numbers[name] = k
            return numbers[choose("client", client, numbers)]
        return int(whole("client", client, 0, count - 1))

    def label_index(self, label: int | str) -> int:
        """The index of a class, from its name or its index."""
        if isinstance(label, str):
            return self.dataset.class_names.index(choose("class", label, self.dataset.class_names))
        return int(whole("label", label, 0, self.classes - 1))

    def settings(self) -> dict[str, Any]:
        """What makes it, as settings of a run: of all seeds of a run, this one federation."""
        if not self.origin:
            raise UsageError(
                "This Federation was put together by hand; give it as dataset=, or make it with "
                "fl.federate."
            )
        made = dict(self.origin)
        drawn_by = self.seed if self.edits.seed is None else self.edits.seed
        made["moves"] = str(replace(self.edits, seed=drawn_by))
        made["dataset"] = text(made["dataset"])
        made["minimum"] = made["minimum"] or 0
        made["spurious"] = ",".join(map(str, self.spurious_clients))
        made["absent"] = client_text(self.absent)
        made["unseen"] = client_text(self.unseen)
        return made

    @property
    def spurious_clients(self) -> tuple[int, ...]:
        """The clients whose images carry the cue, counted as if nobody were absent."""
        return (self.whole or self).spurious

    def __repr__(self) -> str:
        alpha = "" if self.partition == "natural" else f" alpha={self.alpha:g},"
        return (
            f"Federation({self.dataset.name!r}, {self.clients} clients, {self.partition},{alpha} "
            f"seed={self.seed}, sizes {int(self.sizes.min())}..{int(self.sizes.max())}, moved {self.moved})"
        )


@usual_switches()
def federate(
    dataset: Any,
    *,
    alpha: float | None = None,
    clients: int | None = None,
    seed: int = 0,
    partition: str | None = None,
    classes_per_client: int = 2,
    size_sigma: float = 0.0,
    share: float = 1.0,
    minimum: int | None = None,
    repair: str = "move",
    indices: Any = None,
    moves: str | Edits = "",
    spurious: Iterable[int] = (),
    cue: str = "tint",
    tint: float = 0.8,
    absent: Any = (),
    unseen: Any = (),
) -> Federation:
    """Divide the training samples of `dataset` among `clients`. The same arguments give the same Federation.

    dataset:   a name, a path, a Dataset, or arrays (see `load`)
    partition: one of PARTITIONS. The default is `natural` if the data set names its clients, else `dirichlet`
    alpha:     how even the partition is, by default 0.1. Smaller is more skewed. `classes`, `iid`, `fonts`, `natural`
               ignore it
    clients:   M, by default 10, or as many as the data set names
    classes_per_client: used only by `classes`
    size_sigma: makes client sizes lognormal, with `dirichlet` and `client_dirichlet`: standard deviation of log n_k
    share:     part of the training samples that is used, drawn at random (from each natural client)
    minimum:   samples that every client gets at least; by default 10, or half the mean size if that is less
    repair:    how clients get the minimum. "move": one draw, then a few samples are moved. This always works. "redraw":
               draw again, as the papers do
    indices:   your own partition: M lists of sample indices. None may be empty, and no index may be in two of them
    moves:     changes by hand as a short text, such as "A3>B, C*" (see `edits.py`). In a program
               `federate(…).move("A", "B", label=3).double("C")` says the same
    spurious:  clients whose training images get a cue that shows the label, of strength `tint`. It is the colour of the
               background (cue="tint") or a small figure (cue="shape"). The Federation then has a changed copy of the
               dataset, with the same test and public images
    absent, unseen: clients that are taken out (see `Federation`): how many, which are then the last ones, or a list of
               numbers, letters or names, as `client_list` reads them

    Raises UsageError for wrong arguments, RunError when redrawing did not reach the minimum.

    >>> fed = federate("digits", alpha=0.1, clients=5, seed=1)
    >>> fed.clients, fed.label_counts.shape, int(fed.sizes.sum())
    (5, torch.Size([5, 10]), 1237)
    >>> train, held_out = fed.split(0.1)[0]
    >>> len(train) + len(held_out) == int(fed.sizes[0])
    True
    >>> federate("digits", indices=[[0, 1, 2], [5, 8]])
    Federation('digits', 2 clients, natural, seed=0, sizes 2..3, moved 0)
    """
    import torch

    source = fspath(dataset) if isinstance(dataset, str | PathLike) else None
    dataset = registry.loaded(dataset)
    seed = whole("seed", seed)
    if indices is not None:
        dataset, source = with_clients(dataset, indices), None
    origin: dict[str, Any] = {
        "dataset": dataset if source is None else source,
        "seed": seed,
        "classes_per_client": classes_per_client,
        "size_sigma": size_sigma,
        "share": share,
        "minimum": minimum,
        "repair": repair,
        "cue": cue,
        "tint": tint,
    }
    wish = {"alpha": alpha, "clients": clients}
    changed = {
        "minimum": minimum,
        "repair": None if repair == "move" else repair,
        "size_sigma": size_sigma or None,
    }
    partition = natural_or(partition, dataset.name, len(dataset.client_names), wish | changed)
    alpha = number("alpha", 0.1 if alpha is None else alpha, 0, open_low=True, hint=ALPHA_HINT)
    edits = moves if isinstance(moves, Edits) else Edits.parse(moves)
    draw = seed if edits.seed is None else edits.seed
    origin["partition"] = partition
    if partition != "natural":
        origin["alpha"] = alpha
        origin["clients"] = 10 if clients is None else clients
    used = None if share == 1 else used_samples(dataset, partition, share, draw)
    if partition == "natural":
        result = natural(dataset, used)
    elif partition == "fonts":
        check_fonts(dataset.name, dataset.font_train is not None, changed)
        fonts: Any = dataset.font_train  # of the samples that are not used, unknown
        fonts = (
            fonts.numpy()
            if used is None
            else np.where(np.isin(np.arange(len(fonts)), used), fonts, -1)
        )
        result = by_fonts(fonts, 10 if clients is None else clients, numpy_rng(draw, "partition"))
    else:
        labels = dataset.y_train.numpy()
        result = cut(
            labels if used is None else labels[used], dataset.classes, 10 if clients is None else clients,
            numpy_rng(draw, "partition"), partition=partition, alpha=alpha, classes_per_client=classes_per_client,
            size_sigma=size_sigma, minimum=minimum, repair=repair,
        )  # fmt: skip
        if used is not None:
            result = replace(result, shards=[used[shard] for shard in result.shards])
    names = dataset.client_names if partition == "natural" else ()
    if edits.changes:
        edits.check(len(result.shards), dataset.classes)
    if edits.of_samples:
        partition = "own"
        count = len(edits.of_samples)
        note = f"{result.note} Moves by hand on what seed {draw} deals out: {count}.".strip()
        shards_by_hand = edits.apply(result.shards, dataset.y_train.numpy())
        result = replace(result, shards=shards_by_hand, minimum=1, note=note)
    shards = tuple(torch.from_numpy(shard) for shard in result.shards)
    marked = client_ids(spurious, len(shards))
    absent = client_list("absent", absent, len(shards), names)
    unseen = client_list("unseen", unseen, len(shards), names)
    origin |= {"spurious": marked, "absent": absent, "unseen": unseen}
    choose("cue", cue, CUES)
    if marked:
        dataset = marked_images(dataset, torch.cat([shards[k] for k in marked]), cue, tint, seed)
    everybody = Federation(
        dataset, shards, partition, alpha, seed, result.minimum, result.moved, result.draws, result.note,
        int(classes_per_client), marked, float(tint) if marked else 0.0, float(size_sigma), float(share), cue,
        edits=edits, origin=origin,
    )  # fmt: skip
    return everybody.without(absent, unseen) if absent or unseen else everybody


def natural_or(asked: str | None, name: str, count: int, given: Mapping[str, Any]) -> str:
    """The partition: the one that is asked for, else `natural` where the data set `name` names clients (`count`, 0 for
    none), else `dirichlet`. given: other wishes, by name, None for none; UsageError for one that natural clients cannot
    meet."""
    partition = asked if asked is not None else "natural" if count else "dirichlet"
    choose("partition", partition, PARTITIONS)
    if partition == "natural":
        others = f"give indices or arrays with client_train, or choose another partition: {', '.join(RULES)}"
        demand(
            count,
            f"The data set {name!r} does not name its clients, so partition 'natural' has none; {others}.",
        )
        clients, anew = (
            given.get("clients"),
            "leave that out, or set partition='dirichlet' to divide the samples anew",
        )
        own = f"data set {name!r} has {count} clients of its own"
        demand(clients in (None, count), f"clients is {clients}, but {own}; {anew}.")
        # alpha beside a `natural` that was asked for is as unused as beside `iid`
        unused = ("clients",) if asked is None else ("clients", "alpha")
        wishes = " and ".join(
            wish for wish, value in given.items() if value is not None and wish not in unused
        )
        demand(
            not wishes,
            f"{wishes} cannot be set, because {own}, and says who holds which sample; {anew}.",
        )
    return partition


def check_fonts(name: str, there: object, changed: Mapping[str, Any]) -> None:
    """UsageError where partition `fonts` cannot be had. there: the data say which font a sample has;   changed: wishes
    that a client which gets whole fonts cannot meet, by name, None for none."""
    other = f"set dataset='glyphs', or another partition: {', '.join(RULES)}"
    demand(
        there,
        f"Partition 'fonts' needs samples in fonts, and the data set {name!r} has none; {other}.",
    )
    wishes = " and ".join(wish for wish, value in changed.items() if value is not None)
    demand(
        not wishes,
        f"{wishes} cannot be set with partition 'fonts', whose clients get whole fonts; leave it out.",
    )


def used_samples(dataset: Dataset, partition: str, share: float, seed: int) -> np.ndarray:
    """Sorted indices of the training samples that are used: round(share N) of them at random; of natural clients
    round(share n_k) of each, at least 1."""
    share = number("share", share, 0, 1, open_low=True, hint="1 uses all training samples")
    n = len(dataset.y_train)
    if partition != "natural" or dataset.client_train is None:
        chosen = numpy_rng(seed, "share").permutation(n)[: max(1, round(share * n))]
        return np.sort(chosen)
    parts = []
    for k, rows in enumerate(held(dataset)):
        parts.append(
            numpy_rng(seed, "share", k).permutation(rows)[: max(1, round(share * len(rows)))]
        )
    return np.sort(np.concatenate(parts))


def natural(dataset: Dataset, used: np.ndarray | None) -> Cut:
    """What the data's own clients hold, of the samples `used` alone."""
    shards = held(dataset)
    if used is not None:
        shards = [np.intersect1d(shard, used) for shard in shards]
    names = ", ".join(dataset.client_names[:5]) + (", …" if len(dataset.client_names) > 5 else "")
    note = f"{dataset.about} The {len(shards)} clients are the data set's own: {names}.".strip()
    return Cut(shards, min(map(len, shards)), 0, 1, note)


def held(dataset: Dataset) -> list[np.ndarray]:
    """Sorted indices of the training samples of each of the data set's own clients."""
    owner = np.empty(0, int) if dataset.client_train is None else dataset.client_train.numpy()
    return group(owner + 1, len(dataset.client_names) + 1)[1:]  # without nobody's, which is -1


def with_clients(dataset: Dataset, indices: Any) -> Dataset:
    """The dataset with clients of its own, client k with the training samples of the k-th list of indices, and a digest
    of its own. UsageError unless the lists are disjoint, in range and not empty."""
    import torch

    owner = owners(indices, len(dataset.y_train))
    names = tuple(str(k) for k in range(owner.max() + 1))
    digest = digest_of(dataset.digest, "clients", owner.tobytes())
    owned: dict[str, Any] = {
        "client_train": torch.from_numpy(owner),
        "client_names": names,
        "client_test": None,
    }
    return replace(dataset, **owned, digest=digest)


def client_ids(spurious: Iterable[int], clients: int) -> tuple[int, ...]:
    """The named clients, sorted and without repetition."""
    if isinstance(spurious, int | str) or not isinstance(spurious, Iterable):
        raise UsageError(
            f"spurious is {spurious!r}, but it must be a list of client numbers, such as (0, 1)."
        )
    return tuple(sorted({whole("A client in spurious", k, 0, clients - 1) for k in spurious}))


def members(count: int, absent: Sequence[int], unseen: Sequence[int]) -> tuple[int, ...]:
    """Those of `count` clients that are neither; UsageError for nobody, and for a client that is both."""
    gone = {*absent, *unseen}
    both = (
        f"absent is {list(absent)} and unseen {list(unseen)}, but a client can only be one of both"
    )
    demand(len(gone) == len(absent) + len(unseen), f"{both}; name other clients.")
    demand(len(gone) < count, f"All {count} clients are absent or unseen; leave at least one.")
    return tuple(k for k in range(count) if k not in gone)


def client_list(what: str, clients: Any, count: int, names: Sequence[str] = ()) -> tuple[int, ...]:
    """The clients, of `count`, that the setting `what` names. 2 or "2": the last two; (0, 3), "0,3", "A,D", "3," or
    "oslo": these, by number, letter, or one of the data's own `names`.

    >>> client_list("absent", 2, 10), client_list("absent", "3,", 10)
    ((8, 9), (3,))
    >>> client_list("unseen", "A,oslo", 2, ("rome", "oslo"))
    (0, 1)
    """
    hint = "give how many clients, or a list of numbers from 0, letters or names, such as 0,3"
    if isinstance(clients, str):
        listed, alone = (
            [part.strip() for part in clients.split(",")],
            parsed(clients.strip() or "0"),
        )
        clients = listed if len(listed) > 1 or isinstance(alone, str) else alone
    if not isinstance(clients, Iterable):
        return tuple(range(count - whole(what, clients, 0, count, hint=hint), count))
    known = {letter(k): k for k in range(count)} | {name: k for k, name in enumerate(names)}
    numbers = [known.get(part, parsed(part)) for part in clients if part != ""]
    return tuple(
        sorted({whole(f"A client in {what}", k, 0, count - 1, hint=hint) for k in numbers})
    )


def client_text(clients: Iterable[int]) -> str:
    """The one form of such a list as a setting: "3," or "0,3,"; "" for nobody."""
    return "".join(f"{k}," for k in clients)


def marked_images(
    dataset: Dataset, indices: torch.Tensor, cue: str, strength: float, seed: int
) -> Dataset:
    """The dataset with the cue of their labels on these training images, and a digest of its own."""
    x = dataset.x_train.clone()
    y = dataset.y_train
    drawn: dict[str, Any] = {} if cue == "tint" else {"generator": generator(seed, "cue", cue)}
    x[indices] = CUES[cue](x[indices], y[indices], strength, classes=dataset.classes, **drawn)
    kind = ["tint", TINT_VERSION] if cue == "tint" else [cue, seed]
    digest = digest_of(dataset.digest, *kind, float(strength), np.sort(indices.numpy()).tobytes())
    note = NOTES[cue].format(count=len(indices), strength=strength)
    return replace(dataset, x_train=x, digest=digest, note=f"{dataset.note} {note}".strip())


# ------------------------------------------------------------------------------------------- what a person gives
def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with `dataset` as text; a Federation's shards make a dataset that names its clients. Of a list of
    datasets each becomes text. Raises UsageError.
    """
    values = dict(settings)
    if "federation" in values:
        values = with_federation(values)
    source: Any = values.get("dataset", "digits")
    if isinstance(source, Federation):
        beside = " and ".join(
            name for name in (*DEALING, "share") if settings.get(name) is not None
        )
        demand(
            not beside,
            f"A federation already has its clients, so {beside} cannot be given with it; leave it out.",
        )
        values.setdefault("seed", source.seed)
        for what, ids in (("absent", source.absent), ("unseen", source.unseen)):
            values.update({what: client_text(ids)} if ids else {})
        source = with_clients(source.dataset, (source.whole or source).shards)
    if isinstance(source, list | tuple):
        return {**values, "dataset": [text(each) for each in source]}
    return {**values, "dataset": text(source)} if "dataset" in values else values


def with_federation(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with those of its `federation` in its place; the seed is that of the federation unless it is given.
    UsageError for a setting beside it that says something else."""
    values = dict(settings)
    federation = values.pop("federation")
    if federation is None:
        return values
    if not isinstance(federation, Federation):
        raise UsageError(
            f"federation is a {type(federation).__name__}, but it must be what fl.federate returns; "
            f"a data set is given as dataset=."
        )
    made = federation.settings()
    values.setdefault("seed", made.pop("seed"))
    for name in (*FEDERATION_SETTINGS, *made):
        given = values.get(name)
        if given is None:
            continue
        if name == "dataset" and not isinstance(given, list | tuple):
            given = text(given)
        if name not in made or parsed(given) != parsed(made[name]):
            there = f"has {name}={made[name]!r}" if name in made else f"is dealt out without {name}"
            raise UsageError(
                f"{name}={given!r} contradicts the federation, which {there}; leave it out."
            )
    return values | {
        name: value for name, value in made.items() if value != FEDERATION_SETTINGS.get(name)
    }


def text(source: Any) -> str:
    """The name or path of a data set, however it is given; one in memory is added to the names."""
    if isinstance(source, str | PathLike):
        return fspath(source)
    return registry.name_of(registry.loaded(source))
