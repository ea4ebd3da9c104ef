"""FedMA: matched averaging, layer by layer (Wang et al., ICLR 2020, arXiv 2002.06440).

Neuron matching of whole networks fits the units of a layer after the layers below have drifted apart. FedMA goes up one
layer at a time. For each layer:

1. Clients train all layers that are not yet fused, on the output of the fused ones, and send the lowest.
2. The server matches its units by what comes into them, v = [weights, bias], under PFNM's prior (`rules.grow`: a
   Gaussian of variance σ² around shared units, these from N(0, σ0²), and a Beta-Bernoulli process of mass γ that says
   which client has which): one linear assignment a client, in which new units are columns, too. A shared unit is the
   mean of the units matched with it, which minimises the paper's Eq. 2 for squared distances.
3. The layer and its own places π_k go down to each client, which freezes it. The next layer's columns follow: that of a
   shared unit is the client's column of its unit there, or 0 if it has none.

In the end the classifiers are averaged class by class with w_kc = n_kc / Σ_j n_jc, which takes C class counts.

Bytes of one client, with J_l shared and L_l own units of layer l: up 4 Σ_l L_l (J_{l-1} + 1) + 4 C (J + 1) + 4 C; down
the first network, and 4 Σ_l [J_l (J_{l-1} + 1) + L_l]. L + 1 rounds for L hidden layers: few-shot, as FuseFL is.

Departures: E / (L + 1) epochs a round, the remainder in the last, so that all rounds together are as long as one shot
(FuseFL's Table 11 does the same; the paper trains to the end in each). The algorithm divides by all clients where a
unit is not everybody's, and its code takes the posterior mean. Networks with one layer in each block and
no batch norm (`mlp`, `cnn`, `vgg9`); no LSTM. Above the first layer images are not augmented.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import demand
from ...models import Network
from ...models.state import copy_model
from ...training import ClientModels, in_chunks
from ..base import Context, Method, NetworkModel, Progress, Report, Steps, knob, register
from ..parts.frozen_ensemble import class_count_weights
from .rules import grow, plain, unit_layers


@dataclass(frozen=True, eq=False)
class FedMAReport(Report):
    """`units [L]`: hidden units of each layer of the result;   shared [L]: the share of them that all clients have."""

    units: list[int] | None = None
    shared: list[float] | None = None


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

    def refuse(self, ctx: Context) -> None:
        other = "set model=mlp or cnn, or choose neuron matching"
        demand(
            plain(ctx.initial_model()),
            f"FedMA needs blocks of one layer without batch norm; {other}.",
        )

    def run(self, ctx: Context) -> Steps[NetworkModel]:
        models, everyone = ctx.send_initial_models(), range(ctx.clients_count)
        shards = [ctx.private.train(k) for k in everyone]
        fused, hidden = copy_model(models[0]), len(models[0].body)
        units: list[int] = []
        everybodys: list[float] = []
        for n in range(hidden):
            # Clients: train what is above the fused layers, and send the lowest.
            yield from self._train(ctx, models, shards, n, hidden)
            received = [
                ctx.link.up(k, rows_of(unit_layers(models[k])[0]), phase=f"layer {n + 1}")
                for k in everyone
            ]
            # Server: match and average. Everybody gets the layer, and where its own units went.
            with ctx.server():
                shared, places = self.matched(received)
                count = torch.bincount(torch.cat(places), minlength=len(shared))
                units.append(len(shared))
                everybodys.append(float((count == ctx.clients_count).double().mean()))
                fused.body[n] = block = with_rows(fused.body[n], shared)
            for k in everyone:
                shared, own = ctx.link.down(k, (shared, places[k].int()), phase=f"layer {n + 1}")
                shards[k] = (in_chunks(with_rows(block, shared), shards[k][0]), shards[k][1])
                rise(models[k], own.long(), len(shared))
        yield from self._train(ctx, models, shards, hidden, hidden)
        received = [
            ctx.link.up(k, rows_of(models[k].classifier), phase="classifiers") for k in everyone
        ]
        shares = class_count_weights(ctx)
        with ctx.server():
            total = sum(share[:, None] * rows for share, rows in zip(shares, received, strict=True))
            fused.classifier = with_rows(fused.classifier, total)
            fused.architecture = (*fused.architecture, *units)
        return NetworkModel(fused, FedMAReport(units, everybodys))

    def _train(
        self, ctx: Context, models: Sequence[Network], shards: Sequence, n: int, hidden: int
    ) -> Steps[None]:
        """Clients: their part of the epochs on the layers above the n fused ones."""
        every = ctx.recipe.epochs
        share = every // (hidden + 1)
        recipe = replace(ctx.recipe, epochs=share if n < hidden else every - n * share)
        if n:
            recipe = replace(recipe, augmentation="none")
        stream = f"batches of layer {n + 1}" if n else "batches"
        for tick in ctx.train(models, shards, recipe=recipe, stream=stream):
            yield Progress("layers", n * share + tick.done, every, {"layer": n + 1})
        ctx.check_finite(ClientModels(models))

    def matched(self, layers: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """One layer, `[J, i + 1]`, of the clients' layers `[L_k, i + 1]` (weights and bias), and for each client the
        shared unit `[L_k]` of each of its own."""
        vectors = [rows.cpu().double() for rows in layers]
        ones = torch.ones(vectors[0].shape[1], dtype=torch.float64)
        noise = [ones / self.sigma**2] * len(vectors)
        places = grow(
            vectors, noise, spread=self.sigma0, mass=self.gamma, sweeps=self.sweeps
        ).members
        count = torch.bincount(torch.cat(places))
        mean = vectors[0].new_zeros(len(count), len(ones))
        mean = mean.index_add(0, torch.cat(places), torch.cat(vectors)) / count[:, None]
        return mean.to(layers[0]), places


def rows_of(layer: Any) -> Tensor:
    """`[units, i + 1]`: the weights that come into each unit, or channel, and its bias."""
    return torch.cat([layer.weight.flatten(1), layer.bias[:, None]], 1).detach()


def with_rows(block: nn.Module, rows: Tensor) -> Any:
    """A copy of `block`, whose one layer has these `rows [units, i + 1]`."""
    twin = copy_model(block)
    (layer,) = unit_layers(twin)
    layer.bias = nn.Parameter(rows[:, -1].contiguous())
    set_weight(layer, rows[:, :-1].reshape(len(rows), -1, *layer.weight.shape[2:]))
    return twin


def rise(model: Network, places: Tensor, units: int) -> None:
    """A client's lowest layer is fused and goes: the next one reads its `units`, unit i of the client at places[i]. A
    linear layer has H W columns for each channel that it reads."""
    model.body = model.body[1:]
    layer = unit_layers(model)[0]
    own = layer.weight.detach().unflatten(1, (len(places), -1))
    weight = own.new_zeros(len(own), units, *own.shape[2:])
    weight[:, places.to(own.device)] = own
    set_weight(layer, weight.flatten(1, 2))
    model.architecture = (*model.architecture, units)


def set_weight(layer: Any, weight: Tensor) -> None:
    """Another number of units or inputs in place of the old one."""
    layer.weight = nn.Parameter(weight.contiguous())
    names = (
        ("out_features", "in_features") if weight.dim() == 2 else ("out_channels", "in_channels")
    )
    for name, size in zip(names, weight.shape, strict=False):
        setattr(layer, name, size)
