"""The panel Race: methods side by side, as bytes or seconds are spent. It is run once; the browser plays it from data
(`front/race.js`). The still picture, of its end, is that of `plots.race`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from .. import plots
from ..errors import SAMPLES
from ..front.flight import describe_flight
from ..front.vocabulary import describe_people
from ..plots import Series
from ..plots.accuracy import LOCAL
from ..plots.identity import shorten_title
from ..plots.race import STEPS, Race, find_byte_limits, is_round_based
from .lab_view import LabSpec, LabView, PanelState
from .record import Row

HEAD_START = 4  # the race begins with so many times less than the first model costs: its messages are seen to fly


class RaceView(LabView):
    """The race of the results that the panel shows."""

    name, title, ready = "race", "The race", "live"
    has_scene = True
    needs = ("runs",)
    empty = "Press Run, then Play: the methods spend their bytes side by side."

    def draw(self, state: PanelState) -> plots.Picture:
        race = Race(state.runs.list_series())
        return replace(race.show(race.budget(STEPS)), scene=describe_race(state))


def describe_race(state: PanelState) -> dict[str, Any]:
    """The race as the browser takes it; {} where no method has a result yet.

    kind: "race";   people: the data set's words;   bytes: where the race begins and ends;   seconds: of the slowest
    method;   methods: see `describe_racer`
    """
    racers = []
    series = state.runs.list_series()
    for row, one in zip(state.runs.shown, series, strict=True):
        if row.outcomes:
            racers.append(describe_racer(row, one))
    if not racers:
        return {}
    dataset = state.federation.dataset
    least, most = find_byte_limits(series)
    return {
        "kind": "race",
        "people": describe_people(dataset.name, SAMPLES[len(dataset.input_shape)]),
        "bytes": [least / HEAD_START, most],
        "seconds": max(racer["points"][-1]["seconds"] for racer in racers),
        "methods": racers,
    }


def describe_racer(row: Row, series: Series) -> dict[str, Any]:
    """One method, of the first seed's run.

    training: bytes and seconds at the end of the clients' own training, None where it is a part of every round
    points:   dicts(bytes, seconds, accuracy) of its global models, in order
    flight:   what it has sent, phase by phase (`front.flight`); None: nothing
    """
    outcome = next(iter(row.outcomes.values()))
    points = []
    local_points = []
    for point, seconds in zip(outcome.history, measure_points(outcome), strict=True):
        about = {"bytes": point["bytes"], "seconds": seconds, "accuracy": point["accuracy"]}
        if point["phase"] == LOCAL:
            local_points.append(about)
        else:
            points.append(about)
    training = None
    if local_points and not is_round_based(series):
        training = {"bytes": local_points[-1]["bytes"], "seconds": outcome.seconds_local}
    return {
        "name": series.name,
        "short": shorten_title(series.label),
        "key": series.highlight_key,
        "colour": series.look.colour,
        "marker": series.look.marker,
        "training": training,
        "points": points,
        "flight": describe_flight(row.method, outcome.ledger),
    }


def measure_points(outcome: Any) -> list[float]:
    """The seconds of computing at each point of a run's curve, `[len(history)]`, never falling.

    Measured are the clients' own training and all that follows; within each of the two, time goes as its progress does.
    Sending takes no time here.
    """
    history = outcome.history
    has_training = any(point["phase"] == LOCAL for point in history)
    seconds = []
    for point in history:
        if point["phase"] == LOCAL:
            seconds.append(2 * point["progress"] * outcome.seconds_local)
        else:
            seconds.append(
                outcome.seconds_local + share_of_rest(point, has_training) * outcome.seconds_method
            )
    return list(accumulate(seconds, max))


def share_of_rest(point: Mapping[str, Any], has_training: bool) -> float:
    """How far the part after the clients' own training has come, 0-1: that begins in the middle of the progress."""
    progress = float(point["progress"])
    return 2 * progress - 1 if has_training else progress


RACE = LabSpec(
    name="race",
    views=(RaceView,),
    settings={"seeds": 1},
    companions=("fedavg", "ensemble", "fens", "fedlpa", "fedavg_multi", "fedadam"),
)
