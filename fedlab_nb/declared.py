"""What is declared beside the code, in TOML files of the package: words of refusals, controls, menus, commands.

People who teach or translate edit these files without reading Python.
"""

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a TOML file; ValueError, which says where, for text that is none."""
    return _toml.loads(text)


@functools.cache
def read_toml(name: str) -> dict[str, Any]:
    """The content of the package's own file `name`, such as "panels/controls.toml"; never to be changed."""
    return parse_toml((ROOT / name).read_text(encoding="utf-8"))
