"""Read a folder of pictures as a data set: one subfolder for each class, read by torchvision's
ImageFolder.

    photos/cat/1.jpg  photos/dog/2.png                   a fifth of each class is for testing
    photos/train/cat/1.jpg  photos/test/dog/2.png        the folders give the split

    fl.load("photos/?size=32")

All pictures get the same mode: grey if all of them are grey, otherwise colour. Transparent parts
become white, and pictures are turned upright as their EXIF data say. Pictures that all have the same
size, up to 128 pixels a side, keep it; otherwise they are cropped to the middle and resized.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from fedlab_nb.data.array_types import BooleanPerSample, LabelArray
from fedlab_nb.data.dataset import Dataset, hash_parts_to_short_id, make_dataset_from_checked_arrays
from fedlab_nb.data.input_types import FileOptionTexts
from fedlab_nb.data.pictures import (
    ColourMode,
    PictureMode,
    find_pixel_scale,
    read_picture,
    read_picture_size_and_mode,
)
from fedlab_nb.data.schema import IMAGES, InputSchema
from fedlab_nb.data.tables import draw_fifth_of_rows_for_test
from fedlab_nb.errors import UsageError
from fedlab_nb.value_types import HeightAndWidth, SentenceOrEmpty

OPTIONS = ("size", "mode")
TRAIN_FOLDERS = ("train", "training")
TEST_FOLDERS = ("test", "testing")
VALIDATION_FOLDERS = ("val", "valid", "validation", "dev")
PICTURES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")
SMALLEST, LARGEST = 8, 128  # pixels a side; pictures of one size in this range are not resized
USUAL_SIZE = 32  # pixels a side of resized pictures
MODES: dict[str, Literal["L", "RGB"]] = {"grey": "L", "gray": "L", "colour": "RGB", "color": "RGB"}
SHOWN_NAMES = 5


@dataclass(frozen=True)
class LabelledPicturePaths:
    """The pictures of one part: paths, and the class of each, an index into `classes`."""

    paths: list[Path]
    labels: np.ndarray
    classes: list[str]


def load_folder_of_pictures(folder: Path, options: FileOptionTexts, folder_digest: str) -> Dataset:
    """Load the Dataset of a folder. Raises UsageError, which names a picture that cannot be
    read."""
    name = folder.name or str(folder)
    train, test, split_note = find_training_and_test_pictures(folder)
    class_names = train.classes
    paths = list(train.paths)
    labels = train.labels
    if test is not None:
        paths += test.paths
        labels = np.concatenate([labels, map_labels_to_training_classes(test, class_names, name)])
        is_test = np.arange(len(paths)) >= len(train.paths)
    else:
        is_test = draw_fifth_of_rows_for_test(labels, None)
    facts = [read_picture_size_and_mode(path) for path in paths]
    modes = [fact.mode for fact in facts]
    mode = choose_colour_mode(options.get("mode", ""), modes, paths)
    size, size_note, is_resized = choose_picture_size(
        options.get("size", ""), [fact.size for fact in facts]
    )
    pixels = np.stack([read_picture(path, mode, size if is_resized else None) for path in paths])
    raw = {"x_train": pixels[~is_test], "x_test": pixels[is_test]}
    scale = replace(find_pixel_scale(raw, "x_train"), mode=mode, resized=is_resized)
    arrays = {
        "x_train": scale.scale_to_0_to_1(raw["x_train"]),
        "y_train": labels[~is_test],
        "x_test": scale.scale_to_0_to_1(raw["x_test"]),
        "y_test": labels[is_test],
    }
    colours = "in grey" if mode == "L" else "in colour"
    notes = [
        f"{len(paths)} pictures of {len(class_names)} classes, {colours}.",
        size_note,
        scale.describe_scaling(),
        describe_mode_changes_if_any(modes, mode),
        split_note,
        describe_pictures_in_both_parts_if_any(paths, is_test),
        describe_ignored_files_if_any(folder),
    ]
    schema = InputSchema(IMAGES, tuple(pixels.shape[1:]), tuple(class_names), pixels=scale)
    note = " ".join(sentence for sentence in notes if sentence)
    return make_dataset_from_checked_arrays(
        name, folder_digest, arrays, tuple(class_names), note, (), schema
    )


def is_hidden_or_made_by_program(path: Path, root_folder: Path) -> bool:
    """True if a path or a folder above it is hidden or made by a program: `.ipynb_checkpoints`,
    `__MACOSX`, `._a.jpg`."""
    return any(part.startswith((".", "__")) for part in path.relative_to(root_folder).parts)


def list_visible_subfolders(folder: Path) -> list[Path]:
    """List the folders in `folder`, sorted by name, without hidden ones."""
    subfolders = []
    for path in folder.iterdir():
        if path.is_dir() and not is_hidden_or_made_by_program(path, folder):
            subfolders.append(path)
    return sorted(subfolders)


class TrainAndTestPictures(NamedTuple):
    """The folders of training and test pictures.

    train: the training pictures; all pictures if `test` is None
    test: the test pictures, if there is a folder for them
    note: a sentence on how they were found
    """

    train: LabelledPicturePaths
    test: LabelledPicturePaths | None
    note: str


def find_training_and_test_pictures(folder: Path) -> TrainAndTestPictures:
    """Find the training and test pictures of a folder. Raises UsageError."""
    by_name = {path.name.lower(): path for path in list_visible_subfolders(folder)}
    train = find_first_folder_with_name(by_name, TRAIN_FOLDERS)
    test = find_first_folder_with_name(by_name, TEST_FOLDERS)
    validation = find_first_folder_with_name(by_name, VALIDATION_FOLDERS)
    if train is None:
        note = "A fifth of the pictures, drawn at random in each class, is for testing."
        return TrainAndTestPictures(find_pictures_in_class_folders(folder), None, note)
    if test is None and validation is None:
        note = (
            f"Only the folder {train.name!r} is read; a fifth of its pictures, drawn at random in "
            "each class, is for testing."
        )
        return TrainAndTestPictures(find_pictures_in_class_folders(train), None, note)
    test_folder = test or validation
    assert test_folder is not None
    note = f"The test pictures are those of the folder {test_folder.name!r}."
    if test is not None and validation is not None:
        note += f" The folder {validation.name!r} is not read."
    return TrainAndTestPictures(
        find_pictures_in_class_folders(train), find_pictures_in_class_folders(test_folder), note
    )


def find_first_folder_with_name(
    folders_by_name: Mapping[str, Path], wanted_names: tuple[str, ...]
) -> Path | None:
    """Find the folder with the first of the `wanted_names` that exists; None if there is none."""
    for name in wanted_names:
        if name in folders_by_name:
            return folders_by_name[name]
    return None


def find_pictures_in_class_folders(folder: Path) -> LabelledPicturePaths:
    """Find the pictures of a folder with a folder for each class, by torchvision. Raises
    UsageError."""
    from torchvision.datasets import ImageFolder

    class PictureFolder(ImageFolder):
        def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
            classes = list_class_folder_names(Path(directory))
            return classes, {name: label for label, name in enumerate(classes)}

    if len(list_class_folder_names(folder)) < 2:
        raise UsageError(
            f"The folder {folder.name!r} needs a folder of pictures for each of two classes or "
            f"more, as in {folder.name}/cat/1.jpg; it has {describe_first_folder_entries(folder)}."
        )
    picture_folder = PictureFolder(
        str(folder), is_valid_file=lambda path: is_visible_picture_file(Path(path), folder)
    )
    return LabelledPicturePaths(
        paths=[Path(path) for path, _ in picture_folder.samples],
        labels=np.array([label for _, label in picture_folder.samples], dtype=np.int64),
        classes=picture_folder.classes,
    )


def is_visible_picture_file(path: Path, root_folder: Path) -> bool:
    """True if a path under `root_folder` is that of a picture to be read."""
    return path.suffix.lower() in PICTURES and not is_hidden_or_made_by_program(path, root_folder)


def list_class_folder_names(folder: Path) -> list[str]:
    """List the names of the subfolders with pictures."""
    return [
        path.name
        for path in list_visible_subfolders(folder)
        if contains_pictures_at_any_depth(path)
    ]


def contains_pictures_at_any_depth(folder: Path) -> bool:
    """True if there is a picture in a folder or in one below it."""
    return any(is_visible_picture_file(path, folder) for path in folder.rglob("*"))


def describe_first_folder_entries(folder: Path) -> str:
    """List the first entries of a folder, for an error message."""
    entries = [
        path.name
        for path in sorted(folder.iterdir())
        if not is_hidden_or_made_by_program(path, folder)
    ]
    return join_first_names_with_ellipsis(entries) or "nothing"


def join_first_names_with_ellipsis(names: Sequence[str]) -> str:
    """Join the first SHOWN_NAMES names by commas, with "…" if there are more."""
    shown_names = list(names[:SHOWN_NAMES])
    if len(names) > SHOWN_NAMES:
        shown_names.append("…")
    return ", ".join(shown_names)


def map_labels_to_training_classes(
    test_part: LabelledPicturePaths, training_classes: list[str], folder_name: str
) -> LabelArray:
    """Convert the labels of the test pictures to indices into the training classes. Raises
    UsageError for an unknown class."""
    unknown = [title for title in test_part.classes if title not in training_classes]
    if unknown:
        raise UsageError(
            f"The test pictures of {folder_name} have the class {unknown[0]!r}, but the training pictures "
            f"have {', '.join(training_classes[:SHOWN_NAMES])}; name the folders alike."
        )
    training_indices = np.array([training_classes.index(title) for title in test_part.classes])
    return training_indices[test_part.labels]


# ------------------------------------------------------------------------------- one size, one mode
def choose_colour_mode(
    mode_option_or_empty: str, picture_modes: Sequence[PictureMode], paths: list[Path]
) -> Literal["L", "RGB"]:
    """Choose the mode of all pictures: "L" if they are grey, otherwise "RGB". Raises UsageError if
    some pictures have 8 bits and others 16.

    mode_option_or_empty: the option `mode`
    picture_modes: those of the files (see `PictureSizeAndMode`)
    """
    if mode_option_or_empty and mode_option_or_empty.lower() not in MODES:
        raise UsageError(f"mode is {mode_option_or_empty!r}, but it must be grey or colour.")
    count_16_bits = picture_modes.count("16 bits")
    has_all_16_bits = count_16_bits == len(picture_modes)
    if 0 < count_16_bits < len(picture_modes):
        # The rarer kind is more likely a mistake, so the message names a picture of that kind.
        is_rare = [mode == "16 bits" for mode in picture_modes]
        if count_16_bits * 2 >= len(picture_modes):
            is_rare = [mode != "16 bits" for mode in picture_modes]
        example = paths[is_rare.index(True)]
        raise UsageError(
            f"Some pictures have 16 bits and others 8 ({example.name!r} is of the rarer kind); save "
            "all of them alike."
        )
    if mode_option_or_empty:
        mode = MODES[mode_option_or_empty.lower()]
        if has_all_16_bits and mode == "RGB":
            raise UsageError("Pictures of 16 bits are grey; leave out mode=colour.")
        return mode
    if all(mode in ("grey", "transparent grey", "16 bits") for mode in picture_modes):
        return "L"
    return "RGB"


class SizeNoteAndIsResized(NamedTuple):
    """The one size of all pictures of a data set.

    size: (H, W) of all pictures
    note: a sentence that describes it
    is_resized: whether pictures have to be cropped and resized
    """

    size: tuple[int, int]
    note: str
    is_resized: bool


def choose_picture_size(
    size_option_or_empty: str, picture_sizes: list[HeightAndWidth]
) -> SizeNoteAndIsResized:
    """Choose the one size of all pictures.

    size_option_or_empty: the option `size`
    picture_sizes: (H, W) of each file
    """
    height, width = picture_sizes[0]
    has_one_size = len(set(picture_sizes)) == 1
    if size_option_or_empty:
        size = parse_picture_size(size_option_or_empty)
        if has_one_size and size == picture_sizes[0]:
            return SizeNoteAndIsResized(size, f"They have {height}x{width} pixels.", False)
        note = f"They are cropped to the middle and resized to {size[0]}x{size[1]} pixels."
        return SizeNoteAndIsResized(size, note, True)
    if has_one_size and SMALLEST <= min(height, width) and max(height, width) <= LARGEST:
        note = f"They have {height}x{width} pixels (height x width)."
        return SizeNoteAndIsResized((height, width), note, False)
    sizes_of_files = f"{height}x{width}"
    if not has_one_size:
        smallest = min(picture_sizes)
        largest = max(picture_sizes)
        sizes_of_files = f"from {smallest[0]}x{smallest[1]} to {largest[0]}x{largest[1]}"
    note = (
        f"They have {sizes_of_files} pixels (height x width) and are cropped to the middle square "
        f"and resized to {USUAL_SIZE}x{USUAL_SIZE}; ?size= names another size."
    )
    return SizeNoteAndIsResized((USUAL_SIZE, USUAL_SIZE), note, True)


def parse_picture_size(text: str) -> HeightAndWidth:
    """Parse a text such as "32" or "32x48". Raises UsageError."""
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", text.strip())
    if not match:
        raise UsageError(
            f"size is {text!r}, but it must be pixels a side, such as 32, or height x width: 32x48."
        )
    size = int(match[1]), int(match[2] or match[1])
    if min(size) < SMALLEST:
        raise UsageError(
            f"size is {text!r}, but networks read pictures of {SMALLEST} pixels a side and more."
        )
    return size


# ---------------------------------------------------------------------------------------- sentences
def describe_mode_changes_if_any(
    picture_modes: Sequence[PictureMode], common_mode: ColourMode
) -> SentenceOrEmpty:
    """A sentence on pictures that were changed: transparent ones, and grey ones among coloured ones;
    "" if there are none."""
    counts = Counter(picture_modes)
    notes = []
    transparent = counts["transparent"] + counts["transparent grey"]
    if transparent:
        notes.append(f"Transparent parts of {transparent} pictures are white.")
    if common_mode == "RGB" and counts["grey"]:
        notes.append(f"{counts['grey']} grey pictures are among them.")
    return " ".join(notes)


def describe_pictures_in_both_parts_if_any(
    picture_paths: list[Path], is_test: BooleanPerSample
) -> SentenceOrEmpty:
    """A sentence on files that are among the training pictures and among the test pictures; "" if
    there are none."""
    training_contents = set()
    test_contents = []
    for path, belongs_to_test in zip(picture_paths, is_test, strict=True):
        content = hash_parts_to_short_id(path.read_bytes())
        if belongs_to_test:
            test_contents.append(content)
        else:
            training_contents.add(content)
    twins = sum(content in training_contents for content in test_contents)
    if not twins:
        return ""
    return f"{twins} test pictures are among the training pictures, too."


def describe_ignored_files_if_any(folder: Path) -> SentenceOrEmpty:
    """A sentence on files that are not pictures; "" if there are none."""
    ignored = []
    for path in sorted(folder.rglob("*")):
        is_other = path.suffix.lower() not in PICTURES and not is_hidden_or_made_by_program(
            path, folder
        )
        if is_other and path.is_file():
            ignored.append(path.name)
    if not ignored:
        return ""
    return f"Ignored, as they are not pictures: {join_first_names_with_ellipsis(ignored)}."


class NewestTimeAndTotalSize(NamedTuple):
    """The time of the latest change of a folder or a file in it, in nanoseconds, and the size of all
    files in bytes."""

    time: int
    size: int


def read_newest_change_time_and_total_size(folder: Path) -> NewestTimeAndTotalSize:
    """Read the stamp of a folder; the folder is read again only when its stamp has changed."""
    time = folder.stat().st_mtime_ns
    size = 0
    for path in folder.rglob("*"):
        if path.is_file():
            stat = path.stat()
            time = max(time, stat.st_mtime_ns)
            size += stat.st_size
    return NewestTimeAndTotalSize(time, size)


def hash_pictures(folder: Path, options: FileOptionTexts) -> str:
    """Hash all pictures, their paths, and the options."""
    parts: list[object] = ["pictures", sorted(options.items())]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_visible_picture_file(path, folder):
            parts += [path.relative_to(folder).as_posix(), path.read_bytes()]
    return hash_parts_to_short_id(*parts)
