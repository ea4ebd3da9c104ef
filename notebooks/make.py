"""Make the course's notebooks from their sources, fedlab_nb/course/NAME/lesson.md, and run them.

    python notebooks/make.py             # make and run all of them
    python notebooks/make.py 3 fed_et    # only those whose name starts so, with or without their folder
    python notebooks/make.py --text      # run nothing: cells whose code has not changed keep their outputs
    python notebooks/make.py --check     # change nothing; exit 1 if a notebook's cells differ from its source, or a
                                         # teachers' page from the pictures of its notebook
    python notebooks/make.py --pictures  # run nothing: make the teachers' pictures from the stored outputs

A source is Jupytext Markdown: a ```python fence is a code cell, the Markdown between fences is one cell, two blank
lines start a new one, and tags stand behind the fence (```python tags=["raises-exception"]). With Jupytext installed,
JupyterLab opens a source as a notebook (right click, Open With, Notebook). A source has no texts of exercises: a
notebook's cell calls `lesson.q1.form()`, which shows exercise and solution from exercises.toml. The page for teachers
shows the pictures of the cells with the tag "teacher", as images/teacher/LESSON-k.png.

The first use of each symbol gets a link to its row in notation.md, with its meaning under the pointer:
`[$\\alpha$](notation.md#alpha "concentration of …")`. A symbol counts where a formula is that symbol alone, or where a
Greek letter stands in the text. Headings, code, tables, lists of references and long formulas are left as they are.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat

from fedlab_nb.course import COURSE, get_lesson_label
from fedlab_nb.renamed import find_current_lesson_name
from fedlab_nb.slides import LessonPicture, read_stored_pictures
from fedlab_nb.symbols import (
    Symbol,
    convert_latex_to_text,
    find_ranked_meaning_in_row,
    read_symbols,
)

FOLDER = Path(__file__).parent
LESSONS = FOLDER.parent / "fedlab_nb" / "course"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}

# {lesson: the method whose meaning a letter has there}, for letters that several methods use.
METHODS = {
    "averaging": "DENSE",
    "3": "FENS",
    "Fed-ET": "Fed-ET",
    "Co-Boosting": "Co-Boosting",
    "FuseFL": "FuseFL",
    "FedLPA": "FedLPA",
    "4": "AFL",
    "masks and noise": "AFL",
    "names of neurons": "Neuron matching",
    "5": "Distilled data",
}
PAGES_WITHOUT_LINKS = {"shelf/paper_tables"}  # a page without formulas of its own
# {start of the code: a first line that says what the cell is for}. Cells that only show a form or a saved picture are
# folded, and this line is what is still seen of them.
FIRST_LINES = {
    r"\w+ = predict\(": "# your guess",
    r"\w+\.reveal\(": "# the answer",
    r"Snapshot\(fl\.journey": "# what travels",
    r"Snapshot\(": "# the result",
    r"[\w, ]+ = \(?panel\.(show|set)\(": "# the result",
    r"panel\.views": "# the result",
    r"score\(": "# your score",
    r"lesson\.q\d\.form\(": "# an exercise",
    r"lesson\.(show_soft_labels_of_one_image|show_client_weights_of_one_image)\(": "# the result",
    r"case\.seen\(": "# the result",
    r"case\.form\(": "# your tries",
    r"lesson\.closing\(": "# your page",
    r"plane\.show\(": "# a panel",
    r"day\.bells\(": "# a panel",
}
FENCE = re.compile(r"(^```.*?^```[^\n]*\n?|\$\$.*?\$\$)", re.MULTILINE | re.DOTALL)
# Text that gets no links: headings, rows of tables, references; links, code, comments, titles of folds; and the letter
# that a paper uses instead of ours, in brackets.
TEXT_WITHOUT_LINKS = re.compile(
    r"^(?:#|\||- .*(?:arXiv|doi)).*|!?\[[^\]]*\]\([^)]*\)|`[^`]*`|<!--.*?-->|<summary>.*?</summary>"
    r"|\((?:its|[Tt]he paper)[^)]*\)",
    re.MULTILINE,
)
# The line of pictures in a page for teachers.
PICTURE_LINE = re.compile(r"^!\[.*\]\(\.\./images/teacher/.*\)$", re.MULTILINE)
NUMBER_BEFORE_PERCENT = re.compile(r"(?<=[\d>]) %")
SYMBOL = re.compile(r"\$([^$\n]+)\$|(?<![\w$\\])([α-ωΑ-Ω](?:_\w+)?)(?![\w$-])")


# ------------------------------------------------------------------------------------------------------------- links
def find_symbol_rows(lesson: str) -> dict[str, Symbol]:
    """{plain name: row} of the symbols that have the table's meaning in this lesson, such as "3"."""
    rows: dict[str, Symbol] = {}
    for row in read_symbols():
        name = row.name_before_brackets
        is_introduced_here = row.first == lesson
        has_word_as_index = re.search(r"_\w\w", name)  # such as λ_div, which has one meaning
        if row.method_title and not is_introduced_here and not has_word_as_index:
            continue
        if name not in rows or is_introduced_here:
            rows[name] = row
    return rows


def add_links(text: str, name: str) -> str:
    """The text of the notebook `name`, such as "3_fens", with its links to notation.md."""
    lesson = get_lesson_label(name)
    table = "../notation.md" if "/" in name else "notation.md"
    rows = find_symbol_rows(lesson)
    linked_symbols = set()

    def add_link(match: re.Match) -> str:
        symbol = re.sub(r"\(.*\)$", "", convert_latex_to_text(match[1] or match[2]))
        if symbol not in rows or symbol in linked_symbols or "=" in match[0]:
            return match[0]
        linked_symbols.add(symbol)
        row = rows[symbol]
        ranked = find_ranked_meaning_in_row(row, symbol, METHODS.get(lesson, ""))
        meaning = ranked[1] if ranked else row.first_meaning
        meaning = meaning.replace('"', "”")
        return f'[{match[0]}]({table}#{row.anchor} "{meaning}")'

    def add_links_to_prose(prose: str) -> str:
        parts = []
        end = 0
        for skipped in TEXT_WITHOUT_LINKS.finditer(prose):
            parts.append(SYMBOL.sub(add_link, prose[end : skipped.start()]))
            parts.append(skipped[0])
            end = skipped.end()
        parts.append(SYMBOL.sub(add_link, prose[end:]))
        return "".join(parts)

    pieces = FENCE.split(text)  # prose and fences in turn
    for i in range(0, len(pieces), 2):
        pieces[i] = add_links_to_prose(pieces[i])
    return "".join(pieces)


# --------------------------------------------------------------------------------------------------------- notebooks
def find_source(name: str) -> Path:
    """The source of a notebook, such as "3_fens"."""
    return LESSONS / COURSE[name] / "lesson.md"


def keep_percent_signs(text: str) -> str:
    """The text with a no-break space before each percent sign, outside code and formulas."""
    pieces = FENCE.split(text)
    for i in range(0, len(pieces), 2):
        pieces[i] = NUMBER_BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}%", pieces[i])
    return "".join(pieces)


def read_text_with_links(name: str) -> str:
    """A notebook's source with its links."""
    text = keep_percent_signs(find_source(name).read_text(encoding="utf-8"))
    return text if name in PAGES_WITHOUT_LINKS else add_links(text, name)


def make_cells(source: str) -> list[nbformat.NotebookNode]:
    """The cells that a source stands for, in order, with ids that depend on the position only."""
    cells = jupytext.reads(source, fmt="md").cells
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number:02d}"
        if cell.cell_type == "code":
            fold_if_it_only_shows(cell)
    return cells


def fold_if_it_only_shows(cell: nbformat.NotebookNode) -> None:
    """Fold a code cell that FIRST_LINES lists, and give it its first line."""
    for start, first_line in FIRST_LINES.items():
        if re.match(start, cell.source):
            cell.source = f"{first_line}\n{cell.source}"
            cell.metadata["jupyter"] = {"source_hidden": True}
            return


def make_notebook(source: str) -> nbformat.NotebookNode:
    """A notebook without outputs."""
    notebook = nbformat.v4.new_notebook(cells=make_cells(source))
    notebook.metadata["kernelspec"] = KERNEL
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells in place with an empty store, as on a first visit; pictures and texts are kept, widgets are not.

    It uses one thread, as the tests do: sums in another order are rounded differently, and a few saved numbers would
    differ.
    """
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as store:
        client = NotebookClient(
            notebook,
            timeout=120,
            store_widget_state=False,
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute(env={**os.environ, "FEDLAB_NB_STORE": store, "OMP_NUM_THREADS": "1"})
    # Without the exact version, which differs between machines.
    notebook.metadata["language_info"] = {"name": "python"}


def keep_outputs(notebook: nbformat.NotebookNode, old: nbformat.NotebookNode) -> None:
    """Give each code cell the outputs that a cell with the same code has in the `old` notebook."""
    stored: dict[str, list[nbformat.NotebookNode]] = {}
    for cell in old.cells:
        stored.setdefault(cell.source, []).append(cell)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
        if stored.get(cell.source):
            cell.outputs = stored[cell.source].pop(0).outputs
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = number


def is_in_step(name: str) -> bool:
    """Whether a notebook has exactly the cells of its source, and its teachers' page shows its pictures."""
    path = FOLDER / f"{name}.ipynb"
    if not path.exists():
        return False
    page = find_teachers_page(name)
    if page.exists() and page.read_text(encoding="utf-8") != make_page_with_pictures(name):
        return False
    present = nbformat.read(path, 4).cells
    expected = make_cells(read_text_with_links(name))
    return list(map(get_comparable_parts, present)) == list(map(get_comparable_parts, expected))


def get_comparable_parts(cell: nbformat.NotebookNode) -> tuple:
    """What a cell has from its source."""
    metadata = cell.metadata
    return cell.cell_type, cell.source, metadata.get("tags", []), metadata.get("jupyter")


# ---------------------------------------------------------------------------------------------- the teachers' pictures
def find_teacher_pictures(name: str) -> dict[str, LessonPicture]:
    """{"3-1.png": picture} of the cells with the tag "teacher", in order, as they are stored in the notebook."""
    cells = nbformat.read(FOLDER / f"{name}.ipynb", 4).cells
    tagged_cells = [cell for cell in cells if "teacher" in cell.metadata.get("tags", [])]
    start = name[0] if name[0].isdigit() else Path(name).name
    slides = read_stored_pictures(tagged_cells)
    return {f"{start}-{k}.png": slide for k, slide in enumerate(slides, 1)}


def find_teachers_page(name: str) -> Path:
    """The teachers' page of a notebook."""
    return FOLDER / "instructor" / f"{Path(name).name}.md"


def write_teacher_pictures(name: str) -> None:
    """Write these pictures, and the line with their alternative texts in the teachers' page."""
    folder = FOLDER / "images" / "teacher"
    for file, slide in find_teacher_pictures(name).items():
        (folder / file).write_bytes(slide.data)
    find_teachers_page(name).write_text(make_page_with_pictures(name), encoding="utf-8")


def make_page_with_pictures(name: str) -> str:
    """The text of a teachers' page, with the alternative texts of its pictures as they are stored now."""
    images = []
    for file, slide in find_teacher_pictures(name).items():
        alt = slide.alt.translate({ord("["): "(", ord("]"): ")"})
        images.append(f"![{alt}](../images/teacher/{file})")
    text = find_teachers_page(name).read_text(encoding="utf-8")
    return PICTURE_LINE.sub(lambda _: " ".join(images), text)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="*",
        default=[""],
        help="how names of notebooks start, such as 3 or fed_et; default: all",
    )
    parser.add_argument("--text", action="store_true", help="run nothing, keep the outputs")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument(
        "--pictures",
        action="store_true",
        help="run nothing, make the pictures of the teachers' pages",
    )
    options = parser.parse_args()
    starts = tuple(find_current_lesson_name(start) or start for start in options.names)
    names = [
        name for name in COURSE if name.startswith(starts) or Path(name).name.startswith(starts)
    ]
    if options.check:
        stale = [name for name in names if not is_in_step(name)]
        print(f"Not in step with their sources: {', '.join(stale)}." if stale else "In step.")
        return 1 if stale else 0
    for name in names:
        if options.pictures:
            write_teacher_pictures(name)
            continue
        notebook = make_notebook(read_text_with_links(name))
        path = FOLDER / f"{name}.ipynb"
        if options.text:
            keep_outputs(notebook, nbformat.read(path, 4))
        else:
            execute(notebook, path.parent)
        nbformat.write(notebook, path)
        if not options.text:
            write_teacher_pictures(name)
        print(f"made {name}.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
