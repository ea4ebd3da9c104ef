"""Wall time of local training: the loop that a PyTorch user writes, the package's loop, its stack, its own choice.

All four train the same clients by the same recipe. They take turns, round after round, so that a busy moment of the
machine meets them all; what counts is the ratio within a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from fedlab_nb.data import federate, load
from fedlab_nb.models import build
from fedlab_nb.rng import generator
from fedlab_nb.training import Recipe, train_clients
from fedlab_nb.training.backend import auto_backend, suitable_threads

VARIANTS = ("plain", "loop", "stacked", "auto")


@dataclass(frozen=True)
class Workload:
    """One line of the table. size, channels: of glyphs; 0 for digits."""

    dataset: str
    model: str
    clients: int
    alpha: float
    epochs: int
    size: int = 0
    channels: int = 1

    @property
    def name(self) -> str:
        shape = f" {self.channels}x{self.size}x{self.size}" if self.size else ""
        return f"{self.dataset}{shape}, {self.model}, M = {self.clients}, α = {self.alpha:g}"


WORKLOADS = [
    *(Workload("digits", model, m, a, 40) for model in ("mlp", "cnn") for m in (5, 20, 50) for a in (0.1, 1)),
    *(
        Workload("glyphs", model, m, a, epochs, size, channels)
        for size, channels in ((28, 1), (32, 3))
        for model, epochs in (("cnn", 5), ("resnet8", 1))
        for m in (10, 20)
        for a in (0.1, 1)
    ),
]


def shards_of(work: Workload, seed: int, samples: int, device: str) -> tuple[list, tuple, int]:
    """Each client's (x, y), the shape of an input, the number of classes."""
    data = work.dataset
    if work.dataset == "glyphs":
        data = load("glyphs", n_train=samples, n_test=10, n_public=0, size=work.size, channels=work.channels)
    federation = federate(data, alpha=work.alpha, clients=work.clients, seed=seed)
    x, y = federation.dataset.x_train, federation.dataset.y_train
    parts = [(x[rows].to(device), y[rows].to(device)) for rows in federation.shards]
    return parts, federation.dataset.input_shape, federation.classes


def plain_loop(models: list, shards: list, recipe: Recipe, device: str, seed: int) -> None:
    """(a): a module, DataLoader and optimizer a client, as in a tutorial, with default threads."""
    for k, (model, (x, y)) in enumerate(zip(models, shards, strict=True)):
        stream = torch.Generator().manual_seed(seed + k)
        loader = DataLoader(TensorDataset(x.cpu(), y.cpu()), recipe.batch_size, shuffle=True, generator=stream)
        optimizer = torch.optim.SGD(
            model.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
        )
        model.train()
        for _ in range(recipe.epochs):
            for images, labels in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images.to(device)), labels.to(device))
                loss.backward()
                optimizer.step()


def timed(action: Callable[[], None], device: str) -> float:
    start = time.perf_counter()
    action()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start


class Clients:
    """The clients of a workload; `train(variant)` trains fresh models of them and returns the seconds."""

    def __init__(self, work: Workload, seed: int, samples: int, device: str) -> None:
        self.shards, self.shape, self.classes = shards_of(work, seed, samples, device)
        self.work, self.seed, self.device = work, seed, device
        self.recipe = Recipe(epochs=work.epochs, lr=0.05 if work.model == "mlp" else 0.02)

    def fresh(self) -> list:
        def one():
            stream = generator(self.seed, "init")
            return build(self.work.model, self.shape, self.classes, generator=stream, device=self.device)

        return [one() for _ in range(self.work.clients)]

    def train(self, variant: str) -> float:
        models = self.fresh()

        def act() -> None:
            if variant == "plain":
                plain_loop(models, self.shards, self.recipe, self.device, self.seed)
                return
            with suitable_threads(self.device, self.shape):
                for _ in train_clients(models, self.shards, self.recipe, seed=self.seed, backend=variant):
                    pass

        return timed(act, self.device)


def measure(work: Workload, *, seed: int, rounds: int, samples: int, device: str) -> dict:
    """Median seconds of each variant, median ratio of (a) to each, and what `auto` chose."""
    clients = Clients(work, seed, samples, device)
    seconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for turn in range(rounds + 1):  # the first round warms up
        for variant in VARIANTS:
            spent = clients.train(variant)
            if turn:
                seconds[variant].append(spent)
    ratios = {v: median(a / b for a, b in zip(seconds["plain"], seconds[v], strict=True)) for v in VARIANTS}
    return {
        "epochs": work.epochs,
        "seconds": {v: median(s) for v, s in seconds.items()},
        "ratios": ratios,
        "against_loop": median(a / b for a, b in zip(seconds["loop"], seconds["auto"], strict=True)),
        "chosen": auto_backend(torch.device(device).type, clients.fresh()[0], clients.shape, work.clients),
    }
