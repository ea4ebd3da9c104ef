"""DS-FL (Itahara et al., IEEE TMC 2023): clients exchange predictions on public images instead of weights.

The public images x go to every client once. Then, for t = 1…T:

1. Client k trains E epochs on its own data and sends its probabilities on the public images up, p_k =
   softmax(f_k(x)).
2. Server: entropy-reduction aggregation (ERA), q = softmax(p̄ / τ), p̄ = (1/M) Σ_k p_k. With τ = 0.1 the mean of M
   diffident predictions becomes a sharp target; aggregation=mean takes q = p̄ (the paper's SA). The server's own
   model is distilled on (x, q), with the cross-entropy -Σ_c q_c log p_c.
3. q goes down, and every client distils as well. After the last round this would change nothing, so it is left out.

Models never travel: clients draw their own first weights and may have different architectures (the server has the
first client's). What a round costs depends on N public images and C classes only: 4 N C (2T - 1) bytes for a client,
and the images once. They are counted as they are held here, 4 bytes a number; share_images=false leaves them out, for
a public set that the clients already have.

Departures: all public images are used in every round (the paper draws 1,000 of 20,000). Distillation is the clients'
recipe on soft labels, `distil_steps` batches rounded to whole epochs; local_epochs = 0 takes the recipe's epochs. Where
Fed-ET compares with it, the server's model is larger than the clients'; here it is as large as the largest there.

Few local epochs a round do not work under label skew: while most clients answer with their largest class whatever they
see, the mean prediction is one class for nearly all images, and sharpening makes it everyone's target.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch

from ..models import Network
from ..models.state import copy_model
from ..tensor_types import ClientProbabilities, Probabilities
from ..training import Recipe, iterate_training_of_clients_in_place, run_in_chunks
from ..training.loop import Shard
from ..value_types import MeanPassesPerClient
from .base import (
    Context,
    GlobalModel,
    Method,
    NetworkModel,
    Progress,
    Steps,
    knob,
    register,
)
from .context import check_training_is_finite
from .parts.rounds import PHASE
from .traffic import FederationSizes, RunBytesUpPlusDown


@register(
    "dsfl",
    title="DS-FL",
    paper="Itahara et al., IEEE TMC 2023",
    rounds="T rounds",
    traffic="4 N C (2T - 1) + public images",
    needs=["public"],
    extra="N unlabelled public images, at the clients too",
    sends="its predictions",
    back="their mean",
    leaks="each client's predictions on public images, every round",
)
class DSFL(Method):
    """Clients send predictions on public images. The server makes their mean sharper, and all learn from it."""

    trains_locally = False
    sends_models = False

    rounds: int = knob(2, "Rounds", symbol="T", low=1, high=1000)
    local_epochs: int = knob(0, "Epochs per round", symbol="E", low=0, high=1000)
    distil_steps: int = knob(300, "Distillation steps", low=1, high=100_000, log=True)
    aggregation: Literal["era", "mean"] = knob("era", "Aggregation", options=("era", "mean"))
    temperature: float = knob(0.1, "Temperature", symbol="τ", low=0.01, high=10, log=True)
    share_images: bool = knob(True, "Send public images")

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        answers = sizes.classes * (2 * self.rounds - 1)
        images = sizes.numbers if self.share_images else 0
        return RunBytesUpPlusDown(
            sizes.count_bytes_from_all_clients(sizes.public_samples * (answers + images))
        )

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        return float(self.rounds * (self.local_epochs or recipe.epochs))

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        all_clients = range(ctx.clients_count)
        x = ctx.public
        client_x = ctx.link.broadcast(x, phase="public images") if self.share_images else x
        models = []
        for k in all_clients:
            stream = ctx.generator("dsfl", "init", k)
            models.append(ctx.build(ctx.architectures[k], stream))
        student = ctx.build(ctx.architectures[0], ctx.generator("dsfl", "init", "server"))
        shards = [ctx.private.train(k) for k in all_clients]
        local_epochs = self.local_epochs or ctx.recipe.epochs
        public_batches = math.ceil(len(x) / ctx.recipe.batch_size)
        distil_epochs = max(1, round(self.distil_steps / public_batches))
        for t in range(self.rounds):
            # Clients: train, then predict the public images.
            yield from self._train_in_place_for_epochs(
                ctx, t, "local", models, shards, local_epochs
            )
            received = []
            for k in all_clients:
                probabilities = run_in_chunks(models[k], client_x).softmax(1)
                received.append(ctx.link.up(k, probabilities, phase=PHASE))
            # Server: aggregate, and distil into its own model.
            with ctx.server():
                q = aggregate_client_probabilities(
                    torch.stack(received), self.aggregation, self.temperature
                )
                yield from self._train_in_place_for_epochs(
                    ctx, t, "server", [student], [(x, q)], distil_epochs
                )
                check_training_is_finite(
                    student.parameters(), f"Round {t + 1}", f"lr={ctx.recipe.lr:g}"
                )
                snapshot = NetworkModel(copy_model(student))  # later rounds do not change it
            yield Progress(PHASE, t + 1, self.rounds, {"round": t + 1}, model=snapshot)
            # Clients: distil what comes down.
            if t + 1 < self.rounds:
                q = ctx.link.broadcast(q, phase=PHASE)
                public = [(client_x, q)] * ctx.clients_count
                yield from self._train_in_place_for_epochs(
                    ctx, t, "clients", models, public, distil_epochs
                )
        return snapshot

    def _train_in_place_for_epochs(
        self,
        ctx: Context,
        round_index: int,
        role_in_stream_name: Literal["local", "server", "clients"],
        models: Sequence[Network],
        shards: Sequence[Shard],
        epoch_count: int,
    ) -> Steps[None]:
        """Train `models` in place for `epoch_count` epochs, each on its shard: (x, labels) or (x, soft labels)."""
        recipe = replace(ctx.recipe, epochs=epoch_count)
        if role_in_stream_name != "local":  # the soft labels belong to the images as they are
            recipe = replace(recipe, augmentation="none")
        stream = f"dsfl {role_in_stream_name} {round_index}"
        for _ in iterate_training_of_clients_in_place(
            models, shards, recipe, seed=ctx.seed, backend=ctx.backend, stream=stream
        ):
            yield Progress(PHASE, round_index, self.rounds)


def aggregate_client_probabilities(
    client_probabilities: ClientProbabilities,
    aggregation: Literal["era", "mean"],
    temperature: float,
) -> Probabilities:
    """q `[N, C]` from the clients' probabilities `[M, N, C]`: their mean, for "era" as the logits of a softmax at τ."""
    mean = client_probabilities.mean(0)
    if aggregation == "era":
        return (mean / temperature).softmax(1)
    return mean
