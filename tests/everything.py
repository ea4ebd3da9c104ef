"""All tests, as the README's command runs them.

    python tests/everything.py                     # every test
    python tests/everything.py --other-processor   # data, claims and exercises, as on other processors

First the checks of `checks.py` (lint, format, import rules, types). Then three calls of pytest. The first takes unit
tests, doctests, claims over seeds and the notebooks (`tests/everything.txt`), a file at a time on each core; the second
the browser scenarios, two at once; the third those that watch the clock, alone.

The first call does without what costs each of its processes seconds: assertions stay as they are (`--assert=plain`, to
rewrite 4,900 of them takes ten), Hypothesis' plugin, which only adds to what a failure prints, is off, and see
`quick.py`.

What fails is run once more, one test at a time and with all that, to show the values that it compares: on a machine
that others use, a click or a measurement can be held up, and a port can be taken. What fails twice fails; what passes
the second time is named as unsteady.

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
# "auto" would count a core with two threads as one
ON_EACH_CORE = ["-n", "logical", "--maxprocesses", "4"]
# the order as collected keeps the longest files from being last
UNIT_CALL = [UNITS, *QUICK, *ON_EACH_CORE, "--dist", "loadfile", "--no-loadscope-reorder"]
BROWSER_CALL = [
    "tests/browser",
    *BROWSER,
    "-n",
    "2",
    "--dist",
    "worksteal",
    f"--ignore={FEEL}",
    "--durations=5",
]
FEEL_CALL = [FEEL, *BROWSER]
# Where what is tested or taught rests on data and on runs of methods.
OTHER_PROCESSOR_TESTS = [
    "tests/data",
    "tests/course",
    "tests/methods/test_claims.py",
    "-m",
    "not browser and not gpu",
    *QUICK,
]
ONLY_FAILED = ["--last-failed", "--last-failed-no-failures=none"]


def pytest(call: list[str], **environment: str) -> int:
    """The exit code of pytest, called so in the root of the checkout."""
    return subprocess.call(
        [sys.executable, "-m", "pytest", *call],
        cwd=Path(__file__).resolve().parents[1],
        env=os.environ | environment,
    )


def pytest_and_failed_again(call: list[str], with_details: list[str], **environment: str) -> int:
    """The exit code of this call; if tests fail, that of them alone, one at a time: 0 if all pass then.

    with_details: the same call without what leaves details of a failure out, and on one core
    """
    code = pytest(call, **environment)
    if code != 1:
        return code
    print("What failed, once more and one at a time:", flush=True)
    code = pytest([*with_details, *ONLY_FAILED, "--verbose"], **environment)
    if code == 0:
        print("UNSTEADY: the tests above failed once and passed once; mend them.", flush=True)
    return code


def run_all() -> list[int]:
    """The exit codes of all checks and tests; later ones run also after a failure."""
    browser_with_details = ["tests/browser", *BROWSER]
    return [
        checks.main(),
        pytest_and_failed_again(UNIT_CALL, [UNITS]),
        pytest_and_failed_again(BROWSER_CALL, browser_with_details),
        pytest_and_failed_again(FEEL_CALL, browser_with_details),
    ]


def run_as_on_other_processors() -> list[int]:
    """The exit codes with one thread and with two."""
    codes = []
    for threads in ("1", "2"):
        print(f"As on another processor, {threads} thread(s) a process", flush=True)
        environment = {**OTHER_PROCESSOR, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        call = [*OTHER_PROCESSOR_TESTS, *ON_EACH_CORE, "--dist", "worksteal", "--durations=5"]
        codes.append(pytest_and_failed_again(call, OTHER_PROCESSOR_TESTS, **environment))
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
