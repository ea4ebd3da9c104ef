"""A picture in a browser follows a slider: only what moves is sent, and the whole when it rests."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from fedlab_nb.labs.coboosting.numbers import EQUAL, YOURS, Tried
from fedlab_nb.labs.coboosting.plots.hand import ByHand
from fedlab_nb.plots.moving import motion_of, moved, moves_of
from fedlab_nb.plots.vector import drawn
from fedlab_nb.study.statistics import band

SVG = "{http://www.w3.org/2000/svg}"
SIZE = [860, 345]


@pytest.fixture
def seen(make):
    """A panel whose frames a browser has seen."""
    panel = make()
    for view in panel.views.views.values():
        view.frame.size = SIZE
    return panel


def ends(path):
    """Left, top, right, bottom of a path."""
    x, y = np.array(re.findall(r"-?[\d.]+", path.get("d")), float).reshape(-1, 2).T
    return x.min(), y.min(), x.max(), y.max()


def groups(svg):
    return {g.get("id"): g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("id")} if svg else {}


def paths(group):
    inside = {e for d in group.iter(f"{SVG}defs") for e in d.iter()}
    return [e for e in group.iter(f"{SVG}path") if e not in inside]


def letters(group):
    return [tuple(sorted(e.attrib.items())) for e in group.iter(f"{SVG}use")]


def test_a_drag_sends_what_moves_and_at_rest_the_whole(seen):
    frame = seen.views["partition"].frame
    before = frame.value
    for alpha in (0.5, 0.05, 0.7):
        seen.controls.alpha.value = alpha
        assert frame.value == before and f"α = {alpha:g}," in frame.alt
    moves = frame.moves
    assert "effectively sees" in seen.views["partition"].sentence.value
    frame.rested += 1
    assert frame.moves == {} and frame.value != before
    made = groups(frame.value)
    (dots,) = moves["radii"]
    wide = [(right - left) / 2 for left, _, right, _ in map(ends, paths(made[dots]))]
    assert np.allclose(wide, moves["radii"][dots], atol=0.01) and len(wide) == 100
    assert len(moves["bars"]) == 10
    for name, box in moves["bars"].items():
        left, top, right, bottom = ends(paths(made[name])[0])
        assert np.allclose((left, bottom, right, top), box, atol=0.01)
    assert moves["marks"] == frame.marks


def test_parts_are_drawn_where_they_show_something_else(seen):
    frame, alpha = seen.views["partition"].frame, seen.controls.alpha
    sent = {}
    for value in (0.11, 0.5, 0.52):
        alpha.value = value
        sent[value] = frame.moves["svg"]
    names = {value: list(groups(svg)) for value, svg in sent.items()}
    assert any(name.startswith("outside") for name in names[0.5])  # the stored numbers of another α
    assert not any(name.startswith("outside") for name in names[0.52])
    frame.rested += 1
    made = groups(frame.value)
    for name, group in groups(sent[0.5]).items():
        if name.startswith("outside"):
            assert letters(made[name]) == letters(group) and len(letters(group)) >= 4  # 70 ± 5


def test_what_cannot_move_is_drawn_as_a_whole(seen, make):
    frame = seen.views["partition"].frame
    for change in (
        lambda: setattr(seen.views.client, "value", 3),
        lambda: setattr(seen.controls.clients, "value", 7),
        lambda: setattr(frame, "size", [700, 400]),
    ):
        before = frame.value
        change()
        assert frame.value != before and frame.moves == {}
    frame.rested += 1  # nothing has moved: nothing is drawn
    before = frame.value
    frame.rested += 1
    assert frame.value is before
    unseen = make()
    frame, before = unseen.views["partition"].frame, unseen.views["partition"].frame.value
    unseen.controls.alpha.value = 2.0
    assert frame.value != before and frame.moves == {}


def test_a_move_in_another_view_waits_until_it_is_looked_at(seen):
    frame = seen.views["partition"].frame
    seen.controls.alpha.value = 0.5
    before = frame.value
    seen.show("accuracy")
    frame.rested += 1
    seen.show("partition")
    assert frame.value != before and frame.moves == {}


def test_weights_by_hand_move_in_the_browser_and_are_exact_at_the_kernel_s_word():
    rng = np.random.default_rng(0)
    counts, share = rng.integers(1, 40, (4, 3)), np.array([0.1, 0.2, 0.3, 0.4])
    view, names, hands = ByHand(), ["a", "b", "c"], ["0", "1", "2", 0.7]

    def shown(shares, judge=None):
        each = {EQUAL: np.full(4, 0.25), YOURS: shares}
        by_class, tune = {who: rng.random(3) for who in each}, dict.fromkeys(each, 0.5)
        of = Tried(counts, each, by_class, tune, judge, band([0.0, 0.1, 0.2]), (90, 90))
        return view.show(of, names, setting="toy", hands=hands).figure

    figure = shown(share)
    whole, motion = drawn(figure), motion_of(figure)
    assert motion["kind"] == "shares" and motion["hands"] == hands and motion["zero"] > motion["one"]
    groups_ = groups(whole.svg)
    for name, part in zip(motion["bars"], share, strict=True):
        left, top, right, bottom = ends(paths(groups_[name])[0])
        assert bottom == pytest.approx(motion["zero"], abs=0.02)
        assert bottom - top == pytest.approx(part * (motion["zero"] - motion["one"]), abs=0.02)
    key, prints = moves_of(figure).key, moves_of(figure).prints
    shown(share[::-1])
    assert moves_of(figure).key == key and moves_of(figure).prints["weights"] == prints["weights"]
    sent = moved(figure, prints)
    assert [sent["bars"][name][1] - sent["bars"][name][3] for name in motion["bars"]] == pytest.approx(
        (share[::-1] * (motion["zero"] - motion["one"])).tolist(), abs=0.03
    )
    shown(share, judge={EQUAL: 0.5, YOURS: 0.5})
    assert moves_of(figure).key != key  # the other half is shown, too: a whole new drawing
