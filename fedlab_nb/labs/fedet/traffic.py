"""Accuracy against the numbers sent, and in words the rounds: what a large model saves, and what it
does not.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import NamedTuple

import ipywidgets as widgets

from ...panels import LabView, PanelState, PlannedRuns, make_widget
from ...plots import Picture, build_table, describe_picture, describe_seeds, drawing, dress, percent
from ...plots.style import (
    INK,
    draw_end_labels,
    draw_level_line,
    draw_seed_lines,
    looks,
    set_log_axis,
    set_percent_axis,
)
from ...plots.words import Setting
from ...studies import Outcome
from ..runs import Steps, plan_runs, run_all

ONE_SHOT_ROUNDS = 10  # of FedAvg beside a one-shot run
ONE_SHOT_EPOCHS = 2
BYTES_A_NUMBER = 4


class Point(NamedTuple):
    """The end of a round: its number, how many numbers were sent so far, and the accuracy 0–1."""

    round: int
    sent: float
    accuracy: float


RunsBySeed = Mapping[int, Sequence[Point]]


class Traffic(LabView):
    """Accuracy against the numbers that were sent."""

    name, title = "traffic", "Traffic"
    summary = "Then this shows the accuracy against the numbers that were sent."
    work_label = "Run FedAvg beside it"
    work_help = (
        "Run FedAvg with the server's model, and with the clients' smallest one. The rounds and "
        "local steps are about the same (in one shot: 10 rounds of 2 epochs). All clients take "
        "part in every round."
    )

    def __init__(self) -> None:
        self.goal = make_widget(
            widgets.FloatSlider,
            label="Accuracy to reach",
            help="The traffic until this accuracy is reached for the first time is compared",
            width=330,
            value=0.6,
            min=0.2,
            max=0.98,
            step=0.02,
            readout_format=".0%",
        )

    def work(self, state: PanelState) -> Steps:
        """{name: {seed: Outcome}} of FedAvg with both models."""
        return (yield from run_all(self.planned_runs(state)))

    def planned_runs(self, state: PanelState) -> PlannedRuns:
        rounds, epochs = choose_comparable_rounds(state.outcome)
        changes = {}
        for name, model in name_compared_models(state.outcome).items():
            changes[f"{name} ({model})"] = {
                "model": model,
                "fedavg_multi.rounds": rounds,
                "fedavg_multi.local_epochs": epochs,
            }
        return plan_runs("fedavg_multi", state.runs.find_row("fedet").settings, changes)

    def draw(self, state: PanelState) -> Picture:
        outcomes_by_name = {"Fed-ET": state.outcomes, **(state.worked or {})}
        runs = {}
        for name, outcomes in outcomes_by_name.items():
            runs[name] = {seed: read_points(outcome) for seed, outcome in outcomes.items()}
        return draw_traffic(runs, state.setting, self.goal.value)


# ------------------------------------------------------------------------------------------ numbers
def choose_comparable_rounds(outcome: Outcome) -> tuple[int, int]:
    """Rounds and local epochs of FedAvg that make about as many local steps as a run of Fed-ET."""
    options = outcome.options
    if options["rounds"] == 1:
        return ONE_SHOT_ROUNDS, ONE_SHOT_EPOCHS
    counts = outcome.label_counts
    samples = (1 - outcome.plan.holdout) * counts.sum() / len(counts)
    epochs = options["local_steps"] * outcome.recipe.batch_size / samples
    return options["rounds"], max(1, round(epochs))


def name_compared_models(outcome: Outcome) -> dict[str, str]:
    """The networks that FedAvg is run with: the server's, and the clients' smallest one."""
    report = outcome.report
    kinds = dict.fromkeys(report.architectures)
    sizes = dict(zip(kinds, report.small_parameters, strict=True))
    smallest = min(sizes, key=lambda kind: sizes[kind])
    return {"FedAvg, large": report.server, "FedAvg, smallest": smallest}


def read_points(outcome: Outcome) -> list[Point]:
    """The end of each round that the run's curve has."""
    rounds = outcome.options["rounds"]
    if rounds == 1:
        return [Point(1, outcome.ledger.total / BYTES_A_NUMBER, outcome.accuracy)]
    points = []
    for point in outcome.history:
        if point["phase"] == "rounds":
            number = round(point["progress"] * rounds)
            points.append(Point(number, point["bytes"] / BYTES_A_NUMBER, point["accuracy"]))
    return points


def find_first_above(points: Sequence[Point], goal: float) -> Point | None:
    """The first point with an accuracy of at least `goal`."""
    for point in points:
        if point.accuracy >= goal:
            return point
    return None


def measure_traffic_to_goal(runs: RunsBySeed, goal: float) -> tuple[float, float] | None:
    """(rounds, numbers sent) until the goal is first reached, means over the seeds; None unless
    every seed gets there.
    """
    firsts = []
    for points in runs.values():
        first = find_first_above(points, goal)
        if first is None:
            return None
        firsts.append(first)
    if not firsts:
        return None
    return mean(point.round for point in firsts), mean(point.sent for point in firsts)


# ------------------------------------------------------------------------------------------ picture
def draw_traffic(runs: Mapping[str, RunsBySeed], setting: Setting | str, goal: float) -> Picture:
    """Accuracy against numbers sent, a line for each method, and the goal.

    runs: {method: {seed: points}}, the lab's method first. Numbers are model parameters, up and
    down, of all clients
    """
    labels = []
    with drawing() as (figure, ax):
        dress(ax, title="Accuracy against numbers sent", x="numbers, up and down (log)", grid="y")
        for name, (colour, marker, dashes) in looks(runs).items():
            lines = {}
            for seed, points in runs[name].items():
                lines[seed] = [(point.sent, point.accuracy) for point in points]
            _, y = draw_seed_lines(ax, lines, colour, marker, label=name, ls=dashes)
            labels.append((y[-1], name.replace(" (", "\n("), colour))
            traffic = measure_traffic_to_goal(runs[name], goal)
            if traffic is not None:
                style = {"ms": 11, "color": colour, "mec": INK, "mew": 1.4, "zorder": 5}
                ax.plot([traffic[1]], [goal], marker, **style)
        draw_level_line(ax, goal, percent(goal), left=True)
        set_percent_axis(ax, top=1.02)
        set_log_axis(ax, form=format_count)
        draw_end_labels(ax, labels, gap=0.1)
    rows = []
    descriptions = []
    for name, by_seed in runs.items():
        numbers, rounds = describe_traffic(by_seed, goal)
        rows.append(
            (name, numbers, rounds, format_best_accuracy(by_seed), format_total_sent(by_seed))
        )
        if rounds:
            unit = "round" if rounds == "1" else "rounds"
            descriptions.append(f"{name} {numbers} numbers in {rounds} {unit}")
        else:
            descriptions.append(f"{name} {numbers}")
    seeds = describe_seeds(next(iter(runs.values())))
    sentence = f"To reach {percent(goal)} ({seeds}): {'; '.join(descriptions)}."
    columns = f"method | numbers to {percent(goal)} | rounds | best accuracy | numbers in all"
    return describe_picture(
        figure, "Accuracy against numbers sent", setting, sentence, build_table(columns, rows)
    )


def describe_traffic(runs: RunsBySeed, goal: float) -> tuple[str, str]:
    """The numbers and rounds until the goal is reached; else how many seeds reach it, and ''."""
    traffic = measure_traffic_to_goal(runs, goal)
    if traffic is None:
        reached = [find_first_above(points, goal) is not None for points in runs.values()]
        return f"only {sum(reached)} of {len(runs)} seeds", ""
    rounds, sent = traffic
    return format_count(sent), f"{rounds:.1f}".removesuffix(".0")


def format_best_accuracy(runs: RunsBySeed) -> str:
    """The best accuracy of all points of all seeds."""
    return percent(max(point.accuracy for points in runs.values() for point in points))


def format_total_sent(runs: RunsBySeed) -> str:
    """The numbers that a whole run sends, mean over the seeds."""
    return format_count(mean(points[-1].sent for points in runs.values()))


def format_count(count: float) -> str:
    """1234567 -> '1.23 M'."""
    for unit in ("", " k", " M"):
        if abs(count) < 999.5:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} G"
