"""The code on which a stored result depends: edits that keep trained clients and runs valid, and edits that do not."""

import shutil
from pathlib import Path

import pytest

import fedlab_nb
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.code_version import (
    HERE,
    hash_core_code,
    hash_functions_from_outside_package,
    hash_method_code,
)

SOURCES = Path(fedlab_nb.__file__).parent


@pytest.fixture(scope="module")
def source_copy(tmp_path_factory):
    """A copy of the package's sources."""
    root = tmp_path_factory.mktemp("copy") / "fedlab_nb"
    shutil.copytree(
        SOURCES,
        root,
        ignore=lambda folder, names: [n for n in names if n.endswith((".pyc", ".json"))],
    )
    return root


@pytest.fixture(scope="module")
def hashes_before(source_copy):
    """The hashes of the unchanged copy."""
    return hash_codes(source_copy)


@pytest.fixture
def hash_after_edit(source_copy):
    """`hash_after_edit(file, edit)`: the hashes after one file was edited; the file is restored."""

    def hash_edited_copy(file, edit):
        path = source_copy / file
        text = path.read_text(encoding="utf-8")
        edited = edit(text)
        assert edited != text, f"the edit of {file} changes nothing"
        path.write_text(edited, encoding="utf-8")
        try:
            return hash_codes(source_copy)
        finally:
            path.write_text(text, encoding="utf-8")

    return hash_edited_copy


def hash_codes(root):
    """Hashes of the code of local training, of FENS and of FedLPA in the package at `root`, computed afresh."""
    hash_core_code.cache_clear()
    hash_method_code.cache_clear()
    return (
        hash_core_code(root),
        hash_method_code(METHODS["fens"], root),
        hash_method_code(METHODS["fedlpa"], root),
    )


def add_line(text):
    """The text with one more line of code."""
    return text + "\nANOTHER_LINE = 1\n"


def extend_last_docstring(text):
    """The text with more words in its last docstring."""
    place = text.rindex('"""\n')
    return text[:place] + " More words." + text[place:]


def add_comment(text):
    return text + "\n# A comment.\n"


def flip_rounding_sign(text):
    return text.replace("* sample_count + 1e-9", "* sample_count - 1e-9")


@pytest.mark.slow
def test_a_copy_has_the_hashes_of_the_package(hashes_before):
    assert hashes_before == hash_codes(SOURCES)


# Whether the hashes of local training, of FENS and of FedLPA change.
NOTHING = (False, False, False)
CLIENTS = (True, False, False)
RUNS = (False, True, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "edit", "expected"),
    [("data/partition.py", extend_last_docstring, NOTHING), ("methods/fens/__init__.py", add_comment, NOTHING),
     ("plots/partition.py", add_line, NOTHING), (f"{HERE}/engine.py", add_line, NOTHING),
     ("methods/fedavg.py", add_line, NOTHING),
     ("methods/fusefl/__init__.py", add_line, NOTHING), ("training/loop.py", add_line, CLIENTS),
     ("data/partition.py", add_line, CLIENTS), ("data/partition.py", flip_rounding_sign, CLIENTS),
     (f"{HERE}/store.py", add_line, CLIENTS), ("methods/context.py", add_line, (True, True, True)),
     ("methods/fens/__init__.py", add_line, (False, True, False)),
     ("methods/fedlpa/__init__.py", add_line, (False, False, True)), ("methods/base.py", add_line, RUNS),
     (f"{HERE}/experiment.py", add_line, RUNS)],
)  # fmt: skip
def test_an_edit_changes_the_hashes_of_what_depends_on_it(
    hashes_before, hash_after_edit, file, edit, expected
):
    """An edit without effect changes nothing; an edit of a method changes its runs alone, and no trained clients."""
    hashes = hash_after_edit(file, edit)
    changed = [after != before for after, before in zip(hashes, hashes_before, strict=True)]
    assert tuple(changed) == expected


def test_a_users_method_depends_on_all_methods_and_on_itself(source_copy):
    class Mine(METHODS["fedavg"]):
        def run(self, ctx):
            return 1

    class Other(METHODS["fedavg"]):
        def run(self, ctx):
            return 2

    hashes_before = hash_method_code(Mine, source_copy)
    path = source_copy / "methods/fens/__init__.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(add_line(text), encoding="utf-8")
    hash_method_code.cache_clear()
    assert hash_method_code(Mine, source_copy) != hashes_before
    path.write_text(text, encoding="utf-8")
    hashes = hash_functions_from_outside_package({"run": Mine.run})
    other_hashes = hash_functions_from_outside_package({"run": Other.run})
    assert hashes != other_hashes != {}
    assert hash_functions_from_outside_package({"run": METHODS["fens"].run}) == {}


def test_a_function_without_a_module_counts_as_a_users():
    """Programs that run code by `exec`, as doctest does, have functions whose module is None."""
    names = {}
    exec("def layout(shape, width): return [], width", names)
    assert names["layout"].__module__ is None or names["layout"].__module__ == "builtins"
    assert hash_functions_from_outside_package({"layout": names["layout"]})
