"""Spurious cues by name: what ties an image to its label at some clients and nowhere else.

A cue is a function (x, labels, strength, *, classes, agree=1, generator) -> changed images; see the two here.
"""

from fedlab_nb.data.shapes import stamp_shape
from fedlab_nb.data.tint import tint_background

CUES = {"tint": tint_background, "shape": stamp_shape}
NOTES = {
    "tint": "The background of {count} training images is tinted by label (strength {strength:g}).",
    "shape": "{count} training images carry a small figure whose shape goes with the label (strength {strength:g}).",
}
