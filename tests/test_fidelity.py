"""FIDELITY.md: every method has its entry, and its tables of the set-ups are the declared ones.

`python tests/test_fidelity.py` writes the tables anew.
"""

import re
from pathlib import Path

import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.study.settings import RECIPE_FIELDS, setting_names
from fedlab_nb.study.setups import CLASSROOM, SETUPS

PAGE = Path(__file__).parents[1] / "FIDELITY.md"
TABLE = re.compile(r"(?<=<!-- set-ups: begin -->\n).*?(?=<!-- set-ups: end -->)", re.DOTALL)
OWN = {name: cls for name, cls in METHODS.items() if cls.__module__.startswith("fedlab_nb.")}  # no test's method
SYSTEMS = ("fens", "fedet", "coboosting", "fusefl", "fedlpa")
PAPERS = [setup for name, setup in SETUPS.items() if name != CLASSROOM]


def cell(lines) -> str:
    """Lines of a set-up in one cell: name, value and source of each."""
    return "; ".join(f"`{name}` {line.value} ({line.source})" for name, line in lines.items()) or "none"


def table(setup) -> str:
    """A set-up: the clients'; each method's, one row a method; what some data sets change; what is not here."""
    rows = [f"Clients: {cell(setup.block.shared)}.", "", "| method | in the paper | settings |", "|---|---|---|"]
    rows += [f"| `{name}` | {setup.block.sources[name]} | {cell(own)} |" for name, own in setup.block.methods.items()]
    for row in setup.rows:
        when = " and ".join(f"{name} {', '.join(map(str, of))}" for name, of in row.when.items())
        own = [f"`{name}`: {cell(lines)}" for name, lines in row.methods.items()]
        rows.append(f"| *{when}* | all: {cell(row.shared)} | {'; '.join(own) or 'none'} |")
    tail = f"Missing or different here: {'; '.join(setup.missing)}."
    return "\n".join([f"### `{setup.name}`: {setup.title}", "", *rows, "", tail, ""])


def setups() -> str:
    """All papers' set-ups. A stroke in a cell is no border."""
    return "\n".join(map(table, PAPERS)).replace("|S_t|", "\\|S_t\\|")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_has_its_section(name):
    text = PAGE.read_text()
    begin = text.index(f"## {METHODS[name].info.title} (`{name}`)\n")
    section = text[begin : text.index("\n## ", begin)]
    assert "| point | paper | here | why |" in section
    assert "authors" in section  # beside their code, or that there is none


@pytest.mark.parametrize("name", [name for name in OWN if name not in SYSTEMS])
def test_a_baseline_has_its_row(name):
    start = f"| {METHODS[name].info.title} `{name}` |"
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(start) and line.endswith("|")]
    assert len(rows) == 1, f"FIDELITY.md needs one row that begins with {start}"
    assert all(cell.strip() for cell in rows[0].strip("|").split(" | "))


def test_the_set_ups_are_the_declared_ones():
    assert TABLE.search(PAGE.read_text()).group() == setups()


def test_its_links_lead_somewhere():
    text = PAGE.read_text()
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors
    for path in re.findall(r"`(methods/[\w/.]+)`", text):
        assert (PAGE.parent / "fedlab_nb" / path).exists(), path


def test_options_that_it_names_exist():
    """`knob=value` in the section or row of a method is one that the method takes."""
    knobs = {(k.name, str(option)) for cls in OWN.values() for k in cls.fields() for option in k.options}
    plain = {k.name for cls in OWN.values() for k in cls.fields()} | set(RECIPE_FIELDS) | setting_names()
    for name, value in re.findall(r"`(\w+)=([\w-]+)`", PAGE.read_text()):
        assert (name, value) in knobs or (name in plain and not any(knob == name for knob, _ in knobs)), (name, value)


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: setups(), PAGE.read_text()))
