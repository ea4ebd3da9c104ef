"""Fed-ET: small models of several architectures teach a larger one at the server, on unlabelled public data.

Cho et al., *Heterogeneous Ensemble Knowledge Transfer for Training Large Models in Federated Learning*, IJCAI 2022.

Round t of T: the server draws m of the M clients in proportion to n_k; each gets its architecture's small model.
1. Clients take J SGD steps of batch b and send the small model back. The server overwrites the head of its large model
   by the mean of all m heads (`CommonHeadNetwork`: every network ends in a head of one shape).
2. The m models label the public samples. Each is weighted, sample by sample, by the variance of its softmax output;
   those that disagree give a second, soft target of weight λ_div (`consensus.py`). The large model takes J_s steps on
   both.
3. Small models of one architecture are averaged, unweighted; each gets the head of the large model.
A chosen client's round costs twice the numbers of its model. The large model, public samples and labels never travel.

rounds=1 is the one-shot form (FENS compares with it; the classroom's): all clients train to the end and upload
once, then come all server steps. They are the clients that all methods share, and have no common head (transfer=auto).

FIDELITY.md says what the paper leaves open, and where this departs from it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ...models import MODELS, Network, copy_model_state, count_parameters, load_state
from ...models.build import choose_default_width
from ...models.network import Architecture
from ...models.plain import MLP_SMALL_INPUT
from ...tensor_types import ClientLogits, Labels, LossPerStep, Samples
from ...training import ClientModels, EpochProgress, Recipe, iterate_training_of_clients_in_place
from ...training.distill import StudentTrainer
from ...training.loop import LabelledSamples
from ...value_types import ClientIndex, MeanPassesPerClient
from ..base import ClientsAlone, Context, Method, Progress, Steps, knob, register
from ..context import check_training_is_finite
from ..parts.frozen_ensemble import FrozenEnsemble
from ..parts.images import (
    SOURCES,
    check_image_source,
    choose_public_samples,
    find_sample_indices_of_lower_half_of_classes,
)
from ..run_outputs import should_record_curve_point
from ..traffic import FederationSizes, RunBytesUpPlusDown
from . import consensus
from .consensus import Consensus, State
from .model import FedETReport, LargeModel, PastRound, Student, join_past_rounds_if_memory_allows

# -------------------------------------------------------------------------------------------------------- participation
# Which client has which architecture, how large the server's network is, which clients take part in a round.


def draw_clients_in_proportion_to_samples(
    client_sample_counts: Sequence[int], client_count_or_0_for_all: int, stream: torch.Generator
) -> list[ClientIndex]:
    """The indices of the drawn clients, ascending: without replacement, in proportion to `client_sample_counts`.

    All of them, without a draw, if the count is 0 or at least as large as the number of clients.
    """
    clients = len(client_sample_counts)
    if client_count_or_0_for_all == 0 or client_count_or_0_for_all >= clients:
        return list(range(clients))
    weights = torch.tensor(client_sample_counts, dtype=torch.float64)
    return sorted(torch.multinomial(weights, client_count_or_0_for_all, generator=stream).tolist())


def repeat_shuffled_samples(
    samples: Samples, labels: Labels, sample_count: int, stream: torch.Generator
) -> LabelledSamples:
    """`sample_count` samples of a shard `(samples [n, ...], labels [n])`, in as many shuffled
    passes over it as that takes.

    With sample_count = J b, one epoch in batches of b is J steps, however few samples a client has.
    """
    passes = []
    for _ in range(math.ceil(sample_count / len(labels))):
        passes.append(torch.randperm(len(labels), generator=stream))
    rows = torch.cat(passes)[:sample_count].to(labels.device)
    return LabelledSamples(samples[rows], labels[rows])


def train_chosen_clients_in_place(
    ctx: Context,
    round_index: int,
    chosen_clients: Sequence[ClientIndex],
    models_of_chosen_clients: Sequence[Network],
    steps_or_0_for_all_epochs: int,
) -> Iterator[EpochProgress]:
    """Round t at the chosen clients: trains their models in place, by so many steps of SGD or all epochs of the recipe.

    models_of_chosen_clients: one for each of `chosen_clients`, in their order

    RunError if the training of one diverges.
    """
    recipe = ctx.recipe
    if steps_or_0_for_all_epochs:
        recipe = replace(recipe, epochs=1)
    shards = []
    for k in chosen_clients:
        x, y = ctx.private.train(k)
        if steps_or_0_for_all_epochs:
            stream = ctx.generator("fedet", "local", round_index, k)
            x, y = repeat_shuffled_samples(
                x, y, steps_or_0_for_all_epochs * recipe.batch_size, stream
            )
        shards.append((x, y))
    batches = f"fedet batches {round_index}"
    yield from iterate_training_of_clients_in_place(
        models_of_chosen_clients,
        shards,
        recipe,
        seed=ctx.seed,
        backend=ctx.backend,
        ids=chosen_clients,
        stream=batches,
    )
    for k, model in zip(chosen_clients, models_of_chosen_clients, strict=True):
        check_training_is_finite(
            model.parameters(), f"Local training of client {k}", f"lr={recipe.lr:g}"
        )


DealtOrDrawn = Literal["dealt", "drawn"]
POOLS: tuple[DealtOrDrawn, ...] = get_args(DealtOrDrawn)


def assign_client_architectures(ctx: Context, dealt_or_drawn: DealtOrDrawn) -> list[Architecture]:
    """One a client. "dealt": the run's, in turn; "drawn": for each client one of the run's, uniformly at random.

    Shards are drawn at random, too, so dealing in turn is as random as drawing, except that the numbers are even.
    """
    if dealt_or_drawn == "dealt":
        return list(ctx.architectures)
    kinds = list(dict.fromkeys(ctx.architectures))
    stream = ctx.generator("pool", dealt_or_drawn)
    indices = torch.randint(len(kinds), (ctx.clients_count,), generator=stream)
    return [kinds[i] for i in indices.tolist()]


def choose_larger_server_architecture(
    ctx: Context,
    client_architectures: list[Architecture],
    model_text_or_auto: str = "auto",
    width_or_0_for_default: int = 0,
) -> Architecture:
    """The architecture of the server's network.

    model_text_or_auto: a model, with a width ("cnn:12") or without; "auto" is the kind of the clients' largest model
    width_or_0_for_default: counts before a width in the text. With neither, the width is twice that of the clients'
        largest model (of a model of another kind: twice its default); for the perceptron of small inputs four times
    """
    client_architectures = list(dict.fromkeys(client_architectures))
    sizes = [
        count_parameters(ctx.build(kind, ctx.generator("pool", "sizes")))
        for kind in client_architectures
    ]
    largest_name, _, _, largest_width = client_architectures[sizes.index(max(sizes))]
    model_text = largest_name if model_text_or_auto == "auto" else model_text_or_auto
    model_name, _, width_text = model_text.partition(":")
    width = width_or_0_for_default
    if not width and width_text:
        width = int(width_text)
    if not width:
        usual_width = choose_default_width(model_name, ctx.input_shape)
        if model_name == largest_name and largest_width:
            usual_width = largest_width
        is_small_mlp = model_name == "mlp" and prod(ctx.input_shape) <= MLP_SMALL_INPUT
        factor = 4 if is_small_mlp else 2
        width = min(MODELS[model_name].widths[1], factor * usual_width)
    return model_name, tuple(ctx.input_shape), ctx.classes, width


def format_architecture(architecture: Architecture) -> str:
    """An architecture as people write it: `mlp`, `mlp:16`."""
    name, _, _, width = architecture
    if width is None:
        return name
    return f"{name}:{width}"


VOTE_CHUNK = 256  # public samples that the teachers label before Stop can act


class HeadTransferDirections(NamedTuple):
    """Two switches: heads go up to the large model, and come down from it."""

    up: bool
    down: bool


TRANSFERS: dict[str, HeadTransferDirections | None] = {
    "auto": None,
    "both": HeadTransferDirections(True, True),
    "up": HeadTransferDirections(True, False),
    "down": HeadTransferDirections(False, True),
    "none": HeadTransferDirections(False, False),
}


@register(
    "fedet",
    title="Fed-ET",
    group="Distil, with public data",
    paper="Cho et al., IJCAI 2022",
    rounds="one-shot, or T rounds with m clients",
    traffic="2 S_θk (T rounds: each time it is chosen)",
    needs=["public"],
    extra="unlabelled public samples, at the server alone",
    leaks="each chosen client's model, every round; where clients are drawn, all sample counts",
)
class FedET(Method):
    """Small client models label public data. Each counts by how sure it is. A larger model learns from the labels."""

    rounds: int = knob(1, "Rounds", symbol="T", low=1, high=10_000)
    per_round: int = knob(0, "Clients per round", symbol="m", low=0, high=10_000)
    local_steps: int = knob(60, "Local steps", symbol="J", low=1, high=10_000)
    diversity: float = knob(0.05, "Diversity", symbol="λ_div", low=0, high=10)
    weighting: consensus.Weighting = knob(
        "softmax", "Weights", symbol="ω_k", options=consensus.WEIGHTINGS
    )
    temperature: float = knob(3.0, "Temperature", low=0.01, high=1000, log=True)
    normalise: consensus.DissentNormaliser = knob(
        "all", "Dissent over", options=consensus.NORMALISERS
    )
    transfer: str = knob("auto", "Heads", options=TRANSFERS)
    head: consensus.HeadKind = knob("mlp", "Common head", options=consensus.HEADS)
    width: int = knob(32, "Head's width", symbol="r", low=1, high=4096)
    pool: DealtOrDrawn = knob("dealt", "Small models", options=POOLS)
    server: str = knob("auto", "Server's model", model=True)
    server_width: int = knob(0, "Server's width", low=0, high=4096)
    server_steps: int = knob(60, "Server steps", symbol="J_s", low=1, high=10**5)
    one_shot_steps: int = knob(600, "Steps in one shot", low=1, high=10**6, log=True)
    server_lr: float = knob(0.05, "Server rate", symbol="η_s", low=1e-5, high=10, log=True)
    server_momentum: float = knob(0.9, "Server momentum", low=0, high=0.999)
    server_batch: int = knob(32, "Public batch", symbol="b_s", low=1, high=10_000)
    public: str = knob("held-out", "Public data", symbol="P", options=SOURCES)
    public_size: int = knob(0, "Public samples", symbol="|P|", low=0, high=1_000_000)
    transform: bool = knob(False, "Transform")

    report = FedETReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        if self.rounds == 1:
            return sizes.one_shot_bytes
        return RunBytesUpPlusDown(2 * self.rounds * sizes.models_up, is_exact=False)

    def validate(self, ctx: Context) -> None:
        check_image_source(ctx, self.public, self.transform, self.info.title)

    @property
    def head_transfer_directions(self) -> HeadTransferDirections:
        """The directions in which heads are transferred."""
        transfers = TRANSFERS[self.transfer]
        if transfers is None:
            has_rounds = self.rounds > 1
            return HeadTransferDirections(has_rounds, has_rounds)
        return transfers

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        if self.rounds == 1:
            return float(recipe.epochs)
        chosen = min(self.per_round or len(client_sample_counts), len(client_sample_counts))
        return (
            self.rounds * chosen * self.local_steps * recipe.batch_size / sum(client_sample_counts)
        )

    def run(self, ctx: Context) -> Steps[LargeModel]:
        self.validate(ctx)
        heads_up, heads_down = self.head_transfer_directions
        kinds = assign_client_architectures(ctx, self.pool)
        large = choose_larger_server_architecture(ctx, kinds, self.server, self.server_width)
        server = self._make_network(ctx, large, "server")
        different_kinds = list(dict.fromkeys(kinds))
        small = ClientModels([self._make_network(ctx, kind, "small") for kind in different_kinds])
        table = {kind: small.state(i) for i, kind in enumerate(different_kinds)}
        x = choose_public_samples(ctx, self.public, self.public_size, self.transform)
        report = FedETReport(
            architectures=[format_architecture(kind) for kind in kinds],
            server=format_architecture(large),
            small_parameters=small.parameters,
        )
        losses: list[Tensor] = []
        past: list[PastRound] = []
        per_round = self.per_round if self.rounds > 1 else 0
        for t in range(self.rounds):
            has_point = should_record_curve_point(t + 1, self.rounds)
            # Clients: train, send the small model.
            chosen = draw_clients_in_proportion_to_samples(
                ctx.sizes, per_round, ctx.generator("fedet", "chosen", t)
            )
            clients = yield from self._train_and_upload_chosen_clients(ctx, t, chosen, kinds, table)
            with ctx.server():
                # Step 1: heads up.
                states = [clients.state(j) for j in range(len(chosen))]
                if heads_up:
                    load_state(
                        server,
                        copy_model_state(server) | consensus.average_heads_unweighted(states),
                    )
                    if has_point:
                        student = Student(server, report)
                        yield self._make_progress(t, self.local_steps, student, "heads averaged")
                # Step 2: the ensemble loss on the public samples.
                logits = yield from self._compute_teacher_logits(ctx, t, clients, x)
                if self.public == "other-mix" and t == 0:
                    rows = find_sample_indices_of_lower_half_of_classes(
                        self.compute_consensus(logits).labels
                    )
                    x = x[rows]
                    logits = logits[:, rows]
                votes = self.compute_consensus(logits)
                report = report.copy_with_votes_of_round(
                    chosen,
                    clients,
                    votes,
                    logits,
                    x,
                    models_sent_per_client=self._count_models_sent_per_client_and_round(ctx, kinds),
                )
                losses.append(
                    (yield from self._distil_server_in_place(ctx, t, server, x, votes, report))
                )
                # Step 3: average by architecture, heads down.
                means = consensus.average_client_states_by_architecture(
                    table, states, [kinds[k] for k in chosen]
                )
                head = consensus.extract_head(copy_model_state(server)) if heads_down else {}
                table = {kind: state | head for kind, state in means.items()}
            if has_point:
                models_before = small.with_states(list(means.values()))
                models_after = small.with_states(list(table.values()))
                last = PastRound(t + 1, clients, models_before, models_after)
                past = join_past_rounds_if_memory_allows(past, last)
        report = replace(report, loss=torch.stack(losses).cpu().numpy())
        return LargeModel(server, report, last, past, self.compute_consensus)

    def compute_consensus(self, client_logits: ClientLogits) -> Consensus:
        """The server's consensus of the clients' `client_logits [m, B, C]`."""
        return consensus.compute_consensus(
            client_logits, self.weighting, self.temperature, self.normalise
        )

    def _can_use_shared_local_training(
        self, ctx: Context, client_architectures: list[Architecture]
    ) -> bool:
        """True if the local training is the one that all one-shot methods share."""
        return (
            self.rounds == 1
            and not any(self.head_transfer_directions)
            and client_architectures == ctx.architectures
        )

    def _count_models_sent_per_client_and_round(
        self, ctx: Context, client_architectures: list[Architecture]
    ) -> int:
        """The times that a chosen client's model crosses the link in a round: 1 (up) or 2 (down and up)."""
        if (
            self._can_use_shared_local_training(ctx, client_architectures)
            and ctx.init == "different"
        ):
            return 1
        return 2

    def _compute_teacher_logits(
        self, ctx: Context, round_index: int, clients: ClientModels, public_samples: Samples
    ) -> Steps[ClientLogits]:
        """The clients' logits `[m, P, C]` of the public samples."""
        teachers = FrozenEnsemble(clients, backend=ctx.backend)
        logits = []
        for chunk in public_samples.split(VOTE_CHUNK):
            logits.append(teachers.compute_logits_without_gradients(chunk))
            yield self._make_progress(round_index, self.local_steps)
        return torch.cat(logits, 1)

    def _train_and_upload_chosen_clients(
        self,
        ctx: Context,
        round_index: int,
        chosen_clients: list[ClientIndex],
        architecture_of_each_client: list[Architecture],
        state_by_architecture: dict[Architecture, State],
    ) -> Steps[ClientModels]:
        """The chosen clients' models after their local training, as the server receives them."""
        if self._can_use_shared_local_training(ctx, architecture_of_each_client):
            return (yield from ctx.one_upload())
        models = [
            self._make_network(ctx, architecture_of_each_client[k], "small") for k in chosen_clients
        ]
        for k, model in zip(chosen_clients, models, strict=True):
            load_state(
                model,
                ctx.link.down(
                    k, state_by_architecture[architecture_of_each_client[k]], phase="small models"
                ),
            )
        steps = self.local_steps if self.rounds > 1 else 0
        for tick in train_chosen_clients_in_place(ctx, round_index, chosen_clients, models, steps):
            if self.rounds == 1:
                snapshot = ClientsAlone(ClientModels(models)) if tick.has_current_models else None
                yield Progress("local training", tick.done, tick.total, model=snapshot)
            else:
                yield self._make_progress(round_index, self.local_steps * tick.done // tick.total)
        received = []
        for k, model in zip(chosen_clients, models, strict=True):
            state = ctx.make_upload(k, state_by_architecture[architecture_of_each_client[k]], model)
            received.append(ctx.link.up(k, state, phase="small models"))
        return ClientModels(models).with_states(received)

    def _distil_server_in_place(
        self,
        ctx: Context,
        round_index: int,
        server: nn.Module,
        public_samples: Samples,
        votes_on_samples: Consensus,
        report: FedETReport,
    ) -> Steps[LossPerStep]:
        """J_s steps on ℓ + λ_div KL, in shuffled passes over the public samples `public_samples`; returns the losses
        `[J_s]`."""
        recipe = Recipe(
            batch_size=self.server_batch,
            lr=self.server_lr,
            momentum=self.server_momentum,
            weight_decay=0,
        )

        def loss(rows: Tensor, logits: Tensor) -> Tensor:
            labels = votes_on_samples.labels[rows]
            diversity = votes_on_samples.diversity[rows]
            return consensus.compute_diversity_regularised_losses(
                logits, labels, diversity, self.diversity
            )

        learner = StudentTrainer(server, recipe, loss)
        rows = torch.arange(len(public_samples), device=public_samples.device)
        stream = ctx.generator("fedet", "public batches", round_index)
        steps = self.one_shot_steps
        points = 20
        if self.rounds > 1:
            steps = self.server_steps
            points = 1
        losses: list[Tensor] = []
        while len(losses) < steps:
            for value in learner.train_one_pass(
                public_samples, rows, stream, epoch_from_0=0, most_steps_or_all=steps - len(losses)
            ):
                losses.append(value)
                student = None
                if should_record_curve_point(round_index + 1, self.rounds):
                    if should_record_curve_point(len(losses), steps, points):
                        student = Student(server, report)
                yield self._make_progress(round_index, self.local_steps + len(losses), student)
        rate = f"server_lr={self.server_lr:g}"
        check_training_is_finite(server.parameters(), "Training the server's model", rate)
        return torch.stack(losses)

    def _make_progress(
        self,
        round_index: int,
        steps_done_in_round: int,
        snapshot: Student | None = None,
        phase: str = "rounds",
    ) -> Progress:
        """The progress after `steps_done_in_round` of round t's J + J_s steps; in one shot, after those of the
        server."""
        metrics: dict[str, Any] = {}
        if snapshot is not None and phase == "rounds":  # the last round in two numbers
            metrics["dissent"] = snapshot.report.dissent
            metrics["effective_clients"] = snapshot.report.effective_clients
        if self.rounds == 1:
            done = steps_done_in_round - self.local_steps
            return Progress("distillation", done, self.one_shot_steps, metrics, snapshot)
        metrics["round"] = round_index + 1
        steps = self.local_steps + self.server_steps
        return Progress(
            phase, round_index * steps + steps_done_in_round, self.rounds * steps, metrics, snapshot
        )

    def _make_network(
        self, ctx: Context, architecture: Architecture, role: Literal["server", "small"]
    ) -> Network:
        """A fresh network of that architecture, with a common head if heads could travel."""
        stream = ctx.generator("fedet", role, architecture[0], architecture[3])
        network = ctx.build(architecture, stream)
        if self.rounds > 1 or any(self.head_transfer_directions):
            return consensus.CommonHeadNetwork(network, self.width, self.head, generator=stream)
        return network
