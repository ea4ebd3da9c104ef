"""Fed-ET's lab: rounds, live and as a replay; and what needs runs of its own: the same run with other public data or
fewer of them, and FedAvg of the large model and of the smallest one, to set traffic against.
"""

from typing import Any, NamedTuple

from ...data import DATASETS, load
from ...methods.parts.images import OWN
from ...panels.state import PanelState
from ...plots import Picture
from ...plots.kit import blank
from ..runs import Steps, tries, where
from ..views import View
from .numbers import by_round, loop_curves, student_points
from .plots.public import Choice, public
from .plots.rounds import one_shot, rounds
from .plots.traffic import traffic

SIZES = (20, 50, 100, 0)  # of public samples; 0: all
FEWEST = 10  # rounds of FedAvg beside a one-shot run


class Rounds(View, name="rounds"):
    """The large model between two overwritings of its head, the small ones, and dissent; for one shot the student."""

    _of: Any = None

    @staticmethod
    def _options(state: PanelState) -> Any:
        """The knobs of what is shown."""
        return state.knobs if state.outcome is None else state.outcome.options

    def adapt(self, state: PanelState) -> None:
        """While it runs the newest round is marked; a new outcome is seen from its end."""
        total = self._options(state)["rounds"]
        for widget in (self.round, self.play):
            widget.max = max(total, 1)
            widget.disabled = total == 1
        if state.outcome is None:
            self.round.value = len(state.report.chosen)
        elif state.outcome is not self._of:
            self._of = state.outcome
            self.round.value = total

    def draw(self, state: PanelState) -> Picture:
        total, steps = (self._options(state)[knob] for knob in ("rounds", "one_shot_steps"))
        if total > 1:
            curves = loop_curves(state.report, history(state), total)
            return rounds(curves, setting=where(state), marked=min(self.round.value, total), total=total)
        runs = {seed: outcome.history for seed, outcome in state.outcomes.items()} or {0: history(state)}
        student = {seed: student_points(points, steps) for seed, points in runs.items()}
        return one_shot(student, {s: o.report for s, o in state.outcomes.items()}, setting=state.setting)


def history(state: PanelState) -> Any:
    """Points of the curve: of the outcome, or of the run so far."""
    if state.outcome is not None:
        return state.outcome.history
    row = state.runs.find("fedet")
    return next(iter(row.live.values()), []) if row is not None else []


class Tried(NamedTuple):
    """{name: {seed: outcome}} of the choices that a view has tried, beside which run, and what `heading` they have."""

    outcomes: dict[str, dict[int, Any]]
    run: int
    setting: str
    heading: str = ""


class Public(View, name="public"):
    """The same clients, other public data: one student for each choice."""

    def _choices(self, state: PanelState) -> dict[str, dict[str, Any]]:
        """Name -> changed settings."""
        dataset = state.outcome.settings.dataset
        data = load(dataset)
        own = OWN if data.x_public is not None and len(data.x_public) else ()
        if self.vary.value == "size" and own:
            most = len(data.x_public)
            return {f"{n or most} samples": {"fedet.public_size": n, "fedet.public": OWN[0]} for n in SIZES if n < most}
        if self.vary.value == "size":
            return {f"{n} samples of noise": {"fedet.public_size": n, "fedet.public": "noise"} for n in (50, 200, 1000)}
        others = [name for name in ("digits", "glyphs") if name != dataset.partition(":")[0]]
        foreign = others if data.x_train.dim() == 4 else []
        return {title(name): {"fedet.public": name, "fedet.public_size": 0} for name in (*own, *foreign, "noise")}

    def work(self, state: PanelState) -> Steps:
        """Run Fed-ET again with each choice of public data. All other settings are those of the run that is shown."""
        heading = "By number of samples" if self.vary.value == "size" else "By source"
        outcomes = yield from tries("fedet", state.runs.find("fedet").settings, self._choices(state))
        return Tried(outcomes, state.number, state.setting, heading)

    def draw(self, state: PanelState) -> Picture:
        tried = state.worked
        if tried is None:
            text = "Press “Try them”. One student is then trained for each choice of public data."
            return blank(text, setting=where(state))
        choices = [Choice.of(name, outcomes) for name, outcomes in tried.outcomes.items()]
        ran = "" if tried.run == state.number else f" (run {tried.run})"
        present = "" if tried.heading != "By source" or ran else title(state.outcome.options["public"])
        chance = 1 / len(state.class_names)
        return public(choices, setting=tried.setting, title=tried.heading + ran, chance=chance, present=present)


def title(source: str) -> str:
    """A source of public data as people say it."""
    words = {"held-out": "held-out part", "other-mix": "half the classes", "noise": "noise"}
    return words.get(source) or DATASETS[source].title.lower()


class Traffic(View, name="traffic"):
    """Accuracy against numbers sent and against rounds, with FedAvg of the large and of the smallest model."""

    def work(self, state: PanelState) -> Steps:
        """Run FedAvg with the server's model, and with the clients' smallest one. The rounds and local steps are about
        the same (in one shot: 10 rounds of 2 epochs). All clients take part in every round.
        """
        outcome, report = state.outcome, state.report
        total, epochs = outcome.options["rounds"], 2
        if total == 1:
            total = FEWEST
        else:
            seen = (1 - outcome.plan.holdout) * outcome.label_counts.sum() / len(outcome.label_counts)
            epochs = max(1, round(outcome.options["local_steps"] * outcome.recipe.batch_size / seen))
        sizes = dict(zip(dict.fromkeys(report.architectures), report.small_parameters, strict=True))
        models = {"FedAvg, large": report.server, "FedAvg, smallest": min(sizes, key=sizes.__getitem__)}
        rounds = {"fedavg_multi.rounds": total, "fedavg_multi.local_epochs": epochs}
        plain = {k: v for k, v in state.runs.find("fedet").settings.items() if not k.startswith("fedet.")}
        choices = {f"{name} ({model})": {"model": model, **rounds} for name, model in models.items()}
        return Tried((yield from tries("fedavg_multi", plain, choices)), state.number, state.setting)

    def draw(self, state: PanelState) -> Picture:
        return traffic(traffic_lines(state), setting=state.setting, target=self.goal.value)


def traffic_lines(state: PanelState) -> dict[str, dict[int, list[tuple[int, float, float]]]]:
    """{method: {seed: points by round}} of what the view “Traffic” shows, Fed-ET first."""
    outcomes = {"Fed-ET": state.outcomes}
    if state.worked is not None:
        ran = "" if state.worked.run == state.number else f", run {state.worked.run}"
        outcomes |= {f"{name}{ran}": of for name, of in state.worked.outcomes.items()}
    return {name: {seed: by_round(outcome) for seed, outcome in of.items()} for name, of in outcomes.items()}
