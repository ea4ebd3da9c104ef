"""What a card does with the papers' set-ups at full size: `python tests/benchmarks/card.py [--images N]`.

Two tables for RESULTS.md. The first: a step of local training of all clients together, for the networks of the
papers, by each way of training, beside the card's own matrix products. The second: each paper's system on N
images of 3x32x32 drawn from `glyphs`, with the paper's networks, clients and recipe, for a part of its epochs and
rounds; from the times of two or three lengths the minutes of the whole are reckoned. Needs an idle CUDA card.
"""

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import fedlab_nb as fl
from fedlab_nb.models import build
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.training import (
    Recipe,
    iterate_training_of_clients_in_place,
    stacked,
    train_clients_in_place,
)
from fedlab_nb.training.backend import count_multiply_adds_per_sample, use_torch_settings_for_run

SHAPE = (3, 32, 32)
STEPS = 20  # of each client in the epoch that is timed
NETWORKS = [
    # paper's network, width, clients, batch
    ("mlp", None, 10, 32),
    ("cnn", None, 10, 64),
    ("resnet8", None, 10, 32),
    ("vgg9", None, 10, 32),
    ("cnn3", None, 10, 32),
    ("cnn3", None, 10, 128),
    ("resnet8", 128, 20, 16),
    ("vgg9", 78, 10, 64),
    ("resnet18", 64, 5, 128),
]
WAYS = {
    "loop": ("loop", "float32"),
    "stack": ("stacked", "float32"),
    "auto": ("auto", "float32"),
    "auto, bf16": ("auto", "bf16"),
}


def time_of(action, repeats: int = 5) -> float:
    """Seconds of one call, of the card's work, too."""
    for _ in range(2):
        action()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        action()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def print_ceilings() -> None:
    """The card's matrix products of 8192x8192 random numbers."""
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        left = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        right = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        seconds = time_of(lambda left=left, right=right: left @ right)
        print(f"matrix product, {name}: {2 * 8192**3 / seconds / 1e12:.0f} TFLOP/s")


def operations_of_a_step(model: torch.nn.Module, batch: int) -> int:
    """Floating-point operations of forward and backward pass on one batch."""
    images = torch.rand(batch, *SHAPE, device="cuda")
    labels = torch.zeros(batch, dtype=torch.long, device="cuda")
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model.train()(images), labels).backward()
    return counter.get_total_flops()


def seconds_of_a_step(
    name: str, width: int | None, clients: int, batch: int, way: str, precision: str
) -> float:
    """A step of all clients, in the second epoch of a training: the first one warms up."""
    samples = batch * STEPS
    models = []
    shards = []
    for k in range(clients):
        model = build(name, SHAPE, 10, width=width, generator=make_torch_generator(0, "init", k))
        models.append(model.cuda())
        images = torch.rand(samples, *SHAPE, device="cuda")
        shards.append((images, torch.randint(0, 10, (samples,), device="cuda")))
    recipe = Recipe(epochs=2, batch_size=batch, lr=0.01, precision=precision)
    reached = [0.0, 0.0, 0.0]
    with use_torch_settings_for_run("cuda", SHAPE):
        for tick in iterate_training_of_clients_in_place(
            models, shards, recipe, seed=0, backend=way
        ):
            if reached[tick.done] == 0 and tick.done > 0:
                torch.cuda.synchronize()
                reached[tick.done] = time.perf_counter()
    return (reached[2] - reached[1]) / STEPS


def print_rates() -> None:
    """The first table."""
    print("\n| network (million multiplications a sample) | clients, batch | " + " | ".join(WAYS))
    for name, width, clients, batch in NETWORKS:
        model = build(name, SHAPE, 10, width=width).cuda()
        million = count_multiply_adds_per_sample(model, SHAPE) / 1e6
        operations = clients * operations_of_a_step(model, batch)
        cells = []
        for way, precision in WAYS.values():
            seconds = seconds_of_a_step(name, width, clients, batch, way, precision)
            cells.append(f"{1000 * seconds:.2f} ms, {operations / seconds / 1e12:.1f}")
            torch.cuda.empty_cache()
        label = name if width is None else f"{name}:{width}"
        print(f"| {label} ({million:.1f}) | {clients}, {batch} | " + " | ".join(cells) + " |")
        sys.stdout.flush()


def print_short_trainings() -> None:
    """Whole local trainings of digits, where launches are most of the time: with recorded gradients and without."""
    data = fl.load("digits")
    print("\n| digits, 40 epochs, α = 0.1 | launched | recorded |")
    for name, clients in (("mlp", 10), ("mlp", 50), ("cnn", 10), ("cnn", 50)):
        federation = fl.federate(data, alpha=0.1, clients=clients, seed=0)
        shards = []
        for rows in federation.shards:
            shards.append((data.x_train[rows].cuda(), data.y_train[rows].cuda()))
        cells = []
        for records in (False, True):
            original = stacked.can_record_cuda_graph
            if not records:
                stacked.can_record_cuda_graph = lambda device, model: False
            best = float("inf")
            for _ in range(3):
                models = []
                for k in range(clients):
                    model = build(
                        name, data.input_shape, 10, generator=make_torch_generator(0, "init", k)
                    )
                    models.append(model.cuda())
                torch.cuda.synchronize()
                start = time.perf_counter()
                with use_torch_settings_for_run("cuda", data.input_shape):
                    train_clients_in_place(models, shards, Recipe(epochs=40, lr=0.02), seed=0)
                torch.cuda.synchronize()
                best = min(best, time.perf_counter() - start)
            stacked.can_record_cuda_graph = original
            cells.append(f"{best:.2f} s")
        print(f"| {name}, M = {clients} | " + " | ".join(cells) + " |", flush=True)


# ------------------------------------------------------------------------------------------------ whole systems
def load_piece(seed: int, images: int) -> tuple[np.ndarray, np.ndarray]:
    torch.set_num_threads(1)
    data = fl.load("glyphs", size=32, channels=3, n_train=images, n_test=10, n_public=0, seed=seed)
    return data.x_train.numpy(), data.y_train.numpy()


def load_images(count: int, workers: int) -> dict[str, np.ndarray]:
    """`count` letters for training and a tenth of it for testing, drawn by several processes."""
    piece = -(-11 * count // (10 * workers))
    with ProcessPoolExecutor(workers) as pool:
        pieces = list(pool.map(load_piece, range(workers), [piece] * workers))
    x = np.concatenate([images for images, _ in pieces])
    y = np.concatenate([labels for _, labels in pieces])
    tests = len(x) - count
    return {
        "x_train": x[tests:],
        "y_train": y[tests:],
        "x_test": x[:tests],
        "y_test": y[:tests],
    }


# Of each system: the lengths that are measured, and how the work grows with them. The last is the paper's.
def square_sum(epochs: int) -> list[float]:
    """A pool that grows by a batch an epoch: work a batch of epochs, and a batch of all that is there."""
    return [1, epochs, epochs * (epochs + 1) / 2]


def straight(length: int) -> list[float]:
    return [1, length]


SYSTEMS = {
    "fens": ("fens.rounds", (5, 25, 500), straight, 500),
    "fedet": ("fedet.rounds", (2, 4, 230), straight, 0),
    "coboosting": ("coboosting.epochs", (4, 10, 24, 500), square_sum, 300),
    "fusefl": ("epochs", (2, 4, 200), straight, 0),
    "fedlpa": ("fedlpa.iterations", (100, 600, 10_000), straight, 200),
}


def seconds_of_run(method: str, data: dict, precision: str, **settings) -> tuple[float, float]:
    """Seconds of local training and of the rest of a run on an empty store."""
    os.environ["FEDLAB_NB_STORE"] = tempfile.mkdtemp()
    options = {"precision": precision, "preset": method, "device": "cuda", "cache": False}
    start = time.perf_counter()
    outcome = fl.run(method, dataset=data, **{**options, **settings})
    whole = time.perf_counter() - start
    local = outcome.seconds.get("local training", 0.0)
    shown = {name: round(value, 1) for name, value in outcome.seconds.items()}
    print(f"  {method} {precision} {settings}: {whole:.1f} s, of which {shown}", flush=True)
    unwanted = outcome.seconds.get("live curve", 0.0) + outcome.seconds.get("evaluation", 0.0)
    return local, whole - local - unwanted


def print_systems(count: int, workers: int, methods: list[str]) -> None:
    """The second table."""
    start = time.perf_counter()
    data = load_images(count, workers)
    print(f"\n{count} images drawn in {time.perf_counter() - start:.0f} s", flush=True)
    rows = []
    for method in methods:
        knob, lengths, terms, epochs = SYSTEMS[method]
        for precision in ("float32", "bf16"):
            few = {} if knob == "epochs" else {"epochs": 1}
            if precision == "float32":  # the first run chooses kernels
                seconds_of_run(method, data, precision, **few, **{knob: lengths[0]})
            rest = []
            locals_ = []
            for length in lengths[:-1]:
                trained, server = seconds_of_run(method, data, precision, **few, **{knob: length})
                rest.append(server)
                locals_.append(trained)
            design = np.array([terms(length) for length in lengths[:-1]])
            weights = np.linalg.lstsq(design, np.array(rest), rcond=None)[0]
            server = float(np.dot(terms(lengths[-1]), weights)) / 60
            local = 0.0
            if epochs:
                longer, _ = seconds_of_run(method, data, precision, epochs=3, **{knob: lengths[0]})
                local = (longer - min(locals_)) / 2 * epochs / 60
            rows.append(
                f"| {method} | {precision} | {local:.1f} | {server:.1f} | {local + server:.1f} |"
            )
            print(rows[-1], flush=True)
    print("\n| system | precision | local training, minutes | the rest | together |")
    print("\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="rates,short," + ",".join(SYSTEMS))
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("card.py measures a CUDA card, and this machine has none.")
    wanted = options.only.split(",")
    print(torch.cuda.get_device_name(), torch.__version__)
    print_ceilings()
    if "rates" in wanted:
        print_rates()
    if "short" in wanted:
        print_short_trainings()
    methods = [method for method in SYSTEMS if method in wanted]
    if methods:
        print_systems(options.images, options.workers, methods)


if __name__ == "__main__":
    main()
