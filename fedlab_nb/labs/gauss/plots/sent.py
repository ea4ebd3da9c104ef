"""What one client sends of its classes, as images, above the image of its own that is nearest: a class of one sample is
that sample."""

from collections.abc import Sequence

import numpy as np

from ....methods.gauss import GaussReport
from ....plots.characters import client_name
from ....plots.style import Picture, drawing, heading
from ....plots.words import capital, listed, marked_words, plural, tabled
from .tiles import tile_rows


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
        tile_rows(
            ax, [("sent: mean", shown), ("its nearest\nown image", nearest)], names, klass, list(map(str, counts))
        )
        heading(ax, f"{capital(client_name(client, setting))} and its {plural(int(counts.sum()), 'image')}")
    single = [names[c] for c in held if counts[c] == 1]
    alt = (
        f"Mean image of each class that client {client} sends ({setting}), above its own image that is nearest to it; "
        f"it holds {plural(len(held), 'class')}."
    )
    if single:
        of = listed(single)
        sentence = f"Client {client} holds a single image of {of}, so the mean that it sends is that image, exactly."
    else:
        fewest = int(held[counts[held].argmin()])
        sentence = (
            f"Client {client} holds {plural(int(counts[fewest]), 'image')} of {names[fewest]}, its rarest class; "
            "the fewer there are, the more a mean shows of each."
        )
    sentence += " If only the sum over all clients is made known (a secure sum), the server sees no client's own mean."
    rows = [(names[c], int(counts[c]), round(distance[c], 3)) for c in held]
    return Picture(
        figure, alt + marked_words(client, klass), sentence, tabled("class | images | distance to the nearest", rows)
    )
