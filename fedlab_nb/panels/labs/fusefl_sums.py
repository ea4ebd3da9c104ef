"""FuseFL's lab: what needs no run. Storage and bytes by arithmetic, and the two cues of a client in bits."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from ...draw import Picture
from ...draw.fusefl_arithmetic import Cost, arithmetic
from ...draw.fusefl_shortcut import Bits, shortcut
from ...methods.parts.fused_size import TABLE_4, Bill, bill, layers
from ...methods.parts.two_cues import CUES, two_cues
from ...study.settings import architectures
from ..lab_view import LabView, Look

PAPER = ("resnet18", (3, 32, 32), 10, 64)
PAPER_BLOCKS = (2, 4, 8)
MOST_CLIENTS, MOST_BLOCKS, MOST_CLASSES = 50, 10, 100


class Arithmetic(LabView):
    """Storage and traffic for any number of clients, blocks and adaptor; nothing is trained."""

    name, title, ready = "sums", "Storage and bytes", "always"

    def __init__(self) -> None:
        super().__init__()
        short = {"description_width": "58px"}
        self.network = widgets.Dropdown(
            options=[("ResNet-18, as in the paper", "paper"), ("this panel's", "own")], description="Network",
            tooltip="Whose size is computed: the paper's network at 3×32×32, or the one that Run would train",
            style=short, layout={"width": "250px"},
        )  # fmt: skip
        self.clients = widgets.IntSlider(
            5, 2, MOST_CLIENTS, description="M", tooltip="How many clients", style={"description_width": "20px"},
            layout={"width": "190px"},
        )  # fmt: skip
        self.blocks = widgets.Dropdown(
            options=PAPER_BLOCKS, value=4, description="K", tooltip="Parts the network is cut into",
            style={"description_width": "16px"}, layout={"width": "76px"},
        )  # fmt: skip
        self.adaptor = widgets.Dropdown(
            options=["conv", "average"], description="Adaptor", style=short,
            tooltip="A learnt map of everybody's channels, or the mean",
            layout={"width": "160px"},
        )  # fmt: skip
        self.controls = [self.network, self.clients, self.blocks, self.adaptor]

    def adapt(self, look: Look) -> None:
        if look.federation is None:
            self.network.value = "paper"
        own = self.network.value == "own"
        wanted = tuple(range(1, min(layers(own_network(look)), MOST_BLOCKS) + 1)) if own else PAPER_BLOCKS
        if tuple(self.blocks.options) != wanted:
            before = self.blocks.value
            self.blocks.options = wanted
            self.blocks.value = before if before in wanted else min(2, wanted[-1])

    def draw(self, look: Look) -> Picture:
        own = self.network.value == "own"
        architecture, blocks, adaptor = own_network(look) if own else PAPER, self.blocks.value, self.adaptor.value
        calibrated = look.knobs.get("head", "ccvr") == "ccvr"
        costs = [
            cost(bill(architecture, clients, blocks, adaptor, calibrated or not own))
            for clients in range(2, MOST_CLIENTS + 1)
        ]
        printed = TABLE_4.get(self.clients.value, {}).get(blocks) if not own and adaptor == "conv" else None
        return arithmetic(costs, self.clients.value, network=named(architecture), adaptor=adaptor, printed=printed)


def own_network(look: Look) -> tuple:
    """The (first) architecture that Run would train at full width."""
    return architectures(look.settings.get("model", "auto"), 1, look.federation.dataset)[0]


def named(architecture: tuple) -> str:
    name, shape, classes, _ = architecture
    title = {"resnet18": "ResNet-18", "mlp": "perceptron", "cnn": "five-layer CNN", "resnet8": "ResNet-8"}.get(
        name, name
    )
    return f"{title}, input {'×'.join(map(str, shape))}, {classes} classes"


def cost(made: Bill) -> Cost:
    return Cost(
        made.clients, made.parts.width, made.blocks, made.adaptors, made.head, made.up, made.down, made.part,
        made.initial, made.statistics, made.single,
    )  # fmt: skip


class TwoCues(LabView):
    """A real cue and a shortcut, exactly: what each tells of the label, in one client and over all."""

    name, title, ready = "cues", "Why the shortcut", "always"

    def __init__(self) -> None:
        super().__init__()
        same: dict[str, Any] = {"style": {"description_width": "92px"}, "layout": {"width": "310px"}}
        self.real = widgets.FloatSlider(
            0.6, min=0, max=1, step=0.05, readout_format=".0%", description="Real cue",
            tooltip="How often the real cue is the label's, beyond chance, at every client", **same,
        )  # fmt: skip
        self.spurious = widgets.FloatSlider(
            0.9, min=0, max=1, step=0.05, readout_format=".0%", description="Shortcut here",
            tooltip="How often the spurious cue is the label's, beyond chance, in this one client", **same,
        )  # fmt: skip
        self.controls = [self.real, self.spurious]

    def draw(self, look: Look) -> Picture:
        classes = min(max(len(look.class_names), 2), MOST_CLASSES)
        here, everywhere = (
            tuple(Bits(**two_cues(classes, self.real.value, rho)[which]) for which in CUES)
            for rho in (self.spurious.value, 0.0)
        )
        return shortcut(here, everywhere, real=self.real.value, spurious=self.spurious.value, classes=classes)
