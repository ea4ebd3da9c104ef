"""Make the course's notebooks from their sources, fedlab_nb/course/NAME/lesson.md, and run them, so that their outputs
are saved with them.

    python notebooks/make.py             # make and run all of them
    python notebooks/make.py 3 fed_et    # only those whose name starts so, with or without their folder
    python notebooks/make.py --text      # run nothing: cells whose code has not changed keep their outputs
    python notebooks/make.py --check     # change nothing; exit 1 if a notebook's cells differ from its source, or a
                                         # teachers' page from the pictures that the notebook has
    python notebooks/make.py --pictures  # run nothing: the pictures of the teachers' pages, from the stored outputs

A source is Jupytext Markdown: a ```python fence is a code cell, the Markdown between fences is one cell, two blank
lines start a new one, and tags stand behind the fence (```python tags=["raises-exception"]). With Jupytext installed,
JupyterLab opens a source as a notebook (right click, Open With, Notebook). Exercises and solutions are not written out
there: notebooks ask for both, which are made from one definition. The page for teachers shows the pictures of the cells
with the tag "teacher", as images/teacher/LESSON-k.png.

The first use of each symbol gets a link to its row in notation.md, with its meaning under the pointer:
`[$\\alpha$](notation.md#alpha "concentration of …")`. A symbol counts where a formula is that symbol alone, or where a
Greek letter stands in the text. Headings, code, tables, lists of references and long formulas are left as they are.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from PIL import Image

from fedlab_nb.course import COURSE, get_lesson_label
from fedlab_nb.renamed import find_current_name
from fedlab_nb.slides import Slide, read_stored_pictures
from fedlab_nb.symbols import Symbol, convert_latex_to_text, rank_meaning_in_row, read_symbols

FOLDER = Path(__file__).parent
LESSONS = FOLDER.parent / "fedlab_nb" / "course"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}

# the method that a letter speaks of in a lesson, where it means something to several
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
WITHOUT_LINKS = {"shelf/paper_tables"}  # a page without formulas of its own
# Cells that only show a form or a saved picture are folded. Their first line is still seen: it says what they are for.
SHOWS = {
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
# what is no place for a link: headings, rows of tables, references; links, code, comments, titles of folds; a paper's
# own letter
NO_PLACE = re.compile(
    r"^(?:#|\||- .*(?:arXiv|doi)).*|!?\[[^\]]*\]\([^)]*\)|`[^`]*`|<!--.*?-->|<summary>.*?</summary>"
    r"|\((?:its|[Tt]he paper)[^)]*\)",
    re.MULTILINE,
)
# The line of pictures in a page for teachers.
SHOWN = re.compile(r"^!\[.*\]\(\.\./images/teacher/.*\)$", re.MULTILINE)
NUMBER_BEFORE_PERCENT = re.compile(r"(?<=[\d>]) %")
SYMBOL = re.compile(r"\$([^$\n]+)\$|(?<![\w$\\])([α-ωΑ-Ω](?:_\w+)?)(?![\w$-])")


# ------------------------------------------------------------------------------------------------------------- links
def rows_of(lesson: str) -> dict[str, Symbol]:
    """{plain name: row} of the symbols that mean the same in this lesson, such as "3", as in the table."""
    rows: dict[str, Symbol] = {}
    for row in read_symbols():
        known = (
            not row.method_title
            or row.first == lesson
            or re.search(r"_\w\w", row.name_before_brackets)
        )
        if known and (row.name_before_brackets not in rows or row.first == lesson):
            rows[row.name_before_brackets] = row
    return rows


def linked(text: str, name: str) -> str:
    """The text of the notebook `name`, such as "3_fens", with its links to notation.md."""
    lesson = get_lesson_label(name)
    table = "../notation.md" if "/" in name else "notation.md"
    rows = rows_of(lesson)
    done = set()

    def put(match: re.Match) -> str:
        symbol = re.sub(r"\(.*\)$", "", convert_latex_to_text(match[1] or match[2]))
        if symbol not in rows or symbol in done or "=" in match[0]:
            return match[0]
        done.add(symbol)
        known = rank_meaning_in_row(rows[symbol], symbol, METHODS.get(lesson, ""))
        meaning = (known[1] if known else rows[symbol].first_meaning).replace('"', "”")
        return f'[{match[0]}]({table}#{rows[symbol].anchor} "{meaning}")'

    def between(text: str) -> str:
        parts = []
        end = 0
        for skip in NO_PLACE.finditer(text):
            parts += [SYMBOL.sub(put, text[end : skip.start()]), skip[0]]
            end = skip.end()
        return "".join([*parts, SYMBOL.sub(put, text[end:])])

    pieces = FENCE.split(text)
    return "".join(piece if i % 2 else between(piece) for i, piece in enumerate(pieces))


# --------------------------------------------------------------------------------------------------------- notebooks
def source_of(name: str) -> Path:
    """The source of a notebook, such as "3_fens"."""
    return LESSONS / COURSE[name] / "lesson.md"


def keep_percent_signs(text: str) -> str:
    """The text with a no-break space before each percent sign, outside code and formulas."""
    pieces = FENCE.split(text)
    for i in range(0, len(pieces), 2):
        pieces[i] = NUMBER_BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}%", pieces[i])
    return "".join(pieces)


def text_of(name: str) -> str:
    """A notebook's source with its links."""
    text = keep_percent_signs(source_of(name).read_text(encoding="utf-8"))
    return text if name in WITHOUT_LINKS else linked(text, name)


def cells(source: str) -> list[nbformat.NotebookNode]:
    """The cells that a source stands for, in order, with ids that depend on the position only."""
    parsed = jupytext.reads(source, fmt="md").cells
    for number, cell in enumerate(parsed):
        cell["id"] = f"cell-{number:02d}"
        first = next(
            (words for start, words in SHOWS.items() if re.match(start, cell.source)), None
        )
        if cell.cell_type == "code" and first:
            cell.source = f"{first}\n{cell.source}"
            cell.metadata["jupyter"] = {"source_hidden": True}
    return parsed


def notebook(source: str) -> nbformat.NotebookNode:
    """A notebook without outputs."""
    made = nbformat.v4.new_notebook(cells=cells(source))
    made.metadata["kernelspec"] = KERNEL
    made.metadata["language_info"] = {"name": "python"}
    return made


def execute(made: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells in place with an empty store, as on a first visit; pictures and text stay, widgets do not.

    On one thread, as in the tests: sums in another order round otherwise, and a few saved numbers would differ.
    """
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as store:
        client = NotebookClient(
            made,
            timeout=120,
            store_widget_state=False,
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute(env={**os.environ, "FEDLAB_NB_STORE": store, "OMP_NUM_THREADS": "1"})
    # Without the exact version, which differs between machines.
    made.metadata["language_info"] = {"name": "python"}


def keep_outputs(made: nbformat.NotebookNode, old: nbformat.NotebookNode) -> None:
    """Give each code cell the outputs that a cell with the same code has in the `old` notebook."""
    stored: dict[str, list[nbformat.NotebookNode]] = {}
    for cell in old.cells:
        stored.setdefault(cell.source, []).append(cell)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
        if stored.get(cell.source):
            cell.outputs = stored[cell.source].pop(0).outputs
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = number


def in_step(name: str) -> bool:
    """Whether a notebook has exactly the cells of its source, and its teachers' page shows its pictures."""
    path = FOLDER / f"{name}.ipynb"
    if not path.exists():
        return False
    if page_of(name).exists() and page_of(name).read_text("utf-8") != page_with_pictures(name):
        return False

    def plain(cell: nbformat.NotebookNode) -> tuple:
        return (
            cell.cell_type,
            cell.source,
            cell.metadata.get("tags", []),
            cell.metadata.get("jupyter"),
        )

    return [plain(c) for c in nbformat.read(path, 4).cells] == [
        plain(c) for c in cells(text_of(name))
    ]


# ---------------------------------------------------------------------------------------------- the teachers' pictures
def pictures(name: str) -> dict[str, Slide]:
    """{"3-1.png": picture} of the cells with the tag "teacher", in order, as they are stored in the notebook."""
    cells = nbformat.read(FOLDER / f"{name}.ipynb", 4).cells
    tagged = read_stored_pictures(
        [cell for cell in cells if "teacher" in cell.metadata.get("tags", [])]
    )
    start = name[0] if name[0].isdigit() else Path(name).name
    return {f"{start}-{k}.png": slide for k, slide in enumerate(tagged, 1)}


def page_of(name: str) -> Path:
    """The teachers' page of a notebook."""
    return FOLDER / "instructor" / f"{Path(name).name}.md"


def put_pictures(name: str) -> None:
    """Write these pictures, with a palette of 256 colours as the only loss, and the line that shows them in the
    teachers' page, with their alt texts."""
    folder = FOLDER / "images" / "teacher"
    for file, slide in pictures(name).items():
        image = Image.open(io.BytesIO(slide.data)).convert("RGB").quantize(256)
        image.save(folder / file, optimize=True)
    page_of(name).write_text(page_with_pictures(name), encoding="utf-8")


def page_with_pictures(name: str) -> str:
    """The teachers' page of a notebook, with the alt texts of its pictures as they are stored now."""
    shown = []
    for file, slide in pictures(name).items():
        alt = slide.alt.translate({ord("["): "(", ord("]"): ")"})
        shown.append(f"![{alt}](../images/teacher/{file})")
    text = page_of(name).read_text(encoding="utf-8")
    return SHOWN.sub(lambda _: " ".join(shown), text)


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
    asked = parser.parse_args()
    starts = tuple(find_current_name(start) or start for start in asked.names)
    names = [
        name for name in COURSE if name.startswith(starts) or Path(name).name.startswith(starts)
    ]
    if asked.check:
        stale = [name for name in names if not in_step(name)]
        print(f"Not in step with their sources: {', '.join(stale)}." if stale else "In step.")
        return 1 if stale else 0
    for name in names:
        if asked.pictures:
            put_pictures(name)
            continue
        made = notebook(text_of(name))
        path = FOLDER / f"{name}.ipynb"
        if asked.text:
            keep_outputs(made, nbformat.read(path, 4))
        else:
            execute(made, path.parent)
        nbformat.write(made, path)
        if not asked.text:
            put_pictures(name)
        print(f"made {name}.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
