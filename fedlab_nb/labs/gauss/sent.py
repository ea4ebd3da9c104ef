"""What one client sends of its classes, as images, above the image of its own that is nearest: a class of one sample is
that sample. Where features are no pixels, its means as the view of the classes shows them."""

from collections.abc import Sequence

import numpy as np

from ...methods.gauss import GaussReport
from ...panels import LabView, PanelState
from ...plots import Picture, drawing, heading, listed, plural, tabled, told
from ...plots.characters import client_name
from ...plots.kit import tiles
from ...plots.words import capital
from ..runs import where
from .pictures import MOST, called, image_shape, of_run


class Sent(LabView):
    name, title = "sent", "What a client sends"
    empty = "Press Run. The picture then shows the mean images that a client sends, and its own images nearest to them."

    def draw(self, state: PanelState) -> Picture:
        outcome, report = state.outcome, state.report
        if image_shape(state) is None or report.client_means is None:
            return of_run(state, None)
        client = min(state.client or 0, len(report.counts) - 1)
        federation = outcome.federation()
        train, _ = federation.split(outcome.plan.holdout)[client]
        own = federation.dataset.x_train[train].numpy(), federation.dataset.y_train[train].numpy()
        return sent(report, client, own, state.class_names, setting=where(outcome), klass=state.klass)


def sent(
    report: GaussReport, client: int, own: tuple[np.ndarray, np.ndarray], names: Sequence[str], *, setting: str,
    klass: int | None = None,
) -> Picture:  # fmt: skip
    """Picture of one client's class means (its sums over its counts, both of which it sends).

    own: its training images `(x [n, c, H, W], y [n])`, which it does not send: only to compare
    """
    x, y = own
    counts, means = report.counts[client], report.client_means[client]
    held = np.flatnonzero(counts)
    shown = np.full((len(names), *x.shape[1:]), np.nan)
    nearest, distance = shown.copy(), {}
    for c in held:
        shown[c] = means[c].reshape(x.shape[1:])
        away = np.sqrt(np.square(x[y == c] - shown[c]).sum((1, 2, 3)))
        nearest[c], distance[c] = x[y == c][away.argmin()], float(away.min())
    with drawing() as (figure, ax):
        rows = [("sent: mean", shown[:MOST]), ("its nearest\nown image", nearest[:MOST])]
        tiles(ax, rows, columns=called(names, counts), marked=klass)
        heading(ax, f"{capital(client_name(client, setting))} and its {plural(int(counts.sum()), 'image')}")
    single = [names[c] for c in held if counts[c] == 1]
    fewest = int(held[counts[held].argmin()])
    sentence = (
        f"Client {client} holds {plural(int(counts[fewest]), 'image')} of {names[fewest]}, its rarest class; "
        "the fewer there are, the more a mean shows of each."
    )
    if single:
        of = listed(single)
        sentence = f"Client {client} holds a single image of {of}, so the mean that it sends is that image, exactly."
    sentence += " If only the sum over all clients is made known (a secure sum), the server sees no client's own mean."
    each = ((names[c], int(counts[c]), round(distance[c], 3)) for c in held)
    table = tabled("class | images | distance to the nearest", each)
    title = f"Mean image of each class that client {client} sends, above its own image that is nearest to it"
    return told(figure, title, setting, sentence, table)
