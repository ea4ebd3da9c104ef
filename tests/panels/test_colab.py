"""Panels in Colab, whose notebooks do not show what a thread displays: they work in the calling thread."""

import sys
import types

import pytest

import fedlab_nb as fl
from fedlab_nb.panels import views, worker


@pytest.fixture(autouse=True)
def colab(monkeypatch):
    """As in Colab; a panel that starts a thread fails."""
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    monkeypatch.setattr(worker, "run_on_idle_or_new_thread", None)
    monkeypatch.setattr(views, "run_on_idle_or_new_thread", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make_panel",
    [lambda **s: fl.playground(methods=["fedavg"], **s), lambda **s: fl.lab("fens", **s)],
)
def test_a_panel_works_in_the_calling_thread(make_panel):
    panel = make_panel(epochs=1, clients=3, seeds=1)
    panel.controls.alpha.value = 1.0
    assert "α = 1," in panel.show("partition").alt
    panel.controls.run.click()
    assert panel.status == "done" and panel.outcomes and not panel.error
    panel.views.select_view("accuracy")
    assert "α = 1," in panel.views["accuracy"].picture.alt
    panel.close()


def test_the_widget_is_shown_without_the_picture_that_notebooks_save(monkeypatch):
    outputs = []
    monkeypatch.setattr(
        "fedlab_nb.panels.saved.display", lambda data, **_: outputs.append(sorted(data))
    )
    panel = fl.playground(epochs=1)
    panel._ipython_display_()
    panel.close()
    assert outputs == [["application/vnd.jupyter.widget-view+json", "text/plain"]]
