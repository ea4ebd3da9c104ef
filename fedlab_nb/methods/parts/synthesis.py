"""The server of the data-free methods, and the hyper-parameters that they share.

One of their epochs is: (a) make a batch of images, (b) add it to the pool, (c) distil from the pool. In short:
- `ServerKnobs`, `GeneratorKnobs`: dataclass bases with the hyper-parameters; a method overrides
  `make_initial_client_weights`, `combine_client_logits_into_teacher` and `copy_current_global_model` where it differs
  from DENSE.
- `server = DistillationServer(self, ctx, uploaded)`: frozen ensemble, its weights, student, pool and trace, all at
  their start;
  `server.add_batch_to_pool(t, x, y)` is (b), `yield from server.distil_student_for_one_epoch(t)` is (c),
  `self.copy_current_global_model(server)` is the model that predicts.
- `GeneratorServer`: with a generator; `x, y = yield from server.synthesise_images(t, self.compute_generator_loss)`
  is (a).
The student by itself, for methods that distil on real samples, is in `images.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from ...models import Network
from ...models.generators import build_generator, initialise_generator_in_place
from ...tensor_types import (
    ClientLogits,
    ClientWeights,
    Images,
    Labels,
    Logits,
    ScalarLoss,
    ScalarTensor,
)
from ...training import ClientModels
from ...training.distill import StudentTrainer, choose_distillation_loss
from ...training.loop import LabelledSamples
from ..base import (
    ClientWeighting,
    Context,
    GlobalModel,
    KnobField,
    Method,
    Progress,
    Report,
    Steps,
    knob,
    make_server_model_knob,
)
from .frozen_ensemble import WEIGHTS, FrozenEnsemble, combine_client_logits, compute_client_shares
from .images import (
    CLIP,
    SyntheticPool,
    copy_student_as_model,
    make_student_network,
    make_student_recipe,
    optimise_images,
)

ReportArraysByField = dict[str, np.ndarray]
NoiseOfSteps = Tensor  # [steps, images, nz]
GeneratorLoss = Callable[..., Tensor]  # see `synthesise_images`

# ------------------------------------------------------------------------------------------------------ synthesis trace
# What a synthesis leaves behind for pictures: images, and numbers by epoch.

FRAMES = 12  # snapshots of student and images over a run
SHOWN = 20  # images kept of each frame


@dataclass(frozen=True, eq=False)
class SynthesisReport(Report):
    """Of T epochs in which synthetic images were made; S images of F epochs (about FRAMES) are kept.

    synthetic_images: `[F, S, C, H, W]` uint8, 0–255, or feature rows `[F, S, D]`
    synthetic_labels: `[F, S]`, the intended ones
    synthetic_epochs: `[F]`, from 1
    difficulty: `[T]`, 1 - the mean probability that the teacher gives to the intended labels
    disagreement: `[T]`, share of the batch that the student classifies otherwise, before it learns
        from it
    distillation_loss: `[T]`, mean over the epoch's steps
    """

    synthetic_images: np.ndarray | None = None
    synthetic_labels: np.ndarray | None = None
    synthetic_epochs: np.ndarray | None = None
    difficulty: np.ndarray | None = None
    disagreement: np.ndarray | None = None
    distillation_loss: np.ndarray | None = None


def should_trace_images_of_epoch(epoch_from_1: int, total_epochs: int) -> bool:
    """True if the images of this epoch are kept.

    Those of about FRAMES epochs are, the last one among them.
    """
    return epoch_from_1 == total_epochs or epoch_from_1 % max(1, round(total_epochs / FRAMES)) == 0


class TrainingTrace:
    """Collects, epoch by epoch, the arrays of a `SynthesisReport`; `add_value` adds to any of its series."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.frames: list[tuple[int, Tensor, Tensor]] = []
        self.series: dict[str, list[Tensor]] = {}

    @torch.no_grad()
    def add_batch(
        self,
        epoch_from_1: int,
        images: Images,
        intended_labels: Labels,
        teacher_logits: Logits,
        student: nn.Module,
    ) -> None:
        """Record an epoch's new `images [b, ...]` with intended `intended_labels [b]` and `teacher_logits [b, C]`.

        The student is put in eval mode and asked, to count where it disagrees with the teacher.
        """
        probabilities = teacher_logits.softmax(1).gather(1, intended_labels[:, None])
        self.add_value("difficulty", 1 - probabilities.mean())
        student.eval()
        disagree = student(images).argmax(1) != teacher_logits.argmax(1)
        self.add_value("disagreement", disagree.double().mean())
        if should_trace_images_of_epoch(epoch_from_1, self.epochs):
            rows = (
                torch.linspace(0, len(images) - 1, min(SHOWN, len(images)))
                .round()
                .long()
                .to(images.device)
            )
            self.frames.append((epoch_from_1, images[rows], intended_labels[rows]))

    def add_value(self, series_name: str, value: ScalarTensor) -> None:
        """One more value of the series `series_name`."""
        self.series.setdefault(series_name, []).append(value.detach().clone())

    def make_arrays(self) -> ReportArraysByField:
        """The report's arrays so far, by field name."""
        arrays = {name: torch.stack(values).cpu().numpy() for name, values in self.series.items()}
        if self.frames:
            epochs, image_frames, label_frames = zip(*self.frames, strict=True)
            images = torch.stack(image_frames)
            if images.dim() == 5:  # images, not feature rows
                images = (images.clamp(0, 1) * 255).round().to(torch.uint8)
            arrays["synthetic_images"] = images.cpu().numpy()
            arrays["synthetic_labels"] = torch.stack(label_frames).cpu().numpy()
            arrays["synthetic_epochs"] = np.array(epochs)
        return arrays


ClipChoice = Literal["together", "generator"]
CLIPS: tuple[ClipChoice, ...] = get_args(ClipChoice)


# ---------------------------------------------------------------------------------------------------------------- knobs
def make_teacher_weights_knob() -> KnobField:
    """The field `weights` of the methods whose teacher is fixed: FedENS, or by sample counts (DW-X in Co-Boosting)."""
    return knob("uniform", "Weights", symbol="w_k", options=WEIGHTS)


def make_gradient_clip_knob() -> KnobField:
    """The field `clip` of the methods that search with generator and z together."""
    return knob("together", "Clipping", options=CLIPS)


@dataclass(frozen=True)
class ServerKnobs(Method):
    """Distilling from a pool of synthetic images that grows by `images` an epoch."""

    epochs: int = knob(30, "Server epochs", symbol="T", low=1, high=5000)
    images: int = knob(64, "Images per epoch", symbol="b", low=2, high=4096)
    batch: int = knob(64, "Batch", low=2, high=4096, log=True)
    passes: int = knob(12, "Distillation steps", low=0, high=100_000)
    server_lr: float = knob(0.1, "Server rate", low=1e-5, high=10, log=True)
    temperature: float = knob(4.0, "Temperature", symbol="τ", low=0.1, high=100, log=True)

    server_model: str = make_server_model_knob()

    report = SynthesisReport
    # At 0.1 a student with convolutions dies. A trial, not a study: on 28x28 letters drawn for validation FedDF and
    # DENSE stayed at chance there, and 0.02 was above 0.05 for both and for Co-Boosting.
    convolutional = {"server_lr": 0.02}

    def make_student_trainer(self, student: Network) -> StudentTrainer:
        """With the optimizer of `make_student_recipe`, clipped gradients, KL at `temperature`."""
        recipe = make_student_recipe(self.epochs, self.batch, self.server_lr)
        return StudentTrainer(
            student, recipe, choose_distillation_loss("kl", self.temperature), clip=CLIP
        )

    def make_initial_client_weights(
        self, ctx: Context, dtype_device_template: Tensor
    ) -> ClientWeights | None:
        """w `[M]` of the clients in the teacher, device and dtype of `dtype_device_template`;
        None: all alike."""
        kind: ClientWeighting = getattr(self, "weights", "uniform")
        if kind == "uniform":
            return None
        return compute_client_shares(kind, ctx.sizes, dtype_device_template)

    def combine_client_logits_into_teacher(
        self, client_logits: ClientLogits, client_weights_or_none_if_equal: ClientWeights | None
    ) -> Logits:
        """The teacher's logits `[N, C]` from the clients' `[M, N, C]`."""
        return combine_client_logits(client_logits, client_weights_or_none_if_equal)

    def copy_current_global_model(self, server: DistillationServer) -> GlobalModel:
        """The model that predicts, as it is now, with the report so far."""
        return copy_student_as_model(server.student, self.report(**server.trace.make_arrays()))


@dataclass(frozen=True)
class GeneratorKnobs(ServerKnobs):
    """With a generator of the synthetic images."""

    generator_steps: int = knob(15, "Generator steps", symbol="T_G", low=1, high=5000)
    generator_lr: float = knob(0.01, "Generator rate", low=1e-6, high=1, log=True)
    latent: int = knob(32, "Latent size", symbol="nz", low=1, high=4096)
    width: int = knob(8, "Generator width", symbol="ngf", low=1, high=512)


# --------------------------------------------------------------------------------------------------------------- server
class DistillationServer:
    """The server of a data-free method.

    The `uploaded` models, frozen as `ensemble`, their `weights` w `[M]` (None: all alike), `student`, its `learner`,
    `pool`, `trace`, and `stream`, the random stream of the images.
    """

    def __init__(self, method: Any, ctx: Context, uploaded: ClientModels) -> None:
        self.method = method
        self.ctx = ctx
        self.uploaded = uploaded
        name = method.info.name
        self.ensemble = FrozenEnsemble(uploaded)
        self.student = make_student_network(ctx, name, method.server_model)
        self.learner = method.make_student_trainer(self.student)
        self.weights = method.make_initial_client_weights(ctx, next(self.student.parameters()))
        self.pool = SyntheticPool()
        self.trace = TrainingTrace(method.epochs)
        self.stream = ctx.generator(name, "synthesis")
        self._order = ctx.generator(name, "batches")

    def compute_teacher_logits(self, images: Images) -> Logits:
        """The teacher's logits `[N, C]` of `images [N, ...]`."""
        return self.method.combine_client_logits_into_teacher(
            self.ensemble.logits(images), self.weights
        )

    def draw_intended_labels(self) -> Labels:
        """Intended labels of a batch, y ~ U{0, …, C-1}, sorted, `[b]`."""
        labels = torch.randint(self.ctx.classes, (self.method.images,), generator=self.stream)
        return labels.sort().values.to(self.ctx.device)

    def add_batch_to_pool(self, epoch_from_0: int, images: Images, intended_labels: Labels) -> None:
        """(b) of `epoch_from_0` (from 0): `images [b, ...]` with `intended_labels [b]` joins the pool and the trace."""
        logits = self.ensemble.compute_logits_without_gradients(images)
        self.pool.add_batch(images, intended_labels, logits)
        teacher = self.method.combine_client_logits_into_teacher(logits, self.weights)
        self.trace.add_batch(epoch_from_0 + 1, images, intended_labels, teacher, self.student)

    def distil_student_for_one_epoch(
        self, epoch_from_0: int, prepare_images: Callable[[Images], Images] | None = None
    ) -> Steps[None]:
        """(c) of `epoch_from_0`: a pass over the pool, of `passes` steps at most.

        `prepare_images` changes a batch before teacher and student read it; without it the
        teacher's cached logits are used.
        """
        if prepare_images:
            teacher = self.compute_teacher_logits
        else:
            teacher = self.method.combine_client_logits_into_teacher(self.pool.logits, self.weights)
        steps = self.method.passes or None
        losses = []
        for loss in self.learner.train_one_pass(
            self.pool.x,
            teacher,
            self._order,
            epoch_from_0=epoch_from_0,
            most_steps_or_all=steps,
            prepare_batch=prepare_images,
        ):
            losses.append(loss)
            yield Progress("distillation", epoch_from_0, self.method.epochs)
        yield self.record_loss_and_make_progress(epoch_from_0, losses)

    def record_loss_and_make_progress(
        self, epoch_from_0: int, distillation_losses: list[ScalarLoss]
    ) -> Progress:
        """The progress at the end of `epoch_from_0`, with the `distillation_losses` of its distillation
        steps."""
        loss = torch.stack(distillation_losses).mean()
        epochs = self.method.epochs
        self.trace.add_value("distillation_loss", loss)
        model = (
            self.method.copy_current_global_model(self)
            if should_trace_images_of_epoch(epoch_from_0 + 1, epochs)
            else None
        )
        return Progress(
            "distillation", epoch_from_0 + 1, epochs, {"loss": float(loss)}, model=model
        )


class GeneratorServer(DistillationServer):
    """With a `generator` of samples like the clients', freshly drawn."""

    def __init__(self, method: GeneratorKnobs, ctx: Context, uploaded: ClientModels) -> None:
        super().__init__(method, ctx, uploaded)
        self.generator = build_generator(
            ctx.input_shape,
            width=method.width,
            latent=method.latent,
            generator=self.stream,
            device=ctx.device,
            dtype=ctx.dtype,
        )

    def draw_noise(self, step_count: int, image_count: int) -> NoiseOfSteps:
        """z of so many steps, `[step_count, image_count, nz]`: drawn one after the other, and
        moved to the device together."""
        size = (image_count, self.method.latent)
        noise = [torch.randn(size, generator=self.stream) for _ in range(step_count)]
        return torch.stack(noise).to(self.ctx.device, self.ctx.dtype)

    def synthesise_images(
        self, epoch_from_0: int, compute_generator_loss: GeneratorLoss
    ) -> Steps[LabelledSamples]:
        """(a) of `epoch_from_0`: T_G Adam steps on the generator (with `reset` a fresh one) *and* z for
        `compute_generator_loss(x, y, ensemble, student, w)`.

        Returns the images x `[b, ...]` of the lowest loss and their intended labels y `[b]`.
        """
        method = self.method
        if method.reset and epoch_from_0:
            initialise_generator_in_place(self.generator, self.stream)
        z = self.draw_noise(1, method.images)[0].requires_grad_()
        y = self.draw_intended_labels()
        self.student.requires_grad_(False)  # the images are optimised here, not the student

        def image_loss(x: Tensor) -> Tensor:
            return compute_generator_loss(x, y, self.ensemble, self.student, self.weights)

        x = yield from optimise_images(
            lambda: self.generator(z),
            [*self.generator.parameters(), z],
            image_loss,
            steps=method.generator_steps,
            lr=method.generator_lr,
            clipped_parameter_count=None
            if method.clip == "together"
            else -1,  # z is the last parameter
            progress_of_each_step=Progress("synthesis", epoch_from_0, method.epochs),
        )
        self.student.requires_grad_(True)
        return LabelledSamples(x, y)
