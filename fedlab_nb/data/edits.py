"""Edits: what a person changes by hand, one change after the other, of what a partition has dealt
out.

    dealt = federate("digits", seed=0)
    dealt.move("A", "B", label=3).move("C", None).double("D").rename("E", "north")
    "0: A3>B, C>, D*, E=north"    # the same as a short text, for command line, links, saved runs

Of what seed 0 deals out, A's samples of class 3 (classes are counted from 0) go to B and all of C's
to nobody, D gets a double, one more client behind all others with the same samples, and E is called
north where people look. All seeds of a run have this one federation; without "0: " it is the one
that the (first) seed of the run deals out.

Every client of a run needs a sample, so a client's last one stays where it is; nobody holds a
sample twice. As long as there is no double and nothing goes to nobody, each sample has exactly one
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

NameByClient = dict[int, str]

FORM = re.compile(
    r"(?P<client>[A-Z]{1,2})"
    r"(?:(?P<label>\d*)>(?P<to>[A-Z]{0,2})|(?P<double>\*)|=(?P<name>.+))"
)
HINT = (
    "write moves such as 'A3>B' (A's class 3 to B), 'A>B', 'A>' (to nobody), 'A*' (a double) or "
    "'A=north' (a name)"
)


def format_client_letters(client: int) -> str:
    """What a client is called where people look: 0 -> 'A', 25 -> 'Z', 26 -> 'AA'. Digits are
    classes."""
    high, low = divmod(client, 26)
    last_letter = chr(ord("A") + low)
    if high == 0:
        return last_letter
    return format_client_letters(high - 1) + last_letter


def parse_client_letters(letters: str) -> int:
    """The number of the client with these letters.

    >>> [parse_client_letters(format_client_letters(k)) for k in (0, 25, 26, 53)]
    [0, 25, 26, 53]
    """
    number = 0
    for character in letters:
        number = 26 * number + ord(character) - ord("A") + 1
    return number - 1


@dataclass(frozen=True)
class Edit:
    """One change of a client, which is counted as if nobody were absent.

    label: the class whose samples move, None: those of all classes
    to: who gets them, None: nobody
    is_double, name: a double, or a name, moves nothing
    """

    client: int
    label: int | None = None
    to: int | None = None
    is_double: bool = False
    name: str = ""

    def __str__(self) -> str:
        who = format_client_letters(self.client)
        if self.is_double:
            return f"{who}*"
        if self.name:
            return f"{who}={self.name}"
        label = "" if self.label is None else self.label
        to = "" if self.to is None else format_client_letters(self.to)
        return f"{who}{label}>{to}"


@dataclass(frozen=True)
class Edits:
    """Changes in order. seed: which seed deals out what they change, None: that of the run. A seed
    without any change says that all seeds of a run have the federation of that one."""

    changes: tuple[Edit, ...] = ()
    seed: int | None = None

    @staticmethod
    @lru_cache(maxsize=256)
    def parse(text: str) -> Edits:
        """The edits that a text says; UsageError for one that it cannot say.

        >>> str(Edits.parse("0:A3>B,  C*")), Edits.parse("")
        ('0: A3>B, C*', Edits(changes=(), seed=None))
        """
        seed = None
        head, colon, edits_text = text.partition(":")
        if colon and head.strip().isdecimal():
            seed = int(head)
            text = edits_text
        parts = [part.strip() for part in text.split(",")]
        return Edits(tuple(parse_edit(part) for part in parts if part), seed)

    def __str__(self) -> str:
        changes = ", ".join(map(str, self.changes))
        if self.seed is None:
            return changes
        return f"{self.seed}: {changes}".strip()

    @property
    def sample_edits(self) -> tuple[Edit, ...]:
        """The edits that change who holds what: all but names."""
        return tuple(edit for edit in self.changes if not edit.name)

    @property
    def doubled_clients(self) -> list[int]:
        """Whose doubles stand behind the clients that were dealt to, in order."""
        return [edit.client for edit in self.changes if edit.is_double]

    @property
    def client_names(self) -> NameByClient:
        """{client: its name} of those that were given one."""
        return {edit.client: edit.name for edit in self.changes if edit.name}

    def without_names(self) -> Edits:
        """The edits on which results depend."""
        return replace(self, changes=self.sample_edits)

    def with_seed_if_missing(self, seed: int) -> Edits:
        """These edits, of what `seed` deals out; as they are where they have a seed already, or
        change no samples."""
        if self.seed is None and self.sample_edits:
            return replace(self, seed=seed)
        return self

    def check_and_count_resulting_clients(self, client_count: int, class_count: int) -> int:
        """How many clients there are in the end, of so many at the start; UsageError for an edit
        that cannot be."""
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

    def apply(self, shards: Sequence[IndexArray], labels: LabelArray) -> list[IndexArray]:
        """What clients hold after the edits: sorted indices into `labels` [N], from sorted
        `shards`.

        >>> shards = [np.array([0, 1]), np.array([2])]
        >>> Edits.parse("A1>B, B*, B>").apply(shards, np.array([0, 1, 1]))
        [array([0]), array([1]), array([1, 2])]
        """
        held = list(shards)
        for edit in self.sample_edits:
            samples = held[edit.client]
            if edit.is_double:
                held.append(samples)
                continue
            leaving = samples
            if edit.label is not None:
                leaving = samples[labels[samples] == edit.label]
            if len(leaving) == len(samples):
                leaving = leaving[1:]  # the last one stays
            held[edit.client] = np.setdiff1d(samples, leaving, assume_unique=True)
            if edit.to is not None:
                held[edit.to] = np.union1d(held[edit.to], leaving)
        return held


NO_EDITS = Edits()


def parse_edit(text: str) -> Edit:
    """One edit, such as "A3>B"; UsageError for a text that is none."""
    match = FORM.fullmatch(text)
    if match is None or (match["name"] is not None and not match["name"].strip()):
        raise UsageError(f"{text!r} in moves is no move; {HINT}.")
    return Edit(
        client=parse_client_letters(match["client"]),
        label=int(match["label"]) if match["label"] else None,
        to=parse_client_letters(match["to"]) if match["to"] else None,
        is_double=match["double"] is not None,
        name=(match["name"] or "").strip(),
    )


def strip_and_check_client_name(name: str) -> str:
    """A client's name, without white space around it; UsageError for one that the short text cannot
    say."""
    clean_name = " ".join(str(name).split())
    if not clean_name or "," in clean_name:
        raise UsageError(f"{name!r} cannot be a client's name; give a text without a comma.")
    return clean_name
