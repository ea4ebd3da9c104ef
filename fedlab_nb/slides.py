"""Writes the pictures of one lesson to files, for slides: `fedlab-nb slides 3`.

For PNG files nothing is run: they are the pictures that are stored in the lesson's notebook. A picture that the lesson
itself shows as an SVG (`fl.journey`) becomes an SVG file here, too. For SVG files the lesson's cells are run once, in
order; runs that are finished already come from the store. `index.html` beside the files has each picture with its
section, its sentence and its alt text. A picture that the lesson folds behind a guess is folded there, too, so that a
teacher shows it after the class has guessed.
"""

from __future__ import annotations

import ast
import base64
import html
import json
import linecache
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from .errors import RunError, check_allowed_name, format_error_on_one_line
from .files import check_replaceable, expand_path, write_file
from .jupyter import find_course_source_folder
from .renamed import find_current_lesson_name

if TYPE_CHECKING:
    from .plots import Picture

Cell = Mapping[str, Any]  # of a notebook: "cell_type", "source" and, of code, "outputs"
WIDGET = "application/vnd.jupyter.widget-view+json"
INDEX = "index.html"
FOLDED = "Guess first, then read: "
IMAGE = re.compile(r'<img alt="([^"]*)"[^>]*src="data:image/svg\+xml,([^"]+)"')
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "body{color:#1f2328;background:#fff}"
    "figure{margin:2em 0}img{max-width:100%;border:1px solid #d5d9de}code{background:#eceff2}"
)
FOLD = "<details><summary>{}</summary>{}</details>"
ANSWER = "Shows an answer: open it after the guess."


PictureForm = Literal["png", "svg"]
HeadingAndCell = tuple[str, Cell]


@dataclass(frozen=True)
class LessonPicture:
    """One picture of a lesson.

    name:     of its file, "" as long as it has none
    section:  the heading above it
    sentence: what it shows, in words
    alt:      its alt text
    answer:   whether the lesson folds it behind a guess
    data:     the bytes of its file
    """

    name: str
    section: str
    sentence: str
    alt: str
    answer: bool
    data: bytes


FolderAndPictures = tuple[Path, list[LessonPicture]]


def write_slides(
    lesson_number_or_name: str,
    folder_or_default: str | Path | None = None,
    picture_form: PictureForm = "png",
    *,
    force: bool = False,
) -> FolderAndPictures:
    """Write the pictures of a lesson to a folder.

    lesson_number_or_name: such as "3", "3_fens", "fens" or "fed_et"; an old name does too
    folder_or_default: None for `slides_` and the lesson's name
    picture_form: "png" or "svg"

    Returns the folder and the slides. Raises UsageError for an unknown lesson or form, or if the folder has a file of
    somebody else's with one of these names, unless `force`; RunError for a lesson without pictures, a cell that fails,
    or a folder that cannot be written to.
    """
    check_allowed_name("format", picture_form, ("png", "svg"))
    path = find_lesson_notebook(lesson_number_or_name)
    folder = expand_path(f"slides_{path.stem}" if folder_or_default is None else folder_or_default)
    check_replaceable([folder / INDEX], force=force)  # before the cells of the lesson are run
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    pictures = (
        read_stored_pictures(cells)
        if picture_form == "png"
        else run_cells_and_draw_svg_pictures(cells, path.stem)
    )
    slides = name_pictures_without_repeats(pictures, path.stem, picture_form)
    if not slides:
        raise RunError(
            f"The stored notebook of lesson {path.stem} has no pictures; run it once and save it, "
            "or use --format svg."
        )
    check_replaceable([folder / slide.name for slide in slides], force=force)
    title = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for slide in slides:
            write_file(folder / slide.name, slide.data, force=force)
        write_file(folder / INDEX, make_html_index_page(title, slides), force=force)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(
            f"The pictures cannot be written to {folder}: {reason}; choose another --out."
        ) from None
    return folder, slides


def name_pictures_without_repeats(
    pictures: Iterable[LessonPicture], lesson_name: str, picture_form: PictureForm
) -> list[LessonPicture]:
    """Give the pictures names for their files; a picture that a lesson shows twice is returned once."""
    slides: dict[tuple[str, str], LessonPicture] = {}
    for picture in pictures:
        content = (picture.alt, picture.sentence)
        if content not in slides:
            suffix = "svg" if picture.data.startswith(b"<svg") else picture_form
            name = f"{lesson_name}_{len(slides) + 1:02d}.{suffix}"
            slides[content] = replace(picture, name=name)
    return list(slides.values())


def find_lesson_notebook(number_or_name: str) -> Path:
    """Find the notebook of a lesson by its number or name. The name may be without number or folder, or an old one.

    UsageError for an unknown lesson.
    """
    folder = find_course_source_folder()
    names = [path.stem for path in sorted(folder.glob("*.ipynb"))]
    names += [f"shelf/{path.stem}" for path in sorted(folder.glob("shelf/*.ipynb"))]
    word = number_or_name.strip().removesuffix(".ipynb")
    word = find_current_lesson_name(word) or word
    for name in names:
        stem = name.removeprefix("shelf/")
        accepted = [name, stem]
        number, _, stem_without_number = stem.partition("_")
        if number.isdigit():
            accepted += [number, stem_without_number]
        if word in accepted:
            return folder / f"{name}.ipynb"
    return folder / f"{check_allowed_name('lesson', word, names)}.ipynb"


# -------------------------------------------------------------------------------------------------------- the pictures
def iterate_headings_and_code_cells(cells: Sequence[Cell]) -> Iterator[HeadingAndCell]:
    """Yield each code cell with the last heading above it: (heading, cell)."""
    heading = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^#+ +(.+)$", "".join(cell["source"]), re.MULTILINE)
            if headings:
                heading = headings[-1]
        elif cell["cell_type"] == "code":
            yield heading, cell


def read_stored_pictures(cells: Sequence[Cell]) -> Iterator[LessonPicture]:
    """Yield the pictures among the outputs of a notebook, without file names: as PNG, or SVG if they were shown so."""
    for section, cell in iterate_headings_and_code_cells(cells):
        for output in cell["outputs"]:
            data = {}
            for kind, value in output.get("data", {}).items():
                if kind != WIDGET:
                    data[kind] = "".join(value)
            text = data.get("text/plain", "")
            sentence = text.removeprefix(FOLDED)
            is_answer = sentence != text
            if "image/png" in data:
                alt = output.get("metadata", {}).get("image/png", {}).get("alt", sentence)
                content = base64.b64decode(data["image/png"])
                yield LessonPicture("", section, sentence, alt, is_answer, content)
                continue
            for alt, image in IMAGE.findall(data.get("text/html", "")):
                content = unquote(image).encode()
                yield LessonPicture("", section, sentence, html.unescape(alt), is_answer, content)


def run_cells_and_draw_svg_pictures(
    cells: Sequence[Cell], lesson_name: str
) -> Iterator[LessonPicture]:
    """Run the cells of a lesson, and yield the pictures that their last lines return as SVG, without file names.

    RunError if a cell fails, unless it has the tag raises-exception.
    """
    from .plots import render_picture_svg

    names: dict[str, Any] = {"__name__": "__main__"}
    for number, (section, cell) in enumerate(iterate_headings_and_code_cells(cells)):
        try:
            value = run_cell_and_return_last_value(
                "".join(cell["source"]), names, f"<{lesson_name}, cell {number}>"
            )
        except Exception as error:
            if "raises-exception" in cell.get("metadata", {}).get("tags", []):
                continue
            raise RunError(
                f"Cell {number + 1} of lesson {lesson_name} failed, so its pictures cannot be drawn again: "
                f"{format_error_on_one_line(error)}; take the stored ones with --format png."
            ) from error
        is_answer = not getattr(value, "is_settled", True) and hasattr(value, "after")
        for picture in find_pictures_in_cell_value(value):
            yield LessonPicture(
                "", section, picture.sentence, picture.alt, is_answer, render_picture_svg(picture)
            )


def run_cell_and_return_last_value(
    code: str, global_variables: dict[str, Any], cell_name_in_tracebacks: str
) -> Any:
    """Run a cell's code with these global variables; returns the value of its last line, if that is an expression.

    cell_name_in_tracebacks: the cell's name in tracebacks
    """
    lines = code.splitlines(keepends=True)
    # A method that a lesson defines is known by its source, which `inspect` looks up here.
    linecache.cache[cell_name_in_tracebacks] = (len(code), None, lines, cell_name_in_tracebacks)
    tree = ast.parse(code, cell_name_in_tracebacks)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body.pop()
    exec(compile(tree, cell_name_in_tracebacks, "exec"), global_variables)
    if last is None:
        return None
    return eval(
        compile(ast.Expression(last.value), cell_name_in_tracebacks, "eval"), global_variables
    )


def find_pictures_in_cell_value(cell_value: Any) -> list[Picture]:
    """Find the pictures in the value of a cell's last line: a panel, a snapshot, a sheet of pictures, or a picture."""
    if hasattr(cell_value, "still"):
        cell_value = cell_value.still()
    else:
        cell_value = getattr(cell_value, "shown", cell_value)
    sheet = getattr(cell_value, "pictures", None)
    pictures = list(sheet.values()) if isinstance(sheet, Mapping) else [cell_value]
    found = []
    for picture in pictures:
        has_figure = getattr(picture, "figure", None) is not None
        if has_figure or getattr(picture, "svg", ""):
            found.append(picture)
    return found


def make_html_index_page(title: str, slides: Sequence[LessonPicture]) -> str:
    """Make the list of the pictures, as an HTML page that opens in any browser."""
    lines = []
    section = ""
    for slide in slides:
        if slide.section != section:
            lines.append(f"<h2>{html.escape(slide.section)}</h2>")
            section = slide.section
        lines.append(format_slide_as_html(slide))
    title = html.escape(title)
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    body = "\n".join(lines)
    return f"{head}<style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n{body}\n</body></html>\n"


def format_slide_as_html(slide: LessonPicture) -> str:
    """Format a picture with its file name, its sentence and its alt text as HTML; an answer is folded."""
    name = html.escape(slide.name)
    alt = html.escape(slide.alt)
    image = f'<a href="{name}"><img src="{name}" alt="{alt}"></a>'
    sentence = html.escape(slide.sentence)
    caption = f"<p><code>{name}</code></p><p>{sentence}</p><p><small>Alt text: {alt}</small></p>"
    if slide.answer:
        image = FOLD.format(ANSWER, image)
        caption = FOLD.format("What it shows", caption)
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"
