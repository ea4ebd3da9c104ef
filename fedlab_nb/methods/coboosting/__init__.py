"""Co-Boosting: better images make a better ensemble, a better ensemble makes better images. No data at the server.

Dai et al., *Enhancing One-Shot Federated Learning Through Data and Ensemble Co-Boosting*, ICLR 2024. One upload a
client, its model, of whatever architecture; then, at the server, with f̄_w(x) = Σ_k w_k f_k(x) / Σ_k w_k, at first
w_k = 1/M, T times:
(a) GHS: draw z ~ N(0, I), labels y, a fresh generator; T_G Adam steps on generator *and* z for L = L_H + λ_A L_A; the
    batch of lowest L stays. In L_H, a cross-entropy, samples that f̄_w knows count little; L_A drives f̄_w and f_S apart.
(b) EE: w ← clip(w - η_w sign ∇_w CE(f̄_w(x), y)) over the pool, whose labels we chose. The batch joins it.
(c) DHS: SGD on τ² KL(f̄_w(x̃) ‖ f_S(x̃)) over the pool, x̃ one random-direction step away from x. Soft targets only.
`boosting.py` has the formulas (Eqs. 5-12). Beside ../dense.py: another L, the weights, the perturbation.

Choices where paper and released code differ; the default is the code's, the paper's is an option:
- weighted=mean divides by Σ w (sum: Eq. 2 to the letter, its weights climb together). Pictures show w / Σ w.
- perturbation=sign (Eq. 10 to the letter moves no pixel visibly), fresh in every batch; the pool stays clean. ε is
  in units of [0, 1] pixels, given in grey levels of 255: 8, as the paper says. (The code's 8 lie in [-1, 1]: 4 here.)
  The gradient is that of the softmax at `perturbation_temperature`, whatever distillation's is; in the code, too, 4.
- updates=batches: EE steps once a mini-batch of the old pool, so from the second epoch on ("once": one step on all of
  it; "new": one on the new batch), by η_w 0.99^t, η_w = 0.1/M (the paper's μ). It reads cached logits:
  exact, since nothing augments x.
- τ = 3 in L_A (Eq. 7 has 1). No batch-norm loss. Server optimizer as in dense.py. Gradients are clipped at norm 10:
  clip=together over generator and z, clip=generator as in the code. The last epoch counts, not the best.
- ghs=false: L_H is plain cross-entropy. dhs=false: x̃ = x. ee=false: w stays where it starts (start=samples: DW-X).
- reset=false keeps one generator for all epochs, which is not in the paper.
- Classroom: EE and distillation take at most `passes` batches an epoch (cost linear in T, not quadratic); ε is 32, η_w
  0.03/M, chosen on a validation part of the digits and on 28x28 images made of it.
References: ee_data=real learns w by the same rule on the clients' training images, which then have to be sent;
`WeightedEnsemble` takes weights set by hand. answer=ensemble predicts with f̄_w and not with the server model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import UsageError
from ...methods.run_outputs import SentenceOnPrivacy
from ...models import Network
from ...models.state import copy_model
from ...tensor_types import ClientLogits, ClientWeights, Images, Labels, Logits, Samples, ScalarLoss
from ...training import ClientModels
from ...training.loop import LabelledSamples
from ..base import (
    ClientWeighting,
    Context,
    EnsembleModel,
    GlobalModel,
    NetworkModel,
    Progress,
    Steps,
    knob,
    register,
)
from ..parts.frozen_ensemble import (
    WEIGHTS,
    FrozenEnsemble,
    combine_client_logits,
    compute_client_shares,
)
from ..parts.synthesis import (
    ClipChoice,
    DistillationServer,
    GeneratorKnobs,
    GeneratorServer,
    SynthesisReport,
    make_gradient_clip_knob,
)
from ..traffic import FederationSizes, RunBytesUpPlusDown
from . import boosting

# --------------------------------------------------------------------------------------------------------------- report
# What a run of Co-Boosting leaves behind.


@dataclass(frozen=True, eq=False)
class CoBoostingReport(SynthesisReport):
    """The images and series of a synthesis, and of the ensemble:

    ensemble_weights: `[M]`, w / Σ w at the end (of a snapshot: as it is now)
    ensemble_curve:   `[T]`, test accuracy of f̄_w with each epoch's w; None while the method runs
    weights:          `[T, M]`, w after each epoch, in [0, 1]; their sum need not be 1
    """

    ensemble_weights: list[float] | None = None
    ensemble_curve: list[float] | None = None
    weights: np.ndarray | None = None


# ---------------------------------------------------------------------------------------------------------------- model
# What predicts after Co-Boosting: the weighted ensemble, or the server model with its teacher beside it.


class WeightedEnsemble(EnsembleModel):
    """f̄_w: all client models under fixed `weights` (M numbers ≥ 0, not all 0); UsageError for others.

    The weights are EE's, set by hand, or learnt by `boosting.iterate_sign_steps_of_one_pass` on real images.
    Features are the concatenated logits `[N, M*C]`, client after client.
    """

    report: CoBoostingReport
    parts = ("clients", "weights", "normalise")

    def __init__(
        self,
        clients: ClientModels,
        weights: Tensor | Sequence[float],
        *,
        normalise: bool = True,
        report: Any = None,
    ) -> None:
        super().__init__(clients)
        self.report = report or CoBoostingReport()
        like = next(clients.module(0).parameters())
        w = torch.as_tensor(weights, dtype=like.dtype, device=like.device).detach().clone()
        is_valid = w.shape == (len(clients),) and bool((w >= 0).all())
        if not is_valid or not 0 < float(w.sum()) < torch.inf:
            raise UsageError(
                f"The ensemble's weights are {w.tolist()}; give {len(clients)}, none negative,"
                " not all 0."
            )
        self.weights = w
        self.normalise = normalise

    def logits(self, samples: Samples) -> Logits:
        return combine_client_logits(
            self.client_logits(samples), self.weights, divide_by_weight_sum=self.normalise
        )

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> CoBoostingReport:
        """With `ensemble_curve`, where a run has kept the weights of its epochs."""
        if self.report.weights is None:
            return self.report
        logits = self.client_logits(samples)
        curve = []
        for w in torch.from_numpy(self.report.weights).to(logits):
            predictions = combine_client_logits(
                logits, w, divide_by_weight_sum=self.normalise
            ).argmax(1)
            curve.append(float((predictions == labels).double().mean()))
        return replace(self.report, ensemble_curve=curve)


class BoostedModel(NetworkModel):
    """The server model, with the `ensemble` that taught it beside it, whose report is its own."""

    def __init__(self, module: Network, ensemble: WeightedEnsemble) -> None:
        super().__init__(module, ensemble.report)
        self.ensemble = ensemble

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> CoBoostingReport:
        return self.ensemble.complete_report_on_test_samples(samples, labels)


MU_DECAY = 0.99  # of EE's step, an epoch


class ClientLogitsAndLabels(NamedTuple):
    """Client logits `[M, N, C]` and labels `[N]` of the same samples."""

    logits: Tensor
    labels: Tensor


@register(
    "coboosting",
    title="Co-Boosting",
    group="Distil, data-free",
    paper="Dai et al., ICLR 2024",
    leaks="each client's model (ee_data=real: its training samples)",
)
class CoBoosting(GeneratorKnobs):
    """Hard synthetic images and the ensemble's weights improve each other. One network is distilled, without data."""

    epochs: int = knob(20, "Server epochs", symbol="T", low=1, high=5000)
    batch: int = knob(32, "Batch", low=2, high=4096, log=True)
    passes: int = knob(24, "Steps", low=0, high=100_000)
    server_lr: float = knob(0.05, "Server rate", low=1e-5, high=10, log=True)
    ghs: bool = knob(True, "Hard samples (GHS)")
    dhs: bool = knob(True, "Diverse samples (DHS)")
    ee: bool = knob(True, "Ensemble weights (EE)")
    beta: float = knob(1.0, "Adversarial", symbol="λ_A", low=0, high=100)
    adversarial_temperature: float = knob(3.0, "Temperature in L_A", low=0.1, high=100)
    epsilon: float = knob(32.0, "Perturbation", symbol="255 ε", low=0, high=255)
    perturbation: boosting.Perturbation = knob("sign", "Perturb by", options=boosting.PERTURBATIONS)
    perturbation_temperature: float = knob(4.0, "Temperature in DHS", low=0.1, high=100, log=True)
    mu: float = knob(0.03, "Weight step", symbol="η_w M", low=0, high=10)
    updates: str = knob("batches", "Weight updates", options=("batches", "once", "new"))
    weighted: str = knob("mean", "Ensemble", options=("mean", "sum"))
    start: ClientWeighting = knob("uniform", "First weights", symbol="w⁰", options=WEIGHTS)
    ee_data: str = knob("synthetic", "Weights from", options=("synthetic", "real"))
    clip: ClipChoice = make_gradient_clip_knob()
    reset: bool = knob(True, "Fresh generator")
    answer: str = knob("server", "Predict with", options=("server", "ensemble"))

    report = CoBoostingReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return sizes.one_shot_bytes

    @property
    def leaks(self) -> SentenceOnPrivacy:
        if self.ee_data == "real":
            return "each client's model and its training samples"
        return "each client's model"

    def make_initial_client_weights(
        self, ctx: Context, dtype_device_template: Tensor
    ) -> ClientWeights:
        return compute_client_shares(self.start, ctx.sizes, dtype_device_template)

    def combine_client_logits_into_teacher(
        self, client_logits: ClientLogits, client_weights_or_none_if_equal: ClientWeights | None
    ) -> Logits:
        """f̄_w from client logits `[M, N, C]`, `[N, C]`."""
        return combine_client_logits(
            client_logits,
            client_weights_or_none_if_equal,
            divide_by_weight_sum=self.weighted == "mean",
        )

    def compute_generator_loss(
        self,
        images: Images,
        intended_labels: Labels,
        ensemble: FrozenEnsemble,
        student: nn.Module,
        client_weights: ClientWeights,
    ) -> ScalarLoss:
        """L_H + λ_A L_A of `images [b, ...]` with `intended_labels [b]` (Eq. 8)."""
        teacher = self.combine_client_logits_into_teacher(ensemble.logits(images), client_weights)
        hard = boosting.compute_hard_sample_loss(
            teacher, intended_labels, difficulty_exponent=1 if self.ghs else 0
        )
        if not self.beta:
            return hard
        temperature = self.adversarial_temperature
        return hard + self.beta * boosting.compute_adversarial_loss(
            teacher, student(images), temperature
        )

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone, upload once.
        uploaded = yield from ctx.one_upload()
        real = self.upload_all_training_samples(ctx) if self.ee_data == "real" else None
        # Server.
        with ctx.server():
            server = GeneratorServer(self, ctx, uploaded)
            directions = ctx.generator("coboosting", "directions")
            order = ctx.generator("coboosting", "weights")
            real_answers = None
            if real is not None:
                x, y = real
                real_answers = (server.ensemble.compute_logits_without_gradients(x), y)
            perturb = None
            if self.dhs and self.epsilon:
                perturb = partial(
                    self.diversify_images_by_one_step, server=server, direction_stream=directions
                )
            for t in range(self.epochs):
                # (a) GHS: hard images.
                x, y = yield from server.synthesise_images(t, self.compute_generator_loss)
                # (b) EE: new weights. Then the images join the pool.
                if self.ee:
                    answers = real_answers or self.select_samples_for_ensemble_enhancement_or_none(
                        server, x, y
                    )
                    if answers:
                        logits, labels = answers
                        server.weights = yield from self.train_client_weights(
                            server.weights, logits, labels, t, order
                        )
                server.trace.add_value("weights", server.weights)
                server.add_batch_to_pool(t, x, y)
                # (c) DHS: distil from perturbed copies of the pool, or from the pool.
                yield from server.distil_student_for_one_epoch(t, perturb)
            return self.copy_current_global_model(server)

    def select_samples_for_ensemble_enhancement_or_none(
        self, server: DistillationServer, new_images: Images, new_intended_labels: Labels
    ) -> ClientLogitsAndLabels | None:
        """The input of EE: client logits `[M, N, C]` and labels `[N]`, of the pool so far or of the new batch alone.

        None while the pool is empty.
        """
        if self.updates == "new":
            return ClientLogitsAndLabels(
                server.ensemble.compute_logits_without_gradients(new_images), new_intended_labels
            )
        if len(server.pool) == 0:
            return None
        return ClientLogitsAndLabels(server.pool.logits, server.pool.labels)

    def train_client_weights(
        self,
        client_weights: ClientWeights,
        client_logits: ClientLogits,
        labels: Labels,
        epoch_from_0: int,
        shuffle_stream: torch.Generator,
    ) -> Steps[ClientWeights]:
        """(b): w `[M]` after the steps of an epoch, on samples with `client_logits [M, N, C]` and `labels [N]`."""
        mu = self.mu / len(client_weights) * MU_DECAY**epoch_from_0
        normalise = self.weighted == "mean"
        if self.updates == "batches":
            batch, steps = self.batch, self.passes or None
        else:
            batch, steps = len(labels), 1
        for new_w in boosting.iterate_sign_steps_of_one_pass(
            client_weights,
            client_logits,
            labels,
            mu,
            batch_size=batch,
            maximum_steps=steps,
            shuffle_stream=shuffle_stream,
            divide_by_weight_sum=normalise,
        ):
            client_weights = new_w
            yield Progress("ensemble weights", epoch_from_0, self.epochs)
        return client_weights

    def diversify_images_by_one_step(
        self, images: Images, server: DistillationServer, direction_stream: torch.Generator
    ) -> Images:
        """(c) with DHS: a batch of the pool, moved one step by the ensemble as it is now."""
        u = boosting.draw_uniform_output_directions(
            len(images), server.ctx.classes, direction_stream, images
        )
        return boosting.perturb_images_along_output_directions(
            images,
            server.compute_teacher_logits,
            u,
            self.epsilon / 255,
            perturbation=self.perturbation,
            temperature_for_sign=self.perturbation_temperature,
        )

    def upload_all_training_samples(self, ctx: Context) -> LabelledSamples:
        """Link, for the reference alone: all training samples up; returns them as one set.

        No federated method may do this.
        """
        received = []
        for k in range(ctx.clients_count):
            received.append(ctx.link.up(k, ctx.private.train(k), phase="raw samples"))
        x = torch.cat([x for x, _ in received])
        y = torch.cat([y for _, y in received])
        return LabelledSamples(x, y)

    def copy_current_global_model(self, server: DistillationServer) -> GlobalModel:
        """The model that predicts as it is now: a copy of the student, or the ensemble."""
        w = server.weights
        arrays: dict[str, Any] = server.trace.make_arrays()
        report = CoBoostingReport(**arrays, ensemble_weights=(w / w.sum()).tolist())
        normalise = self.weighted == "mean"
        ensemble = WeightedEnsemble(server.uploaded, w, normalise=normalise, report=report)
        if self.answer == "ensemble":
            return ensemble
        return BoostedModel(copy_model(server.student), ensemble)
