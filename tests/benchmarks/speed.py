"""How fast it is, measured: `python tests/benchmarks/speed.py` prints the table, `--write` keeps it in RESULTS.md.

Ratios are taken within one run, where the variants take turns; seconds are medians. It is not part of the test suite:
an idle machine is needed, and a quarter of an hour.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from datetime import date
from pathlib import Path

import torch
from figures import figures
from training import WORKLOADS, measure

RESULTS = Path(__file__).with_name("RESULTS.md")
HAND = "## Hand-written CPU paths"  # from this heading on RESULTS.md is written by hand
TARGETS = {("digits", 20): 5.0, ("digits", 50): 8.0}  # auto against the plain loop
LARGE = 1.4  # for 28x28 and larger on a CPU, and never slower than the loop backend
SHORT = 4  # rounds more for digits, whose trainings last a tenth of a second or two


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, few workloads")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2000, help="training samples of the glyph workloads")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    device = ("cuda" if torch.cuda.is_available() else "cpu") if options.device == "auto" else options.device
    lines = list(table(options, device))
    if options.write:
        text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
        rest = text[text.index(HAND) :] if HAND in text else ""  # what this program does not measure
        RESULTS.write_text("\n".join(lines) + "\n\n" + rest, encoding="utf-8")
    return 0


def table(options: argparse.Namespace, device: str):
    """The lines of the report, printed as they come."""

    def say(line: str) -> str:
        print(line, flush=True)
        return line

    rounds = 1 if options.quick else options.rounds
    yield say("# Measured speed\n")
    yield say(
        f"{machine(device)}. {date.today().isoformat()}, `python tests/benchmarks/speed.py --seed {options.seed}`.\n"
    )
    yield say("## Local training\n")
    yield say(
        "(a) a module, DataLoader and optimizer a client, as in a tutorial; (b) the package's loop; (c) its stack; "
        "(d) what `auto` chose. Seconds are (a)'s; the columns are (a)'s time over theirs, so larger is faster.\n"
    )
    yield say("| workload | epochs | (a) | (b) loop | (c) stacked | (d) auto | chosen | auto over loop | target |")
    yield say("|---|---|---|---|---|---|---|---|---|")
    for work in WORKLOADS:
        if options.only not in work.name or (options.quick and work.alpha != 0.1):
            continue
        turns = rounds if work.size or options.quick else rounds + SHORT
        measured = measure(work, seed=options.seed, rounds=turns, samples=options.samples, device=device)
        yield say(row(work, measured))
    if not options.only:
        yield say("\n## Other figures\n\n| figure | measured | target | met |\n|---|---|---|---|")
        for name, value, target, met in figures(options.seed, rounds, device):
            yield say(f"| {name} | {value} | {target} | {'yes' if met else 'no'} |")


def row(work, measured: dict) -> str:
    times, auto = measured["ratios"], measured["ratios"]["auto"]
    if work.size:
        met = auto >= LARGE and measured["against_loop"] >= 0.97
        target = f"≥ {LARGE}×, not below loop: {'yes' if met else 'no'}"
    else:
        wanted = TARGETS.get((work.dataset, work.clients))
        target = "" if wanted is None else f"≥ {wanted:g}×: {'yes' if auto >= wanted else 'no'}"
    cells = [
        work.name, str(measured["epochs"]), f"{measured['seconds']['plain']:.2f} s", f"{times['loop']:.1f}×",
        f"{times['stacked']:.1f}×", f"**{auto:.1f}×**", measured["chosen"], f"{measured['against_loop']:.2f}×", target,
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def machine(device: str) -> str:
    """The machine in words."""
    cores = os.cpu_count()
    card = f", {torch.cuda.get_device_name()}" if device.startswith("cuda") else ", no GPU used"
    return (
        f"{cores} CPU cores ({platform.machine()}){card}; Python {platform.python_version()}, torch {torch.__version__}"
    )


if __name__ == "__main__":
    sys.exit(main())
