"""The mean images that one client sends, above the nearest of its own images. The mean of a class
with one sample is that sample.
"""

from collections.abc import Sequence

import numpy as np

from ...panels import LabView, PanelState
from ...plots import (
    Picture,
    capitalize_first_letter,
    format_count_and_noun,
    join_with_and,
    make_blank_picture,
)
from ...plots.array_types import CountPerClass
from ...plots.words import format_client_for_title
from ..nearest import SentImages, draw_sent_and_nearest_images, find_nearest_images_of_clients
from ..runs import describe_setting
from .class_pictures import find_image_shape_of_pixel_features


class SentMeansView(LabView):
    """The mean images that a client sends, and its own images nearest to them."""

    name, title = "sent", "What a client sends"
    summary = "Then this shows the mean images that a client sends, and the nearest of its own."

    def draw(self, state: PanelState) -> Picture:
        outcome = state.outcome
        report = state.report
        setting = describe_setting(outcome)
        if find_image_shape_of_pixel_features(state) is None:
            text = (
                "Here features are not pixels, so a mean is not an image. The view of the classes "
                "shows all means."
            )
            return make_blank_picture(text, setting=setting)
        client = min(state.client or 0, len(report.counts) - 1)

        def get_sent_means(k: int) -> SentImages:
            held_classes = np.flatnonzero(report.counts[k])
            return SentImages(
                report.client_means[k][held_classes], held_classes, report.counts[k][held_classes]
            )

        (neighbours,) = find_nearest_images_of_clients(outcome, get_sent_means, [client])
        client_title = format_client_for_title(client, setting)
        return draw_sent_and_nearest_images(
            neighbours,
            state.class_names,
            f"The mean images that {client_title} sends",
            describe_sent_means_of_client(report.counts[client], client_title, state.class_names),
            setting=setting,
            only_class_if_sent=state.class_index,
            detail=SECURE_SUM,
        )


def describe_sent_means_of_client(
    samples_per_class: CountPerClass, client_title: str, class_names: Sequence[str]
) -> str:
    """Say what the means give away. samples_per_class: the client's samples by class `[C]`"""
    held_classes = np.flatnonzero(samples_per_class)
    single_image_classes = [class_names[c] for c in held_classes if samples_per_class[c] == 1]
    if single_image_classes:
        return (
            f"{capitalize_first_letter(client_title)} holds a single image of "
            f"{join_with_and(single_image_classes)}: the mean that it sends is that image, exactly."
        )
    rarest = held_classes[samples_per_class[held_classes].argmin()]
    images = format_count_and_noun(int(samples_per_class[rarest]), "image")
    return (
        f"{capitalize_first_letter(client_title)} holds {images} of {class_names[rarest]}, its "
        "rarest class; the fewer there are, the more a mean shows of each."
    )


SECURE_SUM = (
    "If only the sum over all clients is made known (a secure sum), the server sees no client's "
    "own mean."
)
