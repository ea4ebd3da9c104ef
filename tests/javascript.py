"""Run the page's JavaScript in Node.js, to compare its sums with Python's without a browser."""

import atexit
import functools
import json
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from fedlab_nb.front import HERE as FRONT
from fedlab_nb.live.classroom.server import HERE as CLASSROOM
from fedlab_nb.live.page import HERE as PAGE
from fedlab_nb.live.page import join_files_without_imports_and_exports


def find_module(name: str) -> Path:
    """The module of this name, in the stage's folder, the page's or the class's."""
    for folder in (FRONT, PAGE, CLASSROOM):
        path = folder / f"{name}.js"
        if path.is_file():
            return path
    raise FileNotFoundError(f"{name}.js stands neither in {FRONT}, {PAGE} nor {CLASSROOM}")


# Reads one program from each line, and answers with a line: the program's value as JSON, or its error.
SERVER = """
const lines = require('readline').createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const { text, data } = JSON.parse(line);
  let answer;
  try {
    answer = { value: new Function('data', 'require', text)(data, require) };
  } catch (error) {
    answer = { error: String(error.stack) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\\n`);
});
"""


class NodeServer:
    """One Node.js process that runs many programs, each in a function of its own.

    A process takes 60 ms to start, most of what a test of the page's sums would take.
    """

    def __init__(self, node: str) -> None:
        self.process = subprocess.Popen(
            [node, "-e", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self.process.kill)

    def run(self, text: str, data: dict[str, Any], timeout_seconds: float = 120) -> Any:
        """What the program returns; AssertionError with its stack where it throws or does not end."""
        assert self.process.stdin is not None and self.process.stdout is not None
        watch = threading.Timer(timeout_seconds, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(json.dumps({"text": text, "data": data}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            start_server.cache_clear()
            raise AssertionError(f"the program ended Node.js or took over {timeout_seconds:g} s")
        answer = json.loads(line)
        assert "error" not in answer, answer["error"][-2000:]
        return answer.get("value")


@functools.cache
def start_server(node: str) -> NodeServer:
    return NodeServer(node)


def run_javascript(files: str, code: str, **data: Any) -> Any:
    """What `code` returns, with `data` (JSON) as its variables, after `files` (page and front), joined by blanks."""
    node = shutil.which("node") or pytest.skip("there is no Node.js on this machine")
    modules = join_files_without_imports_and_exports(*map(find_module, files.split()))
    call = f"const {{ {', '.join(data)} }} = data;" if data else ""
    text = f"{modules}\nreturn (() => {{ {call} {code} }})();"
    return start_server(node).run(text, data)
