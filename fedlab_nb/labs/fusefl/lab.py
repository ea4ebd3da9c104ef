"""FuseFL's lab. Here: its run step by step, storage and bytes, and the shortcut in bits, which need no slow work.
`lab_study`: clients with a spurious cue, fusion against calibration, probes by layer.
"""

import ipywidgets as widgets

from ...panels.lab_view import Extra, LabSpec, LabView, PanelState
from ...plots import Picture
from ...study.settings import architectures
from ..controls import WIDE, dropdown, offer, whole_numbers
from .lab_study import Halves, Probes, SpuriousCue
from .plots.arithmetic import arithmetic
from .plots.network import network
from .plots.shortcut import shortcut
from .plots.steps import steps
from .run import replay_of
from .traffic import PAPER, TABLE_4, bill, layers

PAPER_BLOCKS = (2, 4, 8)
MOST_CLIENTS, MOST_BLOCKS, MOST_CLASSES = 50, 10, 100


class Steps(LabView):
    """A replay of the run: train, send, freeze, adapt, block after block, with the bytes so far."""

    name, title, ready = "steps", "Step by step", "live"
    empty = "Press Run, then step through what happened: train, send, freeze, adapt."

    def __init__(self) -> None:
        super().__init__()
        self.step = whole_numbers("Step", 1, 1, 10, "Which step of the run is drawn", layout={"width": "300px"})
        self.play = widgets.Play(value=1, min=1, max=10, interval=1500, tooltip="Play the steps one after the other")
        widgets.jslink((self.play, "value"), (self.step, "value"))
        self.back = widgets.Button(description="Back", tooltip="One step back", layout={"width": "64px"})
        self.next = widgets.Button(description="Next step", tooltip="One step on", layout={"width": "88px"})
        self.back.on_click(lambda _: self._move(-1))
        self.next.on_click(lambda _: self._move(+1))
        # In a box of their own Play and the buttons are no view controls: the slider that they move redraws.
        self.controls = [widgets.HBox([self.play, self.back, self.next]), self.step]

    def _move(self, by: int) -> None:
        self.step.value += by  # the slider stops at its ends

    def adapt(self, state: PanelState) -> None:
        self.step.max = self.play.max = len(steps(replay_of(state)))

    def draw(self, state: PanelState) -> Picture:
        step = None if state.outcome is None else self.step.value - 1
        return network(replay_of(state), step, client=state.client)


class Arithmetic(LabView):
    """Storage and traffic for any number of clients, blocks and adaptor; nothing is trained."""

    name, title, ready = "sums", "Storage and bytes", "always"

    def __init__(self) -> None:
        super().__init__()
        networks = (("ResNet-18, as in the paper", "paper"), ("this panel's", "own"))
        words = "Whose size is computed: the paper's network at 3×32×32, or the one that Run would train"
        self.network = dropdown("Network", networks, words, 250)
        self.clients = whole_numbers("M", 5, 2, MOST_CLIENTS, "How many clients", layout={"width": "190px"})
        self.blocks = dropdown("K", PAPER_BLOCKS, "Parts the network is cut into", 76)
        self.blocks.value = 4
        words = "A learnt map of everybody's channels, or the mean"
        self.adaptor = dropdown("Adaptor", ("conv", "average"), words, 160)
        self.controls = [self.network, self.clients, self.blocks, self.adaptor]

    def adapt(self, state: PanelState) -> None:
        if state.federation is None:
            self.network.value = "paper"
        own = self.network.value == "own"
        wanted = tuple(range(1, min(layers(own_network(state)), MOST_BLOCKS) + 1)) if own else PAPER_BLOCKS
        offer(self.blocks, wanted, min(2, wanted[-1]))

    def draw(self, state: PanelState) -> Picture:
        own = self.network.value == "own"
        architecture, blocks, adaptor = own_network(state) if own else PAPER, self.blocks.value, self.adaptor.value
        calibrated = state.knobs["head"] == "ccvr" or not own
        bills = [bill(architecture, m, blocks, adaptor, calibrated) for m in range(2, MOST_CLIENTS + 1)]
        printed = TABLE_4.get(self.clients.value, {}).get(blocks) if not own and adaptor == "conv" else None
        return arithmetic(bills, self.clients.value, network=named(architecture), adaptor=adaptor, printed=printed)


def own_network(state: PanelState) -> tuple:
    """The (first) architecture that Run would train at full width."""
    return architectures(state.settings.get("model", "auto"), 1, state.federation.dataset)[0]


def named(architecture: tuple) -> str:
    name, shape, classes, _ = architecture
    titles = {"resnet18": "ResNet-18", "mlp": "perceptron", "cnn": "five-layer CNN", "resnet8": "ResNet-8"}
    return f"{titles.get(name, name)}, input {'×'.join(map(str, shape))}, {classes} classes"


class TwoCues(LabView):
    """A real cue and a shortcut, exactly: what each tells of the label, in one client and over all."""

    name, title, ready = "cues", "Why the shortcut", "always"

    def __init__(self) -> None:
        super().__init__()
        share = {"max": 1, "step": 0.05, "readout_format": ".0%", "style": WIDE, "layout": {"width": "310px"}}
        words = "How often the real cue is the label's, beyond chance, at every client"
        self.real = widgets.FloatSlider(0.6, description="Real cue", tooltip=words, **share)
        words = "How often the spurious cue is the label's, beyond chance, in this one client"
        self.spurious = widgets.FloatSlider(0.9, description="Shortcut here", tooltip=words, **share)
        self.controls = [self.real, self.spurious]

    def draw(self, state: PanelState) -> Picture:
        classes = min(max(len(state.class_names), 2), MOST_CLASSES)
        return shortcut(classes, self.real.value, self.spurious.value)


CUES = (("no client", ""), ("client 0", "0"), ("clients 0 and 1", "0,1"))
CUES_HELP = "Clients whose training images get a background that gives the label away; test images stay as they are"
NETWORKS = (("as usual", "auto"), ("five-layer CNN", "cnn:12"), ("ResNet-8, batch norm", "resnet8:8"))
NETWORKS_HELP = "What is cut into K blocks: the usual perceptron has two layers, so at most two blocks"
LAB = LabSpec(
    method="fusefl",
    companions=("fedavg", "ensemble"),
    knobs=("blocks", "adaptor", "head", "merge", "warm_start", "frozen_norm"),
    extras=(Extra("spurious", "Spurious cue", CUES, CUES_HELP), Extra("model", "Network", NETWORKS, NETWORKS_HELP)),
    settings={"alpha": 0.1, "clients": 5, "seeds": 1},
    views=(Steps, SpuriousCue, Halves, Arithmetic, Probes, TwoCues),
    name="fusefl",
)
