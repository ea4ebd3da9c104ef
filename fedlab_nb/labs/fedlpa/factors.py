"""What one client sends of one layer beside its weights: the damped factors A and B, and the mean input in A."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from ipywidgets import Dropdown
from matplotlib.axes import Axes

from ...comm import from_upper_triangle
from ...data import load
from ...panels import LabView, PanelState, made, offer
from ...plots import Picture, drawing, dress, tabled, told
from ...plots.axes import class_ticks, colour_bar, few_ticks, mark
from ...plots.characters import own_name
from ...plots.kit import heat_map
from ...rng import generator
from ..runs import mostly, where
from .replay import posteriors_of, power

WHAT = "A and B as the client sends them, with λ_damp on their diagonals, or as it measured them (these are not sent)"


class Factors(LabView):
    """A and B of one layer of one client, as sent or before damping, and the image in A's last column."""

    name, title = "factors", "Factors"

    def __init__(self) -> None:
        how = [("as sent", "sent"), ("before damping", "measured")]
        self.layer = made(
            Dropdown,
            label="Layer",
            help="Whose factors are shown",
            width=190,
            options=[("layer 1", 0)],
        )
        self.what = made(Dropdown, label="Factors", help=WHAT, width=220, options=how)

    def adapt(self, state: PanelState) -> None:
        last = len(state.report.layers) - 1
        offer(
            self.layer,
            [(f"layer {i + 1}" + " (last)" * (i == last), i) for i in range(last + 1)],
            last,
        )

    def prepare(self, state: PanelState) -> list:
        return posteriors_of(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        client = (
            state.client if state.client is not None and state.client < len(state.prepared) else 0
        )
        layer = layer_factors(
            state.outcome, state.prepared, client, self.layer.value, self.what.value == "sent"
        )
        return factors(layer, state.class_names, state.klass)


# ------------------------------------------------------------------------------------------------ numbers
class LayerFactors(NamedTuple):
    """Undamped `a [i, i]` and `b [o, o]` of `layer` (in words) of a `client` with `counts [C]` samples by class.

    seen, shape: what A's last column is the mean of, "image" or "patch, all positions mixed", and its channels, height
    and width; empty where the layer sees neither, or has no bias
    outputs_are_classes: rows of B are classes;   sent: A and B as they are sent, damped (and noised), None: the picture
    shows them before that;   setting: of the run, in words
    """

    a: np.ndarray
    b: np.ndarray
    layer: str
    client: int
    counts: np.ndarray
    seen: str = ""
    shape: tuple[int, ...] = ()
    outputs_are_classes: bool = False
    setting: str = ""
    sent: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def mean(self) -> np.ndarray:
        """The client's mean image or patch `[c, h, w]`. The corner of A counts positions: 1, or Q of a convolution."""
        return (self.a[:-1, -1] / self.a[-1, -1]).reshape(self.shape)


def layer_factors(
    outcome: Any, posteriors: Sequence[Any], client: int, at: int, sent: bool = True
) -> LayerFactors:
    """Layer number `at` of a client, as it was sent or before damping."""
    own, report, options = posteriors[client], outcome.report, outcome.options
    name = report.layers[at]
    of, weight, seen, shape, both = own.factors[name], own.state[f"{name}.weight"], "", (), None
    if sent:
        noise = generator(outcome.settings.seed, "fedlpa", "noise", client)  # the run's own draw
        upload = own.upload(options["damping"], options["pi"], options["noise"], noise)["factors"][
            name
        ]
        both = (
            from_upper_triangle(upload["a"]).cpu().numpy(),
            from_upper_triangle(upload["b"]).cpu().numpy(),
        )
    if at == 0 and f"{name}.bias" in own.state:
        shape = image_shape(outcome.settings.dataset, tuple(weight.shape))
        seen = "" if not shape else "patch, all positions mixed" if weight.ndim == 4 else "image"
    classes = at == len(report.layers) - 1 and len(of.b) == len(outcome.per_class)
    a, b, counts = of.a.cpu().numpy(), of.b.cpu().numpy(), report.train_counts[client]
    return LayerFactors(
        a, b, f"layer {at + 1}", client, counts, seen, shape, classes, where(outcome), both
    )


def image_shape(dataset: str, weight: tuple[int, ...]) -> tuple[int, ...]:
    """Channels, height and width of what the first layer sees: the image, or a convolution's patch; else empty."""
    shape = weight[1:] if len(weight) == 4 else tuple(load(dataset).input_shape)
    seen = len(shape) == 3 and shape[0] in (1, 3) and math.prod(shape) == math.prod(weight[1:])
    return tuple(shape) if seen else ()


# ------------------------------------------------------------------------------------------------ picture
def factors(layer: LayerFactors, class_names: Sequence[str], klass: int | None = None) -> Picture:
    """A, B and, where the layer reads images, the mean image. `klass` is marked."""
    names = class_names if layer.outputs_are_classes else ()
    a, b = layer.sent or (layer.a, layer.b)
    with drawing(1, 3 if layer.seen else 2, subplot_kw={"anchor": "N"}) as (figure, axes):
        symmetric(axes[0], a, "A: inputs", "input")
        symmetric(axes[1], b, "B: errors", "class" if names else "output unit", names)
        for axis in "xy":
            mark(axes[1], klass, len(names), axis, frame=True)
        if layer.seen:
            dress(axes[2], title=f"Mean {layer.seen.split(',')[0]}", x="the last column of A").set(
                xticks=[], yticks=[]
            )
            axes[2].imshow(
                np.moveaxis(layer.mean / max(1e-300, layer.mean.max()), 0, -1).clip(0),
                cmap="gray_r",
            )
    column = f"; the last column of A is its mean {layer.seen}" if layer.seen else ""
    how = (
        "before damping, as they are not sent"
        if layer.sent is None
        else "as sent, with λ_damp on the diagonals"
    )
    who = own_name(layer.client, layer.setting)
    rows = zip(
        names or map(str, range(len(b))), (float(f"{v:.3g}") for v in b.diagonal()), strict=True
    )
    return told(
        figure,
        f"Factors A and B of {layer.layer} of client {who}",
        layer.setting,
        f"Client {who} holds {mostly(layer.counts, class_names)}. Its inputs to {layer.layer} vary "
        f"in {rank(layer.a)} of {len(a)} directions, its errors in {rank(layer.b)} of {len(b)}{column}. Shown {how}.",
        tabled("output | diagonal of B", rows)[:100],
    )


def symmetric(
    ax: Axes, matrix: np.ndarray, title: str, side: str, names: Sequence[str] = ()
) -> None:
    """A symmetric matrix in colours, white at 0."""
    top = float(np.abs(matrix).max()) or 1.0
    dress(ax, title=title, x=side)
    image = heat_map(ax, matrix, top=top, signed=True)
    ax.set_aspect("equal")
    for axis in "xy":
        few_ticks(ax, axis, 4, whole=True)
        if 0 < len(names) <= 10:
            class_ticks(ax, names, axis, length=4)
    ticks = {"ticks": [-top, 0, top], "labels": [f"−{power(top)}", "0", power(top)]}
    colour_bar(image, ax, orientation="horizontal", pad=0.03).set_ticks(**ticks)


def rank(matrix: np.ndarray) -> int:
    """How many directions a factor excites: eigenvalues above a millionth of the largest."""
    values = np.linalg.eigvalsh(matrix.astype(np.float64))
    return int((values > 1e-6 * max(values[-1], 1e-300)).sum())
