"""F-DAFL: one generator for good, trained against the clients' ensemble without any intended labels. No data needed.

DAFL (Chen et al., *Data-Free Learning of Student Networks*, ICCV 2019) with the uniform ensemble f̄(x) = (1/M) Σ_k
f_k(x) as teacher, a baseline of DENSE and Co-Boosting. One upload a client, its model. At the server T times:
(a) T_G Adam steps on the generator, each on fresh noise, for L_G = λ_oh L_oh + λ_ie L_ie + λ_a L_a;
(b) SGD steps on τ² KL(f̄(x) ‖ f_S(x)), each on a fresh batch x of the generator. There is no pool, nothing is kept.

L_oh = CE(f̄(x), argmax f̄(x)): the teacher should be sure. L_ie = Σ_c p̄_c log p̄_c of the batch's mean prediction p̄:
all classes alike (at least -log C). L_a = -(1/b) Σ_i ‖h(x_i)‖₁ / d: strong penultimate features h.

Choices where papers are silent (neither DENSE nor Co-Boosting gives settings; these are this project's):
- λ = 1 / 5 / 0.1 as DAFL's code has for MNIST; natural logarithms (that code: base 10, a factor 2.3 in λ_ie).
- L_a is the mean over clients of each one's own, since averaged feature vectors need equal lengths and cancel.
- T_G generator steps, then as many distillation steps as the other methods make (DAFL: one each in turn, on one
  batch).
- Optimizers and temperature of the student are DENSE's, so that methods differ in their images alone.
"""

import torch
import torch.nn.functional as F

from ..tensor_types import ClientFeatures, ClientWeights, Features, Images, Logits, ScalarLoss
from ..training.optim import Adam, clip_gradients_to_norm
from .base import ClientWeighting, Context, GlobalModel, Progress, Steps, knob, register
from .parts.frozen_ensemble import FrozenEnsemble
from .parts.images import BETAS, CLIP
from .parts.synthesis import GeneratorKnobs, GeneratorServer, make_teacher_weights_knob
from .traffic import FederationSizes, RunBytesUpPlusDown


def compute_one_hot_loss(teacher_logits: Logits) -> ScalarLoss:
    """L_oh: cross-entropy of logits `[b, C]` to their own argmax."""
    return F.cross_entropy(teacher_logits, teacher_logits.argmax(1))


def compute_entropy_loss(teacher_logits: Logits) -> ScalarLoss:
    """L_ie = Σ_c p̄_c log p̄_c of logits `[b, C]`: minus the entropy of the mean prediction, from -log C to 0."""
    count = teacher_logits.new_full((), float(len(teacher_logits)))
    log_mean = teacher_logits.log_softmax(1).logsumexp(0) - torch.log(count)
    return (log_mean.exp() * log_mean).sum()


def compute_activation_loss(features: ClientFeatures | list[Features]) -> ScalarLoss:
    """L_a = -(1/M) Σ_k (1/b) Σ_i ‖h_k(x_i)‖₁ / d_k, from each client's features `[b, d_k]`."""
    return -torch.stack([client.abs().mean() for client in features]).mean()


@register(
    "fdafl",
    title="F-DAFL",
    group="Distil, data-free",
    paper="Chen et al., ICCV 2019",
    leaks="each client's model",
)
class FDafl(GeneratorKnobs):
    """A generator learns to make images that the ensemble is sure of. One network is distilled, without data."""

    server_lr: float = knob(0.1, "Server rate", low=1e-5, high=10, log=True)
    generator_steps: int = knob(8, "Generator steps", symbol="T_G", low=1, high=5000)
    passes: int = knob(12, "Distillation steps", low=1, high=100_000)
    one_hot: float = knob(1.0, "Weight of L_oh", symbol="λ_oh", low=0, high=100)
    entropy: float = knob(5.0, "Weight of L_ie", symbol="λ_ie", low=0, high=100)
    activation: float = knob(0.1, "Weight of L_a", symbol="λ_a", low=0, high=100)
    weights: ClientWeighting = make_teacher_weights_knob()

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return sizes.one_shot_bytes

    def compute_generator_loss(
        self, images: Images, ensemble: FrozenEnsemble, client_weights: ClientWeights | None = None
    ) -> ScalarLoss:
        """L_G of `images [b, ...]`."""
        view = ensemble.compute_outputs(images)
        teacher = self.combine_client_logits_into_teacher(view.logits, client_weights)
        value = self.one_hot * compute_one_hot_loss(teacher) + self.entropy * compute_entropy_loss(
            teacher
        )
        return value + self.activation * compute_activation_loss(view.features)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone, upload once.
        uploaded = yield from ctx.one_upload()
        # Server.
        with ctx.server():
            server = GeneratorServer(self, ctx, uploaded)
            parameters = list(server.generator.parameters())
            optimizer = Adam(parameters, self.generator_lr, betas=BETAS)
            for t in range(self.epochs):
                # (a) The generator.
                for z in server.draw_noise(self.generator_steps, self.images):
                    x = server.generator(z)
                    loss = self.compute_generator_loss(x, server.ensemble, server.weights)
                    gradients = torch.autograd.grad(loss, parameters)
                    optimizer.step(clip_gradients_to_norm(gradients, CLIP))
                    yield Progress("synthesis", t, self.epochs)
                # (b) The student, on images that are used only once.
                losses = []
                for step, z in enumerate(server.draw_noise(self.passes, self.batch)):
                    with torch.no_grad():
                        x = server.generator(z)
                        teacher = server.compute_teacher_logits(x)
                    if step == 0:
                        labels = teacher.argmax(1)
                        server.trace.add_batch(t + 1, x, labels, teacher, server.student)
                        server.learner.set_learning_rate_of_epoch(t)
                        server.student.train()
                    losses.append(server.learner.step(x, teacher))
                    yield Progress("distillation", t, self.epochs)
                server.student.eval()
                yield server.record_loss_and_make_progress(t, losses)
            return self.copy_current_global_model(server)
