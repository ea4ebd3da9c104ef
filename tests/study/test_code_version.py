"""What a stored result depends on: edits that keep trained clients and runs, and edits that do not."""

import shutil
from pathlib import Path

import pytest

import fedlab_nb
from fedlab_nb.methods import METHODS
from fedlab_nb.study.code_version import CLIENTS, PACKAGE, Code, parsed

SOURCES = Path(fedlab_nb.__file__).parent


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package's sources."""
    root = tmp_path_factory.mktemp("copy") / "fedlab_nb"
    shutil.copytree(SOURCES, root, ignore=lambda folder, names: [n for n in names if n.endswith((".pyc", ".json"))])
    return root


@pytest.fixture
def after(tree):
    """`after(file, edit)`: the codes when one file's text was changed; every file is put back."""
    saved = {}

    def codes(file, edit):
        path = tree / file
        text = saved.setdefault(path, path.read_text(encoding="utf-8"))
        edited = edit(text)
        assert edited != text, f"the edit of {file} changes nothing"
        path.write_text(edited, encoding="utf-8")
        return of(tree)

    yield codes
    for path, text in saved.items():
        path.write_text(text, encoding="utf-8")


def of(root):
    """(clients' code, FENS' code, FedLPA's code) of the package in `root`, read anew."""
    code = Code(root)
    return code.clients, code.run(METHODS["fens"]), code.run(METHODS["fedlpa"])


BEFORE = PACKAGE.clients, PACKAGE.run(METHODS["fens"]), PACKAGE.run(METHODS["fedlpa"])


def line(text):
    """A line of code more."""
    return text + "\nANOTHER_LINE = 1\n"


def docstring(text):
    quotes = '"""'
    return text.replace(quotes, quotes + "More words. ", 1)


def inner_docstring(text):
    """The last docstring of the file, with more words."""
    place = text.rindex('"""\n')
    return text[:place] + " More words." + text[place:]


def comment(text):
    return text + "\n# A comment.\n"


def test_a_copy_has_the_package_s_own_codes(tree):
    assert of(tree) == BEFORE


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        *((file, edit) for file in ("training/local.py", "data/partition.py", "methods/fens/__init__.py", "rng.py")
          for edit in (docstring, inner_docstring, comment)),
        ("models/__init__.py", docstring),
        ("doctor.py", line),
        ("cli.py", line),
        ("plots/partition.py", line),
        ("panels/panel.py", line),
        ("course/averaging/lesson.py", line),
        ("labs/fedlpa/two_weights.py", line),
        ("methods/fusefl/__init__.py", line),
        ("methods/fedavg.py", line),
        ("study/engine.py", line),
    ],
)  # fmt: skip
def test_an_edit_that_decides_nothing_keeps_everything(after, file, edit):
    assert after(file, edit) == BEFORE


@pytest.mark.parametrize(
    "file",
    ["training/loop.py", "training/stack.py", "training/recipe.py", "data/partition.py", "data/cues.py",
     "models/plain.py", "models/state.py", "rng.py", "comm/codec.py", "methods/context.py", "study/seed_batching.py"],
)  # fmt: skip
def test_an_edit_of_what_trains_clients_makes_other_clients(after, file):
    assert after(file, line)[0] != BEFORE[0]


def test_arithmetic_counts_to_the_last_sign(after):
    codes = after("data/partition.py", lambda text: text.replace("* n + 1e-9", "* n - 1e-9"))
    assert codes[0] != BEFORE[0]


@pytest.mark.parametrize(
    ("file", "fens", "fedlpa"),
    [
        ("methods/fens/aggregators.py", True, False),
        ("methods/fens/__init__.py", True, False),
        ("methods/parts/kronecker.py", False, True),
        ("methods/fedlpa/solvers.py", False, True),
        ("methods/base.py", True, True),
        ("study/experiment.py", True, True),
    ],
)
def test_an_edit_of_a_method_makes_other_runs_of_it_alone(after, file, fens, fedlpa):
    now = after(file, line)
    assert now[0] == BEFORE[0], "clients stay"
    assert (now[1] != BEFORE[1], now[2] != BEFORE[2]) == (fens, fedlpa)


def test_names_are_followed_to_where_they_are_written():
    code = Code()
    reached = code.reached(CLIENTS)
    assert {"data.federation", "data.vision", "models.resnet", "training.stack", "errors"} <= reached
    assert not any(name.split(".")[0] in ("plots", "panels", "labs", "course", "cli") for name in reached)
    assert not {"methods.base", "training.distill", "study.settings", "training", "data"} & reached
    assert "methods.parts.averages" in code.reached(["methods.fens"])


def test_a_method_of_one_s_own_depends_on_all_methods(tree, after):
    class Mine(METHODS["fedavg"]):
        pass

    before = PACKAGE.run(Mine)
    assert Code(tree).run(Mine) == before
    after("methods/fedlpa/solvers.py", line)
    assert Code(tree).run(Mine) != before


def test_every_method_has_a_code_and_reads_it_quickly():
    import time

    parsed.cache_clear()
    start = time.process_time()
    code = Code()
    assert code.clients and code.run(METHODS["fens"])
    assert time.process_time() - start < 1.5, "0.1 s on an idle machine"
    assert len({code.run(cls) for cls in METHODS.values()}) > len(METHODS) / 2
