"""The panel Race: methods side by side, as bytes or seconds are spent. It is run once; the browser plays it from data
(`front/race.js`). The still picture, of its end, is that of `plots.race`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TypedDict

from .. import plots
from ..errors import SAMPLES
from ..front.flight import Flight, describe_flight
from ..front.vocabulary import choose_words_for_clients_and_samples
from ..plots import MethodResults
from ..plots.accuracy import LOCAL
from ..plots.identity import shorten_method_title
from ..plots.race import STEPS, RacePicture, find_byte_range, has_many_rounds
from ..plots.series import CurvePoint
from ..plots.style import darken_colour_until_readable
from ..studies.outcome import Outcome
from .lab_view import LabSpec, LabView, PanelState
from .record import MethodRun

HEAD_START = 4  # the race begins with so many times less than the first model costs: its messages are seen to fly


class RacePoint(TypedDict):
    """What a method has spent at a point of its curve, and what it has reached: a share, 0–1."""

    bytes: float
    seconds: float
    accuracy: float


class TrainingEnd(TypedDict):
    """What has been spent at the end of the clients' own training."""

    bytes: float
    seconds: float


class Racer(TypedDict):
    """One method as the browser takes it; see `describe_method_in_race`."""

    name: str
    short: str
    key: str
    colour: str
    letterColour: str
    marker: str
    training: TrainingEnd | None
    points: list[RacePoint]
    flight: Flight | None


class EmptyScene(TypedDict):
    """No race: no method has a result yet."""


class RaceScene(TypedDict):
    """The race as the browser takes it; see `make_race_scene_or_empty`."""

    kind: str
    people: dict[str, str]
    bytes: list[float]
    seconds: float
    methods: list[Racer]


class RaceView(LabView):
    """The race of the results that the panel shows."""

    name, title, ready = "race", "The race", "live"
    has_scene = True
    needs = ("runs",)
    empty = "Press Run, then Play: the methods spend their bytes side by side."

    def draw(self, state: PanelState) -> plots.Picture:
        race = RacePicture(state.runs.list_results_of_shown_rows())
        return replace(
            race.show(race.compute_budget_bytes(STEPS)), scene=make_race_scene_or_empty(state)
        )


def make_race_scene_or_empty(state: PanelState) -> RaceScene | EmptyScene:
    """Make the scene of the race for the browser; {} if no method has a result yet.

    kind:    "race"
    people:  the words of the data set
    bytes:   at which the race begins and ends
    seconds: of the slowest method
    methods: see `describe_method_in_race`
    """
    racers = []
    series = state.runs.list_results_of_shown_rows()
    for row, one in zip(state.runs.shown_rows, series, strict=True):
        if row.outcomes:
            racers.append(describe_method_in_race(row, one))
    if not racers:
        return EmptyScene()
    dataset = state.federation.dataset
    least, most = find_byte_range(series)
    return {
        "kind": "race",
        "people": choose_words_for_clients_and_samples(
            dataset.name, SAMPLES[len(dataset.input_shape)]
        ),
        "bytes": [least / HEAD_START, most],
        "seconds": max(racer["points"][-1]["seconds"] for racer in racers),
        "methods": racers,
    }


def describe_method_in_race(row: MethodRun, method_results: MethodResults) -> Racer:
    """Describe the first seed's run of a method.

    training: bytes and seconds at the end of the clients' own training; None if that is a part of every round
    points:   dicts(bytes, seconds, accuracy) of its global models, in order
    flight:   what it has sent, phase by phase (`front.flight`); None for nothing
    """
    outcome = next(iter(row.outcomes.values()))
    points: list[RacePoint] = []
    local_points: list[RacePoint] = []
    for point, seconds in zip(
        outcome.history, compute_seconds_until_each_curve_point(outcome), strict=True
    ):
        about: RacePoint = {
            "bytes": point["bytes"],
            "seconds": seconds,
            "accuracy": point["accuracy"],
        }
        if point["phase"] == LOCAL:
            local_points.append(about)
        else:
            points.append(about)
    training: TrainingEnd | None = None
    if local_points and not has_many_rounds(method_results):
        training = {"bytes": local_points[-1]["bytes"], "seconds": outcome.seconds_local}
    return {
        "name": method_results.name,
        "short": shorten_method_title(method_results.label),
        "key": method_results.highlight_key,
        "colour": method_results.look.colour,
        "letterColour": darken_colour_until_readable(method_results.look.colour),
        "marker": method_results.look.marker,
        "training": training,
        "points": points,
        "flight": describe_flight(row.method, outcome.ledger),
    }


def compute_seconds_until_each_curve_point(outcome: Outcome) -> list[float]:
    """Compute the seconds of computing up to each point of a run's curve; they never fall.

    Two durations were measured: that of the clients' own training and that of all that follows. Within
    each, time is proportional to progress. Sending takes no time here.
    """
    history = outcome.history
    has_training = any(point["phase"] == LOCAL for point in history)
    seconds = []
    for point in history:
        if point["phase"] == LOCAL:
            seconds.append(2 * point["progress"] * outcome.seconds_local)
        else:
            seconds.append(
                outcome.seconds_local
                + compute_progress_after_client_training(point, has_training)
                * outcome.seconds_method
            )
    return list(accumulate(seconds, max))


def compute_progress_after_client_training(point: CurvePoint, clients_train_first: bool) -> float:
    """Compute the progress, 0–1, of what follows the clients' own training.

    The training fills the first half of a run's progress, if there is any.
    """
    progress = float(point["progress"])
    return 2 * progress - 1 if clients_train_first else progress


RACE = LabSpec(
    name="race",
    views=(RaceView,),
    settings={"seeds": 1},
    companions=("fedavg", "ensemble", "fens", "fedlpa", "fedavg_multi", "fedadam"),
)
