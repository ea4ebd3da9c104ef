"""What `lab.toml` declares: every lab's file makes its controls, and a wrong word in one is said in one sentence."""

from inspect import getsource

import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.labs import spec_of, views
from fedlab_nb.methods import METHODS
from fedlab_nb.symbols import explained

LABS = ["coboosting", "fusefl", "fedlpa"]
GOOD = {"kind": "IntSlider", "description": "Round", "tooltip": "Which round", "width": 90, "min": 1, "max": 4}


@pytest.mark.parametrize("method", LABS)
def test_every_lab_is_declared_in_full(method):
    spec = spec_of(method)
    declared = views.declared(f"labs/{method}/lab.toml")
    assert spec.method == spec.name == method and all(name in METHODS for name in spec.companions)
    assert {view.name for view in spec.views} == set(declared["views"])
    for kind in spec.views:
        view, controls = kind(), declared["views"][kind.name].get("controls", {})
        assert view.title and (view.empty or view.work_label)
        for name, of in controls.items():
            made = getattr(view, name)
            assert (
                made in (view.controls if not of.get("boxed") else view.controls[1].children)
                and made.description == of["description"]
                and made.tooltip == explained(of["tooltip"], of["description"], METHODS[method].info.title)
            )
            assert f"self.{name}." in getsource(kind), "no view reads it"


@pytest.mark.parametrize("method", ["fens", "fedet", "matching"])
def test_every_view_says_what_it_is(method):
    spec = spec_of(method)
    assert spec.method == spec.name == method and all(name in METHODS for name in spec.companions)
    assert len({view.name for view in spec.views}) == len(spec.views)
    for kind in spec.views:
        view = kind()
        named = [control for control in view.controls if hasattr(control, "value")]
        assert view.title and all(control.description and control.tooltip for control in named)
        assert all(control in vars(view).values() for control in named)  # so that `panel.set` finds it


@pytest.fixture
def view(monkeypatch):
    """A view with one control, declared as it is given."""

    def make(**control):
        monkeypatch.setattr(views, "declared", lambda file: {"views": {"x": {"controls": {"round": control}}}})
        return type("X", (views.View,), {}, name="x")

    return make


def test_a_slider_is_replayed(view):
    made = view(**GOOD, play={"interval": 100, "tooltip": "Replay"})()
    assert (made.play.min, made.play.max, made.play.interval) == (1, 4, 100)
    assert made.controls[0].children == (made.play,) and made.controls[1] is made.round
    assert made.round.layout.width == "90px" and made.round.style.description_width == "initial"


def test_what_moves_other_controls_stands_in_a_box(view):
    made = view(**GOOD, boxed=True)()
    (box,) = made.controls
    assert box.children == (made.round,) and not hasattr(box, "value")


def test_choices_that_the_code_knows(view):
    made = view(kind="Dropdown", description="Of", tooltip="What", label_width=20)(round=[("one", 1), ("two", 2)])
    assert made.round.options == (("one", 1), ("two", 2)) and made.round.style.description_width == "20px"


@pytest.mark.parametrize(
    "wrong", [{"kind": "Slider"}, {"maximum": 5}, {"max": "five"}, {"kind": "Dropdown", "options": 3}]
)
def test_a_control_that_cannot_be_made_is_named(view, wrong):
    with pytest.raises(UsageError, match=r"^The control 'round' of views\.x in .*lab\.toml cannot be made: "):
        view(**{**GOOD, **wrong})()


def test_a_word_that_no_view_has(monkeypatch):
    monkeypatch.setattr(views, "declared", lambda file: {"views": {"x": {"titel": "X"}}})
    with pytest.raises(UsageError, match="says 'titel'; it may say name, title, ready"):
        type("X", (views.View,), {}, name="x")
