"""The images that a client sends, above the nearest of its own images: what an attacker would see."""

from collections.abc import Sequence

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, capitalize_first_letter, format_count_and_noun, join_with_and
from ...plots.words import SettingCaption, format_client_for_sentence, format_client_for_title
from ...studies.outcome import Outcome
from ..nearest import (
    MAX_PAIRS,
    NearestImages,
    SentImages,
    draw_sent_and_nearest_images,
    find_nearest_images_of_clients,
)
from ..runs import describe_setting

IMAGE_KINDS = {
    "random": "random samples",
    "kmeans": "k-means centres",
    "kip": "kernel inducing points",
    "crops": "FedSD2C-like crops",
}


class SentImagesView(LabView):
    """The images that a client sends, and the nearest of its own."""

    name, title = "sent", "What is sent"
    summary = "Then this shows the images that a client sends, and the nearest of its own."

    def prepare(self, state: PanelState) -> list[NearestImages]:
        return find_nearest_images_of_all_clients(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        setting = describe_setting(state)
        client = state.client
        if client is None or client >= len(state.prepared):
            client = 0
        neighbours = state.prepared[client]
        kind = IMAGE_KINDS[state.outcome.options["images"]]
        return draw_sent_and_nearest_images(
            neighbours,
            state.class_names,
            f"{capitalize_first_letter(format_client_for_title(client, setting))} sends {kind}",
            describe_exact_copies_among_sent(neighbours, setting),
            setting=setting,
            only_class_if_sent=state.class_index,
            detail=describe_sent_classes_and_median_distance(neighbours, state.class_names),
        )


def find_nearest_images_of_all_clients(distilled_outcome: Outcome) -> list[NearestImages]:
    """Find for every image that a client sent the nearest of the images that this client trained
    on.
    """
    report = distilled_outcome.report

    def get_sent_images(client: int) -> SentImages:
        is_sent = report.client == client
        images = report.images[is_sent].astype(np.float32)
        counts = np.ones(len(images), dtype=int)
        return SentImages(images, report.labels[is_sent], counts)

    return find_nearest_images_of_clients(distilled_outcome, get_sent_images)


def describe_exact_copies_among_sent(
    nearest_images: NearestImages, setting: SettingCaption | str
) -> str:
    """Say how many of the images sent are exact copies of the client's own."""
    classes = {int(label) for label in nearest_images.labels}
    copies = int(nearest_images.are_exact_copies.sum())
    copies_text = f"{copies} of them are"
    if copies < 2:
        copies_text = f"{'one' if copies else 'none'} of them is"
    return (
        f"Client {format_client_for_sentence(nearest_images.client, setting)} sends "
        f"{format_count_and_noun(len(nearest_images.labels), 'image')} of "
        f"{format_count_and_noun(len(classes), 'class')}, and "
        f"{copies_text} its own, pixel by pixel."
    )


def describe_sent_classes_and_median_distance(
    nearest_images: NearestImages, class_names: Sequence[str]
) -> str:
    """Say what the labels show, and how near the images are to the client's own."""
    classes = [class_names[c] for c in sorted(set(nearest_images.labels.tolist()))]
    limit_text = ""
    if len(nearest_images.labels) > MAX_PAIRS:
        limit_text = f" The picture shows {MAX_PAIRS} of them, its own ones first."
    return (
        f"The labels say which classes it holds: {join_with_and(classes)}. The median distance to "
        f"the nearest of its own is {np.median(nearest_images.distance):.3f} per pixel.{limit_text}"
    )
