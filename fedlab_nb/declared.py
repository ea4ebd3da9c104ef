"""Reads the TOML files that lie beside the code and have texts and declarations: controls, menus, exercises, figures.

People who teach or translate edit these files without reading Python.
"""

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


TomlTable = dict[str, Any]  # {key: a number, a text, a truth value, a date, a list or a table}


def parse_toml(text: str) -> TomlTable:
    """Parse the text of a TOML file. ValueError, with the place, if it is not valid."""
    return _toml.loads(text)


@functools.cache
def read_toml(path_in_package: str) -> TomlTable:
    """Read a file of the package, such as "panels/controls.toml". Callers must not change what it returns."""
    return parse_toml((ROOT / path_in_package).read_text(encoding="utf-8"))
