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
from ...rng import make_torch_generator
from ...studies import Outcome
from ..array_types import MeanImage, SymmetricMatrix
from ..runs import describe_commonest_classes, describe_setting
from .replay import format_positive_number_briefly, get_stored_posteriors

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
        return get_stored_posteriors(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        client = state.client
        if client is None or client >= len(state.prepared):
            client = 0
        layer = collect_layer_factors(
            state.outcome,
            state.prepared[client],
            client,
            self.layer.value,
            includes_sent_factors=self.what.value == "sent",
        )
        return draw_factors_and_mean_input(layer, state.class_names, state.class_index)


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


def collect_layer_factors(
    fedlpa_outcome: Outcome,
    posterior: LocalPosterior,
    client_index: int,
    layer_index: int,
    includes_sent_factors: bool = True,
) -> LayerFactors:
    """Collect the factors of one layer of a client before damping.

    includes_sent_factors: whether those are added that the client sent, damped and noised
    """
    layers = fedlpa_outcome.report.layers
    name = layers[layer_index]
    factors = posterior.factors[name]
    input_name = ""
    input_shape: tuple[int, ...] = ()
    if layer_index == 0 and f"{name}.bias" in posterior.state:
        weight = posterior.state[f"{name}.weight"]
        input_shape = find_first_layer_image_shape_or_empty(
            fedlpa_outcome.settings.dataset, tuple(weight.shape)
        )
        if input_shape:
            input_name = "patch, all positions mixed" if weight.ndim == 4 else "image"
    is_last = layer_index == len(layers) - 1
    return LayerFactors(
        a=factors.a.cpu().numpy(),
        b=factors.b.cpu().numpy(),
        layer=f"layer {layer_index + 1}",
        client=client_index,
        counts=fedlpa_outcome.report.train_counts[client_index],
        input_name=input_name,
        input_shape=input_shape,
        has_class_outputs=is_last and len(factors.b) == len(fedlpa_outcome.per_class),
        setting=describe_setting(fedlpa_outcome),
        sent=recompute_sent_factors(fedlpa_outcome, posterior, client_index, name)
        if includes_sent_factors
        else None,
    )


def recompute_sent_factors(
    fedlpa_outcome: Outcome, posterior: LocalPosterior, client_index: int, layer_name: str
) -> SentFactors:
    """Compute A and B of a layer as the client sent them, with the noise that the run drew."""
    options = fedlpa_outcome.options
    stream = make_torch_generator(fedlpa_outcome.settings.seed, "fedlpa", "noise", client_index)
    upload = posterior.make_upload(options["damping"], options["pi"], options["noise"], stream)
    factors = upload["factors"][layer_name]
    a = unpack_upper_triangle(factors["a"]).cpu().numpy()
    b = unpack_upper_triangle(factors["b"]).cpu().numpy()
    return SentFactors(a, b)


def find_first_layer_image_shape_or_empty(
    dataset_name: str, first_weight_shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Return channels, height and width of what the first layer reads: the image, or the patch of a
    convolution. Empty if it reads no image.
    """
    is_convolution = len(first_weight_shape) == 4
    shape = first_weight_shape[1:] if is_convolution else tuple(load(dataset_name).input_shape)
    has_channels = len(shape) == 3 and shape[0] in (1, 3)
    if has_channels and math.prod(shape) == math.prod(first_weight_shape[1:]):
        return tuple(shape)
    return ()


def compute_numerical_rank(matrix: SymmetricMatrix) -> int:
    """Compute the numerical rank: the number of eigenvalues above a millionth of the largest."""
    values = np.linalg.eigvalsh(matrix.astype(np.float64))
    return int((values > 1e-6 * max(values[-1], TINY)).sum())


# ------------------------------------------------------------------------------------------ picture
def draw_factors_and_mean_input(
    layer_factors: LayerFactors, class_names: Sequence[str], selected_class: int | None = None
) -> Picture:
    """Draw A, B and, if the layer reads images, the mean image. The selected class is marked in B.

    A and B are those that were sent, if `layer_factors` has them.
    """
    names = class_names if layer_factors.has_class_outputs else ()
    a, b = layer_factors.sent or (layer_factors.a, layer_factors.b)
    columns = 3 if layer_factors.input_name else 2
    with drawing(1, columns) as (figure, axes):
        if not is_frame_narrow():
            keep_squares_at_top(figure, columns)
        draw_symmetric_matrix(axes[0], a, "A: inputs", "input")
        draw_symmetric_matrix(axes[1], b, "B: errors", "class" if names else "output unit", names)
        for axis in "xy":
            highlight_row_or_column(axes[1], selected_class, len(names), axis, has_frame=True)
        if layer_factors.input_name:
            draw_mean_input(axes[2], layer_factors)
    outputs = names or [str(i) for i in range(len(b))]
    rows = []
    for output, value in zip(outputs, b.diagonal(), strict=True):
        rows.append((output, float(f"{value:.3g}")))
    return describe_picture(
        figure,
        f"Factors A and B of {layer_factors.layer} of client "
        f"{format_client_for_sentence(layer_factors.client, layer_factors.setting)}",
        layer_factors.setting,
        describe_client_data_shown_by_factors(layer_factors, class_names),
        build_table("output | diagonal of B", rows[:MAX_ROWS]),
        detail=describe_factor_ranks(layer_factors),
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
    image = draw_heat_map(ax, matrix, largest_value=top, is_symmetric_around_zero=True)
    ax.set_aspect("equal")
    for axis in "xy":
        limit_tick_count(ax, axis, 4, only_whole_numbers=True)
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
    return f"{'−' if value < 0 else ''}{format_positive_number_briefly(abs(value))}"


def draw_mean_input(ax: Axes, layer_factors: LayerFactors) -> None:
    """Draw the mean image or patch, black at its largest value."""
    kind = layer_factors.input_name.split(",")[0]
    dress(ax, title=f"Mean {kind}", x="the last column of A")
    ax.set(xticks=[], yticks=[])
    top = max(TINY, float(layer_factors.mean_input.max()))
    pixels = np.moveaxis(layer_factors.mean_input.clip(0), 0, -1)
    if pixels.shape[-1] == 3:  # pixels of three colours have no colour map
        ax.imshow(pixels / top)
    else:
        draw_bar_below(ax.imshow(pixels, cmap="gray_r", vmin=0, vmax=top), [0, top])


def describe_client_data_shown_by_factors(
    layer_factors: LayerFactors, class_names: Sequence[str]
) -> str:
    """Say what the client holds, and how much of it the factors show."""
    evidence = f"they vary in {compute_numerical_rank(layer_factors.a)} of {len(layer_factors.a)} directions"
    if layer_factors.input_name:
        evidence = f"the last column of A is its mean {layer_factors.input_name}"
    return (
        f"Client {format_client_for_sentence(layer_factors.client, layer_factors.setting)} holds "
        f"{describe_commonest_classes(layer_factors.counts, class_names)}, and its factors show it: "
        f"{evidence}."
    )


def describe_factor_ranks(layer_factors: LayerFactors) -> str:
    """Say in how many directions inputs and errors vary, and which version of the factors is shown."""
    if layer_factors.sent is None:
        version = "before damping, as they are not sent"
    else:
        version = "as sent, with λ_damp on the diagonals"
    a = layer_factors.a
    b = layer_factors.b
    return (
        f"Its inputs to {layer_factors.layer} vary in {compute_numerical_rank(a)} of {len(a)} "
        f"directions, its errors in {compute_numerical_rank(b)} of {len(b)}. Shown {version}."
    )
