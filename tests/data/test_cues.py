"""The shape cue: the ten figures, and how an image gets the figure of its label at a random place and colour."""

import numpy as np
import pytest
import torch

from fedlab_nb.data import federate
from fedlab_nb.data.cues import (
    COLOURS,
    SHAPES,
    SMALLEST_FIGURE,
    draw_shape_mask,
    list_ten_shape_colours,
    stamp_shape,
)
from fedlab_nb.errors import UsageError


def make_generator(seed=0):
    return torch.Generator().manual_seed(seed)


def stamp_images(labels, size=32, channels=3, seed=0, **options):
    x = torch.full((len(labels), channels, size, size), 0.25)
    options = {"class_count": 10, "generator": make_generator(seed), **options}
    return x, stamp_shape(x, torch.tensor(labels), options.pop("strength", 1.0), **options)


@pytest.mark.parametrize("size, width", [(5, 8), (9, 28), (10, 32)])
def test_all_figures_differ_and_are_symmetric(size, width):
    figures = [draw_shape_mask(name, size, width) for name in SHAPES]
    assert len({str(figure) for figure in figures}) == 10
    for name, figure in zip(SHAPES, figures, strict=True):
        assert len(figure) == size
        assert {len(row) for row in figure} == {min(2 * size, width) if name == "ellipse" else size}
        assert all(row == row[::-1] for row in figure)  # each is symmetric about its upright axis


def test_figures_have_the_areas_of_geometry():
    area = {name: sum(map(sum, draw_shape_mask(name, 60, 200))) / 3600 for name in SHAPES}
    expected = {"circle": 0.785, "triangle": 0.5, "square": 1, "ellipse": 1.571, "diamond": 0.5, "cross": 0.524,
             "pentagon": 0.594, "hexagon": 0.650}  # fmt: skip
    assert {name: area[name] for name in expected} == pytest.approx(expected, abs=0.02)


def test_the_heart_is_the_algebraic_curve_with_its_tip_down():
    heart = np.array(draw_shape_mask("heart", 60, 60))
    middles = (np.arange(60) + 0.5) / 30 - 1
    u = 1.35**0.5 * middles[None, :]
    v = -(1.2 * middles[:, None] + 0.1)  # v points up
    inside = (u**2 + v**2 - 1) ** 3 <= u**2 * v**3
    assert (inside != heart).mean() < 0.01  # pixels at the edge
    assert heart[:20].sum() > 2 * heart[40:].sum()


def test_the_figure_depends_on_the_label_but_place_and_colour_do_not():
    x, out = stamp_images([4] * 60)
    covered = (out != x).any(1)
    star = torch.tensor(draw_shape_mask("star", 10, 32))
    corners = set()
    colours = set()
    for image, mask in zip(out, covered, strict=True):
        rows = mask.any(1).nonzero().flatten()
        columns = mask.any(0).nonzero().flatten()
        figure = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert torch.equal(figure, star[star.any(1)][:, star.any(0)])
        corners.add((int(rows[0]), int(columns[0])))
        colour = image[:, mask].unique(dim=1)
        assert colour.shape[1] == 1  # opaque: of one colour
        colours.add(tuple(colour.flatten().tolist()))
    assert len(corners) > 40
    assert len(colours) == 10
    assert {tuple(torch.tensor(c).tolist()) for c in list_ten_shape_colours(3)} == colours
    assert len(COLOURS) == 10


@pytest.mark.slow
def test_every_class_has_its_figure_and_strength_is_opacity():
    x, out = stamp_images(list(range(10)))
    areas = (out != x).any(1).flatten(1).sum(1).tolist()
    assert areas == [sum(map(sum, draw_shape_mask(name, 10, 32))) for name in SHAPES]
    _, half = stamp_images(list(range(10)), strength=0.5)
    torch.testing.assert_close(half - x, (out - x) / 2)
    assert torch.equal(stamp_images([1, 2], strength=0)[0], stamp_images([1, 2], strength=0)[1])
    assert stamp_images([7], size=8, channels=1)[1].shape == (1, 1, 8, 8)
    assert len(set(map(tuple, list_ten_shape_colours(1)))) == 10


def test_a_figure_with_agreement_0_is_independent_of_the_label():
    areas = {sum(map(sum, draw_shape_mask(name, 30, 96))): c for c, name in enumerate(SHAPES)}
    x, out = stamp_images([3] * 400, size=96, agreement_probability=0)
    classes_shown = [areas[int(area)] for area in (out != x).any(1).flatten(1).sum(1)]
    assert len(areas) == 10
    assert all(20 < classes_shown.count(c) < 65 for c in range(10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stamp_images([0], size=SMALLEST_FIGURE), "at least 6 x 6 pixels"),
        (
            lambda: stamp_shape(
                torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64), 1, class_count=2
            ),
            "needs images",
        ),
        (
            lambda: stamp_images([0], class_count=26),
            "at most 10 classes, not for 26; use cue='tint'",
        ),
        (lambda: stamp_images([0], generator=None), "needs a generator"),
        (lambda: stamp_images([0], strength=2), "tint is 2, but it must be a number from 0 to 1"),
        (lambda: federate("digits", clients=3, cue="stamp"), "Unknown cue 'stamp'"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        call()
