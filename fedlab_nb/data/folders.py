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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedlab_nb.data.dataset import Dataset, digest_of, of_arrays
from fedlab_nb.data.pictures import choose_scale, picture_facts, read_picture
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
    found, split_note = find_parts(folder)
    classes = found["train"].classes
    paths = found["train"].paths + (found["test"].paths if "test" in found else [])
    facts = [picture_facts(path) for path in paths]
    mode = choose_mode(options.get("mode", ""), [fact.mode for fact in facts], paths)
    size, size_note, is_resized = choose_size(
        options.get("size", ""), [fact.size for fact in facts]
    )
    pixels = np.stack([read_picture(path, mode, size if is_resized else None) for path in paths])
    labels = found["train"].labels
    if "test" in found:
        labels = np.concatenate([labels, match_labels(found["test"], classes, name)])
        test = np.arange(len(paths)) >= len(found["train"].paths)
    else:
        test = draw_test_rows(labels, None)
    raw = {"x_train": pixels[~test], "x_test": pixels[test]}
    scale = replace(choose_scale(raw, "x_train"), mode=mode, resized=is_resized)
    parts = {key: scale.apply(value) for key, value in raw.items()}
    parts |= {"y_train": labels[~test], "y_test": labels[test]}
    notes = [
        f"{len(paths)} pictures of {len(classes)} classes, "
        f"{'in grey' if mode == 'L' else 'in colour'}.",
        size_note,
        scale.describe(),
        describe_modes([fact.mode for fact in facts], mode),
        split_note,
        describe_twins(paths, test),
        describe_ignored(folder, len(paths)),
    ]
    schema = InputSchema(IMAGES, tuple(pixels.shape[1:]), tuple(classes), pixels=scale)
    note = " ".join(sentence for sentence in notes if sentence)
    return of_arrays(name, digest, parts, tuple(classes), note, (), schema)


def is_hidden(path: Path, root: Path) -> bool:
    """Whether a path, or a folder that it lies in, is a program's own: `.ipynb_checkpoints`,
    `__MACOSX`, `._a.jpg`."""
    return any(part.startswith((".", "__")) for part in path.relative_to(root).parts)


def subfolders(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not is_hidden(path, folder)
    )


def find_parts(folder: Path) -> tuple[dict[str, Part], str]:
    """The training part, the test part where the folders say it, and a sentence. Raises
    UsageError."""
    by_name = {path.name.lower(): path for path in subfolders(folder)}
    train = next((by_name[name] for name in TRAIN_FOLDERS if name in by_name), None)
    test = next((by_name[name] for name in TEST_FOLDERS if name in by_name), None)
    validation = next((by_name[name] for name in VALIDATION_FOLDERS if name in by_name), None)
    if train is None:
        return {
            "train": read_part(folder)
        }, "A fifth of the pictures, drawn at random in each class, is for testing."
    if test is None and validation is None:
        return {"train": read_part(train)}, (
            f"Only the folder {train.name!r} is read; a fifth of its pictures, drawn at random in "
            f"each class, is for testing."
        )
    tested = test or validation
    assert tested is not None
    note = f"The test pictures are those of the folder {tested.name!r}."
    if test is not None and validation is not None:
        note += f" The folder {validation.name!r} is not read."
    return {"train": read_part(train), "test": read_part(tested)}, note


def read_part(folder: Path) -> Part:
    """The pictures of a folder with a folder for each class, by torchvision. Raises UsageError."""
    from torchvision.datasets import ImageFolder

    class PictureFolder(ImageFolder):
        def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
            classes = [path.name for path in subfolders(Path(directory)) if has_pictures(path)]
            return classes, {name: place for place, name in enumerate(classes)}

    if len([path for path in subfolders(folder) if has_pictures(path)]) < 2:
        raise UsageError(
            f"The folder {folder.name!r} needs a folder of pictures for each of two classes or "
            f"more, as in "
            f"{folder.name}/cat/1.jpg; it has {listed_entries(folder)}."
        )
    found = PictureFolder(str(folder), is_valid_file=lambda path: is_picture(Path(path), folder))
    paths = [Path(path) for path, _ in found.samples]
    return Part(
        paths, np.array([label for _, label in found.samples], dtype=np.int64), found.classes
    )


def is_picture(path: Path, root: Path) -> bool:
    return path.suffix.lower() in PICTURES and not is_hidden(path, root)


def has_pictures(folder: Path) -> bool:
    return any(is_picture(path, folder) for path in folder.rglob("*"))


def listed_entries(folder: Path) -> str:
    """What lies in a folder, for a sentence."""
    entries = [path.name for path in sorted(folder.iterdir()) if not is_hidden(path, folder)]
    return (
        ", ".join(entries[:SHOWN]) + (", …" if len(entries) > SHOWN else "")
        if entries
        else "nothing"
    )


def match_labels(part: Part, classes: list[str], name: str) -> np.ndarray:
    """The labels of the test pictures as places in the training classes. Raises UsageError for an
    unknown class."""
    unknown = [title for title in part.classes if title not in classes]
    if unknown:
        raise UsageError(
            f"The test pictures of {name} have the class {unknown[0]!r}, but the training pictures "
            f"have "
            f"{', '.join(classes[:SHOWN])}; name the folders alike."
        )
    places = np.array([classes.index(title) for title in part.classes])
    return places[part.labels]


# ------------------------------------------------------------------------------- one size, one mode
def choose_mode(asked: str, modes: list[str], paths: list[Path]) -> str:
    """ "L" where all pictures are grey, else "RGB". Raises UsageError for pictures of 8 and 16
    bits."""
    if asked and asked.lower() not in MODES:
        raise UsageError(f"mode is {asked!r}, but it must be grey or colour.")
    sixteen = [mode == "16 bits" for mode in modes]
    if any(sixteen) and not all(sixteen):
        odd = paths[sixteen.index(sum(sixteen) * 2 < len(sixteen))]
        raise UsageError(
            f"Some pictures have 16 bits and others 8, {odd.name!r} is one of the fewer; save all "
            f"alike."
        )
    if asked:
        if all(sixteen) and MODES[asked.lower()] == "RGB":
            raise UsageError("Pictures of 16 bits are grey; leave out mode=colour.")
        return MODES[asked.lower()]
    return "L" if all(mode in ("grey", "transparent grey", "16 bits") for mode in modes) else "RGB"


def choose_size(asked: str, sizes: list[tuple[int, int]]) -> tuple[tuple[int, int], str, bool]:
    """(H, W) of all pictures, a sentence, and whether they are resized."""
    height, width = sizes[0]
    is_one = len(set(sizes)) == 1
    if asked:
        found = re.fullmatch(r"(\d+)(?:x(\d+))?", asked.strip())
        if not found:
            raise UsageError(
                f"size is {asked!r}, but it must be pixels a side, such as 32, or height x width: "
                f"32x48."
            )
        wanted = int(found[1]), int(found[2] or found[1])
        if min(wanted) < SMALLEST:
            raise UsageError(
                f"size is {asked!r}, but networks read pictures of {SMALLEST} pixels a side and "
                f"more."
            )
        if is_one and wanted == sizes[0]:
            return wanted, f"They have {height}x{width} pixels.", False
        return (
            wanted,
            f"They are cropped to the middle and resized to {wanted[0]}x{wanted[1]} pixels.",
            True,
        )
    if is_one and SMALLEST <= min(height, width) and max(height, width) <= LARGEST:
        return (height, width), f"They have {height}x{width} pixels (height x width).", False
    smallest, largest = min(sizes), max(sizes)
    before = (
        f"from {smallest[0]}x{smallest[1]} to {largest[0]}x{largest[1]}"
        if not is_one
        else f"{height}x{width}"
    )
    note = (
        f"They have {before} pixels (height x width) and are cropped to the middle square and "
        f"resized to "
        f"{USUAL_SIZE}x{USUAL_SIZE}; ?size= names another size."
    )
    return (USUAL_SIZE, USUAL_SIZE), note, True


# ---------------------------------------------------------------------------------------- sentences
def describe_modes(modes: list[str], mode: str) -> str:
    """A sentence where pictures were changed: transparent ones, or grey ones among colours."""
    counts = Counter(modes)
    notes = []
    transparent = counts["transparent"] + counts["transparent grey"]
    if transparent:
        notes.append(f"Transparent parts of {transparent} pictures are white.")
    if mode == "RGB" and counts["grey"]:
        notes.append(f"{counts['grey']} grey pictures are among them.")
    return " ".join(notes)


def describe_twins(paths: list[Path], test: np.ndarray) -> str:
    """A sentence where the same file is among training and test pictures."""
    contents = [digest_of(path.read_bytes()) for path in paths]
    train = {content for content, is_test in zip(contents, test, strict=True) if not is_test}
    twins = sum(
        content in train for content, is_test in zip(contents, test, strict=True) if is_test
    )
    return f"{twins} test pictures are among the training pictures, too." if twins else ""


def describe_ignored(folder: Path, count: int) -> str:
    """A sentence on files that are no pictures."""
    odd = [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not is_hidden(path, folder) and path.suffix.lower() not in PICTURES
    ]
    return (
        f"Left aside, for they are no pictures: "
        f"{', '.join(odd[:SHOWN])}{', …' if len(odd) > SHOWN else ''}."
        if odd
        else ""
    )


def stamp(folder: Path) -> tuple[int, int]:
    """The latest change and the total size of a folder's files."""
    stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    times = [folder.stat().st_mtime_ns, *(stat.st_mtime_ns for stat in stats)]
    return max(times), sum(stat.st_size for stat in stats)


def content_digest(folder: Path, options: Mapping[str, str]) -> str:
    """An id of all pictures, their places, and the options."""
    parts: list[object] = ["pictures", sorted(options.items())]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_picture(path, folder):
            parts += [path.relative_to(folder).as_posix(), path.read_bytes()]
    return digest_of(*parts)
