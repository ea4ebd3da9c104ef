"""The race in the browser says what the still picture of `plots.race` says, and its lanes are the ledger's."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from javascript import run_javascript
from matplotlib.colors import to_rgb

from fedlab_nb.comm import Ledger
from fedlab_nb.front.flight import describe_flight
from fedlab_nb.front.vocabulary import CLIENTS
from fedlab_nb.methods import METHODS
from fedlab_nb.plots import MethodResults
from fedlab_nb.plots.race import count_points_within_budget, describe_leader, find_byte_range
from fedlab_nb.plots.style import READABLE, compute_contrast_with_white, get_method_look

PLAN = "text flight_plan race_plan"
RACE = "text clock dom flight_plan flight_paint player race_plan race_names race_markers race"


def make_series(name, points):
    """A method whose global models have these (bytes, accuracy)."""
    curve = []
    for sent, accuracy in points:
        curve.append({"phase": "rounds", "progress": 1.0, "accuracy": accuracy, "bytes": sent})
    return MethodResults(name, setting="toy", accuracies={0: points[-1][1]}, curves=[curve])


def make_scene(series):
    """The race as the browser gets it."""
    methods = []
    for method in series:
        points = []
        for point in method.curves[0]:
            shown = {"bytes": point["bytes"], "accuracy": point["accuracy"], "seconds": 0.0}
            points.append(shown)
        methods.append({"name": method.name, "points": points, "training": None})
    return {"bytes": list(find_byte_range(series)), "seconds": 0, "methods": methods}


# Bytes of at most three significant figures, so that rounding to three changes nothing.
SIZES = st.builds(
    lambda figures, zeros: figures * 10**zeros, st.integers(1, 999), st.integers(0, 4)
)


@st.composite
def races(draw):
    """Some methods, each with bytes that grow, and budgets: all these bytes, and one more number of bytes."""
    series = []
    budgets = []
    method_count = draw(st.integers(1, 4))
    for name in "ABCD"[:method_count]:
        sizes = sorted(draw(st.lists(SIZES, min_size=1, max_size=5, unique=True)))
        thousandths = draw(st.lists(st.integers(0, 1000), min_size=len(sizes), max_size=len(sizes)))
        accuracies = [each / 1000 for each in thousandths]
        series.append(make_series(name, list(zip(sizes, accuracies, strict=True))))
        budgets += sizes
    return series, [*budgets, draw(SIZES)]


@settings(max_examples=3, deadline=None)
@given(st.lists(races(), min_size=30, max_size=30))
def test_a_moment_is_the_still_pictures(cases):
    code = (
        "return cases.map(([scene, budgets]) => budgets.map((budget) => ["
        "describeRace(scene, 'bytes', budget),"
        "scene.methods.map((method) => countPaid(method, 'bytes', budget))]))"
    )
    scenes = [(make_scene(series), budgets) for series, budgets in cases]
    shown = run_javascript(PLAN, code, cases=scenes)
    for (series, budgets), answers in zip(cases, shown, strict=True):
        for budget, (words, counts) in zip(budgets, answers, strict=True):
            assert counts == [count_points_within_budget(method, budget) for method in series]
            still = describe_leader(series, budget).removesuffix(" One seed's curves.")
            assert words.split() == still.split()  # whatever blanks stand between them


def test_hand_worked_moments():
    once = {
        "name": "once",
        "training": {"bytes": 100, "seconds": 4},
        "points": [{"bytes": 300, "seconds": 6, "accuracy": 0.5}],
    }
    many = {
        "name": "many",
        "training": None,
        "points": [{"bytes": 200 * r, "seconds": 2 * r, "accuracy": r / 10} for r in range(1, 6)],
    }
    code = """
        const spent = (method, axis, values) => values.map((value) => findSpentBytes(method, axis, value));
        const scene = { bytes: [100, 1000], seconds: 10, methods: [once, many] };
        return {
          once: spent(once, "seconds", [0, 2, 4, 5, 6, 9]),
          many: spent(many, "seconds", [0, 1, 2, 9, 10, 11]),
          bytes: spent(once, "bytes", [50, 299, 5000]),
          trained: [0, 1, 4, 9].map((value) => findTrained(once, "seconds", value)),
          sent: [99, 100].map((value) => findTrained(once, "bytes", value)),
          middle: findBudget(scene, "bytes", 0.5) ** 2,
          back: findShare(scene, "bytes", findBudget(scene, "bytes", 0.3)),
          words: describeRace(scene, "seconds", 5),
          ticks: listTicks(scene, "seconds").map(({ words }) => words),
          moments: listMoments(scene, "seconds"),
        };"""
    shown = run_javascript(PLAN, code, once=once, many=many)
    assert shown["once"] == [100, 100, 100, 200, 300, 300]
    assert shown["many"] == [0, 100, 200, 900, 1000, 1000]
    assert shown["bytes"] == [50, 299, 300]
    assert shown["trained"] == [0, 0.25, 1, 1]
    assert shown["sent"] == [0, 1]
    assert shown["middle"] == pytest.approx(100 * 1000)
    assert shown["back"] == pytest.approx(0.3)
    assert shown["words"].replace("\xa0", " ") == (
        "After 5 s, many leads with 20 %; 1 of 2 methods have a global model."
    )
    assert [words.replace("\xa0", " ") for words in shown["ticks"]] == [
        "0", "2 s", "4 s", "6 s", "8 s", "10 s",
    ]  # fmt: skip
    assert shown["moments"] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])


def test_lanes_follow_the_ledger():
    """Two clients: 10 + 30 bytes down, 20 + 60 up; then four rounds of 1 down and 3 up for each."""
    ledger = Ledger(2)
    for client, size in ((0, 10), (1, 30)):
        ledger.add(client, "down", "initial model", size)
    for client, size in ((0, 20), (1, 60)):
        ledger.add(client, "up", "local models", size)
    for client in range(2):
        ledger.add(client, "down", "aggregator", 4, message_count=4)
        ledger.add(client, "up", "aggregator", 12, message_count=4)
    flight = describe_flight("fens", ledger)
    code = """
        const plan = planFlight(flight, people);
        return moments.map((bytes) => {
          const { leg, share, round } = findInFlight(plan, bytes);
          return leg === null ? null : [leg.way, share, round];
        });"""
    moments = [0, 10, 40, 80, 119, 120, 121, 122, 125, 128, 151, 152, 1000]
    shown = run_javascript(PLAN, code, flight=flight, people=CLIENTS, moments=moments)
    *in_flight, after_the_last, long_after = shown
    assert after_the_last is None
    assert long_after is None
    ways_and_rounds = [(way, round_number) for way, _, round_number in in_flight]
    assert ways_and_rounds == [
        ("down", 1), ("down", 1), ("up", 1), ("up", 1), ("up", 1),
        ("down", 1), ("down", 1), ("up", 1), ("up", 1), ("down", 2), ("up", 4),
    ]  # fmt: skip
    shares = [share for _, share, _ in in_flight]
    assert shares == pytest.approx([0, 0.25, 0, 0.5, 79 / 80, 0, 0.5, 0, 0.5, 0, 5 / 6], abs=1e-6)


@settings(max_examples=5, deadline=None)
@given(st.lists(st.lists(st.floats(0, 300), min_size=1, max_size=15), min_size=20, max_size=20))
@example([[273.0, 290.0, 299.0]])  # the edge pushes a block back onto the label before it
def test_labels_keep_their_order_and_a_line_between_them(cases):
    code = "return cases.map((wanted) => spreadLabels(wanted, 0, 300, 14))"
    answers = run_javascript(RACE, code, cases=cases)
    for wanted, places in zip(cases, answers, strict=True):
        order = sorted(range(len(wanted)), key=lambda i: wanted[i])
        placed = [places[i] for i in order]
        assert all(later - earlier >= 14 - 1e-6 for earlier, later in pairwise(placed))
        assert min(placed) >= -1e-6
        assert max(placed) <= 300 + 1e-6
        has_room = all(later - earlier >= 14 for earlier, later in pairwise(sorted(wanted)))
        if has_room:
            assert places == pytest.approx(wanted)


def test_a_name_stands_where_nothing_is():
    code = "return chooseSides(marks, lines, { left: 0, right: 200, top: 0, bottom: 200 })"

    def choose(marks, lines=()):
        marks = [dict(zip(("x", "y", "width"), mark, strict=True)) for mark in marks]
        lines = [[{"x": x, "y": y} for x, y in line] for line in lines]
        return run_javascript("race_names", code, marks=marks, lines=lines)

    wall_right = [(120, 0), (120, 200)]
    wall_left = [(80, 0), (80, 200)]
    assert choose([(100, 100, 40)]) == ["right"]
    assert choose([(190, 100, 40)]) == ["left"]  # the plane ends there
    assert choose([(100, 100, 40)], [wall_right]) == ["left"]
    assert choose([(100, 100, 14)], [wall_right, wall_left]) == ["above"]
    ceiling = [(0, 86), (200, 86)]
    assert choose([(100, 100, 14)], [wall_right, wall_left, ceiling]) == ["below"]
    # At the plane's right edge a line comes from the left: the name stands over or under it.
    assert choose([(190, 100, 40)], [[(100, 100), (190, 100)]]) == ["above left"]
    assert choose([(190, 100, 40)], [[(100, 80), (190, 100)]]) == ["below left"]
    assert choose([(10, 100, 40)], [[(10, 100), (100, 100)]]) == ["above right"]
    # Names side by side would overlap, and one would hide the other's mark.
    assert choose([(100, 100, 40), (100, 106, 40)]) == ["right", "left"]
    assert choose([(100, 100, 40), (130, 100, 40)]) == ["left", "right"]


@settings(max_examples=3, deadline=None)
@given(st.lists(st.lists(st.integers(-20, 20), min_size=4, max_size=4), min_size=100, max_size=200))
def test_a_stretch_enters_a_box_where_one_of_its_points_is_inside(stretches):
    code = (
        "const box = { left: -6, right: 8, top: -5, bottom: 7 };"
        "return stretches.map(([ax, ay, bx, by]) => entersBox([ax, ay], [bx, by], box))"
    )
    answers = run_javascript("race_names", code, stretches=stretches)
    for (ax, ay, bx, by), answer in zip(stretches, answers, strict=True):
        shares = np.linspace(0, 1, 2001)
        x = ax + shares * (bx - ax)
        y = ay + shares * (by - ay)

        def is_near(margin, x=x, y=y):
            is_within_bounds = (x >= -6 - margin) & (x <= 8 + margin)
            return bool((is_within_bounds & (y >= -5 - margin) & (y <= 7 + margin)).any())

        if answer:
            assert is_near(0.03)
        else:
            assert not is_near(-0.03)


def test_names_beside_lines_can_be_read_on_a_dark_page():
    """On a light one their colour comes from `plots.style.darken_colour_until_readable`."""
    colours = sorted({get_method_look(name).colour for name in METHODS})
    tones = run_javascript(RACE, "return colours.map(lighten)", colours=colours)
    dark = compute_contrast_with_white(*to_rgb("#111111"))
    assert len(tones) == len(colours) > 10
    for tone in tones:
        assert dark / compute_contrast_with_white(*to_rgb(tone)) >= READABLE, tone
