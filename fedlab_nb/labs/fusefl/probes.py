"""Measures how much of the labels and images a layer's features hold, by linear decoders (FuseFL,
section 3.3, appendices D.3 and D.4).

    outputs = compute_layer_outputs_of_each_client(isolated, x)    # without fusing
    outputs = compute_block_outputs_of_each_client(fused, x)       # fused blocks
    for clients, mean in probe_features_of_layers(outputs, test_outputs, (x, y), (x_test, y_test)):
        ...

There are two decoders. The probe is a new linear classifier on frozen, flattened features; the
other decoder is a linear map from the features to the images. Both are fitted to the *whole*
training set and judged on test samples. No party of the federation could do so; the measurement is
never a part of a method. It gives three numbers:

- the accuracy of the classifier, which measures linear separability;
- a lower bound of I(H; Y) in bits: H(Y) minus the classifier's cross-entropy;
- an estimate of I(H; X) in bits: Σ_j ½ log2 (λ_j / e_j) over the AXES largest principal axes of the
  images, where λ_j is the variance along an axis and e_j the decoder's error.

If images were Gaussian, the last number would be a lower bound as well: principal axes are
uncorrelated, the decoder's error is at least that of the best decoder, and a part of X cannot tell
more than X. Images are not Gaussian. By how much their entropy is below the Gaussian one is not
known, but it is the same for all features, so curves can be compared.

The numbers are bounds because the layers above can also read what is not linear. For the images,
the paper uses convolutional decoders and reports only their error. Its Figure 3 is a run with a
spurious cue.

There are four curves: the features of single clients, and the mean of the clients' features, each
with and without fusing. The mean over M clients is more separable than a single client even without
fusing, so only curves of the same kind can be compared. The paper's picture, as the authors' code
draws it, compares a fused mean with an isolated client.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import mean
from typing import Literal, NamedTuple

import torch
from ipywidgets import Dropdown
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import UsageError
from ...methods.fusefl.network import FusedNetwork
from ...models.build import make_initialised_layer
from ...panels import LabView, PanelState, ProgressThenResult, make_widget
from ...plots import (
    Picture,
    TableRows,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_percent,
)
from ...plots.identity import ColourMarkerLine
from ...plots.kit import draw_lines_with_bands_and_make_labels
from ...plots.style import ACCENT, SECOND, draw_end_labels, limit_tick_count, set_percent_axis
from ...plots.words import SettingCaption, format_client_for_sentence
from ...rng import make_torch_generator
from ...tensor_types import Features, Images, Labels, Samples
from ...training import Recipe, compute_accuracy, run_in_chunks
from ...training.loop import iterate_training_of_clients_in_turn
from ..runs import describe_setting, rerun_with_method

# How much the view probes at most.
MAX_CLIENTS = 10
MAX_TRAIN = 2000  # training samples
MAX_TEST = 1000  # test samples

AXES = 32  # principal axes of the images that are decoded
RIDGE = 1e-3  # as a share of a feature's variance
# The paper's probe trains for 10 epochs at 0.01 with Nesterov momentum. Here the features are
# rescaled so that it converges.
PROBE_RECIPE = Recipe(epochs=10, batch_size=128, lr=0.05, momentum=0.9, weight_decay=1e-4)
NO_MEAN = "The clients' networks differ in shape or depth, so their features have no mean to probe."

SamplesAndLabels = tuple[Tensor, Tensor]  # x [N, ...], y [N]
# [L][M]: after each layer the features [N, ...] of each client.
OutputsByLayerAndClient = list[list[Tensor]]


MeasureName = Literal["accuracy", "labels", "images"]


class DecoderReading(NamedTuple):
    """What the decoders read from features.

    accuracy: test accuracy of the classifier, 0–1
    labels:   bits about the labels, a lower bound
    images:   bits about the images, as if these were Gaussian
    """

    accuracy: float
    labels: float
    images: float


class LabelReading(NamedTuple):
    """What a linear classifier reads from features.

    accuracy: test accuracy, 0–1
    bits:     bits about the labels, a lower bound
    """

    accuracy: float
    bits: float


# The readings after one layer: of each client's features, and of the mean of all clients' features.
LayerReadings = tuple[Sequence[DecoderReading], DecoderReading]


class MeasureDisplay(NamedTuple):
    """How one field of a `DecoderReading` is shown.

    name:   in the menu
    title:  of the picture
    alt:    what the picture's lines are
    unit:   of the axis, "" for shares
    remark: the end of the detail
    """

    name: str
    title: str
    alt: str
    unit: str = ""
    remark: str = ""

    def format_share_or_bits(self, value: float) -> str:
        """Format a value with its unit."""
        return f"{value:.2f} bits" if self.unit else format_percent(value)


MEASURES: dict[MeasureName, MeasureDisplay] = {
    "accuracy": MeasureDisplay(
        name="accuracy of a classifier",
        title="What a linear probe reads from each layer",
        alt="Accuracy",
    ),
    "labels": MeasureDisplay(
        name="bits about the labels",
        title="Information about the labels in each layer",
        alt="Bits about the labels",
        unit="bits, at least",
        remark=" A linear decoder shows less than there is: I(H; Y) is at least this.",
    ),
    "images": MeasureDisplay(
        name="bits about the images",
        title="Information about the images in each layer",
        alt="Bits about the images",
        unit="bits, as if images were Gaussian",
        remark=(
            " A linear decoder shows less than there is, and images are not Gaussian: only "
            "compare curves."
        ),
    ),
}


class ProbesView(LabView):
    """Shows what linear decoders read from every layer, fused and isolated, for single clients and
    for the mean of their features.
    """

    name, title = "probes", "Probes by layer"
    summary = "Then this shows what linear decoders can read from each layer."

    def __init__(self) -> None:
        self.read = make_widget(
            Dropdown,
            label="Read",
            help=(
                "Accuracy of a linear classifier, or a lower bound of the information about "
                "labels or images"
            ),
            width=220,
            options=[(measure.name, key) for key, measure in MEASURES.items()],
        )

    def prepare(self, state: PanelState) -> ProgressThenResult["ProbeResults"]:
        """Compute the `ProbeResults` of the run and of the same federation without fusing."""
        outcome = state.outcome
        isolated = outcome
        if outcome.options["blocks"] > 1:
            changes = {"fusefl.blocks": 1, "fusefl.head": "average"}
            isolated = yield from rerun_with_method(outcome, "fusefl", changes)
        data = outcome.settings.load_dataset()
        device = outcome.settings.device
        x = data.x_train[:MAX_TRAIN].to(device)
        y = data.y_train[:MAX_TRAIN].to(device)
        x_test = data.x_test[:MAX_TEST].to(device)
        y_test = data.y_test[:MAX_TEST].to(device)

        isolated_network = isolated.model.module
        fused_network = outcome.model.module
        readings_of_networks = []
        for compute_outputs, network in (
            (compute_layer_outputs_of_each_client, isolated_network),
            (compute_block_outputs_of_each_client, fused_network),
        ):
            features = compute_outputs(network, x)
            features_test = compute_outputs(network, x_test)
            readings = []
            for layer in probe_features_of_layers(
                features, features_test, (x, y), (x_test, y_test), MAX_CLIENTS
            ):
                readings.append(layer)
                yield
            readings_of_networks.append(readings)
        isolated_readings, fused_readings = readings_of_networks
        return ProbeResults(
            isolated=isolated_readings,
            fused=fused_readings,
            last_layers=list_last_layer_number_of_each_block(
                fused_network, has_adaptor=outcome.options["adaptor"] == "conv"
            ),
            setting=describe_setting(outcome),
            samples=len(y),
        )

    def draw(self, state: PanelState) -> Picture:
        return draw_probe_curves(
            state.prepared, selected_client=state.client, measure=self.read.value
        )


# ------------------------------------------------------------------------------------------- probes
def probe_features(
    train_features: Features,
    test_features: Features,
    train_samples: SamplesAndLabels,
    test_samples: SamplesAndLabels,
) -> DecoderReading:
    """Fit both decoders to the features of training samples, and judge them on test samples.

    train_features: of `train_samples`, `[N, ...]`
    test_features:  of `test_samples`, `[T, ...]`
    """
    train_features = train_features.flatten(1)
    test_features = test_features.flatten(1)
    centre = train_features.mean(0)
    scale = train_features.std(0)
    scale = torch.where(scale > 0, scale, 1)
    train_features = (train_features - centre) / scale
    test_features = (test_features - centre) / scale
    x, y = train_samples
    x_test, y_test = test_samples
    label_reading = fit_label_probe(train_features, test_features, y, y_test)
    image_bits = measure_bits_about_images(train_features, test_features, x, x_test)
    return DecoderReading(label_reading.accuracy, label_reading.bits, image_bits)


def fit_label_probe(
    train_features: Features, test_features: Features, train_labels: Labels, test_labels: Labels
) -> LabelReading:
    """Fit a linear classifier to features `[N, D]`, and measure on test samples its accuracy, 0–1,
    and H(Y) minus its cross-entropy in bits, or 0 if that is negative.

    Both features are standardised: those of the training samples have mean 0 and variance 1.
    """
    classes = int(max(train_labels.max(), test_labels.max())) + 1
    probe = make_initialised_layer(
        nn.Linear,
        train_features.shape[1],
        classes,
        generator=make_torch_generator(0, "probe"),
        dtype_device_template=train_features,
    )
    batches = make_torch_generator(0, "probe", "batches")
    for _ in iterate_training_of_clients_in_turn(
        [probe], [(train_features, train_labels)], PROBE_RECIPE, [batches]
    ):
        pass
    with torch.no_grad():
        logits = probe(test_features)
    shares = torch.bincount(test_labels).double() / len(test_labels)
    entropy = torch.special.entr(shares).sum()
    bits = (entropy - F.cross_entropy(logits.double(), test_labels)) / math.log(2)
    accuracy = compute_accuracy(logits.argmax(1), test_labels)
    return LabelReading(accuracy, max(0.0, float(bits)))


def measure_bits_about_images(
    train_features: Features, test_features: Features, train_images: Images, test_images: Images
) -> float:
    """Fit a ridge regression from features `[N, D]` to images `[N, ...]`, and measure the bits that it
    reads about test images: Σ_j ½ log2 (λ_j / e_j), or 0 if that is negative.

    Both features are standardised: those of the training samples have mean 0 and variance 1.
    """
    train_features = train_features.flatten(1).double()
    test_features = test_features.flatten(1).double()
    train_images = train_images.flatten(1).double()
    test_images = test_images.flatten(1).double()
    centre = train_images.mean(0)
    axes = torch.linalg.svd(train_images - centre, full_matrices=False).Vh[:AXES].T
    targets = (train_images - centre) @ axes
    targets_test = (test_images - centre) @ axes
    identity = torch.eye(
        train_features.shape[1], dtype=train_features.dtype, device=train_features.device
    )
    weight = torch.linalg.solve(
        train_features.T @ train_features + RIDGE * len(train_features) * identity,
        train_features.T @ targets,
    )
    variance = targets_test.var(0, correction=0)
    error = (targets_test - test_features @ weight).square().mean(0)
    ratios = (variance / error)[variance > 0]
    return max(0.0, float(ratios.log2().sum() / 2))


def probe_features_of_layers(
    train_outputs_by_layer: OutputsByLayerAndClient,
    test_outputs_by_layer: OutputsByLayerAndClient,
    train_samples: SamplesAndLabels,
    test_samples: SamplesAndLabels,
    max_clients: int | None = None,
) -> Iterator[LayerReadings]:
    """Probe the layers in turn: the features of each of the first `max_clients` clients, and the
    mean of all clients' features. Yields the readings of one layer at a time.

    train_outputs_by_layer, test_outputs_by_layer: the features of the training and of the test samples

    Raises UsageError if the clients' features differ in shape, as they have no mean then.
    """
    for layer, layer_test in zip(train_outputs_by_layer, test_outputs_by_layer, strict=True):
        if len({h.shape for h in layer}) > 1:
            raise UsageError(NO_MEAN)
        clients = list(zip(layer, layer_test, strict=True))[:max_clients]
        readings = [probe_features(h, h_test, train_samples, test_samples) for h, h_test in clients]
        mean_features = sum(layer) / len(layer)
        mean_features_test = sum(layer_test) / len(layer_test)
        yield (
            readings,
            probe_features(mean_features, mean_features_test, train_samples, test_samples),
        )


# ----------------------------------------------------------------------------------------- features
@torch.no_grad()
def compute_layer_outputs_of_each_client(
    isolated_network: FusedNetwork, samples: Samples
) -> OutputsByLayerAndClient:
    """Compute the output of every layer of every client's own network, from the bottom to the top.

    isolated_network: fused with K = 1, so that no block is fused
    Raises UsageError if blocks are fused, or if the networks differ in depth.
    """
    blocks = len(isolated_network.stages)
    if blocks != 1:
        raise UsageError(
            f"These networks are fused from {blocks} blocks; run FuseFL with blocks=1 for isolated "
            "ones."
        )
    (stage,) = isolated_network.eval().stages
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
def compute_block_outputs_of_each_client(
    fused_network: FusedNetwork, samples: Samples
) -> OutputsByLayerAndClient:
    """Compute the M outputs of every fused block, each `[N, D]`, from the bottom to the top."""
    fused_network.eval()

    def flatten_outputs(chunk: Tensor) -> Tensor:
        """Concatenate all outputs of all blocks, `[n, ΣD]`, as `run_in_chunks` takes one tensor."""
        outputs = []
        for stage in fused_network.compute_outputs_of_all_stages(chunk):
            for client_output in stage:
                outputs.append(client_output.flatten(1))
        return torch.cat(outputs, 1)

    sizes = []
    clients_by_block = []
    for stage in fused_network.compute_outputs_of_all_stages(samples[:1]):
        clients_by_block.append(len(stage))
        sizes += [h[0].numel() for h in stage]
    outputs = iter(run_in_chunks(flatten_outputs, samples).split(sizes, 1))
    blocks = []
    for clients in clients_by_block:
        blocks.append([next(outputs) for _ in range(clients)])
    return blocks


def list_last_layer_number_of_each_block(
    fused_network: FusedNetwork, has_adaptor: bool
) -> list[int]:
    """List the number of each block's last layer, counted from 1 without adaptors."""
    sizes = []
    for k, stage in enumerate(fused_network.stages):
        adaptors = 1 if has_adaptor and k > 0 else 0
        sizes.append(len(stage.branches[0]) - adaptors)
    return list(accumulate(sizes))


# ------------------------------------------------------------------------------------------ picture
class ProbeResults(NamedTuple):
    """What the decoders read after each layer, see `LayerReadings`.

    isolated:    `[L]`, after each layer of the networks without fusing
    fused:       `[K]`, after each fused block
    last_layers: `[K]`, number of each fused block's last layer, from 1
    setting:     in words
    samples:     number of samples on which the probes were trained
    """

    isolated: Sequence[LayerReadings]
    fused: Sequence[LayerReadings]
    last_layers: Sequence[int]
    setting: SettingCaption | str
    samples: int


ProbeCurve = Mapping[int, Mapping[int, float]]  # {layer from 1: {client: value}}


def make_probe_curves(
    readings: Sequence[LayerReadings],
    layer_of_each_reading: Sequence[int],
    measure: MeasureName,
    selected_client: int | None,
    setting: SettingCaption | str,
) -> dict[str, ProbeCurve]:
    """Make the curves of isolated or of fused networks: {what a curve shows: curve}.

    They show the mean of the clients' features, single clients (their mean, with a band), and the
    selected client.

    layer_of_each_reading: the layer (from 1) that each of `readings` belongs to
    measure:               the field of `DecoderReading` to show
    """
    mean_curve: dict[int, dict[int, float]] = {}
    client_curve: dict[int, dict[int, float]] = {}
    selected_curve: dict[int, dict[int, float]] = {}
    for layer, (clients, mean_reading) in zip(layer_of_each_reading, readings, strict=True):
        mean_curve[layer] = {0: getattr(mean_reading, measure)}
        client_curve[layer] = {k: getattr(reading, measure) for k, reading in enumerate(clients)}
        if selected_client is not None and selected_client < len(clients):
            selected_curve[layer] = {0: getattr(clients[selected_client], measure)}
    curves: dict[str, ProbeCurve] = {
        "mean over the clients": mean_curve,
        "one client": client_curve,
    }
    if selected_client is not None and selected_curve:
        curves[f"client {format_client_for_sentence(selected_client, setting)}"] = selected_curve
    return curves


MARKERS = {"mean over the clients": ("o", "-"), "one client": ("s", "--")}
SELECTED_MARKER = ("D", ":")


def draw_probe_curves(
    results: ProbeResults, *, selected_client: int | None = None, measure: MeasureName = "accuracy"
) -> Picture:
    """Draw one measure over the layers as four lines: single clients, with their 95 % band, and the
    mean over the clients, both isolated and fused. Only lines of the same kind can be compared.
    """
    shown_measure = MEASURES[measure]
    layers = list(range(1, len(results.isolated) + 1))
    curves: dict[str, ProbeCurve] = {}
    looks: dict[str, ColourMarkerLine] = {}
    for kind, readings, reading_layers, colour in (
        ("isolated", results.isolated, layers, ACCENT),
        ("fused", results.fused, results.last_layers, SECOND),
    ):
        kind_curves = make_probe_curves(
            readings, reading_layers, measure, selected_client, results.setting
        )
        for curve_name, curve in kind_curves.items():
            curves[f"{kind}, {curve_name}"] = curve
            looks[f"{kind}, {curve_name}"] = ColourMarkerLine(
                colour, *MARKERS.get(curve_name, SELECTED_MARKER)
            )
    with drawing() as (figure, ax):
        dress(ax, title=shown_measure.title, x="layer, from the image upwards", grid="y")
        ax.set_xlim(0.7, len(layers) + 0.05)  # the names begin where the lines end
        ends_of_lines = draw_lines_with_bands_and_make_labels(
            ax, curves, looks, None if shown_measure.unit else 1
        )
        if shown_measure.unit:
            ax.set(ylabel=shown_measure.unit, ylim=(0, ax.get_ylim()[1]))
        else:
            set_percent_axis(ax, highest_share=1.01, lowest_share=max(0, ax.get_ylim()[0] - 0.02))
        limit_tick_count(ax, "x", min(len(layers), 13), only_whole_numbers=True)
        labels = [(y, name.replace(", ", ",\n"), colour) for y, name, colour in ends_of_lines]
        draw_end_labels(ax, labels, min_gap_in_axes_heights=0.1)

    values: dict[str, dict[int, float]] = {}
    for name, curve in curves.items():
        values[name] = {layer: mean(by_client.values()) for layer, by_client in curve.items()}
    last_values = []
    for name, by_layer in values.items():
        last_values.append(f"{name} {shown_measure.format_share_or_bits(by_layer[max(by_layer)])}")
    sentence = f"In the last layer: {'; '.join(last_values)}."
    detail = (
        f"Probes train on {results.samples} samples of all clients, as no federation "
        f"could.{shown_measure.remark}"
    )
    return describe_picture(
        figure,
        f"{shown_measure.alt} by linear probes, layer by layer",
        results.setting,
        sentence,
        make_probe_table_by_layer(values, layers, shown_measure),
        detail=detail,
    )


def make_probe_table_by_layer(
    values_by_curve: Mapping[str, Mapping[int, float]],
    layers: Sequence[int],
    measure: MeasureDisplay,
) -> TableRows:
    """Make the table with one row per layer; a cell is empty if a curve has no point there."""
    rows = []
    for layer in layers:
        cells = [
            measure.format_share_or_bits(by_layer[layer]) if layer in by_layer else ""
            for by_layer in values_by_curve.values()
        ]
        rows.append((layer, *cells))
    return build_table(["layer", *values_by_curve], rows)
