"""What one client sends for one layer in addition to its weights: the damped factors A and B. A
contains the client's mean input.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from ipywidgets import Dropdown
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ...comm import unpack_upper_triangle
from ...data import load
from ...methods.fedlpa.client import LocalPosterior
from ...panels import LabView, PanelState, make_widget, set_menu_options_and_keep_choice
from ...plots import Picture, build_table, describe_picture, drawing, dress
from ...plots.kit import draw_heat_map
from ...plots.style import (
    draw_colour_bar,
    highlight_row_or_column,
    is_frame_narrow,
    limit_tick_count,
    set_class_ticks,
)
from ...plots.words import SettingCaption, format_client_for_sentence
from ...rng import generator
from ...studies import Outcome
from ..array_types import MeanImage, SymmetricMatrix
from ..runs import describe_commonest_classes, describe_setting
from .replay import format_small_number, get_posteriors

MAX_ROWS = 100  # of the table
SQUARE = 0.95  # width of square axes in a row, as a share of their column
AROUND_SQUARE = 1.2  # inches above and below them, for the title, the labels and the colour bar
TINY = 1e-300  # in place of 0 in a denominator


class FactorsView(LabView):
    """A and B of one layer of one client, as sent or before damping, and the image in A's last
    column.
    """

    name, title = "factors", "Factors"
    summary = "Then this shows the factors A and B of a client, and the image in A's last column."

    def __init__(self) -> None:
        self.layer = make_widget(
            Dropdown,
            label="Layer",
            help="Whose factors are shown",
            width=190,
            options=[("layer 1", 0)],
        )
        self.what = make_widget(
            Dropdown,
            label="Factors",
            help="A and B as the client sends them, with λ_damp on their diagonals, or as it "
            "measured them (these are not sent)",
            width=220,
            options=[("as sent", "sent"), ("before damping", "measured")],
        )

    def adapt(self, state: PanelState) -> None:
        last_index = len(state.report.layers) - 1
        options = [(f"layer {i + 1}", i) for i in range(last_index)]
        options.append((f"layer {last_index + 1} (last)", last_index))
        set_menu_options_and_keep_choice(self.layer, options, last_index)

    def prepare(self, state: PanelState) -> list[LocalPosterior]:
        return get_posteriors(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        client = state.client
        if client is None or client >= len(state.prepared):
            client = 0
        layer = read_layer_factors(
            state.outcome,
            state.prepared[client],
            client,
            self.layer.value,
            is_as_sent=self.what.value == "sent",
        )
        return draw_factors(layer, state.class_names, state.class_index)


# ------------------------------------------------------------------------------------------ numbers
class SentFactors(NamedTuple):
    """A and B of a layer as a client sent them: damped, and noised where the run has noise."""

    a: np.ndarray
    b: np.ndarray


class LayerFactors(NamedTuple):
    """The factors of one layer of a client with i inputs and o outputs.

    a, b:        `[i, i]` and `[o, o]`, before damping
    layer:       its name in words
    counts:      `[C]`, the client's samples by class
    input_name:  what A's last column is the mean of: "image" or "patch, all positions mixed". Empty if
                 the layer reads neither, or has no bias
    input_shape: channels, height and width of that image or patch
    has_class_outputs: whether rows of B are classes
    setting:     the run's setting in words
    sent:        A and B as the client sends them, damped (and noised); None if the picture shows them
                 before that
    """

    a: np.ndarray
    b: np.ndarray
    layer: str
    client: int
    counts: np.ndarray
    input_name: str = ""
    input_shape: tuple[int, ...] = ()
    has_class_outputs: bool = False
    setting: SettingCaption | str = ""
    sent: SentFactors | None = None

    @property
    def mean_input(self) -> MeanImage:
        """The client's mean image or patch `[c, h, w]`.

        The last entry of A is the number of positions at which the layer is applied: 1, or Q for a
        convolution. Dividing by it gives the mean.
        """
        return (self.a[:-1, -1] / self.a[-1, -1]).reshape(self.input_shape)


def read_layer_factors(
    outcome: Outcome,
    posterior: LocalPosterior,
    client: int,
    layer_index: int,
    is_as_sent: bool = True,
) -> LayerFactors:
    """Read the factors of one layer of a client, as they were sent or before damping."""
    layers = outcome.report.layers
    name = layers[layer_index]
    factors = posterior.factors[name]
    input_name = ""
    input_shape: tuple[int, ...] = ()
    if layer_index == 0 and f"{name}.bias" in posterior.state:
        weight = posterior.state[f"{name}.weight"]
        input_shape = find_input_image_shape_or_empty(outcome.settings.dataset, tuple(weight.shape))
        if input_shape:
            input_name = "patch, all positions mixed" if weight.ndim == 4 else "image"
    is_last = layer_index == len(layers) - 1
    return LayerFactors(
        a=factors.a.cpu().numpy(),
        b=factors.b.cpu().numpy(),
        layer=f"layer {layer_index + 1}",
        client=client,
        counts=outcome.report.train_counts[client],
        input_name=input_name,
        input_shape=input_shape,
        has_class_outputs=is_last and len(factors.b) == len(outcome.per_class),
        setting=describe_setting(outcome),
        sent=read_sent_factors(outcome, posterior, client, name) if is_as_sent else None,
    )


def read_sent_factors(
    outcome: Outcome, posterior: LocalPosterior, client: int, layer_name: str
) -> SentFactors:
    """Compute A and B of a layer as the client sent them, with the noise that the run drew."""
    options = outcome.options
    stream = generator(outcome.settings.seed, "fedlpa", "noise", client)
    upload = posterior.make_upload(options["damping"], options["pi"], options["noise"], stream)
    factors = upload["factors"][layer_name]
    a = unpack_upper_triangle(factors["a"]).cpu().numpy()
    b = unpack_upper_triangle(factors["b"]).cpu().numpy()
    return SentFactors(a, b)


def find_input_image_shape_or_empty(dataset: str, weight_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return channels, height and width of what the first layer reads: the image, or the patch of a
    convolution. Empty if it reads no image.
    """
    is_convolution = len(weight_shape) == 4
    shape = weight_shape[1:] if is_convolution else tuple(load(dataset).input_shape)
    has_channels = len(shape) == 3 and shape[0] in (1, 3)
    if has_channels and math.prod(shape) == math.prod(weight_shape[1:]):
        return tuple(shape)
    return ()


def compute_rank(matrix: SymmetricMatrix) -> int:
    """Compute the numerical rank: the number of eigenvalues above a millionth of the largest."""
    values = np.linalg.eigvalsh(matrix.astype(np.float64))
    return int((values > 1e-6 * max(values[-1], TINY)).sum())


# ------------------------------------------------------------------------------------------ picture
def draw_factors(
    layer: LayerFactors, class_names: Sequence[str], class_index: int | None = None
) -> Picture:
    """Draw A, B and, if the layer reads images, the mean image. The selected class is marked in B."""
    names = class_names if layer.has_class_outputs else ()
    a, b = layer.sent or (layer.a, layer.b)
    columns = 3 if layer.input_name else 2
    with drawing(1, columns) as (figure, axes):
        if not is_frame_narrow():
            keep_squares_at_top(figure, columns)
        draw_symmetric_matrix(axes[0], a, "A: inputs", "input")
        draw_symmetric_matrix(axes[1], b, "B: errors", "class" if names else "output unit", names)
        for axis in "xy":
            highlight_row_or_column(axes[1], class_index, len(names), axis, has_frame=True)
        if layer.input_name:
            draw_mean_input(axes[2], layer)
    outputs = names or [str(i) for i in range(len(b))]
    rows = []
    for output, value in zip(outputs, b.diagonal(), strict=True):
        rows.append((output, float(f"{value:.3g}")))
    return describe_picture(
        figure,
        f"Factors A and B of {layer.layer} of client "
        f"{format_client_for_sentence(layer.client, layer.setting)}",
        layer.setting,
        describe_factors(layer, class_names),
        build_table("output | diagonal of B", rows[:MAX_ROWS]),
        detail=describe_factor_ranks(layer),
    )


def keep_squares_at_top(figure: Figure, columns: int) -> None:
    """Lay square axes in a row out in the upper part of a figure that is too high for them."""
    width, height = figure.get_size_inches()
    needed = SQUARE * width / columns + AROUND_SQUARE
    share = min(1.0, needed / height)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, 1 - share, 1, share))


def draw_symmetric_matrix(
    ax: Axes, matrix: SymmetricMatrix, title: str, axis_label: str, tick_names: Sequence[str] = ()
) -> None:
    """Draw a symmetric matrix in colours, white at 0."""
    top = float(np.abs(matrix).max()) or 1.0
    dress(ax, title=title, x=axis_label)
    image = draw_heat_map(ax, matrix, largest_value=top, is_signed=True)
    ax.set_aspect("equal")
    for axis in "xy":
        limit_tick_count(ax, axis, 4, is_whole=True)
        if 0 < len(tick_names) <= 10:
            set_class_ticks(ax, tick_names, axis, max_letters=4)
    draw_bar_below(image, [-top, 0, top])


def draw_bar_below(image: AxesImage, ticks: Sequence[float]) -> None:
    """Draw a colour bar below the axes of an image. Axes in a row all have one, so that they end at the same height."""
    bar = draw_colour_bar(image, image.axes, orientation="horizontal", pad=0.03)
    bar.set_ticks(ticks=ticks, labels=[format_tick(tick) for tick in ticks])


def format_tick(value: float) -> str:
    """Format a number with a minus sign in place of a hyphen."""
    if not value:
        return "0"
    return f"{'−' if value < 0 else ''}{format_small_number(abs(value))}"


def draw_mean_input(ax: Axes, layer: LayerFactors) -> None:
    """Draw the mean image or patch, black at its largest value."""
    kind = layer.input_name.split(",")[0]
    dress(ax, title=f"Mean {kind}", x="the last column of A")
    ax.set(xticks=[], yticks=[])
    top = max(TINY, float(layer.mean_input.max()))
    pixels = np.moveaxis(layer.mean_input.clip(0), 0, -1)
    if pixels.shape[-1] == 3:  # pixels of three colours have no colour map
        ax.imshow(pixels / top)
    else:
        draw_bar_below(ax.imshow(pixels, cmap="gray_r", vmin=0, vmax=top), [0, top])


def describe_factors(layer: LayerFactors, class_names: Sequence[str]) -> str:
    """Say what the client holds, and how much of it the factors show."""
    evidence = f"they vary in {compute_rank(layer.a)} of {len(layer.a)} directions"
    if layer.input_name:
        evidence = f"the last column of A is its mean {layer.input_name}"
    return (
        f"Client {format_client_for_sentence(layer.client, layer.setting)} holds "
        f"{describe_commonest_classes(layer.counts, class_names)}, and its factors show it: "
        f"{evidence}."
    )


def describe_factor_ranks(layer: LayerFactors) -> str:
    """Say in how many directions inputs and errors vary, and which version of the factors is shown."""
    if layer.sent is None:
        version = "before damping, as they are not sent"
    else:
        version = "as sent, with λ_damp on the diagonals"
    return (
        f"Its inputs to {layer.layer} vary in {compute_rank(layer.a)} of {len(layer.a)} "
        f"directions, its errors in {compute_rank(layer.b)} of {len(layer.b)}. Shown {version}."
    )
