"""What a stored result depends on: edits that keep trained clients and runs, and edits that do not."""

import shutil
from pathlib import Path

import pytest

import fedlab_nb
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.code_version import (
    HERE,
    hash_core_code,
    hash_method_code,
    hash_user_functions_if_any,
)

SOURCES = Path(fedlab_nb.__file__).parent


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package's sources."""
    root = tmp_path_factory.mktemp("copy") / "fedlab_nb"
    shutil.copytree(
        SOURCES,
        root,
        ignore=lambda folder, names: [n for n in names if n.endswith((".pyc", ".json"))],
    )
    return root


@pytest.fixture(scope="module")
def before(tree):
    """The codes of the copy as it is."""
    return digest_codes(tree)


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
            return digest_codes(tree)
        finally:
            path.write_text(text, encoding="utf-8")

    return codes


def digest_codes(root):
    """(clients' code, FENS' code, FedLPA's code) of the package in `root`, read anew."""
    hash_core_code.cache_clear()
    hash_method_code.cache_clear()
    return (
        hash_core_code(root),
        hash_method_code(METHODS["fens"], root),
        hash_method_code(METHODS["fedlpa"], root),
    )


def add_line(text):
    """A line of code more."""
    return text + "\nANOTHER_LINE = 1\n"


def inner_docstring(text):
    """The last docstring of the file, with more words."""
    place = text.rindex('"""\n')
    return text[:place] + " More words." + text[place:]


def add_comment(text):
    return text + "\n# A comment.\n"


def flip_rounding_sign(text):
    return text.replace("* sample_count + 1e-9", "* sample_count - 1e-9")


def test_a_copy_has_the_package_s_own_codes(before):
    assert before == digest_codes(SOURCES)


NOTHING, CLIENTS, RUNS = (
    (False, False, False),
    (True, False, False),
    (False, True, True),
)  # clients, FENS, FedLPA


@pytest.mark.parametrize(
    ("file", "edit", "other"),
    [("data/partition.py", inner_docstring, NOTHING), ("methods/fens/__init__.py", add_comment, NOTHING),
     ("plots/partition.py", add_line, NOTHING), (f"{HERE}/engine.py", add_line, NOTHING),
     ("methods/fedavg.py", add_line, NOTHING),
     ("methods/fusefl/__init__.py", add_line, NOTHING), ("training/loop.py", add_line, CLIENTS),
     ("data/partition.py", add_line, CLIENTS), ("data/partition.py", flip_rounding_sign, CLIENTS),
     (f"{HERE}/store.py", add_line, CLIENTS), ("methods/context.py", add_line, (True, True, True)),
     ("methods/fens/__init__.py", add_line, (False, True, False)),
     ("methods/fedlpa/__init__.py", add_line, (False, False, True)), ("methods/base.py", add_line, RUNS),
     (f"{HERE}/experiment.py", add_line, RUNS)],
)  # fmt: skip
def test_what_an_edit_makes_other(before, after, file, edit, other):
    """What decides nothing keeps everything; a method's edit makes other runs of it alone, and keeps the clients."""
    assert tuple(now != then for now, then in zip(after(file, edit), before, strict=True)) == other


def test_a_method_of_one_s_own_depends_on_all_methods_and_on_itself(tree):
    class Mine(METHODS["fedavg"]):
        def run(self, ctx):
            return 1

    class Other(METHODS["fedavg"]):
        def run(self, ctx):
            return 2

    before = hash_method_code(Mine, tree)
    path = tree / "methods/fens/__init__.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(add_line(text), encoding="utf-8")
    hash_method_code.cache_clear()
    assert hash_method_code(Mine, tree) != before
    path.write_text(text, encoding="utf-8")
    assert (
        hash_user_functions_if_any({"run": Mine.run})
        != hash_user_functions_if_any({"run": Other.run})
        != {}
    )
    assert hash_user_functions_if_any({"run": METHODS["fens"].run}) == {}


def test_a_function_of_no_module_is_foreign():
    """A program that runs code by `exec`, as doctest does, has functions whose module is None."""
    names = {}
    exec("def layout(shape, width): return [], width", names)
    assert names["layout"].__module__ is None or names["layout"].__module__ == "builtins"
    assert hash_user_functions_if_any({"layout": names["layout"]})
