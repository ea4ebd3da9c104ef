"""How fast studies are: two workers against one, and clients shared against single runs.

    python tests/benchmarks/studies.py           # some minutes

Every timing begins with an empty store. The start of Dask and of its workers is part of the time.
"""

import os
import tempfile
import time

import fedlab_nb as fl

SEEDS = 10
MIXED = ["fens", "fedet", "coboosting", "fusefl", "fedlpa", "fedavg", "ensemble", "dense", "feddf", "fedavg_multi"]
SHARING = ["local", "fedavg", "ensemble", "fens", "fedlpa", "fisher_merge", "regmean", "fedkd"]  # the same clients


def seconds(work, *arguments, **settings) -> float:
    """Of `work(...)` with an empty store."""
    with tempfile.TemporaryDirectory() as store:
        os.environ["FEDLAB_NB_STORE"] = store
        start = time.perf_counter()
        work(*arguments, **settings)
        return time.perf_counter() - start


def one_by_one() -> None:
    """The runs of SHARING, none of which knows of the others."""
    for seed in range(SEEDS):
        for method in SHARING:
            fl.run(method, seed=seed, cache=False)


def main() -> None:
    fl.run("ensemble", cache=False)  # what is imported once
    one, two = (seconds(fl.study, MIXED, alpha=[0.1, 1.0], seeds=SEEDS, workers=n, progress=False) for n in (1, 2))
    print(f"{len(MIXED) * 2 * SEEDS} cells: one worker {one:.1f} s, two {two:.1f} s, {one / two:.2f}×")
    single, shared = seconds(one_by_one), seconds(fl.study, SHARING, seeds=SEEDS, progress=False)
    print(f"{len(SHARING) * SEEDS} runs: one by one {single:.1f} s, as a study {shared:.1f} s, {single / shared:.2f}×")


if __name__ == "__main__":
    main()
