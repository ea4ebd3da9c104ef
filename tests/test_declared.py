"""What is declared in TOML files: every file is read, and each refusal fits the code that asks for it."""

import ast
import string
from pathlib import Path

import ipywidgets as widgets
import pytest

import fedlab_nb
from fedlab_nb.declared import declared, parse
from fedlab_nb.errors import UsageError, demand, sentence

PACKAGE = Path(fedlab_nb.__file__).parent
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.toml"))


def asked():
    """(name, the names of its values or None where they are not written out) of every refusal in the code."""
    for path in PACKAGE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        taken = [node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("errors")]
        known = {alias.name for node in taken for alias in node.names} & {"sentence", "demand"}
        for node in nodes:
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called in known:
                name = node.args[called == "demand"].value
                values = {keyword.arg for keyword in node.keywords}
                yield name, values if None not in values else None


def values_in(text):
    """The first parts of the names between braces: `{path.name}` needs `path`."""
    fields = (field for _, field, _, _ in string.Formatter().parse(text) if field is not None)
    return {field.partition(".")[0].partition("[")[0] for field in fields}


def test_each_widget_is_made_somewhere_and_has_a_kind():
    made = set()
    for path in (PACKAGE / "panels").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [part.id for part in ast.walk(node) if isinstance(part, ast.Name)] if isinstance(node, ast.Call) else []
            )
            if names[:1] == ["named"] or names[:2] == ["map", "named"]:
                constants = [part for part in ast.walk(node.args[-1]) if isinstance(part, ast.Constant)]
                made |= {constant.value for constant in constants}
    written = declared("panels/widgets.toml")
    assert made == set(written)
    assert all(issubclass(getattr(widgets, about["kind"]), widgets.Widget) for about in written.values())


@pytest.mark.parametrize("name", FILES)
def test_every_file_can_be_read(name):
    assert declared(name)


def test_what_is_no_toml_says_where():
    with pytest.raises(ValueError, match="line 1"):
        parse("a = = 1")


def test_each_refusal_is_used_and_fits_its_values():
    rooms = declared("refusals.toml")
    written = {f"{room}.{name}": text for room, own in rooms.items() for name, text in own.items()}
    used = dict(asked())
    assert set(used) == set(written)
    for name, values in used.items():
        assert values is None or values_in(written[name]) == values, name
        assert written[name].endswith(".") and "\n" not in written[name], name


def test_a_refusal_has_its_values_in_it():
    assert sentence("comm.name", name=1.5) == "A payload's names must be text or whole numbers, not 1.5."
    demand(1, "comm.name")
    with pytest.raises(UsageError, match="not None"):
        demand(0, "comm.name", name=None)
