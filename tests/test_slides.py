"""Pictures of a lesson as files: which ones, their names and alt texts, what is folded, and what is refused."""

import base64
import html
import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from fedlab_nb import slides
from fedlab_nb.cli import main
from fedlab_nb.course import Snapshot
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.plots.journey import journey

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


def make_shown_output(image, sentence, alt):
    data = {"image/png": base64.b64encode(image).decode(), "text/plain": sentence}
    return new_output("display_data", data, metadata={"image/png": {"alt": alt}})


def make_folded_output(image, sentence, alt):
    output = make_shown_output(image, f"Guess first, then read: {sentence}", alt)
    output.data["text/html"] = f'<details><img alt="{html.escape(alt)}"></details>'
    return output


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with pictures in lesson 3 and on a page, and none in Fed-ET's; returns a function that adds lessons."""
    folder = tmp_path / "course"
    (folder / "shelf").mkdir(parents=True)
    monkeypatch.setattr(slides, "find_course_source_folder", lambda: folder)

    def write_lesson(name, *cells):
        nbformat.write(new_notebook(cells=list(cells)), folder / f"{name}.ipynb")

    title = new_markdown_cell("# FENS: whom to trust")
    one = make_shown_output(ONE, "One rises.", "A line [1]")
    two = make_folded_output(TWO, "Two falls.", 'A "line" & 2')
    answer = new_markdown_cell("Text\n\n## 2. The answer")
    write_lesson(
        "3_fens",
        title,
        new_code_cell("a", outputs=[one]),
        answer,
        new_code_cell("b", outputs=[one, two]),
    )
    write_lesson(
        "shelf/fed_et", title, new_code_cell("c", outputs=[new_output("stream", text="no picture")])
    )
    write_lesson(
        "shelf/paper_tables",
        title,
        new_code_cell("d", outputs=[make_shown_output(TWO, "Two falls.", "A line")]),
    )
    return write_lesson


def test_stored_pictures_are_files_with_their_alt_texts(course, tmp_path):
    folder, written = slides.write_slides("03", tmp_path / "out")
    assert [(s.name, s.section, s.sentence, s.alt, s.answer, s.data) for s in written] == [
        ("3_fens_01.png", "FENS: whom to trust", "One rises.", "A line [1]", False, ONE),
        ("3_fens_02.png", "2. The answer", "Two falls.", 'A "line" & 2', True, TWO),
    ]
    assert (folder / "3_fens_01.png").read_bytes() == ONE
    assert (folder / "3_fens_02.png").read_bytes() == TWO
    assert {p.name for p in folder.iterdir()} == {"3_fens_01.png", "3_fens_02.png", "index.html"}
    page = (folder / "index.html").read_text()
    assert '<img src="3_fens_02.png" alt="A &quot;line&quot; &amp; 2">' in page
    first, second = re.findall(r"<figure>(.*?)</figure>", page, re.DOTALL)
    assert "<details>" not in first and second.startswith("<details><summary>Shows an answer")
    assert second.index("<details>") < second.index("Two falls.")


def test_a_picture_that_the_lesson_shows_as_svg_is_an_svg_file(tmp_path, monkeypatch):
    folder = tmp_path / "course"
    folder.mkdir()
    monkeypatch.setattr(slides, "find_course_source_folder", lambda: folder)
    data, _ = journey("fens")._repr_mimebundle_()
    cells = [new_markdown_cell("# FENS"), new_code_cell("1", outputs=[])]
    cells[1].outputs = [
        new_output("display_data", data),
        make_shown_output(ONE, "One rises.", "A line"),
    ]
    nbformat.write(new_notebook(cells=cells), folder / "3_fens.ipynb")
    _, (first, second) = slides.write_slides("3", tmp_path / "out")
    assert (first.name, second.name) == ("3_fens_01.svg", "3_fens_02.png")
    assert (tmp_path / "out" / first.name).read_bytes() == journey("fens").svg.encode()
    assert first.alt == journey("fens").alt and first.sentence == journey("fens").text
    assert slides.find_pictures_in_cell_value(Snapshot(journey("fens"))) == [journey("fens")]


def test_a_lesson_is_named_by_number_or_name(course, tmp_path):
    for name in ("3", "3_fens", "fens", "3_fens.ipynb"):
        assert slides.find_lesson_notebook(name).name == "3_fens.ipynb"
    for name in ("fed_et", "shelf/fed_et", "shelf/fed_et.ipynb"):
        assert slides.find_lesson_notebook(name).parts[-2:] == ("shelf", "fed_et.ipynb")


def test_an_old_name_leads_to_the_new_one(course):
    for name in ("03", "03_fens", "03_fens.ipynb"):
        assert slides.find_lesson_notebook(name).name == "3_fens.ipynb"
    for name in ("04", "04_fed_et"):
        assert slides.find_lesson_notebook(name).name == "fed_et.ipynb"


def test_a_page_without_a_number_has_pictures_too(course, tmp_path):
    assert [s.name for s in slides.write_slides("paper_tables", tmp_path / "out")[1]] == [
        "paper_tables_01.png"
    ]


def test_an_impossible_request_gets_one_sentence(course, tmp_path):
    for name in ("33", "fenz", "", "0", "_"):
        with pytest.raises(UsageError, match=f"Unknown lesson '{name}'.*3_fens"):
            slides.write_slides(name)
    with pytest.raises(RunError, match="lesson fed_et has no pictures"):
        slides.write_slides("04", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="Unknown format 'pdf'"):
        slides.write_slides("03", tmp_path / "out", "pdf")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="cannot be written to .*file"):
        slides.write_slides("03", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_svg_pictures_are_drawn_by_the_lesson_s_cells(course, tmp_path):
    course(
        "5_two",
        new_markdown_cell("# Two lines"),
        new_code_cell(PICTURE),
        new_code_cell("Snapshot(picture('One'))"),
        new_code_cell("picture('One')"),
        new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
        new_code_cell("made = picture('Hidden')\nmade.sentence"),
        new_code_cell("Snapshot(picture('Three'), after=guess)"),
        new_code_cell(""),
    )
    folder, written = slides.write_slides("5", tmp_path / "out", "svg")
    assert [(s.name, s.sentence, s.alt, s.answer) for s in written] == [
        ("5_two_01.svg", "One rises.", "A line for One", False),
        ("5_two_02.svg", "Three rises.", "A line for Three", True),
    ]
    for slide in written:
        assert ElementTree.fromstring((folder / slide.name).read_bytes()).tag.endswith("svg")
    assert b">One</text>" in written[0].data


def test_a_cell_that_fails_is_named(course, tmp_path):
    course("5_two", new_markdown_cell("# Two"), new_code_cell("a = 1"), new_code_cell("b"))
    with pytest.raises(RunError, match="Cell 2 of lesson 5_two failed.*NameError.*--format png"):
        slides.write_slides("5", tmp_path / "out", "svg")


def test_the_command_on_a_lesson_of_the_course(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["slides", "03"]) == 0
    folder = tmp_path / "slides_3_fens"
    names = sorted(path.name for path in folder.glob("3_fens_*"))
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert len(names) > 5
    assert f"{len(names)} pictures written to slides_3_fens" in capsys.readouterr().out
    starts = {".png": b"\x89PNG\r\n", ".svg": b"<svg "}
    for name in names:
        assert (folder / name).read_bytes().startswith(starts[Path(name).suffix])
    assert [name for name in names if name.endswith(".svg")] == names[:1]  # what travels
    assert re.findall(r'<img src="([^"]+)" alt="[^"]{20,}">', page) == names
    assert "http" not in page  # it loads nothing


@pytest.mark.slow
def test_svg_of_a_lesson_of_the_course(tmp_path):
    png_slides = slides.write_slides("00", tmp_path / "png")[1]
    svg_slides = slides.write_slides("00", tmp_path / "svg", "svg")[1]
    assert {s.sentence for s in png_slides} <= {s.sentence for s in svg_slides}
