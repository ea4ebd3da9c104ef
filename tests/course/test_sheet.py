"""Pictures side by side: one image, every sentence, every alternative text."""

import io

from PIL import Image

from fedlab_nb.course.heterogeneity import lesson
from fedlab_nb.plots import png


def test_sheet_of_partitions():
    sheet = lesson.partitions(alphas=(100, 1, 0.1))
    image = Image.open(io.BytesIO(sheet.png()))
    single = Image.open(io.BytesIO(png(next(iter(sheet.pictures.values())))))
    assert image.size == (2 * single.width, 2 * single.height)
    data, metadata = sheet._repr_mimebundle_()
    assert data["text/plain"].count("\n") == 2
    assert all(
        f"α = {alpha}" in data["text/plain"] and f"α = {alpha}" in metadata["image/png"]["alt"]
        for alpha in (100, 1, 0.1)
    )
