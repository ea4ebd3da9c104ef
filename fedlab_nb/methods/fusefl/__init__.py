"""FuseFL: train, exchange and freeze a network block by block, from the bottom up.

Tang et al., *FuseFL: One-Shot Federated Learning through the Lens of Causality with Progressive Model Fusion*, NeurIPS
2024. The network is F = classifier . H^K ... H^1 (Eq. 1). For k = 1...K every client trains, on its own data, its
adaptor A^k, its blocks H^k...H^K and its classifier, on top of all M clients' frozen blocks below k; only (A^k, H^k)
goes up, and the others' come down (Eqs. 4-8). In the end the classifiers are averaged and calibrated by CCVR. Clients
are sqrt(M) times narrower, so that their blocks together are about as large as one network. K rounds in which every
client has to take part: few-shot rather than one-shot.

Bytes of one client: up, each of its blocks and its classifier once. Down, the other M - 1
clients' blocks: most of the traffic, which the paper compares with the uploads of other methods. Its tables leave out
batch norm's statistics and CCVR's, which are sent and counted here.

Where the paper leaves a choice: round k trains with the blocks below k fused and k...K local (its pseudo-code slips by
one index), warm-started; all clients start from the same weights; E/K epochs a round, the remainder in the last, and
at least one epoch each (with E < K that is K epochs in all, so that no block is sent untrained); the last features are
averaged (merge=sum adds them up, as the authors' code does); frozen batch norm keeps its owner's running statistics. In
that code frozen blocks stay in train mode and share statistics across clients; frozen_norm=batch is as much of that as
a federation can do: each client's own copy takes the statistics of its batches. Without a published cut, networks are
cut evenly.

The letters here are the paper's: k is a block and m a client. The lessons write l and k for them.
Departures: CCVR's covariance is that of the pooled features (the code's is not centred); the classifier trains to
convergence on rescaled features (code: one pass of plain SGD); rounds after the first use a tenth of the learning rate,
as adaptors without batch norm diverge at that of local training. The set-up `fusefl` undoes the last
two, and calibrates at the clients' rate, whatever that is, as the code does (`client_rate`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from ...comm.link import UpDown
from ...data.dataset import SampleShape
from ...errors import UsageError
from ...models import Network, copy_model_state
from ...models.network import Architecture
from ...training import ClientModels, Recipe
from ..base import (
    ClientsAlone,
    Context,
    Method,
    Progress,
    Steps,
    knob,
    register,
    weighted_mean,
)
from ..traffic import FederationSizes, RunBytesUpPlusDown
from . import ccvr
from .blocks import (
    ADAPTORS,
    ClientBlocks,
    ConvOrAverage,
    check_outputs_can_be_joined,
    compute_joined_shape,
    make_adaptor_layers,
    narrow_architecture,
)
from .network import (
    MERGES,
    ClientInputs,
    FusedModel,
    FusedNetwork,
    FuseFLReport,
    RoundCopies,
    RoundModels,
    Stage,
    SumOrMean,
    copy_module_with_state,
)

ClassifierChoice = Literal["ccvr", "average", "own"]
HEADS: tuple[ClassifierChoice, ...] = get_args(ClassifierChoice)


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
    adaptor: ConvOrAverage = knob("conv", "Adaptor", options=ADAPTORS)
    width: str = knob("narrow", "Width", options=("narrow", "full"))
    warm_start: bool = knob(True, "Warm start")
    fused_rate: float = knob(0.1, "Rate after fusing", low=1e-3, high=1)
    frozen_norm: str = knob("owner", "Frozen batch norm", options=("owner", "batch"))
    merge: SumOrMean = knob("mean", "Last features", options=MERGES)
    head: ClassifierChoice = knob("ccvr", "Classifier", options=HEADS)
    virtual: int = knob(500, "Virtual features", low=1, high=100_000, log=True)
    passes: int = knob(20, "Passes", low=1, high=1000, log=True)
    rate: float = knob(0.5, "Calibration rate", low=1e-5, high=10, log=True)
    client_rate: bool = knob(False, "Clients' rate")
    rescale: bool = knob(True, "Rescale")

    report = FuseFLReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        blocks = 0.8 * sizes.clients * sizes.models_up  # up once, and down to all others
        return RunBytesUpPlusDown(sizes.models_down + blocks, is_exact=False)

    def refuse(self, ctx: Context) -> None:
        shapes = []
        for architecture in dict.fromkeys(self._narrow_client_architectures_unless_full_width(ctx)):
            model = ctx.build(architecture, ctx.generator("fusefl", "shapes"))
            shapes.append(ClientBlocks(model, self.blocks).measure_block_output_shapes())
        for k in range(self.blocks - 1):
            check_outputs_can_be_joined(self.adaptor, [borders[k] for borders in shapes], k + 1)
        if len({borders[-1] for borders in shapes}) > 1:
            features = ", ".join(str(borders[-1][0]) for borders in shapes)
            raise UsageError(
                f"FuseFL needs the same number of last features at all clients, not {features}."
            )

    def run(self, ctx: Context) -> Steps[FusedModel]:
        self.validate(ctx)
        all_clients = range(ctx.clients_count)
        models = ctx.send_initial_models(self._narrow_client_architectures_unless_full_width(ctx))
        clients = [ClientBlocks(model, self.blocks) for model in models]
        shapes = [client.measure_block_output_shapes() for client in clients]
        shards = [ctx.private.train(m) for m in all_clients]
        augments = ctx.recipe.augmentation != "none"
        inputs = ClientInputs(self.adaptor, self.frozen_norm == "batch", shards, augments)
        stages: list[Stage] = []
        copies = RoundCopies(self.blocks)
        for k in range(self.blocks):
            is_last = k + 1 == self.blocks
            # Clients: A^k in front of H^k; train A^k, H^k ... H^K and the classifier on all frozen blocks below.
            if k:
                self._add_adaptors_and_redraw_upper_blocks_if_cold(
                    ctx, clients, k, [borders[k - 1] for borders in shapes]
                )
            models = [
                client.make_network_from_block_upwards(
                    k, inputs.make_frozen_layers_before_trained_block()
                )
                for client in clients
            ]
            yield from self._train_block_and_above_in_place(ctx, models, inputs, k)
            copies.add_copies_and_accuracies_if_small(models, inputs)
            phase = f"block {k + 1}"
            received = []
            for m in all_clients:
                received.append(
                    ctx.link.up(
                        m, copy_model_state(clients[m].get_block_with_adaptor(k)), phase=phase
                    )
                )
            # Server: fuse. Each client gets the others' blocks, so that all hold the same stage from here on.
            with ctx.server():
                branches = [
                    copy_module_with_state(clients[m].get_block_with_adaptor(k), received[m])
                    for m in all_clients
                ]
                stages.append(Stage(branches))
            if not is_last or self.head == "ccvr":  # of the last block only CCVR needs the features
                for m in all_clients:
                    ctx.link.down(m, received[:m] + received[m + 1 :], phase=phase)
            if not is_last:
                shape = compute_joined_shape(self.adaptor, [borders[k] for borders in shapes])
                inputs.add_stage(stages[-1], shape)
        # Clients: the classifiers go up. Server: average them, on the features of the complete fused network.
        received = []
        for m in all_clients:
            state = copy_model_state(clients[m].classifier)
            received.append(ctx.link.up(m, state, phase="classifiers"))
        with ctx.server():
            client_heads = [
                copy_module_with_state(clients[m].classifier, received[m]) for m in all_clients
            ]
            mean_state = weighted_mean(received, [1] * len(received))
            average_head = copy_module_with_state(client_heads[0], mean_state)
            heads = {"own": client_heads, "average": [average_head]}
            used_heads = heads["own" if self.head == "own" else "average"]
            network = FusedNetwork(stages, used_heads, self.adaptor, self.merge)
        report = FuseFLReport(
            widths=[client.architecture[3] for client in clients],
            shapes=[list(shape) for shape in shapes[0]],
            home=np.array(copies.home) if copies.home else None,
            block=self.blocks + 1,
            sent=_count_total_bytes_sent(ctx),
        )
        fused = FusedModel(network, heads, copies.models, report)
        if self.head == "ccvr":
            fused = yield from self._calibrate_classifier(ctx, fused, inputs)
        return fused

    def _narrow_client_architectures_unless_full_width(self, ctx: Context) -> list[Architecture]:
        if self.width == "full":
            return list(ctx.architectures)
        return [narrow_architecture(a, ctx.clients_count) for a in ctx.architectures]

    def _add_adaptors_and_redraw_upper_blocks_if_cold(
        self,
        ctx: Context,
        client_blocks: list[ClientBlocks],
        block_index: int,
        input_shape_per_client: Sequence[SampleShape],
    ) -> None:
        """Clients: a new adaptor in front of the block (counted from 0), put into `client_blocks` in place.

        Without warm start also new weights for the block and all above it.
        """
        for m, client in enumerate(client_blocks):
            if not self.warm_start:
                client.redraw_weights_from_block_upwards(
                    block_index,
                    ctx.generator("fusefl", "restart", block_index, client.architecture[0]),
                )
            stream = ctx.generator("fusefl", "adaptor", block_index, m)
            like = client.classifier.weight
            client.adaptors[block_index] = make_adaptor_layers(
                self.adaptor, input_shape_per_client, m, stream, like
            )

    def _train_block_and_above_in_place(
        self, ctx: Context, models: Sequence[Network], inputs: ClientInputs, block_index: int
    ) -> Steps[None]:
        """Clients: E/K epochs of local training, at least one (last round: those that remain), by a new optimizer."""
        least = min(1, ctx.recipe.epochs)
        share = max(least, ctx.recipe.epochs // self.blocks)
        if block_index + 1 < self.blocks:
            epochs = share
        else:
            epochs = max(least, ctx.recipe.epochs - block_index * share)
        factor = self.fused_rate if block_index else 1
        lr = factor * ctx.recipe.lr
        recipe = replace(ctx.recipe, epochs=epochs, lr=lr, lr_min=factor * ctx.recipe.lr_min)
        stream = f"batches of block {block_index + 1}" if block_index else "batches"
        backend = "loop" if inputs.stages_in_front else ctx.backend
        points = 0  # that the live curve could have; every K-th of them is drawn
        for tick in ctx.train(models, inputs.shards, recipe=recipe, backend=backend, stream=stream):
            done = block_index * share + tick.done * epochs // tick.total
            points += tick.has_current_models
            snapshot = None
            if tick.has_current_models and points % self.blocks == 0:
                report = FuseFLReport(block=block_index + 1, sent=_count_total_bytes_sent(ctx))
                snapshot = ClientsAlone(RoundModels(models, inputs), report)
            yield Progress(
                "blocks",
                done,
                self._count_progress_steps(ctx),
                {"block": block_index + 1},
                model=snapshot,
            )
        ctx.check_finite(ClientModels(models))

    def _count_progress_steps(self, ctx: Context) -> int:
        """Steps of the progress bar: epochs of local training and of calibration."""
        return self._count_local_epochs_of_all_rounds(ctx) + (
            self.passes if self.head == "ccvr" else 0
        )

    def _count_local_epochs_of_all_rounds(self, ctx: Context) -> int:
        """Epochs of local training over all rounds: E, or K where that is more."""
        return max(ctx.recipe.epochs, self.blocks) if ctx.recipe.epochs else 0

    def _calibrate_classifier(
        self, ctx: Context, fused: FusedModel, inputs: ClientInputs
    ) -> Steps[FusedModel]:
        """CCVR: the averaged classifier, trained on virtual features."""
        network = fused.module
        done = self._count_local_epochs_of_all_rounds(ctx)
        yield Progress("calibration", done, self._count_progress_steps(ctx), model=fused)

        def last_features(x: Tensor) -> Tensor:
            return network.merge_features(network.stages[-1](x))

        # Clients: counts, means and covariances by class of the fused features of their own samples.
        received = []
        for m in range(ctx.clients_count):
            features = inputs.apply_to_stage_outputs_of_client(m, last_features)
            _, labels = inputs.shards[m]
            statistics = ccvr.make_class_statistics_message(features, labels, ctx.classes)
            received.append(ctx.link.up(m, statistics, phase="class statistics"))
            yield Progress("calibration", done, self._count_progress_steps(ctx))
        # Server: pool them, draw virtual features, train the classifier on those.
        with ctx.server():
            stream = ctx.generator("fusefl", "virtual features")
            features, labels = ccvr.draw_virtual_features(
                ccvr.pool_class_statistics(received), self.virtual, stream
            )
            rate = ctx.recipe.lr if self.client_rate else self.rate
            recipe = Recipe(epochs=self.passes, batch_size=128, lr=rate, momentum=0, weight_decay=0)
            batches = ctx.generator("fusefl", "calibration")
            start = fused.heads["average"][0]
            steps = ccvr.train_copy_of_head(start, features, labels, recipe, batches, self.rescale)
            for epoch, head in steps:
                snapshot = None
                if head is not None:
                    fused = fused.copy_with_calibrated_head(head, _count_total_bytes_sent(ctx))
                    if epoch & (epoch - 1) == 0:  # after 1, 2, 4, 8, ... passes
                        snapshot = fused
                yield Progress(
                    "calibration", done + epoch, self._count_progress_steps(ctx), model=snapshot
                )
        return fused


def _count_total_bytes_sent(ctx: Context) -> UpDown:
    """Of all clients, up and down."""
    return UpDown(ctx.link.ledger.up, ctx.link.ledger.down)
