"""FedLPA's lab: two weights in the plane, the factors as pictures, λ and π, the solver, what the uploads give away."""

from __future__ import annotations

import math

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.fedlpa_factors import factors
from ...draw.fedlpa_plane import ANSWERS, Plane
from ..lab_view import Extra, LabSpec, LabView, Look
from .fedlpa_again import evidence_of, where
from .fedlpa_damping import Damping
from .fedlpa_leak import Leak
from .fedlpa_solver import Solver

NARROW = {"description_width": "76px"}


class TwoWeights(LabView):
    """Two clients, one layer of two weights: ellipses of what they are sure of, and four answers of the server."""

    name, title, ready = "plane", "Two weights", "always"

    def __init__(self) -> None:
        super().__init__()
        self.angle = widgets.IntSlider(
            90, 0, 180, 5, description="Angle (°)", style=NARROW, layout={"width": "225px"},
            tooltip="The direction that client 2 is sure of; client 1 is sure of weight 1, which is 0 degrees",
        )  # fmt: skip
        self.ratio = widgets.IntSlider(
            9, 1, 25, description="Precision", style=NARROW, layout={"width": "225px"},
            tooltip="How much surer a client is along its direction than across it",
        )  # fmt: skip
        self.damping = widgets.FloatLogSlider(
            1e-6, base=10, min=-6, max=6, step=0.5, description="λ", style={"description_width": "14px"},
            readout_format=".1g", layout={"width": "200px"}, tooltip="Damping, the prior precision of every weight",
        )  # fmt: skip
        self.controls = [self.angle, self.ratio, self.damping]
        self.picture = Plane()

    def draw(self, look: Look) -> Picture:
        from ...methods.parts.two_weights import two_weights

        found = two_weights(self.angle.value, self.ratio.value, self.damping.value)
        points = {name: getattr(found, name) for name in ANSWERS}
        setting = f"angle {self.angle.value} degrees, precision {self.ratio.value} to 1, λ = {self.damping.value:.1g}"
        return self.picture.show(found.means, found.precisions, points, found.pooled, setting=setting)


class FactorPictures(LabView):
    """A and B of one layer of one client, and the image in A's last column."""

    name, title, ready = "factors", "Factors", "run"
    empty = "Press Run: A and B of each layer, and the mean image that the first A carries."

    def __init__(self) -> None:
        super().__init__()
        self.layer = widgets.Dropdown(
            options=[("layer 1", 0)], description="Layer", tooltip="Whose factors are shown",
            layout={"width": "190px"}, style={"description_width": "44px"},
        )  # fmt: skip
        self.controls = [self.layer]

    def adapt(self, look: Look) -> None:
        count = len(look.outcome.extras["layers"])
        options = [(f"layer {i + 1}" + (" (last)" if i == count - 1 else ""), i) for i in range(count)]
        if list(self.layer.options) != options:
            chosen = min(self.layer.value or 0, count - 1)
            self.layer.options = options
            self.layer.value = chosen

    def prepare(self, look: Look) -> list:
        return evidence_of(look.outcome)

    def draw(self, look: Look) -> Picture:
        evidence, outcome, at = look.prepared, look.outcome, self.layer.value
        client = look.client if look.client is not None and look.client < len(evidence) else 0
        own, names = evidence[client], outcome.extras["layers"]
        found = own.factors[names[at]]
        weight, has_bias = own.state[f"{names[at]}.weight"], f"{names[at]}.bias" in own.state
        classes = len(outcome.per_class)
        return factors(
            found.a.cpu().numpy(), found.b.cpu().numpy(), layer=f"layer {at + 1}", client=client,
            counts=np.asarray(outcome.artefacts["train_counts"])[client], class_names=look.class_names,
            setting=where(outcome),
            shape=image_shape(outcome.setting["dataset"], tuple(weight.shape)) if at == 0 else None,
            patch=weight.ndim == 4, bias=has_bias, klass=look.klass,
            outputs_are_classes=at == len(names) - 1 and len(found.b) == classes,
        )  # fmt: skip


def image_shape(dataset: str, weight: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Channels, height and width of what the first layer sees: the image, or a convolution's patch; else None."""
    from ...data import load

    shape = weight[1:] if len(weight) == 4 else tuple(load(dataset).input_shape)
    seen = len(shape) == 3 and shape[0] in (1, 3) and math.prod(shape) == math.prod(weight[1:])
    return tuple(shape) if seen else None


LAB = LabSpec(
    method="fedlpa",
    companions=("fedavg", "fisher_merge", "regmean"),
    knobs=("damping", "pi", "solver", "iterations", "noise"),
    extras=(
        Extra(
            "init",
            "Initial models",
            (("the same for all", "same"), ("each its own", "different")),
            "Whether the clients start from the server's initial model or each from random weights of its own",
        ),
        Extra(
            "model",
            "Network",
            (("by the size of the images", "auto"), ("five-layer CNN", "cnn"), ("perceptron", "mlp")),
            "The clients' network; factors of a convolution are those of its patches",
        ),
    ),
    settings={"alpha": 0.1, "seeds": 1},
    views=(TwoWeights, FactorPictures, Damping, Solver, Leak),
    first="plane",
    name="fedlpa",
)
