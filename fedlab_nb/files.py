"""Writes files without overwriting what a person has made: every file that the package writes is written here.

- A file is written under a temporary name beside its place and then renamed, so that it is there whole or not at all.
- A file that is there already is replaced only if the package wrote it and nobody has changed it since, or with
  `force=True` (`--force` on the command line).

The package recognises its own files by notes in the folder `written` of the store. For each path there is a note with
the SHA-256 of what was written there. If the digest of a file is in its note, the file is the package's own. A file
that a person has edited, or that came from elsewhere, has another digest and counts as the person's. If the store
cannot be written to, the notes are kept in memory, until the process ends.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import UsageError
from .value_types import HexDigest

TemporaryPath = Path
NOTES = "written"
# The number of digests that a note keeps. More than one, because a process that is killed before it renames the file
# leaves the file that was there before, whose digest is not the newest one.
MOST_NOTES = 8
BLOCK = 1 << 20  # bytes that are read at once
# By path, the digests of what this process has written, newest last.
_written: dict[Path, list[HexDigest]] = {}


def expand_path(path: str | os.PathLike) -> Path:
    """Return `path` with `~` and `~name` replaced by that home folder. UsageError if there is no such home.

    >>> expand_path("~/data.csv") == Path.home() / "data.csv"
    True
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(
            f"{str(path)!r} names a home folder that does not exist; give the whole path."
        ) from None


def find_store_folder() -> Path:
    """Return the folder of the store: `FEDLAB_NB_STORE`, or a folder in the user's cache folder."""
    folder_by_user = os.environ.get("FEDLAB_NB_STORE")
    if folder_by_user:
        return expand_path(folder_by_user)
    from platformdirs import user_cache_path

    return user_cache_path("fedlab_nb", appauthor=False) / "store"


# -------------------------------------------------------------------------------------------------------- writing
@contextmanager
def replace_file_at_end_of_block(
    path: str | os.PathLike, *, force: bool = False
) -> Iterator[TemporaryPath]:
    """Yield a temporary path to write to; afterwards it is renamed to `path`, unless an exception was raised.

    A link stays a link: the file that it points to is replaced. A device or a pipe is written to directly. UsageError
    if there is a file at `path` that the package did not write, unless `force`; OSError without space or permission.
    """
    named = expand_path(path)
    check_replaceable([named], force=force)
    target = Path(os.path.realpath(named))
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    if target.is_dir():
        raise IsADirectoryError(21, "it is a folder", str(named))
    # In a new folder, so that the temporary file can have the right name: some writers look at its ending (.onnx).
    folder = Path(tempfile.mkdtemp(prefix=".fedlab_nb-", dir=target.parent))
    part = folder / target.name
    try:
        yield part
        check_replaceable([named], force=force)  # once more: writing may have taken long
        if target.exists():
            shutil.copymode(target, part)
        _record_written_digest(target, compute_file_sha256(part))
        os.replace(part, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_file(path: str | os.PathLike, content: str | bytes, *, force: bool = False) -> Path:
    """Write text (UTF-8) or bytes to `path`, as `replace_file_at_end_of_block` does.

    Returns the path with `~` replaced.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replace_file_at_end_of_block(path, force=force) as part:
        part.write_bytes(data)
    return expand_path(path)


def copy_file_if_absent(source: Path, target: Path) -> None:
    """Copy a file to `target`; a file that is there already is never touched."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with replace_file_at_end_of_block(target) as part:
        shutil.copyfile(source, part)


# -------------------------------------------------------------------------------------------------------- whose it is
def check_replaceable(paths_to_write: Iterable[str | os.PathLike], *, force: bool = False) -> None:
    """Raise UsageError if there is a file at one of `paths_to_write` that the package did not write, unless `force`.

    Code that takes long calls this before it begins.
    """
    if force:
        return
    for path in map(expand_path, paths_to_write):
        if path.is_file() and not is_unchanged_since_written(path):
            raise UsageError(
                f"{path} is there already and fedlab_nb did not write it, or somebody has changed it "
                "since; give another name, or replace it with --force (in Python: force=True)."
            )


def is_unchanged_since_written(path: Path) -> bool:
    """Whether the file at `path` is what the package wrote there, to the last byte."""
    target = Path(os.path.realpath(path))
    digests = _read_written_digests_newest_last(target)
    return bool(digests) and compute_file_sha256(target) in digests


def compute_file_sha256(path: Path) -> HexDigest:
    """Compute the SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as content:
        while block := content.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _make_digest_file_path(target: Path) -> Path:
    """Return the path of the note on `target`: the file with the digests of what was written there."""
    name = hashlib.sha256(os.fsencode(target)).hexdigest()
    return find_store_folder() / NOTES / name


def _read_written_digests_newest_last(target: Path) -> list[HexDigest]:
    """Read the digests of what the package wrote to `target` last, newest last; [] if there are none."""
    with suppress(OSError, UnicodeDecodeError):
        return _make_digest_file_path(target).read_text(encoding="ascii").split()
    return _written.get(target, [])


def _record_written_digest(target: Path, digest: HexDigest) -> None:
    """Append the digest of what is about to be written to `target` to its note."""
    digests = [*_read_written_digests_newest_last(target), digest][-MOST_NOTES:]
    _written[target] = digests
    note = _make_digest_file_path(target)
    with suppress(OSError):  # if the store cannot be written to, the digests stay in memory
        note.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=".part-", dir=note.parent)
        with open(handle, "w", encoding="ascii") as file:
            file.write("\n".join(digests))
        os.replace(part, note)
