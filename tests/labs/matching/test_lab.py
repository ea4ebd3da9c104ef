"""The matching lab without a kernel, on short real runs: its views before and after a run, and its controls."""

import pytest
from lab_views import choose_client_and_class, show_sentence

from fedlab_nb.labs.matching.game import STREAMS, make_matching_puzzle

SYSTEM = "matching"
SHORT_SETTINGS = {"epochs": 2, "clients": 3, "seeds": 1, "methods": []}


@pytest.mark.slow
def test_the_game_is_played_by_swaps_until_it_is_found(open_lab):
    panel = open_lab()
    for number in (len(STREAMS) - 1, 0):
        picture = panel.set("game", puzzle=number)
        view = panel.lab_views["game"]
        assert view.order == (0, 1, 2, 3)
        assert "found" not in picture.sentence
        assert f"Puzzle {number + 1}" in picture.alt
        best = make_matching_puzzle(number).find_order_with_lowest_barrier()
        for place, unit in enumerate(best):
            picture = panel.set("game", **{f"place{place + 1}": unit})
            assert sorted(view.order) == [0, 1, 2, 3] == sorted(menu.value for menu in view.places)
            assert [menu.value for menu in view.places] == list(view.order)
        assert view.order == best
        assert "You have found it." in picture.sentence
        assert [row["unit of B beside it"] for row in picture.table] == [unit + 1 for unit in best]


@pytest.mark.slow
def test_two_clients_after_a_run(finished_lab):
    choose_client_and_class(finished_lab, 1, 2)
    assert "clients A and B" in show_sentence(finished_lab, "barrier", "α = 100")
    assert "clients C and B" in finished_lab.set("barrier", a=2).sentence
    assert "OT-Fusion" in finished_lab.set("barrier", rule="greedy").sentence
    assert "test accuracy" in finished_lab.set("barrier", measure="accuracy").alt
    assert finished_lab.set("barrier", a=1, b=1).detail.count("0.00") == 2  # a client and itself
    assert "of 64 units" in show_sentence(finished_lab, "partners", "α = 100")
    assert "of 32 units" in finished_lab.set("partners", layer=1).sentence
    assert "activations" in finished_lab.set("partners", rule="activations").alt


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"model": "mlp1", "rule": "pfnm", "clients": 1}, {"model": "cnn", "clients": 2}]
)
def test_other_settings(open_lab, options):
    panel = open_lab(**options, epochs=1)
    panel.run(wait=True)
    for name in ("barrier", "partners"):
        show_sentence(panel, name, "")


@pytest.mark.slow
def test_networks_that_are_too_large_get_one_sentence(open_lab, monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.matching.rules.LIMIT", 100)
    panel = open_lab(seed=5)
    panel.run(wait=True)
    assert panel.show("barrier") is None and "too large to be stored" in panel.controls.error.value
