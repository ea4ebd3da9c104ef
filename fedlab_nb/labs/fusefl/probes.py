"""What a layer's features are worth: what linear decoders read from them (FuseFL, section 3.3,
appendix D.3 and D.4).

    for clients, mean in probe_layers(compute_layer_outputs(isolated, x), ...): ...  # nobody fused (K = 1)
    for clients, mean in probe_layers(compute_block_outputs(fused, x), ...): ...     # each fused block

A probe is a fresh linear classifier on frozen, flattened features; a second decoder makes the
images from them. Both are fitted to the *whole* training set, and judged on test samples: a
measurement from outside, which no party of the federation could make, and never a part of a method.
Three numbers come from them:

- the accuracy of the classifier, linear separability;
- I(H; Y) >= H(Y) - cross-entropy, in bits: the label's entropy without what the classifier leaves
  open;
- I(H; X), in bits: Σ_j ½ log2 (λ_j / e_j) over the AXES largest principal axes of the images, with
  variance λ_j and the error e_j of the decoder. If images were Gaussian, this would be a bound, too
  (axes have no covariance, the mean error is at least that of the best decoder, and a part of X
  cannot tell more than X). They are not; how far their entropy is below the Gaussian one is not
  known, but it is the same for all features, so that curves can be compared.

A decoder that reads little proves nothing, so the numbers are bounds: the layers above read what is
not linear. For the images the paper has decoders of convolutions and gives the error alone. A run
with a spurious cue is its Figure 3.

There are four curves: the features of single clients and the mean over the clients of their
features, with and without fusing. A mean over M clients is more separable than one client without
any fusing, so only curves of one kind can be compared. The paper's picture (as the authors' code
makes it) compares a fused mean with an isolated client.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import mean
from typing import Any, NamedTuple

import torch
from ipywidgets import Dropdown
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import UsageError
from ...methods.fusefl.network import FusedNetwork
from ...models.build import make_layer
from ...panels import LabView, PanelState, make_widget
from ...plots import Picture, build_table, describe_picture, drawing, dress, percent
from ...plots.identity import Look
from ...plots.kit import draw_lines
from ...plots.style import ACCENT, SECOND, draw_end_labels, limit_ticks, set_percent_axis
from ...plots.words import Setting, plain_client_name
from ...rng import generator
from ...training import Recipe, compute_accuracy, run_in_chunks
from ...training.loop import train_loop
from ..runs import Steps, describe_setting, rerun

# The view probes at most so many.
MAX_CLIENTS = 10
MAX_TRAIN = 2000
MAX_TEST = 1000

AXES = 32  # principal axes of the images that are decoded
RIDGE = 1e-3  # of a feature's variance
# The paper's probe trains 10 epochs at 0.01 with Nesterov momentum; here features are rescaled, so
# that it converges.
PROBE_RECIPE = Recipe(epochs=10, batch_size=128, lr=0.05, momentum=0.9, weight_decay=1e-4)
NO_MEAN = "The clients' networks differ in shape or depth, so their features have no mean to probe."

Samples = tuple[Tensor, Tensor]  # x [N, ...], y [N]
Outputs = list[list[Tensor]]  # [L][M]: after each layer the features [N, ...] of each client


class Reading(NamedTuple):
    """What decoders read from features: test accuracy, 0–1, and at least so many bits about labels
    and images.
    """

    accuracy: float
    labels: float
    images: float


# The readings after one layer: of each client's features, and of their mean over the clients.
LayerReadings = tuple[Sequence[Reading], Reading]


class Measure(NamedTuple):
    """One number of a `Reading` in words.

    name: in the menu;   title: of the picture;   alt: what its lines are
    unit: of the axis; empty: shares;   remark: the end of the detail
    """

    name: str
    title: str
    alt: str
    unit: str = ""
    remark: str = ""

    def format(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:.2f} bits" if self.unit else percent(value)


MEASURES = {
    "accuracy": Measure(
        name="accuracy of a classifier",
        title="What a linear probe reads from each layer",
        alt="Accuracy",
    ),
    "labels": Measure(
        name="bits about the labels",
        title="Information about the labels in each layer",
        alt="Bits about the labels",
        unit="bits, at least",
        remark=" A linear decoder shows less than there is: I(H; Y) is at least this.",
    ),
    "images": Measure(
        name="bits about the images",
        title="Information about the images in each layer",
        alt="Bits about the images",
        unit="bits, as if images were Gaussian",
        remark=" A linear decoder shows less than there is, and images are not Gaussian: only "
        "compare curves.",
    ),
}


class Probes(LabView):
    """What linear decoders can read from every layer, of single clients and of their mean, fused
    and isolated.
    """

    name, title = "probes", "Probes by layer"
    summary = "Then this shows what linear decoders can read from each layer."

    def __init__(self) -> None:
        self.read = make_widget(
            Dropdown,
            label="Read",
            help="Accuracy of a linear classifier, or a lower bound of the information about labels "
            "or images",
            width=220,
            options=[(measure.name, key) for key, measure in MEASURES.items()],
        )

    def prepare(self, state: PanelState) -> Steps:
        """The `ProbeResults` of the run, and of the same federation unfused."""
        outcome = state.outcome
        isolated = outcome
        if outcome.options["blocks"] > 1:
            changes = {"fusefl.blocks": 1, "fusefl.head": "average"}
            isolated = yield from rerun(outcome, "fusefl", changes)
        data = outcome.settings.data()
        device = outcome.settings.device
        x = data.x_train[:MAX_TRAIN].to(device)
        y = data.y_train[:MAX_TRAIN].to(device)
        x_test = data.x_test[:MAX_TEST].to(device)
        y_test = data.y_test[:MAX_TEST].to(device)

        isolated_network = isolated.model.module
        fused_network = outcome.model.module
        curves = []
        for outputs, network in (
            (compute_layer_outputs, isolated_network),
            (compute_block_outputs, fused_network),
        ):
            features = outputs(network, x)
            features_test = outputs(network, x_test)
            readings = []
            for layer in probe_layers(
                features, features_test, (x, y), (x_test, y_test), MAX_CLIENTS
            ):
                readings.append(layer)
                yield
            curves.append(readings)
        return ProbeResults(
            isolated=curves[0],
            fused=curves[1],
            places=list_last_layers(
                fused_network, has_adaptor=outcome.options["adaptor"] == "conv"
            ),
            setting=describe_setting(outcome),
            samples=len(y),
        )

    def draw(self, state: PanelState) -> Picture:
        return draw_probes(state.prepared, client=state.client, measure=self.read.value)


# ------------------------------------------------------------------------------------------- probes
def probe_features(
    features: Tensor, test_features: Tensor, train: Samples, test: Samples
) -> Reading:
    """What linear decoders read from features.

    features `[N, ...]`:      of `train`, to which the decoders are fitted
    test_features `[T, ...]`: of `test`
    """
    features = features.flatten(1)
    test_features = test_features.flatten(1)
    centre = features.mean(0)
    scale = features.std(0)
    scale = torch.where(scale > 0, scale, 1)
    features = (features - centre) / scale
    test_features = (test_features - centre) / scale
    x, y = train
    x_test, y_test = test
    label_accuracy, label_bits = probe_labels(features, test_features, y, y_test)
    return Reading(label_accuracy, label_bits, probe_images(features, test_features, x, x_test))


def probe_labels(
    features: Tensor, test_features: Tensor, labels: Tensor, test_labels: Tensor
) -> tuple[float, float]:
    """Test accuracy, 0–1, of a linear classifier on features `[N, D]` of mean 0 and variance 1; and
    H(Y) - its cross-entropy in bits, 0 if that is negative.
    """
    classes = int(max(labels.max(), test_labels.max())) + 1
    probe = make_layer(
        nn.Linear, features.shape[1], classes, generator=generator(0, "probe"), like=features
    )
    batches = generator(0, "probe", "batches")
    for _ in train_loop([probe], [(features, labels)], PROBE_RECIPE, [batches]):
        pass
    with torch.no_grad():
        logits = probe(test_features)
    shares = torch.bincount(test_labels).double() / len(test_labels)
    entropy = torch.special.entr(shares).sum()
    bits = (entropy - F.cross_entropy(logits.double(), test_labels)) / math.log(2)
    return compute_accuracy(logits.argmax(1), test_labels), max(0.0, float(bits))


def probe_images(
    features: Tensor, test_features: Tensor, images: Tensor, test_images: Tensor
) -> float:
    """Σ_j ½ log2 (λ_j / e_j): bits about Gaussian `images [N, ...]` that ridge regression on features
    `[N, D]` reads, 0 if that is negative.
    """
    features = features.flatten(1).double()
    test_features = test_features.flatten(1).double()
    images = images.flatten(1).double()
    test_images = test_images.flatten(1).double()
    centre = images.mean(0)
    axes = torch.linalg.svd(images - centre, full_matrices=False).Vh[:AXES].T
    targets = (images - centre) @ axes
    targets_test = (test_images - centre) @ axes
    identity = torch.eye(features.shape[1], dtype=features.dtype, device=features.device)
    weight = torch.linalg.solve(
        features.T @ features + RIDGE * len(features) * identity, features.T @ targets
    )
    variance = targets_test.var(0, correction=0)
    error = (targets_test - test_features @ weight).square().mean(0)
    ratios = (variance / error)[variance > 0]
    return max(0.0, float(ratios.log2().sum() / 2))


def probe_layers(
    features: Outputs,
    features_test: Outputs,
    train: Samples,
    test: Samples,
    max_clients: int | None = None,
) -> Iterator[LayerReadings]:
    """After each layer the readings of each client (of the first `max_clients`), and of the mean
    over all clients.

    UsageError where features differ in shape, as these have no mean.
    """
    for layer, layer_test in zip(features, features_test, strict=True):
        if len({h.shape for h in layer}) > 1:
            raise UsageError(NO_MEAN)
        clients = list(zip(layer, layer_test, strict=True))[:max_clients]
        readings = [probe_features(h, h_test, train, test) for h, h_test in clients]
        mean_features = sum(layer) / len(layer)
        mean_features_test = sum(layer_test) / len(layer_test)
        yield readings, probe_features(mean_features, mean_features_test, train, test)


# ----------------------------------------------------------------------------------------- features
@torch.no_grad()
def compute_layer_outputs(isolated: FusedNetwork, samples: Tensor) -> Outputs:
    """Output of every layer of every client's own network, bottom to top.

    isolated: fused with K = 1. UsageError where blocks are fused, or the networks differ in depth
    """
    blocks = len(isolated.stages)
    if blocks != 1:
        raise UsageError(
            f"These networks are fused from {blocks} blocks; "
            "run FuseFL with blocks=1 for isolated ones."
        )
    (stage,) = isolated.eval().stages
    by_client = []
    for branch in stage.branches:
        h = samples
        outputs = []
        for layer in branch:
            h = run_in_chunks(layer, h)
            outputs.append(h)
        by_client.append(outputs)
    if len({len(outputs) for outputs in by_client}) > 1:
        raise UsageError(NO_MEAN)
    return [list(layer) for layer in zip(*by_client, strict=True)]


@torch.no_grad()
def compute_block_outputs(fused: FusedNetwork, inputs: Tensor) -> Outputs:
    """The M outputs of every fused block, flat `[N, D]` each, bottom to top."""
    fused.eval()

    def flatten_outputs(samples: Tensor) -> Tensor:
        """All outputs of all blocks side by side, `[n, ΣD]`: `run_in_chunks` takes one tensor."""
        outputs = []
        for stage in fused.compute_outputs(samples):
            for client_output in stage:
                outputs.append(client_output.flatten(1))
        return torch.cat(outputs, 1)

    sizes = []
    clients_by_block = []
    for stage in fused.compute_outputs(inputs[:1]):
        clients_by_block.append(len(stage))
        sizes += [h[0].numel() for h in stage]
    outputs = iter(run_in_chunks(flatten_outputs, inputs).split(sizes, 1))
    blocks = []
    for clients in clients_by_block:
        blocks.append([next(outputs) for _ in range(clients)])
    return blocks


def list_last_layers(fused: FusedNetwork, has_adaptor: bool) -> list[int]:
    """For each block the number of its last layer, from 1; adaptors are not counted."""
    sizes = []
    for k, stage in enumerate(fused.stages):
        adaptors = 1 if has_adaptor and k > 0 else 0
        sizes.append(len(stage.branches[0]) - adaptors)
    return list(accumulate(sizes))


# ------------------------------------------------------------------------------------------ picture
class ProbeResults(NamedTuple):
    """What is read after each layer, see `LayerReadings`.

    isolated: `[L]`, after each layer of networks that nobody fused
    fused, places: `[K]`, after each fused block, and the layer (from 1) at which that block ends
    setting: in words;   samples: on which the probes trained
    """

    isolated: Sequence[LayerReadings]
    fused: Sequence[LayerReadings]
    places: Sequence[int]
    setting: Setting | str
    samples: int


Curve = Mapping[int, Mapping[int, float]]  # {layer from 1: {client: value}}


def make_curves(
    readings: Sequence[LayerReadings],
    layers: Sequence[int],
    measure: str,
    client: int | None,
    setting: Setting | str,
) -> dict[str, Curve]:
    """The curves of isolated or of fused networks: the mean over the clients, one client (mean and
    band over them), and the selected client. `readings` belong to these `layers`; measure: a field
    of `Reading`.
    """
    of_mean: dict[int, dict[int, float]] = {}
    of_clients: dict[int, dict[int, float]] = {}
    of_selected: dict[int, dict[int, float]] = {}
    for layer, (clients, mean_reading) in zip(layers, readings, strict=True):
        of_mean[layer] = {0: getattr(mean_reading, measure)}
        of_clients[layer] = {k: getattr(reading, measure) for k, reading in enumerate(clients)}
        if client is not None and client < len(clients):
            of_selected[layer] = {0: getattr(clients[client], measure)}
    curves: dict[str, Curve] = {"mean over the clients": of_mean, "one client": of_clients}
    if client is not None and of_selected:
        curves[f"client {plain_client_name(client, setting)}"] = of_selected
    return curves


MARKERS = {"mean over the clients": ("o", "-"), "one client": ("s", "--")}
SELECTED_MARKER = ("D", ":")


def draw_probes(
    results: ProbeResults, *, client: int | None = None, measure: str = "accuracy"
) -> Picture:
    """Four lines over the layers, of one `measure` of MEASURES: single clients (with the 95 % band
    over them) and the mean over the clients, isolated and fused. Only lines of one kind can be
    compared.
    """
    words = MEASURES[measure]
    layers = list(range(1, len(results.isolated) + 1))
    curves: dict[str, Curve] = {}
    looks: dict[str, Look] = {}
    for kind, readings, ends, colour in (
        ("isolated", results.isolated, layers, ACCENT),
        ("fused", results.fused, results.places, SECOND),
    ):
        kind_curves = make_curves(readings, ends, measure, client, results.setting)
        for who, curve in kind_curves.items():
            curves[f"{kind}, {who}"] = curve
            looks[f"{kind}, {who}"] = Look(colour, *MARKERS.get(who, SELECTED_MARKER))
    with drawing() as (figure, ax):
        dress(ax, title=words.title, x="layer, from the image upwards", grid="y")
        ax.set_xlim(0.7, len(layers) + 0.3)
        ends_of_lines = draw_lines(ax, curves, looks, None if words.unit else 1)
        if words.unit:
            ax.set(ylabel=words.unit, ylim=(0, ax.get_ylim()[1]))
        else:
            set_percent_axis(ax, top=1.01, low=max(0, ax.get_ylim()[0] - 0.02))
        limit_ticks(ax, "x", min(len(layers), 13), whole=True)
        labels = [(y, name.replace(", ", ",\n"), colour) for y, name, colour in ends_of_lines]
        draw_end_labels(ax, labels, gap=0.1)

    values: dict[str, dict[int, float]] = {}
    for name, curve in curves.items():
        values[name] = {layer: mean(by_client.values()) for layer, by_client in curve.items()}
    at_the_top = []
    for name, by_layer in values.items():
        at_the_top.append(f"{name} {words.format(by_layer[max(by_layer)])}")
    sentence = f"In the last layer: {'; '.join(at_the_top)}."
    detail = (
        f"Probes train on {results.samples} samples of all clients, as no federation could."
        f"{words.remark}"
    )
    return describe_picture(
        figure,
        f"{words.alt} by linear probes, layer by layer",
        results.setting,
        sentence,
        make_table(values, layers, words),
        detail=detail,
    )


def make_table(
    values: Mapping[str, Mapping[int, float]], layers: Sequence[int], words: Measure
) -> list[dict[str, Any]]:
    """A row for each layer; empty where a curve has no point."""
    rows = []
    for layer in layers:
        cells = [
            words.format(by_layer[layer]) if layer in by_layer else ""
            for by_layer in values.values()
        ]
        rows.append((layer, *cells))
    return build_table(["layer", *values], rows)
