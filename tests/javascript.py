"""The page's JavaScript in Node.js, so that its sums can be compared with Python's without a browser."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fedlab_nb.front import HERE as FRONT
from fedlab_nb.live.classroom.server import HERE as CLASSROOM
from fedlab_nb.live.page import HERE as PAGE
from fedlab_nb.live.page import joined


def find_module(name: str) -> Path:
    """The module of this name, in the stage's folder, the page's or the class's."""
    for folder in (FRONT, PAGE, CLASSROOM):
        path = folder / f"{name}.js"
        if path.is_file():
            return path
    raise FileNotFoundError(f"{name}.js stands neither in {FRONT}, {PAGE} nor {CLASSROOM}")


def javascript(files: str, code: str, **data: Any) -> Any:
    """What `code` returns, with `data` (JSON) as its variables, after `files` (page and front), joined by blanks."""
    node = shutil.which("node") or pytest.skip("there is no Node.js on this machine")
    text = joined(*map(find_module, files.split()))
    call = (
        f"const {{ {', '.join(data)} }} = JSON.parse(require('fs').readFileSync(0));\n"
        if data
        else ""
    )
    text += f"\nconsole.log(JSON.stringify((() => {{ {call} {code} }})()));"
    ended = subprocess.run(
        [node, "-e", text], input=json.dumps(data), capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout)
