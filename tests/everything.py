"""All tests, as the README's command runs them: `python tests/everything.py`.

First the checks of `checks.py` (lint, format, import rules, types). Then three calls of pytest. The first takes unit
tests, doctests, claims over seeds and the notebooks (`tests/everything.txt`), a file at a time on each core; the second
the browser scenarios, two at once; the third those that watch the clock, alone.

The first call does without what costs each of its processes seconds: assertions stay as they are (`--assert=plain`, to
rewrite 4,900 of them takes ten), Hypothesis' plugin, which only adds to what a failure prints, is off, and see
`quick.py`. If a test fails, those that failed run once more with all that, to show the values they compare.
"""

import subprocess
import sys
from pathlib import Path

import checks

UNITS, FEEL = "@tests/everything.txt", "tests/browser/test_feel.py"
QUICK = ["--assert=plain", "-p", "no:hypothesispytest", "-p", "tests.quick"]
BROWSER = ["-m", "browser", *QUICK[1:]]
CALLS = (
    # "auto" would count a core with two threads as one; the order as collected keeps the longest files from being last
    [
        UNITS,
        *QUICK,
        "-n",
        "logical",
        "--maxprocesses",
        "4",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
    ],
    [
        "tests/browser",
        *BROWSER,
        "-n",
        "2",
        "--dist",
        "worksteal",
        f"--ignore={FEEL}",
        "--durations=5",
    ],
    [FEEL, *BROWSER],
)
AGAIN = [UNITS, "--last-failed", "--last-failed-no-failures=none"]


def pytest(call: list[str]) -> int:
    """The exit code of pytest, called so in the root of the checkout."""
    return subprocess.call(
        [sys.executable, "-m", "pytest", *call], cwd=Path(__file__).resolve().parents[1]
    )


def main() -> int:
    """Run all of it, also after a failure; the exit code is the first that is not 0."""
    codes = [checks.main()]
    for call in CALLS:
        codes.append(pytest(call))
        if codes[-1] == 1 and "--assert=plain" in call:
            pytest(AGAIN)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
