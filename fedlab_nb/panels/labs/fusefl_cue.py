"""FuseFL's lab: clients with a spurious cue, at home and outside, with and without the cue."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch

from ...data import load
from ...data.tint import tint_background
from ...draw import Picture
from ...draw.fusefl_cue import STRIP, TESTS, Cue, cue
from ...methods import METHODS
from ...rng import generator
from ...training import accuracy
from ..lab_view import LabView, Look
from .fusefl_run import alone, federation_of, settings_of, where

NAMES = {"ensemble": "Ensemble", "fedavg": "FedAvg", "fusefl": "FuseFL"}
MOST = 2000  # test samples and samples of one client that are looked at, at most


class SpuriousCue(LabView):
    """Each client's accuracy on its own images and outside, with and without the cue, and that of all together."""

    name, title, ready = "cue", "Spurious cue", "run"
    empty = "Choose clients with a spurious cue at the left, and press Run: right at home, lost outside."

    def __init__(self) -> None:
        super().__init__()
        self.test = widgets.Dropdown(
            options=[(words, name) for name, words in TESTS.items()], value="clean", description="Test images",
            tooltip="As they are; with the background of their own class; or with that of a random class",
            style={"description_width": "80px"}, layout={"width": "310px"},
        )  # fmt: skip
        self.controls = [self.test]

    def adapt(self, look: Look) -> None:
        known = [(TESTS[name], name) for name in look.prepared["outside"]]
        if list(self.test.options) != known:
            before = self.test.value
            self.test.options = known
            self.test.value = before if any(before == name for _, name in known) else "clean"

    def prepare(self, look: Look) -> Generator[None, None, dict[str, Any]]:
        settings, federation = settings_of(look), federation_of(look)
        data, plain = federation.dataset, load(settings.dataset)
        place = {"device": look.outcome.setting["device"]}
        clients, _ = alone(look)
        yield
        tests = test_sets(data, federation.tint or settings.tint, settings.seed)
        y_test = data.y_test[:MOST].to(**place)
        outside = {}
        for name, x in tests.items():
            guesses = clients.logits(x.to(**place)).argmax(-1)
            outside[name] = [accuracy(own, y_test) for own in guesses]
            yield
        home, bare, images = [], [], []
        for m, (rows, _) in enumerate(federation.split(settings.holdout)):
            seen, y = rows[:MOST], data.y_train[rows[:MOST]].to(**place)
            home.append(accuracy(clients.logits(data.x_train[seen].to(**place))[m].argmax(1), y))
            bare.append(accuracy(clients.logits(plain.x_train[seen].to(**place))[m].argmax(1), y))
            shown = varied(rows, data.y_train)
            images.append(tuple(pictures(source.x_train[shown]) for source in (plain, data)))
            yield
        seed, systems = look.outcome.setting["seed"], {}
        runs = {**look.others, "fusefl": look.outcomes}
        for method in sorted(runs, key=lambda name: name == "fusefl"):
            if seed in runs[method]:
                model = runs[method][seed].model
                title = NAMES.get(method, METHODS[method].info.title)
                systems[title] = {name: model.accuracy(x.to(**place), y_test) for name, x in tests.items()}
                yield
        return {
            "marked": federation.spurious, "home": home, "bare": bare, "outside": outside, "systems": systems,
            "images": images, "setting": where(look),
        }  # fmt: skip

    def draw(self, look: Look) -> Picture:
        kept: Mapping[str, Any] = look.prepared
        shown = look.client if look.client is not None and look.client < len(kept["home"]) else None
        who = shown if shown is not None else min(kept["marked"], default=0)
        without, with_cue = kept["images"][who]
        data = Cue(
            kept["setting"], kept["marked"], kept["home"], kept["bare"], kept["outside"], kept["systems"], who,
            without, with_cue,
        )  # fmt: skip
        return cue(data, self.test.value, client=shown)


def test_sets(data: Any, strength: float, seed: int) -> dict[str, torch.Tensor]:
    """Test samples as they are and, of images, with the cue of their own class and with one drawn at random."""
    x, y = data.x_test[:MOST], data.y_test[:MOST]
    if x.ndim != 4:
        return {"clean": x}
    stream = generator(seed, "random cue")
    return {
        "clean": x,
        "tied": tint_background(x, y, strength, classes=data.classes),
        "untied": tint_background(x, y, strength, classes=data.classes, agree=0, generator=stream),
    }


def varied(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """A few of the samples `rows`, of as many classes as there are."""
    own = labels[rows].tolist()
    first = sorted(range(len(own)), key=lambda i: (own[:i].count(own[i]), i) if i < 200 else (200, i))
    return rows[first[:STRIP]]


def pictures(x: torch.Tensor) -> np.ndarray | None:
    """Images `[n, C, H, W]` as `[n, H, W]` or `[n, H, W, 3]`; None for feature rows."""
    if x.ndim != 4:
        return None
    return x[:, 0].numpy() if x.shape[1] == 1 else x.permute(0, 2, 3, 1).numpy()
