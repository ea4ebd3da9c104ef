"""FENS' lab: phase 2 once more without a client, and one student that answers as FENS does."""

from __future__ import annotations

from statistics import mean

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.blank import blank
from ...draw.fens_distil import ALONE, AVERAGE, STUDENT, TEACHER, distilled
from ...draw.fens_forget import forget_each, forget_one
from ..lab_view import LabView, Look
from ..scene import words
from .fens_tries import WIDE, Steps, made_with, one_run, tried


class Forget(LabView):
    """Phase 2 without a client: what it alone had brought is gone."""

    name, title, ready = "forget", "Forget a client", "data"
    work_label = "Forget, and run phase 2 again"
    EACH = -1

    def __init__(self) -> None:
        super().__init__()
        self.who = widgets.Dropdown(
            options=[("each in turn", self.EACH)], description="Client", style=WIDE, layout={"width": "200px"},
            tooltip="Whose model and samples are left out of phase 2",
        )  # fmt: skip
        self.controls = [self.who]

    def adapt(self, look: Look) -> None:
        options = [("each in turn", self.EACH), *((f"client {k}", k) for k in range(look.federation.clients))]
        if list(self.who.options) != options:
            chosen = self.who.value
            self.who.options = options
            self.who.value = chosen if chosen in (value for _, value in options) else self.EACH

    def work(self, look: Look) -> Steps:
        """Run FENS with all clients, then without the chosen one, or without each of them in turn; the first seed."""
        settings = {k: v for k, v in look.settings.items() if k not in ("fens.without", "seeds")}
        gone = range(look.federation.clients) if self.who.value == self.EACH else [self.who.value]
        found, failed = yield from tried(settings, "fens.without", [-1, *gone])
        if failed:
            raise next(iter(failed.values()))
        outcomes = {k: next(iter(runs.values())) for k, runs in found.items()}
        return {"settings": dict(look.settings), "whole": outcomes.pop(-1), "without": outcomes}

    def draw(self, look: Look) -> Picture:
        found = look.worked
        who = self.who.value
        if found is None or (who != self.EACH and who not in found["without"]):
            text = f"Press “{self.work_label}”: phase 1 stays as it was, phase 2 is run without the client."
            return blank(text, setting=look.setting)
        whole, without = found["whole"], found["without"]
        setting = words({**found["settings"], "seeds": 1})
        before = np.array(whole.per_class, dtype=float)
        if who == self.EACH:
            change = np.full(whole.label_counts.shape, np.nan)
            for k, outcome in without.items():
                change[k] = np.array(outcome.per_class, dtype=float) - before
            picture = forget_each(
                change, whole.label_counts, look.class_names, setting=setting, client=look.client, klass=look.klass
            )
        else:
            picture = forget_one(
                before, np.array(without[who].per_class, dtype=float), whole.label_counts, look.class_names, who,
                setting=setting, total=(whole.accuracy, without[who].accuracy), klass=look.klass,
            )  # fmt: skip
        picture.sentence += made_with(found["settings"], look.settings)
        return picture


class Distil(LabView):
    """One network that learns to answer as FENS does, on public images."""

    name, title, ready = "distil", "Distil", "data"
    work_label = "Distil into one network"

    def work(self, look: Look) -> Steps:
        """Run FENS and teach one network on public images; the first seed."""
        settings = {k: v for k, v in look.settings.items() if k != "seeds"}
        steps = one_run(settings, **{"fens.distil": True})
        while True:
            try:
                phase, share = next(steps)
            except StopIteration as end:
                return {"settings": dict(look.settings), "outcome": next(iter(end.value.values()))}
            yield int(100 * share), 100, phase

    def draw(self, look: Look) -> Picture:
        if look.worked is None:
            text = f"Press “{self.work_label}”: at the server, a student learns FENS' answers to unlabelled images."
            return blank(text, setting=look.setting)
        outcome, then = look.worked["outcome"], look.worked["settings"]
        told, d, members = outcome.extras, outcome.parameters, len(outcome.artefacts["members"])
        picture = distilled(
            {
                ALONE: mean(told["member_accuracy"]), AVERAGE: told["average_accuracy"],
                TEACHER: told["teacher_accuracy"], STUDENT: outcome.accuracy,
            },
            {ALONE: d, AVERAGE: members * d, TEACHER: members * d + told["aggregator_parameters"], STUDENT: d},
            [p["accuracy"] for p in outcome.history if p["phase"] == "distillation"],
            setting=words({**then, "seeds": 1}), steps=outcome.setting["options"]["distil_steps"],
            images=told["public_images"], agreement=told["agreement"],
        )  # fmt: skip
        picture.sentence += made_with(then, look.settings)
        return picture
