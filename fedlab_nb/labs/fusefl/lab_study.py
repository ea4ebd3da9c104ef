"""FuseFL's lab, the views of what a run made: clients with a spurious cue, fusion against calibration, probes."""

import itertools
from collections.abc import Generator
from typing import Any

import numpy as np
import torch

from ...methods import METHODS
from ...panels.state import PanelState
from ...plots import Picture
from ...plots.identity import short
from ...training import accuracy
from ..controls import offer
from ..runs import Steps, one_run, tries, where
from ..views import View
from .plots.cue import STRIP, TESTS, Cue, cue
from .plots.halves import halves
from .plots.probes import Probed, probes
from .probes import blocks_of, layers_of, probe
from .run import MOST, alone, by_classifier, with_and_without_cue

MOST_CLIENTS, MOST_TRAIN, MOST_TEST = 10, 2000, 1000


class SpuriousCue(View, name="cue"):
    """Each client's accuracy on its own images and outside, with and without the cue, and that of all together."""

    def __init__(self) -> None:
        super().__init__(test=[(words, name) for name, words in TESTS.items()])

    def adapt(self, state: PanelState) -> None:
        offer(self.test, ((TESTS[name], name) for name in state.prepared.outside), "clean")

    def prepare(self, state: PanelState) -> Generator[None, None, Cue]:
        settings, federation = state.outcome.settings, state.outcome.federation()
        data, plain = federation.dataset, settings.data()
        device, strength = settings.device, federation.tint or settings.tint
        clients = alone(state)
        yield
        marked = with_and_without_cue(data, strength, settings.seed, settings.cue)
        tests = {name: x.to(device) for name, x in marked.items()}
        y_test = data.y_test[:MOST].to(device)
        outside = {}
        for name, x in tests.items():
            outside[name] = [accuracy(own, y_test) for own in clients.logits(x).argmax(-1)]
            yield
        home, bare, images = [], [], []
        for m, (rows, _) in enumerate(federation.split(state.outcome.plan.holdout)):
            y, shown = data.y_train[rows[:MOST]].to(device), varied(rows, data.y_train)
            for source, accuracies in ((data, home), (plain, bare)):
                x = source.x_train[rows[:MOST]].to(device)
                accuracies.append(accuracy(clients.logits(x)[m].argmax(1), y))
            if x.ndim == 4:
                images.append((pictures(plain.x_train[shown]), pictures(data.x_train[shown])))
            yield
        systems = {}
        for method, outcomes in {**state.others, "fusefl": state.outcomes}.items():
            if settings.seed in outcomes:
                model = outcomes[settings.seed].model
                title = short(METHODS[method].info.title)
                systems[title] = {name: model.accuracy(x, y_test) for name, x in tests.items()}
                yield
        return Cue(where(state.outcome), federation.spurious, home, bare, outside, systems, images)

    def draw(self, state: PanelState) -> Picture:
        return cue(state.prepared, self.test.value, client=state.client)


def varied(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """A few of the samples `rows`, of as many classes as there are."""
    own = labels[rows].tolist()
    first = sorted(range(len(own)), key=lambda i: (own[:i].count(own[i]), i) if i < 200 else (200, i))
    return rows[first[:STRIP]]


def pictures(x: torch.Tensor) -> np.ndarray:
    """Images `[n, C, H, W]` as `[n, H, W]` or `[n, H, W, 3]`."""
    return x[:, 0].numpy() if x.shape[1] == 1 else x.permute(0, 2, 3, 1).numpy()


class Halves(View, name="halves"):
    """The same run with and without fusion, under each classifier."""

    def work(self, state: PanelState) -> Steps:
        """Run the same federation without fusion (K = 1) and calibrated, on the same seeds. Earlier runs are kept."""
        own = state.outcome.options
        wanted = [1 if own["blocks"] > 1 else 2] + [own["blocks"]] * (own["head"] != "ccvr")
        choices = {
            f"K = {blocks}, seed {seed}": {"seed": seed, "fusefl.blocks": blocks, "fusefl.head": "ccvr"}
            for blocks, seed in itertools.product(wanted, sorted(state.outcomes))
        }
        runs = yield from tries("fusefl", state.outcome.settings.keywords(), choices)
        return {"number": state.number, "outcomes": [o for by_seed in runs.values() for o in by_seed.values()]}

    def draw(self, state: PanelState) -> Picture:
        more = state.worked["outcomes"] if state.worked and state.worked["number"] == state.number else []
        heads = by_classifier([*state.outcomes.values(), *more])
        ensemble = {s: o.accuracy for s, o in state.others.get("ensemble", {}).items() if s in state.outcomes}
        return halves(heads, setting=state.setting, ensemble=ensemble, chance=1 / len(state.class_names))


class Probes(View, name="probes"):
    """What a linear classifier can read off every layer, of single clients and of their mean, fused and isolated."""

    def prepare(self, state: PanelState) -> Generator[None, None, Probed]:
        outcome, isolated = state.outcome, state.outcome
        if outcome.options["blocks"] > 1:  # the same federation, unfused
            unfused = {**outcome.settings.keywords(), "seeds": 1, "fusefl.blocks": 1, "fusefl.head": "average"}
            runs = yield from quietly(one_run("fusefl", unfused))
            isolated = runs[outcome.settings.seed]
        data, device = outcome.settings.data(), outcome.settings.device
        train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)
        x, y = (part[:MOST_TRAIN].to(device) for part in train)
        x_test, y_test = (part[:MOST_TEST].to(device) for part in test)
        curves = []
        for outputs, network in ((layers_of, isolated.model.module), (blocks_of, outcome.model.module)):
            points = []
            for point in probe(outputs(network, x), y, outputs(network, x_test), y_test, MOST_CLIENTS):
                points.append(point)
                yield
            curves.append(points)
        stages, clients = outcome.model.module.stages, outcome.settings.clients
        adaptors = [0] + [outcome.options["adaptor"] == "conv"] * (len(stages) - 1)
        sizes = [len(stage.branches[0]) - extra for stage, extra in zip(stages, adaptors, strict=True)]
        few = "" if clients <= MOST_CLIENTS else f" of the first {MOST_CLIENTS} clients"
        note = f"Probes{few} train on {len(y)} samples of all clients: no federation could do this."
        return Probed(*curves, list(itertools.accumulate(sizes)), where(outcome), note)

    def draw(self, state: PanelState) -> Picture:
        return probes(state.prepared, client=state.client)


def quietly(work: Steps) -> Generator[None, None, Any]:
    """A button's work without its words; what it returns."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
        yield
