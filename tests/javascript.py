"""The page's JavaScript in Node.js, so that its sums can be compared with Python's without a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "fedlab_nb" / "page"


def javascript(files: str, code: str, **data: Any) -> Any:
    """What `code` returns, with `data` (JSON) as its variables, after the page's `files`, joined by blanks."""
    node = shutil.which("node") or pytest.skip("there is no Node.js on this machine")
    modules = "".join((PAGE / f"{name}.js").read_text(encoding="utf-8") for name in files.split())
    text = re.sub(r"^import .*$|^export ", "", modules, flags=re.MULTILINE)
    call = f"const {{ {', '.join(data)} }} = JSON.parse(require('fs').readFileSync(0));\n" if data else ""
    text += f"\nconsole.log(JSON.stringify((() => {{ {call} {code} }})()));"
    ended = subprocess.run([node, "-e", text], input=json.dumps(data), capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout)
