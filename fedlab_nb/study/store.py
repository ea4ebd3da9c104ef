"""The store that remembers: a folder of entries by content key, each a folder with `entry.json` and `arrays.npz`.

An entry is written under a temporary name and renamed, so it is there whole or not at all. `entry.json` carries the
format, the key and the arrays' SHA-256; whatever does not fit (half-written, foreign, damaged) is ignored with a
warning. No pickle is ever loaded. A store that cannot be written to costs a warning, never a result.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

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


class Store:
    """Entries of one `kind` ("runs", "clients") under `folder`."""

    def __init__(self, kind: str, folder: Path | None = None) -> None:
        self.folder = (folder or store_folder()) / kind

    def has(self, key: str) -> bool:
        """Whether there is an entry of that key (which may turn out to be damaged)."""
        return (self.folder / key).is_dir()

    def get(self, key: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """`(values, arrays)` of `key`, or None; an entry that cannot be trusted counts as none, with a StoreWarning."""
        entry = self.folder / key
        if not entry.is_dir():
            return None
        try:
            head = json.loads((entry / "entry.json").read_text(encoding="utf-8"))
            if head.get("format") != FORMAT or head.get("key") != key:
                raise ValueError("its format or key is not this version's")
            body = (entry / "arrays.npz").read_bytes()
            if hashlib.sha256(body).hexdigest() != head["sha256"]:
                raise ValueError("its arrays are not the ones that were written")
            with np.load(entry / "arrays.npz", allow_pickle=False) as arrays:
                return head["values"], {name: arrays[name] for name in arrays.files}
        except Exception as error:  # whatever a foreign file provokes, it must not stop a run
            warnings.warn(f"Ignored the stored entry {entry}: {error}.", StoreWarning, stacklevel=2)
            return None

    def put(self, key: str, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bool:
        """Keep an entry; False, with a StoreWarning, if that was not possible (no room, no permission)."""
        part = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=self.folder))
            np.savez(part / "arrays.npz", **arrays)
            digest = hashlib.sha256((part / "arrays.npz").read_bytes()).hexdigest()
            head = {"format": FORMAT, "key": key, "sha256": digest, "values": dict(values)}
            (part / "entry.json").write_text(json.dumps(head, allow_nan=False), encoding="utf-8")
            final = self.folder / key
            if final.exists():  # damaged, or written by another process meanwhile: the new one replaces it
                shutil.rmtree(final, ignore_errors=True)
            os.replace(part, final)
            return True
        except OSError as error:
            if part is not None:
                shutil.rmtree(part, ignore_errors=True)
            warnings.warn(
                f"The result could not be kept in {self.folder}: {error}; it is returned all the same.",
                StoreWarning,
                stacklevel=2,
            )
            return False
