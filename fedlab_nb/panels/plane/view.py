"""The toy as a picture, a square for each client and for each of the two averages; and the view that
shows it: in the playground, and in the panel of lesson 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import ipywidgets as widgets
import torch

from ...plots import Picture
from ...plots.plane import (
    DecisionSquare,
    IslandCircle,
    PlaneExtentAndCircles,
    draw_decision_regions,
)
from ...plots.words import (
    format_client_letters,
    format_count_and_noun,
    format_percent,
    join_with_and,
)
from ...tensor_types import PlanePoints
from ..lab_view import LabView, PanelState
from ..theme import make_widget
from .toy import (
    CLASSES,
    CLIENTS,
    SPREAD,
    STARTS,
    Predictor,
    ToyFederation,
    compute_island_centres,
    list_class_of_each_island,
    make_toy_federation,
)

EDGE = 3.2  # the squares reach from -EDGE to EDGE
GRID = 60  # places across and up
SQUARES = CLIENTS + 2
WORDS = {"common": "common start", "own": "each its own start"}


@lru_cache(1)
def make_grid_points_of_plane() -> PlanePoints:
    """Make the points at which the networks predict, `[GRID², 2]`, row by row from below."""
    coordinates = torch.linspace(-EDGE, EDGE, GRID)
    y, x = torch.meshgrid(coordinates, coordinates, indexing="ij")
    return torch.stack([x, y], -1).flatten(0, 1)


def draw_toy_federation(toy: ToyFederation) -> Picture:
    """Draw all squares, with their texts and numbers."""
    clients = [make_square_of_client(toy, k) for k in range(CLIENTS)]
    averages = [
        make_square_of_predictor(toy, "Average of weights", toy.predict_with_averaged_weights),
        make_square_of_predictor(toy, "Average of predictions", toy.predict_with_mean_logits),
    ]
    table = []
    for k, client in enumerate(clients):
        row: dict[str, object] = {**make_table_row_of_square(client)}
        for name, count in zip(CLASSES, toy.count_training_points_of_each_class(k), strict=True):
            row[f"points {name}"] = count
        table.append(row)
    table += [make_table_row_of_square(average) for average in averages]
    start = "own starts" if toy.start == "own" else f"{toy.start} start"
    return draw_decision_regions(
        [*clients, *averages],
        PlaneExtentAndCircles(CLASSES, EDGE, list_island_circles()),
        setting=f"α = {toy.alpha:g}, seed {toy.seed}, {start}; {format_count_and_noun(CLIENTS, 'client')}, "
        f"classes {join_with_and(CLASSES)}",
        sentence=describe_toy_accuracies(toy, averages),
        table=table,
    )


def list_island_circles() -> list[IslandCircle]:
    """List circles of two standard deviations around the islands."""
    circles = []
    centres = compute_island_centres().tolist()
    for (x, y), label in zip(centres, list_class_of_each_island(), strict=True):
        circles.append(IslandCircle(x, y, 2 * SPREAD, label))
    return circles


def make_table_row_of_square(square: DecisionSquare) -> dict[str, str]:
    """Make the square's row of the table."""
    return {"picture": square.title, "right": square.foot.removesuffix(" right")}


def make_square_of_client(toy: ToyFederation, client: int) -> DecisionSquare:
    """Make the square of a client, with the points that it trains on."""
    x, y = toy.shards[client]
    held = []
    for name, count in zip(CLASSES, toy.count_training_points_of_each_class(client), strict=True):
        if count:
            held.append(f"{count} {name}")
    dots = {"points": x.numpy(), "labels": y.numpy()}
    remark = f"\nhas {join_with_and(held)}"
    return make_square_of_predictor(
        toy,
        f"Client {format_client_letters(client)}",
        toy.make_client_predictor(client),
        remark,
        **dots,
    )


def make_square_of_predictor(
    toy: ToyFederation,
    title: str,
    predictor: Predictor,
    remark: str = "",
    **points_and_labels: object,
) -> DecisionSquare:
    """Make the square of a predictor, with its scores at each point of the grid.

    points_and_labels: `points [n, 2]` and `labels [n]` of the dots, as for `DecisionSquare`
    """
    right = f"{format_percent(toy.measure_test_accuracy(predictor))} right"
    scores = predictor(make_grid_points_of_plane()).unflatten(0, (GRID, GRID))
    words = f"{title}\n{right} of the test points{remark}"
    return DecisionSquare(title, right, words, scores.numpy(), **points_and_labels)


def describe_toy_accuracies(toy: ToyFederation, averages: Sequence[DecisionSquare]) -> str:
    """Say how many classes each client trains on, and how often each predictor is right."""
    names = [format_client_letters(k) for k in range(CLIENTS)]
    classes = []
    accuracies = []
    for k in range(CLIENTS):
        classes.append(str(sum(count > 0 for count in toy.count_training_points_of_each_class(k))))
        accuracies.append(toy.measure_test_accuracy(toy.make_client_predictor(k)))
    right = [f"mean client {format_percent(sum(accuracies) / CLIENTS)}"]
    for average in averages:
        title = average.title[0].lower() + average.title[1:]
        right.append(f"{title} {average.foot.removesuffix(' right')}")
    return (
        f"α = {toy.alpha:g}: clients {join_with_and(names)} train on points of "
        f"{join_with_and(classes)} classes. Right on the test points: {join_with_and(right)} "
        f"(guessing: {format_percent(1 / len(CLASSES))})."
    )


class PlaneView(LabView):
    """Points in the plane instead of images, at the panel's α and seed. The clients are three, however
    many the panel has.
    """

    name, title, ready, needs = "plane", "In the plane", "always", ("settings", "frame")
    is_drawn_ahead = False  # it trains networks

    def __init__(self) -> None:
        self.start = make_widget(
            widgets.ToggleButtons,
            "fl-start",
            options=[(WORDS[start], start) for start in STARTS],
            tooltips=[
                "All networks begin with the same weights",
                "Each network begins with random weights of its own",
            ],
        )

    def draw(self, state: PanelState) -> Picture:
        settings = state.settings
        return draw_toy_federation(
            make_toy_federation(settings["alpha"], settings["seed"], self.start.value)
        )

    def caption(self, state: PanelState) -> str:
        return "A toy: three clients and points of three classes, dealt at the α and seed above."
