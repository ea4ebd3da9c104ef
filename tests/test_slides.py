"""Pictures of a lesson as files: which ones, their names and alt texts, what is folded, and what is refused."""

import base64
import html
import re
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from fedlab_nb import slides
from fedlab_nb.cli import main
from fedlab_nb.errors import RunError, UsageError

ONE, TWO = b"\x89PNG one", b"\x89PNG two"
PICTURE = """
from fedlab_nb.plots import Picture
from fedlab_nb.plots.style import drawing
from fedlab_nb.course import Snapshot, predict

def picture(name):
    with drawing() as (figure, ax):
        ax.plot([0, len(name)])
        ax.set_title(name)
    return Picture(figure, alt=f"A line for {name}", sentence=f"{name} rises.")
guess = predict("How steep?")
"""


def shown(image, sentence, alt):
    data = {"image/png": base64.b64encode(image).decode(), "text/plain": sentence}
    return new_output("display_data", data, metadata={"image/png": {"alt": alt}})


def folded(image, sentence, alt):
    source = base64.b64encode(image).decode()
    text = f'<details><img alt="{html.escape(alt)}" style="x" src="data:image/png;base64,{source}"></details>'
    return new_output(
        "display_data", {"text/html": text, "text/plain": f"Guess first, then read: {sentence}"}
    )


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of lesson 03 with three different pictures, of 04 without any, and of a page; returns a way to write."""
    folder = tmp_path / "course"
    folder.mkdir()
    monkeypatch.setattr(slides, "course_source", lambda: folder)

    def put(name, *cells):
        nbformat.write(new_notebook(cells=list(cells)), folder / f"{name}.ipynb")

    title = new_markdown_cell("# FENS: whom to trust")
    one, two = shown(ONE, "One rises.", "A line [1]"), folded(TWO, "Two falls.", 'A "line" & 2')
    answer = new_markdown_cell("Text\n\n## 2. The answer")
    put(
        "03_fens",
        title,
        new_code_cell("a", outputs=[one]),
        answer,
        new_code_cell("b", outputs=[one, two]),
    )
    put("04_fed_et", title, new_code_cell("c", outputs=[new_output("stream", text="no picture")]))
    put("paper_tables", title, new_code_cell("d", outputs=[shown(TWO, "Two falls.", "A line")]))
    return put


def test_stored_pictures_are_files_with_their_alt_texts(course, tmp_path):
    folder, written = slides.write("03", tmp_path / "out")
    assert [(s.name, s.section, s.sentence, s.alt, s.answer, s.data) for s in written] == [
        ("03_fens_01.png", "FENS: whom to trust", "One rises.", "A line [1]", False, ONE),
        ("03_fens_02.png", "2. The answer", "Two falls.", 'A "line" & 2', True, TWO),
    ]
    assert (folder / "03_fens_01.png").read_bytes() == ONE and (
        folder / "03_fens_02.png"
    ).read_bytes() == TWO
    assert {p.name for p in folder.iterdir()} == {"03_fens_01.png", "03_fens_02.png", "index.html"}
    page = (folder / "index.html").read_text()
    assert '<img src="03_fens_02.png" alt="A &quot;line&quot; &amp; 2">' in page
    first, second = re.findall(r"<figure>(.*?)</figure>", page, re.DOTALL)
    assert "<details>" not in first and second.startswith("<details><summary>Shows an answer")
    assert second.index("<details>") < second.index("Two falls.")


def test_a_lesson_is_named_by_number_or_name(course, tmp_path):
    for name in ("3", "03", "03_fens", "fens", "03_fens.ipynb"):
        assert slides.notebook_of(name).name == "03_fens.ipynb"
    assert [s.name for s in slides.write("paper_tables", tmp_path / "out")[1]] == [
        "paper_tables_01.png"
    ]


def test_what_cannot_be_done_is_one_sentence(course, tmp_path):
    for name in ("33", "fenz", "", "0", "_"):
        with pytest.raises(UsageError, match=f"Unknown lesson '{name}'.*03_fens"):
            slides.write(name)
    with pytest.raises(RunError, match="lesson 04_fed_et has no pictures"):
        slides.write("04", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="Unknown format 'pdf'"):
        slides.write("03", tmp_path / "out", "pdf")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="cannot be written to .*file"):
        slides.write("03", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_svg_pictures_are_drawn_by_the_lesson_s_cells(course, tmp_path):
    course(
        "05_two",
        new_markdown_cell("# Two lines"),
        new_code_cell(PICTURE),
        new_code_cell("Snapshot(picture('One'))"),
        new_code_cell("picture('One')"),
        new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
        new_code_cell("made = picture('Hidden')\nmade.sentence"),
        new_code_cell("Snapshot(picture('Three'), after=guess)"),
        new_code_cell(""),
    )
    folder, written = slides.write("05", tmp_path / "out", "svg")
    assert [(s.name, s.sentence, s.alt, s.answer) for s in written] == [
        ("05_two_01.svg", "One rises.", "A line for One", False),
        ("05_two_02.svg", "Three rises.", "A line for Three", True),
    ]
    for slide in written:
        assert ElementTree.fromstring((folder / slide.name).read_bytes()).tag.endswith("svg")
    assert b">One</text>" in written[0].data


def test_a_cell_that_fails_is_named(course, tmp_path):
    course("05_two", new_markdown_cell("# Two"), new_code_cell("a = 1"), new_code_cell("b"))
    with pytest.raises(RunError, match="Cell 2 of lesson 05_two failed.*NameError.*--format png"):
        slides.write("05", tmp_path / "out", "svg")


def test_the_command_on_a_lesson_of_the_course(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["slides", "03"]) == 0
    folder = tmp_path / "slides_03_fens"
    names, page = sorted(p.name for p in folder.glob("*.png")), (folder / "index.html").read_text()
    assert (
        len(names) > 5
        and f"{len(names)} pictures written to slides_03_fens" in capsys.readouterr().out
    )
    assert all((folder / name).read_bytes().startswith(b"\x89PNG\r\n") for name in names)
    assert re.findall(r'<img src="([^"]+)" alt="[^"]{20,}">', page) == names
    assert "http" not in page  # it loads nothing


@pytest.mark.slow
def test_svg_of_a_lesson_of_the_course(tmp_path):
    stored = slides.write("00", tmp_path / "png")[1]
    drawn = slides.write("00", tmp_path / "svg", "svg")[1]
    assert {s.sentence for s in stored} <= {s.sentence for s in drawn}
