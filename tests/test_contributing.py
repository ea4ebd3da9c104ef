"""CONTRIBUTING: the ten steps name what is in the files, and the example of a method runs as it stands."""

import re
import textwrap
import types
from pathlib import Path

import pytest
import torch
from collected_steps import run_and_collect_steps
from method_runs import make_context

from fedlab_nb.methods import METHODS

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def test_each_step_from_slider_to_picture_is_where_it_says():
    """Each name in a step is found in a file that the step names."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    section = text.split("**From slider to picture")[1].split("\n\nA kernel that is busy")[0]
    steps = re.findall(r"^\d+\. .*", section, re.MULTILINE)
    assert len(steps) == 10
    for step in steps:
        words = re.findall(r"`([^`]+)`", step)
        files = [word for word in words if re.fullmatch(r"[\w/]+\.(js|py)", word)]
        source = ""
        for file in files:
            path = CONTRIBUTING.parent / "fedlab_nb" / file
            if not path.exists():  # "partition.py" beside the file that was named before
                path = CONTRIBUTING.parent / "fedlab_nb" / files[0]
                path = path.with_name(file)
            source += path.read_text(encoding="utf-8")
        for word in words:
            if re.fullmatch(r"\w+", word):
                assert re.search(rf"\b{word}\b", source), step


@pytest.fixture
def my_median():
    """The method of the section "A method", registered while the test runs."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    section = text.split("### A method\n")[1].split("\n### ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    module = types.ModuleType("fedlab_nb.methods.mymedian")
    module.__package__ = "fedlab_nb.methods"
    exec(textwrap.dedent(code), vars(module))
    yield METHODS["mymedian"]
    del METHODS["mymedian"]


def test_the_example_of_a_method_takes_the_middle_of_three_networks(my_median):
    remembered = []
    ctx = make_context(clients=3, width=4, remembered=remembered)
    model, _ = run_and_collect_steps(my_median().run(ctx))
    (trained,) = remembered
    for name, median in model.module.state_dict().items():
        _, middle, _ = torch.stack([state[name] for state in trained]).sort(0).values
        torch.testing.assert_close(median, middle)
    assert list(ctx.link.ledger.by_phase()) == ["initial model", "local models"]
