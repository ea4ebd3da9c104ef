"""Folders of pictures: classes, sizes and colour modes as they occur, and one sentence for what cannot be read."""

import numpy as np
import pytest
from PIL import Image

from fedlab_nb.data import describe, load
from fedlab_nb.data.schema import InputSchema
from fedlab_nb.errors import UsageError

RNG = np.random.default_rng(0)


def make_picture(mode="RGB", size=(12, 10), value=None):
    """A picture of (width, height) with random pixels, or with one value."""
    width, height = size
    bands = {"L": (), "1": (), "RGB": (3,), "RGBA": (4,), "LA": (2,), "I;16": ()}[mode]
    if mode == "1":
        return Image.fromarray(RNG.random((height, width)) > 0.5)
    high = 65536 if mode == "I;16" else 256
    pixels = RNG.integers(0, high, (height, width, *bands))
    if value is not None:
        pixels[:] = value
    return Image.fromarray(pixels.astype(np.uint16 if high > 256 else np.uint8))


def fill_folder(folder, classes=("cat", "dog"), count=10, ending=".png", **options):
    for place, name in enumerate(classes):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            make_picture(**options).save(folder / name / f"{place}-{i}{ending}")
    return folder


def read_refusal(path):
    with pytest.raises(UsageError) as caught:
        load(path)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


@pytest.mark.slow
def test_pictures_of_one_size_are_not_resized(tmp_path):
    folder = fill_folder(tmp_path / "pets")
    data = load(folder)
    assert data.class_names == ("cat", "dog")
    assert data.input_shape == (3, 10, 12)
    assert (len(data.x_train), len(data.x_test)) == (16, 4)
    assert data.name == "pets"
    assert "10x12 pixels" in data.note
    assert "divided by 255" in data.note
    found = {tuple(x.numpy().ravel()) for x in (*data.x_train, *data.x_test)}
    for path in folder.rglob("*.png"):
        pixels = np.moveaxis(np.asarray(Image.open(path)), 2, 0).astype(np.float32) / 255
        assert tuple(pixels.ravel()) in found
    assert describe(str(folder)).n_train == 16
    assert load(f"{folder}/") is load(folder)


@pytest.mark.slow
def test_folders_named_train_and_test_define_the_split(tmp_path):
    fill_folder(tmp_path / "Train", count=12)
    fill_folder(tmp_path / "test", count=3)
    data = load(tmp_path)
    assert (len(data.x_train), len(data.x_test)) == (24, 6)
    assert "folder 'test'" in data.note
    fill_folder(tmp_path / "val", count=2)
    assert len(load(tmp_path).x_train) == 24
    assert "'val' is not read" in load(tmp_path).note
    fill_folder(tmp_path / "test", classes=("bird",), count=1)
    assert "class 'bird'" in read_refusal(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "channels", "ending"),
    [("L", 1, ".png"), ("1", 1, ".png"), ("RGB", 3, ".jpg"), ("RGBA", 3, ".png"), ("LA", 1, ".png"),
     ("L", 1, ".tif"), ("RGB", 3, ".BMP"), ("RGB", 3, ".webp"), ("L", 1, ".gif")],
)  # fmt: skip
def test_every_colour_mode_and_file_format_is_read(tmp_path, mode, channels, ending):
    data = load(fill_folder(tmp_path, mode=mode, ending=ending))
    assert data.input_shape == (channels, 10, 12)
    assert ("Transparent" in data.note) == (mode in ("RGBA", "LA"))


def test_transparent_parts_become_white_and_grey_pictures_are_mentioned(tmp_path):
    fill_folder(tmp_path)
    clear = make_picture("RGBA", value=0)
    clear.save(tmp_path / "cat" / "clear.png")
    make_picture("L").save(tmp_path / "dog" / "grey.png")
    data = load(tmp_path)
    assert "1 grey pictures" in data.note
    assert (data.schema.encode(tmp_path / "cat" / "clear.png") == 1).all()


def test_sixteen_bit_pictures_keep_their_precision(tmp_path):
    data = load(fill_folder(tmp_path, mode="I;16"))
    assert data.input_shape == (1, 10, 12)
    assert 0.4 < float(data.x_train.mean()) < 0.6
    assert len(data.x_train.unique()) > 1000
    make_picture("L").save(tmp_path / "cat" / "eight.png")
    assert "16 bits" in read_refusal(tmp_path)
    assert "eight.png" in read_refusal(tmp_path)


def test_pictures_of_different_sizes_are_resized_and_the_note_says_so(tmp_path):
    fill_folder(tmp_path)
    make_picture(size=(40, 20)).save(tmp_path / "cat" / "wide.jpg")
    data = load(tmp_path)
    assert data.input_shape == (3, 32, 32)
    assert "resized to 32x32" in data.note
    assert load(f"{tmp_path}?size=16").input_shape == (3, 16, 16)
    assert load(tmp_path, size="16x20", mode="grey").input_shape == (1, 16, 20)
    for wrong in ("?size=big", "?size=4", "?mode=blue", "?label=x"):
        assert "size" in read_refusal(f"{tmp_path}{wrong}") or "mode" in read_refusal(
            f"{tmp_path}{wrong}"
        )


def test_a_photograph_is_turned_upright_by_its_exif_data(tmp_path):
    fill_folder(tmp_path)
    upright = make_picture(size=(12, 10), value=0)
    upright.paste((255, 255, 255), (0, 0, 6, 10))  # the left half is white
    turned = upright.rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees clockwise to see it"
    turned.save(tmp_path / "cat" / "turned.png", exif=exif)
    data = load(tmp_path)
    assert data.input_shape == (3, 10, 12)
    x = data.schema.encode(tmp_path / "cat" / "turned.png")[0]
    assert (x[:, :, :6] == 1).all()
    assert not x[:, :, 6:].any()


@pytest.mark.parametrize("content", [b"", b"no picture", None])
def test_a_picture_that_cannot_be_read_is_named(tmp_path, content):
    fill_folder(tmp_path, ending=".jpg")
    if content is None:  # cut off in the middle
        content = (tmp_path / "cat" / "0-1.jpg").read_bytes()[:400]
    (tmp_path / "dog" / "broken.jpg").write_bytes(content)
    assert "'broken.jpg'" in read_refusal(tmp_path)


def test_files_of_programs_are_ignored(tmp_path):
    fill_folder(tmp_path)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    make_picture().save(tmp_path / ".ipynb_checkpoints" / "a.png")
    (tmp_path / "cat" / "._0-0.png").write_bytes(b"resource fork")
    (tmp_path / "cat" / "Thumbs.db").write_bytes(b"x")
    (tmp_path / "notes").mkdir()
    data = load(tmp_path)
    assert data.class_names == ("cat", "dog")
    assert len(data.x_train) + len(data.x_test) == 20
    assert "Thumbs.db" in data.note


def test_folders_without_two_classes_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "it has nothing" in read_refusal(tmp_path / "empty")
    (tmp_path / "flat").mkdir()
    make_picture().save(tmp_path / "flat" / "a.png")
    assert "a.png" in read_refusal(tmp_path / "flat")
    assert "two classes" in read_refusal(fill_folder(tmp_path / "one", classes=("cat",)))


def test_new_pictures_are_prepared_as_the_training_pictures(tmp_path):
    folder = fill_folder(tmp_path / "a", size=(40, 30))
    make_picture(size=(60, 60)).save(folder / "cat" / "large.png")
    data = load(folder)
    schema = InputSchema.from_json(data.schema.to_json())
    paths = sorted(folder.rglob("*.png"))
    x = schema.encode(paths)
    rows = {tuple(row.ravel()) for row in x}
    for tensor in (*data.x_train.numpy(), *data.x_test.numpy()):
        assert tuple(tensor.ravel()) in rows
    assert np.array_equal(schema.encode(str(paths[0])), x[:1])
    assert np.array_equal(schema.encode(Image.open(paths[0])), x[:1])
    exact = load(fill_folder(tmp_path / "b"))
    with pytest.raises(UsageError, match="shape"):
        exact.schema.encode(paths[0])


def test_a_test_picture_that_is_also_a_training_picture_is_mentioned(tmp_path):
    fill_folder(tmp_path / "train")
    fill_folder(tmp_path / "test", count=2)
    content = (tmp_path / "train" / "cat" / "0-0.png").read_bytes()
    (tmp_path / "test" / "cat" / "copy.png").write_bytes(content)
    assert "1 test pictures are among the training pictures" in load(tmp_path).note


def test_a_changed_folder_is_read_again(tmp_path):
    before = load(fill_folder(tmp_path))
    make_picture().save(tmp_path / "cat" / "more.png")
    after = load(tmp_path)
    assert len(after.y_train) + len(after.y_test) == 21
    assert after.digest != before.digest
