"""A user's own .npz: the accepted arrays, how they are scaled, and one sentence for each file that cannot be used."""

import hashlib

import numpy as np
import pytest
import torch

from fedlab_nb.data import describe, load
from fedlab_nb.errors import UsageError


def make_arrays(**changes):
    random = np.random.default_rng(0)
    data = dict(
        x_train=random.integers(0, 256, (12, 8, 9), dtype=np.uint8),
        y_train=np.arange(12) % 3,
        x_test=random.integers(0, 256, (6, 8, 9), dtype=np.uint8),
        y_test=np.arange(6) % 3,
    )
    return {key: value for key, value in {**data, **changes}.items() if value is not None}


def save_arrays(folder, **changes):
    path = folder / "mine.npz"
    np.savez(path, **make_arrays(**changes))
    return path


def test_grey_images_are_loaded_with_their_public_part(tmp_path):
    path = save_arrays(
        tmp_path,
        x_public=np.full((4, 8, 9), 51, np.uint8),
        y_public=[2, 0, 1, 1],
        extra=np.zeros(2),
    )
    data = load(path)
    assert data.input_shape == (1, 8, 9)
    assert data.classes == 3
    assert data.class_names == ("0", "1", "2")
    assert torch.equal(
        data.x_train, torch.from_numpy(make_arrays()["x_train"]).float()[:, None] / 255
    )
    assert torch.equal(data.x_public, torch.full((4, 1, 8, 9), 51 / 255))
    assert data.note == "Pixels are divided by 255. Ignored in the file: extra."
    assert data.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert data.name == "mine.npz"
    facts = describe(str(path))
    assert (facts.input_shape, facts.classes, facts.n_train, facts.n_test, facts.n_public) == (
        (1, 8, 9),
        3,
        12,
        6,
        4,
    )
    assert facts.digest == data.digest
    assert load(str(path)) is data
    assert data.y_public.tolist() == [2, 0, 1, 1]


def test_a_changed_file_is_loaded_again(tmp_path):
    before = load(save_arrays(tmp_path))
    after = load(
        save_arrays(tmp_path, x_test=np.zeros((600, 8, 9), np.uint8), y_test=np.zeros(600, int))
    )
    assert len(after.x_test) == 600
    assert before.digest != after.digest


def test_channels_first_and_last_are_the_same_images(tmp_path):
    random = np.random.default_rng(1)
    train, test = (random.random((n, 8, 10, 3)).astype(np.float32) for n in (12, 6))
    channels_last = load(save_arrays(tmp_path, x_train=train, x_test=test))
    channels_first = load(
        save_arrays(
            tmp_path, x_train=train.transpose(0, 3, 1, 2), x_test=test.transpose(0, 3, 1, 2)
        )
    )
    assert channels_last.input_shape == channels_first.input_shape == (3, 8, 10)
    assert torch.equal(channels_last.x_train, channels_first.x_train)
    assert channels_last.x_train[5, 2, 3, 4] == train[5, 3, 4, 2]
    assert channels_last.note == "Pixels are used as they are."


def test_pixels_of_other_ranges_are_scaled_by_the_training_set(tmp_path):
    train = np.linspace(-1, 3, 12 * 64).reshape(12, 8, 8)
    test = np.stack([np.full((8, 8), v) for v in (-5.0, -1, 0, 1, 3, 9)])
    data = load(save_arrays(tmp_path, x_train=train, x_test=test))
    assert data.x_test[:, 0, 0, 0].tolist() == [0, 0, 0.25, 0.5, 1, 1]
    assert data.note == "Pixels are scaled by the training set's range -1 to 3."
    integers = load(
        save_arrays(
            tmp_path, x_train=(train * 10).astype(np.int16), x_test=(test * 10).astype(np.int16)
        )
    )
    assert integers.x_train.min() == 0
    assert integers.x_train.max() == 1
    assert "range -10 to 30" in integers.note


def test_features_are_standardised_by_the_training_set(tmp_path):
    random = np.random.default_rng(2)
    train = random.normal(5, 3, (12, 4))
    test = random.normal(5, 3, (6, 4))
    train[:, 1] = test[:, 1] = 7.0  # a constant column
    data = load(save_arrays(tmp_path, x_train=train, x_test=test))
    assert data.input_shape == (4,)
    assert "standardised" in data.note
    assert torch.allclose(data.x_train.mean(0), torch.zeros(4), atol=1e-6)
    assert torch.allclose(
        data.x_train.std(0, unbiased=False), torch.tensor([1.0, 0, 1, 1]), atol=1e-6
    )
    expected = (test[:, 0] - train[:, 0].mean()) / train[:, 0].std()
    assert np.allclose(data.x_test[:, 0], expected, atol=1e-6)


def test_labels_of_any_type_with_whole_numbers_are_accepted(tmp_path):
    for kind in (np.uint8, np.int32, np.float64, np.uint64):
        data = load(save_arrays(tmp_path, y_train=(np.arange(12) % 3).astype(kind)))
        assert data.y_train.tolist() == [0, 1, 2] * 4
        assert data.y_train.dtype == torch.int64
    gap = load(save_arrays(tmp_path, y_train=np.arange(12) % 2 * 3, y_test=np.full(6, 3)))
    assert gap.classes == 4
    assert "No training sample has the label 1, 2." in gap.note


NAN = np.zeros((12, 8, 8))
NAN[4, 2, 2] = np.nan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(y_train=None, x_test=None), r"mine.npz has no array y_train, x_test \(it has: x_train, y_test\)"),
        (dict(x_train=np.array([np.zeros(2), None], object)), "mine.npz has an array of Python objects"),
        (dict(y_train=np.arange(11)), r"x_train has shape \(12, 8, 9\) but y_train has 11 labels"),
        (dict(y_test=np.arange(5) % 3), "but y_test has 5 labels"),
        (dict(x_train=NAN, x_test=NAN[:6]), r"x_train holds NaN or infinity \(first in sample 4\)"),
        (dict(x_train=np.full((12, 4), np.inf)), r"x_train holds NaN or infinity \(first in sample 0\)"),
        (dict(y_train=np.arange(12) % 3 - 1), "y_train holds the label -1, but labels must be whole numbers 0..C-1"),
        (dict(y_train=np.arange(12) + 0.5), "y_train holds the label 0.5, but labels must be whole numbers"),
        (dict(y_train=np.array(list("abcabcabcabc"))), "y_train holds <U1, but labels must be whole numbers"),
        (dict(y_train=np.eye(12)), r"y_train has shape \(12, 12\), but it must be \[N\].*one-hot"),
        (dict(y_train=np.arange(12) + 1990), "y_train holds the label 1990, but .* with at most 1000"),
        (dict(y_train=np.zeros(12, int), y_test=np.zeros(6, int)), "y_train holds only the label 0"),
        (dict(y_test=np.arange(6)), "y_test holds the label 5"),
        (dict(y_train=np.zeros(0, int), x_train=np.zeros((0, 8, 8))), "y_train is empty"),
        (dict(x_public=np.zeros((0, 8, 9))), "x_public is empty .*; leave it out"),
        (dict(y_public=np.zeros(4, int)), "has y_public but no x_public"),
        (dict(x_public=np.zeros((4, 8, 9), np.uint8), y_public=np.zeros(3, int)), "but y_public has 3 labels"),
        (dict(x_public=np.zeros((2, 8, 9), np.uint8), y_public=np.array([0, 3])), "y_public holds the label 3"),
        (dict(x_train=np.zeros(12)), r"x_train has shape \(12,\), but it must be images \[N, H, W\]"),
        (dict(x_train=np.zeros((12, 7, 8))), r"x_train has shape .* H, W at least 8"),
        (dict(x_train=np.zeros((12, 8, 8, 2))), r"x_train has shape \(12, 8, 8, 2\), but .* C = 1 or 3"),
        (dict(x_train=np.zeros((12, 8, 8), complex)), "x_train holds complex128, but samples must be uint8 or float"),
        (dict(x_test=np.zeros((6, 8, 8), np.uint8)), r"x_test has samples of shape \(1, 8, 8\), but those of x_train"),
        (dict(x_test=np.zeros((6, 8, 9))), r"different number types \(x_train uint8, x_test float64\)"),
        (dict(x_train=np.eye(12, 4) * 1e308, x_test=np.ones((6, 4))), "The features are too large to standardise"),
    ],
)  # fmt: skip
def test_one_sentence_for_each_unusable_file(tmp_path, changes, message):
    with pytest.raises(UsageError, match=message) as caught:
        load(save_arrays(tmp_path, **changes))
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text


def test_missing_files_folders_and_other_formats_are_refused(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"The data file '.*none.npz' does not exist; give the path of a table .* arrays \(.npz",
    ):
        load(tmp_path / "none.npz")
    with pytest.raises(UsageError, match="needs a folder of pictures for each"):
        load(tmp_path)
    text = tmp_path / "text.npz"
    for content in (b"", b"x_train = [1, 2]", b"\x80\x04N."):  # the last is a pickle
        text.write_bytes(content)
        with pytest.raises(
            UsageError,
            match=r"text.npz is not an .npz file; write it with numpy.savez\(path, x_train",
        ):
            load(text)


def test_a_damaged_file_is_refused(tmp_path):
    path = save_arrays(tmp_path)
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(
        UsageError, match=r"mine.npz is damaged and cannot be read \(.*\); write it again"
    ):
        load(path)
