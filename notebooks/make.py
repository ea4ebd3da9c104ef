"""Make the course's notebooks from notebooks/source/*.md, and run them so that their outputs are saved with them.

    python notebooks/make.py             # make and run all of them
    python notebooks/make.py 01          # only those whose name starts with 01
    python notebooks/make.py --check     # change nothing; exit 1 if a notebook's cells differ from its source

A source is Jupytext Markdown: a ```python fence is a code cell, the Markdown between fences is one cell, two blank
lines start a new one, and tags stand behind the fence (```python tags=["raises-exception"]). With Jupytext installed,
JupyterLab opens a source as a notebook (right click, Open With, Notebook). Exercises and solutions are not written out
here: notebooks ask for both, which are made from one definition.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat

FOLDER = Path(__file__).parent


def cells(source: str) -> list[nbformat.NotebookNode]:
    """The cells that a source stands for, in order, with ids that depend on the position only."""
    parsed = jupytext.reads(source, fmt="md").cells
    for number, cell in enumerate(parsed):
        cell["id"] = f"cell-{number:02d}"
    return parsed


def notebook(source: str) -> nbformat.NotebookNode:
    """A notebook without outputs."""
    made = nbformat.v4.new_notebook(cells=cells(source))
    made.metadata["kernelspec"] = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    made.metadata["language_info"] = {"name": "python"}
    return made


def execute(made: nbformat.NotebookNode) -> None:
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
            resources={"metadata": {"path": str(FOLDER)}},
        )
        client.execute(env={**os.environ, "FEDLAB_NB_STORE": store, "OMP_NUM_THREADS": "1"})
    made.metadata["language_info"] = {"name": "python"}  # without the exact version, which differs between machines


def in_step(source: Path) -> bool:
    """Whether the notebook beside the sources has exactly the cells of its source."""
    path = FOLDER / f"{source.stem}.ipynb"
    if not path.exists():
        return False

    def plain(cell: nbformat.NotebookNode) -> tuple:
        return cell.cell_type, cell.source, cell.metadata.get("tags", [])

    return [plain(c) for c in nbformat.read(path, 4).cells] == [plain(c) for c in cells(source.read_text())]


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    names = [a for a in arguments if a != "--check"] or [""]
    sources = [s for s in sorted((FOLDER / "source").glob("*.md")) if s.name.startswith(tuple(names))]
    if check:
        stale = [s.name for s in sources if not in_step(s)]
        print(f"Not in step with notebooks/source: {', '.join(stale)}." if stale else "In step.")
        return 1 if stale else 0
    for source in sources:
        made = notebook(source.read_text())
        execute(made)
        nbformat.write(made, FOLDER / f"{source.stem}.ipynb")
        print(f"made {source.stem}.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
