"""FIDELITY.md: what it names exists. That every method has its entry, test_complete.py sees."""

import re
from pathlib import Path

from fedlab_nb.methods import METHODS
from fedlab_nb.studies.settings import RECIPE_FIELDS, list_setting_names

PAGE = Path(__file__).parents[1] / "FIDELITY.md"
# Without methods that a test has registered.
OWN = {name: cls for name, cls in METHODS.items() if cls.__module__.startswith("fedlab_nb.")}


def test_its_links_lead_somewhere():
    text = PAGE.read_text()
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors
    for path in re.findall(r"`(methods/[\w/.]+)`", text):
        assert (PAGE.parent / "fedlab_nb" / path).exists(), path


def test_options_that_it_names_exist():
    """`knob=value` in the section or row of a method is one that the method takes."""
    knobs = {
        (k.name, str(option)) for cls in OWN.values() for k in cls.fields() for option in k.options
    }
    plain = (
        {k.name for cls in OWN.values() for k in cls.fields()}
        | set(RECIPE_FIELDS)
        | list_setting_names()
    )
    for name, value in re.findall(r"`(\w+)=([\w-]+)`", PAGE.read_text()):
        assert (name, value) in knobs or (
            name in plain and not any(knob == name for knob, _ in knobs)
        ), (name, value)
