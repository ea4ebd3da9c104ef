"""How near the time that is said before a run comes to the time that the run takes.

    python tests/benchmarks/cost.py           # 30 methods and settings, those of CHOSEN
    python tests/benchmarks/cost.py SEED      # 30 that are drawn at random

Measures CPU seconds of one thread, so that a busy machine disturbs little; with a card, seconds of the clock.
"""

import os
import random
import sys
import tempfile
import time

import numpy as np
import torch

from fedlab_nb.data import load
from fedlab_nb.methods import METHODS
from fedlab_nb.studies import cost
from fedlab_nb.studies.experiment import iterate_events_of_plans
from fedlab_nb.studies.settings import Settings, make_plans

NEGLIGIBLE = 0.05  # seconds that are added to both times, so that ratios of tiny times stay near 1
CHOSEN = [
    ("fedavg", {"clients": 7}), ("fedavg", {"clients": 40, "alpha": 1, "epochs": 60}), ("ensemble", {"model": "cnn"}),
    ("fens", {"clients": 15, "fens.rounds": 200}), ("fens", {"dataset": "glyphs:16g"}), ("fedlpa", {"clients": 25}),
    ("fedlpa", {"model": "resnet8:8", "clients": 5, "epochs": 5}), ("regmean", {"clients": 30}),
    ("fisher_merge", {"clients": 6}), ("matching", {"clients": 8}), ("fusefl", {"clients": 5}),
    ("fusefl", {"clients": 8, "fusefl.blocks": 1, "epochs": 60}), ("fedet", {"clients": 12}),
    ("fedet", {"fedet.one_shot_steps": 1500}), ("coboosting", {"clients": 6, "coboosting.epochs": 10}),
    ("coboosting", {"model": "vgg11:16", "clients": 2, "epochs": 2, "coboosting.epochs": 2}),
    ("dense", {"clients": 15, "dense.epochs": 12}), ("fadi", {"clients": 5}), ("fdafl", {"fdafl.epochs": 10}),
    ("dense", {"model": "vgg11:16", "clients": 2, "epochs": 2, "dense.epochs": 2}), ("feddf", {"clients": 25}),
    ("fedkd", {"fedkd.epochs": 300}), ("fedkt", {"clients": 5}), ("fedavg_multi", {"fedavg_multi.rounds": 40}),
    ("fedavg", {"model": "vgg11:16", "clients": 2, "epochs": 3}), ("scaffold", {"clients": 5}),
    ("fedavg_multi", {"model": "vgg11:16", "clients": 2, "fedavg_multi.rounds": 2, "fedavg_multi.local_epochs": 1}),
    ("gauss", {"dataset": "glyphs:16g"}), ("deepafl", {"clients": 20}), ("dsfl", {"clients": 6}),
]  # fmt: skip


def measure_run(method: str, settings: dict) -> float:
    """Seconds of a run from an empty store."""
    os.environ["FEDLAB_NB_STORE"] = tempfile.mkdtemp()
    plans = make_plans(Settings.make(**settings), [method])
    load(plans[0].settings.dataset)  # as a panel has done before it says what a run will take
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    for plan in plans:
        start = clock()
        for event in iterate_events_of_plans([plan], True):
            if event.error is not None:
                raise event.error
    return clock() - start


def draw_runs(seed: int) -> list[tuple[str, dict]]:
    """Thirty methods with other clients; two in five also with another network, data set or number of epochs."""
    stream = random.Random(seed)
    methods = list(METHODS)
    stream.shuffle(methods)
    runs = []
    for i, method in enumerate(methods[:30]):
        settings = {
            "clients": stream.choice([3, 5, 8, 12, 18, 30, 45]),
            "alpha": stream.choice([0.05, 0.1, 0.3, 1, 10]),
        }
        epochs = stream.choice([5, 25, 80])
        if i % 6 == 1:
            settings["model"] = "cnn"
        if i % 6 == 3:
            settings["epochs"] = epochs
        if i % 10 == 5:
            settings["dataset"] = "glyphs:16g"
        if i % 10 == 7:
            settings |= {"model": "vgg11:16", "clients": 3, "epochs": 3}
        runs.append((method, settings))
    return runs


def compare_forecasts(runs: list[tuple[str, dict]]) -> None:
    """Print the forecast and the measured time of each run, and how many are within a factor of three."""
    ratios = []
    measure_run("gauss", {})  # what a process does once belongs to no run
    for method, settings in runs:
        forecast = cost.estimate_cost((method, settings)).seconds
        measured = measure_run(method, settings)
        ratio = (forecast + NEGLIGIBLE) / (measured + NEGLIGIBLE)
        ratios.append(ratio)
        times = f"forecast {forecast:.2f} s, measured {measured:.2f} s, ratio {ratio:.2f}"
        print(f"{method:14} {settings}: {times}", flush=True)
    near = sum(1 / 3 <= ratio <= 3 for ratio in ratios)
    print(f"{near} of {len(ratios)} within a factor of three; median {np.median(ratios):.2f}")


if __name__ == "__main__":
    compare_forecasts(draw_runs(int(sys.argv[1])) if sys.argv[1:] else CHOSEN)
