"""Keeping the store in order: what it holds, how large it is, whether its entries are whole, and taking the oldest out.

The store is bounded: LIMIT bytes, or what the environment variable FEDLAB_NB_STORE_LIMIT says (such as 500MB; 0: no
bound). What was used longest ago goes first. Taking an entry out costs its time once more, never a result.
"""

import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .store import Store, made, store_folder

KINDS = ("runs", "clients")
LIMIT = 5_000_000_000
UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
DAY = 86_400
_calls = itertools.count()


@dataclass(frozen=True)
class Entry:
    """One entry of the store. `used`: when it was written or last read, in seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float

    def head(self) -> dict[str, Any]:
        """Its `entry.json`, or nothing where that cannot be read."""
        try:
            return json.loads((self.path / "entry.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def is_whole(self) -> bool:
        """Whether it can be read and trusted."""
        try:
            Store(self.kind).read(self.path.name)
            return True
        except Exception:  # whatever a foreign file provokes
            return False


def entries() -> list[Entry]:
    """All entries, the one that was used longest ago first; what else lies in the folder is none."""
    listed = []
    for kind in KINDS:
        folder = store_folder() / kind
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and not path.name.startswith("."):
                files = [file.stat() for file in path.iterdir()]
                used = max((stat.st_mtime for stat in files), default=path.stat().st_mtime)
                listed.append(Entry(kind, path, sum(stat.st_size for stat in files), used))
    return sorted(listed, key=lambda entry: entry.used)


def take_out(gone: Iterable[Entry]) -> int:
    """Remove entries; returns the bytes that became free."""
    freed = 0
    for entry in gone:
        shutil.rmtree(entry.path, ignore_errors=True)
        freed += entry.bytes
    return freed


def prune(*, days: float | None = None, version: bool = False, size: str | float | None = None) -> tuple[int, int]:
    """Take out entries that were not used for `days`, that another version of the code or of torch made (`version`),
    and then the oldest until the rest is no larger than `size` ("500MB", or bytes). Returns (entries, bytes) taken out.
    """
    here, gone = entries(), []
    if days is not None:
        gone += [entry for entry in here if entry.used < time.time() - days * DAY]
    if version:
        gone += [entry for entry in here if entry not in gone and entry.head().get("made") != made()]
    if size is not None:
        gone += oldest_beyond([entry for entry in here if entry not in gone], bytes_of(size))
    return len(gone), take_out(gone)


def oldest_beyond(here: list[Entry], limit: float) -> list[Entry]:
    """The oldest of `here` (oldest first) that must go so that the rest fits into `limit` bytes."""
    total, gone = sum(entry.bytes for entry in here), []
    for entry in here:
        if total <= limit:
            break
        gone.append(entry)
        total -= entry.bytes
    return gone


def verify() -> list[Entry]:
    """The entries that cannot be trusted: half-written, damaged or foreign."""
    return [entry for entry in entries() if not entry.is_whole()]


def bound() -> None:
    """Take the oldest out if the store is larger than its limit, down to nine tenths of it. It looks at the first call
    of a process and at every hundredth."""
    if next(_calls) % 100:
        return
    here, most = entries(), limit()
    if most and sum(entry.bytes for entry in here) > most:
        take_out(oldest_beyond(here, 0.9 * most))


def limit() -> float:
    """The store's bound in bytes; 0: none."""
    try:
        return bytes_of(os.environ.get("FEDLAB_NB_STORE_LIMIT", LIMIT))
    except UsageError as error:
        raise UsageError(f"FEDLAB_NB_STORE_LIMIT is set wrongly: {error}") from None


def bytes_of(size: str | float) -> float:
    """500 -> 500, "1.5 GB" -> 1.5e9; UsageError for anything else.

    >>> bytes_of("1.5 GB"), bytes_of("20kB")
    (1500000000.0, 20000.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?b?)\s*", str(size).lower())
    if match is None or match[2] not in UNITS:
        raise UsageError(f"{size!r} is not a size; give a number of bytes, or one such as 500MB or 2GB.")
    return float(match[1]) * UNITS[match[2]]
