"""FuseFL's lab. Here: its run step by step, storage and bytes, and the shortcut in bits, which need no slow work.
`lab_study`: clients with a spurious cue, fusion against calibration, probes by layer.
"""

import ipywidgets as widgets

from ...panels.state import PanelState
from ...plots import Picture
from ...study.settings import architectures
from ..controls import offer
from ..views import View, spec
from .lab_study import Halves, Probes, SpuriousCue
from .plots.arithmetic import arithmetic
from .plots.network import network
from .plots.shortcut import shortcut
from .plots.steps import steps
from .run import replay_of
from .traffic import PAPER, TABLE_4, bill, layers

PAPER_BLOCKS = (2, 4, 8)
MOST_BLOCKS, MOST_CLASSES = 10, 100


class Steps(View, name="steps"):
    """A replay of the run: train, send, freeze, adapt, block after block, with the bytes so far."""

    def __init__(self) -> None:
        super().__init__()
        self.back = widgets.Button(description="Back", tooltip="One step back", layout={"width": "64px"})
        self.next = widgets.Button(description="Next step", tooltip="One step on", layout={"width": "88px"})
        self.back.on_click(lambda _: self._move(-1))
        self.next.on_click(lambda _: self._move(+1))
        self.controls[0].children += self.back, self.next  # beside Play: no view controls, either

    def _move(self, by: int) -> None:
        self.step.value += by  # the slider stops at its ends

    def adapt(self, state: PanelState) -> None:
        self.step.max = self.play.max = len(steps(replay_of(state)))

    def draw(self, state: PanelState) -> Picture:
        step = None if state.outcome is None else self.step.value - 1
        return network(replay_of(state), step, client=state.client)


class Arithmetic(View, name="sums"):
    """Storage and traffic for any number of clients, blocks and adaptor; nothing is trained."""

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
        axis = range(self.clients.min, self.clients.max + 1)
        bills = [bill(architecture, m, blocks, adaptor, calibrated) for m in axis]
        printed = TABLE_4.get(self.clients.value, {}).get(blocks) if not own and adaptor == "conv" else None
        return arithmetic(bills, self.clients.value, network=named(architecture), adaptor=adaptor, printed=printed)


def own_network(state: PanelState) -> tuple:
    """The (first) architecture that Run would train at full width."""
    return architectures(state.settings.get("model", "auto"), 1, state.federation.dataset)[0]


def named(architecture: tuple) -> str:
    name, shape, classes, _ = architecture
    titles = {"resnet18": "ResNet-18", "mlp": "perceptron", "cnn": "five-layer CNN", "resnet8": "ResNet-8"}
    return f"{titles.get(name, name)}, input {'×'.join(map(str, shape))}, {classes} classes"


class TwoCues(View, name="cues"):
    """A real cue and a shortcut, exactly: what each tells of the label, in one client and over all."""

    def draw(self, state: PanelState) -> Picture:
        classes = min(max(len(state.class_names), 2), MOST_CLASSES)
        return shortcut(classes, self.real.value, self.spurious.value)


LAB = spec(__name__, Steps, SpuriousCue, Halves, Arithmetic, Probes, TwoCues)
