"""Stored rows: the results that come with the package, a JSON file for each study in `stored/`.

A row has the results of one method at one setting, named by `runs`, `method` and `at`. `seeds`
lists the seeds, and each column has a value for each of them. `made` has the options of the runs.
The command `python -m fedlab_nb.papers.declared` writes these files; here they are read.
"""

import json
from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import FedlabError
from ..value_types import JsonObject, JsonValue

FOLDER = Path(__file__).parent / "stored"
StoredRow = dict[str, JsonValue]


def make_path_of_stored_rows(row_kind: Literal["stored", "tuning"], dataset: str) -> Path:
    """Make the path of the rows of a kind ("stored", "tuning") of a data set; the file may be missing."""
    return FOLDER / f"{row_kind}-{dataset.replace(':', '')}.json"


class StoredRows(NamedTuple):
    """Rows of stored results.

    about: what made the rows (version, torch, date, command, note)
    """

    about: JsonObject
    rows: list[StoredRow]


def read_stored_rows(path: Path) -> StoredRows:
    """Read a file of stored rows; FedlabError if it is missing or is no such file.

    In the file rows that were made with the same options share them: `made` is a number in a list.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        options = content["made"]
        rows = [{**row, "made": options[row["made"]]} for row in content["rows"]]
        return StoredRows(content["about"], rows)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise FedlabError(f"The stored results in {path.name} cannot be read: {error!r}.") from None


def make_json_key_of_row(row: StoredRow) -> str:
    """Make a key that is different for each row of a study."""
    return json.dumps([row["runs"], row["method"], row["at"]], sort_keys=True)
