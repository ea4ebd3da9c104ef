"""The class sums of one client, each divided by its count, beside the client's own nearest
images.
"""

from collections.abc import Sequence

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, format_count_and_noun, join_with_and, make_blank_picture
from ...plots.words import format_client_for_sentence, format_client_for_title
from ...studies.outcome import Outcome
from ..nearest import (
    NearestImages,
    SentImages,
    draw_sent_and_nearest_images,
    find_nearest_images_of_clients,
)
from ..runs import describe_setting


class RecoveredImagesView(LabView):
    """What the server can read from a client's class sums."""

    name, title = "image", "One image leaks"
    summary = "Then this shows what the server can read from a client's class sums."

    def draw(self, state: PanelState) -> Picture:
        setting = describe_setting(state)
        features = state.outcome.options["features"]
        if state.report.classes is None:
            text = (
                "The server has only the total, and not the class sums of one client. So there is "
                "nothing to show."
            )
            return make_blank_picture(text, setting=setting)
        if features != "pixels":
            text = (
                f"With {features} features a class sum is not an image. Set the features to pixels, "
                "and run again."
            )
            return make_blank_picture(text, setting=setting)
        means = recover_class_means_and_nearest_images(state.outcome)
        client = state.client
        if client is None or client >= len(means):
            client = find_first_client_with_single_image_class_or_0(means)
        client_title = format_client_for_title(client, setting)
        return draw_sent_and_nearest_images(
            means[client],
            state.class_names,
            f"What the class sums of {client_title} show",
            describe_recovered_single_images(
                means[client], format_client_for_sentence(client, setting), state.class_names
            ),
            setting=setting,
            only_class_if_sent=state.class_index,
            detail=describe_revealed_class_counts(means[client]),
        )


def recover_class_means_and_nearest_images(afl_outcome: Outcome) -> list[NearestImages]:
    """Recover from each client's class sums what the server can read if the features are pixels: the
    mean image of each class that the client holds, and how many images it was made from.
    """

    def compute_class_means(client: int) -> SentImages:
        # A column for each class; the last row has the counts.
        sums = afl_outcome.report.classes[client]
        counts = sums[-1].round().astype(int)
        held_classes = np.flatnonzero(counts > 0)
        means = sums[:-1, held_classes] / counts[held_classes]
        return SentImages(means.T, held_classes, counts[held_classes])

    return find_nearest_images_of_clients(afl_outcome, compute_class_means)


def find_first_client_with_single_image_class_or_0(
    recovered_means_by_client: Sequence[NearestImages],
) -> int:
    """Return the first client that has a class with a single image; client 0 if there is none."""
    for client, neighbours in enumerate(recovered_means_by_client):
        if (neighbours.counts == 1).any():
            return client
    return 0


def describe_recovered_single_images(
    recovered_means_of_client: NearestImages, client_name: str, class_names: Sequence[str]
) -> str:
    """Say which images the sums give away."""
    single_image_classes = [
        class_names[c]
        for c in recovered_means_of_client.labels[recovered_means_of_client.counts == 1]
    ]
    if not single_image_classes:
        return f"No class of client {client_name} has one image alone; its class sums are sums of several."
    if len(single_image_classes) == 1:
        return (
            f"Client {client_name} has one image of {single_image_classes[0]}: the class sum is that image, "
            "pixel by pixel."
        )
    names = join_with_and(single_image_classes)
    return (
        f"Client {client_name} has one image each of {names}: each class sum is that image, "
        "pixel by pixel."
    )


def describe_revealed_class_counts(recovered_means_of_client: NearestImages) -> str:
    """Say what the sums reveal about the labels."""
    classes = format_count_and_noun(len(recovered_means_of_client.labels), "class")
    return f"The counts of all {classes} are in the last row of the sums, too."
