"""Fed-ET's lab: what needs runs of its own. The same run with other public data or fewer of them; and FedAvg of the
large model and of the smallest one, to set traffic against. What was run before answers at once.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from statistics import mean
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...data import DATASETS, load
from ...draw import Picture
from ...draw.blank import blank
from ...draw.fedet_public import SHOWN, Choice, public
from ...draw.fedet_traffic import traffic
from ...methods.parts.public import OWN
from ..lab_view import LabView, Look
from .fedet_weights import WIDE, where

SIZES = (20, 50, 100, 0)  # of public samples; 0: all
FEWEST = 10  # rounds of FedAvg beside a one-shot run
Steps = Generator[tuple[int, int, str], None, Any]


def one_run(method: str, settings: Mapping[str, Any], done: int, total: int, words: str) -> Steps:
    """`method` with `settings`, as part `done` of `total` of a view's work: returns {seed: outcome}."""
    from ...study import job

    outcomes = {}
    for event in job(method, **settings):
        if event.error is not None:
            raise event.error
        if event.outcome is not None:
            outcomes[event.seed] = event.outcome
        share = (len(outcomes) + event.done / max(event.total, 1)) / settings.get("seeds", 1)
        yield done * 100 + int(min(99, 100 * share)), total * 100, f"{words}, {event.phase}"
    return outcomes


def made_of(look: Look) -> dict[str, Any]:
    """What the run that is shown was called with."""
    return dict(look.record.find("fedet").settings)


class Public(LabView):
    """The same clients, other public data: one student for each choice."""

    name, title, ready, work_label = "public", "Public data", "run", "Try them"
    empty = "Press Run, then “Try them”: one student for each choice of public data."

    def __init__(self) -> None:
        super().__init__()
        self.vary = widgets.ToggleButtons(
            options=(("sources", "source"), ("sizes", "size")), description="Compare", style=WIDE,
            tooltip="Where public samples come from, or how many there are",
        )  # fmt: skip
        self.vary.style.button_width = "80px"
        self.controls = [self.vary]

    def _choices(self, look: Look) -> dict[str, dict[str, Any]]:
        """Name -> changed settings."""
        data = load(look.outcome.setting["dataset"])
        images = data.x_train.dim() == 4
        own = OWN if data.x_public is not None and len(data.x_public) else ()
        if self.vary.value == "size" and own:
            most = len(data.x_public)
            return {f"{n or most} samples": {"fedet.public_size": n, "fedet.public": OWN[0]} for n in SIZES if n < most}
        if self.vary.value == "size":
            return {f"{n} samples of noise": {"fedet.public_size": n, "fedet.public": "noise"} for n in (50, 200, 1000)}
        foreign = [name for name in ("digits", "glyphs") if name != look.outcome.setting["dataset"]]
        sources = [*own, *(foreign if images else ()), "noise"]
        return {title(name): {"fedet.public": name, "fedet.public_size": 0} for name in sources}

    def work(self, look: Look) -> Steps:
        """Run Fed-ET again with each choice of public data, all else as in the run that is shown."""
        choices, settings, found = self._choices(look), made_of(look), {}
        for i, (name, changes) in enumerate(choices.items()):
            found[name] = yield from one_run("fedet", {**settings, **changes}, i, len(choices), name)
        rows = []
        for name, outcomes in found.items():
            first = next(iter(outcomes.values()))
            samples = first.artefacts["samples"]
            images = samples[:SHOWN].transpose(0, 2, 3, 1) if samples.ndim == 4 else None
            if images is not None and images.shape[-1] != 3:
                images = images[..., 0]
            rows.append(
                Choice(
                    name, {s: o.accuracy for s, o in outcomes.items()},
                    float(mean(o.extras["dissent"] for o in outcomes.values())),
                    round(mean(o.extras["public_samples"] for o in outcomes.values())), images,
                )
            )  # fmt: skip
        return {"rows": rows, "run": look.number, "setting": look.setting, "size": self.vary.value == "size"}

    def draw(self, look: Look) -> Picture:
        found = look.worked
        if found is None:
            return blank("Press “Try them”: one student for each choice of public data.", setting=where(look))
        ran = "" if found["run"] == look.number else f" (run {found['run']})"
        options = look.outcome.setting["options"]
        chance = 1 / len(look.class_names)
        heading = ("By number of samples" if found["size"] else "By source") + ran
        present = "" if found["size"] or ran else title(options["public"])
        return public(found["rows"], setting=found["setting"], title=heading, chance=chance, present=present)


def title(source: str) -> str:
    """A source of public data as people say it."""
    words = {"held-out": "held-out part", "other-mix": "half the classes", "noise": "noise"}
    return words.get(source) or DATASETS[source].title.lower()


class Traffic(LabView):
    """Accuracy against numbers sent and against rounds, with FedAvg of the large and of the smallest model."""

    name, title, ready, work_label = "traffic", "Traffic", "run", "Run FedAvg beside it"
    empty = "Press Run: accuracy against the numbers that were sent, and against rounds."

    def __init__(self) -> None:
        super().__init__()
        self.goal = widgets.FloatSlider(
            0.6, min=0.2, max=0.98, step=0.02, description="Accuracy to reach", readout_format=".0%", style=WIDE,
            tooltip="The traffic until this accuracy is first reached is compared", layout={"width": "330px"},
        )  # fmt: skip
        self.controls = [self.goal]

    def work(self, look: Look) -> Steps:
        """FedAvg of the server's model and of the clients' smallest one, as many rounds and about as many local steps
        (one shot: 10 rounds of 2 epochs); all clients take part in every round.
        """
        outcome, settings = look.outcome, made_of(look)
        options, extras = outcome.setting["options"], outcome.extras
        kinds = list(dict.fromkeys(extras["architectures"]))
        sizes = [extras["small_parameters"][i] for i in range(len(kinds))]
        smallest = kinds[int(np.argmin(sizes))]
        total, epochs = options["rounds"], 2
        if total == 1:
            total = FEWEST
        else:
            seen = (1 - outcome.setting["holdout"]) * outcome.label_counts.sum() / len(outcome.label_counts)
            epochs = max(1, round(options["local_steps"] * outcome.setting["recipe"]["batch_size"] / seen))
        plain = {k: v for k, v in settings.items() if not k.startswith("fedet.")}
        found = {}
        for i, (name, model) in enumerate({"FedAvg, large": extras["server"], "FedAvg, smallest": smallest}.items()):
            changes = {"model": model, "fedavg_multi.rounds": total, "fedavg_multi.local_epochs": epochs}
            done = yield from one_run("fedavg_multi", {**plain, **changes}, i, 2, f"{name} ({model})")
            found[f"{name} ({model})"] = {seed: by_round(o, total) for seed, o in done.items()}
        return {"lines": found, "run": look.number}

    @staticmethod
    def lines(look: Look) -> dict[str, dict[int, list[tuple[int, float, float]]]]:
        """{method: {seed: points by round}}, Fed-ET first."""
        total = look.outcome.setting["options"]["rounds"]
        found = {"Fed-ET": {seed: by_round(o, total) for seed, o in look.outcomes.items()}}
        if look.worked is not None:
            ran = "" if look.worked["run"] == look.number else f", run {look.worked['run']}"
            found |= {f"{name}{ran}": of for name, of in look.worked["lines"].items()}
        return found

    def draw(self, look: Look) -> Picture:
        return traffic(self.lines(look), setting=where(look, every_seed=True), target=self.goal.value)


def by_round(outcome: Any, total: int) -> list[tuple[int, float, float]]:
    """(round, numbers of 4 bytes sent so far, accuracy) at the end of each round that the curve shows."""
    if total == 1:
        return [(1, outcome.ledger.total / 4, outcome.accuracy)]
    points = [p for p in outcome.history if p["phase"] == "rounds"]
    return [(round(p["progress"] * total), p["bytes"] / 4, p["accuracy"]) for p in points]
