"""The panel runs in one direction: control, state, federation, picture."""

from dataclasses import FrozenInstanceError, fields
from unittest.mock import Mock, create_autospec

import pytest

from fedlab_nb.panels import controls
from fedlab_nb.panels.controls import Controls
from fedlab_nb.panels.figures import COMMON
from fedlab_nb.panels.lab_view import BY_IDENTITY, LabView, PanelState, derive_next_state


@pytest.fixture
def counted(monkeypatch):
    """Spies on reading the settings, dealing out data and drawing; called, they forget what was."""

    def spy(owner, name):
        spies.append(create_autospec(getattr(owner, name), side_effect=getattr(owner, name)))
        monkeypatch.setattr(owner, name, spies[-1])
        return spies[-1]

    spies = []
    counted = Mock(
        settings=spy(Controls, "read_settings"),
        federate=spy(controls, "make_federation_from_options"),
    )
    counted.views = {kind.name: spy(kind, "draw") for kind in COMMON}
    counted.drawn = lambda: [name for name, draw in counted.views.items() if draw.called]
    counted.side_effect = lambda: [one.reset_mock() for one in spies]
    return counted


def test_one_value_of_a_slider_is_one_state_one_federation_one_picture(make, counted):
    panel = make()
    counted()
    panel.controls.alpha.value = 1.0
    assert counted.settings.call_count == counted.federate.call_count == 1
    assert counted.drawn() == ["partition"] and counted.views["partition"].call_count == 1
    state = counted.views["partition"].call_args.args[1]
    assert state.settings["alpha"] == 1.0 == state.partition["alpha"]
    assert state.federation.clients == 10
    assert state.federation is panel.state("partition").federation
    assert "α = 1," in panel.views["partition"].picture.alt
    counted()
    panel.controls.alpha.value = 1.001  # the same to two digits
    assert counted.settings.call_count == 1 and not counted.federate.called and not counted.drawn()
    counted()
    panel.controls.dataset.value = "glyphs"  # other limits and epochs
    assert panel.wait(60)
    assert counted.settings.call_count == counted.federate.call_count == 1
    assert not panel.error


def test_a_view_is_drawn_again_only_for_what_it_depends_on(make, counted):
    panel = make()
    counted()
    panel.run(wait=True)
    # An event of a run reads no settings.
    assert counted.settings.call_count == 1 and not counted.federate.called
    for view in ("communication", "classes"):
        panel.show(view)
        counted()
        panel.controls.alpha.value *= 2
        before = counted.settings.call_count
        panel.views.class_index.value = 3 if panel.views.class_index.value == -1 else -1
        assert counted.settings.call_count == before  # what is looked at is no setting
        assert counted.drawn() == (["classes"] if view == "classes" else [])


def test_what_views_need_are_parts_of_the_state():
    parts = {field.name for field in fields(PanelState)}
    assert all(
        set(needs) <= parts
        for needs in (BY_IDENTITY, LabView.needs, *(kind.needs for kind in COMMON))
    )


def test_a_state_cannot_be_changed(make):
    panel = make()
    state = panel.state("partition")
    with pytest.raises(FrozenInstanceError):
        state.client = 3
    other = derive_next_state(state, client=3)
    assert other.client == 3 and state.client is None and other.find_changes(state) == {"client"}
    panel.run(wait=True)
    before = panel.state("accuracy").runs
    with pytest.raises(FrozenInstanceError):
        before.rows[0].pinned = True
    panel.run(wait=True)
    assert (before.number, len(before.rows)) == (1, 2) and panel.state("accuracy").number == 2
