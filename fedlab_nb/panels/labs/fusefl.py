"""FuseFL's lab: its run step by step, clients with a spurious cue, fusion against calibration, storage and bytes,
probes by layer, and the shortcut in numbers.
"""

from __future__ import annotations

import ipywidgets as widgets

from ...draw import Picture
from ...draw.fusefl_network import live_step, network
from ...draw.fusefl_steps import steps
from ..lab_view import Extra, LabSpec, LabView, Look
from .fusefl_cue import SpuriousCue
from .fusefl_run import replay_of
from .fusefl_study import Halves, Probes
from .fusefl_sums import Arithmetic, TwoCues


class Steps(LabView):
    """A replay of the run: train, send, freeze, adapt, block after block, with the bytes so far."""

    name, title, ready = "steps", "Step by step", "live"
    empty = "Press Run, then step through what happened: train, send, freeze, adapt."

    def __init__(self) -> None:
        super().__init__()
        self.step = widgets.IntSlider(
            value=1, min=1, max=10, description="Step", tooltip="Which step of the run is drawn",
            layout={"width": "300px"}, style={"description_width": "38px"},
        )  # fmt: skip
        self.play = widgets.Play(value=1, min=1, max=10, interval=1500, tooltip="Play the steps one after the other")
        widgets.jslink((self.play, "value"), (self.step, "value"))
        self.back = widgets.Button(description="Back", tooltip="One step back", layout={"width": "64px"})
        self.next = widgets.Button(description="Next step", tooltip="One step on", layout={"width": "88px"})
        self.back.on_click(lambda _: self._move(-1))
        self.next.on_click(lambda _: self._move(+1))
        # In a box of their own Play and the buttons are no view controls: the slider that they move redraws.
        self.controls = [widgets.HBox([self.play, self.back, self.next]), self.step]

    def _move(self, by: int) -> None:
        self.step.value = min(max(self.step.value + by, self.step.min), self.step.max)

    def adapt(self, look: Look) -> None:
        last = len(steps(replay_of(look)))
        if self.step.max != last:
            self.step.max = self.play.max = last

    def draw(self, look: Look) -> Picture:
        replay = replay_of(look)
        if look.outcome is None:
            return live_step(replay, int(look.live["block"]), look.live["sent"], client=look.client)
        return network(replay, self.step.value - 1, client=look.client)


LAB = LabSpec(
    method="fusefl",
    companions=("fedavg", "ensemble"),
    knobs=("blocks", "adaptor", "head", "merge", "warm_start", "frozen_norm"),
    extras=(
        Extra(
            "spurious",
            "Spurious cue",
            (("no client", ""), ("client 0", "0"), ("clients 0 and 1", "0,1")),
            "Clients whose training images get a background that gives the label away; test images stay as they are",
        ),
        Extra(
            "model",
            "Network",
            (
                ("as usual", "auto"),
                ("five-layer CNN", "cnn:12"),
                ("ResNet-8, batch norm", "resnet8:8"),
            ),
            "What is cut into K blocks: the usual perceptron has two layers, so at most two blocks",
        ),
    ),
    settings={"alpha": 0.1, "clients": 5, "seeds": 1},
    views=(Steps, SpuriousCue, Halves, Arithmetic, Probes, TwoCues),
    name="fusefl",
)
