"""One sample as a small image among others: labs put what clients have beside what the server gets."""

import numpy as np
from matplotlib.axes import Axes


def show_tile(ax: Axes, values: np.ndarray, left: float, top: float) -> None:
    """Draw an image `[C, H, W]` in [0, 1], or a row of features `[D]` as a strip, in a square of the axes.

    left, top: its corner; y points down
    """
    if values.ndim == 1:
        low, span = float(values.min()), float(np.ptp(values)) or 1.0
        pixels = ((values - low) / span)[:, None]
    else:
        image = np.clip(values, 0, 1)
        pixels = image[0] if len(image) != 3 else np.moveaxis(image, 0, -1)
    extent = (left + 0.06, left + 0.94, top + 0.94, top + 0.06)
    ax.imshow(pixels, cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest")
