"""How near the time that is said before a run comes to the time that the run takes.

python tests/benchmarks/cost.py           30 methods and settings, those of OTHER
python tests/benchmarks/cost.py SEED      30 that are drawn
CPU seconds of one thread, so that a busy machine disturbs little, or seconds of the clock on a card.
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

SMALL = 0.05  # seconds that nobody waits for: errors are relative to what comes on top of them
OTHER = [
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


def taken(method: str, settings: dict) -> float:
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


def drawn(seed: int) -> list[tuple[str, dict]]:
    """Thirty methods; two in five with another network, data set or number of passes, all with other clients."""
    r, names, asked = random.Random(seed), [*METHODS], list[tuple[str, dict]]()
    r.shuffle(names)
    for i, name in enumerate(names[:30]):
        own = {
            "clients": r.choice([3, 5, 8, 12, 18, 30, 45]),
            "alpha": r.choice([0.05, 0.1, 0.3, 1, 10]),
        }
        own |= {1: {"model": "cnn"}, 3: {"epochs": r.choice([5, 25, 80])}}.get(i % 6, {})
        own |= {
            5: {"dataset": "glyphs:16g"},
            7: {"model": "vgg11:16", "clients": 3, "epochs": 3},
        }.get(i % 10, {})
        asked.append((name, own))
    return asked


def check(asked: list[tuple[str, dict]]) -> None:
    ratios = []
    taken("gauss", {})  # what a process does once is no run's
    for method, settings in asked:
        said, took = cost.estimate_cost((method, settings)).seconds, taken(method, settings)
        ratios.append((said + SMALL) / (took + SMALL))
        print(
            f"{method:14} {settings}: said {said:.2f} s, took {took:.2f} s, ratio {ratios[-1]:.2f}",
            flush=True,
        )
    near = sum(1 / 3 <= ratio <= 3 for ratio in ratios)
    print(f"{near} of {len(ratios)} within a factor of three; median {np.median(ratios):.2f}")


if __name__ == "__main__":
    check(drawn(int(sys.argv[1])) if sys.argv[1:] else OTHER)
