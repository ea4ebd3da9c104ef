"""The race in the browser says what the still picture of `plots.race` says, and its lanes are the ledger's."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from javascript import javascript

from fedlab_nb.comm import Ledger
from fedlab_nb.front.flight import describe_flight
from fedlab_nb.front.vocabulary import CLIENTS
from fedlab_nb.plots import Series
from fedlab_nb.plots.race import count_paid_points, find_byte_limits, sentence

PLAN = "text flight_plan race_plan"
RACE = "text clock dom flight_plan flight_paint player race_plan race_markers race"


def make_series(name, points):
    """A method whose global models have these (bytes, accuracy)."""
    curve = [
        {"phase": "rounds", "progress": 1.0, "accuracy": accuracy, "bytes": sent}
        for sent, accuracy in points
    ]
    return Series(name, setting="toy", accuracies={0: points[-1][1]}, curves=[curve])


def make_scene(series):
    methods = []
    for one in series:
        points = [
            {"bytes": p["bytes"], "accuracy": p["accuracy"], "seconds": 0.0} for p in one.curves[0]
        ]
        methods.append({"name": one.name, "points": points, "training": None})
    return {"bytes": list(find_byte_limits(series)), "seconds": 0, "methods": methods}


# Bytes of three figures, so that no rounding to three of them matters.
SIZES = st.builds(
    lambda figures, zeros: figures * 10**zeros, st.integers(1, 999), st.integers(0, 4)
)


@st.composite
def races(draw):
    """Some methods, each with bytes that grow, and budgets."""
    series = []
    for name in "ABCD"[: draw(st.integers(1, 4))]:
        sizes = sorted(draw(st.lists(SIZES, min_size=1, max_size=5, unique=True)))
        shares = draw(st.lists(st.integers(0, 1000), min_size=len(sizes), max_size=len(sizes)))
        pairs = zip(sizes, shares, strict=True)
        series.append(make_series(name, [(size, share / 1000) for size, share in pairs]))
    sizes = [p["bytes"] for one in series for p in one.curves[0]]
    return series, [*sizes, draw(SIZES)]


@settings(max_examples=3, deadline=None)
@given(st.lists(races(), min_size=30, max_size=30))
def test_a_moment_is_the_still_pictures(cases):
    code = (
        "return cases.map(([scene, budgets]) => budgets.map((budget) => ["
        "describeRace(scene, 'bytes', budget),"
        "scene.methods.map((method) => countPaid(method, 'bytes', budget))]))"
    )
    sent = [(make_scene(series), budgets) for series, budgets in cases]
    shown = javascript(PLAN, code, cases=sent)
    for (series, budgets), answers in zip(cases, shown, strict=True):
        for budget, (words, counts) in zip(budgets, answers, strict=True):
            assert counts == [count_paid_points(one, budget) for one in series]
            still = sentence(series, budget).removesuffix(" One seed's curves.")
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
    shown = javascript(PLAN, code, once=once, many=many)
    assert shown["once"] == [100, 100, 100, 200, 300, 300]
    assert shown["many"] == [0, 100, 200, 900, 1000, 1000]
    assert shown["bytes"] == [50, 299, 300]
    assert shown["trained"] == [0, 0.25, 1, 1] and shown["sent"] == [0, 1]
    assert shown["middle"] == pytest.approx(100 * 1000) and shown["back"] == pytest.approx(0.3)
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
        ledger.add(client, "down", "aggregator", 4, messages=4)
        ledger.add(client, "up", "aggregator", 12, messages=4)
    flight = describe_flight("fens", ledger)
    code = """
        const plan = planFlight(flight, people);
        return moments.map((bytes) => {
          const { leg, share, round } = findInFlight(plan, bytes);
          return leg === null ? null : [leg.way, share, round];
        });"""
    moments = [0, 10, 40, 80, 119, 120, 121, 122, 125, 128, 151, 152, 1000]
    shown = javascript(PLAN, code, flight=flight, people=CLIENTS, moments=moments)
    assert [one and (one[0], one[2]) for one in shown] == [
        ("down", 1), ("down", 1), ("up", 1), ("up", 1), ("up", 1),
        ("down", 1), ("down", 1), ("up", 1), ("up", 1), ("down", 2), ("up", 4), None, None,
    ]  # fmt: skip
    shares = [one[1] for one in shown if one]
    assert shares == pytest.approx([0, 0.25, 0, 0.5, 79 / 80, 0, 0.5, 0, 0.5, 0, 5 / 6], abs=1e-6)


@settings(max_examples=5, deadline=None)
@given(st.lists(st.lists(st.floats(0, 300), min_size=1, max_size=15), min_size=20, max_size=20))
@example([[273.0, 290.0, 299.0]])  # the edge pushes a block back onto the label before it
def test_labels_keep_their_order_and_a_line_between_them(cases):
    code = "return cases.map((wanted) => spreadLabels(wanted, 0, 300, 14))"
    for wanted, places in zip(cases, javascript(RACE, code, cases=cases), strict=True):
        order = sorted(range(len(wanted)), key=lambda i: wanted[i])
        placed = [places[i] for i in order]
        assert all(b - a >= 14 - 1e-6 for a, b in zip(placed, placed[1:], strict=False))
        assert min(placed) >= -1e-6 and max(placed) <= 300 + 1e-6
        if all(b - a >= 14 for a, b in zip(sorted(wanted), sorted(wanted)[1:], strict=False)):
            assert places == pytest.approx(wanted)
