"""The pictures of one lesson as files, for slides: `fedlab-nb slides 3`.

PNG files are the pictures that are stored in the lesson's notebook; nothing is run for them. SVG files need the code of
the lesson: its cells are run once, in order, and finished runs come from the store. Beside the files stands
`index.html`: each picture with its section, its sentence and its alt text. A picture that the lesson folds behind a
guess is marked, so that a teacher shows it after the class has guessed.
"""

from __future__ import annotations

import ast
import base64
import html
import json
import linecache
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .errors import RunError, choose, format_error
from .files import check_replaceable, expand_path, write_file
from .jupyter import course_source
from .renamed import find_new_name

WIDGET = "application/vnd.jupyter.widget-view+json"
INDEX = "index.html"
FOLDED = "Guess first, then read: "
IMAGE = re.compile(r'<img alt="([^"]*)"[^>]*src="data:image/png;base64,([^"]+)"')
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "body{color:#1f2328;background:#fff}"
    "figure{margin:2em 0}img{max-width:100%;border:1px solid #d5d9de}code{background:#eceff2}"
)
FOLD = "<details><summary>{}</summary>{}</details>"
ANSWER = "Shows an answer: open it after the guess."


@dataclass(frozen=True)
class Slide:
    """One picture of a lesson. `section`: the heading above it; `answer`: whether the lesson folds it behind a guess;
    `data`: the bytes of its file."""

    name: str
    section: str
    sentence: str
    alt: str
    answer: bool
    data: bytes


def write(
    lesson: str, out: str | Path | None = None, form: str = "png", *, force: bool = False
) -> tuple[Path, list[Slide]]:
    """Write the pictures of `lesson` to the folder `out` (default: `slides_` and the lesson's name).

    lesson: its number or name, such as "3", "3_fens", "fens" or "fed_et"; an old name does too
    form: "png" or "svg"

    Returns the folder and the slides. Raises UsageError for an unknown lesson or form, or if the folder has a file of
    somebody else's with one of these names, unless `force`; RunError for a lesson without pictures, a cell that fails,
    or a folder that cannot be written to.
    """
    choose("format", form, ("png", "svg"))
    path = notebook_of(lesson)
    folder = expand_path(f"slides_{path.stem}" if out is None else out)
    check_replaceable([folder / INDEX], force=force)  # before the cells of the lesson are run
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    known: dict[Any, Slide] = {}
    for slide in stored(cells) if form == "png" else drawn(cells, path.stem):
        known.setdefault(
            (slide.alt, slide.sentence),
            replace(slide, name=f"{path.stem}_{len(known) + 1:02d}.{form}"),
        )
    slides = list(known.values())
    advice = "run it once and save it, or use --format svg"
    if not slides:
        raise RunError(f"The stored notebook of lesson {path.stem} has no pictures; {advice}.")
    check_replaceable([folder / slide.name for slide in slides], force=force)
    title = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for slide in slides:
            write_file(folder / slide.name, slide.data, force=force)
        write_file(folder / INDEX, index(title, slides), force=force)
    except OSError as error:
        why = error.strerror or error
        raise RunError(
            f"The pictures cannot be written to {folder}: {why}; choose another --out."
        ) from None
    return folder, slides


def notebook_of(lesson: str) -> Path:
    """The notebook of a lesson that is named by its number, its name or the name without number or folder; an old name
    leads to the new one."""
    folder = course_source()
    names = [path.stem for path in sorted(folder.glob("*.ipynb"))]
    names += [f"shelf/{path.stem}" for path in sorted(folder.glob("shelf/*.ipynb"))]
    word = lesson.strip().removesuffix(".ipynb")
    word = find_new_name(word) or word
    for name in names:
        stem = name.removeprefix("shelf/")
        number, _, rest = stem.partition("_")
        if word in (name, stem) or (number.isdigit() and word in (number, rest)):
            return folder / f"{name}.ipynb"
    return folder / f"{choose('lesson', word, names)}.ipynb"


# -------------------------------------------------------------------------------------------------------- the pictures
def sections(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each code cell with the last heading above it."""
    heading = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^#+ +(.+)$", "".join(cell["source"]), re.MULTILINE)
            heading = headings[-1] if headings else heading
        elif cell["cell_type"] == "code":
            yield heading, cell


def stored(cells: Sequence[Mapping[str, Any]]) -> Iterator[Slide]:
    """The PNG pictures among the outputs of a notebook."""
    for section, cell in sections(cells):
        for output in cell["outputs"]:
            data = {
                kind: "".join(value)
                for kind, value in output.get("data", {}).items()
                if kind != WIDGET
            }
            words = data.get("text/plain", "")
            for alt, image in IMAGE.findall(data.get("text/html", "")):
                sentence = words.removeprefix(FOLDED)
                yield Slide(
                    "",
                    section,
                    sentence,
                    html.unescape(alt),
                    words != sentence,
                    base64.b64decode(image),
                )
            if "image/png" in data:
                alt = output.get("metadata", {}).get("image/png", {}).get("alt", words)
                yield Slide("", section, words, alt, False, base64.b64decode(data["image/png"]))


def drawn(cells: Sequence[Mapping[str, Any]], lesson: str) -> Iterator[Slide]:
    """The pictures of a lesson as SVG: its cells are run here, and what the last line of each gives is drawn."""
    from .plots import svg

    names: dict[str, Any] = {"__name__": "__main__"}
    for number, (section, cell) in enumerate(sections(cells)):
        try:
            value = carried_out("".join(cell["source"]), names, f"<{lesson}, cell {number}>")
        except Exception as error:
            if "raises-exception" in cell.get("metadata", {}).get("tags", []):
                continue
            failed = f"Cell {number + 1} of lesson {lesson} failed, so its pictures cannot be drawn again"
            raise RunError(
                f"{failed}: {format_error(error)}; take the stored ones with --format png."
            ) from error
        answer = not getattr(value, "is_settled", True) and hasattr(value, "after")
        for picture in pictures_of(value):
            yield Slide("", section, picture.sentence, picture.alt, answer, svg(picture))


def carried_out(code: str, names: dict[str, Any], where: str) -> Any:
    """Run a cell's code with these names; what its last line gives, if that is an expression."""
    lines = code.splitlines(keepends=True)
    linecache.cache[where] = (
        len(code),
        None,
        lines,
        where,
    )  # a method of a lesson's own is known by its source
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)


def pictures_of(value: Any) -> list[Any]:
    """The pictures that a cell shows: of a panel, a snapshot, a sheet of several, or a picture itself."""
    value = value.still() if hasattr(value, "still") else getattr(value, "shown", value)
    pictures = (
        value.pictures.values()
        if isinstance(getattr(value, "pictures", None), Mapping)
        else [value]
    )
    return [picture for picture in pictures if getattr(picture, "figure", None) is not None]


def index(title: str, slides: Sequence[Slide]) -> str:
    """The list of the pictures as a page that opens in any browser."""
    lines, section = [], ""
    for slide in slides:
        if slide.section != section:
            lines.append(f"<h2>{html.escape(slide.section)}</h2>")
        section = slide.section
        name, alt = html.escape(slide.name), html.escape(slide.alt)
        image = f'<a href="{name}"><img src="{name}" alt="{alt}"></a>'
        about = f"<p><code>{name}</code></p><p>{html.escape(slide.sentence)}</p><p><small>Alt text: {alt}</small></p>"
        if slide.answer:
            image, about = (
                FOLD.format(*part) for part in ((ANSWER, image), ("What it shows", about))
            )
        lines.append(f"<figure>{image}<figcaption>{about}</figcaption></figure>")
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
    body = "\n".join(lines)
    return f"{head}<style>{STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
