"""A few samples, and what an attacker gets back: from the first gradient, and from the factors that FedLPA sends."""

from typing import NamedTuple

import numpy as np
from ipywidgets import IntSlider

from ...data import Federation
from ...methods.fedlpa.client import compute_gradient, guess_classes, recover_image, recover_label
from ...methods.parts.kronecker import kronecker_factors
from ...models import build
from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, listed, plural, tabled, told
from ...plots.kit import tiles
from ...plots.style import INK

FEW = "How many samples the gradient and the factors are of. A client has many; with one it has no secret"
FIRST = "Which of the client's samples is the first"


class Inverted(LabView):
    """The images of a few samples, what their gradient gives back, and what FedLPA's factors give back."""

    name, title, ready = "inverted", "Images back", "data"

    def __init__(self) -> None:
        self.few = made(IntSlider, label="Samples", help=FEW, width=225, value=1, min=1, max=8)
        self.first = made(IntSlider, label="First", help=FIRST, width=225, value=0, max=7)

    def draw(self, state: PanelState) -> Picture:
        return inverted(
            got_back(state.federation, state.client or 0, self.first.value, self.few.value),
            state.setting,
        )


class GotBack(NamedTuple):
    """`images [n, ...]` and `labels` that are attacked, in words; what came back: from the gradient an image and a
    label, from the factors an image and as many classes as there are; how far each image is from the nearest true one
    (mean over its numbers)."""

    images: np.ndarray
    labels: list[str]
    by_gradient: np.ndarray
    label: str
    by_factors: np.ndarray
    classes: list[str]
    far: tuple[float, float]


def got_back(federation: Federation, client: int, first: int, few: int) -> GotBack:
    """What an attacker computes who sees one gradient of an untrained perceptron, or FedLPA's factors of it, both of
    `few` samples of a client from the `first` on (fewer where it has fewer)."""
    dataset = federation.dataset
    shard = federation.shards[min(client, federation.clients - 1)]
    own = shard[min(first, max(0, len(shard) - few)) :][:few]
    x, y = dataset.x_train[own], dataset.y_train[own]
    module = build("mlp", dataset.input_shape, dataset.classes)
    gradient, factors = compute_gradient(module, x, y), kronecker_factors(module, x, y)
    weights = [name for name in gradient if gradient[name].ndim == 2]
    image = recover_image(
        gradient[weights[0]], gradient[weights[0].removesuffix("weight") + "bias"]
    )
    head, last = next(iter(factors.values())).a, list(factors.values())[-1].b
    mean = head[:-1, -1] / head[-1, -1]
    images = [each.view(dataset.input_shape).numpy() for each in (image, mean)]
    far = tuple(float((x.flatten(1) - each).abs().mean(1).min()) for each in (image, mean))
    named = [dataset.class_names[int(c)] for c in y]
    label = dataset.class_names[recover_label(gradient[weights[-1]])]
    classes = [dataset.class_names[c] for c in guess_classes(last.diagonal(), len(set(named)))]
    return GotBack(x.numpy(), named, images[0], label, images[1], classes, far)


def inverted(of: GotBack, setting: str) -> Picture:
    """A row of images: the samples, what the gradient gives, what the factors give."""
    words = [*of.labels, of.label, ", ".join(of.classes)]
    names = [*["sample"] * len(of.labels), "gradient", "factors"]
    with drawing() as (figure, ax):
        under = {(0, k): (word, INK) for k, word in enumerate(words)}
        tiles(ax, [("", [*of.images, of.by_gradient, of.by_factors])], columns=names, under=under)
    ways = ("the quotient of the first layer's gradients", "the last column of the first A")
    what = (
        "the image itself"
        if len(of.labels) == 1
        else ("a mixture of the samples", "the mean of the samples")
    )
    said = [what] * 2 if isinstance(what, str) else what
    found = [
        f"{way} is {is_}, {far:.3f} a pixel from the nearest"
        for way, is_, far in zip(ways, said, of.far, strict=True)
    ]
    sentence = (
        f"Of {plural(len(of.labels), 'sample')}, read with an untrained network, {'; '.join(found)}. The gradient "
        f"names {of.label}, and the last B {listed(of.classes)} (true: {listed(sorted(set(of.labels)))})."
    )
    cells = zip(
        ("gradient", "factors"),
        (of.label, listed(of.classes)),
        (f"{far:.3f}" for far in of.far),
        strict=True,
    )
    return told(
        figure,
        "Samples, and what comes back",
        setting,
        sentence,
        tabled("read | classes | distance", cells),
    )
