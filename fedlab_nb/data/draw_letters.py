"""Draw the ten letters of `glyphs` in sixteen fonts with matplotlib, and save them as `letters.npz`.

    python -m fedlab_nb.data.draw_letters letters.npz

Versions of matplotlib draw a letter's edge differently. So the shapes are shipped with the package,
and no other module imports this one. If you ship other shapes, raise `glyphs.VERSION` and recompute
the stored results on the glyphs.
"""

import sys
from pathlib import Path

import numpy as np

from fedlab_nb.data.array_types import LetterMasks
from fedlab_nb.data.glyphs import CELL, FONTS, LETTERS

HEIGHT = 36  # of a letter, in cells


def draw_letter_masks_in_all_fonts() -> LetterMasks:
    """Draw all letters in all fonts: bool [letters, fonts, 64, 64], True inside the letter.

    Each letter is centred and 36 cells high. All of them are drawn as one picture.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D, IdentityTransform

    rows = len(LETTERS)
    columns = len(FONTS)
    size_in_inches = (columns * CELL / 100, rows * CELL / 100)
    figure = Figure(figsize=size_in_inches, dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    for column, name in enumerate(FONTS):
        font = FontProperties(fname=f"{matplotlib.get_data_path()}/fonts/ttf/{name}.ttf")
        for row, letter in enumerate(LETTERS):
            outline = TextPath((0, 0), letter, size=100, prop=font)
            box = outline.get_extents()
            placement = Affine2D().translate(*-(box.p0 + box.p1) / 2).scale(HEIGHT / box.height)
            placement = placement.translate((column + 0.5) * CELL, (rows - row - 0.5) * CELL)
            shape = outline.transformed(placement)
            patch = PathPatch(shape, facecolor="black", linewidth=0, transform=IdentityTransform())
            figure.add_artist(patch)
    canvas.draw()
    is_inside = np.asarray(canvas.buffer_rgba())[:, :, 0] < 128
    return is_inside.reshape(rows, CELL, columns, CELL).transpose(0, 2, 1, 3)


def write_letter_masks_to_npz(path: Path) -> None:
    """Write the shapes to an `.npz` file, eight cells in a byte."""
    np.savez_compressed(path, shapes=np.packbits(draw_letter_masks_in_all_fonts(), axis=-1))


if __name__ == "__main__":
    write_letter_masks_to_npz(Path(sys.argv[1]))
