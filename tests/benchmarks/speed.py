"""How fast the package is: `python tests/benchmarks/speed.py` prints the tables that RESULTS.md keeps.

Local training is measured in four ways: (a) the loop that a PyTorch user writes, and the package's (b) loop, (c) stack
and (d) its own choice of the two. All four train the same clients by the same recipe. They take turns, so that a busy
moment of the machine meets them all; what counts is the ratio within a turn. This is no part of the test suite: it
needs an idle machine and half an hour.
"""

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from statistics import median
from typing import NamedTuple

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import fedlab_nb as fl
from fedlab_nb.models import build
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.training import Recipe, train_clients_in_place
from fedlab_nb.training.backend import find_fastest_backend, use_torch_settings_for_run

VARIANTS = ("plain", "loop", "stacked", "auto")
FOUR = ["fedavg", "ensemble", "fens", "fedlpa"]
MIXED = [*FOUR, "fedet", "coboosting", "fusefl", "dense", "feddf", "fedavg_multi"]
SHARING = [*FOUR, "local", "fisher_merge", "regmean", "fedkd"]  # the same trained clients


class Workload(NamedTuple):
    """A federation and a network whose local training is timed; `options` are those of the data set."""

    name: str
    options: dict
    model: str
    epochs: int
    clients: int
    alpha: float


def list_workloads() -> list[Workload]:
    workloads = []
    for model, clients, alpha in product(("mlp", "cnn"), (5, 20, 50), (0.1, 1)):
        workloads.append(Workload("digits", {}, model, 40, clients, alpha))
    for size, channels in ((28, 1), (32, 3)):
        name = f"glyphs {channels}x{size}x{size}"
        options = {"size": size, "channels": channels}
        for model, epochs in (("cnn", 5), ("resnet8", 1)):
            for clients, alpha in product((10, 20), (0.1, 1)):
                workloads.append(Workload(name, options, model, epochs, clients, alpha))
    return workloads


def measure_seconds(action, device: str = "cpu") -> float:
    start = time.perf_counter()
    action()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def train_in_plain_loop(models: list, shards: list, recipe: Recipe) -> None:
    """(a): a module, a DataLoader and an optimizer for each client, as in a tutorial, with default threads."""
    for model, (x, y) in zip(models, shards, strict=True):
        loader = DataLoader(TensorDataset(x.cpu(), y.cpu()), recipe.batch_size, shuffle=True)
        optimizer = torch.optim.SGD(
            model.parameters(), recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay
        )
        model.train()
        for _ in range(recipe.epochs):
            for images, labels in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(images.to(x.device)), labels.to(x.device)).backward()
                optimizer.step()


def measure_training(work: Workload, options: argparse.Namespace) -> str:
    """A row of the table of local training: medians over the turns, the first of which only warms up."""
    sizes = {"n_train": 2000, "n_test": 10, "n_public": 0} if work.options else {}
    data = fl.load(work.name.split()[0], **work.options, **sizes)
    federation = fl.federate(data, alpha=work.alpha, clients=work.clients, seed=options.seed)
    device = options.device
    shards = []
    for rows in federation.shards:
        shards.append((data.x_train[rows].to(device), data.y_train[rows].to(device)))
    recipe = Recipe(epochs=work.epochs, lr=0.05 if work.model == "mlp" else 0.02)

    def build_networks() -> list:
        networks = []
        for _ in range(work.clients):
            stream = make_torch_generator(options.seed, "init")
            networks.append(build(work.model, data.input_shape, 10, generator=stream).to(device))
        return networks

    def train(variant: str, networks: list) -> None:
        if variant == "plain":
            train_in_plain_loop(networks, shards, recipe)
            return
        with use_torch_settings_for_run(device, data.input_shape):
            train_clients_in_place(networks, shards, recipe, seed=options.seed, backend=variant)

    turns = []
    for _ in range(options.rounds + 1):
        networks = {variant: build_networks() for variant in VARIANTS}
        seconds = []
        for variant in VARIANTS:
            action = functools.partial(train, variant, networks[variant])
            seconds.append(measure_seconds(action, device))
        turns.append(seconds)
    plain, loop, stacked, auto = torch.tensor(turns[1:]).T
    chosen = find_fastest_backend(device, build_networks()[0], data.input_shape, work.clients)
    cells = [
        f"{work.name}, {work.model}, M = {work.clients}, α = {work.alpha:g}",
        str(work.epochs),
        f"{plain.median():.2f} s",
        *(f"{(plain / other).median():.1f}×" for other in (loop, stacked, auto)),
        chosen,
        f"{(loop / auto).median():.2f}×",
    ]
    return "| " + " | ".join(cells) + " |"


def measure_figures(options: argparse.Namespace):
    """(what, measured, target): growth with M, comparisons, single phases, whole runs, studies."""
    common = {"seed": options.seed, "cache": False, "device": options.device}

    def repeat(measure) -> float:
        return median(measure() for _ in range(options.rounds))

    def measure_local_training(clients: int) -> float:
        return fl.run("local", clients=clients, **common).seconds_local

    def measure_run(method: str) -> float:
        return measure_seconds(lambda: fl.run(method, **common))

    fl.run("fens", epochs=1, **common)  # first uses, imports
    five = repeat(lambda: measure_local_training(5))
    fifty = repeat(lambda: measure_local_training(50))
    yield "local training from M = 5 to M = 50, digits", f"{fifty / five:.2f}×", "≤ 1.5×"
    together = repeat(lambda: measure_seconds(lambda: fl.compare(FOUR, **common)))
    alone = max(repeat(functools.partial(measure_run, method)) for method in FOUR)
    yield "compare of four methods against the slowest alone", f"{together / alone:.2f}×", "≤ 1.5×"
    phase = repeat(lambda: fl.run("fens", rounds=500, **common).seconds["aggregator"])
    yield "FENS phase 2, 500 rounds, M = 10, digits", f"{phase:.2f} s", "≤ 0.5 s"
    for dataset, limit in (("digits", 1), ("glyphs:28g", 15)):
        for method in ("dense", "coboosting"):
            whole = sum(fl.run(method, dataset=dataset, **common).seconds.values())
            yield f"a whole run of {method}, {dataset}, M = 10", f"{whole:.1f} s", f"≤ {limit} s"
    command = [sys.executable, "-m", "fedlab_nb", "run", "all"]
    command += ["--no-cache", "--json", "--device", options.device]
    cold = measure_seconds(lambda: subprocess.run(command, capture_output=True, check=True))
    yield (
        "every method, digits, M = 10, one after the other, cold, start of Python included",
        f"{cold:.1f} s",
        "≤ 60 s",
    )

    def measure_study(methods: list[str], **settings) -> float:
        with tempfile.TemporaryDirectory() as store:  # an empty one
            os.environ["FEDLAB_NB_STORE"] = store
            return measure_seconds(lambda: fl.study(methods, progress=False, seeds=10, **settings))

    one = measure_study(MIXED, alpha=[0.1, 1.0], workers=1)
    two = measure_study(MIXED, alpha=[0.1, 1.0], workers=2)
    yield (
        "200 cells of ten methods, two workers against one",
        f"{one:.1f} s → {two:.1f} s, {one / two:.2f}×",
        "≥ 1.6×",
    )

    def run_one_by_one() -> None:
        for seed, method in product(range(10), SHARING):
            fl.run(method, seed=seed, cache=False)

    single = measure_seconds(run_one_by_one)
    shared = measure_study(SHARING)
    what = "80 runs of eight methods that start from the same clients: a study against one by one"
    yield what, f"{single:.1f} s → {shared:.1f} s, {single / shared:.2f}×", "≥ 3×"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name begins so")
    parser.add_argument("--rounds", type=int, default=3, help="turns that are timed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPU cores, {options.device}; torch {torch.__version__}\n")
    print(
        "| workload | epochs | (a) | (b) loop | (c) stacked | (d) auto | chosen | auto over loop |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for work in list_workloads():
        if work.name.startswith(options.only):
            print(measure_training(work, options), flush=True)
    if not options.only:
        print("\n| figure | measured | target |\n|---|---|---|")
        for row in measure_figures(options):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
