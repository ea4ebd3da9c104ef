"""FedGKT: group knowledge transfer (He, Annavaram & Avestimehr, NeurIPS 2020, arXiv 2007.14513).

The network is cut in two. A client trains the lower half f_k with a small classifier of its own, the server the upper
half f_s on the features of all clients, so that the large part of the work is the server's. For t = 1…T:

1. Client k trains E epochs on its samples: CE(c_k, y) + α τ² KL(softmax(z_s / τ) ‖ softmax(c_k / τ)), with c_k its
   logits and z_s what the server has answered for the same samples (before the first answer: cross-entropy alone). It
   sends features H_k = f_k(x), c_k and, once, the labels.
2. The server trains E_s epochs on all that it got: CE(z_s, y) + α τ² KL(softmax(c_k / τ) ‖ softmax(z_s / τ)). Its
   logits z_s of every sample go down to the sample's client; after the last round this would change nothing.

A client predicts with its own lower half and the server's upper one, f_s(f_k(x)). Accuracy is the mean over clients.
`predict` takes the path of the client with the most samples.

With m clients a round (`per_round`; Fed-ET's appendix B does so, the paper has all of them) the server trains on their
features alone, and a client that comes again gets the answers of the server of now to the features that it sent last.

Bytes of one client with n samples, d features and C classes: down its half network, and 4 n C (T - 1); up
4 n [T (d + C) + 1]. They grow with the samples, not with the server's network.

Departures: labels are sent once, not in every round; the optimizers start again in every round, with one rate, and E_s
stays the same; α weighs the answers on both sides (1 in the paper). The server's batches mix all clients' samples (the
algorithm goes through client after client), and z_s are the logits after its last step (there: those of its last epoch,
as possible). The halves are those of the clients' own architecture (the paper has a ResNet-8 below and a ResNet-56 or
110 above), so all clients have the same one, and all lower halves start alike, whatever `init` says. Features are those
of the images as they are.
"""

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import UsageError
from ..models import Network, copy_model_state, load_state
from ..models.build import make_initialised_layer
from ..models.state import copy_model
from ..tensor_types import Labels, Logits, Samples
from ..training import ClientModels, run_in_chunks
from ..training.distill import compute_distillation_losses
from ..training.loop import ClientLossPerSample, Shard
from .base import Context, Progress, Steps, knob, register
from .context import check_training_is_finite
from .fusefl.blocks import ClientBlocks, make_network_of_layers
from .local import LocalModels, LocalReport
from .parts.rounds import PHASE, Iterative, Rounds, make_local_epochs_knob
from .run_outputs import should_record_curve_point
from .traffic import FLOAT, FederationSizes, RunBytesUpPlusDown


@register(
    "fedgkt",
    title="FedGKT",
    paper="He et al., NeurIPS 2020",
    rounds="T rounds",
    traffic="half of S_θ + 4 n (C (T - 1) + T (d + C) + 1)",
    needs=["one architecture"],
    sends="its features and logits",
    back="the server's logits",
    leaks="features, logits and the label of every training sample",
)
class FedGKT(Iterative):
    """Clients train half a network, the server the other half on their features; they learn each other's answers."""

    report = LocalReport
    sends_models = False

    rounds: int = knob(10, "Rounds", symbol="T", low=1, high=1000)
    local_epochs: int = make_local_epochs_knob(4)
    server_epochs: int = knob(4, "Server epochs", low=1, high=1000)
    weight: float = knob(0.1, "Weight of answers", symbol="α", low=0, high=100)
    temperature: float = knob(3.0, "Temperature", symbol="τ", low=0.1, high=100, log=True)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        down = sizes.classes * (self.rounds - 1)
        up = self.rounds * (sizes.numbers + sizes.classes) + 1
        total = sizes.models_down / 2 + FLOAT * sizes.samples * (down + up)
        return RunBytesUpPlusDown(total, is_exact=False)

    def refuse(self, ctx: Context) -> None:
        super().refuse(ctx)
        if len(ctx.initial_model().body) < 2:
            raise UsageError(
                "FedGKT cuts a network in two, and this one has a single block; set model=mlp."
            )

    def run(self, ctx: Context) -> Steps[LocalModels]:
        rounds = Rounds(ctx, self)
        rounds.recipe = replace(rounds.recipe, augmentation="none")
        server_recipe = replace(rounds.recipe, epochs=self.server_epochs)
        edges = []
        for model in rounds.models:
            edges.append(
                copy_lower_half_with_new_classifier(model, ctx.generator("fedgkt", "classifier"))
            )
        rounds.models = edges
        start = copy_model_state(edges[0])
        server = copy_upper_half(ctx.initial_model())
        loss = make_transfer_loss(self.temperature)
        labels: dict[int, Tensor] = {}
        uploads: dict[int, Upload] = {}  # each client's last one
        for t in range(self.rounds):
            participants = rounds.draw_and_set_participants(t)
            with ctx.server():
                answers = {}
                for k in participants:
                    if k in uploads:
                        answers[k] = run_in_chunks(server.eval(), uploads[k].features)
            # Clients: train on labels and on the server's answers.
            shards = []
            for k in participants:
                x, y = rounds.shards[k]
                if k in uploads:
                    answer = ctx.link.down(k, answers[k], phase=PHASE)
                    weight = self.weight
                else:
                    load_state(edges[k], ctx.link.down(k, start, phase=PHASE))
                    labels[k] = ctx.link.up(k, y.int(), phase="labels").long()
                    answer = x.new_zeros(len(y), ctx.classes)
                    weight = 0.0
                shards.append(make_shard_with_logits(x, y, answer, weight))
            yield from rounds.train_participants(t, shards, loss=loss)
            # Link: features and logits up.
            messages = []
            for k, features in zip(
                participants, rounds.compute_features_of_participants(), strict=True
            ):
                messages.append((features, run_in_chunks(edges[k].classifier, features)))
            for k, (features, logits) in zip(
                participants, rounds.upload_from_participants(messages), strict=True
            ):
                uploads[k] = Upload(features, logits, labels[k])
            # Server: train on their features, labels and logits.
            with ctx.server():
                features = torch.cat([uploads[k].features for k in participants])
                logits = torch.cat([uploads[k].logits for k in participants])
                y = torch.cat([uploads[k].labels for k in participants])
                shard = make_shard_with_logits(features, y, logits, self.weight)
                stream = f"fedgkt server {t}"
                for _ in ctx.train(
                    [server], [shard], recipe=server_recipe, loss=loss, stream=stream, ids=None
                ):
                    yield Progress(PHASE, t, self.rounds)
            rate = f"lr={ctx.recipe.lr:g}"
            parameters = list(server.parameters())
            for k in participants:
                parameters += edges[k].parameters()
            check_training_is_finite(parameters, f"Round {t + 1}", rate)
            if should_record_curve_point(t + 1, self.rounds):
                networks = ClientModels([copy_and_join_halves(edge, server) for edge in edges])
                snapshot = LocalModels(networks, ctx.largest_client)
                yield Progress(PHASE, t + 1, self.rounds, {"round": t + 1}, model=snapshot)
        return snapshot


class Upload(NamedTuple):
    """A client's last upload: `features [n, d]` and `logits [n, C]` of its samples, and their `labels [n]`."""

    features: Tensor
    logits: Tensor
    labels: Tensor


def make_shard_with_logits(
    samples: Samples, labels: Labels, other_logits: Logits, weight_of_other_logits: float
) -> Shard:
    """A shard for `make_transfer_loss`: samples, labels, and for each sample the other side's logits and their
    weight."""
    return (
        samples,
        labels,
        other_logits,
        other_logits.new_full((len(labels),), weight_of_other_logits),
    )


def make_transfer_loss(temperature: float) -> ClientLossPerSample:
    """CE + α τ² KL(softmax(others / τ) ‖ softmax(logits / τ)) of every sample, `[n]`; `others [n, C]`, `weight [n]`."""

    def loss(
        features: Tensor, logits: Tensor, labels: Tensor, others: Tensor, weight: Tensor
    ) -> Tensor:
        cross_entropy = F.cross_entropy(logits, labels, reduction="none")
        return cross_entropy + weight * compute_distillation_losses(others, logits, temperature)

    return loss


def copy_lower_half_with_new_classifier(network: Network, stream: torch.Generator) -> Network:
    """The network that a client trains: the first of two blocks, its outputs flat, and a classifier of its own."""
    client = ClientBlocks(network, 2)
    size = prod(client.measure_block_output_shapes()[0])
    like = network.classifier.weight
    head: Any = make_initialised_layer(
        nn.Linear, size, len(like), generator=stream, dtype_device_template=like
    )
    return make_network_of_layers(
        [*client.blocks[0], nn.Flatten(1)], head, (*network.architecture, "lower")
    )


def copy_upper_half(network: Network) -> Network:
    """The network that the server trains: the second block, which reads flat features, and the network's classifier."""
    client = ClientBlocks(network, 2)
    shape = client.measure_block_output_shapes()[0]
    if len(shape) == 1:
        return client.make_network_from_block_upwards(1)
    return client.make_network_from_block_upwards(1, [nn.Unflatten(1, shape)])


def copy_and_join_halves(lower: Network, upper: Network) -> Network:
    """A client's half and the server's as one network, copied."""
    lower = copy_model(lower)
    upper = copy_model(upper)
    architecture = (*upper.architecture, "joined")
    return make_network_of_layers([*lower.body, *upper.body], upper.classifier, architecture)
