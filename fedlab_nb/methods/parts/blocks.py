"""A network in K blocks, and M clients' blocks fused side by side (FuseFL, Eqs. 1, 4 and 6).

    F = classifier . H^K ... H^1                           one network, cut into K blocks
    H_fus^k(x) = [H_1^k(A_1^k(x)), ..., H_M^k(A_M^k(x))]   a `Stage`: M branches that read the same joined input x
    F_fus = classifier . merge_m . H_fus^K ... H_fus^1     a `FusedNetwork`

A branch is client m's adaptor and block as one Sequential. Fused stages are frozen: no gradient, batch norm by its
owner's running statistics, and nothing here ever writes to them. How long anyone trains is `fusefl.py`'s matter.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ...errors import number
from ...models import MODELS, Network, load_state, parameter_count
from ...models.build import default_width, initialise
from ...training import in_chunks
from .adaptors import join

CACHE_BYTES = 2**30
MERGES = {"sum": "the clients' last features added up", "mean": "their mean"}

# Where the paper cuts: index of the last layer of each block but the last. The stem is layer 0, the pool the last one.
CUTS = {
    "resnet10": {2: (2,), 3: (0, 2), 4: (0, 2, 3)},
    "resnet18": {2: (4,), 3: (0, 4), 4: (0, 4, 6), 8: (0, 1, 2, 3, 5, 7, 8)},
    "resnet26": {2: (6,), 3: (0, 6), 4: (0, 6, 9)},
    "vgg9": {3: (1, 3)},  # the paper does not say; at the pools
}
# Widths that the paper used at its clients where the ordinary network has 64, by the number of clients.
PAPER_WIDTHS = {5: 32, 10: 20, 20: 14, 50: 9}


# ------------------------------------------------------------------------------------------------------ cut and narrow
def narrow(architecture: tuple, clients: int) -> tuple:
    """The architecture with 1/sqrt(M) of its width n_s, rounded; from n_s = 64 the paper's own widths.

    Weights grow with the square of the width, so M such clients hold about as many numbers as one ordinary network.
    """
    name, input_shape, classes, width = architecture
    width = default_width(name, input_shape) if width is None else width
    slim = PAPER_WIDTHS.get(clients) if width == 64 else None
    slim = round(width / math.sqrt(clients)) if slim is None else slim
    return name, input_shape, classes, max(MODELS[name].widths[0], slim)


def cut(network: Network, blocks: int) -> list[list[nn.Module]]:
    """The layers of `network.body` in K consecutive blocks: at the paper's places, else as evenly as it goes.

    A last layer without parameters (the pool) stays with the one before it, unless every layer is a block of its own.
    UsageError if the body has fewer than K layers.
    """
    layers, name = list(network.body), network.architecture[0]
    hint = f"{name} has {len(layers)} layers to cut between"
    blocks = number("blocks", blocks, 1, len(layers), integer=True, hint=hint)
    if blocks in CUTS.get(name, {}):
        stops = [last + 1 for last in CUTS[name][blocks]]
    else:
        count = len(layers)
        if blocks < count and not list(layers[-1].parameters()):
            count -= 1
        stops = [(2 * j * count + blocks) // (2 * blocks) for j in range(1, blocks)]
    return [layers[start:stop] for start, stop in zip([0, *stops], [*stops, len(layers)], strict=True)]


class Client:
    """Client m's network in K blocks, while they are trained and shipped one after the other.

    `blocks[k]` are the layers of block k (counted from 0), after `adapt` with the adaptor in front.
    """

    def __init__(self, network: Network, blocks: int) -> None:
        self.architecture, self.classifier = network.architecture, network.classifier
        self.blocks = cut(network, blocks)

    @torch.no_grad()
    def borders(self) -> list[tuple[int, ...]]:
        """Shape of the output of each block, (c, h, w) or (d,), before any adaptor is in place."""
        like = self.classifier.weight
        x, shapes = torch.zeros(1, *self.architecture[1], dtype=like.dtype, device=like.device), []
        for k in range(len(self.blocks)):
            x = copy.deepcopy(self.branch(k)).eval()(x)
            shapes.append(tuple(x.shape[1:]))
        return shapes

    def restart(self, k: int, generator: torch.Generator) -> None:
        """Draw block k and everything above it afresh."""
        initialise(nn.Sequential(*sum(self.blocks[k:], []), self.classifier), generator)

    def adapt(self, k: int, adaptor: list[nn.Module]) -> None:
        """Put an adaptor (no layers for the mean) in front of block k."""
        self.blocks[k] = [*adaptor, *self.blocks[k]]

    def branch(self, k: int) -> nn.Sequential:
        """Block k with its adaptor: what is shipped."""
        return nn.Sequential(*self.blocks[k])

    def upper(self, k: int, below: Sequence[nn.Module] = ()) -> Network:
        """What trains in round k: block k to the last and the classifier, on top of `below`; nothing is copied."""
        with torch.device("meta"):  # its own classifier is thrown away; no draw from the global random state
            network = Network([*below, *sum(self.blocks[k:], [])], self.classifier.in_features, self.architecture)
        network.classifier = self.classifier
        network.architecture = (*self.architecture, k) if k else self.architecture
        return network


# --------------------------------------------------------------------------------------------------------------- fused
class Stage(nn.Module):
    """M frozen branches: `forward(x)` is the list of their M outputs."""

    def __init__(self, branches: Sequence[nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches).requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Stage:
        """Frozen: stays in eval mode, whatever the model around it does."""
        return super().train(False)

    def forward(self, x: Tensor) -> list[Tensor]:
        return [branch(x) for branch in self.branches]


def loaded(module: nn.Module, state: Mapping[str, Tensor]) -> nn.Module:
    """A copy of `module`, which gives the build, with the weights and running statistics `state`."""
    twin = copy.deepcopy(module)
    load_state(twin, state)
    return twin


def trunk(stages: Sequence[Stage], kind: str, x: Tensor) -> Tensor:
    """What the block after `stages` reads: every stage's outputs joined by the adaptor `kind`."""
    for stage in stages:
        x = join(kind, stage(x))
    return x


class Below(nn.Module):
    """The fused stages below a block that trains, as one layer without parameters or gradient.

    The model around it neither trains nor moves them. `leaky`: a private copy whose batch norm takes the statistics of
    the batch while the model trains, as in the authors' code.
    """

    def __init__(self, stages: Sequence[Stage], kind: str, leaky: bool = False) -> None:
        super().__init__()
        self.kind, self.leaky = kind, leaky
        self._hidden = (copy.deepcopy(list(stages)) if leaky else list(stages),)  # in a tuple: not registered

    def train(self, mode: bool = True) -> Below:
        super().train(mode)
        for norm in norms(self._hidden[0]) if self.leaky else ():
            norm.training = mode
        return self

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return trunk(self._hidden[0], self.kind, x)


class Inputs:
    """The clients' samples on their way up through the fused stages.

    Frozen features never change, so each client computes them once, as long as all of them together fit into
    CACHE_BYTES; else, and with a leaky batch norm, the stages stay in front of the model (`below`) and are run for
    every batch. `shards[m]` is client m's `(x [n, ...], y [n])`, passed through the first `len(self.passed)` stages.
    """

    def __init__(self, kind: str, leaky: bool, shards: Sequence[tuple[Tensor, Tensor]]) -> None:
        self.kind, self.leaky, self.shards = kind, leaky, list(shards)
        self.passed: list[Stage] = []
        self.ahead: list[Stage] = []

    def below(self) -> list[nn.Module]:
        """The layers, one or none, to put in front of a client's model."""
        return [Below(self.ahead, self.kind, self.leaky)] if self.ahead else []

    def rise(self, stage: Stage, border: tuple[int, ...]) -> None:
        """One stage more; `border` is the shape of one sample behind it, joined."""
        self.ahead.append(stage)
        x, samples = self.shards[0][0], sum(len(y) for _, y in self.shards)
        if samples * math.prod(border) * x.element_size() > CACHE_BYTES or (self.leaky and norms(self.ahead)):
            return
        self.shards = [(in_chunks(lambda x: trunk(self.ahead, self.kind, x), x), y) for x, y in self.shards]
        self.passed, self.ahead = [*self.passed, *self.ahead], []

    def through(self, m: int, last: Callable[[Tensor], Tensor]) -> Tensor:
        """`last` of client m's samples behind all stages."""
        return in_chunks(lambda x: last(trunk(self.ahead, self.kind, x)), self.shards[m][0])


class Uppers:
    """The clients' models during a round, for the live curve: the stages that `inputs` passed, then each model."""

    def __init__(self, models: Sequence[nn.Module], inputs: Inputs) -> None:
        self.models, self.passed, self.kind = [model.eval() for model in models], list(inputs.passed), inputs.kind
        self.parameters = [parameter_count(model) for model in models]

    def logits(self, x: Tensor) -> Tensor:
        """`[M, N, C]`."""
        x = in_chunks(lambda part: trunk(self.passed, self.kind, part), x)
        return torch.stack([in_chunks(model, x) for model in self.models])


def norms(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """All batch-norm layers in `modules`."""
    return [layer for module in modules for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]


class FusedNetwork(nn.Module):
    """F_fus: K stages, the M last features merged, and a classifier. Features are the merged ones, `[N, D]`.

    With one head, logits = head(features). With M heads (`own`), they are the mean of head_m(h_m) over the clients.
    """

    def __init__(self, stages: Sequence[Stage], heads: Sequence[nn.Linear], kind: str, merge: str) -> None:
        super().__init__()
        self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)
        self.kind, self.merge = kind, merge

    def outputs(self, x: Tensor) -> list[list[Tensor]]:
        """The M outputs of every stage, bottom to top."""
        found = []
        for stage in self.stages:
            found.append(stage(join(self.kind, found[-1]) if found else x))
        return found

    def merged(self, last: Sequence[Tensor]) -> Tensor:
        """The M clients' last features `[N, D]` as one."""
        return sum(last) if self.merge == "sum" else sum(last) / len(last)

    def features(self, x: Tensor) -> Tensor:
        return self.merged(self.outputs(x)[-1])

    def forward(self, x: Tensor) -> Tensor:
        last = self.outputs(x)[-1]
        if len(self.heads) == 1:
            return self.heads[0](self.merged(last))
        return sum(head(h) for head, h in zip(self.heads, last, strict=True)) / len(last)
