"""FedMA: matched averaging, layer by layer (Wang et al., ICLR 2020, arXiv 2002.06440).

Neuron matching of whole networks fits the units of a layer after the layers below have drifted apart. FedMA goes up one
layer at a time. For each layer:

1. Clients train all layers that are not yet fused, on the output of the fused ones, and send the lowest.
2. The server matches its units by what comes into them, v = [weights, bias], under PFNM's prior
   (`rules.match_neurons_of_clients`: a Gaussian of variance σ² around shared units, these from N(0, σ0²), and a
   Beta-Bernoulli process of mass γ for which client has which): one linear assignment a client, in which new units
   are columns, too. A shared unit is the mean of the units matched with it, which minimises the paper's Eq. 2 for
   squared distances.
3. The layer and its own places π_k go down to each client, which freezes it. The next layer's columns follow: that of a
   shared unit is the client's column of its unit there, or 0 if it has none.

In the end the classifiers are averaged class by class with w_kc = n_kc / Σ_j n_jc, which takes C class counts.

Bytes of one client, with J_l shared and L_l own units of layer l: up 4 Σ_l L_l (J_{l-1} + 1) + 4 C (J + 1) + 4 C; down
the first network, and 4 Σ_l [J_l (J_{l-1} + 1) + L_l]. L + 1 rounds for L hidden layers: few-shot, as FuseFL is.

Departures: E / (L + 1) epochs a round, the remainder in the last, so that all rounds together are as long as one shot
(FuseFL's Table 11 does the same; the paper trains to the end in each). The algorithm divides by all clients where not
all of them have a unit, and its code takes the posterior mean. Networks with one layer in each block and
no batch norm (`mlp`, `cnn`, `vgg9`); no LSTM. Above the first layer images are not augmented.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ...errors import UsageError
from ...models import Network
from ...models.state import copy_model
from ...tensor_types import LayerMatrix
from ...training import ClientModels, run_in_chunks
from ...training.loop import LabelledSamples, Shard
from ..base import Context, Method, NetworkModel, Progress, Report, Steps, knob, register
from ..parts.frozen_ensemble import send_class_counts_and_compute_class_shares
from ..traffic import FederationSizes, RunBytesUpPlusDown
from .rules import (
    NeuronIndices,
    has_plain_blocks,
    list_linear_and_convolution_layers,
    match_neurons_of_clients,
)


@dataclass(frozen=True, eq=False)
class FedMAReport(Report):
    """The widths of the fused layers.

    `units [L]`: hidden units of each layer of the result
    shared [L]: the share of them that all clients have
    """

    units: list[int] | None = None
    shared: list[float] | None = None


class FusedRowsAndPlaces(NamedTuple):
    """A layer `[J, i + 1]`, and for each client the rows of it that its own units became."""

    rows: Tensor
    places: list[Tensor]


Block = TypeVar("Block", bound=nn.Module)


@register(
    "fedma",
    title="FedMA",
    group="Average weights",
    paper="Wang et al., ICLR 2020",
    rounds="a round for each layer",
    traffic="S_θ + about 2 S_θ + 4 C",
    needs=["one architecture"],
    sends="its layers",
    back="the matched layers",
    leaks="each client's layers and class counts",
)
class FedMA(Method):
    """Match and average layer after layer; clients train the layers above on the averaged ones."""

    trains_locally = False
    sends_models = False

    sigma: float = knob(0.3, "Noise of neurons", symbol="σ", low=1e-3, high=1e3, log=True)
    sigma0: float = knob(1.0, "Spread of neurons", symbol="σ_0", low=1e-3, high=1e3, log=True)
    gamma: float = knob(1.0, "Mass", symbol="γ", low=1e-6, high=1e9, log=True)
    sweeps: int = knob(3, "Sweeps", low=0, high=20)

    report = FedMAReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return RunBytesUpPlusDown(sizes.models_down + 2 * sizes.models_up, is_exact=False)

    def refuse(self, ctx: Context) -> None:
        if not has_plain_blocks(ctx.initial_model()):
            raise UsageError(
                "FedMA needs blocks of one layer without batch norm; set model=mlp or "
                "cnn, or choose neuron matching."
            )

    def run(self, ctx: Context) -> Steps[NetworkModel]:
        all_clients = range(ctx.clients_count)
        models = ctx.send_initial_models()
        shards = [ctx.private.train(k) for k in all_clients]
        fused = copy_model(models[0])
        hidden = len(models[0].body)
        units: list[int] = []
        shared_by_all: list[float] = []
        for n in range(hidden):
            phase = f"layer {n + 1}"
            # Clients: train the layers above the fused ones, and send the lowest.
            yield from self._train_unfused_layers_in_place(ctx, models, shards, n, hidden)
            received = []
            for k in all_clients:
                lowest = list_linear_and_convolution_layers(models[k])[0]
                received.append(ctx.link.up(k, make_layer_matrix_with_bias(lowest), phase=phase))
            # Server: match and average. Each client gets the layer, and the places of its own units in it.
            with ctx.server():
                layer, places_of_units = self.match_and_average_client_layers(received)
                count = torch.bincount(torch.cat(places_of_units), minlength=len(layer))
                units.append(len(layer))
                shared_by_all.append(float((count == ctx.clients_count).double().mean()))
                fused.body[n] = copy_block_with_layer_matrix(fused.body[n], layer)
            for k in all_clients:
                layer, client_places = ctx.link.down(
                    k, (layer, places_of_units[k].int()), phase=phase
                )
                x, y = shards[k]
                outputs = run_in_chunks(copy_block_with_layer_matrix(fused.body[n], layer), x)
                shards[k] = LabelledSamples(outputs, y)
                remove_fused_lowest_layer_in_place(models[k], client_places.long(), len(layer))
        # Clients: train the classifiers; these go up. Server: average them by class shares.
        yield from self._train_unfused_layers_in_place(ctx, models, shards, hidden, hidden)
        received = []
        for k in all_clients:
            received.append(
                ctx.link.up(
                    k, make_layer_matrix_with_bias(models[k].classifier), phase="classifiers"
                )
            )
        shares = send_class_counts_and_compute_class_shares(ctx)
        with ctx.server():
            mean = sum(share[:, None] * rows for share, rows in zip(shares, received, strict=True))
            fused.classifier = copy_block_with_layer_matrix(fused.classifier, mean)
            fused.architecture = (*fused.architecture, *units)
        return NetworkModel(fused, FedMAReport(units, shared_by_all))

    def _train_unfused_layers_in_place(
        self,
        ctx: Context,
        models: Sequence[Network],
        shards: Sequence[Shard],
        fused_layer_count: int,
        hidden_layer_count: int,
    ) -> Steps[None]:
        """Clients: their part of the epochs on the layers above the fused ones."""
        total = ctx.recipe.epochs
        share = total // (hidden_layer_count + 1)
        epochs = (
            share if fused_layer_count < hidden_layer_count else total - fused_layer_count * share
        )
        recipe = replace(ctx.recipe, epochs=epochs)
        if fused_layer_count:
            recipe = replace(recipe, augmentation="none")
        stream = f"batches of layer {fused_layer_count + 1}" if fused_layer_count else "batches"
        for tick in ctx.train(models, shards, recipe=recipe, stream=stream):
            yield Progress(
                "layers",
                fused_layer_count * share + tick.done,
                total,
                {"layer": fused_layer_count + 1},
            )
        ctx.check_finite(ClientModels(models))

    def match_and_average_client_layers(
        self, client_layers: Sequence[LayerMatrix]
    ) -> FusedRowsAndPlaces:
        """One layer `[J, i + 1]` from the clients' layers `[L_k, i + 1]` (weights and bias), and the places.

        The places `[L_k]` are, for each client, the shared unit of each of its own.
        """
        vectors = [rows.cpu().double() for rows in client_layers]
        ones = torch.ones(vectors[0].shape[1], dtype=torch.float64)
        precisions = [ones / self.sigma**2] * len(vectors)
        result = match_neurons_of_clients(
            vectors, precisions, prior_deviation=self.sigma0, mass=self.gamma, sweeps=self.sweeps
        )
        global_units = torch.cat(result.members)
        count = torch.bincount(global_units)
        total = vectors[0].new_zeros(len(count), len(ones))
        mean = total.index_add(0, global_units, torch.cat(vectors)) / count[:, None]
        return FusedRowsAndPlaces(mean.to(client_layers[0]), result.members)


def make_layer_matrix_with_bias(layer: nn.Linear | nn.Conv2d) -> LayerMatrix:
    """`[units, i + 1]`: the weights that come into each unit, or channel, and its bias."""
    assert layer.bias is not None  # see `has_plain_blocks`
    return torch.cat([layer.weight.flatten(1), layer.bias[:, None]], 1).detach()


def copy_block_with_layer_matrix(block: Block, layer_matrix: LayerMatrix) -> Block:
    """A copy of `block`, whose only layer has these `layer_matrix [units, i + 1]`."""
    twin = copy_model(block)
    (layer,) = list_linear_and_convolution_layers(twin)
    layer.bias = nn.Parameter(layer_matrix[:, -1].contiguous())
    replace_weight_and_sizes_in_place(
        layer, layer_matrix[:, :-1].reshape(len(layer_matrix), -1, *layer.weight.shape[2:])
    )
    return twin


def remove_fused_lowest_layer_in_place(
    model: Network, fused_unit_of_each_own_unit: NeuronIndices, fused_unit_count: int
) -> None:
    """Remove a client's lowest layer, which is fused; the layer above it then reads the fused units.

    fused_unit_of_each_own_unit: the client's unit i became the fused unit of this index

    A linear layer has H W columns for each channel that it reads.
    """
    model.body = model.body[1:]
    layer = list_linear_and_convolution_layers(model)[0]
    columns = layer.weight.detach().unflatten(1, (len(fused_unit_of_each_own_unit), -1))
    weight = columns.new_zeros(len(columns), fused_unit_count, *columns.shape[2:])
    weight[:, fused_unit_of_each_own_unit.to(columns.device)] = columns
    replace_weight_and_sizes_in_place(layer, weight.flatten(1, 2))
    model.architecture = (*model.architecture, fused_unit_count)


def replace_weight_and_sizes_in_place(layer: nn.Linear | nn.Conv2d, new_weight: Tensor) -> None:
    """Give a layer a weight with another number of units or inputs."""
    layer.weight = nn.Parameter(new_weight.contiguous())
    outputs, inputs = new_weight.shape[:2]
    if new_weight.dim() == 2:
        layer.out_features = outputs
        layer.in_features = inputs
    else:
        layer.out_channels = outputs
        layer.in_channels = inputs
