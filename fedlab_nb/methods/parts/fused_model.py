"""FuseFL's result, with what a reader looks back at: how good each client was after every round, how large each block
is, and what each way of making the classifier gives.

Nothing here changes how anything is trained. Copies of the clients' models are kept for small networks alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor, nn

from ...comm import Ledger
from ...models import parameter_count
from ...training import ClientModels, accuracy, in_chunks
from ..base import ClientsAlone, NetworkModel
from .blocks import Client, FusedNetwork, Inputs, Uppers

KEPT_NUMBERS = 2**24  # copies of the clients' models are kept while they hold no more numbers than this


class Notes:
    """Kept while FuseFL runs. `numbers` (plain values; K rounds, M clients) and `home [K, M]`:

    widths [M], trainable [K] (numbers that client 0 trains in each round), shapes [K] (of the output of its blocks),
    block_numbers [K][M] and adaptor_numbers [K][M] (parameters of what is sent); home: accuracy of each client's model
    after each round on its own training samples. `rounds`: those models (with `home` for small networks alone).
    """

    def __init__(self, clients: Sequence[Client], shapes: Sequence[Sequence[tuple[int, ...]]]) -> None:
        blocks = range(len(shapes[0]))
        whole = sum(parameter_count(client.upper(0)) for client in clients)
        self._keeps = whole * len(clients) * len(blocks) <= KEPT_NUMBERS  # a model may carry a copy of what is below
        self.home: list[list[float]] = []
        self.rounds: list[Uppers] = []
        self.numbers = {
            "widths": [client.architecture[3] for client in clients],
            "trainable": [],
            "shapes": [list(shape) for shape in shapes[0]],
            "block_numbers": [[parameter_count(client.branch(k)) for client in clients] for k in blocks],
            "adaptor_numbers": [],
        }

    def round(self, clients: Sequence[Client], models: Sequence[nn.Module], inputs: Inputs) -> None:
        """Note the clients' models at the end of a round. Client part: each looks at its own training samples."""
        k = len(self.numbers["trainable"])
        self.numbers["trainable"].append(parameter_count(models[0]))
        sent = zip(clients, self.numbers["block_numbers"][k], strict=True)
        self.numbers["adaptor_numbers"].append([parameter_count(client.branch(k)) - own for client, own in sent])
        if self._keeps:
            modules = ClientModels(copy.deepcopy(list(models))).modules
            self.rounds.append(Uppers(modules, inputs))
            right = zip(modules, inputs.shards, strict=True)
            self.home.append([accuracy(in_chunks(model, x).argmax(1), y) for model, (x, y) in right])


class InRound(ClientsAlone):
    """The clients' models during round `block` (from 1). `live`: that number, and the bytes sent so far (up, down)."""

    def __init__(self, clients: Uppers, block: int, ledger: Ledger) -> None:
        super().__init__(clients)
        self.live = {"block": np.array(block), "sent": np.array([ledger.up, ledger.down])}


class FusedModel(NetworkModel):
    """The fused network. `heads`: the other classifiers that its blocks can have, each a list of one or M layers.

    `curves` (on test samples, for the report) gives `outside`: accuracy of each client after each round, K lists of M,
    and `heads`: accuracy of the same blocks under every classifier that there is: "own", "average" and perhaps "ccvr".
    `live`: block K + 1, and the bytes sent (up, down).
    """

    def __init__(
        self, network: FusedNetwork, heads: Mapping[str, Sequence[nn.Linear]], notes: Notes, ledger: Ledger
    ) -> None:
        artefacts = {"home": np.array(notes.home)} if notes.home else {}
        super().__init__(network, numbers=notes.numbers, artefacts=artefacts)
        self.heads, self.notes = dict(heads), notes
        self.live = {"block": np.array(len(network.stages) + 1), "sent": np.array([ledger.up, ledger.down])}

    def with_head(self, name: str) -> FusedNetwork:
        """The same frozen blocks under another classifier."""
        fused = self.module
        return FusedNetwork(fused.stages, self.heads[name], fused.kind, fused.merge)

    def calibrated(self, head: nn.Linear, ledger: Ledger) -> FusedModel:
        """This model under a calibrated classifier."""
        fused = FusedNetwork(self.module.stages, [head], self.module.kind, self.module.merge)
        return FusedModel(fused, {**self.heads, "ccvr": [head]}, self.notes, ledger)

    def curves(self, x: Tensor, y: Tensor) -> dict:
        heads = {name: NetworkModel(self.with_head(name)).accuracy(x, y) for name in self.heads}
        outside = [[accuracy(own.argmax(1), y) for own in models.logits(x)] for models in self.notes.rounds]
        return {"heads": heads, **({"outside": outside} if outside else {})}
