"""A few samples, and what an attacker recovers of them: from the first gradient, and from the
factors that FedLPA sends.
"""

from typing import NamedTuple

import numpy as np
from ipywidgets import IntSlider
from torch import Tensor

from ...data import Federation
from ...methods.fedlpa.client import (
    compute_mean_loss_gradients,
    guess_client_classes_from_diagonal,
    recover_flat_image_from_gradients,
    recover_label_of_single_sample,
)
from ...methods.parts.kronecker import compute_mean_kronecker_factors
from ...models import build
from ...panels import LabView, PanelState, make_widget
from ...panels.figures import make_caption_of_first_seed
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    drawing,
    format_count_and_noun,
    join_with_and,
)
from ...plots.kit import draw_image_rows
from ...plots.style import INK
from ...plots.words import SettingCaption


class InversionView(LabView):
    """A few samples, and the images recovered from their gradient and from FedLPA's factors."""

    name, title, ready = "inverted", "Images back", "data"

    def __init__(self) -> None:
        self.few = make_widget(
            IntSlider,
            label="Samples",
            help="How many samples the gradient and the factors are computed from. A client has "
            "many; with one it has no secret",
            width=225,
            value=1,
            min=1,
            max=8,
        )
        self.first = make_widget(
            IntSlider,
            label="First",
            help="Which of the client's samples is the first",
            width=225,
            value=0,
            max=7,
        )

    def draw(self, state: PanelState) -> Picture:
        client = state.client or 0
        recovered = recover_images_and_classes_of_client(
            state.federation, client, self.first.value, self.few.value
        )
        return draw_samples_and_recovered_images(recovered, make_caption_of_first_seed(state))


class RecoveredSamples(NamedTuple):
    """The samples that are attacked, and what an attacker recovers.

    images, labels: the samples `[n, ...]`, and the names of their classes `[n]`
    gradient_image, gradient_label: recovered from the gradient
    factors_image, factors_classes: recovered from FedLPA's factors
    gradient_distance, factors_distance: mean absolute difference between the recovered image and the
        nearest sample
    """

    images: np.ndarray
    labels: list[str]
    gradient_image: np.ndarray
    gradient_label: str
    gradient_distance: float
    factors_image: np.ndarray
    factors_classes: list[str]
    factors_distance: float


def recover_images_and_classes_of_client(
    federation: Federation, client_index: int, first_sample_index_in_client: int, sample_count: int
) -> RecoveredSamples:
    """Recover images and classes from one gradient of an untrained perceptron, and from its
    factors.

    Gradient and factors are computed from `sample_count` samples of a client, or from all its samples
    if it has fewer.

    first_sample_index_in_client: the place of the first sample among the client's, from 0
    """
    dataset = federation.dataset
    shard = federation.shards[min(client_index, federation.clients - 1)]
    start = min(first_sample_index_in_client, max(0, len(shard) - sample_count))
    rows = shard[start : start + sample_count]
    x = dataset.x_train[rows]
    y = dataset.y_train[rows]
    labels = [dataset.class_names[int(label)] for label in y]
    module = build("mlp", dataset.input_shape, dataset.classes)

    gradient = compute_mean_loss_gradients(module, x, y)
    weights = [name for name, values in gradient.items() if values.ndim == 2]
    bias = weights[0].removesuffix("weight") + "bias"
    gradient_image = recover_flat_image_from_gradients(gradient[weights[0]], gradient[bias])
    gradient_label = recover_label_of_single_sample(gradient[weights[-1]])

    factors = list(compute_mean_kronecker_factors(module, x, y).values())
    first_a = factors[0].a
    last_b = factors[-1].b
    factors_image = first_a[:-1, -1] / first_a[-1, -1]
    classes = guess_client_classes_from_diagonal(last_b.diagonal(), len(set(labels)))

    def measure_distance(image: Tensor) -> float:
        return float((x.flatten(1) - image).abs().mean(1).min())

    return RecoveredSamples(
        images=x.numpy(),
        labels=labels,
        gradient_image=gradient_image.view(dataset.input_shape).numpy(),
        gradient_label=dataset.class_names[gradient_label],
        gradient_distance=measure_distance(gradient_image),
        factors_image=factors_image.view(dataset.input_shape).numpy(),
        factors_classes=[dataset.class_names[c] for c in classes],
        factors_distance=measure_distance(factors_image),
    )


def draw_samples_and_recovered_images(
    recovered: RecoveredSamples, setting: SettingCaption | str
) -> Picture:
    """Draw a row of images: the samples, then the images recovered from gradient and factors."""
    images = [*recovered.images, recovered.gradient_image, recovered.factors_image]
    columns = ["sample"] * len(recovered.labels) + ["gradient", "factors"]
    texts = [*recovered.labels, recovered.gradient_label, ", ".join(recovered.factors_classes)]
    with drawing() as (figure, ax):
        texts_under_tiles = {(0, i): (text, INK) for i, text in enumerate(texts)}
        draw_image_rows(
            ax, [("", images)], column_names=columns, words_under_tiles=texts_under_tiles
        )
    rows = [
        ("gradient", recovered.gradient_label, f"{recovered.gradient_distance:.3f}"),
        ("factors", join_with_and(recovered.factors_classes), f"{recovered.factors_distance:.3f}"),
    ]
    return describe_picture(
        figure,
        "Samples, and what comes back",
        setting,
        describe_recovered_images_and_classes(recovered),
        build_table("read | classes | distance", rows),
        detail=describe_distances_to_nearest_sample(recovered),
    )


def describe_recovered_images_and_classes(recovered: RecoveredSamples) -> str:
    """Say what was recovered of the images and of the labels."""
    count = len(recovered.labels)
    if count == 1:
        images = "the gradient and FedLPA's factors both give the image itself"
    else:
        images = "the gradient gives a mixture of them, and FedLPA's factors their mean"
    classes = recovered.factors_classes
    true_labels = sorted(set(recovered.labels))
    word = "class" if len(classes) == 1 else "classes"
    return (
        f"From {format_count_and_noun(count, 'sample')}, {images}; the factors name the {word} "
        f"{join_with_and(classes)} (true: {join_with_and(true_labels)})."
    )


def describe_distances_to_nearest_sample(recovered: RecoveredSamples) -> str:
    """Say how near the recovered images are to a sample, and from which numbers they were read."""
    return (
        "Read with an untrained network. The quotient of the first layer's gradients is "
        f"{recovered.gradient_distance:.3f} a pixel from the nearest sample, the last column of "
        f"the first A {recovered.factors_distance:.3f}. The gradient names "
        f"{recovered.gradient_label}."
    )
