"""FedDF: distil the clients' ensemble on real images that carry no labels.

Lin et al., *Ensemble Distillation for Robust Model Fusion in Federated Learning*, NeurIPS 2020.

In one shot (rounds = 1), as DENSE and Co-Boosting use it, each client uploads its model once. The
server minimises τ² KL(f̄(x) ‖ f_S(x)) over its public images x, with f̄(x) = Σ_k w_k f_k(x) and w_k
= 1/M. Teacher and student are those of the data-free methods, but the images are real. So the
result shows how much better synthetic images could help these methods. A one-shot server would not
have such images. They are the data set's public part, which is neither in a client's samples nor in
the test set (one public re-implementation takes the test images).

In T rounds, as Lin et al. and Fed-ET use it: for t = 1…T,
1. every chosen client trains E epochs from the server's model of its architecture, and sends the result up;
2. the server averages the models of each architecture that it received, weighted by n_k;
3. each average learns as above from the ensemble of *all* received models, of any architecture, and is sent in the next
   round. The model of an architecture of which no client was chosen stays as it is. The largest model is the result.

Choices: in one shot the student starts from fresh weights, as in the data-free methods; start=average is Lin et al.'s
(the weighted mean of the received models), which rounds always have. Temperature and student optimizer are DENSE's
(Lin et al.: Adam at 0.001, stopped by labelled validation samples, which a server of Fed-ET does not have).
weights=samples weighs clients by n_k (DW-FedDF).
"""

from collections.abc import Sequence
from dataclasses import replace

from ..errors import UsageError
from ..models import Network, copy_model_state, count_parameters, load_state
from ..models.network import Architecture
from ..tensor_types import Logits
from ..training import ClientModels, Recipe
from ..training.distill import choose_distillation_loss, distil_student_in_place
from ..value_types import MeanPassesPerClient
from .base import (
    NEEDS,
    ClientWeighting,
    Method,
    NetworkModel,
    Progress,
    Steps,
    knob,
    make_server_model_knob,
    register,
    report_progress,
    weighted_mean,
)
from .context import Context, check_training_is_finite
from .parts.frozen_ensemble import FrozenEnsemble, combine_client_logits, compute_client_shares
from .parts.images import CLIP, copy_student_as_model, make_student_network, make_student_recipe
from .parts.rounds import PHASE, draw_participants_of_round
from .parts.synthesis import ServerKnobs, make_teacher_weights_knob
from .run_outputs import should_record_curve_point
from .traffic import FederationSizes, RunBytesUpPlusDown


@register(
    "feddf",
    title="FedDF",
    group="Distil, with public data",
    paper="Lin et al., NeurIPS 2020",
    rounds="one-shot, or T rounds with m clients",
    traffic="2 S_θ (T rounds: each time it is chosen)",
    needs=["public"],
    extra="unlabelled public samples at the server",
    leaks="each client's model, in rounds every round",
    titles={"rounds=1": "FedDF, one shot"},
)
class FedDF(Method):
    """Distil the averaged ensemble on real, unlabelled public images. Methods without data are compared with it."""

    rounds: int = knob(1, "Rounds", symbol="T", low=1, high=1000)
    per_round: int = knob(0, "Clients per round", symbol="m", low=0, high=10_000)
    local_epochs: int = knob(10, "Epochs per round", symbol="E", low=1, high=1000)
    epochs: int = knob(100, "Epochs", low=1, high=5000)
    batch: int = knob(64, "Batch", low=1, high=4096, log=True)
    server_lr: float = knob(0.1, "Server rate", low=1e-5, high=10, log=True)
    temperature: float = knob(4.0, "Temperature", symbol="τ", low=0.1, high=100, log=True)
    weights: ClientWeighting = make_teacher_weights_knob()
    start: str = knob("fresh", "Start", options=("fresh", "average"))
    server_model: str = make_server_model_knob()

    convolutional = ServerKnobs.convolutional

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        if self.rounds == 1:
            return sizes.one_shot_bytes
        share = min(self.per_round or sizes.clients, sizes.clients) / sizes.clients
        return RunBytesUpPlusDown(2 * self.rounds * share * sizes.models_up, is_exact=share == 1)

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        if self.rounds == 1:
            return float(recipe.epochs)
        chosen = min(self.per_round or len(client_sample_counts), len(client_sample_counts))
        return self.rounds * self.local_epochs * chosen / len(client_sample_counts)

    def refuse(self, ctx: Context) -> None:
        if self.rounds > 1:
            if self.server_model != "auto":
                raise UsageError(
                    f"feddf.server_model is {self.server_model!r}, but in rounds the server has the"
                    " clients' own networks; set server_model=auto or rounds=1."
                )
            return
        if self.start == "average" and not ctx.is_architecture_of_all_clients(self.server_model):
            needs = NEEDS["one architecture"]
            raise UsageError(
                f"feddf.start is 'average', which needs {needs} and at the server; use start=fresh."
            )

    def run(self, ctx: Context) -> Steps[NetworkModel]:
        if self.rounds > 1:
            return (yield from self._run_rounds(ctx))
        # Clients: train alone, upload once.
        uploaded = yield from ctx.one_upload()
        # Server: the ensemble's logits of the public samples, once; then one network learns them.
        with ctx.server():
            teacher = self._compute_public_teacher_logits(ctx, uploaded, ctx.sizes)
            student = make_student_network(ctx, "feddf", self.server_model)
            if self.start == "average":
                load_state(student, weighted_mean(uploaded.states(), ctx.sizes))
            recipe = make_student_recipe(self.epochs, self.batch, self.server_lr)
            loss = choose_distillation_loss("kl", self.temperature)
            stream = ctx.generator("feddf", "batches")
            ticks = distil_student_in_place(
                student, ctx.public, teacher, recipe, loss, stream, largest_gradient_norm=CLIP
            )
            return (
                yield from report_progress(
                    "distillation", ticks, lambda: copy_student_as_model(student)
                )
            )

    def _compute_public_teacher_logits(
        self, ctx: Context, clients: ClientModels, client_sample_counts: Sequence[int]
    ) -> Logits:
        """Compute the ensemble's logits of the public samples, `[P, C]`."""
        logits = FrozenEnsemble(clients).compute_logits_without_gradients(ctx.public)
        return combine_client_logits(
            logits, compute_client_shares(self.weights, client_sample_counts, logits)
        )

    def _run_rounds(self, ctx: Context) -> Steps[NetworkModel]:
        kinds = ctx.architectures
        table = {}  # the server's model of each architecture
        for k in reversed(range(ctx.clients_count)):
            table[kinds[k]] = ctx.initial_model(k)
        largest = max(table.values(), key=count_parameters)
        for t in range(self.rounds):
            # Clients: E epochs from the server's model of their architecture; the result goes up.
            chosen = draw_participants_of_round(ctx, self.per_round, t)
            clients = yield from self._train_and_upload_chosen_clients(ctx, t, chosen, table)
            # Server: average each architecture, and distil the ensemble of all into every average.
            with ctx.server():
                sizes = [ctx.sizes[k] for k in chosen]
                teacher = self._compute_public_teacher_logits(ctx, clients, sizes)
                for number, (kind, student) in enumerate(table.items()):
                    members = [j for j, k in enumerate(chosen) if kinds[k] == kind]
                    if not members:
                        continue
                    states = [clients.state(j) for j in members]
                    load_state(student, weighted_mean(states, [sizes[j] for j in members]))
                    stream = ctx.generator("feddf", "batches", t, number)
                    recipe = make_student_recipe(self.epochs, self.batch, self.server_lr)
                    loss = choose_distillation_loss("kl", self.temperature)
                    for _ in distil_student_in_place(
                        student,
                        ctx.public,
                        teacher,
                        recipe,
                        loss,
                        stream,
                        largest_gradient_norm=CLIP,
                    ):
                        yield Progress(PHASE, t, self.rounds)
                    rate = f"server_lr={self.server_lr:g}"
                    check_training_is_finite(student.parameters(), f"Round {t + 1}", rate)
            point = (
                copy_student_as_model(largest)
                if should_record_curve_point(t + 1, self.rounds)
                else None
            )
            yield Progress(PHASE, t + 1, self.rounds, {"round": t + 1}, model=point)
        return copy_student_as_model(largest)

    def _train_and_upload_chosen_clients(
        self,
        ctx: Context,
        round_index: int,
        chosen_clients: Sequence[int],
        server_models_by_architecture: dict[Architecture, Network],
    ) -> Steps[ClientModels]:
        """Train the chosen clients for E epochs, and return their models as the server receives
        them.
        """
        models = []
        starts = []
        for k in chosen_clients:
            model = ctx.initial_model(k)
            start = ctx.link.down(
                k,
                copy_model_state(server_models_by_architecture[ctx.architectures[k]]),
                phase=PHASE,
            )
            load_state(model, start)
            models.append(model)
            starts.append(start)
        shards = [ctx.private.train(k) for k in chosen_clients]
        recipe = replace(ctx.recipe, epochs=self.local_epochs)
        stream = "batches" if round_index == 0 else f"batches of round {round_index}"
        ids = [ctx.ids[k] for k in chosen_clients]
        for _ in ctx.train(models, shards, recipe=recipe, ids=ids, stream=stream):
            yield Progress(PHASE, round_index, self.rounds)
        received = []
        for k, start, model in zip(chosen_clients, starts, models, strict=True):
            received.append(ctx.link.up(k, ctx.make_upload(k, start, model), phase=PHASE))
        return ClientModels(models).with_states(received)
