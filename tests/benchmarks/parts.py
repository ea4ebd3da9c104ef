"""Parts of a run in CPU time of one thread, each against its older way, in turns in one process: `parts()` yields rows.

The gradient of images and the search of a batch against PyTorch's own kernels and one network after the other; the
forward pass in chunks against 2,048 images at once; what evaluation and live curve take of a run.
"""

from __future__ import annotations

import copy
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F

from fedlab_nb.data import load
from fedlab_nb.methods.dense import Dense
from fedlab_nb.methods.parts.frozen_ensemble import FrozenEnsemble
from fedlab_nb.models import build
from fedlab_nb.models.generators import build_generator
from fedlab_nb.models.image_conv import ImageConv2d
from fedlab_nb.rng import generator
from fedlab_nb.study import run
from fedlab_nb.training import ClientModels, in_chunks

Row = tuple[str, str, str, bool]


def spent(action: Callable[[], object]) -> float:
    start = time.thread_time()
    action()
    return time.thread_time() - start


def ratio(old: Callable[[], object], new: Callable[[], object], rounds: int) -> float:
    """Median of old over new, in turns."""
    old(), new()
    return median(spent(old) / spent(new) for _ in range(rounds))


def parts(seed: int, rounds: int) -> Iterator[Row]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from generating(seed)
        yield from searching(seed, max(5, rounds))
        yield from reading(max(3, rounds))
        yield from shares(seed)
    finally:
        torch.set_num_threads(before)
    yield remembered(max(3, rounds))


def generating(seed: int) -> Iterator[Row]:
    """64 images and all gradients, of a generator of width 8: layer after layer over the batch last."""
    for shape in ((1, 8, 8), (1, 16, 16), (3, 16, 16), (1, 28, 28), (3, 32, 32)):
        made = build_generator(shape, width=8, latent=32, generator=generator(seed, "generator"))
        z = torch.randn(64, 32, generator=generator(seed, "benchmark")).requires_grad_()
        leaves, slope = [*made.parameters(), z], torch.ones(64, *shape)

        def step(so: bool, made=made, z=z, leaves=leaves, slope=slope) -> None:
            made.batch_last = so
            torch.autograd.grad(made(z), leaves, slope)

        value = ratio(partial(step, False), partial(step, True), 50)
        name = f"a generator of {'x'.join(map(str, shape))} images: its layers one after the other over the batch last"
        yield name, f"{value:.2f}×", "≥ 1.3×", value >= 1.3


def searching(seed: int, rounds: int) -> Iterator[Row]:
    """One generator step of DENSE: M = 10, 5-layer CNN, 64 images of 28x28."""
    torch.empty(30 * 2**18)  # 30 MB, freed at once, as data are in a run: from then on glibc keeps what a step frees
    shape, stream = (1, 28, 28), generator(seed, "benchmark")
    clients = [build("cnn", shape, 10, generator=generator(seed, k)).eval() for k in range(10)]
    student = build("cnn", shape, 10, generator=generator(seed, "student")).eval()
    y = torch.arange(64) % 10
    z = torch.randn(64, 32, generator=stream)

    def step(own: bool) -> Callable[[], object]:
        models = [student, *clients] if own else [plain(copy.deepcopy(m)) for m in (student, *clients)]
        first = models[0].requires_grad_(False) if own else models[0]
        ensemble = FrozenEnsemble(ClientModels(models[1:]), backend="auto" if own else "loop")
        made = build_generator(shape, width=8, latent=32, generator=generator(seed, "generator"))
        if not own:
            made.batch_last = False
        method = Dense()
        parameters = list(made.parameters())
        return lambda: torch.autograd.grad(method.loss(made(z), y, ensemble, first), parameters)

    value = ratio(step(False), step(True), rounds)
    name = "a generator step of DENSE at 28x28, M = 10, cnn: PyTorch's gradient of images over ours"
    yield name, f"{value:.2f}×", "≥ 1.8×", value >= 1.8
    work = step(True)
    share = floor(seed) / fastest(work)  # the quickest of as many tries as the floor's parts have
    name = "of that step, its convolutions and products alone, as PyTorch has them"
    yield name, f"{share:.0%}", "≥ 70 %", share >= 0.7


def plain(model: nn.Module) -> nn.Module:
    """The same network with PyTorch's first convolution."""
    for layer in model.modules():
        for name, child in list(layer.named_children()):
            if type(child) is ImageConv2d:
                pads: tuple[int, int] = child.padding  # type: ignore[assignment]
                own = nn.Conv2d(child.in_channels, child.out_channels, 5, padding=pads)
                own.load_state_dict(child.state_dict())
                setattr(layer, name, own)
    return model


def floor(seed: int) -> float:
    """Seconds of that step's convolutions and products: forward, and the gradients that it needs, each the fastest of
    both layouts, and of one call for ten clients and ten calls; products are those of `@`. The generator's are as the
    network has them, on up-sampled maps: `models.batch_last` needs half of their multiplications."""
    stream = generator(seed, "floor")

    def convolution(n, inputs, outputs, k, side, pad, groups=1, weights=False) -> float:
        x = torch.rand(n, inputs * groups, side, side, generator=stream)
        w = torch.rand(outputs * groups, inputs, k, k, generator=stream)
        return min(way(x, w, pad, groups, weights, last) for last in (False, True))

    def product(inputs, outputs, clients) -> float:
        x, w = torch.rand(clients, 64, inputs, generator=stream), torch.rand(clients, inputs, outputs, generator=stream)
        return fastest(lambda: x @ w) if clients > 1 else fastest(lambda: x[0] @ w[0])

    total = convolution(64, 1, 60, 5, 28, 0) + convolution(64, 1, 6, 5, 28, 0)  # clients, student
    one = convolution(64, 6, 16, 5, 12, 0)
    total += one + min(10 * one, convolution(64, 6, 16, 5, 12, 0, groups=10))
    for size in ((64, 16, 16, 3, 14, 1), (64, 16, 8, 3, 28, 1), (64, 8, 1, 3, 28, 1)):  # the generator learns
        total += convolution(*size, weights=True)
    for inputs, outputs in ((256, 120), (120, 84), (84, 10)):  # the gradient is a product of the same size
        one = product(inputs, outputs, 1)
        total += 2 * (one + min(10 * one, product(inputs, outputs, 10)))
    return total


def way(x, w, pad, groups, weights, last) -> float:
    """One convolution and its gradients, in channels_last or not."""
    if last:
        x, w = x.clone(memory_format=torch.channels_last), w.clone(memory_format=torch.channels_last)
    y = F.conv2d(x, w, padding=pad, groups=groups)
    forward = fastest(lambda: F.conv2d(x, w, padding=pad, groups=groups))
    if x.shape[1] > 1:
        mask = [True, weights, False]
        layout = None, (1, 1), (pad, pad), (1, 1), False, (0, 0), groups, mask
        return forward + fastest(lambda: torch.ops.aten.convolution_backward(y, x, w, *layout))
    # images: the product alone, without adding its rows up
    maps = y.permute(0, 2, 3, 1).flatten(0, 2).t() if last else y.flatten(2)
    return forward + fastest(lambda: w.flatten(1).t() @ maps)


def fastest(action: Callable[[], object]) -> float:
    action()
    return min(spent(action) for _ in range(7))


def reading(rounds: int) -> Iterator[Row]:
    for name, width, shape in (
        ("resnet8", None, (3, 32, 32)),
        ("resnet18", 8, (1, 28, 28)),
        ("cnn", None, (1, 28, 28)),
    ):
        model = build(name, shape, 10, width=width).eval()
        x = torch.rand(1024, *shape)
        value = ratio(lambda m=model, x=x: in_chunks(m, x, chunk=2048), lambda m=model, x=x: in_chunks(m, x), rounds)
        what = f"{name} reads 1,024 images {'x'.join(map(str, shape))}: all at once over chunks by the rule"
        yield what, f"{value:.2f}×", "≥ 1×", value >= 1


def shares(seed: int) -> Iterator[Row]:
    """Of a run of 40 epochs, from the seconds of its ledger: 4 epochs are trained and counted ten times."""
    data = load("glyphs", n_train=1000, n_test=250, n_public=250)
    for method, model in (("fens", "resnet8:8"), ("fusefl", "resnet18:8")):
        outcome = run(method, dataset=data, model=model, clients=5, epochs=4, seed=seed, cache=False)
        seconds = dict(outcome.seconds)
        phase = "local training" if "local training" in seconds else "blocks"
        seconds[phase] *= 10
        seconds["live curve"] *= 3  # 12 points instead of 4
        for part in ("evaluation", "live curve"):
            share = seconds[part] / sum(seconds.values())
            yield f"{part} of a run: {method}, {model}, M = 5, 3x32x32", f"{share:.0%}", "≤ 10 %", share <= 0.1


def remembered(rounds: int) -> Row:
    """CPU seconds of `fedlab-nb run ensemble` when everything is known, beyond those of `import torch`."""

    def seconds(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], env=env, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with tempfile.TemporaryDirectory() as store:
        env = {**os.environ, "FEDLAB_NB_STORE": store, "OMP_NUM_THREADS": "1"}
        again = "-m", "fedlab_nb", "run", "ensemble"
        seconds(*again)
        value = median(seconds(*again) - seconds("-c", "import torch") for _ in range(rounds))
    return "`fedlab-nb run ensemble` again, beyond `import torch`", f"{value:.2f} s of CPU", "≤ 1.0 s", value <= 1.0


if __name__ == "__main__":
    for row in parts(*(map(int, sys.argv[1:]) if sys.argv[1:] else (0, 5))):
        print("| " + " | ".join((*row[:3], "yes" if row[3] else "no")) + " |", flush=True)
