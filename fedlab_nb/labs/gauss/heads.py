"""Accuracy against the bytes that a client sends, for every picture of a class: from the mean alone to a covariance."""

from collections.abc import Sequence

import ipywidgets as widgets
import numpy as np

from ...methods.parts.gaussian_heads import HEADS
from ...panels import LabView, PanelState, made, words
from ...plots import Picture, Series, blank, data_size, drawing, dress, listed, percent, tabled, told
from ...plots.kit import points
from ...plots.words import seed_words
from .. import runs

MIXTURES = {"none": "FedPFT, means", "diagonal": "FedPFT, diagonal", "full": "FedPFT, full"}
SHARED = ("features", "size", "features_seed")  # knobs that both methods have


class Heads(LabView):
    """Every head, and FedPFT with three spreads, on the federation that the controls say."""

    name, title, ready, work_label = "heads", "All heads", "always", "Run all heads"

    def __init__(self) -> None:
        help, ends = "How many federations each head is run on", {"value": 3, "min": 1, "max": 10}
        self.seeds = made(widgets.IntSlider, label="Seeds", help=help, width=200, **ends)

    def work(self, state: PanelState) -> runs.Steps:
        """Run every head, and FedPFT with three spreads, on the federation that the controls describe"""
        asked = {k.removeprefix("gauss."): v for k, v in state.settings.items()}
        features = {name: asked[name] for name in SHARED if name in asked}
        plain = {k: v for k, v in state.settings.items() if "." not in k and k not in (*SHARED, "head", "shrinkage")}
        plain["seeds"] = self.seeds.value
        variants = {"gauss": {h: {"gauss.head": h} for h in HEADS}}
        variants["fedpft"] = {name: {"fedpft.covariance": kind} for kind, name in MIXTURES.items()}
        tried = []
        for method, choices in variants.items():
            settings = plain | {f"{method}.{name}": value for name, value in features.items()}
            for name, outcomes in (yield from runs.tries(method, settings, choices)).items():
                accuracies = {seed: o.accuracy for seed, o in outcomes.items()}
                up = np.mean([o.bytes_up / o.settings.clients for o in outcomes.values()])
                tried.append(Series(name, method=method, accuracies=accuracies, up=float(up)))
        return tried, words(plain)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            return blank(f"Nothing has been run yet; press “{self.work_label}”.", setting=state.setting)
        return heads(*state.worked)


def heads(tried: Sequence[Series], setting: str) -> Picture:
    """A point a classifier. tried: `up` is the mean of a client's bytes"""
    with drawing() as (figure, ax):
        dress(ax, x="bytes that a client sends", y="accuracy", grid="y")
        points(ax, tried, low=max(0.0, 0.9 * min(min(s.accuracies.values()) for s in tried)))
    order = listed([f"{s.name} ({percent(s.mean)}, {data_size(s.up)})" for s in sorted(tried, key=lambda s: s.mean)])
    rows = ((s.name, seed_words(s.accuracies), data_size(s.up)) for s in tried)
    table = tabled("classifier | accuracy | bytes up of a client", rows)
    text = f"From the least to the most accurate, {tried[0].seeds}: {order}."
    return told(figure, "Accuracy against a client's bytes for classifiers on frozen features", setting, text, table)
