"""What a layer's features are worth: linear probes (FuseFL, section 6).

    for each, mean in probe(layers_of(isolated), ...): ...     # after each layer of networks that nobody fused (K = 1)
    for each, mean in probe(blocks_of(fused), ...): ...        # after each fused block

A probe is a fresh linear classifier on frozen, flattened features. It is trained on the *whole* training set: a
measurement from outside, which no party of the federation could make, and never a part of a method.

There are four curves: the features of single clients (`each`) and the mean over the clients of their features (`mean`),
with and without fusing. A mean over M clients is more separable than one client without any fusing, so only curves of
one kind can be compared. The paper's picture (as the authors' code makes it) compares a fused mean with an isolated
client.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from statistics import mean
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...errors import demand
from ...methods.fusefl.network import FusedNetwork
from ...models.build import drawn_layer
from ...panels import LabView, PanelState
from ...plots import Picture, drawing, dress, percent, tabled, told
from ...plots.axes import end_labels, few_ticks, percent_axis
from ...plots.identity import Look
from ...plots.kit import lines
from ...plots.style import ACCENT, SECOND
from ...plots.words import letter
from ...rng import generator
from ...training import Recipe, accuracy, in_chunks
from ...training.loop import train_loop
from ..runs import Steps, again, where

MOST_CLIENTS, MOST_TRAIN, MOST_TEST = 10, 2000, 1000
UNLIKE = "The clients' networks differ in shape or depth, so their features have no mean to probe."
Point = tuple[Sequence[float], float]  # of one layer: each client's features, and the mean over the clients


class Probes(LabView):
    """What a linear classifier can read off every layer, of single clients and of their mean, fused and isolated."""

    name, title = "probes", "Probes by layer"
    empty = "Press Run. Linear probes then show how well the features of each layer separate the classes."

    def prepare(self, state: PanelState) -> Steps:
        outcome, isolated = state.outcome, state.outcome
        if outcome.options["blocks"] > 1:  # the same federation, unfused
            isolated = yield from again(outcome, "fusefl", {"fusefl.blocks": 1, "fusefl.head": "average"})
        data, device = outcome.settings.data(), outcome.settings.device
        x, y = (part[:MOST_TRAIN].to(device) for part in (data.x_train, data.y_train))
        x_test, y_test = (part[:MOST_TEST].to(device) for part in (data.x_test, data.y_test))
        curves = []
        for outputs, network in ((layers_of, isolated.model.module), (blocks_of, outcome.model.module)):
            curves.append([])
            for point in probe(outputs(network, x), y, outputs(network, x_test), y_test, MOST_CLIENTS):
                curves[-1].append(point)
                yield
        stages = outcome.model.module.stages
        adaptors = [0] + [outcome.options["adaptor"] == "conv"] * (len(stages) - 1)
        sizes = [len(stage.branches[0]) - extra for stage, extra in zip(stages, adaptors, strict=True)]
        return Probed(*curves, list(accumulate(sizes)), where(outcome), len(y))

    def draw(self, state: PanelState) -> Picture:
        return probes(state.prepared, client=state.client)


# ------------------------------------------------------------------------------------------------ numbers

# The paper's probe trains 10 epochs at 0.01 with Nesterov momentum; here features are rescaled, so that it converges.
PROBE = Recipe(epochs=10, batch_size=128, lr=0.05, momentum=0.9, weight_decay=1e-4)


def linear_probe(x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor) -> float:
    """Test accuracy, 0-1, of a linear classifier on features `x [N, ...]`, brought to mean 0 and variance 1."""
    x, x_test = x.flatten(1), x_test.flatten(1)
    centre, scale = x.mean(0), x.std(0)
    scale = torch.where(scale > 0, scale, 1)
    classes = int(max(y.max(), y_test.max())) + 1
    probe = drawn_layer(nn.Linear, x.shape[1], classes, generator=generator(0, "probe"), like=x)
    for _ in train_loop([probe], [((x - centre) / scale, y)], PROBE, [generator(0, "probe", "batches")]):
        pass
    with torch.no_grad():
        return accuracy(probe((x_test - centre) / scale).argmax(1), y_test)


Outputs = list[list[Tensor]]  # [L][M]: after each layer, of each client, `[N, ...]`


@torch.no_grad()
def layers_of(isolated: FusedNetwork, x: Tensor) -> Outputs:
    """Output of every layer of every client's own network, bottom to top; `isolated`: fused with K = 1.

    UsageError where blocks are fused, or the networks differ in depth.
    """
    blocks = len(isolated.stages)
    demand(blocks == 1, f"These networks are fused from {blocks} blocks; run FuseFL with blocks=1 for isolated ones.")
    (stage,) = isolated.eval().stages
    of_clients = []
    for branch in stage.branches:
        out, own = x, []
        for layer in branch:
            own.append(out := in_chunks(layer, out))
        of_clients.append(own)
    demand(len({len(own) for own in of_clients}) == 1, UNLIKE)
    return [list(layer) for layer in zip(*of_clients, strict=True)]


@torch.no_grad()
def blocks_of(fused: FusedNetwork, x: Tensor) -> Outputs:
    """The M outputs of every fused block, flat `[N, D]` each, bottom to top."""
    sizes = [[own[0].numel() for own in stage] for stage in fused.eval().outputs(x[:1])]

    def flat(part: Tensor) -> Tensor:
        return torch.cat([own.flatten(1) for stage in fused.outputs(part) for own in stage], 1)

    parts = iter(in_chunks(flat, x).split([size for stage in sizes for size in stage], 1))
    return [[next(parts) for _ in stage] for stage in sizes]


def probe(
    train: Outputs, y: Tensor, test: Outputs, y_test: Tensor, most: int | None = None
) -> Iterator[tuple[list[float], float]]:
    """After each layer: probe accuracies on the features of each client (of the first `most`), and on their mean over
    all clients. UsageError where features differ in shape, as these have no mean."""
    for own, held in zip(train, test, strict=True):
        demand(len({of.shape for of in own}) == 1, UNLIKE)
        each = [linear_probe(a, y, b, y_test) for a, b in list(zip(own, held, strict=True))[:most]]
        yield each, linear_probe(sum(own) / len(own), y, sum(held) / len(held), y_test)


# ------------------------------------------------------------------------------------------------ picture
class Probed(NamedTuple):
    """Probe accuracies, 0-1.

    isolated [L]: after each layer of networks that nobody fused: ([M] of each client, of the mean over the clients)
    fused [K], places [K]: the same after each fused block, and the layer (from 1) at which that block ends
    setting: in words;   samples: on which the probes trained
    """

    isolated: Sequence[Point]
    fused: Sequence[Point]
    places: Sequence[int]
    setting: str
    samples: int


def probes(data: Probed, *, client: int | None = None) -> Picture:
    """Four lines over the layers: single clients (with the 95 % band over them) and the mean over the clients, isolated
    and fused. Only lines of one kind can be compared."""
    layers, curves, looks = range(1, len(data.isolated) + 1), {}, {}
    for kind, points, x, hue in (
        ("isolated", data.isolated, layers, ACCENT),
        ("fused", data.fused, data.places, SECOND),
    ):
        at = dict(zip(x, points, strict=True))
        three = {
            "mean over the clients": ({layer: {0: of_mean} for layer, (_, of_mean) in at.items()}, "o", "-"),
            "one client": ({layer: dict(enumerate(each)) for layer, (each, _) in at.items()}, "s", "--"),
        }
        if client is not None and client < len(points[0][0]):
            own = {layer: {0: each[client]} for layer, (each, _) in at.items()}
            three[f"client {letter(client)}"] = (own, "D", ":")
        curves |= {f"{kind}, {words}": curve for words, (curve, _, _) in three.items()}
        looks |= {f"{kind}, {words}": Look(hue, *rest) for words, (_, *rest) in three.items()}
    with drawing() as (figure, ax):
        dress(ax, title="What a linear probe reads from each layer", x="layer, from the image upwards", grid="y")
        ax.set_xlim(0.7, len(layers) + 0.3)
        ends = lines(ax, curves, looks)
        percent_axis(ax, top=1.01, low=max(0, ax.get_ylim()[0] - 0.02))
        few_ticks(ax, "x", min(len(layers), 13), whole=True)
        end_labels(ax, [(y, name.replace(", ", ",\n"), hue) for y, name, hue in ends], gap=0.1)
    shares = {name: {layer: mean(of.values()) for layer, of in by_layer.items()} for name, by_layer in curves.items()}
    rows = ((layer, *(percent(of[layer]) if layer in of else "" for of in shares.values())) for layer in layers)
    top = ", ".join(f"{name} {percent(of[max(of)])}" for name, of in shares.items())
    text = f"Right at the top: {top}. Probes train on {data.samples} samples of all clients, as no federation could."
    table = tabled(["layer", *shares], rows)
    return told(figure, "Accuracy of linear probes by layer", data.setting, text, table)
