"""The class sums of one client, each divided by its count, beside the client's own nearest images."""

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, blank, listed, plural
from ...plots.characters import client_name
from ...studies.outcome import Outcome
from ..nearest import Neighbours, attacks, pairs
from ..runs import where


class Image(LabView):
    """What the server can read from a client's class sums."""

    name, title = "image", "One image leaks"

    def draw(self, state: PanelState) -> Picture:
        features = state.outcome.options["features"]
        if state.report.classes is None:
            text = "The server has only the total, and not the class sums of one client. So there is nothing to show."
            return blank(text, setting=where(state))
        if features != "pixels":
            text = f"With {features} features a class sum is not an image. Set the features to pixels, and run again."
            return blank(text, setting=where(state))
        means, names = class_means(state.outcome), state.class_names
        first = next(
            (k for k, of in enumerate(means) if (of.counts == 1).any()), 0
        )  # a class with a single image
        of = means[
            state.client if state.client is not None and state.client < len(means) else first
        ]
        single = [names[c] for c in of.labels[of.counts == 1]]
        who = client_name(of.client, where(state))
        text = f"No class of {who} has one image alone; its class sums are sums of several."
        if single:
            text = f"Of {listed(single)} it has one image, and the class sum is that image, pixel by pixel."
        text += f" The counts of all {plural(len(of.labels), 'class')} are in the last row of the sums, too."
        title = f"What the class sums of {who} show"
        return pairs(of, names, title, text, setting=where(state), klass=state.klass)


def class_means(outcome: Outcome) -> list[Neighbours]:
    """What the server reads off each client's class sums, of a run with pixels as features: the mean of each class that
    the client holds, with its count."""

    def sent(client: int) -> tuple[np.ndarray, ...]:
        *sums, counts = outcome.report.classes[client]
        counts = counts.round().astype(int)
        held = np.flatnonzero(counts > 0)
        return (np.array(sums)[:, held] / counts[held]).T, held, counts[held]

    return attacks(outcome, sent)
