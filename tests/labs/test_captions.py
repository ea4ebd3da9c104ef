"""Captions of a lab's own views after the controls have moved: only a view that shows a run becomes older."""

import pkgutil

import pytest
from fake_job import make_outcome

from fedlab_nb import labs
from fedlab_nb.data import federate
from fedlab_nb.labs import find_lab_spec
from fedlab_nb.labs.afl.skew import ALPHAS, SkewResults, SkewView, make_caption_with_alpha_range
from fedlab_nb.labs.button_view import ButtonView
from fedlab_nb.panels.lab_view import PanelState, ViewState, derive_next_state
from fedlab_nb.panels.record import MethodRun, RunRecord

SYSTEMS = [module.name for module in pkgutil.iter_modules(labs.__path__) if module.ispkg]
SETTINGS = {"dataset": "digits", "alpha": 0.1, "clients": 3, "seed": 0, "seeds": 1}
VIEWS = [(system, kind) for system in SYSTEMS for kind in find_lab_spec(system).views]
VIEWS_WITHOUT_BUTTON = [
    (system, kind) for system, kind in VIEWS if not issubclass(kind, ButtonView)
]


def make_state(system, **changes):
    """The state after a run with SETTINGS, whose controls have been changed since."""
    row = MethodRun(1, system, SETTINGS, 1, outcomes={0: make_outcome(system, 0, SETTINGS)})
    settings = {**SETTINGS, **changes}
    federation = federate("digits", alpha=settings["alpha"], clients=settings["clients"])
    state = PanelState(method=system, settings=settings, federation=federation)
    return derive_next_state(state, runs=RunRecord((row,), 1))


def name_view(value):
    return getattr(value, "name", value)


@pytest.mark.parametrize(("system", "kind"), VIEWS_WITHOUT_BUTTON, ids=name_view)
def test_only_a_picture_of_a_run_is_older_than_the_controls(system, kind):
    view = kind()
    state = make_state(system, alpha=0.5)
    if kind.ready in ("live", "run"):
        assert view.is_older(state)
        assert "Run 1: digits, α = 0.1" in str(view.caption(state))
        assert "the controls have moved" in str(view.caption(state))
    else:
        assert not view.is_older(state)
        assert "moved" not in str(view.caption(state)) and "Run" not in str(view.caption(state))
    unmoved = make_state(system)
    assert not view.is_older(unmoved) and "moved" not in str(view.caption(unmoved))


def test_some_views_show_a_run_and_some_do_not():
    readiness = {kind.name: kind.ready for _, kind in VIEWS_WITHOUT_BUTTON}
    assert readiness["plane"] == readiness["game"] == "always"
    assert readiness["inverted"] == readiness["cost"] == "data"
    assert {"live", "run"} <= set(readiness.values())


def test_skew_names_all_its_alphas_and_is_older_once_anything_else_has_moved():
    view = SkewView()
    state = make_state("afl")
    accuracies = {"AFL": {alpha: {0: 0.9} for alpha in ALPHAS}}
    view_state = ViewState(
        worked=SkewResults(make_caption_with_alpha_range(SETTINGS), accuracies, 0.1),
        run=state.number,
        worked_runs=view.planned_runs(state),
    )

    def move(**changes):
        moved = make_state("afl", **changes)
        return derive_next_state(moved, view_states={"skew": view_state})

    caption = "digits, α = 0.05 to 10, 3 clients, seed 0"
    for state in (move(), move(alpha=0.5)):
        assert not view.is_older(state) and view.caption(state) == caption
    moved_state = move(clients=5)
    assert view.is_older(moved_state)
    assert view.caption(moved_state) == f"{caption} (the controls have moved: press “Try five α”)"
