"""What one client sends of its classes, as images, above the image of its own that is nearest: a class of one sample is
that sample."""

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, blank, capital, listed, plural
from ...plots.characters import client_name
from ..nearest import attacks, pairs
from ..runs import where
from .pictures import image_shape


class Sent(LabView):
    """The mean images that a client sends, and its own images nearest to them."""

    name, title = "sent", "What a client sends"

    def draw(self, state: PanelState) -> Picture:
        outcome, report, names = state.outcome, state.report, state.class_names
        if image_shape(state) is None:
            text = "Here features are no pixels, so a mean is no image. The view of the classes shows all means."
            return blank(text, setting=where(outcome))
        client = min(state.client or 0, len(report.counts) - 1)
        counts = report.counts[client]
        held = np.flatnonzero(counts)
        (of,) = attacks(
            outcome, lambda k: (report.client_means[k][held], held, counts[held]), [client]
        )
        rarest = int(held[counts[held].argmin()])
        who = client_name(client, where(outcome))
        text = (
            f"{capital(who)} holds {plural(int(counts[rarest]), 'image')} of {names[rarest]}, its rarest "
            "class; the fewer there are, the more a mean shows of each."
        )
        if single := [names[c] for c in held if counts[c] == 1]:
            text += f" Of {listed(single)} it holds a single image: the mean that it sends is that image, exactly."
        text += " If only the sum over all clients is made known (a secure sum), the server sees no client's own mean."
        title = f"The mean images that {who} sends"
        return pairs(of, names, title, text, setting=where(outcome), klass=state.klass)
