"""What a machine keeps besides the tests: `python tests/checks.py` runs each tool once and names those that object.

ruff (lint and format), the rooms of the house (import-linter), types (mypy), notebooks in step with their sources.
Each is configured in pyproject.toml; doctests run with the tests (see tests/everything.txt).
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "import rules": ["lint-imports"],
    "types": ["mypy"],
    "notebooks in step": ["python", "notebooks/make.py", "--check"],
}


def main() -> int:
    """Run all of them side by side, also after one has failed; the exit code is the number that failed."""
    tools, pipes = (
        Path(sys.executable).parent,
        {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT},
    )
    running = {
        name: subprocess.Popen([str(tools / tool), *call], cwd=ROOT, **pipes)
        for name, (tool, *call) in CHECKS.items()
    }
    for process in running.values():
        sys.stdout.buffer.write(process.communicate()[0])
        sys.stdout.flush()
    broken = [name for name, process in running.items() if process.returncode != 0]
    print(
        f"{len(CHECKS) - len(broken)} checks hold"
        + (f"; broken: {', '.join(broken)}" if broken else ""),
        flush=True,
    )
    return len(broken)


if __name__ == "__main__":
    sys.exit(main())
