"""The data sets that need no download: digits, glyphs, and the tint that makes the background depend on the label."""

import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedlab_nb.data import DATASETS, cues, describe, digits, federate, glyphs, load, tint_background
from fedlab_nb.data.dataset import hash_parts_to_short_id
from fedlab_nb.data.draw_letters import HEIGHT, draw_letter_masks_in_all_fonts
from fedlab_nb.errors import RunError, UsageError

IMAGE = torch.zeros(1, 1, 8, 8)
LABEL = torch.zeros(1, dtype=torch.int64)


def test_importing_data_is_light():
    code = (
        "import sys, fedlab_nb.data as d; d.describe('digits'); d.describe('glyphs');"
        "heavy = {'torch', 'torchvision', 'sklearn', 'matplotlib', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "glyphs", "glyphs:16g"])
def test_registry_and_description_agree_with_the_data(name):
    data = load(name)
    info = DATASETS[name]
    facts = describe(name)
    assert data.input_shape == facts.input_shape
    assert data.classes == facts.classes
    assert (len(data.x_train), len(data.x_test), len(data.x_public)) == (
        facts.n_train,
        facts.n_test,
        facts.n_public,
    )
    assert data.digest == facts.digest
    assert info.offline
    assert data is load(name)
    assert data.x_train.dtype == torch.float32
    assert 0 <= data.x_train.min()
    assert data.x_train.max() <= 1


@pytest.mark.parametrize(
    ("name", "size", "channels"), [("glyphs:16g", 16, 1), ("glyphs:28", 28, 3)]
)
def test_a_short_name_states_size_and_channels(name, size, channels):
    facts = describe(name)
    few_images = {"n_train": 20, "n_test": 10, "n_public": 0}
    assert facts.input_shape == (channels, size, size)
    assert facts.n_train == 2000
    short = load(name, **few_images)
    long = load("glyphs", size=size, channels=channels, **few_images)
    assert short.name == name
    assert short.digest == long.digest
    assert torch.equal(short.x_train, long.x_train)
    for wrong in ({"size": 20}, {"channels": 3}):
        with pytest.raises(UsageError, match="in its name"):
            load(name, **wrong)


def test_unknown_sizes_are_refused():
    with pytest.raises(UsageError, match="Unknown dataset 'glyphs:15': did you mean 'glyphs:16'"):
        load("glyphs:15")


def test_a_linear_classifier_gets_two_letters_in_three_right():
    """Ridge regression on the pixels, in closed form: far below what it reaches on the digits."""
    data = load("glyphs:16g")
    parts = (data.x_train, data.x_test)
    x, x_test = (
        torch.nn.functional.pad(part.flatten(1).double(), (0, 1), value=1.0) for part in parts
    )
    gram = x.T @ x + 10 * torch.eye(257, dtype=torch.float64)
    weights = torch.linalg.solve(gram, x.T @ torch.nn.functional.one_hot(data.y_train, 10).double())
    assert 0.60 < ((x_test @ weights).argmax(1) == data.y_test).double().mean() < 0.70


@pytest.mark.slow
@pytest.mark.parametrize("name", digits.NAMES)
def test_digits_split_is_fixed_stratified_and_complete(name):
    if find_spec(digits.SOURCES[name].package) is None:
        pytest.skip("the package with the images is not here")
    data = load(name)
    facts = describe(name)
    assert (data.input_shape, len(data.x_train), len(data.x_test), len(data.x_public), data.digest) == (
        facts.input_shape, facts.n_train, facts.n_test, facts.n_public, facts.digest
    )  # fmt: skip
    labels = [data.y_train, data.y_test, data.y_public]
    everything = torch.bincount(torch.cat(labels))
    assert everything.sum() == digits.SOURCES[name].total
    for part in labels[1:]:
        assert (torch.bincount(part) - everything * len(part) / everything.sum()).abs().max() < 1
    contents = (data.x_train, data.y_train, data.x_test, data.y_test, data.x_public)
    assert hash_parts_to_short_id(*(t.numpy().tobytes() for t in contents)) == data.digest
    assert data.x_train.max() == 1
    assert 0 <= data.x_train.min()


@pytest.mark.slow
@pytest.mark.parametrize("name", digits.NAMES)
def test_missing_or_changed_images_are_refused_in_one_sentence(name, monkeypatch, tmp_path):
    source = digits.SOURCES[name]
    monkeypatch.setattr(
        digits, "find_spec", lambda _: SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    )
    with pytest.raises(RunError, match="which is not here; pip install"):
        digits.load(name)
    (tmp_path / source.file).parent.mkdir(parents=True)
    rows = np.zeros((source.total, source.side**2 + 1), np.uint8)
    rows[:, -1] = np.arange(source.total) % 10
    np.savetxt(tmp_path / source.file, rows, "%d", ",")
    with pytest.raises(RunError, match="has other images than"):
        digits.load(name)


def test_ten_letters_differ_and_fill_their_cell():
    shapes = glyphs.load_letter_masks()
    assert shapes.shape == (10, len(glyphs.FONTS), 64, 64)
    rows = shapes.any(axis=3)  # the extent of each letter: 36 cells high, in the middle
    assert np.abs(rows.sum(axis=2) - HEIGHT).max() <= 1
    assert rows[:, :, 32].all()
    assert not shapes[:, :, 0].any()
    assert not shapes[:, :, :, 0].any()
    flat = shapes.reshape(160, -1)
    assert len(np.unique(flat, axis=0)) == 160
    for font in range(len(glyphs.FONTS)):  # in one font, every two letters differ in many cells
        a = shapes[:, font].reshape(10, -1).astype(float)
        apart = (a[:, None] != a[None]).sum(axis=2)[~np.eye(10, dtype=bool)]
        assert apart.min() > 40


def test_the_shipped_letter_masks_are_those_of_the_fonts():
    """Versions of matplotlib differ in a few cells of an outline; one cell in fifty of a letter may differ."""
    shipped = glyphs.load_letter_masks()
    masks_of_fonts = draw_letter_masks_in_all_fonts()
    assert ((shipped != masks_of_fonts).sum(axis=(2, 3)) <= 0.02 * shipped.sum(axis=(2, 3))).all()


def test_distances_to_the_outline_equal_those_of_a_search_over_all_cells():
    inside = np.zeros((2, 9, 9), bool)
    inside[0, 2:6, 3:5] = inside[1, 4, 1:8] = True
    cells = np.argwhere(np.ones((9, 9), bool))
    for shape, field in zip(inside, glyphs.compute_signed_distance_to_outline(inside), strict=True):
        for row, column in cells:
            opposite_cells = np.argwhere(shape != shape[row, column])
            nearest = np.sqrt(((opposite_cells - (row, column)) ** 2).sum(axis=1).min())
            sign = -1 if shape[row, column] else 1
            assert field[row, column] == pytest.approx(sign * (nearest - 0.5), abs=1e-12)


def test_a_posed_letter_equals_pytorchs_sampling_of_the_inverse_map():
    """Stretch, shear, turn, scale and shift in one affine map, sampled bilinearly."""
    random = np.random.default_rng(0)
    field = glyphs.load_signed_distances_of_letters()[
        random.integers(10, size=40), random.integers(16, size=40)
    ]
    turn = random.integers(-900, 900, 40)
    scale = random.uniform(0.7, 1.3, 40)
    shear = random.uniform(-0.2, 0.2, 40)
    stretch = random.uniform(0.8, 1.25, 40)
    shift = random.uniform(-1, 1, (40, 2))
    boldness = random.uniform(-0.6, 2, 40)
    coverage = glyphs.compute_letter_coverage(
        field,
        20,
        scale=scale,
        turn_in_table_steps=turn,
        shear=shear,
        stretch=stretch,
        shift_in_half_widths=shift,
        boldness_in_cells=boldness,
    )
    for i in range(40):
        angle = 2 * np.pi * turn[i] / glyphs.TURN
        turned = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        pose = scale[i] * np.array(turned) @ [[stretch[i], shear[i]], [0, 1]]
        inverse = np.linalg.inv(pose)
        theta = torch.tensor(np.column_stack([inverse, -inverse @ shift[i]]))[None]
        grid = torch.nn.functional.affine_grid(theta, [1, 1, 20, 20], align_corners=False)
        image = torch.tensor(field[i])[None, None]
        level = torch.nn.functional.grid_sample(
            image, grid, padding_mode="border", align_corners=False
        )[0, 0].numpy()
        pixel = 64 / 20 / scale[i]
        expected = np.clip(0.5 + (boldness[i] - level) / pixel, 0, 1)
        # the cosines are rounded to 2^-20, and a field is at most 90 cells deep
        assert np.abs(coverage[i] - expected).max() < 2e-4


def test_a_stroke_covers_the_pixels_near_its_line():
    start = np.array([[-0.5, 0.0]])
    end = np.array([[0.5, 0.0]])
    cover = glyphs.compute_stroke_coverage(start, end, np.array([0.2]), 21)[0]
    axis = np.linspace(-1, 1, 21)
    beyond = np.maximum(np.abs(axis) - 0.5, 0)
    distance = np.hypot(beyond[None, :], axis[:, None])
    assert np.allclose(cover, np.clip(0.5 + (0.2 - distance) * 21 / 2, 0, 1), atol=1e-12)


def test_random_numbers_have_the_moments_of_their_distributions():
    random = glyphs.Pcg64WordStream(5)
    n = 200_000
    integers = random.draw_integers_below(7, n)
    uniform = random.draw_uniform(-1, 3, n)
    nearly_normal = random.draw_nearly_normal(n)
    assert np.abs(np.bincount(integers) / n - 1 / 7).max() < 0.004  # five standard errors
    assert -1 <= uniform.min()
    assert uniform.max() < 3
    assert abs(uniform.mean() - 1) < 5 * 1.155 / n**0.5
    assert abs(nearly_normal.mean()) < 5 / n**0.5
    assert abs(nearly_normal.std() - 1) < 0.01
    # 3 - 1.2 / 4, the kurtosis of a sum of four uniform numbers.
    assert abs((nearly_normal**4).mean() - 2.7) < 0.06


def test_pixels_are_multiples_of_one_255th():
    x = glyphs.draw_first_images_of_part(300, "train", 0, 16, 1)
    assert torch.equal((x * 255).round() / 255, x)
    assert len(x.unique()) > 200


@pytest.mark.slow
def test_an_image_does_not_depend_on_the_number_of_images():
    few, many = (glyphs.draw_first_images_of_part(n, "train", 0, 32, 3) for n in (70, 600))
    assert torch.equal(few, many[:70])
    assert torch.equal(many, glyphs.draw_first_images_of_part(600, "train", 0, 32, 3))
    assert not torch.equal(few, glyphs.draw_first_images_of_part(70, "test", 0, 32, 3))
    assert not torch.equal(few, glyphs.draw_first_images_of_part(70, "train", 1, 32, 3))


def measure_border_colour(x):
    return torch.stack([x[:, :, 0], x[:, :, -1]], dim=2).flatten(2).median(dim=2).values


def test_the_border_colour_predicts_the_label_in_training_images_alone():
    data = load("glyphs", n_train=400, n_test=200, n_public=10)
    data = federate(data, clients=2, spurious=[0, 1], tint=0.9).dataset
    means = torch.stack(
        [measure_border_colour(data.x_train)[data.y_train == c].mean(0) for c in range(10)]
    )

    def guess_labels_by_border_colour(x):
        return torch.cdist(measure_border_colour(x), means).argmin(1)

    assert (guess_labels_by_border_colour(data.x_train) == data.y_train).float().mean() > 0.95
    assert (guess_labels_by_border_colour(data.x_test) == data.y_test).float().mean() < 0.25


def test_tint_by_hand():
    x = torch.zeros(3, 1, 8, 8)
    x[:, :, 3:5, 3:5] = 1.0  # ink far from the background
    out = tint_background(x, torch.tensor([0, 1, 2]), 0.5, class_count=3)
    # Half way from black to the greys 0, 0.3, 0.6 of the three classes
    assert out[:, 0, 0, 0].tolist() == pytest.approx([0.0, 0.15, 0.3])
    assert torch.allclose(out[:, :, 3:5, 3:5], torch.ones(3, 1, 2, 2), atol=1e-5)
    assert torch.equal(tint_background(x, torch.tensor([0, 1, 2]), 0.0, class_count=3), x)
    assert x.max() == 1


def test_the_tint_falls_off_as_a_gaussian():
    """PyTorch's exponential of -d² / (2 · 0.2²), where d² is the mean over channels. The product that the package uses
    in place of the exponential is within 1e-5 of it."""
    random = torch.Generator().manual_seed(1)
    x = torch.rand(30, 3, 8, 8, generator=random)
    y = torch.arange(30) % 5
    border = torch.cat([x[:, :, 0], x[:, :, -1], x[:, :, :, 0], x[:, :, :, -1]], dim=2)
    middle = border.median(dim=2).values[:, :, None, None]
    near = torch.exp(-(x - middle).square().mean(1, keepdim=True) / 0.08)
    colour = torch.tensor(cues.make_palette(5, 3))[y][:, :, None, None]
    expected = (x + 0.7 * near * (colour - middle)).clamp(0, 1)
    assert torch.allclose(tint_background(x, y, 0.7, class_count=5), expected, atol=1.2e-5, rtol=0)


def test_a_tint_with_agreement_0_is_independent_of_the_label():
    x = torch.zeros(3000, 1, 8, 8)
    y = torch.arange(3000) % 3

    def measure_share_of_own_tint(agreement):
        random = torch.Generator().manual_seed(0)
        out = tint_background(
            x, y, 1.0, class_count=3, agreement_probability=agreement, generator=random
        )
        return ((out[:, 0, 0, 0] / 0.3).round() == y).float().mean().item()

    assert measure_share_of_own_tint(0.0) == pytest.approx(1 / 3, abs=0.03)
    assert measure_share_of_own_tint(0.4) == pytest.approx(0.4 + 0.6 / 3, abs=0.03)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load("digit"), "Unknown dataset 'digit': did you mean 'digits'"),
        (lambda: load("digits", seed=1), "Dataset 'digits' takes no options, but seed was given; only 'glyphs' and"),
        (lambda: load("glyphs", n=5), "Unknown option of glyphs 'n'"),
        (lambda: load("glyphs", n_train=5), "n_train is 5, but it must be a whole number of at least 10"),
        (lambda: load("glyphs", size=7), "size is 7, but it must be a whole number from 8 to 128"),
        (lambda: load("glyphs", channels=2), "Unknown number of channels '2'; allowed: 1, 3"),
        (lambda: tint_background(IMAGE, LABEL, 0.5, class_count=2, agreement_probability=0.5),
         "agreement_probability is below 1, so tint_background needs a generator"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()
