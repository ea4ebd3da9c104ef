"""The panel runs in one direction: control, state, federation, picture."""

from dataclasses import FrozenInstanceError, fields
from unittest.mock import create_autospec

import pytest

from fedlab_nb.panels import controls
from fedlab_nb.panels.controls import Controls
from fedlab_nb.panels.figures import COMMON
from fedlab_nb.panels.lab_view import BY_IDENTITY, LabView, PanelState, derive_next_state


@pytest.fixture
def spies(monkeypatch):
    """Spies on reading the settings, dealing out data and drawing each view."""
    return Spies(monkeypatch)


class Spies:
    """`settings`, `federate` and `views[name]` count calls, and pass them on."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch
        self.settings = self._spy(Controls, "read_settings_for_study_job")
        self.federate = self._spy(controls, "load_dataset_and_deal_federation")
        self.views = {kind.name: self._spy(kind, "draw") for kind in COMMON}

    def _spy(self, owner, name):
        original = getattr(owner, name)
        spy = create_autospec(original, side_effect=original)
        self.monkeypatch.setattr(owner, name, spy)
        return spy

    def list_drawn_views(self):
        return [name for name, draw in self.views.items() if draw.called]

    def reset(self):
        """Forget all calls so far."""
        for spy in (self.settings, self.federate, *self.views.values()):
            spy.reset_mock()


@pytest.mark.slow
def test_one_value_of_a_slider_is_one_state_one_federation_one_picture(make_panel, spies):
    panel = make_panel()
    spies.reset()
    panel.controls.alpha.value = 1.0
    assert spies.settings.call_count == spies.federate.call_count == 1
    assert spies.list_drawn_views() == ["partition"] and spies.views["partition"].call_count == 1
    state = spies.views["partition"].call_args.args[1]
    assert state.settings["alpha"] == 1.0 == state.partition["alpha"]
    assert state.federation.clients == 10
    assert state.federation is panel.state("partition").federation
    assert "α = 1," in panel.views["partition"].picture.alt
    spies.reset()
    panel.controls.alpha.value = 1.001  # the same to two digits
    assert spies.settings.call_count == 1
    assert not spies.federate.called
    assert not spies.list_drawn_views()
    spies.reset()
    panel.controls.dataset.value = "glyphs"  # other limits and epochs
    assert panel.wait(60)
    assert spies.settings.call_count == spies.federate.call_count == 1
    assert not panel.error


@pytest.mark.slow
def test_a_view_is_drawn_again_only_for_what_it_depends_on(make_panel, spies):
    panel = make_panel()
    spies.reset()
    panel.run(wait=True)
    # An event of a run reads no settings.
    assert spies.settings.call_count == 1 and not spies.federate.called
    for view in ("communication", "classes"):
        panel.show(view)
        spies.reset()
        panel.controls.alpha.value *= 2
        before = spies.settings.call_count
        panel.views.class_index.value = 3 if panel.views.class_index.value == -1 else -1
        assert spies.settings.call_count == before  # what is looked at is no setting
        assert spies.list_drawn_views() == (["classes"] if view == "classes" else [])


def test_views_depend_on_parts_of_the_state():
    parts = {field.name for field in fields(PanelState)}
    assert all(
        set(needs) <= parts
        for needs in (BY_IDENTITY, LabView.needs, *(kind.needs for kind in COMMON))
    )


@pytest.mark.slow
def test_a_state_cannot_be_changed(make_panel):
    panel = make_panel()
    state = panel.state("partition")
    with pytest.raises(FrozenInstanceError):
        state.client = 3
    next_state = derive_next_state(state, client=3)
    assert next_state.client == 3
    assert state.client is None
    assert next_state.find_names_of_changed_fields(state) == {"client"}
    panel.run(wait=True)
    before = panel.state("accuracy").runs
    with pytest.raises(FrozenInstanceError):
        before.rows[0].pinned = True
    panel.run(wait=True)
    assert (before.number, len(before.rows)) == (1, 2) and panel.state("accuracy").number == 2
