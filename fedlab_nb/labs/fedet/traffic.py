"""Accuracy against the numbers sent, and in words the rounds: what a large model saves, and what it doesn't."""

from collections.abc import Mapping, Sequence
from statistics import mean

import ipywidgets as widgets

from ...panels import Asked, LabView, PanelState, made
from ...plots import Picture, drawing, dress, percent, seeds_of, tabled, told
from ...plots.axes import end_labels, level_line, log_axis, percent_axis, seed_lines
from ...plots.style import INK, looks
from ...studies import Outcome
from ..runs import Steps, all_of, choices

FEWEST = 10  # rounds of FedAvg beside a one-shot run
Points = Sequence[tuple[int, float, float]]  # (round, numbers sent so far, accuracy 0–1)


class Traffic(LabView):
    """Accuracy against the numbers that were sent."""

    name, title, work_label = "traffic", "Traffic", "Run FedAvg beside it"

    def __init__(self) -> None:
        ends = {"value": 0.6, "min": 0.2, "max": 0.98, "step": 0.02, "readout_format": ".0%"}
        help = "The traffic until this accuracy is reached for the first time is compared"
        self.goal = made(
            widgets.FloatSlider, label="Accuracy to reach", help=help, width=330, **ends
        )

    def work(self, state: PanelState) -> Steps:
        """Run FedAvg with the server's model, and with the clients' smallest one. The rounds and local steps are about
        the same (in one shot: 10 rounds of 2 epochs). All clients take part in every round.
        """
        return (yield from all_of(self.asked(state)))

    def asked(self, state: PanelState) -> Asked:
        outcome, report = state.outcome, state.report
        total, epochs = outcome.options["rounds"], 2
        if total == 1:
            total = FEWEST
        else:
            seen = (
                (1 - outcome.plan.holdout) * outcome.label_counts.sum() / len(outcome.label_counts)
            )
            epochs = max(
                1, round(outcome.options["local_steps"] * outcome.recipe.batch_size / seen)
            )
        sizes = dict(zip(dict.fromkeys(report.architectures), report.small_parameters, strict=True))
        models = {
            "FedAvg, large": report.server,
            "FedAvg, smallest": min(sizes, key=sizes.__getitem__),
        }
        rounds = {"fedavg_multi.rounds": total, "fedavg_multi.local_epochs": epochs}
        of = {f"{name} ({model})": {"model": model, **rounds} for name, model in models.items()}
        return choices("fedavg_multi", state.runs.find("fedet").settings, of)

    def draw(self, state: PanelState) -> Picture:
        shown = {"Fed-ET": state.outcomes, **(state.worked or {})}
        lines = {
            name: {seed: by_round(outcome) for seed, outcome in of.items()}
            for name, of in shown.items()
        }
        return traffic(lines, state.setting, self.goal.value)


def by_round(outcome: Outcome) -> Points:
    """(round, numbers of 4 bytes sent so far, accuracy) at the end of each round that the curve shows."""
    total = outcome.options["rounds"]
    if total == 1:
        return [(1, outcome.ledger.total / 4, outcome.accuracy)]
    points = [p for p in outcome.history if p["phase"] == "rounds"]
    return [(round(p["progress"] * total), p["bytes"] / 4, p["accuracy"]) for p in points]


def first_reached(of: Mapping[int, Points], target: float) -> tuple[float, float] | None:
    """(rounds, numbers) at which `target` is first reached, means over the seeds; None unless every seed gets there."""
    firsts = [next((p for p in points if p[2] >= target), None) for points in of.values()]
    if not firsts or any(p is None for p in firsts):
        return None
    return mean(p[0] for p in firsts), mean(p[1] for p in firsts)


def traffic(lines: Mapping[str, Mapping[int, Points]], setting: str, target: float) -> Picture:
    """`lines`: {method: {seed: points}}, the lab's method first. Numbers are model parameters up and down, all clients;
    `target`: the accuracy to be reached."""
    reached = {name: first_reached(of, target) for name, of in lines.items()}
    ends = []
    with drawing() as (figure, ax):
        dress(ax, title="Accuracy against numbers sent", x="numbers, up and down (log)", grid="y")
        for name, (hue, mark, dashes) in looks(lines).items():
            points = {
                seed: [(sent, share) for _, sent, share in of] for seed, of in lines[name].items()
            }
            _, y = seed_lines(ax, points, hue, mark, label=name, ls=dashes)
            ends.append((y[-1], name.replace(" (", "\n("), hue))
            if reached[name] is not None:
                ax.plot(
                    [reached[name][1]], [target], mark, ms=11, color=hue, mec=INK, mew=1.4, zorder=5
                )
        level_line(ax, target, percent(target), left=True)
        percent_axis(ax, top=1.02)
        log_axis(ax, form=amount)
        end_labels(ax, ends, gap=0.1)
    rows, said = [], []
    for name, of in lines.items():
        count = sum(any(p[2] >= target for p in points) for points in of.values())
        first = (f"only {count} of {len(of)} seeds", "")
        if reached[name] is not None:
            first = amount(reached[name][1]), f"{reached[name][0]:.1f}".removesuffix(".0")
        rounds = "round" if first[1] == "1" else "rounds"
        said.append(f"{name} {first[0]}" + (f" numbers in {first[1]} {rounds}" if first[1] else ""))
        best = percent(max(p[2] for points in of.values() for p in points))
        rows.append((name, *first, best, amount(mean(points[-1][1] for points in of.values()))))
    sentence = (
        f"To reach {percent(target)} ({seeds_of(next(iter(lines.values())))}): {'; '.join(said)}."
    )
    columns = f"method | numbers to {percent(target)} | rounds | best accuracy | numbers in all"
    return told(figure, "Accuracy against numbers sent", setting, sentence, tabled(columns, rows))


def amount(count: float) -> str:
    """1234567 -> '1.23 M'."""
    for unit in ("", " k", " M"):
        if abs(count) < 999.5:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} G"
