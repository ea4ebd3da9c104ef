"""The panel runs in one direction: control, state, federation, picture."""

from dataclasses import FrozenInstanceError, fields

import pytest

from fedlab_nb.panels import controls
from fedlab_nb.panels.controls import Controls
from fedlab_nb.panels.figures import COMMON
from fedlab_nb.panels.lab_view import BY_IDENTITY, LabView, PanelState, next_state


@pytest.fixture
def counted(monkeypatch):
    """{what: how often it was done since}, of reading the settings, dealing out data and drawing."""
    counts = {"settings": 0, "federate": 0, "drawn": []}
    settings, federate = Controls.settings, controls.federate

    def read(self):
        counts["settings"] += 1
        return settings(self)

    def deal(**options):
        counts["federate"] += 1
        return federate(**options)

    monkeypatch.setattr(Controls, "settings", read)
    monkeypatch.setattr(controls, "federate", deal)
    for kind in COMMON:

        def draw(self, state, kind=kind, draw=kind.draw):
            counts["drawn"].append((kind.name, state))
            return draw(self, state)

        monkeypatch.setattr(kind, "draw", draw)
    return counts


def reset(counts):
    counts.update(settings=0, federate=0)
    counts["drawn"].clear()


def test_one_value_of_a_slider_is_one_state_one_federation_one_picture(make, counted):
    panel = make()
    reset(counted)
    panel.controls.alpha.value = 1.0
    assert (counted["settings"], counted["federate"]) == (1, 1)
    assert [name for name, _ in counted["drawn"]] == ["partition"]
    state = counted["drawn"][0][1]
    assert state.settings["alpha"] == 1.0 == state.partition["alpha"] and state.federation.clients == 10
    assert state.federation is panel.state("partition").federation and "α = 1," in panel.views["partition"].picture.alt
    reset(counted)
    panel.controls.alpha.value = 1.001  # the same to two digits
    assert counted["settings"] == 1 and counted["federate"] == 0 and counted["drawn"] == []
    reset(counted)
    panel.controls.dataset.value = "glyphs"  # other limits and epochs
    assert panel.wait(60) and (counted["settings"], counted["federate"]) == (1, 1) and not panel.error


def test_a_view_is_drawn_again_only_for_what_it_depends_on(make, counted):
    panel = make()
    reset(counted)
    panel.run(wait=True)
    assert (counted["settings"], counted["federate"]) == (1, 0)  # an event reads nothing
    for view in ("communication", "classes"):
        panel.show(view)
        reset(counted)
        panel.controls.alpha.value *= 2
        before = counted["settings"]
        panel.views.klass.value = 3 if panel.views.klass.value == -1 else -1
        assert counted["settings"] == before  # what is looked at is no setting
        drawn = [name for name, _ in counted["drawn"]]
        assert drawn == (["classes"] if view == "classes" else []), view


def test_what_views_need_are_parts_of_the_state():
    parts = {field.name for field in fields(PanelState)}
    assert all(set(needs) <= parts for needs in (BY_IDENTITY, LabView.needs, *(kind.needs for kind in COMMON)))


def test_a_state_cannot_be_changed(make):
    panel = make()
    state = panel.state("partition")
    with pytest.raises(FrozenInstanceError):
        state.client = 3
    other = next_state(state, client=3)
    assert other.client == 3 and state.client is None and other.changes(state) == {"client"}
    panel.run(wait=True)
    before = panel.state("accuracy").runs
    with pytest.raises(FrozenInstanceError):
        before.rows[0].pinned = True
    panel.run(wait=True)
    assert (before.number, len(before.rows)) == (1, 2) and panel.state("accuracy").number == 2
