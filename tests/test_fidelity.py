"""FIDELITY.md: its links, files and options exist. test_complete.py tests that every method has its entry."""

import re
from pathlib import Path

from fedlab_nb.methods import METHODS
from fedlab_nb.studies.settings import RECIPE_FIELDS, list_setting_names

PAGE = Path(__file__).parents[1] / "FIDELITY.md"
# Without methods that a test has registered.
PACKAGE_METHODS = {
    name: cls for name, cls in METHODS.items() if cls.__module__.startswith("fedlab_nb.")
}


def test_its_links_lead_somewhere():
    text = PAGE.read_text()
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors
    for path in re.findall(r"`(methods/[\w/.]+)`", text):
        assert (PAGE.parent / "fedlab_nb" / path).exists(), path


def test_options_that_it_names_exist():
    """Each `knob=value` is a value that some method takes."""
    names = set(RECIPE_FIELDS) | list_setting_names()
    values_by_name = {}  # of knobs that have a list of allowed values
    for method in PACKAGE_METHODS.values():
        for knob in method.fields():
            names.add(knob.name)
            for option in knob.options:
                values_by_name.setdefault(knob.name, set()).add(str(option))
    for name, value in re.findall(r"`(\w+)=([\w-]+)`", PAGE.read_text()):
        if name in values_by_name:
            assert value in values_by_name[name], (name, value)
        else:
            assert name in names, (name, value)
