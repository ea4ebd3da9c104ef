"""All tests, as the README's command runs them.

    python tests/everything.py                     # every test
    python tests/everything.py --other-processor   # data, claims and exercises, as on other processors

First the checks of `checks.py` (lint, format, import rules, types). Then three calls of pytest. The first takes unit
tests, doctests, claims over seeds and the notebooks (`tests/everything.txt`), a file at a time on each core; the second
the browser scenarios, two at once; the third those that watch the clock, alone.

The first call does without what costs each of its processes seconds: assertions stay as they are (`--assert=plain`, to
rewrite 4,900 of them takes ten), Hypothesis' plugin, which only adds to what a failure prints, is off, and see
`quick.py`. If a test fails, those that failed run once more with all that, to show the values they compare.

With `--other-processor` PyTorch, MKL and oneDNN calculate as on the oldest processor that they know,
which adds in another order: once with one thread, once with two. What differs there would differ on
somebody's laptop. The variables are those of `data_digests.OTHER_PROCESSOR`.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import checks
from data_digests import OTHER_PROCESSOR

UNITS, FEEL = "@tests/everything.txt", "tests/browser/test_feel.py"
QUICK = ["--assert=plain", "-p", "no:hypothesispytest", "-p", "tests.quick"]
BROWSER = ["-m", "browser and not slow", *QUICK[1:]]
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
# Where what is tested or taught rests on data and on runs of methods.
OTHER_PROCESSOR_TESTS = [
    "tests/data",
    "tests/course",
    "tests/methods/test_claims.py",
    "-m",
    "not browser and not gpu",
    *QUICK,
    "-n",
    "logical",
    "--maxprocesses",
    "4",
    "--dist",
    "worksteal",
    "--durations=5",
]
AGAIN = [UNITS, "--last-failed", "--last-failed-no-failures=none"]


def pytest(call: list[str], **environment: str) -> int:
    """The exit code of pytest, called so in the root of the checkout."""
    return subprocess.call(
        [sys.executable, "-m", "pytest", *call],
        cwd=Path(__file__).resolve().parents[1],
        env=os.environ | environment,
    )


def run_all() -> list[int]:
    """The exit codes of all checks and tests; later ones run also after a failure."""
    codes = [checks.main()]
    for call in CALLS:
        codes.append(pytest(call))
        if codes[-1] == 1 and "--assert=plain" in call:
            pytest(AGAIN)
    return codes


def run_as_on_other_processors() -> list[int]:
    """The exit codes with one thread and with two."""
    codes = []
    for threads in ("1", "2"):
        print(f"As on another processor, {threads} thread(s) a process", flush=True)
        environment = {**OTHER_PROCESSOR, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        codes.append(pytest(OTHER_PROCESSOR_TESTS, **environment))
    return codes


def main() -> int:
    """The exit code is the first that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--other-processor",
        action="store_true",
        help="only data, claims and exercises, in the arithmetic of other processors",
    )
    if parser.parse_args().other_processor:
        codes = run_as_on_other_processors()
    else:
        codes = run_all()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
