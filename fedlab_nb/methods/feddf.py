"""FedDF in one shot: distil the clients' ensemble on real images that carry no labels.

Lin et al., *Ensemble Distillation for Robust Model Fusion in Federated Learning*, NeurIPS 2020, as DENSE and
Co-Boosting use it: one upload a client, its model; the server minimises τ² KL(f̄(x) ‖ f_S(x)) over its public images
x, f̄(x) = Σ_k w_k f_k(x), w_k = 1/M.

It bounds what better synthetic images could give the data-free methods: the same teacher, the same student, real
images. A one-shot server would not have them. Distilled on the data set's public part, which no client and no test
has (one public re-implementation takes the test images).

Choices: the student starts from fresh weights, as in the data-free methods; start=average is Lin et al.'s (the
weighted mean of the received models). Temperature and student optimizer are DENSE's. weights=samples weighs clients
by n_k (DW-FedDF).
"""

from ..errors import UsageError
from ..models import load_state
from ..training.distill import choose_distillation_loss, distil
from .base import (
    NEEDS,
    Method,
    NetworkModel,
    Steps,
    knob,
    register,
    report_progress,
    server_model_knob,
    weighted_mean,
)
from .context import Context
from .parts.frozen_ensemble import FrozenEnsemble, combine_logits, make_client_weights
from .parts.images import CLIP, make_snapshot, make_student, make_student_recipe
from .parts.synthesis import ServerKnobs, weights_knob
from .traffic import Sizes, Traffic


@register(
    "feddf",
    title="FedDF, one shot",
    group="Distil, with public data",
    paper="Lin et al., NeurIPS 2020",
    needs=["public"],
    extra="unlabelled public samples at the server",
    leaks="each client's model",
)
class FedDF(Method):
    """Distil the averaged ensemble on real, unlabelled public images. Methods without data are compared with it."""

    epochs: int = knob(100, "Epochs", symbol="T", low=1, high=5000)
    batch: int = knob(64, "Batch", low=1, high=4096, log=True)
    server_lr: float = knob(0.1, "Server rate", low=1e-5, high=10, log=True)
    temperature: float = knob(4.0, "Temperature", symbol="τ", low=0.1, high=100, log=True)
    weights: str = weights_knob()
    start: str = knob("fresh", "Start", options=("fresh", "average"))
    server_model: str = server_model_knob()

    convolutional = ServerKnobs.convolutional

    def bytes_sent(self, sizes: Sizes) -> Traffic:
        return sizes.one_shot

    def refuse(self, ctx: Context) -> None:
        if self.start == "average" and not ctx.has_clients_architecture(self.server_model):
            needs = NEEDS["one architecture"]
            raise UsageError(
                f"feddf.start is 'average', which needs {needs} and at the server; use start=fresh."
            )

    def run(self, ctx: Context) -> Steps[NetworkModel]:
        # Clients: train alone, upload once.
        uploaded = yield from ctx.one_upload()
        # Server: the ensemble's logits of the public samples, once; then one network learns them.
        with ctx.server():
            logits = FrozenEnsemble(uploaded).logits_in_chunks(ctx.public)
            teacher = combine_logits(logits, make_client_weights(self.weights, ctx.sizes, logits))
            student = make_student(ctx, "feddf", self.server_model)
            if self.start == "average":
                load_state(student, weighted_mean(uploaded.states(), ctx.sizes))
            recipe = make_student_recipe(self.epochs, self.batch, self.server_lr)
            loss = choose_distillation_loss("kl", self.temperature)
            stream = ctx.generator("feddf", "batches")
            ticks = distil(student, ctx.public, teacher, recipe, loss, stream, clip=CLIP)
            return (
                yield from report_progress("distillation", ticks, lambda: make_snapshot(student))
            )
