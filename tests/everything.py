"""Run all checks and tests.

    python tests/everything.py                     # every test
    python tests/everything.py --other-processor   # data, claims and exercises, as on other processors

First the checks of `checks.py` (lint, format, import rules, types), then three calls of pytest. The first runs unit
tests, doctests, claims over seeds and the notebooks (`tests/everything.txt`), with a process on each core; the second
the browser scenarios, two at once; the third the scenarios that measure times, alone.

The first call leaves out what costs each process seconds: pytest does not rewrite assertions (`--assert=plain`; there
are thousands), Hypothesis' plugin, which only adds to the report of a failure, is off, and see `quick.py`.

Tests that fail run once more, one at a time and with all this, to show the values that they compare: on a machine that
others use, a click or a measurement can be delayed, and a port can be taken. A test that fails twice fails; one that
passes the second time is reported as unsteady.

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

UNITS = "@tests/everything.txt"
FEEL = "tests/browser/test_feel.py"
QUICK = ["--assert=plain", "-p", "no:hypothesispytest", "-p", "tests.quick"]
BROWSER = ["-m", "browser and not slow", *QUICK[1:]]
# "auto" would count a core with two threads as one.
ON_EACH_CORE = ["-n", "logical", "--maxprocesses", "4"]
# In the order of collection the longest files are not the last.
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
# The tests whose results depend on data and on runs of methods.
OTHER_PROCESSOR_TESTS = [
    "tests/data",
    "tests/course",
    "tests/methods/test_claims.py",
    "-m",
    "not browser and not gpu",
    *QUICK,
]
ONLY_FAILED = ["--last-failed", "--last-failed-no-failures=none"]


def run_pytest(call: list[str], **environment: str) -> int:
    """Run pytest with these arguments in the root of the checkout; returns its exit code."""
    return subprocess.call(
        [sys.executable, "-m", "pytest", *call],
        cwd=Path(__file__).resolve().parents[1],
        env=os.environ | environment,
    )


def run_pytest_and_repeat_failures(
    call: list[str], call_with_details: list[str], **environment: str
) -> int:
    """Run pytest; if tests fail, run these once more, one at a time. Returns the last exit code.

    call_with_details: the same tests on one core, without the options that shorten the report of a failure
    """
    code = run_pytest(call, **environment)
    if code != 1:
        return code
    print("The failed tests once more, one at a time:", flush=True)
    code = run_pytest([*call_with_details, *ONLY_FAILED, "--verbose"], **environment)
    if code == 0:
        print("UNSTEADY: the tests above failed once and passed once; mend them.", flush=True)
    return code


def run_all() -> list[int]:
    """The exit codes of all checks and tests; a failure does not keep the others from running."""
    browser_with_details = ["tests/browser", *BROWSER]
    return [
        checks.main(),
        run_pytest_and_repeat_failures(UNIT_CALL, [UNITS]),
        run_pytest_and_repeat_failures(BROWSER_CALL, browser_with_details),
        run_pytest_and_repeat_failures(FEEL_CALL, browser_with_details),
    ]


def run_as_on_other_processors() -> list[int]:
    """The exit codes with one thread and with two."""
    codes = []
    for threads in ("1", "2"):
        print(f"As on another processor, {threads} thread(s) a process", flush=True)
        environment = {**OTHER_PROCESSOR, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        call = [*OTHER_PROCESSOR_TESTS, *ON_EACH_CORE, "--dist", "worksteal", "--durations=5"]
        codes.append(run_pytest_and_repeat_failures(call, OTHER_PROCESSOR_TESTS, **environment))
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
