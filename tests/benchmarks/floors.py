"""The floor of local training on one core: the multiplications of a step alone, each done in the fastest way known.

`floors()` yields rows. A step of a loop's client needs its convolutions and products forward, their gradients with
respect to the weights, and those with respect to their inputs but for the first layer's. The floor of a step is the
time that these take one by one on tensors that lie ready. What the step takes beyond it are pooling, ReLU, batch norm,
the loss, the update and the calls themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import thread_time

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from training import Clients, Workload

from fedlab_nb.models import build
from fedlab_nb.rng import generator
from fedlab_nb.training import train_clients
from fedlab_nb.training.small_conv import suits

Row = tuple[str, str, str, bool]
WORK = [
    *(Workload("glyphs", model, 10, 1, 1, *size) for size in ((28, 1), (32, 3)) for model in ("cnn", "resnet8")),
    *(Workload("digits", "cnn", clients, 1, 10) for clients in (20, 50)),
]


def fastest(action: Callable[[], object], rounds: int = 7) -> float:
    """CPU seconds of the quickest of so many calls, after one that warms up."""
    action()
    seconds = []
    for _ in range(rounds):
        start = thread_time()
        action()
        seconds.append(thread_time() - start)
    return min(seconds)


def floors(seed: int, rounds: int) -> Iterator[Row]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for work in WORK:
            yield share(work, seed, rounds)
    finally:
        torch.set_num_threads(before)


def share(work: Workload, seed: int, rounds: int) -> Row:
    """What the multiplications are of the training of that work's clients."""
    clients = Clients(work, seed, 2000, "cpu")
    way = "stacked" if work.dataset == "digits" else "loop"
    spent = []
    for _ in range(rounds + 1):
        models = clients.fresh()
        start = thread_time()
        for _ in train_clients(models, clients.shards, clients.recipe, seed=seed, backend=way):
            pass
        spent.append(thread_time() - start)
    batches = [len(rows) for x, _ in clients.shards for rows in torch.arange(len(x)).split(clients.recipe.batch_size)]
    if way == "loop":
        model = clients.fresh()[0]
        cost = {n: multiplications(model, clients.shape, n) for n in set(batches)}
        least = work.epochs * sum(cost[n] for n in batches)
    else:
        steps = work.epochs * max(-(-len(x) // clients.recipe.batch_size) for x, _ in clients.shards)
        real = sum(batches) / (max(len(x) for x, _ in clients.shards) * work.clients)  # rows that are no padding
        least = steps * real * stacked_multiplications(clients, work.clients)
    value = least / median(spent[1:])
    goal = 0.6 if way == "stacked" else 0.0
    text = f"multiplications' share of local training: {work.name}, {way}"
    return text, f"{value:.0%}", "≥ 60 %" if goal else "stated", value >= goal


def multiplications(model: nn.Module, shape: tuple[int, ...], n: int) -> float:
    """Seconds of the products of one step of `model` on `n` samples of `shape`."""
    seen: list[tuple[nn.Module, Tensor]] = []
    hooks = [
        layer.register_forward_pre_hook(lambda layer, inputs: seen.append((layer, inputs[0].detach())))
        for layer in model.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear)
    ]
    model.train()(torch.rand(n, *shape, generator=generator(0, "floor")))
    for hook in hooks:
        hook.remove()
    return sum(alone(layer, x, place > 0) for place, (layer, x) in enumerate(seen))


def alone(layer: nn.Module, x: Tensor, to_input: bool) -> float:
    """Seconds of one layer's products, forward and backward; of a convolution in the better of two layouts."""
    weight = layer.weight.detach()
    if isinstance(layer, nn.Linear):
        y = x @ weight.t()
        backward = fastest(lambda: y.t() @ x) + (fastest(lambda: y @ weight) if to_input else 0)
        return fastest(lambda: x @ weight.t()) + backward
    return min(convolution(layer, x, to_input, layout) for layout in (torch.contiguous_format, torch.channels_last))


def convolution(layer: nn.Conv2d, x: Tensor, to_input: bool, layout: torch.memory_format) -> float:
    """Seconds of a convolution's products in that layout."""
    x, weight = x.contiguous(memory_format=layout), layer.weight.detach().contiguous(memory_format=layout)
    how, mask = (layer.stride, layer.padding, layer.dilation), [to_input, True, False]
    y = F.conv2d(x, weight, None, *how).contiguous(memory_format=layout)
    backward = torch.ops.aten.convolution_backward
    there = fastest(lambda: F.conv2d(x, weight, None, *how))
    return there + fastest(lambda: backward(y, x, weight, None, *how, False, (0, 0), 1, mask))


def stacked_multiplications(clients: Clients, count: int) -> float:
    """Seconds of the batched products of one step of a stack of `count` clients, as the stack does them.

    Convolutions of small maps are products of the rows of each image with a matrix `[k C W, O W']`.
    """
    n = clients.recipe.batch_size
    model = build("cnn", clients.shape, clients.classes, generator=generator(0, "floor"))
    seen: list[tuple[nn.Module, tuple[int, ...]]] = []
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_pre_hook(lambda layer, inputs: seen.append((layer, tuple(inputs[0].shape[1:]))))
    model(torch.rand(n, *clients.shape))
    total = 0.0
    for place, (layer, shape) in enumerate(seen):
        if isinstance(layer, nn.Linear):
            rows, inner, outer = n, layer.in_features, layer.out_features
        else:
            assert suits(layer, torch.empty(count, n, *shape))
            channels, height, width = shape
            high = (height + 2 * layer.padding[0] - layer.kernel_size[0] + 1) // 2 * 2
            wide = (width + 2 * layer.padding[1] - layer.kernel_size[1] + 1) // 2 * 2
            rows, inner, outer = n * high, layer.kernel_size[0] * channels * width, layer.out_channels * wide
        x, w = torch.rand(count, rows, inner), torch.rand(count, inner, outer)
        y = torch.rand(count, rows, outer)
        total += fastest(lambda x=x, w=w: torch.bmm(x, w)) + fastest(lambda x=x, y=y: torch.bmm(x.transpose(1, 2), y))
        if place:
            total += fastest(lambda y=y, w=w: torch.bmm(y, w.transpose(1, 2)))
    return total


if __name__ == "__main__":
    for row in floors(*(map(int, sys.argv[1:]) if sys.argv[1:] else (0, 3))):
        print("| " + " | ".join((*row[:3], "yes" if row[3] else "no")) + " |", flush=True)
