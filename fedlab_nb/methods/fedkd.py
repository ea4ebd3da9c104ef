"""FedKD: distil, on public samples, an ensemble in which a client's weight for a class grows with its samples of it.

Gong et al., *Preserving Privacy in Federated Learning with Ensemble Cross-Domain Knowledge Distillation*, AAAI 2022,
as Allouah et al. (FENS, NeurIPS 2024) use it. Client k uploads its model and its class counts n_k^c (C numbers of 4
bytes), once. The server's teacher is f_c(x) = Σ_k w_kc f_kc(x), w_kc = n_kc / Σ_j n_jc; one network learns its
logits on unlabelled samples: mean |f(x) - f_S(x)|, Adam. A class that nobody has gets equal weights.

FENS matches its own traffic with "FedKD 4R", in both orders: `rounds_after` = 3 rounds of FedAvg from the distilled
model, 2 S_θ each (the first download is that model), or `rounds_before` = 3, FedKD then starting from the averaged
model: clients go on from it with all their local epochs, and so does the student. The first order is the better one in
two of FENS' three cases, and the one that it plots.

Choices: loss=kl with a temperature is the other common reading of knowledge distillation, and the classroom's, since it
is clearly better on validation images. Quantised inference is left out, as in FENS. The paper's public samples come
from another data set (CIFAR-100 for CIFAR-10), as in the set-up `fens`; the classroom's are the data set's own.

Counts do not say how sure a model is.
"""

from collections.abc import Sequence

from ..errors import UsageError
from ..models import copy_model_state, load_state
from ..training import Recipe
from ..training.distill import LOSSES, LossName, choose_distillation_loss, distil_student_in_place
from ..value_types import MeanPassesPerClient
from .base import (
    NEEDS,
    Context,
    Method,
    NetworkModel,
    Steps,
    knob,
    make_server_model_knob,
    register,
    report_progress,
)
from .fedavg_multi import FedAvgMulti
from .parts.frozen_ensemble import (
    FrozenEnsemble,
    combine_client_logits,
    send_class_counts_and_compute_class_shares,
)
from .parts.images import copy_student_as_model, make_student_network
from .parts.rounds import PHASE, Rounds
from .traffic import FederationSizes, RunBytesUpPlusDown


@register(
    "fedkd",
    title="FedKD",
    group="Distil, with public data",
    paper="Gong et al., AAAI 2022",
    traffic="2 S_θ + 4 C",
    needs=["public"],
    extra="unlabelled public samples at the server",
    sends="its network + class counts",
    leaks="each client's model and class counts",
)
class FedKD(Method):
    """Weight the ensemble by class counts, and distil it on unlabelled public samples."""

    epochs: int = knob(100, "Epochs", low=1, high=5000)
    batch: int = knob(64, "Batch", low=1, high=4096, log=True)
    server_lr: float = knob(0.01, "Server rate", low=1e-6, high=1, log=True)
    loss: LossName = knob("kl", "Loss", options=LOSSES)
    temperature: float = knob(4.0, "Temperature", symbol="τ", low=0.1, high=100, log=True)
    rounds_before: int = knob(0, "FedAvg before", low=0, high=1000)
    rounds_after: int = knob(0, "FedAvg after", low=0, high=1000)
    local_epochs: int = knob(2, "Epochs per round", symbol="E", low=1, high=1000)
    server_model: str = make_server_model_knob()

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        rounds = self.rounds_before + self.rounds_after
        if rounds:
            return RunBytesUpPlusDown(
                sizes.one_shot_bytes.bytes + 2 * rounds * sizes.models_up, is_exact=False
            )
        return RunBytesUpPlusDown(
            sizes.one_shot_bytes.bytes + sizes.count_bytes_from_all_clients(sizes.classes)
        )

    def refuse(self, ctx: Context) -> None:
        if ctx.is_architecture_of_all_clients(self.server_model):
            return
        for name in ("rounds_before", "rounds_after"):
            if getattr(self, name):
                needs = NEEDS["one architecture"]
                raise UsageError(f"fedkd.{name} needs {needs} and at the server; set it to 0.")

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        return float(recipe.epochs + (self.rounds_before + self.rounds_after) * self.local_epochs)

    def run(self, ctx: Context) -> Steps[NetworkModel]:
        # Clients: train alone, count labels, upload once.
        start = None
        if self.rounds_before:
            rounds = self._make_fedavg_rounds(ctx, self.rounds_before)
            start = yield from rounds.run_all_rounds(rounds.first_state)
            received = ctx.link.broadcast(start, phase=PHASE)
            models = [ctx.new_model(received) for _ in range(ctx.clients_count)]
            clients = yield from ctx.further_training("further training", models, stream="fedkd")
        else:
            clients = yield from ctx.local_training()
        uploaded = ctx.upload(clients)
        shares = send_class_counts_and_compute_class_shares(ctx)
        # Server: the weighted ensemble's logits of the public samples, once; then one network learns them.
        with ctx.server():
            logits = FrozenEnsemble(uploaded).compute_logits_without_gradients(ctx.public)
            teacher = combine_client_logits(logits, shares, divide_by_weight_sum=False)
            student = make_student_network(ctx, "fedkd", self.server_model)
            if start is not None:
                load_state(student, start)
            recipe = Recipe(self.epochs, self.batch, "adam", lr=self.server_lr, weight_decay=0)
            loss = choose_distillation_loss(self.loss, self.temperature)
            stream = ctx.generator("fedkd", "batches")
            ticks = distil_student_in_place(student, ctx.public, teacher, recipe, loss, stream)
            yield from report_progress(
                "distillation", ticks, lambda: copy_student_as_model(student)
            )
        if not self.rounds_after:
            return copy_student_as_model(student)
        rounds = self._make_fedavg_rounds(ctx, self.rounds_after)
        yield from rounds.run_all_rounds(copy_model_state(student))
        return rounds.result

    def _make_fedavg_rounds(self, ctx: Context, round_count: int) -> Rounds:
        return Rounds(ctx, FedAvgMulti(rounds=round_count, local_epochs=self.local_epochs))
