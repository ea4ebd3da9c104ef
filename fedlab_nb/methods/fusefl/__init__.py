"""FuseFL: train, exchange and freeze a network block by block, from the bottom up.

Tang et al., *FuseFL: One-Shot Federated Learning through the Lens of Causality with Progressive Model Fusion*, NeurIPS
2024. The network is F = classifier . H^K ... H^1 (Eq. 1). For k = 1...K every client trains, on its own data, its
adaptor A^k, its blocks H^k...H^K and its classifier, on top of all M clients' frozen blocks below k; only (A^k, H^k)
goes up, and the others' come down (Eqs. 4-8). In the end the classifiers are averaged and calibrated by CCVR. Clients
are sqrt(M) times narrower, so that their blocks together are about as large as one network. K rounds in which every
client has to take part: few-shot rather than one-shot.

Bytes of one client (`formulas.fusefl_*`): up, each of its blocks and its classifier once. Down, the other M - 1
clients' blocks: most of the traffic, which the paper compares with the uploads of other methods. Its tables leave out
batch norm's statistics and CCVR's, which are sent and counted here.

Where the paper leaves a choice: round k trains with the blocks below k fused and k...K local (its pseudo-code slips by
one index), warm-started; all clients start from the same weights; E/K epochs a round, the remainder in the last, and
at least one epoch each (with E < K that is K epochs in all, so that no block is sent untrained); the last features are
averaged (merge=sum adds them up, as the authors' code does); frozen batch norm keeps its owner's running statistics. In
that code frozen blocks stay in train mode and share statistics across clients; frozen_norm=batch is as much of that as
a federation can do: each client's own copy takes the statistics of its batches. Without a published cut, networks are
cut evenly.

Letters here are the paper's, for who reads both: k is a block and m a client. The lessons write l and k for them.
Departures: CCVR's covariance is that of the pooled features (the code's is not centred); the classifier trains to
convergence on rescaled features (code: one pass of plain SGD); rounds after the first use a tenth of the learning rate,
as adaptors without batch norm diverge at that of local training. The set-up `fusefl` undoes the last
two, and calibrates at the clients' rate, whatever that is, as the code does (`client_rate`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...errors import UsageError
from ...models import Network, model_state
from ...training import ClientModels, Recipe
from ..base import ClientsAlone, Context, Method, Progress, Steps, knob, register, weighted_mean
from . import ccvr
from .blocks import ADAPTORS, Client, adaptor, check_borders, joined, narrow
from .network import (
    MERGES,
    FusedModel,
    FusedNetwork,
    FuseFLReport,
    Inputs,
    Rounds,
    Stage,
    Uppers,
    loaded,
)

HEADS = ("ccvr", "average", "own")


@register(
    "fusefl",
    title="FuseFL",
    group="Keep an ensemble",
    paper="Tang et al., NeurIPS 2024",
    rounds="K rounds, one block in each",
    traffic="S_θ + (S + S_Λ + statistics) up + (M - 1) S down, S: a client's blocks",
    sends="its blocks",
    back="the others' blocks",
    leaks="each client's blocks, to every other client; its class counts, mean features and their covariances",
)
class FuseFL(Method):
    """Train and freeze block after block, each on top of all clients' blocks below it."""

    trains_locally = False
    sends_models = False

    blocks: int = knob(2, "Blocks", symbol="K", low=1, high=32)
    adaptor: str = knob("conv", "Adaptor", options=ADAPTORS)
    width: str = knob("narrow", "Width", options=("narrow", "full"))
    warm_start: bool = knob(True, "Warm start")
    fused_rate: float = knob(0.1, "Rate after fusing", low=1e-3, high=1)
    frozen_norm: str = knob("owner", "Frozen batch norm", options=("owner", "batch"))
    merge: str = knob("mean", "Last features", options=MERGES)
    head: str = knob("ccvr", "Classifier", options=HEADS)
    virtual: int = knob(500, "Virtual features", low=1, high=100_000, log=True)
    passes: int = knob(20, "Passes", low=1, high=1000, log=True)
    rate: float = knob(0.5, "Calibration rate", low=1e-5, high=10, log=True)
    client_rate: bool = knob(False, "Clients' rate")
    rescale: bool = knob(True, "Rescale")

    report = FuseFLReport

    def refuse(self, ctx: Context) -> None:
        kinds = {
            kind: ctx.build(kind, ctx.generator("fusefl", "shapes"))
            for kind in self._architectures(ctx)
        }
        shapes = [Client(model, self.blocks).borders() for model in kinds.values()]
        for k in range(self.blocks - 1):
            check_borders(self.adaptor, [shape[k] for shape in shapes], k + 1)
        if len({shape[-1] for shape in shapes}) > 1:
            many = ", ".join(str(shape[-1][0]) for shape in shapes)
            raise UsageError(
                f"FuseFL needs the same number of last features at all clients, not {many}."
            )

    def run(self, ctx: Context) -> Steps[FusedModel]:
        self.validate(ctx)
        everyone = range(ctx.clients_count)
        clients = [
            Client(model, self.blocks)
            for model in ctx.send_initial_models(self._architectures(ctx))
        ]
        shapes = [client.borders() for client in clients]
        shards, anew = [ctx.private.train(m) for m in everyone], ctx.recipe.augmentation != "none"
        inputs = Inputs(self.adaptor, self.frozen_norm == "batch", shards, anew)
        stages, rounds = [], Rounds(self.blocks)
        for k in range(self.blocks):
            # Clients: A^k in front of H^k; train A^k, H^k ... H^K and the classifier on all frozen blocks below.
            if k:
                self._adapt(ctx, clients, k, [shape[k - 1] for shape in shapes])
            models = [client.upper(k, inputs.below()) for client in clients]
            yield from self._train(ctx, models, inputs, k)
            rounds.add(models, inputs)
            received = [
                ctx.link.up(m, model_state(clients[m].branch(k)), phase=f"block {k + 1}")
                for m in everyone
            ]
            # Server: fuse. Everyone gets the blocks that are not his own, so that all hold the same stage from here on.
            with ctx.server():
                stages.append(Stage([loaded(clients[m].branch(k), received[m]) for m in everyone]))
            if (
                k + 1 < self.blocks or self.head == "ccvr"
            ):  # only CCVR's statistics need the last block at the clients
                for m in everyone:
                    ctx.link.down(m, received[:m] + received[m + 1 :], phase=f"block {k + 1}")
            if k + 1 < self.blocks:
                inputs.rise(stages[-1], joined(self.adaptor, [shape[k] for shape in shapes]))
        # The classifiers, on the features of the complete fused network.
        received = [
            ctx.link.up(m, model_state(clients[m].classifier), phase="classifiers")
            for m in everyone
        ]
        with ctx.server():
            heads = {"own": [loaded(clients[m].classifier, received[m]) for m in everyone]}
            heads["average"] = [
                loaded(heads["own"][0], weighted_mean(received, [1] * len(received)))
            ]
            network = FusedNetwork(
                stages, heads["own" if self.head == "own" else "average"], self.adaptor, self.merge
            )
        widths, first = (
            [client.architecture[3] for client in clients],
            [list(shape) for shape in shapes[0]],
        )
        home = np.array(rounds.home) if rounds.home else None
        report = FuseFLReport(widths, first, home=home, block=self.blocks + 1, sent=_sent(ctx))
        fused = FusedModel(network, heads, rounds.models, report)
        return (yield from self._calibrate(ctx, fused, inputs)) if self.head == "ccvr" else fused

    def _architectures(self, ctx: Context) -> list[tuple]:
        return [
            narrow(a, ctx.clients_count) if self.width == "narrow" else a for a in ctx.architectures
        ]

    def _adapt(
        self, ctx: Context, clients: list[Client], k: int, borders: list[tuple[int, ...]]
    ) -> None:
        """Clients: a new adaptor in front of block k (counted from 0); without warm start, all above it afresh too."""
        for m, client in enumerate(clients):
            if not self.warm_start:
                client.restart(k, ctx.generator("fusefl", "restart", k, client.architecture[0]))
            stream = ctx.generator("fusefl", "adaptor", k, m)
            client.adaptors[k] = adaptor(self.adaptor, borders, m, stream, client.classifier.weight)

    def _train(
        self, ctx: Context, models: Sequence[Network], inputs: Inputs, k: int
    ) -> Steps[None]:
        """Clients: E/K epochs of local training, at least one (last round: those that remain), by a new optimizer."""
        least = min(1, ctx.recipe.epochs)
        share = max(least, ctx.recipe.epochs // self.blocks)
        epochs = share if k + 1 < self.blocks else max(least, ctx.recipe.epochs - k * share)
        slower = self.fused_rate if k else 1
        recipe = replace(
            ctx.recipe, epochs=epochs, lr=slower * ctx.recipe.lr, lr_min=slower * ctx.recipe.lr_min
        )
        stream = f"batches of block {k + 1}" if k else "batches"
        backend = "loop" if inputs.ahead else ctx.backend
        points = 0  # that the live curve could have; every K-th is shown
        for tick in ctx.train(models, inputs.shards, recipe=recipe, backend=backend, stream=stream):
            done = k * share + tick.done * epochs // tick.total
            points += tick.fresh
            snapshot = None
            if tick.fresh and points % self.blocks == 0:
                snapshot = ClientsAlone(
                    Uppers(models, inputs), FuseFLReport(block=k + 1, sent=_sent(ctx))
                )
            yield Progress("blocks", done, self._total(ctx), {"block": k + 1}, model=snapshot)
        ctx.check_finite(ClientModels(models))

    def _total(self, ctx: Context) -> int:
        """Steps of the progress bar: epochs of local training and of calibration."""
        return self._epochs(ctx) + (self.passes if self.head == "ccvr" else 0)

    def _epochs(self, ctx: Context) -> int:
        """Epochs of local training over all rounds: E, or K where that is more."""
        return max(ctx.recipe.epochs, self.blocks) if ctx.recipe.epochs else 0

    def _calibrate(self, ctx: Context, fused: FusedModel, inputs: Inputs) -> Steps[FusedModel]:
        network, done = fused.module, self._epochs(ctx)
        yield Progress("calibration", done, self._total(ctx), model=fused)
        # Clients: counts, means and covariances by class of the fused features of their own samples.
        received = []
        for m in range(ctx.clients_count):
            features = inputs.through(m, lambda x: network.merged(network.stages[-1](x)))
            statistics = ccvr.class_statistics(features, inputs.shards[m][1], ctx.classes)
            received.append(ctx.link.up(m, statistics, phase="class statistics"))
            yield Progress("calibration", done, self._total(ctx))
        # Server: pool them, draw virtual features, train the classifier on those.
        with ctx.server():
            draws, batches = (
                ctx.generator("fusefl", name) for name in ("virtual features", "calibration")
            )
            features, labels = ccvr.virtual_features(ccvr.pool(received), self.virtual, draws)
            rate = ctx.recipe.lr if self.client_rate else self.rate
            recipe = Recipe(epochs=self.passes, batch_size=128, lr=rate, momentum=0, weight_decay=0)
            start = fused.heads["average"][0]
            for epoch, head in ccvr.calibrate(
                start, features, labels, recipe, batches, self.rescale
            ):
                shown = (
                    head is not None and epoch & (epoch - 1) == 0
                )  # after 1, 2, 4, 8, ... passes
                if head is not None:
                    fused = fused.calibrated(head, _sent(ctx))
                yield Progress(
                    "calibration", done + epoch, self._total(ctx), model=fused if shown else None
                )
        return fused


def _sent(ctx: Context) -> tuple[int, int]:
    """Bytes of all clients so far, up and down."""
    return ctx.link.ledger.up, ctx.link.ledger.down
