"""The class sums of one client, each divided by its count, beside the client's own nearest
images.
"""

from collections.abc import Sequence

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, join_words, make_blank_picture, plural
from ...plots.words import client_name
from ...studies.outcome import Outcome
from ..nearest import Neighbours, attack_clients, draw_pairs
from ..runs import describe_setting


class Image(LabView):
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
        means = recover_class_means(state.outcome)
        client = state.client
        if client is None or client >= len(means):
            client = find_first_with_single_image(means)
        who = client_name(client, setting)
        return draw_pairs(
            means[client],
            state.class_names,
            f"What the class sums of {who} show",
            describe_means(means[client], who, state.class_names),
            setting=setting,
            class_index=state.class_index,
            detail=describe_counts(means[client]),
        )


def recover_class_means(outcome: Outcome) -> list[Neighbours]:
    """What the server reads from each client's class sums, if the features are pixels: the mean of
    each class that the client holds, with its count.
    """

    def class_means(client: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sums = outcome.report.classes[
            client
        ]  # a column for each class; the last row has the counts
        counts = sums[-1].round().astype(int)
        held = np.flatnonzero(counts > 0)
        means = sums[:-1, held] / counts[held]
        return means.T, held, counts[held]

    return attack_clients(outcome, class_means)


def find_first_with_single_image(means: Sequence[Neighbours]) -> int:
    """The first client that has a class with a single image; client 0 where there is none."""
    for client, neighbours in enumerate(means):
        if (neighbours.counts == 1).any():
            return client
    return 0


def describe_means(neighbours: Neighbours, who: str, class_names: Sequence[str]) -> str:
    """Which images the sums give away."""
    single = [class_names[c] for c in neighbours.labels[neighbours.counts == 1]]
    if single:
        if len(single) == 1:
            text = f"It has one image of {single[0]}: the class sum is that image, pixel by pixel."
        else:
            names = join_words(single)
            text = (
                f"It has one image each of {names}: each class sum is that image, pixel by pixel."
            )
    else:
        text = f"No class of {who} has one image alone; its class sums are sums of several."
    return text


def describe_counts(neighbours: Neighbours) -> str:
    """What the sums say of the labels."""
    classes = plural(len(neighbours.labels), "class")
    return f"The counts of all {classes} are in the last row of the sums, too."
