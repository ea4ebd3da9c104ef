"""The matching lab without a kernel, on real but short runs: views before and after, controls at both ends."""

import pytest
from lab_views import sentence_of

from fedlab_nb.labs.matching import averages
from fedlab_nb.labs.matching.game import STREAMS, puzzle

SYSTEM = "matching"
SHORT = {"epochs": 2, "clients": 3, "seeds": 1, "methods": []}
OWN = ["game", "barrier", "partners", "starts", "ways"]


def test_it_begins_with_different_starts_and_the_game(make):
    panel = make()
    assert list(panel.lab_views) == OWN and panel.views.visible == "game"
    assert panel.state("game").settings["init"] == "different" and panel.state("game").settings["alpha"] == 100
    sentence_of(panel, "game", "")
    for name in ("barrier", "partners"):
        assert panel.show(name) is None and "Press Run" in panel.views[name].frame.value
    for view in panel.lab_views.values():
        assert all(c.description and c.tooltip for c in view.controls)


def test_the_game_is_played_by_swaps_until_it_is_found(make):
    panel = make()
    for number in (len(STREAMS) - 1, 0):
        panel.set("game", puzzle=number)
        view = panel.lab_views["game"]
        assert view.order == (0, 1, 2, 3)
        best = puzzle(number).best()
        for place, unit in enumerate(best):
            sentence = panel.set("game", **{f"place{place + 1}": unit}).sentence
            assert sorted(view.order) == [0, 1, 2, 3]
            assert [menu.value for menu in view.places] == list(view.order)
        assert view.order == best and sentence.endswith("You have found it.")


def test_two_clients_after_a_run(ran):
    first = sentence_of(ran, "barrier", "")
    assert first.startswith("The loss barrier between clients 0 and 1 is")
    assert "clients 2 and 1" in ran.set("barrier", a=2).sentence
    assert "OT-Fusion" in ran.set("barrier", rule="greedy").sentence
    assert "test accuracy" in ran.set("barrier", measure="accuracy").alt
    same = ran.set("barrier", a=1, b=1).sentence
    assert "is 0.00 with the units as they stand, and 0.00 after" in same
    assert "of 64 units" in sentence_of(ran, "partners", "")
    assert "of 32 units" in ran.set("partners", layer=1).sentence
    assert "activations" in ran.set("partners", rule="activations").alt


def test_the_matched_average_in_the_view_is_near_the_runs(ran):
    """A pair of clients, and the run's own report of all of them."""
    report = ran.outcomes[0].report
    assert len(report.orders) == 3 and report.average_accuracy is not None
    assert report.moved[report.reference] >= 0


def test_starts_and_ways_are_compared_by_their_buttons(make, monkeypatch):
    monkeypatch.setattr(averages, "ALPHAS", (1.0, 100.0))
    panel = make()
    panel.run(wait=True)
    assert "Compare starts" in panel.show("starts").sentence
    picture = panel.work("starts")
    assert panel.error == "" and "matched, different starts" in picture.sentence and "α = 100" in picture.sentence
    assert "Average in seven ways" in panel.show("ways").sentence
    picture = panel.work("ways")
    assert panel.error == "" and len(picture.table) == len(averages.WAYS)


@pytest.mark.parametrize("options", [{"clients": 1}, {"model": "mlp1", "rule": "pfnm"}, {"model": "cnn", "clients": 2}])
def test_other_settings(make, options):
    panel = make(**options)
    panel.run(wait=True)
    for name in ("barrier", "partners"):
        sentence_of(panel, name, "")


def test_networks_that_are_too_large_are_said_in_one_sentence(make, monkeypatch):
    monkeypatch.setattr("fedlab_nb.methods.matching.rules.LIMIT", 100)
    panel = make(seed=5)
    panel.run(wait=True)
    assert panel.show("barrier") is None and "too large to be stored" in panel.controls.error.value
