"""The other figures of the table: growth with M, comparisons, single phases, every method."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from statistics import median

from fedlab_nb.studies import compare, run

FOUR = ["fedavg", "ensemble", "fens", "fedlpa"]


def seconds_of(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def figures(seed: int, rounds: int, device: str) -> Iterator[tuple[str, str, str, bool]]:
    """(what, value, target, met) one after the other."""
    same = {"seed": seed, "cache": False, "device": device}
    run("fens", epochs=1, **same)  # first uses, imports
    five, fifty = (median(run("local", clients=m, **same).seconds_local for _ in range(rounds)) for m in (5, 50))
    yield "local training from M = 5 to M = 50, digits", f"{fifty / five:.2f}×", "≤ 1.5×", fifty / five <= 1.5
    ratios = []
    for _ in range(rounds):
        together = seconds_of(lambda: compare(FOUR, **same))
        alone = max(seconds_of(lambda method=method: run(method, **same)) for method in FOUR)
        ratios.append(together / alone)
    yield "compare of four methods against the slowest alone", f"{median(ratios):.2f}×", "≤ 1.5×", median(ratios) <= 1.5
    fens = median(run("fens", rounds=500, **same).seconds["aggregator"] for _ in range(rounds))
    yield "FENS phase 2, 500 rounds, M = 10, digits", f"{fens:.2f} s", "≤ 0.5 s", fens <= 0.5
    spent = [run("fedlpa", **same).seconds for _ in range(rounds)]
    lpa = median(sum(s.get(p, 0) for p in ("factor pass", "solve", "server")) for s in spent)
    yield "FedLPA factors and exact solve, M = 10, digits", f"{lpa:.2f} s", "≤ 0.3 s", lpa <= 0.3
    one = median(seconds_of(lambda: compare(["local"], seeds=1, **same)) for _ in range(rounds))
    band = median(seconds_of(lambda: compare(["local"], seeds=5, **same)) for _ in range(rounds))
    share = band / one / 5
    name = "clients of five seeds against five times one seed"
    yield name, f"{share:.2f}×", "far below 1 (at most 0.5)", share <= 0.5
    yield from classroom(seed, rounds, device)
    yield from every_method(seed, device)


def classroom(seed: int, rounds: int, device: str) -> Iterator[tuple[str, str, str, bool]]:
    """How long a class waits, nothing remembered: clients on letters, and whole runs of the searches for images."""
    same = {"seed": seed, "cache": False, "device": device, "clients": 10}
    letters = run("local", dataset="glyphs:16g", **same)
    name = "local training, glyphs:16g, M = 10, cnn, classroom"
    yield name, f"{letters.seconds_local:.1f} s", "≤ 2.5 s", letters.seconds_local <= 2.5
    for dataset, limit in (("digits", 1), ("glyphs:28g", 15)):
        for method in ("dense", "coboosting"):
            times = rounds if dataset == "digits" else 1
            seconds = median(sum(run(method, dataset=dataset, **same).seconds.values()) for _ in range(times))
            yield f"a whole run of {method}, {dataset}, M = 10", f"{seconds:.1f} s", f"≤ {limit} s", seconds <= limit


def every_method(seed: int, device: str) -> Iterator[tuple[str, str, str, bool]]:
    """`run all --no-cache` in a fresh process: the whole call, and the slowest method in it."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-m", "fedlab_nb", "run", "all", "--no-cache", "--json", "--seed", str(seed)]
        start = time.perf_counter()
        environment = {**os.environ, "FEDLAB_NB_STORE": store}
        answer = subprocess.run([*command, "--device", device], env=environment, capture_output=True, check=True)
        whole = time.perf_counter() - start
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    slow = max(rows, key=lambda row: row["seconds_total"])
    name = f"every method ({len(rows)}), digits, M = 10, one after the other, cold, start of Python included"
    yield name, f"{whole:.1f} s", "≤ 60 s", whole <= 60
    slowest = f"{slow['seconds_total']:.1f} s ({slow['method']})"
    yield "the slowest of them, its share of local training included", slowest, "≤ 8 s", slow["seconds_total"] <= 8
