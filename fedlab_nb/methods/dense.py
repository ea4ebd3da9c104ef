"""DENSE: make images that the clients' ensemble understands and the student does not; distil on them. No data needed.

Zhang et al., *DENSE: Data-Free One-Shot Federated Learning*, NeurIPS 2022. One upload a client, its model; then, at
the server, with the uniform ensemble f̄(x) = (1/M) Σ_k f_k(x), T times:
(a) draw z ~ N(0, I), labels y, a fresh generator; T_G Adam steps on generator *and* z for
    L = L_CE + λ₁ L_BN + λ₂ L_div;
(b) the batch of the lowest L joins the pool;
(c) SGD on τ² KL(f̄(x) ‖ f_S(x)) over the pool. Soft targets only: the labels are not used.

L_CE is the cross-entropy of f̄(x) to y. L_BN compares batch statistics with the clients' batch-norm statistics
(`FrozenEnsemble.compute_outputs`; 0 for models without batch norm). L_div = -(1/b) Σ_i ω_i
KL(f̄(x_i) ‖ f_S(x_i)), ω_i = 1 where the two answer differently: only images on which they already
disagree are pushed on.

Choices where the paper is open, and departures:
- λ₁ = λ₂ = 1, as in the published command (whose parser defaults, all 0, train nothing), with temperature 1 in L_div
  (div_temperature; 3 where Co-Boosting's code runs DENSE) and 4 in (c).
- The released code's batch-norm loss is silently 0 (its ensemble hides the clients from the search for batch norm).
  Here every layer of every client is watched, and counted.
- Server optimizer: weight decay 1e-4, cosine, gradients clipped at 10, as Co-Boosting's code runs DENSE.
  clip=together takes generator and z together, clip=generator is that code's. The last epoch counts, not the best one
  on the test set. The student starts from fresh weights.
- augment: the released code crops and mirrors the images inside (a), by an eighth of the side; off in the classroom.
- Classroom: one generator is kept through all epochs (reset=false, not in the paper): 15 steps are too few from fresh
  weights. And at most `passes` distillation steps an epoch, so that the cost is linear in T, not quadratic.
- Rows of features (not in the paper) get a perceptron as generator. weights=samples is DW-DENSE of Co-Boosting's paper.
"""

from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..tensor_types import ClientWeights, Images, Labels, Logits, ScalarLoss
from ..training.distill import compute_distillation_losses
from .base import ClientWeighting, Context, GlobalModel, Steps, knob, register
from .parts.frozen_ensemble import FrozenEnsemble
from .parts.images import shift_and_mirror_randomly
from .parts.synthesis import (
    ClipChoice,
    GeneratorKnobs,
    GeneratorServer,
    make_gradient_clip_knob,
    make_teacher_weights_knob,
)
from .traffic import FederationSizes, RunBytesUpPlusDown

AugmentChoice = Literal["none", "crop", "crop+flip"]
AUGMENT: tuple[AugmentChoice, ...] = get_args(AugmentChoice)


def compute_boundary_loss(
    teacher_logits: Logits, student_logits: Logits, temperature: float = 1.0
) -> ScalarLoss:
    """L_div = -(1/b) Σ_i 1[classes differ] τ² KL(softmax(f̄(x_i)/τ) ‖ softmax(f_S(x_i)/τ)) from logits `[b, C]`."""
    differ = (teacher_logits.argmax(1) != student_logits.argmax(1)).to(teacher_logits.dtype)
    return -(
        differ * compute_distillation_losses(teacher_logits, student_logits, temperature)
    ).mean()


@register(
    "dense",
    title="DENSE",
    group="Distil, data-free",
    paper="Zhang et al., NeurIPS 2022",
    leaks="each client's model",
)
class Dense(GeneratorKnobs):
    """A generator makes images with the help of the averaged ensemble. One network is distilled on them."""

    bn_weight: float = knob(1.0, "Weight of L_BN", symbol="λ₁", low=0, high=100)
    div_weight: float = knob(1.0, "Weight of L_div", symbol="λ₂", low=0, high=100)
    div_temperature: float = knob(1.0, "Temperature in L_div", low=0.1, high=100)
    augment: AugmentChoice = knob("none", "Augment", options=AUGMENT)
    clip: ClipChoice = make_gradient_clip_knob()
    reset: bool = knob(False, "Fresh generator")
    weights: ClientWeighting = make_teacher_weights_knob()

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return sizes.one_shot_bytes

    def compute_generator_loss(
        self,
        images: Images,
        intended_labels: Labels,
        ensemble: FrozenEnsemble,
        student: nn.Module,
        client_weights: ClientWeights | None = None,
    ) -> ScalarLoss:
        """L_CE + λ₁ L_BN + λ₂ L_div of `images [b, ...]` with `intended_labels [b]`."""
        view = ensemble.compute_outputs(images, with_batch_norm_loss=self.bn_weight > 0)
        teacher = self.combine_client_logits_into_teacher(view.logits, client_weights)
        similarity = F.cross_entropy(teacher, intended_labels)
        boundary = compute_boundary_loss(teacher, student(images), self.div_temperature)
        return similarity + self.bn_weight * view.batch_norm + self.div_weight * boundary

    def augment_images_if_chosen(self, images: Images, stream: torch.Generator) -> Images:
        """Generated images as the loss reads them."""
        if self.augment == "none" or images.dim() < 4:
            return images
        padding = max(1, images.shape[-1] // 8)
        return shift_and_mirror_randomly(
            images,
            stream,
            maximum_shift_pixels=padding,
            should_mirror_half=self.augment == "crop+flip",
        )

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone, upload once.
        uploaded = yield from ctx.one_upload()
        # Server.
        with ctx.server():
            server = GeneratorServer(self, ctx, uploaded)

            def image_loss(x: Tensor, *others: Any) -> Tensor:
                return self.compute_generator_loss(
                    self.augment_images_if_chosen(x, server.stream), *others
                )

            for t in range(self.epochs):
                # (a) Images that the ensemble understands and the student does not.
                x, y = yield from server.synthesise_images(t, image_loss)
                # (b) They join the pool.
                server.add_batch_to_pool(t, x, y)
                # (c) Distil from the pool.
                yield from server.distil_student_for_one_epoch(t)
            return self.copy_current_global_model(server)
