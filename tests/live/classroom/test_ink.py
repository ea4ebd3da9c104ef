"""`pen.js` makes digits of drawings: its constants are those of the training images, and networks read its digits."""

import base64

import pytest
import torch
import torch.nn.functional as F
from javascript import run_javascript

from fedlab_nb.data import load
from fedlab_nb.live.classroom.messages import FULL, build_untrained_class_network
from fedlab_nb.training import Recipe, train_clients_in_place

WIDTH = 160


def test_ink_and_width_are_those_of_the_training_images():
    """A pixel of an image counts the black pixels of a block of 4×4 in the bitmap that it was made from.

    Ink: the mean number of an image's black pixels, minus and plus a standard deviation.
    Width: a block with n black pixels has at least n/4 columns with ink. Each column of blocks has as
    many as its fullest block; these are added up, and the median over the images is taken.
    """
    black_pixels = (FULL * load("digits").x_train[:, 0]).round()
    ink = black_pixels.sum((1, 2))
    lower = round(float(ink.mean() - ink.std()))
    upper = round(float(ink.mean() + ink.std()))
    widths = (black_pixels.amax(1) / 4).ceil().sum(1)
    shown = run_javascript("dom pen", "return [INK, WIDE]")
    assert shown == [[lower, upper], int(widths.median())]


@pytest.fixture(scope="module")
def network():
    digits = load("digits")
    shard = (digits.x_train, digits.y_train)
    (trained,) = train_clients_in_place(
        [build_untrained_class_network()], [shard], Recipe(), seed=0
    )
    return trained.eval()


def make_bitmaps(x):
    """Bitmaps `[n, 1, 32, 32]` of images `x [n, 1, 8, 8]`.

    Each block of 4×4 has as many black pixels as the image's pixel says: the darkest ones of a
    smooth enlargement of the image.
    """
    enlarged = F.interpolate(F.pad(x, (1, 1, 1, 1)), scale_factor=4, mode="bicubic")
    enlarged = enlarged[:, :, 4:-4, 4:-4]
    blocks = enlarged.view(-1, 8, 4, 8, 4).transpose(2, 3).flatten(3)  # [n, 8, 8, 16]
    rank = (-blocks).argsort(-1).argsort(-1)  # 0 is the darkest of a block
    is_black = rank < FULL * x[:, 0, :, :, None]
    return is_black.float().unflatten(3, (4, 4)).transpose(2, 3).reshape(-1, 1, 32, 32)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["public", "test"])
def test_a_drawing_means_what_its_pixels_mean(part, network):
    """Images become large drawings with smooth edges, and pen.js makes images of these again.

    The network gives nearly all of them the class that it gives the first images; neither it nor
    pen.js was made from these. The bound is what is asked for, not what was measured: a pen may
    cost one answer in ten.
    """
    x = getattr(load("digits"), f"x_{part}")[:120]
    bitmaps = make_bitmaps(x)
    assert torch.equal(F.avg_pool2d(bitmaps, 4), x)
    drawings = F.avg_pool2d(F.interpolate(bitmaps, scale_factor=5), 9, 1, 4) > 0.5
    code = """const bytes = Buffer.from(text, "base64"), size = width * width;
        return Array.from({ length: bytes.length / size }, (_, i) =>
            [...convertToDigit(bytes.subarray(i * size, (i + 1) * size), width, width)]);"""
    text = base64.b64encode(drawings.byte().numpy().tobytes()).decode()
    digits = torch.tensor(run_javascript("dom pen", code, text=text, width=WIDTH)).view_as(x)
    with torch.no_grad():
        is_same = network(digits).argmax(1) == network(x).argmax(1)
    assert float(is_same.float().mean()) >= 0.9
