"""Words that read oddly at the edges: one client, equal sizes, zero points, the same client twice."""

import numpy as np
import pytest

from fedlab_nb.data import federate
from fedlab_nb.methods import METHODS
from fedlab_nb.panels.choices import KnobBox, spelled
from fedlab_nb.panels.data import facts
from fedlab_nb.plots.accuracy import verdict
from fedlab_nb.plots.partition import sentence
from fedlab_nb.plots.series import Series


@pytest.fixture(scope="module")
def alone():
    return federate("digits", alpha=0.1, clients=1, seed=0)


def test_one_client_has_so_many_samples_and_no_range(alone):
    assert "1237 to" not in sentence(alone, None, None)
    assert "The client has 1237 samples." in sentence(alone, None, None)
    assert "all 1" not in facts(alone, "auto") and facts(alone, "auto").endswith("costs it 26.3 kB.")


def test_a_client_is_not_said_twice(alone):
    ten = federate("digits", alpha=0.1, clients=10, seed=0)
    most = int(np.asarray(ten.label_counts)[:, 3].argmax())
    assert sentence(ten, most, 3).count("holds") == 1 and sentence(ten, most + 1, 3).count("holds") == 2


def test_a_gap_fits_the_numbers_beside_it():
    """87.4 and 85.8 stand as 87 and 86: a reader subtracts 1, so the gap is 1.6 and not 2."""
    rows = [Series("A", setting="x", accuracies={0: 0.874}), Series("B", setting="x", accuracies={0: 0.858})]
    assert "B follows 1.6 points behind" in verdict(rows)
    rows = [Series("A", setting="x", accuracies={0: 0.874}), Series("B", setting="x", accuracies={0: 0.853})]
    assert "B follows 2 points behind" in verdict(rows)


def test_menus_show_words_and_nobody_instead_of_minus_one():
    assert spelled("per_class") == "per class" and spelled("moe") == "mixture (moe)"
    for name in METHODS:
        for control in KnobBox(name).controls.values():
            shown = [words for words, _ in getattr(control, "_options_full", ())]
            assert not any("_" in words or words == "-1" for words in shown), (name, shown)
    assert KnobBox("fens")["without"].options[0] == ("nobody", -1)
