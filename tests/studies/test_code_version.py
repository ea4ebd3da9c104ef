"""What a stored result depends on: edits that keep trained clients and runs, and edits that do not."""

import shutil
from pathlib import Path

import pytest

import fedlab_nb
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.code_version import HERE, core_code, foreign_code, run_code

SOURCES = Path(fedlab_nb.__file__).parent


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package's sources."""
    root = tmp_path_factory.mktemp("copy") / "fedlab_nb"
    shutil.copytree(SOURCES, root, ignore=lambda folder, names: [n for n in names if n.endswith((".pyc", ".json"))])
    return root


@pytest.fixture(scope="module")
def before(tree):
    """The codes of the copy as it is."""
    return of(tree)


@pytest.fixture
def after(tree):
    """`after(file, edit)`: the codes when one file's text was changed; the file is put back."""

    def codes(file, edit):
        path = tree / file
        text = path.read_text(encoding="utf-8")
        edited = edit(text)
        assert edited != text, f"the edit of {file} changes nothing"
        path.write_text(edited, encoding="utf-8")
        try:
            return of(tree)
        finally:
            path.write_text(text, encoding="utf-8")

    return codes


def of(root):
    """(clients' code, FENS' code, FedLPA's code) of the package in `root`, read anew."""
    core_code.cache_clear()
    run_code.cache_clear()
    return core_code(root), run_code(METHODS["fens"], root), run_code(METHODS["fedlpa"], root)


def line(text):
    """A line of code more."""
    return text + "\nANOTHER_LINE = 1\n"


def inner_docstring(text):
    """The last docstring of the file, with more words."""
    place = text.rindex('"""\n')
    return text[:place] + " More words." + text[place:]


def comment(text):
    return text + "\n# A comment.\n"


def test_a_copy_has_the_package_s_own_codes(before):
    assert before == of(SOURCES)


@pytest.mark.parametrize(
    ("file", "edit"),
    [("data/partition.py", inner_docstring), ("methods/fens/__init__.py", comment), ("plots/partition.py", line),
     (f"{HERE}/engine.py", line), ("methods/fusefl/__init__.py", line), ("methods/fedavg.py", line)],
)  # fmt: skip
def test_an_edit_that_decides_nothing_keeps_everything(before, after, file, edit):
    assert after(file, edit) == before


@pytest.mark.parametrize("file", ["training/loop.py", "data/partition.py", "methods/context.py", f"{HERE}/clients.py"])
def test_an_edit_of_what_trains_clients_makes_other_clients(before, after, file):
    assert after(file, line)[0] != before[0]


def test_arithmetic_counts_to_the_last_sign(before, after):
    now = after("data/partition.py", lambda text: text.replace("* n + 1e-9", "* n - 1e-9"))
    assert now[0] != before[0]


@pytest.mark.parametrize(
    ("file", "fens", "fedlpa"),
    [("methods/fens/__init__.py", True, False), ("methods/fedlpa/__init__.py", False, True),
     ("methods/base.py", True, True), (f"{HERE}/experiment.py", True, True)],
)  # fmt: skip
def test_an_edit_of_a_method_makes_other_runs_of_it_alone(before, after, file, fens, fedlpa):
    now = after(file, line)
    assert now[0] == before[0], "clients stay"
    assert (now[1] != before[1], now[2] != before[2]) == (fens, fedlpa)


def test_a_method_of_one_s_own_depends_on_all_methods_and_on_itself(tree):
    class Mine(METHODS["fedavg"]):
        def run(self, ctx):
            return 1

    class Other(METHODS["fedavg"]):
        def run(self, ctx):
            return 2

    before = run_code(Mine, tree)
    path = tree / "methods/fens/__init__.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(line(text), encoding="utf-8")
    run_code.cache_clear()
    assert run_code(Mine, tree) != before
    path.write_text(text, encoding="utf-8")
    assert foreign_code({"run": Mine.run}) != foreign_code({"run": Other.run}) != {}
    assert foreign_code({"run": METHODS["fens"].run}) == {}
