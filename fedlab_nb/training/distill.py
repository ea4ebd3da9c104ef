"""Distillation: one network learns to answer as a teacher does, on samples that need no labels.

In short:
- `choose_distillation_loss("kl" | "l1" | "ce", temperature)` gives a function `loss(target, student_logits) -> [N]`,
  one value for each sample. Any function of that form will do; `target` is what the teacher returns, with N as its
  first axis.
- `distil_student_in_place(student, x, teacher, recipe, loss, stream)` makes `recipe.epochs` passes over fixed samples;
  it is a generator of `EpochProgress`.
- `StudentTrainer(student, recipe, loss)` keeps one optimizer through many passes, for pools of samples that grow:
  `for value in learner.train_one_pass(x, teacher, stream, epoch=t): yield ...`, or single steps by
  `learner.step(x, target)`.

`teacher` is a tensor of targets `[N, ...]` for `x [N, ...]`, or a function from a batch to its targets (called without
gradients). The student is in train mode during a pass, and in eval mode as soon as the pass has ended or was closed.
`recipe` is a `Recipe`: SGD or Adam, with a constant or cosine learning rate.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from ..errors import check_allowed_name
from ..tensor_types import Labels, Logits, LossPerSample, Samples, ScalarLoss
from .local import EpochProgress, choose_curve_epochs
from .optim import Gradients, clip_gradients_to_norm, make_optimizer
from .recipe import Recipe, make_autocast

TeacherStudentLossPerSample = Callable[[Tensor, Tensor], Tensor]
Teacher = Tensor | Callable[[Tensor], Tensor]


# ------------------------------------------------------------------------------------------------------------- losses
def compute_distillation_losses(
    teacher_logits: Logits, student_logits: Logits, temperature: float = 1.0
) -> LossPerSample:
    """τ² KL(softmax(teacher/τ) ‖ softmax(student/τ)) of every sample, `[N]`, from logits `[N, C]` (Hinton et al.,
    2015).

    The factor τ² keeps the gradient's size independent of τ: for large τ the gradient by the student's logits s tends
    to (s - mean s - t + mean t) / C, t being the teacher's. Differentiable with respect to both.
    """
    # Not for 1: a division by 1 would cost time, since steps on small images consist of such small operations.
    if temperature != 1:
        return temperature**2 * compute_distillation_losses(
            teacher_logits / temperature, student_logits / temperature
        )
    teacher_logs = teacher_logits.log_softmax(-1)
    student_logs = student_logits.log_softmax(-1)
    return (teacher_logs.exp() * (teacher_logs - student_logs)).sum(-1)


def compute_logit_distance_losses(teacher_logits: Logits, student_logits: Logits) -> LossPerSample:
    """Mean over the classes of |teacher - student| of every sample, `[N]`, from logits `[N, C]` (FedKD)."""
    return (teacher_logits - student_logits).abs().mean(-1)


def compute_cross_entropy_losses(
    labels_or_teacher_logits: Labels | Logits, student_logits: Logits
) -> LossPerSample:
    """Cross-entropy of every sample, `[N]`, to labels `[N]` or to the argmax of teacher logits `[N, C]`."""
    labels = labels_or_teacher_logits
    if labels_or_teacher_logits.dim() > 1:
        labels = labels_or_teacher_logits.argmax(-1)
    return F.cross_entropy(student_logits, labels, reduction="none")


LossName = Literal["kl", "l1", "ce"]
LOSSES = ("kl", "l1", "ce")


def choose_distillation_loss(
    name: LossName, temperature: float = 1.0
) -> TeacherStudentLossPerSample:
    """The named loss; `temperature` is for "kl" alone. UsageError for another name."""
    check_allowed_name("distillation loss", name, LOSSES)
    if name == "kl":
        return functools.partial(compute_distillation_losses, temperature=temperature)
    if name == "l1":
        return compute_logit_distance_losses
    return compute_cross_entropy_losses


# ---------------------------------------------------------------------------------------------------------------- loop
class StudentTrainer:
    """A student and its optimizer. `clip`: largest norm of a step's gradient (None: not clipped)."""

    def __init__(
        self,
        student: nn.Module,
        recipe: Recipe,
        loss: TeacherStudentLossPerSample,
        *,
        clip: float | None = None,
    ) -> None:
        self.student = student
        self.recipe = recipe
        self.loss = loss
        self.clip = clip
        trainable = [parameter for parameter in student.parameters() if parameter.requires_grad]
        self.optimizer = make_optimizer(trainable, recipe)

    def set_learning_rate_of_epoch(self, epoch_from_0: int) -> None:
        """Set the learning rate of an epoch, by the recipe's schedule."""
        self.optimizer.lr = self.recipe.compute_learning_rate(epoch_from_0)

    def step(self, samples: Samples, teacher_logits_or_labels: Logits) -> ScalarLoss:
        """Take a step on a batch `samples [B, ...]`; returns the loss before the step, (1/B) Σ_i ℓ_i.

        teacher_logits_or_labels: what the loss compares with, `[B, C]` or `[B]`
        """
        with make_autocast(self.recipe, samples.device):
            logits = self.student(samples)
        if logits.dtype == torch.bfloat16:
            logits = logits.float()
        loss = self.loss(teacher_logits_or_labels, logits).mean()
        gradients: Gradients = torch.autograd.grad(loss, self.optimizer.parameters)
        if self.clip is not None:
            gradients = clip_gradients_to_norm(gradients, self.clip)
        self.optimizer.step(gradients)
        return loss.detach()

    def train_one_pass(
        self,
        samples: Samples,
        teacher: Teacher,
        stream: Generator,
        *,
        epoch_from_0: int,
        most_steps_or_all: int | None = None,
        prepare_batch: Callable[[Samples], Samples] | None = None,
    ) -> Iterator[ScalarLoss]:
        """One shuffled pass over `samples [N, ...]`; yields the loss of every step.

        stream: a CPU generator, which draws the order
        most_steps_or_all: None for all
        prepare_batch: changes a batch before teacher and student see it (augmentation, perturbation); `teacher` must
            then be a function
        """
        self.set_learning_rate_of_epoch(epoch_from_0)
        self.student.train()
        size = self.recipe.batch_size
        order = torch.randperm(len(samples), generator=stream).to(samples.device)
        if most_steps_or_all is not None:
            order = order[: most_steps_or_all * size]
        try:
            for rows in order.split(size):
                batch = samples[rows]
                if prepare_batch is not None:
                    batch = prepare_batch(batch)
                if isinstance(teacher, Tensor):
                    target = teacher[rows]
                else:
                    with torch.no_grad():
                        target = teacher(batch)
                yield self.step(batch, target)
        finally:
            self.student.eval()


def distil_student_in_place(
    student: nn.Module,
    samples: Samples,
    teacher: Teacher,
    recipe: Recipe,
    loss: TeacherStudentLossPerSample,
    stream: Generator,
    largest_gradient_norm: float | None = None,
) -> Iterator[EpochProgress]:
    """Train `student` in place for `recipe.epochs` passes over `samples [N, ...]`; yields progress after every step.

    `EpochProgress.done` counts finished epochs; `has_current_models` marks the epochs at whose end a point of the
    curve is measured.
    """
    learner = StudentTrainer(student, recipe, loss, clip=largest_gradient_norm)
    curve_epochs = choose_curve_epochs(recipe.epochs)
    for epoch in range(recipe.epochs):
        for _ in learner.train_one_pass(samples, teacher, stream, epoch_from_0=epoch):
            yield EpochProgress(epoch, recipe.epochs)
        yield EpochProgress(epoch + 1, recipe.epochs, epoch + 1 in curve_epochs)
