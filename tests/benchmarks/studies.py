"""How fast studies are: two workers against one, clients shared against single runs, and the whole grid.

    python tests/benchmarks/studies.py           # the first two, some minutes
    python tests/benchmarks/studies.py --grid    # all methods, six α, three M, ten seeds: up to an hour

Every timing begins with an empty store. The start of Dask and of its workers is part of the time.
"""

import argparse
import os
import tempfile
import time

import fedlab_nb as fl

ALPHAS, CLIENTS, SEEDS = (0.01, 0.05, 0.1, 0.3, 1.0, 10.0), (5, 10, 20), 10
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
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--grid", action="store_true")
    if options.parse_args().grid:
        axes = {"alpha": list(ALPHAS), "clients": list(CLIENTS)}
        spent = seconds(fl.study, "all", seeds=SEEDS, workers=2, out="results", **axes)
        cells = len(fl.METHODS) * len(ALPHAS) * len(CLIENTS) * SEEDS
        print(f"the whole grid, {cells} cells, two workers: {spent / 60:.1f} min")
        return
    fl.run("ensemble", cache=False)  # what is imported once
    one, two = (seconds(fl.study, MIXED, alpha=[0.1, 1.0], seeds=SEEDS, workers=n, progress=False) for n in (1, 2))
    print(f"{len(MIXED) * 2 * SEEDS} cells: one worker {one:.1f} s, two {two:.1f} s, {one / two:.2f}×")
    single, shared = seconds(one_by_one), seconds(fl.study, SHARING, seeds=SEEDS, progress=False)
    print(f"{len(SHARING) * SEEDS} runs: one by one {single:.1f} s, as a study {shared:.1f} s, {single / shared:.2f}×")


if __name__ == "__main__":
    main()
