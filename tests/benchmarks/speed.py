"""How fast it is, measured: `python tests/benchmarks/speed.py` prints the tables that RESULTS.md keeps.

Local training is that of (a) the loop that a PyTorch user writes, the package's (b) loop, (c) stack and (d) own choice.
All four train the same clients by the same recipe, and take turns, so that a busy moment of the machine meets them all;
what counts is the ratio within a round. It is no part of the test suite: an idle machine is needed, and half an hour.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from statistics import median

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import fedlab_nb as fl
from fedlab_nb.models import build
from fedlab_nb.rng import generator
from fedlab_nb.training import Recipe, train_clients
from fedlab_nb.training.backend import configure_torch, find_fastest_backend

VARIANTS = ("plain", "loop", "stacked", "auto")
DIGITS = [
    ("digits", {}, model, 40, m, a)
    for model, m, a in product(("mlp", "cnn"), (5, 20, 50), (0.1, 1))
]
GLYPHS = [
    (f"glyphs {channels}x{size}x{size}", {"size": size, "channels": channels}, model, epochs, m, a)
    for (size, channels), (model, epochs), m, a in product(
        ((28, 1), (32, 3)), (("cnn", 5), ("resnet8", 1)), (10, 20), (0.1, 1)
    )
]
FOUR = ["fedavg", "ensemble", "fens", "fedlpa"]
MIXED = [*FOUR, "fedet", "coboosting", "fusefl", "dense", "feddf", "fedavg_multi"]
SHARING = [*FOUR, "local", "fisher_merge", "regmean", "fedkd"]  # the same trained clients


def seconds_of(action, device: str = "cpu") -> float:
    start = time.perf_counter()
    action()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def plain_loop(models: list, shards: list, recipe: Recipe) -> None:
    """(a): a module, DataLoader and optimizer a client, as in a tutorial, with default threads."""
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


def training_row(work: tuple, o: argparse.Namespace) -> str:
    """A row of the table of local training: medians over the rounds, the first of which only warms up."""
    name, options, model, epochs, clients, alpha = work
    sizes = {"n_train": 2000, "n_test": 10, "n_public": 0} if options else {}
    data = fl.load(name.split()[0], **options, **sizes)
    fed = fl.federate(data, alpha=alpha, clients=clients, seed=o.seed)
    shards = [
        (data.x_train[rows].to(o.device), data.y_train[rows].to(o.device)) for rows in fed.shards
    ]
    recipe = Recipe(epochs=epochs, lr=0.05 if model == "mlp" else 0.02)

    def fresh() -> list:
        made = (
            build(model, data.input_shape, 10, generator=generator(o.seed, "init"))
            for _ in range(clients)
        )
        return [network.to(o.device) for network in made]

    def train(variant: str, models: list) -> None:
        if variant == "plain":
            return plain_loop(models, shards, recipe)
        with configure_torch(o.device, data.input_shape):
            return list(train_clients(models, shards, recipe, seed=o.seed, backend=variant))

    turns = []
    for _ in range(o.rounds + 1):
        ready = {variant: fresh() for variant in VARIANTS}
        turns.append([seconds_of(lambda v=v, m=m: train(v, m), o.device) for v, m in ready.items()])
    plain, loop, stacked, auto = torch.tensor(turns[1:]).T
    ratios = [f"{(plain / other).median():.1f}×" for other in (loop, stacked, auto)]
    chosen = find_fastest_backend(o.device, fresh()[0], data.input_shape, clients)
    cells = [
        f"{name}, {model}, M = {clients}, α = {alpha:g}",
        epochs,
        f"{plain.median():.2f} s",
        *ratios,
        chosen,
    ]
    return "| " + " | ".join(map(str, [*cells, f"{(loop / auto).median():.2f}×"])) + " |"


def figures(o: argparse.Namespace):
    """(what, measured, target): growth with M, comparisons, single phases, whole runs, studies."""
    same = {"seed": o.seed, "cache": False, "device": o.device}

    def often(action) -> float:
        return median(action() for _ in range(o.rounds))

    fl.run("fens", epochs=1, **same)  # first uses, imports
    five, fifty = (
        often(lambda m=m: fl.run("local", clients=m, **same).seconds_local) for m in (5, 50)
    )
    yield "local training from M = 5 to M = 50, digits", f"{fifty / five:.2f}×", "≤ 1.5×"
    together = often(lambda: seconds_of(lambda: fl.compare(FOUR, **same)))
    alone = max(often(lambda m=m: seconds_of(lambda: fl.run(m, **same))) for m in FOUR)
    yield "compare of four methods against the slowest alone", f"{together / alone:.2f}×", "≤ 1.5×"
    phase = often(lambda: fl.run("fens", rounds=500, **same).seconds["aggregator"])
    yield "FENS phase 2, 500 rounds, M = 10, digits", f"{phase:.2f} s", "≤ 0.5 s"
    for dataset, limit in (("digits", 1), ("glyphs:28g", 15)):
        for method in ("dense", "coboosting"):
            whole = sum(fl.run(method, dataset=dataset, **same).seconds.values())
            yield f"a whole run of {method}, {dataset}, M = 10", f"{whole:.1f} s", f"≤ {limit} s"
    command = [
        sys.executable,
        "-m",
        "fedlab_nb",
        "run",
        "all",
        "--no-cache",
        "--json",
        "--device",
        o.device,
    ]
    cold = seconds_of(lambda: subprocess.run(command, capture_output=True, check=True))
    yield (
        "every method, digits, M = 10, one after the other, cold, start of Python included",
        f"{cold:.1f} s",
        "≤ 60 s",
    )

    def study(methods: list[str], **settings) -> float:
        with tempfile.TemporaryDirectory() as store:  # an empty one
            os.environ["FEDLAB_NB_STORE"] = store
            return seconds_of(lambda: fl.study(methods, progress=False, seeds=10, **settings))

    one, two = (study(MIXED, alpha=[0.1, 1.0], workers=n) for n in (1, 2))
    yield (
        "200 cells of ten methods, two workers against one",
        f"{one:.1f} s → {two:.1f} s, {one / two:.2f}×",
        "≥ 1.6×",
    )
    single = seconds_of(
        lambda: [fl.run(m, seed=s, cache=False) for s in range(10) for m in SHARING]
    )
    shared = study(SHARING)
    what = "80 runs of eight methods that start from the same clients: a study against one by one"
    yield what, f"{single:.1f} s → {shared:.1f} s, {single / shared:.2f}×", "≥ 3×"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name begins so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    o = parser.parse_args()
    print(f"{os.cpu_count()} CPU cores, {o.device}; torch {torch.__version__}\n")
    print(
        "| workload | epochs | (a) | (b) loop | (c) stacked | (d) auto | chosen | auto over loop |\n|"
        + "---|" * 8
    )
    for work in (*DIGITS, *GLYPHS):
        if work[0].startswith(o.only):
            print(training_row(work, o), flush=True)
    if not o.only:
        print("\n| figure | measured | target |\n|---|---|---|")
        for row in figures(o):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
