"""What FuseFL costs, as arithmetic: the size of the fused model against one ordinary network and an ensemble of M, and
the bytes of one client, up and down; from an architecture, M, K and the adaptor to bytes, without a network.

Networks are counted without their numbers, so that a slider need not wait for eleven million weights. Bytes are of
parameters alone, as in the paper's tables, so without batch norm's running statistics.
"""

import functools
from typing import NamedTuple

import torch
from ipywidgets import Dropdown, IntSlider

from ...comm import formulas
from ...methods.fusefl.blocks import Client, narrow, size
from ...models import MODELS, Network
from ...models.build import default_width
from ...panels import LabView, PanelState, made, offer
from ...plots import Picture, drawing, dress, legend, tabled, told
from ...plots.kit import stacked
from ...plots.style import INK, SECOND
from ...studies.settings import architectures

WHICH = "The network whose size is computed: the paper's, for images of 3×32×32, or the one that Run trains"
ADAPTOR = "A learnt layer that reads the channels of all clients, or their mean"
COLOURS = {
    "blocks": "#56B4E9", "adaptors": SECOND, "classifier": "#009E73", "class statistics": "#CC79A7",
    "whole network": "#7f8a94",
}  # fmt: skip
TITLES = {"resnet18": "ResNet-18", "mlp": "perceptron", "cnn": "five-layer CNN", "resnet8": "ResNet-8"}
PAPER_BLOCKS, MOST_BLOCKS = (2, 4, 8), 10
PAPER = ("resnet18", (3, 32, 32), 10, 64)  # the paper's ordinary network: name, input, classes, width
TABLE_4 = {  # the paper's storage with the conv adaptor, MiB: {M: {K: MiB}}
    5: {2: 53.71, 4: 55.38, 8: 68.08},
    10: {2: 42.32, 4: 44.92, 8: 64.77},
    20: {2: 42.13, 4: 47.22, 8: 86.11},
    50: {2: 45.48, 4: 58.63, 8: 159.08},
}


class Storage(LabView):
    """Storage and traffic for any number of clients, blocks and adaptor; nothing is trained."""

    name, title, ready = "sums", "Storage and bytes", "always"

    def __init__(self) -> None:
        which = [("ResNet-18, as in the paper", "paper"), ("this panel's", "own")]
        many, cut = "How many clients there are (M)", "How many blocks the network is cut into (K)"
        self.network = made(Dropdown, label="Network", help=WHICH, width=250, options=which)
        self.clients = made(IntSlider, label="M", help=many, width=190, value=5, min=2, max=50)
        self.blocks = made(Dropdown, label="K", help=cut, width=76, options=PAPER_BLOCKS, value=4)
        self.adaptor = made(Dropdown, label="Adaptor", help=ADAPTOR, width=160, options=["conv", "average"])

    def adapt(self, state: PanelState) -> None:
        if state.federation is None:
            self.network.value = "paper"
        own = self.network.value == "own"
        wanted = tuple(range(1, min(layers(own_network(state)), MOST_BLOCKS) + 1)) if own else PAPER_BLOCKS
        offer(self.blocks, wanted, min(2, wanted[-1]))

    def draw(self, state: PanelState) -> Picture:
        own = self.network.value == "own"
        architecture = own_network(state) if own else PAPER
        calibrated = state.knobs["head"] == "ccvr" or not own
        return storage(architecture, self.clients.value, self.blocks.value, self.adaptor.value, calibrated)


def own_network(state: PanelState) -> tuple:
    """The (first) architecture that Run would train at full width."""
    return architectures(state.settings.get("model", "auto"), 1, state.federation.dataset)[0]


# ------------------------------------------------------------------------------------------------ numbers
class Parts(NamedTuple):
    """Numbers of one client's blocks, channels at the K - 1 borders between them, numbers of the classifier, its D."""

    blocks: tuple[int, ...]
    channels: tuple[int, ...]
    head: int
    features: int
    width: int


class Bill(NamedTuple):
    """Bytes of FuseFL for M clients. Storage of the fused model: blocks, adaptors, classifier (head).

    Of one client: `up` and `down` by round, the classifier and CCVR's statistics (upper triangles, all C classes) up,
    first weights down. `single`: the ordinary network.
    """

    parts: Parts
    clients: int
    blocks: int
    adaptors: int
    head: int
    up: tuple[int, ...]
    down: tuple[int, ...]
    initial: int
    statistics: int
    single: int

    @property
    def storage(self) -> int:
        return self.blocks + self.adaptors + self.head

    @property
    def client_up(self) -> int:
        """One client's whole upload."""
        return sum(self.up) + self.head + self.statistics

    @property
    def client_down(self) -> int:
        """One client's whole download."""
        return sum(self.down) + self.initial


@functools.lru_cache(maxsize=512)
def bill(architecture: tuple, clients: int, blocks: int, adaptor: str = "conv", calibrated: bool = True) -> Bill:
    """The bill of FuseFL for M `clients` whose ordinary network is `architecture` (name, shape, classes, width)."""
    own, whole = parts(narrow(architecture, clients), blocks), parts(architecture, 1)
    each = [formulas.fusefl_adaptor_floats([c], clients) if adaptor == "conv" else 0 for c in own.channels]
    adaptors = [0, *each]  # nothing stands in front of block 1
    numbers = [block + extra for block, extra in zip(own.blocks, adaptors, strict=True)]
    received = numbers if calibrated else [*numbers[:-1], 0]
    classes = architecture[2]
    return Bill(
        parts=own,
        clients=clients,
        blocks=formulas.FLOAT * clients * sum(own.blocks),
        adaptors=formulas.FLOAT * clients * sum(adaptors),
        head=formulas.FLOAT * own.head,
        up=tuple(formulas.FLOAT * n for n in numbers),
        down=tuple(formulas.FLOAT * (clients - 1) * n for n in received),
        initial=formulas.FLOAT * (sum(own.blocks) + own.head),
        statistics=formulas.FLOAT * classes + formulas.ccvr_bytes(own.features, classes, True) if calibrated else 0,
        single=formulas.FLOAT * (sum(whole.blocks) + whole.head),
    )


@functools.lru_cache(maxsize=512)
def parts(architecture: tuple, blocks: int) -> Parts:
    """The sizes of one network of `architecture` (its width given or not), cut into K blocks."""
    network = sketch(architecture)
    client, head = Client(network, blocks), network.classifier
    channels = tuple(border[0] for border in client.borders()[:-1])
    return Parts(tuple(map(size, client.blocks)), channels, size([head]), head.in_features, network.architecture[3])


@functools.lru_cache(maxsize=64)
def sketch(architecture: tuple) -> Network:
    """A network of `architecture` without its numbers, for their sizes alone."""
    name, shape, classes, width = architecture
    width = width or default_width(name, shape)
    with torch.device("meta"):
        return Network(*MODELS[name].layout(shape, width), (name, shape, classes, width))


def layers(architecture: tuple) -> int:
    """Layers of a network between which it can be cut: its largest K."""
    return len(sketch(architecture).body)


# ------------------------------------------------------------------------------------------------ picture
def storage(architecture: tuple, clients: int, blocks: int, adaptor: str, calibrated: bool) -> Picture:
    """Bars of the fused model, one network and an ensemble, and of one client's bytes."""
    here = bill(architecture, clients, blocks, adaptor, calibrated)
    whole, kept = {"whole network": here.single}, {"blocks": here.blocks, "adaptors": here.adaptors}
    own = {part: count / clients for part, count in kept.items()}
    bars = {
        "FuseFL, stored": {**kept, "classifier": here.head},
        "one network": whole,
        f"{clients} networks": {"whole network": clients * here.single},
        "one client up": {**own, "classifier": here.head, "class statistics": here.statistics},
        # the blocks of the others come with their adaptors
        "one client down": {"blocks": sum(here.down), "whole network": here.initial},
        "one-shot, each way": whole,
    }
    name, shape, classes, _ = architecture
    network = f"{TITLES.get(name, name)}, input {'×'.join(map(str, shape))}, {classes} classes"
    with drawing() as (figure, ax):
        dress(ax, title="Storage, and one client's traffic")
        for i, end in enumerate(stacked(ax, bars, COLOURS)):
            ax.text(end, i, f" {mib(end)}", va="center", fontsize=9.5, color=INK, gid="outside")
        ax.set_xticks([])
        legend(ax, loc="lower right")
    printed = TABLE_4.get(clients, {}).get(blocks) if architecture == PAPER and adaptor == "conv" else None
    paper = f" (the paper prints {printed:.2f} MiB)" if printed else ""
    rows = (
        (what, *(mib(parts.get(part, 0)) for part in COLOURS), mib(sum(parts.values()))) for what, parts in bars.items()
    )
    return told(
        figure,
        "Bars of FuseFL's storage and of one client's traffic",
        f"{network}, {clients} clients of width {here.parts.width}, K = {blocks}, adaptor {adaptor}",
        f"The fused model of {clients} clients takes {mib(here.storage)}{paper}, as much as "
        f"{here.storage / here.single:.2f} ordinary networks; adaptors are {here.adaptors / here.storage:.0%} of it. "
        f"A client sends {mib(here.client_up)} and receives {mib(here.client_down)}.",
        tabled(["what", *COLOURS, "in all"], rows),
    )


def mib(count: float) -> str:
    """Bytes as '53.7 MiB' or '12.3 KiB', the paper's units."""
    large = count >= formulas.MIB / 2
    return f"{count / (formulas.MIB if large else 1024):.3g} {'MiB' if large else 'KiB'}"
