"""FIDELITY.md: every method has its entry, and its table of the two presets is the registry's.

`python tests/test_fidelity.py` writes the table anew.
"""

import re
from pathlib import Path

import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.study.settings import PAPER_RECIPE
from fedlab_nb.training import Recipe

PAGE = Path(__file__).parents[1] / "FIDELITY.md"
TABLE = re.compile(r"(?<=<!-- presets: begin -->\n).*?(?=<!-- presets: end -->)", re.DOTALL)
OWN = {name: cls for name, cls in METHODS.items() if cls.__module__.startswith("fedlab_nb.")}  # no test's method
SYSTEMS = ("fens", "fedet", "coboosting", "fusefl", "fedlpa")
HEAD = "| method | paper preset: network | its local training | knobs: classroom → paper |\n" + 4 * "|---" + "|\n"


def training(recipe: Recipe) -> str:
    """A recipe in a few words."""
    schedule = f", cosine to {recipe.lr_min:g}" if recipe.schedule == "cosine" else ""
    decay = f", weight decay {recipe.weight_decay:g}" if recipe.weight_decay else ""
    momentum = f", momentum {recipe.momentum:g}" if recipe.momentum and recipe.optimizer == "sgd" else ""
    rate = f"{recipe.optimizer.upper() if recipe.optimizer == 'sgd' else 'Adam'} {recipe.lr:g}"
    return f"{recipe.epochs} epochs, batch {recipe.batch_size}, {rate}{schedule}{momentum}{decay}"


def network(cls) -> str:
    """The model of the paper preset, for one and for three channels where they differ."""
    one, three = (cls.model_in_paper(channels) or "cnn" for channels in (1, 3))
    return one if one == three else f"{one} / {three}"


def presets_table() -> str:
    """A row for each of the package's own methods, in the registry's order."""
    rows = []
    for name, cls in OWN.items():
        knobs = [f"`{k.name}` {k.default} → {k.paper}" for k in cls.fields() if k.default != k.paper]
        recipe = training(cls.paper_recipe or PAPER_RECIPE)
        rows.append(f"| `{name}` | {network(cls)} | {recipe} | {', '.join(knobs) or 'the same'} |")
    return HEAD + "\n".join(rows) + "\n"


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_has_its_section(name):
    text = PAGE.read_text()
    begin = text.index(f"## {METHODS[name].info.title} (`{name}`)\n")
    section = text[begin : text.index("\n## ", begin)]
    assert "| point | paper | here | why |" in section
    assert "authors" in section  # beside their code, or that there is none


@pytest.mark.parametrize("name", [name for name in OWN if name not in SYSTEMS])
def test_a_baseline_has_its_row(name):
    (row,) = re.findall(rf"^\| {re.escape(METHODS[name].info.title)} `{name}` \|.*\|$", PAGE.read_text(), re.MULTILINE)
    assert all(cell.strip() for cell in row.strip("|").split(" | "))


def test_the_presets_are_the_registrys():
    assert TABLE.search(PAGE.read_text()).group() == presets_table()


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
    plain = {k.name for cls in OWN.values() for k in cls.fields()}
    for name, value in re.findall(r"`(\w+)=([\w-]+)`", PAGE.read_text()):
        assert (name, value) in knobs or (name in plain and not any(knob == name for knob, _ in knobs)), (name, value)


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: presets_table(), PAGE.read_text()))
