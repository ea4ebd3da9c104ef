"""FuseFL's storage and traffic as arithmetic: from an architecture, M, K and the adaptor to bytes, without a network.

ResNet-18 is counted layer by layer in closed form, since a slider cannot wait for eleven million weights to be drawn;
other (small) networks are built once and counted. Bytes are of parameters alone, as in the paper's tables, so without
batch norm's running statistics.
"""

import functools
from dataclasses import dataclass

from ...comm import formulas
from ...methods.fusefl.blocks import CUTS, Client, narrow, size
from ...models import build

PAPER = ("resnet18", (3, 32, 32), 10, 64)  # the paper's ordinary network: name, input, classes, width
TABLE_4 = {  # the paper's storage with the conv adaptor, MiB: {M: {K: MiB}}
    5: {2: 53.71, 4: 55.38, 8: 68.08},
    10: {2: 42.32, 4: 44.92, 8: 64.77},
    20: {2: 42.13, 4: 47.22, 8: 86.11},
    50: {2: 45.48, 4: 58.63, 8: 159.08},
}


@dataclass(frozen=True)
class Parts:
    """Numbers of one client's blocks, channels at the K - 1 borders between them, numbers of the classifier, its D."""

    blocks: tuple[int, ...]
    channels: tuple[int, ...]
    head: int
    features: int
    width: int


@dataclass(frozen=True)
class Bill:
    """Bytes of FuseFL for M clients. Storage of the fused model: blocks, adaptors, classifier (head).

    Of one client: `up` and `down` by round, `part` of each upload that is adaptor (0-1), the classifier and CCVR's
    statistics (upper triangles, all C classes) up, first weights down. `single`: the ordinary network.
    """

    parts: Parts
    clients: int
    blocks: int
    adaptors: int
    head: int
    up: tuple[int, ...]
    down: tuple[int, ...]
    part: tuple[float, ...]
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
        part=tuple(extra / max(n, 1) for extra, n in zip(adaptors, numbers, strict=True)),
        initial=formulas.FLOAT * (sum(own.blocks) + own.head),
        statistics=formulas.FLOAT * classes + formulas.ccvr_bytes(own.features, classes, True) if calibrated else 0,
        single=formulas.FLOAT * (sum(whole.blocks) + whole.head),
    )


@functools.lru_cache(maxsize=512)
def parts(architecture: tuple, blocks: int) -> Parts:
    """The sizes of one network of `architecture` (its width given or not), cut into K blocks."""
    name, shape, classes, width = architecture
    if name == "resnet18" and width is not None and (blocks == 1 or blocks in CUTS[name]):
        return resnet18_parts(shape[0], classes, width, blocks)
    network = build(name, shape, classes, width=width)
    client, head = Client(network, blocks), network.classifier
    channels = tuple(border[0] for border in client.borders()[:-1])
    return Parts(tuple(map(size, client.blocks)), channels, size([head]), head.in_features, network.architecture[3])


def resnet18_parts(inputs: int, classes: int, width: int, blocks: int) -> Parts:
    """ResNet-18 of `width` n with `inputs` channels: stem, eight residual blocks of n, n, 2n, ... 8n, and the pool."""
    counts, outputs = [9 * inputs * width + 2 * width], [width]
    for multiple in (1, 1, 2, 2, 4, 4, 8, 8):
        before, after = outputs[-1], width * multiple
        shortcut = before * after + 2 * after if before != after else 0
        counts.append(9 * before * after + 9 * after * after + 4 * after + shortcut)
        outputs.append(after)
    features = outputs[-1]
    stops = [last + 1 for last in CUTS["resnet18"].get(blocks, ())]
    sums = [sum(counts[a:b]) for a, b in zip([0, *stops], [*stops, len(counts)], strict=True)]
    return Parts(tuple(sums), tuple(outputs[stop - 1] for stop in stops), features * classes + classes, features, width)


@functools.lru_cache(maxsize=64)
def layers(architecture: tuple) -> int:
    """Layers of a network between which it can be cut: its largest K."""
    name, shape, classes, width = architecture
    return len(build(name, shape, classes, width=width).body)
