"""The images that a client sends, beside the nearest of its own: what an attacker would see."""

from collections.abc import Sequence

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, capitalize, join_words, plural
from ...plots.words import Setting, client_name, plain_client_name
from ...studies.outcome import Outcome
from ..nearest import MAX_PAIRS, Neighbours, attack_clients, draw_pairs
from ..runs import describe_setting

IMAGE_KINDS = {
    "random": "random samples",
    "kmeans": "centres of k-means",
    "kip": "kernel inducing points",
    "crops": "FedSD2C-like crops",
}


class SentImages(LabView):
    """The images that a client sends, and the nearest of its own."""

    name, title = "sent", "What is sent"
    summary = "Then this shows the images that a client sends, and the nearest of its own."

    def prepare(self, state: PanelState) -> list[Neighbours]:
        return attack_sent_images(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        setting = describe_setting(state)
        client = state.client
        if client is None or client >= len(state.prepared):
            client = 0
        neighbours = state.prepared[client]
        kind = IMAGE_KINDS[state.outcome.options["images"]]
        return draw_pairs(
            neighbours,
            state.class_names,
            f"{capitalize(client_name(client, setting))} sends {kind}",
            describe_sent_images(neighbours, state.class_names, setting),
            setting=setting,
            class_index=state.class_index,
            detail=describe_exactly(neighbours, state.class_names),
        )


def attack_sent_images(outcome: Outcome) -> list[Neighbours]:
    """The nearest own images of what every client of a run sent, among the samples it trained
    on.
    """
    report = outcome.report

    def sent_images(client: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        is_sent = report.client == client
        images = report.images[is_sent].astype(np.float32)
        counts = np.ones(len(images), dtype=int)
        return images, report.labels[is_sent], counts

    return attack_clients(outcome, sent_images)


def describe_sent_images(
    neighbours: Neighbours, class_names: Sequence[str], setting: Setting | str
) -> str:
    """How many of the images are the client's own."""
    classes = {int(label) for label in neighbours.labels}
    return (
        f"Client {plain_client_name(neighbours.client, setting)} sends "
        f"{plural(len(neighbours.labels), 'image')} of {plural(len(classes), 'class')}, and "
        f"{int(neighbours.is_copy.sum())} of them are its own, pixel by pixel."
    )


def describe_exactly(neighbours: Neighbours, class_names: Sequence[str]) -> str:
    """What the labels show, and how near the images are to the client's own."""
    classes = [class_names[c] for c in sorted(set(neighbours.labels.tolist()))]
    shown = ""
    if len(neighbours.labels) > MAX_PAIRS:
        shown = f" The picture shows {MAX_PAIRS} of them, its own ones first."
    return (
        f"The labels say which classes it holds: {join_words(classes)}. The median distance to the "
        f"nearest of its own is {np.median(neighbours.distance):.3f} per pixel.{shown}"
    )
