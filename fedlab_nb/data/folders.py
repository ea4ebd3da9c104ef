"""A folder of pictures as a data set: one folder a class, read by torchvision's ImageFolder.

    photos/cat/1.jpg  photos/dog/2.png                   a fifth of each class is for testing
    photos/train/cat/1.jpg  photos/test/dog/2.png        the split is that of the folders

    fl.load("photos/?size=32")

All pictures become one size and one mode: grey where all of them are grey, colour otherwise.
Transparent parts are white, and pictures stand upright as the camera says (EXIF). Pictures of one
size up to 128 pixels stay as they are; others are cropped to the middle and resized.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedlab_nb.data.dataset import Dataset, hash_parts, make_dataset
from fedlab_nb.data.pictures import choose_scale, read_picture, read_picture_facts
from fedlab_nb.data.schema import IMAGES, InputSchema
from fedlab_nb.data.tables import draw_test_rows
from fedlab_nb.errors import UsageError

OPTIONS = ("size", "mode")
TRAIN_FOLDERS = ("train", "training")
TEST_FOLDERS = ("test", "testing")
VALIDATION_FOLDERS = ("val", "valid", "validation", "dev")
PICTURES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif")
SMALLEST, LARGEST = 8, 128  # pixels a side; pictures of one size in between stay as they are
USUAL_SIZE = 32  # pixels a side of resized pictures
MODES = {"grey": "L", "gray": "L", "colour": "RGB", "color": "RGB"}
SHOWN = 5


@dataclass(frozen=True)
class Part:
    """The pictures of one part: paths, and the class of each, an index into `classes`."""

    paths: list[Path]
    labels: np.ndarray
    classes: list[str]


def load(folder: Path, options: Mapping[str, str], digest: str) -> Dataset:
    """The Dataset of a folder. Raises UsageError, which names a picture that cannot be read."""
    name = folder.name or str(folder)
    train, test, split_note = find_parts(folder)
    class_names = train.classes
    paths = list(train.paths)
    labels = train.labels
    if test is not None:
        paths += test.paths
        labels = np.concatenate([labels, translate_labels(test, class_names, name)])
        is_test = np.arange(len(paths)) >= len(train.paths)
    else:
        is_test = draw_test_rows(labels, None)
    facts = [read_picture_facts(path) for path in paths]
    modes = [fact.mode for fact in facts]
    mode = choose_mode(options.get("mode", ""), modes, paths)
    size, size_note, is_resized = choose_size(
        options.get("size", ""), [fact.size for fact in facts]
    )
    pixels = np.stack([read_picture(path, mode, size if is_resized else None) for path in paths])
    raw = {"x_train": pixels[~is_test], "x_test": pixels[is_test]}
    scale = replace(choose_scale(raw, "x_train"), mode=mode, resized=is_resized)
    arrays = {
        "x_train": scale.apply(raw["x_train"]),
        "y_train": labels[~is_test],
        "x_test": scale.apply(raw["x_test"]),
        "y_test": labels[is_test],
    }
    colours = "in grey" if mode == "L" else "in colour"
    notes = [
        f"{len(paths)} pictures of {len(class_names)} classes, {colours}.",
        size_note,
        scale.describe(),
        describe_mode_changes(modes, mode),
        split_note,
        describe_duplicates(paths, is_test),
        describe_ignored(folder),
    ]
    schema = InputSchema(IMAGES, tuple(pixels.shape[1:]), tuple(class_names), pixels=scale)
    note = " ".join(sentence for sentence in notes if sentence)
    return make_dataset(name, digest, arrays, tuple(class_names), note, (), schema)


def is_hidden(path: Path, root: Path) -> bool:
    """Whether a path, or a folder that it lies in, is a program's own: `.ipynb_checkpoints`,
    `__MACOSX`, `._a.jpg`."""
    return any(part.startswith((".", "__")) for part in path.relative_to(root).parts)


def list_subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, by name, without hidden ones."""
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not is_hidden(path, folder)
    )


class FolderParts(NamedTuple):
    """train: the training part, or all pictures;   test: the test part where the folders say it;
    note: a sentence on how they were found"""

    train: Part
    test: Part | None
    note: str


def find_parts(folder: Path) -> FolderParts:
    """The training and test pictures of a folder. Raises UsageError."""
    by_name = {path.name.lower(): path for path in list_subfolders(folder)}
    train = find_folder(by_name, TRAIN_FOLDERS)
    test = find_folder(by_name, TEST_FOLDERS)
    validation = find_folder(by_name, VALIDATION_FOLDERS)
    if train is None:
        note = "A fifth of the pictures, drawn at random in each class, is for testing."
        return FolderParts(read_part(folder), None, note)
    if test is None and validation is None:
        note = (
            f"Only the folder {train.name!r} is read; a fifth of its pictures, drawn at random in "
            "each class, is for testing."
        )
        return FolderParts(read_part(train), None, note)
    test_folder = test or validation
    assert test_folder is not None
    note = f"The test pictures are those of the folder {test_folder.name!r}."
    if test is not None and validation is not None:
        note += f" The folder {validation.name!r} is not read."
    return FolderParts(read_part(train), read_part(test_folder), note)


def find_folder(by_name: Mapping[str, Path], names: tuple[str, ...]) -> Path | None:
    """The first folder that has one of the `names`."""
    for name in names:
        if name in by_name:
            return by_name[name]
    return None


def read_part(folder: Path) -> Part:
    """The pictures of a folder with a folder for each class, by torchvision. Raises UsageError."""
    from torchvision.datasets import ImageFolder

    class PictureFolder(ImageFolder):
        def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
            classes = list_classes(Path(directory))
            return classes, {name: label for label, name in enumerate(classes)}

    if len(list_classes(folder)) < 2:
        raise UsageError(
            f"The folder {folder.name!r} needs a folder of pictures for each of two classes or "
            f"more, as in {folder.name}/cat/1.jpg; it has {list_entries(folder)}."
        )
    found = PictureFolder(str(folder), is_valid_file=lambda path: is_picture(Path(path), folder))
    return Part(
        paths=[Path(path) for path, _ in found.samples],
        labels=np.array([label for _, label in found.samples], dtype=np.int64),
        classes=found.classes,
    )


def is_picture(path: Path, root: Path) -> bool:
    """Whether a path under `root` is that of a picture to be read."""
    return path.suffix.lower() in PICTURES and not is_hidden(path, root)


def list_classes(folder: Path) -> list[str]:
    """The names of the folders in which there are pictures."""
    return [path.name for path in list_subfolders(folder) if has_pictures(path)]


def has_pictures(folder: Path) -> bool:
    """Whether there is a picture in a folder or in one below it."""
    return any(is_picture(path, folder) for path in folder.rglob("*"))


def list_entries(folder: Path) -> str:
    """What lies in a folder, for a sentence."""
    entries = [path.name for path in sorted(folder.iterdir()) if not is_hidden(path, folder)]
    return join_names(entries) or "nothing"


def join_names(names: Sequence[str]) -> str:
    """The first names, for a sentence."""
    shown = list(names[:SHOWN])
    if len(names) > SHOWN:
        shown.append("…")
    return ", ".join(shown)


def translate_labels(part: Part, classes: list[str], name: str) -> np.ndarray:
    """The labels of the test pictures as places in the training classes. Raises UsageError for an
    unknown class."""
    unknown = [title for title in part.classes if title not in classes]
    if unknown:
        raise UsageError(
            f"The test pictures of {name} have the class {unknown[0]!r}, but the training pictures "
            f"have {', '.join(classes[:SHOWN])}; name the folders alike."
        )
    places = np.array([classes.index(title) for title in part.classes])
    return places[part.labels]


# ------------------------------------------------------------------------------- one size, one mode
def choose_mode(wanted: str, modes: list[str], paths: list[Path]) -> str:
    """The mode of all pictures: "L" if they are grey, else "RGB". Raises UsageError for pictures of
    8 and 16 bits.

    wanted: the option `mode`, "" for none;   modes: of the files (see `PictureFacts`)
    """
    if wanted and wanted.lower() not in MODES:
        raise UsageError(f"mode is {wanted!r}, but it must be grey or colour.")
    count_16_bits = modes.count("16 bits")
    has_all_16_bits = count_16_bits == len(modes)
    if 0 < count_16_bits < len(modes):
        # The rarer kind is likelier to be a slip, so the sentence names a picture of it.
        is_rare = [mode == "16 bits" for mode in modes]
        if count_16_bits * 2 >= len(modes):
            is_rare = [mode != "16 bits" for mode in modes]
        example = paths[is_rare.index(True)]
        raise UsageError(
            f"Some pictures have 16 bits and others 8, {example.name!r} is one of the fewer; save "
            "all alike."
        )
    if wanted:
        mode = MODES[wanted.lower()]
        if has_all_16_bits and mode == "RGB":
            raise UsageError("Pictures of 16 bits are grey; leave out mode=colour.")
        return mode
    if all(mode in ("grey", "transparent grey", "16 bits") for mode in modes):
        return "L"
    return "RGB"


class SizeChoice(NamedTuple):
    """size: (H, W) that all pictures get;   note: a sentence on it;   is_resized: whether pictures
    have to be cropped and resized for it"""

    size: tuple[int, int]
    note: str
    is_resized: bool


def choose_size(wanted: str, sizes: list[tuple[int, int]]) -> SizeChoice:
    """Which size all pictures get. wanted: the option `size`, "" for none;   sizes: (H, W) of the
    files."""
    height, width = sizes[0]
    has_one_size = len(set(sizes)) == 1
    if wanted:
        size = parse_size(wanted)
        if has_one_size and size == sizes[0]:
            return SizeChoice(size, f"They have {height}x{width} pixels.", False)
        note = f"They are cropped to the middle and resized to {size[0]}x{size[1]} pixels."
        return SizeChoice(size, note, True)
    if has_one_size and SMALLEST <= min(height, width) and max(height, width) <= LARGEST:
        note = f"They have {height}x{width} pixels (height x width)."
        return SizeChoice((height, width), note, False)
    sizes_of_files = f"{height}x{width}"
    if not has_one_size:
        smallest = min(sizes)
        largest = max(sizes)
        sizes_of_files = f"from {smallest[0]}x{smallest[1]} to {largest[0]}x{largest[1]}"
    note = (
        f"They have {sizes_of_files} pixels (height x width) and are cropped to the middle square "
        f"and resized to {USUAL_SIZE}x{USUAL_SIZE}; ?size= names another size."
    )
    return SizeChoice((USUAL_SIZE, USUAL_SIZE), note, True)


def parse_size(text: str) -> tuple[int, int]:
    """(H, W) of a text such as "32" or "32x48". Raises UsageError."""
    found = re.fullmatch(r"(\d+)(?:x(\d+))?", text.strip())
    if not found:
        raise UsageError(
            f"size is {text!r}, but it must be pixels a side, such as 32, or height x width: 32x48."
        )
    size = int(found[1]), int(found[2] or found[1])
    if min(size) < SMALLEST:
        raise UsageError(
            f"size is {text!r}, but networks read pictures of {SMALLEST} pixels a side and more."
        )
    return size


# ---------------------------------------------------------------------------------------- sentences
def describe_mode_changes(modes: list[str], mode: str) -> str:
    """A sentence where pictures were changed: transparent ones, or grey ones among colours."""
    counts = Counter(modes)
    notes = []
    transparent = counts["transparent"] + counts["transparent grey"]
    if transparent:
        notes.append(f"Transparent parts of {transparent} pictures are white.")
    if mode == "RGB" and counts["grey"]:
        notes.append(f"{counts['grey']} grey pictures are among them.")
    return " ".join(notes)


def describe_duplicates(paths: list[Path], is_test: np.ndarray) -> str:
    """A sentence where the same file is among training and test pictures."""
    training_contents = set()
    test_contents = []
    for path, belongs_to_test in zip(paths, is_test, strict=True):
        content = hash_parts(path.read_bytes())
        if belongs_to_test:
            test_contents.append(content)
        else:
            training_contents.add(content)
    twins = sum(content in training_contents for content in test_contents)
    if not twins:
        return ""
    return f"{twins} test pictures are among the training pictures, too."


def describe_ignored(folder: Path) -> str:
    """A sentence on files that are no pictures."""
    ignored = []
    for path in sorted(folder.rglob("*")):
        is_other = path.suffix.lower() not in PICTURES and not is_hidden(path, folder)
        if is_other and path.is_file():
            ignored.append(path.name)
    if not ignored:
        return ""
    return f"Left aside, for they are no pictures: {join_names(ignored)}."


class FolderStamp(NamedTuple):
    """The latest change of a folder or a file in it, in nanoseconds, and the bytes of all files."""

    time: int
    size: int


def read_folder_stamp(folder: Path) -> FolderStamp:
    """The stamp of a folder: while it stays, the folder is not read again."""
    time = folder.stat().st_mtime_ns
    size = 0
    for path in folder.rglob("*"):
        if path.is_file():
            stat = path.stat()
            time = max(time, stat.st_mtime_ns)
            size += stat.st_size
    return FolderStamp(time, size)


def hash_pictures(folder: Path, options: Mapping[str, str]) -> str:
    """An id of all pictures, their places, and the options."""
    parts: list[object] = ["pictures", sorted(options.items())]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_picture(path, folder):
            parts += [path.relative_to(folder).as_posix(), path.read_bytes()]
    return hash_parts(*parts)
