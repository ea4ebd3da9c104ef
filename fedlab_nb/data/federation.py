"""A Federation: a dataset, and the client that holds each of its training samples. It is immutable
and copies no image.

How samples are dealt out to clients, and how skewed the result is, is in `partition.py`.
`replace_objects_by_names_in_settings` turns the data that a user gives into settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedlab_nb.data import registry
from fedlab_nb.data.array_types import IndexArray
from fedlab_nb.data.arrays import convert_index_lists_to_client_of_sample
from fedlab_nb.data.cues import CUE_NOTES, CUES, TINT_VERSION, Cue
from fedlab_nb.data.dataset import Dataset, hash_parts_to_short_id
from fedlab_nb.data.edits import (
    NO_EDITS,
    PartitionEdit,
    PartitionEdits,
    format_client_letters,
    strip_and_check_client_name,
)
from fedlab_nb.data.input_types import (
    ClientIndices,
    ClientListOrCountOfLast,
    DatasetSource,
    SampleIndexListPerClient,
)
from fedlab_nb.data.partition import (
    ALPHA_HINT,
    PARTITIONS,
    RULES,
    Partition,
    PartitionName,
    Skew,
    WayToReachMinimum,
    group_indices_by_client,
    measure_skew,
    partition_by_fonts,
    partition_samples,
)
from fedlab_nb.errors import (
    UsageError,
    check_allowed_name,
    check_number,
    check_whole_number,
    parse_if_number,
)
from fedlab_nb.rng import make_numpy_generator, make_torch_generator
from fedlab_nb.torch_switches import use_default_torch_switches
from fedlab_nb.value_types import SettingsByName, SettingValue

if TYPE_CHECKING:
    import torch

    from fedlab_nb.tensor_types import ClientClassCounts, SampleIndices, ValuePerClient


USUAL_CLIENTS = 10
USUAL_ALPHA = 0.1
SHOWN_NAMES = 5  # names of the data's own clients that a note lists

# Settings of a federation, each with the value that means the same as leaving it out.
FEDERATION_SETTINGS: Mapping[str, SettingValue] = {
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


class ClientSplit(NamedTuple):
    """Sorted indices of a client's samples: those for training, and those that it holds out."""

    train: torch.Tensor
    held_out: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Federation:
    """M clients' private shards of one training set.

    shards: M sorted int64 tensors, disjoint, each of at least `minimum` samples; a cover of 0..N-1,
        unless `share` is below 1 or the data give some samples to nobody
    alpha: Dirichlet concentration; smaller is more skewed
    partition: one of PARTITIONS, or "own" where a person has changed it by hand; with doubles the
        shards are not disjoint, and where a client was emptied they are no cover
    edits: those changes, in order (see `edits.py`); `move`, `double` and `rename` give a Federation
        with one more
    moved: samples moved after the draw to keep the promised minimum
    draws: 1, or more with repair="redraw"
    spurious: clients whose images carry the `cue`, a tint or a small shape (see `cues.py`), of
        strength `tint`
    note: what a reader should know about this partition; "" where there is nothing
    absent, unseen: clients that were taken out of the federation `whole`, by their numbers there.
        Absent ones get the initial model, train, and are never heard of again; unseen ones have no
        part at all, and their samples are one more test set. `ids`: the numbers of those that are
        left
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
    edits: PartitionEdits = NO_EDITS
    origin: Mapping[str, SettingValue] = field(default_factory=dict)

    @property
    def ids(self) -> ClientIndices:
        return list_present_clients(
            self._federation_before_leaving_out.clients, self.absent, self.unseen
        )

    @property
    def _federation_before_leaving_out(self) -> Federation:
        """The federation before clients were taken out."""
        if self.whole is None:
            return self
        return self.whole

    def leave_out(self, absent: Sequence[int], unseen: Sequence[int]) -> Federation:
        """Make the federation without the absent and the unseen clients."""
        present_clients = list_present_clients(self.clients, absent, unseen)
        notes = [self.note]
        if absent:
            count = f"{len(absent)} of {self.clients} clients"
            notes.append(f"Absent (trained, sent nothing): {count}.")
        if unseen:
            count = f"{len(unseen)} of {self.clients} clients"
            notes.append(f"Unseen (a test set of its own): {count}.")
        return replace(
            self,
            shards=tuple(self.shards[k] for k in present_clients),
            spurious=tuple(index for index, k in enumerate(present_clients) if k in self.spurious),
            note=" ".join(notes).strip(),
            whole=self,
            absent=tuple(absent),
            unseen=tuple(unseen),
        )

    @property
    def clients(self) -> int:
        return len(self.shards)

    @property
    def classes(self) -> int:
        return self.dataset.classes

    @cached_property
    def sizes(self) -> ValuePerClient:
        """Samples per client, int64 [M]."""
        import torch

        return torch.tensor([len(shard) for shard in self.shards])

    @cached_property
    def label_counts(self) -> ClientClassCounts:
        """Samples per client and class, int64 [M, C]."""
        import torch

        # In NumPy, since a slider waits for this: on a busy machine PyTorch's threads would wait for
        # each other.
        labels = self.dataset.y_train.numpy()
        rows = [np.bincount(labels[shard.numpy()], minlength=self.classes) for shard in self.shards]
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    @cached_property
    def skew(self) -> Skew:
        return measure_skew(self.label_counts.numpy())

    def split(self, fraction: float) -> tuple[ClientSplit, ...]:
        """Split the shard of each client into training and held-out samples.

        Client k holds out round(fraction n_k) samples, at least 1 and at most n_k - 1, drawn from
        its own stream; none if it has fewer than 2 or the fraction is 0.
        """
        import torch

        fraction = check_number("fraction", fraction, 0, 1)
        parts = []
        for k, shard in zip(self.ids, self.shards, strict=True):
            size = len(shard)
            if size < 2 or fraction == 0:
                count = 0
            else:
                count = min(size - 1, max(1, round(fraction * size)))
            order = torch.from_numpy(
                make_numpy_generator(self.seed, "holdout", k).permutation(size)
            )
            held_out = shard[order[:count].sort().values]
            training = shard[order[count:].sort().values]
            parts.append(ClientSplit(training, held_out))
        return tuple(parts)

    def move(
        self, client: int | str, to: int | str | None, *, label: int | str | None = None
    ) -> Federation:
        """Move samples of one client to another. Returns a new Federation; this one is unchanged.

        client: a letter, a name, or a number, counted as if nobody were absent
        to: likewise; None: nobody gets the samples
        label: the class of the samples, by its index or its name; None: all classes

        The client's last sample stays, because every client of a run needs one. Raises UsageError
        for a client or a class that is not there, and where both clients are the same.

        >>> before = federate("digits", seed=4)
        >>> after = before.move("A", "B", label=3)
        >>> gained = int(after.label_counts[1, 3] - before.label_counts[1, 3])
        >>> gained == int(before.label_counts[0, 3]), str(after.edits)
        (True, '4: A3>B')
        """
        giver = self.find_client_number(client)
        receiver = None if to is None else self.find_client_number(to)
        if giver == receiver:
            raise UsageError(
                f"Client {format_client_letters(giver)} cannot give samples to itself; name another client."
            )
        label_index = None if label is None else self.find_label_index(label)
        return self._copy_with_edit(PartitionEdit(giver, label_index, receiver))

    def double(self, client: int | str) -> Federation:
        """Add a client after all others that holds the same samples as `client`. Returns a new
        Federation."""
        return self._copy_with_edit(PartitionEdit(self.find_client_number(client), is_double=True))

    def rename(self, client: int | str, name: str) -> Federation:
        """Name a client; plots and sentences show the name beside its letter. Returns a new
        Federation."""
        return self._copy_with_edit(
            PartitionEdit(
                self.find_client_number(client),
                name=strip_and_check_client_name(name),
            )
        )

    def _copy_with_edit(self, edit: PartitionEdit) -> Federation:
        """Deal this federation out again with one more edit. Raises UsageError if `federate` did not
        make it."""
        if not self.origin:
            raise UsageError(
                "This Federation was put together by hand, so that it cannot be dealt out again "
                "with a change; make it with fl.federate."
            )
        edits = replace(self.edits, changes=(*self.edits.changes, edit)).copy_with_seed_if_missing(
            self.seed
        )
        return federate(**{**self.origin, "moves": edits})

    def find_client_number(self, client: int | str) -> int:
        """Find the index of a client, counted as if nobody were absent, from its letter, name or
        number."""
        count = self._federation_before_leaving_out.clients
        if not isinstance(client, str):
            return int(check_whole_number("client", client, 0, count - 1))
        numbers = {format_client_letters(k): k for k in range(count)}
        if self.origin.get("partition") == "natural":
            for k, name in enumerate(self.dataset.client_names):
                numbers[name] = k
        for k, name in self.edits.client_names.items():
            numbers[name] = k
        return numbers[check_allowed_name("client", client, numbers)]

    def find_label_index(self, label: int | str) -> int:
        """Find the index of a class, from its name or its index."""
        if isinstance(label, str):
            return self.dataset.class_names.index(
                check_allowed_name("class", label, self.dataset.class_names)
            )
        return int(check_whole_number("label", label, 0, self.classes - 1))

    def settings(self) -> SettingsByName:
        """The settings of a run that give all its seeds this one federation.

        For a federation that `federate` did not make, they name a new data set whose clients hold its
        shards.
        """
        if not self.is_made_by_federate():
            dataset = copy_dataset_with_clients_of_index_lists(
                self.dataset, self._federation_before_leaving_out.shards
            )
            return {
                "dataset": get_or_register_source_name(dataset),
                "partition": "natural",
                "seed": self.seed,
                "absent": format_client_list_as_setting(self.absent),
                "unseen": format_client_list_as_setting(self.unseen),
            }
        partition_seed = self.seed if self.edits.seed is None else self.edits.seed
        settings = dict(self.origin)
        settings["moves"] = str(replace(self.edits, seed=partition_seed))
        settings["dataset"] = get_or_register_source_name(settings["dataset"])
        settings["minimum"] = settings["minimum"] or 0
        settings["spurious"] = ",".join(map(str, self.spurious_clients))
        settings["absent"] = format_client_list_as_setting(self.absent)
        settings["unseen"] = format_client_list_as_setting(self.unseen)
        return settings

    def is_made_by_federate(self) -> bool:
        """Whether `federate` would give the same federation again; not if samples were replaced since."""
        if not self.origin:
            return False
        import torch

        again = federate(**{**self.origin, "moves": self.edits})
        if again.clients != self.clients or again.dataset.digest != self.dataset.digest:
            return False
        pairs = zip(again.shards, self.shards, strict=True)
        return all(torch.equal(shard, own_shard) for shard, own_shard in pairs)

    @property
    def spurious_clients(self) -> ClientIndices:
        """The clients whose images carry the cue, counted as if nobody were absent."""
        return self._federation_before_leaving_out.spurious

    def __repr__(self) -> str:
        alpha = "" if self.partition == "natural" else f" alpha={self.alpha:g},"
        smallest = int(self.sizes.min())
        largest = int(self.sizes.max())
        return (
            f"Federation({self.dataset.name!r}, {self.clients} clients, {self.partition},{alpha} "
            f"seed={self.seed}, sizes {smallest}..{largest}, moved {self.moved})"
        )


@use_default_torch_switches()
def federate(
    dataset: DatasetSource,
    *,
    alpha: float | None = None,
    clients: int | None = None,
    seed: int = 0,
    partition: PartitionName | None = None,
    classes_per_client: int = 2,
    size_sigma: float = 0.0,
    share: float = 1.0,
    minimum: int | None = None,
    repair: WayToReachMinimum = "move",
    indices: SampleIndexListPerClient | None = None,
    moves: str | PartitionEdits = "",
    spurious: Iterable[int] = (),
    cue: Cue = "tint",
    tint: float = 0.8,
    absent: ClientListOrCountOfLast = (),
    unseen: ClientListOrCountOfLast = (),
) -> Federation:
    """Divide the training samples of `dataset` among `clients`. The same arguments give the same
    Federation.

    dataset:   a name, a path, a Dataset, or arrays (see `load`)
    partition: one of PARTITIONS. The default is `natural` if the data set names its clients, else
               `dirichlet`
    alpha:     how even the partition is, by default 0.1. Smaller is more skewed. `classes`, `iid`,
               `fonts`, `natural` ignore it
    clients:   M, by default 10, or as many as the data set names
    classes_per_client: used only by `classes`
    size_sigma: makes client sizes lognormal, with `dirichlet` and `client_dirichlet`: standard
                deviation of log n_k
    share:     part of the training samples that is used, drawn at random (from each natural client)
    minimum:   samples that every client gets at least; by default 10, or half the mean size if that
               is less
    repair:    how clients get the minimum. "move": one draw, then a few samples are moved. This
               always works. "redraw": draw again, as the papers do
    indices:   your own partition: M lists of sample indices. None may be empty, and no index may be
               in two of them
    moves:     changes by hand as a short text, such as "A3>B, C*" (see `edits.py`). In a program
               `federate(…).move("A", "B", label=3).double("C")` says the same
    spurious:  clients whose training images get a cue that shows the label, of strength `tint`. It
               is the colour of the background (cue="tint") or a small figure (cue="shape"). The
               Federation then has a changed copy of the dataset, with the same test and public
               images
    absent, unseen: clients that are taken out (see `Federation`): how many, which are then the last
               ones, or a list of numbers, letters or names, as `parse_client_indices` reads them

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
    dataset = registry.load(dataset)
    seed = check_whole_number("seed", seed)
    if indices is not None:
        dataset = copy_dataset_with_clients_of_index_lists(dataset, indices)
        source = None
    changed_rule = {
        "minimum": minimum,
        "repair": None if repair == "move" else repair,
        "size_sigma": size_sigma or None,
    }
    partition = choose_partition_and_check_settings(
        partition,
        dataset.name,
        len(dataset.client_names),
        {"alpha": alpha, "clients": clients, **changed_rule},
    )
    if alpha is None:
        alpha = USUAL_ALPHA
    alpha = check_number("alpha", alpha, 0, excludes_low=True, hint=ALPHA_HINT)
    if clients is None:
        clients = USUAL_CLIENTS
    edits = moves if isinstance(moves, PartitionEdits) else PartitionEdits.parse(moves)
    partition_seed = seed if edits.seed is None else edits.seed

    used = None
    if share != 1:
        used = draw_used_sample_indices(dataset, partition, share, partition_seed)
    if partition == "fonts":
        check_font_partition_settings(dataset.name, dataset.font_train is not None, changed_rule)
    rule = {
        "alpha": alpha,
        "classes_per_client": classes_per_client,
        "size_sigma": size_sigma,
        "minimum": minimum,
        "repair": repair,
    }
    result = partition_dataset(dataset, partition, clients, used, partition_seed, rule)

    origin: SettingsByName = {
        "dataset": dataset if source is None else source,
        "seed": seed,
        "classes_per_client": classes_per_client,
        "size_sigma": size_sigma,
        "share": share,
        "minimum": minimum,
        "repair": repair,
        "cue": cue,
        "tint": tint,
        "partition": partition,
    }
    client_names: tuple[str, ...] = ()
    if partition == "natural":
        client_names = dataset.client_names
    else:
        origin["alpha"] = alpha
        origin["clients"] = clients
    edits.check_and_count_resulting_clients(len(result.shards), dataset.classes)
    if edits.edits_that_move_or_double:
        result = apply_edits_to_partition(edits, result, dataset, partition_seed)
    shards = tuple(torch.from_numpy(shard) for shard in result.shards)
    marked_clients = sort_and_check_spurious_clients(spurious, len(shards))
    absent = parse_client_indices("absent", absent, len(shards), client_names)
    unseen = parse_client_indices("unseen", unseen, len(shards), client_names)
    origin["spurious"] = marked_clients
    origin["absent"] = absent
    origin["unseen"] = unseen
    check_allowed_name("cue", cue, CUES)
    if marked_clients:
        marked_samples = torch.cat([shards[k] for k in marked_clients])
        dataset = copy_dataset_with_cue(dataset, marked_samples, cue, tint, seed)
    everybody = Federation(
        dataset=dataset,
        shards=shards,
        partition="own" if edits.edits_that_move_or_double else partition,
        alpha=alpha,
        seed=seed,
        minimum=result.minimum,
        moved=result.moved,
        draws=result.draws,
        note=result.note,
        classes_per_client=int(classes_per_client),
        spurious=marked_clients,
        tint=float(tint) if marked_clients else 0.0,
        size_sigma=float(size_sigma),
        share=float(share),
        cue=cue,
        edits=edits,
        origin=origin,
    )
    if absent or unseen:
        return everybody.leave_out(absent, unseen)
    return everybody


# -------------------------------------------------------------------------------- which partition
def choose_partition_and_check_settings(
    chosen_partition_or_none: PartitionName | None,
    dataset_name: str,
    named_client_count: int,
    other_settings_or_none: Mapping[str, SettingValue],
) -> PartitionName:
    """Choose the partition: `chosen_partition_or_none`, else `natural` where the data set
    `dataset_name` names its clients, else `dirichlet`.

    named_client_count: how many clients the data set names, 0 for none
    other_settings_or_none: other settings of a federation by name, None for one that was not given

    Raises UsageError for an unknown partition, and for settings that natural clients cannot have.
    """
    if chosen_partition_or_none is not None:
        check_allowed_name("partition", chosen_partition_or_none, PARTITIONS)
        partition = chosen_partition_or_none
    elif named_client_count:
        partition = "natural"
    else:
        partition = "dirichlet"
    if partition == "natural":
        # alpha beside a `natural` that was asked for is as unused as beside `iid`
        ignored = ("clients",) if chosen_partition_or_none is None else ("clients", "alpha")
        check_natural_partition_settings(
            dataset_name, named_client_count, other_settings_or_none, ignored
        )
    return partition


def check_natural_partition_settings(
    dataset_name: str,
    named_client_count: int,
    other_settings_or_none: Mapping[str, SettingValue],
    ignored_setting_names: Sequence[str],
) -> None:
    """Raise UsageError if partition `natural` is impossible for the data, or with these settings.

    ignored_setting_names: settings whose values mean the same as leaving them out
    """
    if not named_client_count:
        raise UsageError(
            f"The data set {dataset_name!r} does not name its clients, so partition 'natural' has none; "
            "give indices or arrays with client_train, or choose another partition: "
            f"{', '.join(RULES)}."
        )
    reason = f"data set {dataset_name!r} has {named_client_count} clients of its own"
    advice = "leave that out, or set partition='dirichlet' to divide the samples anew"
    clients = other_settings_or_none.get("clients")
    if clients not in (None, named_client_count):
        raise UsageError(f"clients is {clients}, but {reason}; {advice}.")
    useless = [
        key
        for key, value in other_settings_or_none.items()
        if value is not None and key not in ignored_setting_names
    ]
    if useless:
        raise UsageError(
            f"{' and '.join(useless)} cannot be set, because {reason}, and says who holds which "
            f"sample; {advice}."
        )


def check_font_partition_settings(
    dataset_name: str, data_has_fonts: bool, other_settings_or_none: Mapping[str, SettingValue]
) -> None:
    """Raise UsageError if partition `fonts` is impossible for the data, or with these settings.

    data_has_fonts: whether the data set `dataset_name` gives the font of each sample
    other_settings_or_none: settings, by name, that have no use if clients get whole fonts; None for one
        that was not given
    """
    if not data_has_fonts:
        raise UsageError(
            f"Partition 'fonts' needs samples in fonts, and the data set {dataset_name!r} has none; set "
            f"dataset='glyphs', or another partition: {', '.join(RULES)}."
        )
    useless = [key for key, value in other_settings_or_none.items() if value is not None]
    if useless:
        raise UsageError(
            f"{' and '.join(useless)} cannot be set with partition 'fonts', whose clients get "
            "whole fonts; leave it out."
        )


# ------------------------------------------------------------------------ which client holds what
def partition_dataset(
    dataset: Dataset,
    partition: PartitionName,
    client_count: int,
    used_indices_or_none_for_all: IndexArray | None,
    seed: int,
    rule_settings: Mapping[str, SettingValue],
) -> Partition:
    """Deal the samples `used_indices_or_none_for_all` out to clients.

    rule_settings: the settings of RULES, as `partition_samples` takes them
    """
    if partition == "natural":
        return partition_by_named_clients(dataset, used_indices_or_none_for_all)
    rng = make_numpy_generator(seed, "partition")
    if partition == "fonts":
        return partition_used_samples_by_fonts(
            dataset, used_indices_or_none_for_all, client_count, rng
        )
    labels = dataset.y_train.numpy()
    if used_indices_or_none_for_all is not None:
        labels = labels[used_indices_or_none_for_all]
    dealt = partition_samples(
        labels, dataset.classes, client_count, rng, partition=partition, **rule_settings
    )
    if used_indices_or_none_for_all is None:
        return dealt
    return replace(dealt, shards=[used_indices_or_none_for_all[shard] for shard in dealt.shards])


def draw_used_sample_indices(
    dataset: Dataset, partition: PartitionName, share_0_to_1: float, seed: int
) -> IndexArray:
    """Draw the sorted indices of the training samples that are used: round(share N) of them at
    random.

    With natural clients it is round(share n_k) of each client, at least 1.
    """
    share_0_to_1 = check_number(
        "share", share_0_to_1, 0, 1, excludes_low=True, hint="1 uses all training samples"
    )
    if partition != "natural" or dataset.client_train is None:
        samples = len(dataset.y_train)
        count = max(1, round(share_0_to_1 * samples))
        return np.sort(make_numpy_generator(seed, "share").permutation(samples)[:count])
    parts = []
    for k, samples_of_client in enumerate(list_sample_indices_of_named_clients(dataset)):
        count = max(1, round(share_0_to_1 * len(samples_of_client)))
        parts.append(make_numpy_generator(seed, "share", k).permutation(samples_of_client)[:count])
    return np.sort(np.concatenate(parts))


def partition_by_named_clients(
    dataset: Dataset, used_indices_or_none_for_all: IndexArray | None
) -> Partition:
    """Give the samples `used_indices_or_none_for_all` to the data's own clients."""
    shards = list_sample_indices_of_named_clients(dataset)
    if used_indices_or_none_for_all is not None:
        shards = [np.intersect1d(shard, used_indices_or_none_for_all) for shard in shards]
    names = ", ".join(dataset.client_names[:SHOWN_NAMES])
    if len(dataset.client_names) > SHOWN_NAMES:
        names += ", …"
    note = f"{dataset.about} The {len(shards)} clients are the data set's own: {names}."
    return Partition(
        shards=shards,
        minimum=min(len(shard) for shard in shards),
        moved=0,
        draws=1,
        note=note.strip(),
    )


def list_sample_indices_of_named_clients(dataset: Dataset) -> list[IndexArray]:
    """List the sorted indices of the training samples of each of the data set's own clients."""
    if dataset.client_train is None:
        owner = np.empty(0, int)
    else:
        owner = dataset.client_train.numpy()
    # + 1, since the samples of nobody have the client -1; their count comes first and is left out
    return group_indices_by_client(owner + 1, len(dataset.client_names) + 1)[1:]


def partition_used_samples_by_fonts(
    dataset: Dataset,
    used_indices_or_none_for_all: IndexArray | None,
    client_count: int,
    rng: np.random.Generator,
) -> Partition:
    """Give each client whole fonts, of the samples `used_indices_or_none_for_all`."""
    assert dataset.font_train is not None
    fonts = dataset.font_train.numpy()
    if used_indices_or_none_for_all is not None:
        is_used = np.isin(np.arange(len(fonts)), used_indices_or_none_for_all)
        fonts = np.where(is_used, fonts, -1)
    return partition_by_fonts(fonts, client_count, rng)


def apply_edits_to_partition(
    edits: PartitionEdits, partition: Partition, dataset: Dataset, partition_seed: int
) -> Partition:
    """Apply the edits to the partition that `partition_seed` deals out."""
    shards = edits.apply_to_shards(partition.shards, dataset.y_train.numpy())
    count = len(edits.edits_that_move_or_double)
    note = (
        f"{partition.note} Moves by hand on what seed {partition_seed} deals out: {count}.".strip()
    )
    return replace(partition, shards=shards, minimum=1, note=note)


def copy_dataset_with_clients_of_index_lists(
    dataset: Dataset, index_lists: SampleIndexListPerClient
) -> Dataset:
    """Copy the dataset with named clients: client k has the training samples of the k-th list of
    indices.

    It gets a digest of its own. Raises UsageError unless the lists are disjoint, in range and not
    empty.
    """
    import torch

    owner = convert_index_lists_to_client_of_sample(index_lists, len(dataset.y_train))
    return replace(
        dataset,
        client_train=torch.from_numpy(owner),
        client_names=tuple(str(k) for k in range(owner.max() + 1)),
        client_test=None,
        digest=hash_parts_to_short_id(dataset.digest, "clients", owner.tobytes()),
    )


def copy_dataset_with_cue(
    dataset: Dataset, sample_indices: SampleIndices, cue: Cue, cue_strength_0_to_1: float, seed: int
) -> Dataset:
    """Copy the dataset with a cue of the label on these training images, and with a digest of its
    own."""
    x = dataset.x_train.clone()
    y = dataset.y_train
    if cue == "tint":
        options: dict[str, Any] = {}  # the tint draws nothing at random
        version: tuple[object, ...] = ("tint", TINT_VERSION)
    else:
        options = {"generator": make_torch_generator(seed, "cue", cue)}
        version = (cue, seed)
    x[sample_indices] = CUES[cue](
        x[sample_indices],
        y[sample_indices],
        cue_strength_0_to_1,
        class_count=dataset.classes,
        **options,
    )
    sorted_indices = np.sort(sample_indices.numpy())
    digest = hash_parts_to_short_id(
        dataset.digest, *version, float(cue_strength_0_to_1), sorted_indices.tobytes()
    )
    note = CUE_NOTES[cue].format(count=len(sample_indices), strength=cue_strength_0_to_1)
    return replace(dataset, x_train=x, digest=digest, note=f"{dataset.note} {note}".strip())


# ------------------------------------------------------------------------------- lists of clients
def sort_and_check_spurious_clients(
    spurious_clients: Iterable[int], client_count: int
) -> ClientIndices:
    """Return the clients with a spurious cue, sorted and without repetition."""
    if isinstance(spurious_clients, int | str) or not isinstance(spurious_clients, Iterable):
        raise UsageError(
            f"spurious is {spurious_clients!r}, but it must be a list of client numbers, such as (0, 1)."
        )
    return tuple(
        sorted(
            {
                check_whole_number("A client in spurious", k, 0, client_count - 1)
                for k in spurious_clients
            }
        )
    )


def list_present_clients(
    client_count: int, absent_clients: Sequence[int], unseen_clients: Sequence[int]
) -> ClientIndices:
    """List those of `client_count` clients that are neither absent nor unseen. Raises UsageError if
    there are none, and for a client that is both."""
    missing = {*absent_clients, *unseen_clients}
    if len(missing) < len(absent_clients) + len(unseen_clients):
        raise UsageError(
            f"absent is {list(absent_clients)} and unseen {list(unseen_clients)}, but a client can only be one of "
            "both; name other clients."
        )
    if len(missing) >= client_count:
        raise UsageError(f"All {client_count} clients are absent or unseen; leave at least one.")
    return tuple(k for k in range(client_count) if k not in missing)


def parse_client_indices(
    setting_name_in_errors: str,
    list_or_count_of_last_clients: ClientListOrCountOfLast,
    client_count: int,
    client_names: Sequence[str] = (),
) -> ClientIndices:
    """Find which of `client_count` clients a setting names; sorted.

    list_or_count_of_last_clients: a count, 2 or "2", for the last clients; or a list of numbers, letters or names:
        (0, 3), "0,3", "A,D", "3," (the comma makes one number a list) or "oslo"
    client_names: the clients' names if the data name them

    >>> parse_client_indices("absent", 2, 10), parse_client_indices("absent", "3,", 10)
    ((8, 9), (3,))
    >>> parse_client_indices("unseen", "A,oslo", 2, ("rome", "oslo"))
    (0, 1)
    """
    hint = "give how many clients, or a list of numbers from 0, letters or names, such as 0,3"
    clients: Iterable[int | str] | float
    if isinstance(list_or_count_of_last_clients, str):
        clients = split_client_list_or_parse_count(list_or_count_of_last_clients)
    else:
        clients = list_or_count_of_last_clients
    if not isinstance(clients, Iterable):
        removed = check_whole_number(setting_name_in_errors, clients, 0, client_count, hint=hint)
        return tuple(range(client_count - removed, client_count))
    number_of_name = {format_client_letters(k): k for k in range(client_count)}
    for k, name in enumerate(client_names):
        number_of_name[name] = k
    numbers = set()
    for client in clients:
        if client != "":
            value = number_of_name[client] if client in number_of_name else parse_if_number(client)
            numbers.add(
                check_whole_number(
                    f"A client in {setting_name_in_errors}", value, 0, client_count - 1, hint=hint
                )
            )
    return tuple(sorted(numbers))


def split_client_list_or_parse_count(text: str) -> list[str] | float:
    """Split a text into the clients that it lists, or parse it as their count.

    A text with a comma is a list, and so is one that is not a number; "" is 0.
    """
    if "," in text:
        return [part.strip() for part in text.split(",")]
    value: Any = parse_if_number(text.strip() or "0")
    return [value] if isinstance(value, str) else value


def format_client_list_as_setting(client_indices: Iterable[int]) -> str:
    """Write a list of clients as the value of a setting: "3," or "0,3,"; "" for no clients."""
    return "".join(f"{k}," for k in client_indices)


# ------------------------------------------------------------------------------- what a user gives
def replace_objects_by_names_in_settings(
    settings: Mapping[str, SettingValue],
) -> SettingsByName:
    """Replace the objects in `settings` by plain values: `dataset` by its name, `federation` by the
    settings that make it.

    In a list of data sets each is replaced by its name. A data set in memory is registered. Raises
    UsageError.
    """
    values = dict(settings)
    if "federation" in values:
        values = replace_federation_by_its_settings(values)
    if "dataset" not in values:
        return values
    source = values["dataset"]
    if isinstance(source, list | tuple):
        values["dataset"] = [get_or_register_source_name(dataset) for dataset in source]
    else:
        values["dataset"] = get_or_register_source_name(source)
    return values


def replace_federation_by_its_settings(settings: Mapping[str, SettingValue]) -> SettingsByName:
    """Replace `federation` in `settings` by the settings that make it.

    The seed is that of the federation unless another one is given. UsageError if any other setting
    contradicts the federation.
    """
    values = dict(settings)
    federation = values.pop("federation")
    if federation is None:
        return values
    if not isinstance(federation, Federation):
        raise UsageError(
            f"federation is a {type(federation).__name__}, but it must be what fl.federate "
            "returns; a data set is given as dataset=."
        )
    expected = federation.settings()
    values.setdefault("seed", expected.pop("seed"))
    for name in (*FEDERATION_SETTINGS, *expected):
        given_value = values.get(name)
        if given_value is None:
            continue
        if name == "dataset" and not isinstance(given_value, list | tuple):
            given_value = get_or_register_source_name(given_value)
        if name not in expected:
            reason = f"is dealt out without {name}"
        elif parse_if_number(given_value) != parse_if_number(expected[name]):
            reason = f"has {name}={expected[name]!r}"
        else:
            continue
        raise UsageError(
            f"{name}={given_value!r} contradicts the federation, which {reason}; leave it out."
        )
    for name, value in expected.items():
        if value != FEDERATION_SETTINGS.get(name):
            values[name] = value
    return values


def get_or_register_source_name(source: DatasetSource) -> str:
    """Return the name or path of a data set. One that is only in memory is registered under a name
    first.

    UsageError for a Federation, which has a setting of its own.
    """
    if isinstance(source, Federation):
        raise UsageError(
            "dataset is a Federation, but a data set is asked for; write federation= instead, as in "
            'fl.run("fens", federation=federation).'
        )
    if isinstance(source, str | PathLike):
        return fspath(source)
    return registry.get_or_register_dataset_name(registry.load(source))
