"""How often a run waits for its host: `python tests/benchmarks/transfers.py` prints the table, `--write` keeps it in
RESULTS.md. Counted on the emulated device of `tests/device`, so neither a GPU nor an idle machine is needed; a minute.

`--keep FILE` writes the counts as JSON, `--before FILE` shows those of an earlier commit beside today's.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from unittest import mock

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from device.emulated import NAME, EmulatedDevice  # noqa: E402

from fedlab_nb.methods import METHODS  # noqa: E402
from fedlab_nb.study import run  # noqa: E402

RESULTS = HERE / "RESULTS.md"
TITLE = "## Transfers between host and device"
SETTING = {"dataset": "digits", "clients": 5, "alpha": 0.1, "seed": 0}
COUNTS = ("to_host", "to_device", "launches")


def counted(method: str) -> dict[str, int]:
    """What one whole run of `method` counts, its evaluation and the live curve included."""
    with mock.patch("fedlab_nb.study.settings.resolve_device", str), EmulatedDevice() as device:
        run(method, device=NAME, cache=False, **SETTING)
    return {name: getattr(device, name) for name in COUNTS}


def section(now: dict[str, dict[str, int]], before: dict[str, dict[str, int]]) -> str:
    """The section of RESULTS.md."""
    lines = [
        TITLE,
        "",
        "Of one whole run, data, live curve and evaluation included, on the emulated device (`python "
        "tests/benchmarks/transfers.py`): digits, M = 5, α = 0.1, seed 0, classroom preset. To the host: copies, and "
        "waits for a number (`.item()`, a mask as index). Launches: operations that are no views."
        + (" Before → after." if before else ""),
        "",
        "| method | to the host | to the device | launches |",
        "|---|---|---|---|",
    ]
    for method, counts in now.items():
        cells = [
            f"{before[method][name]:,} → {counts[name]:,}" if method in before else f"{counts[name]:,}"
            for name in COUNTS
        ]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def with_section(text: str, new: str) -> str:
    """`text` with `new` in the place of its section of that title, the last one."""
    return text.partition(TITLE)[0].rstrip() + "\n\n" + new


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=list(METHODS))
    parser.add_argument("--keep", type=Path, help="write the counts here, as JSON")
    parser.add_argument("--before", type=Path, help="counts of an earlier commit")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    now = {}
    for method in options.methods:
        now[method] = counted(method)
        print(method, *now[method].values(), file=sys.stderr, flush=True)
    text = section(now, json.loads(options.before.read_text()) if options.before else {})
    print(text)
    if options.keep:
        options.keep.write_text(json.dumps(now))
    if options.write:
        RESULTS.write_text(with_section(RESULTS.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
