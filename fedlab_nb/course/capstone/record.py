"""What a learner has done in a capstone: tries and submissions, kept in a file, so that a new start of the notebook
forgets none.

The file lies in the folder of the store, one JSON object a line. A store that cannot be written to costs the memory
over restarts alone.
"""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...data.dataset import digest_of
from ...methods import METHODS
from ...study.statistics import Band, band
from ...study.store import store_folder


@dataclass(frozen=True)
class Try:
    """One method with its settings, judged on validation images. `knobs`: what was set, as text; `validation`: {seed:
    accuracy 0–1}; `bytes`: up and down of the client that sends and receives most; `leaks`: what leaks."""

    number: int
    method: str
    knobs: dict[str, str]
    validation: dict[int, float]
    bytes: int
    leaks: str = ""

    @property
    def title(self) -> str:
        return METHODS[self.method].info.title if self.method in METHODS else self.method

    @property
    def settings(self) -> str:
        """'rounds = 20, epochs = 10', or 'as usual'."""
        return ", ".join(f"{name} = {value}" for name, value in self.knobs.items()) or "as usual"

    @property
    def band(self) -> Band:
        return band(self.validation)


@dataclass
class Record:
    """The tries, and the test accuracies of all submissions, of one person and code word; `file`: where they are."""

    file: Path
    tries: list[Try] = field(default_factory=list)
    submissions: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, code: str, name: str) -> Record:
        """The record of a person, with what was done before."""
        record = cls(store_folder() / "capstone" / f"{digest_of(code, name)}.jsonl")
        with suppress(OSError):
            for line in record.file.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    record._read(json.loads(line))
        return record

    def _read(self, entry: dict[str, Any]) -> None:
        if "submission" in entry:
            self.submissions.append(entry)
        else:
            shares = {int(seed): float(share) for seed, share in entry.pop("validation").items()}
            self.tries.append(Try(**{**entry, "validation": shares, "number": len(self.tries) + 1}))

    def add(self, done: Try) -> None:
        self.tries.append(done)
        self._write(dataclasses.asdict(done))

    def submitted(self, entry: dict[str, Any]) -> None:
        self.submissions.append(entry)
        self._write(entry)

    def _write(self, entry: dict[str, Any]) -> None:
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with open(self.file, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
