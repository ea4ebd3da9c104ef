"""All tests, as the README's command runs them: `python tests/everything.py`.

First the checks of `checks.py` (lint, format, import rules, types). Then two calls of pytest. The first takes unit
tests, doctests, claims over seeds and the notebooks (`tests/everything.txt`), a file at a time on each core. The second
takes the browser scenarios alone, because they watch the clock.
"""

import subprocess
import sys
from pathlib import Path

import checks

CALLS = (
    # "auto" would count a core with two threads as one; the order as collected keeps the longest files from being last
    ["@tests/everything.txt", "-n", "logical", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder"],
    ["tests/browser", "-m", "browser", "--durations=5"],
)


def main() -> int:
    """Run all of it, also after a failure; the exit code is the first that is not 0."""
    root = Path(__file__).resolve().parents[1]
    codes = [checks.main()]
    codes += [subprocess.call([sys.executable, "-m", "pytest", *call], cwd=root) for call in CALLS]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
