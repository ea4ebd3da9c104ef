"""One-round FedAvg (McMahan et al., AISTATS 2017): θ̄ = Σ_k (n_k / N) θ_k, once, after full local
training.

Batch-norm statistics are averaged with the same weights. n_k is the size of client k's training
part; it travels in the message's header. `average` takes a robust average in place of it
(`parts/averages.py`), which does not know n_k.

`rank`: one-shot LoRA (`parts/lora.py`). Clients train and send low-rank changes of the linear layers. Here they
change a random network; in the papers it is large and pretrained. Convolutions are not linear layers, so with
`model=cnn` they keep their random initial weights.
"""

from dataclasses import replace

import torch
from torch import nn

from ..errors import UsageError
from ..models import copy_model_state
from ..rng import make_torch_generator
from .base import (
    ClientWeighting,
    Context,
    GlobalModel,
    Method,
    NetworkModel,
    Steps,
    knob,
    make_client_weights_knob,
    register,
)
from .parts.averages import (
    MeanMedianTrimmedOrKrum,
    average_states,
    check_average_is_possible,
    make_assumed_liars_knob,
    make_average_rule_knob,
)
from .parts.lora import LoraAdapters
from .traffic import FederationSizes, RunBytesUpPlusDown


@register(
    "fedavg",
    title="FedAvg, one round",
    group="Average weights",
    paper="McMahan et al., AISTATS 2017",
    needs=["one architecture"],
    leaks="each client's model and sample count",
    forgets="the other clients' models are averaged again",
)
class FedAvg(Method):
    """Upload once, and average the weights."""

    weights: ClientWeighting = make_client_weights_knob("w_k")
    average: MeanMedianTrimmedOrKrum = make_average_rule_knob()
    assumed: int = make_assumed_liars_knob()
    rank: int = knob(0, "Rank", low=0, high=4096)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return sizes.one_shot_bytes.as_estimate if self.rank else sizes.one_shot_bytes

    def refuse(self, ctx: Context) -> None:
        check_average_is_possible(self.average, self.assumed, ctx.clients_count, self.info.title)
        if not self.rank:
            return
        if ctx.init != "same":
            raise UsageError("rank needs one first network that all clients change; set init=same.")
        if ctx.recipe.optimizer != "sgd":
            raise UsageError("rank is kept by steps of SGD alone; set optimizer=sgd.")
        layers = ctx.initial_model().modules()
        if any(isinstance(layer, nn.BatchNorm2d) for layer in layers):
            raise UsageError(
                "rank sends no statistics of batch norm; set model to one without it, or rank=0."
            )

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        sizes = ctx.sizes if self.weights == "samples" else [1] * ctx.clients_count
        if self.rank:
            return (yield from self.run_with_low_rank_adapters(ctx, sizes))
        # Clients: train alone, upload once.
        uploaded = yield from ctx.one_upload()
        # Server: the weighted average.
        with ctx.server():
            mean = average_states(uploaded.states(), sizes, self.average, self.assumed)
            return NetworkModel(ctx.new_model(mean))

    def run_with_low_rank_adapters(
        self, ctx: Context, client_sample_counts: list[int]
    ) -> Steps[GlobalModel]:
        """Run the method with B of each layer, and the last layer, in place of the network."""
        # Link: the first network and the seed of A down.
        models = ctx.send_initial_models()
        seed = int(ctx.link.broadcast(torch.tensor([ctx.seed]), phase="seed of A"))
        start = copy_model_state(models[0])
        adapters = LoraAdapters(models[0], self.rank, make_torch_generator(seed, "lora"))
        # Clients: steps on B and on the last layer; these go up.
        recipe = replace(ctx.recipe, weight_decay=0)  # which would move the numbers that stay
        trained = yield from ctx.further_training(
            "local training",
            models,
            recipe=recipe,
            adjust=adapters.limit_weight_gradients_to_trained_numbers_in_place,
        )
        received = []
        for k in range(len(trained)):
            message = adapters.make_message(start, trained.state(k))
            received.append(ctx.link.up(k, message, phase="adapters"))
        # Server: their mean, put into the first network.
        with ctx.server():
            mean = average_states(received, client_sample_counts, self.average, self.assumed)
            return NetworkModel(ctx.new_model(adapters.merge_message_or_mean_message(start, mean)))
