"""Run the tools that check the code without running it: `python tests/checks.py` names those that fail.

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
    """Run all of them side by side; the exit code is the number of those that failed."""
    folder = Path(sys.executable).parent
    processes = {}
    for name, (tool, *arguments) in CHECKS.items():
        processes[name] = subprocess.Popen(
            [str(folder / tool), *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    broken = []
    for name, process in processes.items():
        output, _ = process.communicate()
        sys.stdout.buffer.write(output)
        sys.stdout.flush()
        if process.returncode != 0:
            broken.append(name)
    print(f"{len(CHECKS) - len(broken)} checks hold", flush=True)
    if broken:
        print(f"broken: {', '.join(broken)}", flush=True)
    return len(broken)


if __name__ == "__main__":
    sys.exit(main())
