"""The cache of results on the disk: a folder of entries by content key, each a folder with
`entry.json` and `arrays.npz`.

An entry is written under a temporary name and then renamed, so it is never there in part.
`entry.json` has the format, the key and the arrays' SHA-256. An entry that does not match
(half-written, foreign, damaged) is ignored with a warning. No pickle is ever loaded. If the store
cannot be written to, there is a warning, and no result is lost.

The size of the store is limited to DEFAULT_LIMIT bytes, or to the environment variable
FEDLAB_NB_STORE_LIMIT (such as 500MB; 0 for no limit). The least recently used entries are deleted
first. A deleted entry is computed again when needed.
"""

import hashlib
import itertools
import json
import os
import re
import shutil
import tempfile
import time
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from .. import __version__
from ..errors import UsageError
from ..files import find_store_folder
from ..value_types import JsonObject, JsonValue
from .code_version import read_torch_version

if TYPE_CHECKING:
    import torch

FORMAT = "fedlab_nb entry 1"
KINDS = ("runs", "clients", "features")
DEFAULT_LIMIT = 5_000_000_000  # bytes
UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
DAY = 86_400  # seconds
LIMIT_CHECK_INTERVAL = 100  # calls between two checks of the store's size
_limit_calls = itertools.count()


class StoreWarning(UserWarning):
    """An entry was ignored, or could not be stored."""


def read_package_versions() -> dict[str, str]:
    """Read the versions of this package and of torch, which entries and saved models record."""
    return {"version": __version__, "torch": read_torch_version()}


class StoredEntry(NamedTuple):
    """The content of an entry of the store: plain values, and arrays by name."""

    values: JsonObject
    arrays: dict[str, np.ndarray]


class Store:
    """Entries of one `kind` (of KINDS) under `folder`."""

    def __init__(self, kind: str, folder: Path | None = None) -> None:
        self.folder = (folder or find_store_folder()) / kind

    def has(self, key: str) -> bool:
        """Whether there is an entry with this key. It may be damaged."""
        return (self.folder / key).is_dir()

    def get(self, key: str) -> StoredEntry | None:
        """Return the entry of `key`, or None. An invalid entry counts as none, with a StoreWarning."""
        if not (self.folder / key).is_dir():
            return None
        try:
            entry = self.read_or_raise(key)
        except Exception as error:  # of any kind, since a foreign file must not stop a run
            warnings.warn(
                f"Ignored the stored entry {self.folder / key}: {error}.",
                StoreWarning,
                stacklevel=2,
            )
            return None
        with suppress(OSError):
            os.utime(self.folder / key / "entry.json")  # it was used now
        return entry

    def read_or_raise(self, key: str) -> StoredEntry:
        """Read the entry of `key`. Raises any kind of exception for an invalid one."""
        entry = self.folder / key
        head = json.loads((entry / "entry.json").read_text(encoding="utf-8"))
        if head.get("format") != FORMAT or head.get("key") != key:
            raise ValueError("its format or key is not this version's")
        body = (entry / "arrays.npz").read_bytes()
        if hashlib.sha256(body).hexdigest() != head["sha256"]:
            raise ValueError("its arrays are not the ones that were written")
        with np.load(entry / "arrays.npz", allow_pickle=False) as arrays:
            return StoredEntry(head["values"], {name: arrays[name] for name in arrays.files})

    def write_entry_if_possible(
        self, key: str, values: Mapping[str, JsonValue], arrays: Mapping[str, np.ndarray]
    ) -> bool:
        """Keep an entry; whether that was possible. If not (no room, no permission), a StoreWarning
        says so."""
        temporary = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=".part-", dir=self.folder))
            np.savez(temporary / "arrays.npz", **dict[str, Any](arrays))
            digest = hashlib.sha256((temporary / "arrays.npz").read_bytes()).hexdigest()
            head = {
                "format": FORMAT,
                "key": key,
                "sha256": digest,
                "made": read_package_versions(),
                "values": dict(values),
            }
            text = json.dumps(head, allow_nan=False)
            (temporary / "entry.json").write_text(text, encoding="utf-8")
            # One that is there is damaged, or was written by another process meanwhile: the new one replaces it.
            shutil.rmtree(self.folder / key, ignore_errors=True)
            os.replace(temporary, self.folder / key)
            return True
        except OSError as error:
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)
            warnings.warn(
                f"The result could not be stored in {self.folder}: {error.strerror or error}; "
                "you get it now, but it will be computed again next time.",
                StoreWarning,
                stacklevel=2,
            )
            return False


# ------------------------------------------------------------------------------------------------ keeping it in order
class TrainedEntry(TypedDict):
    """Trained clients.

    states: the state of each client's model
    history: the points of the curve of local training
    seconds: wall time of their training
    """

    states: list[dict[str, "torch.Tensor"]]
    history: list[JsonObject]
    seconds: float


class TrainedClientsCache:
    """The cache of trained clients, so that every method of a comparison begins with the same ones.

    A few entries are in memory, all of them in the store.
    """

    def __init__(self, limit: int = 8) -> None:
        self._memory: OrderedDict[str, TrainedEntry] = OrderedDict()
        self._limit = limit

    def get(self, key: str, store: Store | None) -> TrainedEntry | None:
        """Return the entry of `key`, from memory or from the store; None if there is none."""
        if key in self._memory:
            self._memory.move_to_end(key)
            return self._memory[key]
        stored = None if store is None else store.get(key)
        if stored is None:
            return None
        values, arrays = stored
        entry = TrainedEntry(
            states=unpack_client_states(values["clients"], arrays),
            history=values["history"],
            seconds=values["seconds"],
        )
        self._put_in_memory(key, entry)
        return entry

    def has(self, key: str, store: Store) -> bool:
        """Whether there is an entry of `key`."""
        return key in self._memory or store.has(key)

    def add_entry(self, key: str, entry: TrainedEntry, store: Store | None) -> None:
        """Keep an entry in memory, and in the store if there is one."""
        self._put_in_memory(key, entry)
        if store is None:
            return
        arrays = {}
        for k, state in enumerate(entry["states"]):
            for name, tensor in state.items():
                arrays[f"{k}/{name}"] = tensor.numpy()
        values = {
            "clients": len(entry["states"]),
            "history": entry["history"],
            "seconds": entry["seconds"],
        }
        store.write_entry_if_possible(key, values, arrays)

    def _put_in_memory(self, key: str, entry: TrainedEntry) -> None:
        self._memory[key] = entry
        while len(self._memory) > self._limit:
            self._memory.popitem(last=False)


def unpack_client_states(
    client_count: int, arrays_by_client_and_tensor: Mapping[str, np.ndarray]
) -> list[dict[str, "torch.Tensor"]]:
    """Restore the states of the clients. arrays_by_client_and_tensor: {"CLIENT/TENSOR": array}"""
    import torch

    states: list[dict[str, torch.Tensor]] = [{} for _ in range(client_count)]
    for name, array in arrays_by_client_and_tensor.items():
        k, _, tensor = name.partition("/")
        states[int(k)][tensor] = torch.from_numpy(array)
    return states


@dataclass(frozen=True)
class StoredEntryFolder:
    """One entry of the store. `used`: when it was written or last read, in seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float

    def read_values(self) -> JsonObject:
        """Read its `entry.json`; {} if that cannot be read."""
        try:
            return json.loads((self.path / "entry.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def is_readable_and_valid(self) -> bool:
        """Whether it can be read and is valid."""
        with suppress(Exception):  # of any kind, as foreign files may be there
            return bool(Store(self.kind).read_or_raise(self.path.name))
        return False


def list_entries_least_recently_used_first() -> list[StoredEntryFolder]:
    """List all entries, the least recently used one first. Anything else in the folder is ignored."""
    entries = []
    for kind in KINDS:
        folder = find_store_folder() / kind
        if not folder.is_dir():
            continue
        for path in folder.iterdir():
            if path.is_dir() and not path.name.startswith("."):
                files = [file.stat() for file in path.iterdir()]
                used = max((stat.st_mtime for stat in files), default=path.stat().st_mtime)
                size = sum(stat.st_size for stat in files)
                entries.append(StoredEntryFolder(kind, path, size, used))
    return sorted(entries, key=lambda entry: entry.used)


def delete_entries_and_count_freed_bytes(entries: Sequence[StoredEntryFolder]) -> int:
    """Remove entries; returns the bytes that became free."""
    for entry in entries:
        shutil.rmtree(entry.path, ignore_errors=True)
    return sum(entry.bytes for entry in entries)


class DeletedEntriesAndFreedBytes(NamedTuple):
    """How many entries were deleted, and how many bytes became free."""

    entries: int
    bytes: int


def prune_entries(
    *,
    unused_days: float | None = None,
    should_delete_other_versions: bool = False,
    size_limit_in_bytes_or_text: str | float | None = None,
) -> DeletedEntriesAndFreedBytes:
    """Delete entries of the store; returns how many, and the bytes that became free.

    unused_days: delete entries that were not used for this many days
    should_delete_other_versions: whether to delete entries of other versions of the code or of torch
    size_limit_in_bytes_or_text: then delete the least recently used entries until the store is no larger; bytes,
        or a text such as "500MB"
    """
    unwanted = []
    remaining = []
    for entry in list_entries_least_recently_used_first():
        is_old = unused_days is not None and entry.used < time.time() - unused_days * DAY
        is_foreign = (
            should_delete_other_versions
            and not is_old
            and entry.read_values().get("made") != read_package_versions()
        )
        if is_old or is_foreign:
            unwanted.append(entry)
        else:
            remaining.append(entry)
    if size_limit_in_bytes_or_text is not None:
        unwanted += find_least_recently_used_entries_beyond_limit(
            remaining, parse_size_in_bytes(size_limit_in_bytes_or_text)
        )
    return DeletedEntriesAndFreedBytes(
        len(unwanted), delete_entries_and_count_freed_bytes(unwanted)
    )


def find_least_recently_used_entries_beyond_limit(
    entries: Sequence[StoredEntryFolder], limit_in_bytes: float
) -> list[StoredEntryFolder]:
    """Find the entries to delete so that the others fit into `limit_in_bytes` bytes.

    entries: the least recently used ones first
    """
    total = sum(entry.bytes for entry in entries)
    oldest = []
    for entry in entries:
        if total <= limit_in_bytes:
            break
        oldest.append(entry)
        total -= entry.bytes
    return oldest


def find_damaged_entries() -> list[StoredEntryFolder]:
    """Find the invalid entries: half-written, damaged or foreign ones."""
    return [
        entry
        for entry in list_entries_least_recently_used_first()
        if not entry.is_readable_and_valid()
    ]


def delete_least_recently_used_entries_every_100_calls() -> None:
    """If the store is larger than its limit, delete the least recently used entries down to nine
    tenths of it.

    Only the first call of a process and every hundredth check the size.
    """
    if next(_limit_calls) % LIMIT_CHECK_INTERVAL:
        return
    limit = read_store_limit_in_bytes_or_0_for_none()
    entries = list_entries_least_recently_used_first()
    if limit and sum(entry.bytes for entry in entries) > limit:
        delete_entries_and_count_freed_bytes(
            find_least_recently_used_entries_beyond_limit(entries, 0.9 * limit)
        )


def read_store_limit_in_bytes_or_0_for_none() -> float:
    """Read the store's limit in bytes; 0 for none."""
    try:
        return parse_size_in_bytes(os.environ.get("FEDLAB_NB_STORE_LIMIT", DEFAULT_LIMIT))
    except UsageError as error:
        raise UsageError(f"FEDLAB_NB_STORE_LIMIT is set wrongly: {error}") from None


def parse_size_in_bytes(size_in_bytes_or_text: str | float) -> float:
    """Parse a size: 500 -> 500, "1.5 GB" -> 1.5e9. UsageError for anything else.

    >>> parse_size_in_bytes("1.5 GB"), parse_size_in_bytes("20kB")
    (1500000000.0, 20000.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?b?)\s*", str(size_in_bytes_or_text).lower())
    if match is None or match[2] not in UNITS:
        raise UsageError(
            f"{size_in_bytes_or_text!r} is not a size; give a number of bytes, or one such as 500MB or 2GB."
        )
    return float(match[1]) * UNITS[match[2]]
