"""The file of `--keep`: one line about the class, then a line for each thing that happened, in
order.

A line is appended before a phone is told that its message has arrived, so a class that is killed
has lost nothing that it has acknowledged. The file is written anew only where something has to
leave it, or a class goes on from it.
"""

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...files import open_replacement


class Journal:
    """Lines of JSON in a file that its owner alone may read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        return self.path.exists()

    def read(self) -> list[dict[str, Any]]:
        """The objects of all lines. ValueError where a line is none; but a last line without its
        end is left out: the class was killed while it wrote it, and so has acknowledged nothing of
        it."""
        lines = self.path.read_text("utf-8").split("\n")
        last = lines.pop()
        objects = [parse_line(line) for line in lines]
        if last:
            try:
                objects.append(parse_line(last))
            except ValueError:
                if not objects:
                    raise
        return objects

    def rewrite(self, lines: Iterable[str]) -> None:
        """These lines in place of all. OSError where they cannot be written: then the old ones are
        still there."""
        with open_replacement(self.path, force=True) as part:
            part.touch(mode=0o600)
            with part.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())

    def append(self, line: str) -> None:
        """One more line. UsageError where it cannot be written: then nothing of it is there."""
        data = f"{line}\n".encode()
        try:
            # Unbuffered: what could not be written must not be tried again when the file is closed.
            with self.path.open("r+b", buffering=0) as file:
                end = file.seek(0, os.SEEK_END)
                try:
                    written = file.write(data)
                    if written != len(data):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                except OSError:
                    file.truncate(end)
                    raise
        except OSError as error:
            raise UsageError(
                f"The teacher's computer cannot write to {self.path.name} ({error.strerror}). "
                "Tell the teacher, then send again."
            ) from None

    def sync(self) -> None:
        """Wait until all lines are on the disk, also for a computer that loses its power."""
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def parse_line(line: str) -> dict[str, Any]:
    given = json.loads(line)
    if not isinstance(given, dict):
        raise ValueError("no object")
    return given
