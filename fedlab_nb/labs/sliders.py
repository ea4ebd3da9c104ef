"""A compact block of sliders for one number a client, ten clients at a time."""

from typing import Any

import ipywidgets as widgets
import numpy as np
import traitlets

WINDOW = 10  # clients with a slider at a time
LEVEL = 0.5  # of all sliders at the start


def levels(w: Any) -> tuple[float, ...]:
    """Where the sliders stand for weights `[M]`: the largest at 1; all at LEVEL if they are alike."""
    w = np.asarray(w, dtype=float)
    return tuple((np.full(len(w), LEVEL) if np.ptp(w) == 0 else w / w.max()).round(4).tolist())


class Sliders(widgets.VBox):
    """Ten small sliders in two rows; `value` is the weight of every client `(M,)`, also of those without a slider.

    `fit(clients, first)` says how many clients there are and whose sliders are seen; `put(w)` sets all at once.
    """

    value = traitlets.Tuple()
    description = "Weights of the clients"

    def __init__(self) -> None:
        self.sliders = [
            widgets.FloatSlider(
                LEVEL, min=0, max=1, step=0.02, readout=False, description=str(i), tooltip=f"Weight of client {i}",
                style={"description_width": "20px"}, layout=widgets.Layout(width="128px"),
            )
            for i in range(WINDOW)
        ]  # fmt: skip
        super().__init__([widgets.HBox(self.sliders[:5]), widgets.HBox(self.sliders[5:])])
        self.first, self._quiet = 0, False
        self.value = (LEVEL,) * WINDOW
        for i, slider in enumerate(self.sliders):
            slider.observe(lambda change, i=i: self._moved(i, change["new"]), "value")

    def fit(self, clients: int, first: int) -> None:
        self.first = first
        if len(self.value) != clients:
            self.value = (LEVEL,) * clients
        self._show()

    def put(self, w: Any) -> None:
        """Weights of all clients `[M]`, scaled so that the largest is 1."""
        self.value = levels(w)
        self._show()

    def _show(self) -> None:
        self._quiet = True
        for i, slider in enumerate(self.sliders):
            k = self.first + i
            there = k < len(self.value)
            slider.layout.visibility = "visible" if there else "hidden"
            if there:
                slider.description, slider.tooltip = str(k), f"Weight of client {k}"
                slider.value = self.value[k]
        self._quiet = False

    def _moved(self, i: int, value: float) -> None:
        if not self._quiet and self.first + i < len(self.value):
            w = list(self.value)
            w[self.first + i] = value
            self.value = tuple(w)
