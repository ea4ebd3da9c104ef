"""What a layer's features are worth: what linear decoders read from them (FuseFL, section 3.3, appendix D.3 and D.4).

    for each, mean in probe(layers_of(isolated), ...): ...     # after each layer of networks that nobody fused (K = 1)
    for each, mean in probe(blocks_of(fused), ...): ...        # after each fused block

A probe is a fresh linear classifier on frozen, flattened features; a second decoder makes the images from them. Both
are fitted to the *whole* training set, and judged on test samples: a measurement from outside, which no party of the
federation could make, and never a part of a method. Three numbers come from them:

- the accuracy of the classifier, linear separability;
- I(H; Y) >= H(Y) - cross-entropy, in bits: the label's entropy without what the classifier leaves open;
- I(H; X), in bits: Σ_j ½ log2 (λ_j / e_j) over the AXES largest principal axes of the images, with variance λ_j and the
  error e_j of the decoder. If images were Gaussian, this would be a bound, too (axes have no covariance, the mean error
  is at least that of the best decoder, and a part of X cannot tell more than X). They are not; how far their entropy is
  below the Gaussian one is not known, but it is the same for all features, so that curves can be compared.

A decoder that reads little proves nothing, so the numbers are bounds: the layers above read what is not linear. For the
images the paper has decoders of convolutions and gives the error alone. A run with a spurious cue is its Figure 3.

There are four curves: the features of single clients (`each`) and the mean over the clients of their features (`mean`),
with and without fusing. A mean over M clients is more separable than one client without any fusing, so only curves of
one kind can be compared. The paper's picture (as the authors' code makes it) compares a fused mean with an isolated
client.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from statistics import mean
from typing import Any, NamedTuple

import torch
from ipywidgets import Dropdown
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import demand
from ...methods.fusefl.network import FusedNetwork
from ...models.build import make_layer
from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, percent, tabled, told
from ...plots.axes import end_labels, few_ticks, percent_axis
from ...plots.characters import own_name
from ...plots.identity import Look
from ...plots.kit import lines
from ...plots.style import ACCENT, SECOND
from ...rng import generator
from ...training import Recipe, accuracy, in_chunks
from ...training.loop import train_loop
from ..runs import Steps, again, where

MOST_CLIENTS, MOST_TRAIN, MOST_TEST = 10, 2000, 1000
AXES = 32  # principal axes of the images that are decoded
RIDGE = 1e-3  # of a feature's variance
UNLIKE = "The clients' networks differ in shape or depth, so their features have no mean to probe."
Point = tuple[
    Sequence[Any], Any
]  # `Read` of one layer: each client's features, and the mean over the clients


class Read(NamedTuple):
    """What decoders read from features: test accuracy, 0-1, and bits about labels and images, at least."""

    accuracy: float
    labels: float
    images: float


class Measure(NamedTuple):
    """One number of `Read` in words: of the list, the picture's title, its alt text, the axis ("": shares), and what
    the sentence adds."""

    name: str
    title: str
    alt: str
    axis: str = ""
    note: str = ""


WHOLE = "A linear decoder shows less than there is"
MEASURES = {
    "accuracy": Measure("accuracy of a classifier", "What a linear probe reads from each layer", "Accuracy"),
    "labels": Measure(
        "bits about the labels", "Information about the labels in each layer", "Bits about the labels",
        "bits, at least", f" {WHOLE}: I(H; Y) is at least this.",
    ),
    "images": Measure(
        "bits about the images", "Information about the images in each layer", "Bits about the images",
        "bits, as if images were Gaussian", f" {WHOLE}, and images are not Gaussian: only compare curves.",
    ),
}  # fmt: skip


class Probes(LabView):
    """What linear decoders can read off every layer, of single clients and of their mean, fused and isolated."""

    name, title = "probes", "Probes by layer"

    def __init__(self) -> None:
        help = "Accuracy of a linear classifier, or a lower bound of the information about labels or images"
        options = [(measure.name, key) for key, measure in MEASURES.items()]
        self.read = made(Dropdown, label="Read", help=help, width=220, options=options)

    def prepare(self, state: PanelState) -> Steps:
        outcome, isolated = state.outcome, state.outcome
        if outcome.options["blocks"] > 1:  # the same federation, unfused
            isolated = yield from again(
                outcome, "fusefl", {"fusefl.blocks": 1, "fusefl.head": "average"}
            )
        data, device = outcome.settings.data(), outcome.settings.device
        x, y = (part[:MOST_TRAIN].to(device) for part in (data.x_train, data.y_train))
        x_test, y_test = (part[:MOST_TEST].to(device) for part in (data.x_test, data.y_test))
        curves = []
        for outputs, network in (
            (layers_of, isolated.model.module),
            (blocks_of, outcome.model.module),
        ):
            curves.append([])
            for point in probe(
                outputs(network, x),
                outputs(network, x_test),
                (x, y),
                (x_test, y_test),
                MOST_CLIENTS,
            ):
                curves[-1].append(point)
                yield
        stages = outcome.model.module.stages
        adaptors = [0] + [outcome.options["adaptor"] == "conv"] * (len(stages) - 1)
        sizes = [
            len(stage.branches[0]) - extra for stage, extra in zip(stages, adaptors, strict=True)
        ]
        return Probed(*curves, list(accumulate(sizes)), where(outcome), len(y))

    def draw(self, state: PanelState) -> Picture:
        return probes(state.prepared, client=state.client, measure=self.read.value)


# ------------------------------------------------------------------------------------------------ numbers

# The paper's probe trains 10 epochs at 0.01 with Nesterov momentum; here features are rescaled, so that it converges.
PROBE = Recipe(epochs=10, batch_size=128, lr=0.05, momentum=0.9, weight_decay=1e-4)


Samples = tuple[Tensor, Tensor]  # x [N, ...], y [N]


def decoded(h: Tensor, h_test: Tensor, train: Samples, test: Samples) -> Read:
    """What linear decoders, fitted to the features `h [N, ...]` of `train`, read from `h_test [T, ...]`."""
    h, h_test = h.flatten(1), h_test.flatten(1)
    centre, scale = h.mean(0), h.std(0)
    scale = torch.where(scale > 0, scale, 1)
    h, h_test = (h - centre) / scale, (h_test - centre) / scale
    return Read(
        *about_labels(h, h_test, train[1], test[1]), about_images(h, h_test, train[0], test[0])
    )


def about_labels(h: Tensor, h_test: Tensor, y: Tensor, y_test: Tensor) -> tuple[float, float]:
    """Test accuracy, 0-1, of a linear classifier on features `[N, D]` of mean 0 and variance 1, and H(Y) - its
    cross-entropy in bits, 0 if that is negative."""
    classes = int(max(y.max(), y_test.max())) + 1
    probe = make_layer(nn.Linear, h.shape[1], classes, generator=generator(0, "probe"), like=h)
    for _ in train_loop([probe], [(h, y)], PROBE, [generator(0, "probe", "batches")]):
        pass
    with torch.no_grad():
        logits = probe(h_test)
    entropy = torch.special.entr(torch.bincount(y_test).double() / len(y_test)).sum()
    bits = (entropy - F.cross_entropy(logits.double(), y_test)) / math.log(2)
    return accuracy(logits.argmax(1), y_test), max(0.0, float(bits))


def about_images(h: Tensor, h_test: Tensor, x: Tensor, x_test: Tensor) -> float:
    """Σ_j ½ log2 (λ_j / e_j): bits about Gaussian `x [N, ...]` that ridge regression on features `[N, D]` reads, 0 if
    that is negative."""
    h, h_test, x, x_test = (part.flatten(1).double() for part in (h, h_test, x, x_test))
    centre = x.mean(0)
    axes = torch.linalg.svd(x - centre, full_matrices=False).Vh[:AXES].T
    x, x_test = (x - centre) @ axes, (x_test - centre) @ axes
    eye = torch.eye(h.shape[1], dtype=h.dtype, device=h.device)
    weight = torch.linalg.solve(h.T @ h + RIDGE * len(h) * eye, h.T @ x)
    held = x_test.var(0, correction=0)
    error = (x_test - h_test @ weight).square().mean(0)
    return max(0.0, float((held / error)[held > 0].log2().sum() / 2))


Outputs = list[list[Tensor]]  # [L][M]: after each layer, of each client, `[N, ...]`


@torch.no_grad()
def layers_of(isolated: FusedNetwork, x: Tensor) -> Outputs:
    """Output of every layer of every client's own network, bottom to top; `isolated`: fused with K = 1.

    UsageError where blocks are fused, or the networks differ in depth.
    """
    blocks = len(isolated.stages)
    demand(
        blocks == 1,
        f"These networks are fused from {blocks} blocks; run FuseFL with blocks=1 for isolated ones.",
    )
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
    fitted: Outputs, judged: Outputs, train: Samples, test: Samples, most: int | None = None
) -> Iterator[tuple[list[Read], Read]]:
    """After each layer: what is read from the features of each client (of the first `most`), and from their mean over
    all clients. UsageError where features differ in shape, as these have no mean."""
    for own, held in zip(fitted, judged, strict=True):
        demand(len({of.shape for of in own}) == 1, UNLIKE)
        each = [decoded(a, b, train, test) for a, b in list(zip(own, held, strict=True))[:most]]
        yield each, decoded(sum(own) / len(own), sum(held) / len(held), train, test)


# ------------------------------------------------------------------------------------------------ picture
class Probed(NamedTuple):
    """What is read, as `Read`.

    isolated [L]: after each layer of networks that nobody fused: ([M] of each client, of the mean over the clients)
    fused [K], places [K]: the same after each fused block, and the layer (from 1) at which that block ends
    setting: in words;   samples: on which the probes trained
    """

    isolated: Sequence[Point]
    fused: Sequence[Point]
    places: Sequence[int]
    setting: str
    samples: int


def probes(data: Probed, *, client: int | None = None, measure: str = "accuracy") -> Picture:
    """Four lines over the layers, of one `measure` of MEASURES: single clients (with the 95 % band over them) and the
    mean over the clients, isolated and fused. Only lines of one kind can be compared."""
    words = MEASURES[measure]
    shown = "{:.2f} bits".format if words.axis else percent
    layers, curves, looks = range(1, len(data.isolated) + 1), {}, {}
    kinds = (
        ("isolated", data.isolated, layers, ACCENT),
        ("fused", data.fused, data.places, SECOND),
    )
    for kind, points, x, hue in kinds:
        points = [
            ([getattr(one, measure) for one in each], getattr(of_mean, measure))
            for each, of_mean in points
        ]
        at = dict(zip(x, points, strict=True))
        three = {
            "mean over the clients": (
                {layer: {0: of_mean} for layer, (_, of_mean) in at.items()},
                "o",
                "-",
            ),
            "one client": (
                {layer: dict(enumerate(each)) for layer, (each, _) in at.items()},
                "s",
                "--",
            ),
        }
        if client is not None and client < len(points[0][0]):
            own = {layer: {0: each[client]} for layer, (each, _) in at.items()}
            three[f"client {own_name(client, data.setting)}"] = (own, "D", ":")
        curves |= {f"{kind}, {who}": curve for who, (curve, _, _) in three.items()}
        looks |= {f"{kind}, {who}": Look(hue, *rest) for who, (_, *rest) in three.items()}
    with drawing() as (figure, ax):
        dress(ax, title=words.title, x="layer, from the image upwards", grid="y")
        ax.set_xlim(0.7, len(layers) + 0.3)
        ends = lines(ax, curves, looks, None if words.axis else 1)
        if words.axis:
            ax.set(ylabel=words.axis, ylim=(0, ax.get_ylim()[1]))
        else:
            percent_axis(ax, top=1.01, low=max(0, ax.get_ylim()[0] - 0.02))
        few_ticks(ax, "x", min(len(layers), 13), whole=True)
        end_labels(ax, [(y, name.replace(", ", ",\n"), hue) for y, name, hue in ends], gap=0.1)
    shares = {
        name: {layer: mean(of.values()) for layer, of in by_layer.items()}
        for name, by_layer in curves.items()
    }
    rows = (
        (layer, *(shown(of[layer]) if layer in of else "" for of in shares.values()))
        for layer in layers
    )
    top = ", ".join(f"{name} {shown(of[max(of)])}" for name, of in shares.items())
    text = f"At the top: {top}. Probes train on {data.samples} samples of all clients, as no federation could."
    table = tabled(["layer", *shares], rows)
    return told(
        figure,
        f"{words.alt} by linear probes, layer by layer",
        data.setting,
        text + words.note,
        table,
    )
