"""Accuracy against how many numbers were sent; a sentence adds the rounds. It shows what traffic
Fed-ET's large server model saves, and what it does not.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import NamedTuple

import ipywidgets as widgets

from ...panels import LabView, MethodAndArgumentsByName, PanelState, ProgressThenResult, make_widget
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    describe_seeds,
    drawing,
    dress,
    format_percent,
)
from ...plots.style import (
    INK,
    LineEnd,
    choose_distinct_looks,
    draw_level_line,
    draw_names_at_line_ends,
    draw_seed_lines_and_get_mean,
    set_log_axis,
    set_percent_axis,
)
from ...plots.words import SettingCaption
from ...studies import Outcome
from ...value_types import Accuracy0To1
from ..runs import OutcomesByRun, plan_runs, run_planned_runs

# FedAvg beside a one-shot run.
ONE_SHOT_ROUNDS = 10
ONE_SHOT_EPOCHS = 2
BYTES_A_NUMBER = 4
CurveLabel = str
RoundCount = int
LocalEpochCount = int
ModelName = str  # as the setting `model` takes it


class AccuracyAndTrafficAtRoundEnd(NamedTuple):
    """The end of a round: its number, how many numbers were sent so far, and the accuracy 0–1."""

    round: int
    sent: float
    accuracy: float


RoundEndsBySeed = Mapping[int, Sequence[AccuracyAndTrafficAtRoundEnd]]


class TrafficView(LabView):
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

    def work(self, state: PanelState) -> ProgressThenResult[OutcomesByRun]:
        """Run FedAvg with the server's model, and with the clients' smallest one."""
        return (yield from run_planned_runs(self.planned_runs(state)))

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        rounds, epochs = choose_fedavg_rounds_and_epochs(state.outcome)
        changes = {}
        for name, model in choose_fedavg_model_by_curve_label(state.outcome).items():
            changes[f"{name} ({model})"] = {
                "model": model,
                "fedavg_multi.rounds": rounds,
                "fedavg_multi.local_epochs": epochs,
            }
        return plan_runs("fedavg_multi", state.runs.find_current_row("fedet").settings, changes)

    def draw(self, state: PanelState) -> Picture:
        outcomes_by_name = {"Fed-ET": state.outcomes, **(state.worked or {})}
        runs = {}
        for name, outcomes in outcomes_by_name.items():
            runs[name] = {seed: list_round_ends(outcome) for seed, outcome in outcomes.items()}
        return draw_traffic(runs, state.setting, self.goal.value)


# ------------------------------------------------------------------------------------------ numbers
def choose_fedavg_rounds_and_epochs(fedet_outcome: Outcome) -> tuple[RoundCount, LocalEpochCount]:
    """Choose rounds and local epochs of FedAvg that make about as many local steps as a run of
    Fed-ET.
    """
    options = fedet_outcome.options
    if options["rounds"] == 1:
        return ONE_SHOT_ROUNDS, ONE_SHOT_EPOCHS
    counts = fedet_outcome.label_counts
    samples = (1 - fedet_outcome.plan.share_held_out_of_local_training) * counts.sum() / len(counts)
    epochs = options["local_steps"] * fedet_outcome.recipe.batch_size / samples
    return options["rounds"], max(1, round(epochs))


def choose_fedavg_model_by_curve_label(fedet_outcome: Outcome) -> dict[CurveLabel, ModelName]:
    """Choose the networks that FedAvg is run with: the server's, and the clients' smallest one."""
    report = fedet_outcome.report
    kinds = dict.fromkeys(report.architectures)
    sizes = dict(zip(kinds, report.small_parameters, strict=True))
    smallest = min(sizes, key=lambda kind: sizes[kind])
    return {"FedAvg, large": report.server, "FedAvg, smallest": smallest}


def list_round_ends(outcome: Outcome) -> list[AccuracyAndTrafficAtRoundEnd]:
    """List the end of each round in the run's history."""
    rounds = outcome.options["rounds"]
    if rounds == 1:
        return [
            AccuracyAndTrafficAtRoundEnd(1, outcome.ledger.total / BYTES_A_NUMBER, outcome.accuracy)
        ]
    points = []
    for point in outcome.history:
        if point["phase"] == "rounds":
            number = round(point["progress"] * rounds)
            points.append(
                AccuracyAndTrafficAtRoundEnd(
                    number, point["bytes"] / BYTES_A_NUMBER, point["accuracy"]
                )
            )
    return points


def find_first_round_reaching_goal(
    round_ends: Sequence[AccuracyAndTrafficAtRoundEnd], accuracy_goal: Accuracy0To1
) -> AccuracyAndTrafficAtRoundEnd | None:
    """Find the end of the first round with an accuracy of at least `accuracy_goal`; None if there
    is none.
    """
    for point in round_ends:
        if point.accuracy >= accuracy_goal:
            return point
    return None


class TrafficUntilGoal(NamedTuple):
    """The rounds, and the model parameters sent, until a goal is reached: means over the seeds."""

    rounds: float
    sent: float


def compute_mean_traffic_until_goal(
    round_ends_by_seed: RoundEndsBySeed, accuracy_goal: Accuracy0To1
) -> TrafficUntilGoal | None:
    """Measure the traffic until an accuracy of `accuracy_goal` is first reached; None unless every
    seed reaches it.
    """
    first_points = []
    for points in round_ends_by_seed.values():
        first_point = find_first_round_reaching_goal(points, accuracy_goal)
        if first_point is None:
            return None
        first_points.append(first_point)
    if not first_points:
        return None
    return TrafficUntilGoal(
        rounds=mean(point.round for point in first_points),
        sent=mean(point.sent for point in first_points),
    )


# ------------------------------------------------------------------------------------------ picture
def draw_traffic(
    round_ends_by_method: Mapping[str, RoundEndsBySeed],
    setting: SettingCaption | str,
    accuracy_goal: Accuracy0To1,
) -> Picture:
    """Draw accuracy against numbers sent, a line for each method, and the goal.

    The numbers are model parameters, sent and received by all clients.

    round_ends_by_method: {method: {seed: round ends}}, the lab's method first
    """
    ends = []
    with drawing() as (figure, ax):
        dress(ax, title="Accuracy against numbers sent", x="numbers, up and down (log)", grid="y")
        for name, (colour, marker, dashes) in choose_distinct_looks(round_ends_by_method).items():
            lines = {}
            for seed, points in round_ends_by_method[name].items():
                lines[seed] = [(point.sent, point.accuracy) for point in points]
            x, y = draw_seed_lines_and_get_mean(ax, lines, colour, marker, label=name, ls=dashes)
            ends.append(LineEnd(name.replace(" (", "\n("), colour, x[-1], y[-1], len(x) == 1))
            traffic = compute_mean_traffic_until_goal(round_ends_by_method[name], accuracy_goal)
            if traffic is not None:
                style = {"ms": 11, "color": colour, "mec": INK, "mew": 1.4, "zorder": 5}
                ax.plot([traffic.sent], [accuracy_goal], marker, **style)
        draw_level_line(ax, accuracy_goal, format_percent(accuracy_goal), is_text_left=True)
        set_percent_axis(ax, highest_share=1.02)
        set_log_axis(ax, format_value=format_number_with_unit_prefix)
        draw_names_at_line_ends(ax, ends, min_gap_in_axes_heights=0.1)
    rows = []
    descriptions = []
    for name, by_seed in round_ends_by_method.items():
        numbers, rounds = format_traffic_until_goal(by_seed, accuracy_goal)
        rows.append(
            (
                name,
                numbers,
                rounds,
                format_best_accuracy_of_any_seed(by_seed),
                format_mean_count_of_numbers_sent(by_seed),
            )
        )
        if rounds:
            unit = "round" if rounds == "1" else "rounds"
            descriptions.append(f"{name} {numbers} numbers in {rounds} {unit}")
        else:
            descriptions.append(f"{name} {numbers}")
    seeds = describe_seeds(next(iter(round_ends_by_method.values())))
    sentence = f"To reach {format_percent(accuracy_goal)} ({seeds}): {'; '.join(descriptions)}."
    columns = f"method | numbers to {format_percent(accuracy_goal)} | rounds | best accuracy | numbers in all"
    return describe_picture(
        figure, "Accuracy against numbers sent", setting, sentence, build_table(columns, rows)
    )


class TrafficTexts(NamedTuple):
    """The numbers sent and the rounds until a goal is reached, as texts of a table."""

    numbers: str
    rounds: str


def format_traffic_until_goal(
    round_ends_by_seed: RoundEndsBySeed, accuracy_goal: Accuracy0To1
) -> TrafficTexts:
    """Format the numbers sent and the rounds until the goal is reached.

    If not every seed reaches it: how many do, or "never", and no rounds.
    """
    traffic = compute_mean_traffic_until_goal(round_ends_by_seed, accuracy_goal)
    if traffic is None:
        seeds_at_goal = 0
        for round_ends in round_ends_by_seed.values():
            if find_first_round_reaching_goal(round_ends, accuracy_goal) is not None:
                seeds_at_goal += 1
        if seeds_at_goal == 0:
            return TrafficTexts("never", "")
        return TrafficTexts(f"only {seeds_at_goal} of {len(round_ends_by_seed)} seeds", "")
    rounds, sent = traffic
    return TrafficTexts(format_number_with_unit_prefix(sent), f"{rounds:.1f}".removesuffix(".0"))


def format_best_accuracy_of_any_seed(round_ends_by_seed: RoundEndsBySeed) -> str:
    """Format the best accuracy after any round of any seed."""
    best = 0.0
    for round_ends in round_ends_by_seed.values():
        best = max(best, *(round_end.accuracy for round_end in round_ends))
    return format_percent(best)


def format_mean_count_of_numbers_sent(round_ends_by_seed: RoundEndsBySeed) -> str:
    """Format how many numbers a whole run sends, on average over the seeds."""
    return format_number_with_unit_prefix(
        mean(points[-1].sent for points in round_ends_by_seed.values())
    )


def format_number_with_unit_prefix(number: float) -> str:
    """Format a number in three digits: 1234567 becomes '1.23 M'."""
    for unit in ("", " k", " M"):
        if abs(number) < 999.5:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g} G"
