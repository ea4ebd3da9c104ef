"""Change a federation by hand: move samples between clients, add and remove clients, rename them.

    dealt = federate("digits", seed=0)
    dealt.move("A", "B", label=3).move("C", None).double("D").rename("E", "north")
    "0: A3>B, C>, D*, E=north"    # the same as a short text, for command line, links, saved runs

The edits are applied one after the other to the clients that seed 0 deals out:

- A's samples of class 3 go to B (classes are counted from 0);
- C's samples go to nobody;
- D gets a double: a new client, after all others, that holds the same samples;
- E is shown as "north".

All seeds of a run use this one federation. Without "0: " it starts from the clients that the run's
first seed deals out.

Every client of a run needs a sample, so a client's last sample is never moved. No client holds a
sample twice. Without doubles, and without samples that go to nobody, each sample has exactly one
client.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from fedlab_nb.data.array_types import IndexArray, LabelArray
from fedlab_nb.errors import UsageError

NameByClientIndex = dict[int, str]

FORM = re.compile(
    r"(?P<client>[A-Z]{1,2})"
    r"(?:(?P<label>\d*)>(?P<to>[A-Z]{0,2})|(?P<double>\*)|=(?P<name>.+))"
)
HINT = (
    "write moves such as 'A3>B' (A's class 3 to B), 'A>B', 'A>' (to nobody), 'A*' (a double) or "
    "'A=north' (a name)"
)


def format_client_letters(client_index: int) -> str:
    """Name a client by letters on screen: 0 -> 'A', 25 -> 'Z', 26 -> 'AA'. Digits stand for
    classes."""
    high, low = divmod(client_index, 26)
    last_letter = chr(ord("A") + low)
    if high == 0:
        return last_letter
    return format_client_letters(high - 1) + last_letter


def parse_client_letters_to_index(letters: str) -> int:
    """Find the number of the client with these letters.

    >>> [parse_client_letters_to_index(format_client_letters(k)) for k in (0, 25, 26, 53)]
    [0, 25, 26, 53]
    """
    number = 0
    for character in letters:
        number = 26 * number + ord(character) - ord("A") + 1
    return number - 1


@dataclass(frozen=True)
class PartitionEdit:
    """One change of a client. Client numbers count absent clients too.

    label: the class whose samples move; None: all classes
    to: the client that gets the samples; None: nobody
    is_double: whether the client gets a double; then no samples move
    name: the client's new name; then no samples move
    """

    client: int
    label: int | None = None
    to: int | None = None
    is_double: bool = False
    name: str = ""

    def __str__(self) -> str:
        client_letters = format_client_letters(self.client)
        if self.is_double:
            return f"{client_letters}*"
        if self.name:
            return f"{client_letters}={self.name}"
        label = "" if self.label is None else self.label
        receiver = "" if self.to is None else format_client_letters(self.to)
        return f"{client_letters}{label}>{receiver}"


@dataclass(frozen=True)
class PartitionEdits:
    """Changes, in order.

    seed: the seed of the partition that they change; None: the run's seed. With a seed and no
        changes, all seeds of a run use the partition of this seed
    """

    changes: tuple[PartitionEdit, ...] = ()
    seed: int | None = None

    @staticmethod
    @lru_cache(maxsize=256)
    def parse(edits_text: str) -> PartitionEdits:
        """Parse the edits of a short text. Raises UsageError for a text that it cannot parse.

        >>> str(PartitionEdits.parse("0:A3>B,  C*")), PartitionEdits.parse("")
        ('0: A3>B, C*', PartitionEdits(changes=(), seed=None))
        """
        seed = None
        head, colon, text_after_seed = edits_text.partition(":")
        if colon and head.strip().isdecimal():
            seed = int(head)
            edits_text = text_after_seed
        parts = [part.strip() for part in edits_text.split(",")]
        return PartitionEdits(tuple(parse_one_edit(part) for part in parts if part), seed)

    def __str__(self) -> str:
        changes = ", ".join(map(str, self.changes))
        if self.seed is None:
            return changes
        return f"{self.seed}: {changes}".strip()

    @property
    def edits_that_move_or_double(self) -> tuple[PartitionEdit, ...]:
        """The edits that change which client holds which samples: all but the names."""
        return tuple(edit for edit in self.changes if not edit.name)

    @property
    def doubled_clients(self) -> list[int]:
        """The clients that have doubles, in the order in which the doubles follow the other clients."""
        return [edit.client for edit in self.changes if edit.is_double]

    @property
    def client_names(self) -> NameByClientIndex:
        """{client: its name} for the clients that were given a name."""
        return {edit.client: edit.name for edit in self.changes if edit.name}

    def without_client_names(self) -> PartitionEdits:
        """The edits that results depend on: all but the names."""
        return replace(self, changes=self.edits_that_move_or_double)

    def copy_with_seed_if_missing(self, seed: int) -> PartitionEdits:
        """Return these edits with `seed`, unless they have a seed already or change no samples."""
        if self.seed is None and self.edits_that_move_or_double:
            return replace(self, seed=seed)
        return self

    def check_and_count_resulting_clients(self, client_count: int, class_count: int) -> int:
        """Count the clients after the edits, from the `clients` before them. Raises UsageError for an
        edit that is impossible."""
        for edit in self.changes:
            has_clients = edit.client < client_count and (edit.to is None or edit.to < client_count)
            has_label = edit.label is None or edit.label < class_count
            if not has_clients or not has_label or edit.client == edit.to:
                raise UsageError(
                    f"The move {str(edit)!r} cannot be done, as there are clients A to "
                    f"{format_client_letters(client_count - 1)}, and classes 0 to {class_count - 1}; leave it out, or "
                    "name others."
                )
            if edit.is_double:
                client_count += 1
        return client_count

    def apply_to_shards(self, shards: Sequence[IndexArray], labels: LabelArray) -> list[IndexArray]:
        """Apply the edits to the clients' sorted `shards`, and return sorted indices into `labels`
        [N].

        >>> shards = [np.array([0, 1]), np.array([2])]
        >>> PartitionEdits.parse("A1>B, B*, B>").apply_to_shards(shards, np.array([0, 1, 1]))
        [array([0]), array([1]), array([1, 2])]
        """
        edited_shards = list(shards)
        for edit in self.edits_that_move_or_double:
            samples = edited_shards[edit.client]
            if edit.is_double:
                edited_shards.append(samples)
                continue
            leaving_samples = samples
            if edit.label is not None:
                leaving_samples = samples[labels[samples] == edit.label]
            if len(leaving_samples) == len(samples):
                leaving_samples = leaving_samples[1:]  # the client keeps one sample
            edited_shards[edit.client] = np.setdiff1d(samples, leaving_samples, assume_unique=True)
            if edit.to is not None:
                edited_shards[edit.to] = np.union1d(edited_shards[edit.to], leaving_samples)
        return edited_shards


NO_EDITS = PartitionEdits()


def parse_one_edit(edit_text: str) -> PartitionEdit:
    """Parse one edit, such as "A3>B". Raises UsageError for a text that is not an edit."""
    match = FORM.fullmatch(edit_text)
    if match is None or (match["name"] is not None and not match["name"].strip()):
        raise UsageError(f"{edit_text!r} in moves is no move; {HINT}.")
    return PartitionEdit(
        client=parse_client_letters_to_index(match["client"]),
        label=int(match["label"]) if match["label"] else None,
        to=parse_client_letters_to_index(match["to"]) if match["to"] else None,
        is_double=match["double"] is not None,
        name=(match["name"] or "").strip(),
    )


def strip_and_check_client_name(name: str) -> str:
    """Strip the white space around a client's name. Raises UsageError for a name that the short text
    cannot hold."""
    clean_name = " ".join(str(name).split())
    if not clean_name or "," in clean_name:
        raise UsageError(f"{name!r} cannot be a client's name; give a text without a comma.")
    return clean_name
