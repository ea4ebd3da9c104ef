"""F-ADI: no generator, the pixels themselves are optimised against the clients' ensemble. No data at the server.

Adaptive DeepInversion (Yin et al., *Dreaming to Distill*, CVPR 2020) with the uniform ensemble f̄(x) = (1/M) Σ_k
f_k(x) as teacher, a baseline of DENSE and Co-Boosting. One upload a client, its model. At the server T times:
(a) pixels u ~ N(0, I), labels y; `steps` Adam steps on u for
    L = CE(f̄(x), y) + λ_tv R_TV(u) + λ_l2 ‖u‖₂ + λ_BN L_BN + λ_c R_c, x = (1 + u)/2, rolled at random every time;
(b) the batch of the lowest L joins the pool;
(c) SGD on τ² KL(f̄(x) ‖ f_S(x)) over the pool.

R_TV: sum of the L2 norms of the batch's horizontal, vertical and two diagonal differences. L_BN as in DENSE, the
method's main prior: without batch norm in the clients' models (the perceptron, the CNN) CE and R_TV are all there is.
And under label skew the clients' statistics contradict each other. R_c = 1 - JS(softmax(f̄/3), softmax(f_S/3)), the
adaptive part: teacher and student should differ. The weights λ are α in the paper.

Departures, and why:
- JS is the Jensen-Shannon divergence ½ KL(P‖M) + ½ KL(Q‖M), M = ½ (P + Q); the released script has M first, which
  needs clamping.
- u is clipped to [-1, 1] after every step: clients know images in [0, 1] only. Rolled by up to a sixteenth of the
  side (±2 pixels at 32x32), not mirrored (digits).
- The paper's 2000 steps a batch are some hundred times what DENSE takes, and at DENSE's number this method makes
  near-noise. The classroom nevertheless gives both the same number of steps, with a larger rate and λ_c = 1.
- Optimizer of the student, temperature and pool are DENSE's.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..tensor_types import ClientWeights, Images, Labels, Logits, ScalarLoss, ScalarTensor
from ..training.loop import LabelledSamples
from .base import ClientWeighting, Context, GlobalModel, Progress, Steps, knob, register
from .parts.frozen_ensemble import FrozenEnsemble
from .parts.images import optimise_images
from .parts.synthesis import DistillationServer, ServerKnobs, make_teacher_weights_knob
from .traffic import FederationSizes, RunBytesUpPlusDown

BETAS = (0.9, 0.999)  # Adam's, for pixels


def compute_total_variation(images: Images) -> ScalarLoss:
    """R_TV of `images [b, C, H, W]`: Σ over the four directions of the L2 norm of all differences between
    neighbours."""
    falling = images[..., 1:, 1:] - images[..., :-1, :-1]
    rising = images[..., 1:, :-1] - images[..., :-1, 1:]
    horizontal = images.diff(dim=-1)
    vertical = images.diff(dim=-2)
    norms = [difference.norm() for difference in (horizontal, vertical, falling, rising)]
    return torch.stack(norms).sum()


def compute_mean_jensen_shannon_divergence(
    first_logits: Logits, second_logits: Logits
) -> ScalarTensor:
    """Mean of JS(softmax(p), softmax(q)), natural logarithms, from logits `[b, C]`: 0 (equal) to log 2."""
    p = first_logits.log_softmax(1)
    q = second_logits.log_softmax(1)
    middle = torch.logaddexp(p, q) - torch.log(p.new_full((), 2.0))
    return 0.5 * (p.exp() * (p - middle) + q.exp() * (q - middle)).sum(1).mean()


@register(
    "fadi",
    title="F-ADI",
    group="Distil, data-free",
    paper="Yin et al., CVPR 2020",
    needs=["images"],
    leaks="each client's model",
)
class FAdi(ServerKnobs):
    """Pixels are changed until the averaged ensemble sees the wanted class. One network is distilled, without data."""

    steps: int = knob(15, "Image steps", low=1, high=100_000)
    image_lr: float = knob(0.2, "Image rate", low=1e-4, high=10, log=True)
    tv: float = knob(2.5e-5, "Total variation", symbol="λ_tv", low=0, high=10)
    l2: float = knob(0.0, "Norm", symbol="λ_l2", low=0, high=10)
    bn_weight: float = knob(10.0, "Weight of L_BN", symbol="λ_BN", low=0, high=1000)
    adaptive: float = knob(1.0, "Adaptive", symbol="λ_c", low=0, high=1000)
    weights: ClientWeighting = make_teacher_weights_knob()

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return sizes.one_shot_bytes

    def compute_pixel_loss(
        self,
        pixels_from_minus_one_to_one: Images,
        same_images_from_0_to_1: Images,
        intended_labels: Labels,
        ensemble: FrozenEnsemble,
        student: nn.Module,
        client_weights: ClientWeights | None = None,
    ) -> ScalarLoss:
        """L of pixels `[b, C, H, W]` with `intended_labels [b]`; the networks read the same images in [0, 1]."""
        view = ensemble.compute_outputs(
            same_images_from_0_to_1, with_batch_norm_loss=self.bn_weight > 0
        )
        teacher = self.combine_client_logits_into_teacher(view.logits, client_weights)
        value = (
            F.cross_entropy(teacher, intended_labels)
            + self.tv * compute_total_variation(pixels_from_minus_one_to_one)
            + self.l2 * pixels_from_minus_one_to_one.norm()
        )
        if self.adaptive:
            value = value + self.adaptive * (
                1
                - compute_mean_jensen_shannon_divergence(
                    teacher / 3, student(same_images_from_0_to_1) / 3
                )
            )
        return value + self.bn_weight * view.batch_norm

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone, upload once.
        uploaded = yield from ctx.one_upload()
        # Server.
        with ctx.server():
            server = DistillationServer(self, ctx, uploaded)
            for t in range(self.epochs):
                # (a) Images, pixel by pixel.
                x, y = yield from self.optimise_pixels(server, t)
                # (b) They join the pool.
                server.add_batch_to_pool(t, x, y)
                # (c) Distil from the pool.
                yield from server.distil_student_for_one_epoch(t)
            return self.copy_current_global_model(server)

    def optimise_pixels(
        self, server: DistillationServer, epoch_from_0: int
    ) -> Steps[LabelledSamples]:
        """(a) of an epoch: the images `[b, ...]` of the lowest loss, in [0, 1], and their intended labels `[b]`."""
        ctx = server.ctx
        stream = server.stream
        reach = max(1, min(ctx.input_shape[1:]) // 16)
        u = torch.randn(self.images, *ctx.input_shape, generator=stream).to(ctx.device, ctx.dtype)
        u = u.clamp(-1, 1).requires_grad_()
        y = server.draw_intended_labels()

        def loss(u: Tensor) -> Tensor:
            down, right = (torch.randint(2 * reach + 1, (2,), generator=stream) - reach).tolist()
            rolled = torch.roll((1 + u) / 2, (down, right), (2, 3))
            return self.compute_pixel_loss(
                u, rolled, y, server.ensemble, server.student, server.weights
            )

        best = yield from optimise_images(
            lambda: u,
            [u],
            loss,
            steps=self.steps,
            lr=self.image_lr,
            adam_betas=BETAS,
            maximum_gradient_norm=None,
            project_parameters=lambda: u.clamp_(-1, 1),
            progress_of_each_step=Progress("synthesis", epoch_from_0, self.epochs),
        )
        return LabelledSamples((1 + best) / 2, y)
