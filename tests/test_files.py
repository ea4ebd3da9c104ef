"""Writing files: a person's files are replaced only on request, the package's own always; `~` is the home folder."""

import io
import os
import stat
import sys

import pytest

from fedlab_nb import files, load_model, run, slides, study
from fedlab_nb.cli import main
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.files import check_replaceable, expand_path, replace_file_at_end_of_block, write_file
from fedlab_nb.live.classroom import write_student_page_file
from fedlab_nb.live.page import write_page as write_playground
from fedlab_nb.plots import style
from fedlab_nb.studies import Results

MINE = "this is mine"
ROWS = [{"method": "local", "seed": 0, "accuracy": 0.5}]


def make_picture():
    with style.drawing() as (figure, _):
        return style.Picture(figure, "alt", "sentence")


@pytest.fixture(scope="module")
def outcome():
    return run("fedavg", clients=2, epochs=1, share=0.1, model="mlp1:2")


# Each writer of the package: the name of a file that it writes, and a call that writes `path` or into its folder.
WRITERS = {
    "page": ("page.html", lambda path, force: write_playground(path, force=force)),
    "students' page": (
        "class.html",
        lambda path, force: write_student_page_file(
            path, force=force, alpha=0.1, drawings=20, seed=0
        ),
    ),
    "picture": ("a.svg", lambda path, force: make_picture().save(path, force=force)),
    "results": (
        "results.csv",
        lambda path, force: Results(ROWS).save(path.parent, force=force),
    ),
    "study": (
        "results.json",
        lambda path, force: study(["local"], clients=2, epochs=1, out=path.parent, force=force),
    ),
    "slides": (
        "3_fens_02.png",
        lambda path, force: slides.write_slides("03", path.parent, force=force),
    ),
    "slides that are SVG": (
        "3_fens_01.svg",
        lambda path, force: slides.write_slides("03", path.parent, force=force),
    ),
    "slides' index": (
        "index.html",
        lambda path, force: slides.write_slides("03", path.parent, force=force),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_a_persons_is_replaced_with_force_alone_and_our_own_always(name, tmp_path):
    file, write = WRITERS[name]
    path = tmp_path / file
    path.write_text(MINE)
    with pytest.raises(UsageError, match=r"is there already.*--force") as refused:
        write(path, False)
    assert str(path) in str(refused.value) and path.read_text() == MINE
    write(path, True)
    assert path.read_bytes() != MINE.encode()
    write(path, False)  # the package's own file
    path.write_bytes(path.read_bytes() + b"a line of mine")
    with pytest.raises(UsageError, match="somebody has changed it"):
        write(path, False)
    assert path.read_bytes().endswith(b"a line of mine")


@pytest.mark.parametrize("ending", ["safetensors", "onnx"])
# Slow because PyTorch's exporter to ONNX is imported and runs.
@pytest.mark.slow
def test_a_model_replaces_no_file_of_a_persons(ending, outcome, tmp_path):
    if ending == "onnx":
        pytest.importorskip("onnxscript")
    path = tmp_path / f"model.{ending}"
    path.write_text(MINE)
    with pytest.raises(UsageError, match="--force"):
        outcome.save(path)
    assert path.read_text() == MINE
    outcome.save(path, force=True)
    outcome.save(path)
    assert MINE.encode() not in path.read_bytes()


COMMANDS = {
    "page": ["page", "--out", "{}/mine.html"],
    "class page": ["class", "--page", "{}/mine.html"],
    "save": ["run", "local", "--clients", "2", "--set", "epochs=1", "--save", "{}/mine.onnx"],
    "sweep": ["sweep", "--methods", "local", "--clients", "2", "--set", "epochs=1", "--out", "{}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_refuses_before_it_computes(name, tmp_path, monkeypatch, capsys):
    command = [part.format(tmp_path) for part in COMMANDS[name]]
    for file in ("mine.html", "mine.onnx", "results.csv"):
        (tmp_path / file).write_text(MINE)
    monkeypatch.setattr(
        "fedlab_nb.studies.experiment.Run.prepare_context", lambda run: pytest.fail("it computed")
    )
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert {path.read_text() for path in tmp_path.iterdir()} == {MINE}


def test_force_on_the_command_line_replaces(tmp_path):
    page = tmp_path / "mine.html"
    page.write_text(MINE)
    assert main(["page", "--out", str(page), "--force"]) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert main(["page", "--out", str(page)]) == 0


# ------------------------------------------------------------------------------------------------ the helper itself
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_file(tmp_path / "a.txt", "old")
    with pytest.raises(RuntimeError), replace_file_at_end_of_block(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_run_that_is_killed_while_it_renames_finds_its_file_again(
    is_renamed, tmp_path, monkeypatch
):
    path = write_file(tmp_path / "a.txt", "old")
    rename = os.replace

    def rename_and_stop(source, target):
        is_note = files.NOTES in str(target)
        if is_renamed or is_note:
            rename(source, target)
        if not is_note:
            raise KeyboardInterrupt

    with monkeypatch.context() as stop:
        stop.setattr(os, "replace", rename_and_stop)
        with pytest.raises(KeyboardInterrupt):
            write_file(path, "new")
    monkeypatch.setattr(files, "_written", {})
    assert path.read_text() == ("new" if is_renamed else "old")
    assert write_file(path, "newer").read_text() == "newer"


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
def test_a_reader_gets_the_old_file_to_its_end_while_it_is_replaced(tmp_path):
    path = write_file(tmp_path / "a.txt", "old" * 100_000)
    with open(path) as reader:
        assert reader.read(3) == "old"
        write_file(path, "new")
        assert len(reader.read()) == 299_997


def test_of_several_files_none_is_written_if_one_belongs_to_a_person(tmp_path):
    Results(ROWS).save(tmp_path, parquet=False)
    before = (tmp_path / "results.csv").read_bytes()
    (tmp_path / "results.parquet").write_text(MINE)
    with pytest.raises(UsageError, match="results.parquet"):
        Results([*ROWS, *ROWS]).save(tmp_path)
    assert (tmp_path / "results.csv").read_bytes() == before


def test_a_file_that_a_person_writes_meanwhile_is_kept(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(UsageError), replace_file_at_end_of_block(path) as part:
        part.write_text("ours")
        path.write_text(MINE)
    assert path.read_text() == MINE


def test_files_of_other_processes_are_known_by_the_store_and_without_one_only_ones_own(
    tmp_path, monkeypatch
):
    path = write_file(tmp_path / "a.txt", "ours")
    monkeypatch.setattr(files, "_written", {})
    check_replaceable([path])
    (tmp_path / "no folder").write_text("")
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path / "no folder"))
    with pytest.raises(UsageError):
        check_replaceable([path])
    second_path = write_file(tmp_path / "b.txt", "ours")
    check_replaceable([second_path])


def test_a_copy_of_our_file_in_another_place_is_a_persons(tmp_path):
    path = write_file(tmp_path / "a.txt", "ours")
    copy = tmp_path / "b.txt"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(UsageError):
        write_file(copy, "new")


@pytest.mark.skipif(os.name == "nt", reason="links and modes as POSIX has them")
def test_a_link_stays_a_link_and_a_mode_stays(tmp_path):
    path = write_file(tmp_path / "a.txt", "ours")
    path.chmod(0o640)
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    write_file(link, "new")
    assert link.is_symlink() and path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link.unlink()
    link.symlink_to(tmp_path / "mine.txt")
    (tmp_path / "mine.txt").write_text(MINE)
    with pytest.raises(UsageError):
        write_file(link, "new")


@pytest.mark.slow
def test_the_course_is_copied_whole_and_touches_nothing(tmp_path, monkeypatch):
    from fedlab_nb import jupyter

    first = tmp_path / jupyter.FIRST
    first.write_text(MINE)
    (tmp_path / "mine.txt").write_text(MINE)
    jupyter.prepare_course_folder(tmp_path)
    assert first.read_text() == (tmp_path / "mine.txt").read_text() == MINE
    assert (tmp_path / "3_fens.ipynb").is_file()
    assert not list(tmp_path.rglob(".fedlab_nb-*"))


# ------------------------------------------------------------------------------------------------ home folders
def test_a_tilde_is_the_home_folder_everywhere(outcome, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert load_model(outcome.save("~/m.safetensors")).predict([[0.0] * 64]).shape == (1,)
    load_model("~/m.safetensors")
    write_playground("~/page.html")
    make_picture().save("~/a.svg")
    slides.write_slides("03", "~/slides")
    study(["local"], clients=2, epochs=1, out="~/o")
    assert len(Results.load("~/o")) == 1
    (tmp_path / "s.toml").write_text('methods = ["local"]\nclients = 2\nepochs = 1\n')
    assert main(["study", "~/s.toml", "--out", "~/o2"]) == 0
    monkeypatch.setenv("FEDLAB_NB_STORE", "~/st")
    assert files.find_store_folder() == tmp_path / "st"
    (tmp_path / "t.csv").write_text(
        "a,label\n" + "".join(f"{i % 7}.5,{'xy'[i % 2]}\n" for i in range(60))
    )
    assert main(["run", "local", "--dataset", "~/t.csv", "--clients", "2", "--set", "epochs=1",
                 "--save", "~/m2.safetensors"]) == 0  # fmt: skip
    assert not (tmp_path / "~").exists()
    names = {path.name for path in tmp_path.iterdir()}
    assert {"m.safetensors", "m2.safetensors", "page.html", "a.svg", "slides", "o", "o2"} <= names


def test_an_unknown_home_folder_is_one_sentence():
    with pytest.raises(UsageError, match="home folder"):
        expand_path("~no-such-person-here/a.csv")


def test_writing_a_file_where_a_folder_is_is_one_sentence(tmp_path):
    with pytest.raises(RunError, match="folder"):
        write_playground(tmp_path)


# ------------------------------------------------------------------------------------------------ encodings
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_an_encoding_without_greek_letters_is_no_crash(encoding, monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["plan", "fens"]) == 0
    terminal.flush()
    assert len(terminal.buffer.getvalue()) > 500
    assert terminal.buffer.getvalue().decode(encoding).startswith("fens: ")
