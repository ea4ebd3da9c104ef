"""The store that remembers: a folder of entries by content key, each a folder with `entry.json` and `arrays.npz`.

An entry is written under a temporary name and renamed, so it is there whole or not at all. `entry.json` carries the
format, the key and the arrays' SHA-256; whatever does not fit (half-written, foreign, damaged) is ignored with a
warning. No pickle is ever loaded. A store that cannot be written to costs a warning, never a result.
"""

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .code_version import torch_version

FORMAT = "fedlab_nb entry 1"


class StoreWarning(UserWarning):
    """An entry was ignored, or could not be kept."""


def store_folder() -> Path:
    """`FEDLAB_NB_STORE`, or the user's cache folder by the platform's convention."""
    named = os.environ.get("FEDLAB_NB_STORE")
    if named:
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("fedlab_nb", appauthor=False) / "store"


def made() -> dict[str, str]:
    """What an entry is made with."""
    from .. import __version__

    return {"version": __version__, "torch": torch_version()}


class Store:
    """Entries of one `kind` ("runs", "clients") under `folder`."""

    def __init__(self, kind: str, folder: Path | None = None) -> None:
        self.folder = (folder or store_folder()) / kind

    def has(self, key: str) -> bool:
        """Whether there is an entry of that key (which may turn out to be damaged)."""
        return (self.folder / key).is_dir()

    def get(self, key: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """`(values, arrays)` of `key`, or None; an entry that cannot be trusted counts as none, with a StoreWarning."""
        if not (self.folder / key).is_dir():
            return None
        try:
            entry = self.read(key)
        except Exception as error:  # whatever a foreign file provokes, it must not stop a run
            text = f"Ignored the stored entry {self.folder / key}: {error}."
            warnings.warn(text, StoreWarning, stacklevel=2)
            return None
        with suppress(OSError):
            os.utime(self.folder / key / "entry.json")  # it was used now
        return entry

    def read(self, key: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """`(values, arrays)` of an entry; an exception of some kind where it cannot be trusted."""
        entry = self.folder / key
        head = json.loads((entry / "entry.json").read_text(encoding="utf-8"))
        if head.get("format") != FORMAT or head.get("key") != key:
            raise ValueError("its format or key is not this version's")
        body = (entry / "arrays.npz").read_bytes()
        if hashlib.sha256(body).hexdigest() != head["sha256"]:
            raise ValueError("its arrays are not the ones that were written")
        with np.load(entry / "arrays.npz", allow_pickle=False) as arrays:
            return head["values"], {name: arrays[name] for name in arrays.files}

    def put(self, key: str, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bool:
        """Keep an entry; False, with a StoreWarning, if that was not possible (no room, no permission)."""
        part = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=self.folder))
            named: dict[str, Any] = dict(arrays)
            np.savez(part / "arrays.npz", **named)
            digest = hashlib.sha256((part / "arrays.npz").read_bytes()).hexdigest()
            head = {"format": FORMAT, "key": key, "sha256": digest, "made": made(), "values": dict(values)}
            (part / "entry.json").write_text(json.dumps(head, allow_nan=False), encoding="utf-8")
            final = self.folder / key
            if final.exists():  # damaged, or written by another process meanwhile: the new one replaces it
                shutil.rmtree(final, ignore_errors=True)
            os.replace(part, final)
            return True
        except OSError as error:
            if part is not None:
                shutil.rmtree(part, ignore_errors=True)
            why = error.strerror or error
            warnings.warn(
                (
                    f"The result could not be stored in {self.folder}: {why}; you get it now, but it will be computed "
                    "again next time."
                ),
                StoreWarning,
                stacklevel=2,
            )
            return False
