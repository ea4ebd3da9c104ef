"""The file of `--keep`: one line about the class, then one line for each event, in order.

A line is appended before the phone's message is acknowledged, so a class that is killed loses nothing
that it has acknowledged. The file is rewritten only when something must be removed from it, or when a
class continues from it.
"""

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path

from ...errors import UsageError
from ...files import replace_file_at_end_of_block
from .messages import UncheckedJsonObject


class Journal:
    """Lines of JSON in a file that its owner alone may read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        return self.path.exists()

    def read_json_objects_of_existing_file(self) -> list[UncheckedJsonObject]:
        """Read the objects of all lines. ValueError if a line is not a JSON object, FileNotFoundError
        if there is no file.

        An incomplete last line is skipped, unless it is the only one: the class was killed while
        writing it, so the class has not acknowledged it.
        """
        lines = self.path.read_text("utf-8").split("\n")
        unfinished_line = lines.pop()  # what follows the last end of a line; "" in a complete file
        objects = [parse_json_object_line(line) for line in lines]
        if unfinished_line:
            try:
                objects.append(parse_json_object_line(unfinished_line))
            except ValueError:
                if not objects:
                    raise
        return objects

    def replace_all_lines(self, new_lines: Iterable[str]) -> None:
        """Replace all lines of the file. If that fails, OSError is raised and the old lines stay."""
        with replace_file_at_end_of_block(self.path, force=True) as replacement:
            replacement.touch(mode=0o600)
            with replacement.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in new_lines)
                file.flush()
                os.fsync(file.fileno())

    def append_line(self, line: str) -> None:
        """Append a line. If it cannot be written, UsageError is raised and no part of it stays in the file."""
        data = f"{line}\n".encode()
        try:
            # Unbuffered: otherwise closing the file would try again to write what could not be written.
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

    def sync_file_to_disk(self) -> None:
        """Wait until all lines are on the disk, so that they survive a loss of power."""
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def parse_json_object_line(json_line: str) -> UncheckedJsonObject:
    """Parse a line of the file. ValueError if it is not a JSON object."""
    given = json.loads(json_line)
    if not isinstance(given, dict):
        raise ValueError("no object")
    return given
