"""The course's story: its picture of stored rows, and the three clients that all pictures of its federation mark."""

import numpy as np
import pytest

from fedlab_nb.data import federate
from fedlab_nb.plots.words import (
    SYMBOL,
    find_story_names_of_clients,
    format_client_for_list,
    format_client_for_title,
    make_setting_caption,
)
from fedlab_nb.studies import run

USUAL = {"dataset": "digits", "alpha": 0.1, "clients": 10, "seed": 0}
OURS = make_setting_caption(USUAL, "seed 0")


@pytest.mark.slow
def test_the_three_clients_with_a_name_are_found_in_the_federation():
    """Who has the largest share of one digit, of the sixes; the fewest samples; the largest logits."""
    counts = np.asarray(federate("digits", alpha=0.1, clients=10, seed=0).label_counts)
    logits = run("ensemble", seed=0).test_features.reshape(-1, 10, 10)  # [N, M, C]
    keeper, digit = np.unravel_index((counts / counts.sum(0)).argmax(), counts.shape)
    tiny = counts.sum(1).argmin()
    loud = logits.max(2).mean(0).argmax()
    assert digit == 6
    names = {int(keeper): "sixes", int(tiny): "tiny", int(loud): "loud"}
    assert find_story_names_of_clients(OURS) == names
    assert find_story_names_of_clients(make_setting_caption(USUAL, "seeds 0–2")) == names


@pytest.mark.parametrize(
    "changed", [{"seed": 1}, {"alpha": 1}, {"dataset": "glyphs"}, {"share": 0.5}, {"minimum": 5}]
)
def test_clients_of_other_federations_have_no_names(changed):
    other = make_setting_caption({**USUAL, **changed}, "seed 0")
    assert find_story_names_of_clients(other) == {}
    assert format_client_for_list(3, other) == "D"
    assert format_client_for_list(3, OURS) == f"D {SYMBOL} sixes"
    assert SYMBOL not in format_client_for_title(0, OURS)
    plain_text = str(OURS)[:]
    assert find_story_names_of_clients(plain_text) == {}
