"""Co-Boosting's lab: weights by hand and by epoch, synthetic images, teacher and student, the three switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.coboosting_curves import curves
from ...draw.coboosting_images import gallery
from ...draw.coboosting_weights import trajectories
from ...methods import METHODS
from ..lab_view import Extra, LabSpec, LabView, Look
from ..scene import words
from .coboosting_hand import Hand
from .coboosting_switches import Switches

NAMES = {"ensemble": "equal weights", "fedavg": "FedAvg", "dense": "DENSE", "feddf": "FedDF"}


def shown(look: Look) -> Mapping[str, np.ndarray]:
    """What the run has kept, or while it runs the newest it shows."""
    return look.outcome.artefacts if look.outcome is not None else look.live


def where(look: Look) -> str:
    """The setting of the one run that is shown, with its seed."""
    run = look.settings if look.outcome is None else {**look.settings, **_plain(look.outcome.setting)}
    return words({**run, "seeds": 1})


def _plain(setting: Mapping[str, Any]) -> dict[str, Any]:
    return {key: setting[key] for key in ("dataset", "alpha", "clients", "seed", "partition") if key in setting}


class Trajectories(LabView):
    """Each client's share of the ensemble's weight, epoch by epoch, beside what it holds."""

    name, title, ready = "weights", "Weights by epoch", "live"
    empty = "Press Run: the weights start equal, and EE moves them from the second epoch on."

    def draw(self, look: Look) -> Picture:
        path = shown(look)["weights"]
        held = look.outcome.label_counts if look.outcome is not None else look.federation.label_counts.numpy()
        if len(held) != path.shape[1]:  # the sliders moved on while the method runs
            held = np.zeros((path.shape[1], len(look.class_names)), dtype=int)
        return trajectories(
            path, held, look.class_names, setting=where(look), client=look.client, klass=look.klass,
            epochs=None if look.outcome is not None else look.knobs["epochs"],
        )  # fmt: skip


class Images(LabView):
    """The synthetic images of an epoch, and a replay over the epochs."""

    name, title, ready = "images", "Synthetic images", "live"
    empty = "Press Run: the generator's images appear here as they are made."

    def __init__(self) -> None:
        super().__init__()
        self.epoch = widgets.SelectionSlider(
            options=[("–", 0)], description="Server epoch", tooltip="Images of which epoch", layout={"width": "330px"},
            style={"description_width": "88px"},
        )  # fmt: skip
        self.play = widgets.Play(value=0, min=0, max=0, interval=700, tooltip="Replay the epochs")
        widgets.jslink((self.play, "value"), (self.epoch, "index"))
        # In a box of its own Play is no view control: the slider that it moves redraws.
        self.controls = [widgets.HBox([self.play]), self.epoch]

    def adapt(self, look: Look) -> None:
        epochs = [int(t) for t in shown(look).get("synthetic_epochs", ())]
        options = [(str(t), i) for i, t in enumerate(epochs)] or [("–", 0)]
        if list(self.epoch.options) != options:
            last = self.epoch.index in (None, len(self.epoch.options) - 1)
            index = len(options) - 1 if last else min(self.epoch.index, len(options) - 1)
            self.epoch.options = options
            self.epoch.index, self.play.max = index, len(options) - 1

    def draw(self, look: Look) -> Picture:
        kept, dataset = shown(look), look.federation.dataset
        frame = min(self.epoch.value, len(kept["synthetic_epochs"]) - 1)
        images, difficulty = kept["synthetic_images"][frame], kept["difficulty"]
        return gallery(
            images, kept["synthetic_labels"][frame], look.class_names, epoch=int(kept["synthetic_epochs"][frame]),
            epochs=len(difficulty) if look.outcome is not None else max(look.knobs["epochs"], len(difficulty)),
            difficulty=difficulty, disagreement=kept["disagreement"], setting=where(look), klass=look.klass,
            real=one_of_each(dataset) if dataset.x_test.shape[1:] == images.shape[1:] else None,
        )  # fmt: skip


def one_of_each(dataset: Any) -> np.ndarray | None:
    """The first test image of each class `[C, c, H, W]`, to look at; None where a class has none, or without images."""
    y = dataset.y_test.numpy()
    first = [int(rows[0]) for c in range(dataset.classes) if len(rows := np.flatnonzero(y == c))]
    images = dataset.x_test[first].numpy()
    return images if len(first) == dataset.classes and images.ndim == 4 else None


class TeacherAndStudent(LabView):
    """The ensemble's and the server model's accuracy by epoch, beside flat references."""

    name, title, ready = "curves", "Teacher and student", "run"
    empty = "Press Run: the ensemble's and the server model's accuracy by server epoch."

    def draw(self, look: Look) -> Picture:
        teacher = {seed: o.extras["ensemble_curve"] for seed, o in look.outcomes.items()}
        student = {seed: server_points(o) for seed, o in look.outcomes.items()}
        beside = {
            NAMES.get(method, METHODS[method].info.title): {s: o.accuracy for s, o in runs.items() if s in teacher}
            for method, runs in look.others.items()
        }
        return curves(
            teacher, {} if any(not points for points in student.values()) else student,
            {name: runs for name, runs in beside.items() if runs}, setting=look.setting,
            chance=1 / len(look.class_names),
        )  # fmt: skip


def server_points(outcome: Any) -> list[tuple[float, float]]:
    """(epoch, accuracy) of the server model; empty where the run predicted with the ensemble."""
    if outcome.setting.get("options", {}).get("answer") == "ensemble":
        return []
    epochs = len(outcome.extras["ensemble_curve"])
    found = [p for p in outcome.history if p["phase"] == "distillation"]
    return [(round((2 * p["progress"] - 1) * epochs), p["accuracy"]) for p in found]


LAB = LabSpec(
    method="coboosting",
    companions=("fedavg", "ensemble"),
    knobs=("ghs", "dhs", "ee", "mu", "epsilon", "beta", "weighted", "updates", "epochs"),
    extras=(
        Extra(
            "partition",
            "Partition",
            (("Dirichlet (α)", "dirichlet"), ("two classes each", "classes"), ("unequal sizes (α)", "quantity")),
            "How the training samples are dealt out; α is used by Dirichlet and by unequal sizes",
        ),
        Extra(
            "model",
            "Client models",
            (("all alike", "auto"), ("MLP and LeNet-5 in turn", "mlp,lenet5")),
            "Only logits are mixed, so clients may differ; FedAvg then has nothing to average",
        ),
    ),
    settings={"alpha": 0.1, "seeds": 1},
    views=(Hand, Trajectories, Images, TeacherAndStudent, Switches),
    name="coboosting",
)
