"""Which classes each client sends images of, beside what it holds."""

from collections.abc import Sequence

import numpy as np

from ....plots.kit import Heat
from ....plots.style import Picture, drawing
from ....plots.words import listed, marked_words, plural, tabled


def classes(
    held: np.ndarray, sent: np.ndarray, class_names: Sequence[str], *, setting: str, client: int | None = None,
    klass: int | None = None,
) -> Picture:  # fmt: skip
    """Two tables `[M, C]`: samples held, and images sent; a `client` and a `klass` are marked."""
    marks = {"client": client, "klass": klass}
    with drawing(1, 2) as (figure, axes):
        for ax, values, title in ((axes[0], held, "Samples held"), (axes[1], sent, "Images sent")):
            heat = Heat(ax, len(held), class_names, signed=False, first=ax is axes[0])
            heat.show(values, title, float(max(1, values.max())), ring=False, setting=setting, **marks)
    right = int(((held > 0) == (sent > 0)).sum())
    pairs = int((held > 0).sum())
    shown = client if client is not None and client < len(held) else int((held > 0).sum(1).argmin())
    own = [class_names[c] for c in np.flatnonzero(sent[shown])]
    words = f"Client {shown} sends images of {plural(len(own), 'class')}: {listed(own)}. "
    exact = "exactly" if right == held.size else "nearly"
    words += f"So the labels say {exact} which of the {plural(held.shape[1], 'class')} each client holds."
    alt = (
        f"Two tables of {plural(len(held), 'client')} across and {plural(held.shape[1], 'class')} down ({setting}): "
        f"samples held, {pairs} cells that are not empty, and images sent, {int((sent > 0).sum())} such cells, "
        f"{int(sent.sum())} images in all.{marked_words(client, klass)}"
    )
    rows = (
        (k, ", ".join(class_names[c] for c in np.flatnonzero(held[k])), int(held[k].sum()), int(sent[k].sum()))
        for k in range(len(held))
    )
    return Picture(figure, alt, words, tabled("client | classes that it holds | samples | images sent", rows))
