"""Accuracy against the number of poisoned clients: lines through the means, words and table that say the same."""

import pytest

from fedlab_nb.plots import against_poison, png
from fedlab_nb.plots.identity import look

RUNS = {
    "FedAvg": {0: {0: 0.3, 1: 0.5}, 2: {0: 0.1, 1: 0.3}},
    "Gaussian heads": {0: {0: 0.98, 1: 0.96}, 1: {0: 0.8, 1: 0.8}, 4: {0: 0.4, 1: 0.2}},
}


def test_lines_words_and_table():
    picture = against_poison(RUNS, kind="labels", setting="digits, 10 clients", chance=0.1)
    lines = {line.get_label(): line for line in picture.figure.axes[0].lines}
    assert lines["FedAvg"].get_xdata().tolist() == [0, 2]
    assert lines["FedAvg"].get_ydata().tolist() == pytest.approx([0.4, 0.2])
    assert lines["Gaussian heads"].get_color() == look("gauss").colour
    assert "Gaussian heads 97 % with 0 poisoned, 30 % with 4." in picture.sentence
    assert picture.table[0] == {"method": "FedAvg", "0 poisoned": "40 %", "2 poisoned": "20 %"}
    assert "labels; digits, 10 clients" in picture.alt and png(picture).startswith(b"\x89PNG")
