"""A drawing as the networks know digits: what `pen.js` has from the training images, and what its images mean."""

import base64

import pytest
import torch
import torch.nn.functional as F
from javascript import javascript

from fedlab_nb.data import load
from fedlab_nb.live.classroom.messages import FULL, build_network
from fedlab_nb.training import Recipe, train_clients_to_end

WIDTH = 160


def test_ink_and_width_are_those_of_the_training_images():
    """Ink: the mean of their black pixels, a deviation to each side. Width: a column of blocks of 4×4 has at least a
    quarter of its fullest block's pixels as columns; the median of their sum."""
    x = (FULL * load("digits").x_train[:, 0]).round()
    ink, wide = x.sum((1, 2)), (x.amax(1) / 4).ceil().sum(1).median()
    bounds = [round(float(ink.mean() + side * ink.std())) for side in (-1, 1)]
    assert javascript("dom pen", "return [INK, WIDE]") == [bounds, int(wide)]


@pytest.fixture(scope="module")
def net():
    digits = load("digits")
    return train_clients_to_end(
        [build_network()], [(digits.x_train, digits.y_train)], Recipe(), seed=0
    )[0].eval()


@pytest.mark.parametrize("part", ["public", "test"])
def test_a_drawing_means_what_its_pixels_mean(part, net):
    """Images that neither the network nor pen.js was made from become bitmaps whose blocks have just as many black
    pixels, the darkest of a smooth enlargement, five times as large with smooth edges. The network names the images
    that pen.js makes of them alike. The bound is a demand and nothing measured: a pen may cost one answer in ten."""
    x = getattr(load("digits"), f"x_{part}")[:120]
    smooth = F.interpolate(F.pad(x, (1, 1, 1, 1)), scale_factor=4, mode="bicubic")[:, :, 4:-4, 4:-4]
    place = (-smooth.view(-1, 8, 4, 8, 4).transpose(2, 3).flatten(3)).argsort(-1).argsort(-1)
    bits = (
        (place < FULL * x[:, 0, :, :, None])
        .float()
        .unflatten(3, (4, 4))
        .transpose(2, 3)
        .reshape(-1, 1, 32, 32)
    )
    assert torch.equal(F.avg_pool2d(bits, 4), x)
    large = F.avg_pool2d(F.interpolate(bits, scale_factor=5), 9, 1, 4) > 0.5
    code = """const bytes = Buffer.from(text, "base64"), size = width * width;
        return Array.from({ length: bytes.length / size }, (_, i) =>
            [...convertToDigit(bytes.subarray(i * size, (i + 1) * size), width, width)]);"""
    coded = base64.b64encode(large.byte().numpy().tobytes()).decode()
    drawn = torch.tensor(javascript("dom pen", code, text=coded, width=WIDTH)).view_as(x)
    with torch.no_grad():
        alike = float((net(drawn).argmax(1) == net(x).argmax(1)).float().mean())
    assert alike >= 0.9
