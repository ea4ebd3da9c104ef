"""The Gaussian heads' lab: classes as images, what one client sends, and all heads side by side."""

import numpy as np

from ...methods.parts.gaussian_heads import HEADS
from ...panels.figures import words
from ...panels.state import PanelState
from ...plots import Picture
from .. import runs
from ..views import View, spec
from .plots.classes import classes
from .plots.heads import Tried, heads
from .plots.sent import sent

MIXTURES = {"none": "FedPFT, means", "diagonal": "FedPFT, diagonal", "full": "FedPFT, full"}
SHARED = ("features", "size", "features_seed")  # knobs that both methods have


def image_shape(state: PanelState) -> tuple[int, ...] | None:
    """The shape of an image if the run's features are its pixels."""
    shape = tuple(state.outcome.federation().dataset.input_shape)
    return shape if state.outcome.options["features"] == "pixels" and len(shape) == 3 else None


class Classes(View, name="pictures"):
    """Mean, deviation and draws of each class, from the sums of all clients."""

    def draw(self, state: PanelState) -> Picture:
        about = {"shape": image_shape(state), "setting": runs.where(state.outcome), "klass": state.klass}
        return classes(state.report, state.outcome.options["head"], state.class_names, seed=self.draws.value, **about)


class Sent(View, name="sent"):
    """One client's class means beside its own images; where features are no pixels, its means as the classes' view."""

    def draw(self, state: PanelState) -> Picture:
        outcome, client = state.outcome, state.client or 0
        if image_shape(state) is None or state.report.client_means is None:
            about = {"shape": None, "setting": runs.where(outcome), "klass": state.klass}
            return classes(state.report, outcome.options["head"], state.class_names, **about)
        client = min(client, len(state.report.counts) - 1)
        federation = outcome.federation()
        train, _ = federation.split(outcome.plan.holdout)[client]
        own = federation.dataset.x_train[train].numpy(), federation.dataset.y_train[train].numpy()
        setting = runs.where(outcome)
        return sent(state.report, client, own, state.class_names, setting=setting, klass=state.klass)


class Heads(View, name="heads"):
    """Every head, and FedPFT with three spreads, on the federation that the controls say."""

    def work(self, state: PanelState) -> runs.Steps:
        """Run every head, and FedPFT with three spreads, on the federation that the controls describe"""
        asked = {k.removeprefix("gauss."): v for k, v in state.settings.items()}
        features = {name: asked[name] for name in SHARED if name in asked}
        plain = {k: v for k, v in state.settings.items() if "." not in k and k not in (*SHARED, "head", "shrinkage")}
        plain["seeds"] = self.seeds.value
        made = {"gauss": {h: {"gauss.head": h} for h in HEADS}}
        made["fedpft"] = {name: {"fedpft.covariance": kind} for kind, name in MIXTURES.items()}
        tried = []
        for method, choices in made.items():
            settings = plain | {f"{method}.{name}": value for name, value in features.items()}
            for name, outcomes in (yield from runs.tries(method, settings, choices)).items():
                accuracies = {seed: o.accuracy for seed, o in outcomes.items()}
                up = np.mean([o.bytes_up / o.settings.clients for o in outcomes.values()])
                tried.append(Tried(method, name, accuracies, float(up)))
        return tried, words(plain)

    def draw(self, state: PanelState) -> Picture:
        tried, setting = state.worked or ([], state.setting)
        return heads(tried, setting=setting)


LAB = spec(__name__, Classes, Sent, Heads)
