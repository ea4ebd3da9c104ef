"""Distillation: one network learns to answer as a teacher does, on samples that need no labels. The only such loop.

In short:
- `choose_distillation_loss("kl" | "l1" | "ce", temperature)` -> `loss(target, student_logits) -> [N]`, one value a
  sample. Any function of that form will do (`target` is then whatever the teacher returns, first axis N).
- `distil(student, x, teacher, recipe, loss, stream)`: `recipe.epochs` passes over fixed samples; a generator of
  `Tick`s.
- `Learner(student, recipe, loss)`: one optimizer kept through many passes, for pools that grow:
  `for value in learner.train_one_pass(x, teacher, stream, epoch=t): yield ...`, or single steps by
  `learner.step(x, target)`.

`teacher` is a tensor of targets `[N, ...]` for `x [N, ...]`, or a function from a batch to them (called without
gradients). The student is in train mode while it learns and in eval mode whenever a pass has ended (or was closed).
`recipe` is a `Recipe`: SGD or Adam, constant or cosine. Knows nothing of where samples or teachers come from.
"""

import functools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from ..errors import choose
from .local import Tick, choose_curve_epochs
from .optim import Gradients, clip_gradients, make_optimizer
from .recipe import Recipe, make_autocast

Loss = Callable[[Tensor, Tensor], Tensor]
Teacher = Tensor | Callable[[Tensor], Tensor]


# ------------------------------------------------------------------------------------------------------------- losses
def compute_kl_losses(teacher: Tensor, student: Tensor, temperature: float = 1.0) -> Tensor:
    """τ² KL(softmax(teacher/τ) ‖ softmax(student/τ)) of every sample, `[N]`, from logits `[N, C]` (Hinton et al.,
    2015).

    The factor τ² keeps the gradient's size: for large τ it tends to (s - mean s - t + mean t) / C, whatever τ.
    Differentiable with respect to both.
    """
    if temperature != 1:  # no division by 1: a step on small images consists of small operations
        return temperature**2 * compute_kl_losses(teacher / temperature, student / temperature)
    teacher_logs = teacher.log_softmax(-1)
    student_logs = student.log_softmax(-1)
    return (teacher_logs.exp() * (teacher_logs - student_logs)).sum(-1)


def compute_l1_losses(teacher: Tensor, student: Tensor) -> Tensor:
    """Mean over the classes of |teacher - student| of every sample, `[N]`, from logits `[N, C]` (FedKD)."""
    return (teacher - student).abs().mean(-1)


def compute_cross_entropies(target: Tensor, student: Tensor) -> Tensor:
    """Cross-entropy of every sample, `[N]`, to labels `[N]` or to the argmax of teacher logits `[N, C]`."""
    labels = target.argmax(-1) if target.dim() > 1 else target
    return F.cross_entropy(student, labels, reduction="none")


LOSSES = ("kl", "l1", "ce")


def choose_distillation_loss(name: str, temperature: float = 1.0) -> Loss:
    """The named loss; `temperature` is for "kl" alone. UsageError for another name."""
    choose("distillation loss", name, LOSSES)
    if name == "kl":
        return functools.partial(compute_kl_losses, temperature=temperature)
    if name == "l1":
        return compute_l1_losses
    return compute_cross_entropies


# ---------------------------------------------------------------------------------------------------------------- loop
class Learner:
    """A student and its optimizer. `clip`: largest norm of a step's gradient (None: not clipped)."""

    def __init__(
        self, student: nn.Module, recipe: Recipe, loss: Loss, *, clip: float | None = None
    ) -> None:
        self.student = student
        self.recipe = recipe
        self.loss = loss
        self.clip = clip
        trainable = [parameter for parameter in student.parameters() if parameter.requires_grad]
        self.optimizer = make_optimizer(trainable, recipe)

    def set_epoch(self, epoch: int) -> None:
        """Set the learning rate of `epoch` (from 0), by the recipe's schedule."""
        self.optimizer.lr = self.recipe.lr_at(epoch)

    def step(self, x: Tensor, target: Tensor) -> Tensor:
        """A step on a batch `x [B, ...]`; returns its loss before the step, (1/B) Σ_i ℓ_i."""
        with make_autocast(self.recipe, x.device):
            logits = self.student(x)
        if logits.dtype == torch.bfloat16:
            logits = logits.float()
        loss = self.loss(target, logits).mean()
        gradients: Gradients = torch.autograd.grad(loss, self.optimizer.parameters)
        if self.clip is not None:
            gradients = clip_gradients(gradients, self.clip)
        self.optimizer.step(gradients)
        return loss.detach()

    def train_one_pass(
        self,
        x: Tensor,
        teacher: Teacher,
        stream: Generator,
        *,
        epoch: int,
        steps: int | None = None,
        prepare: Callable[[Tensor], Tensor] | None = None,
    ) -> Iterator[Tensor]:
        """One shuffled pass over `x [N, ...]` (only its first `steps` batches); yields the loss of every step.

        `prepare` changes a batch before teacher and student see it (augmentation, perturbation; `teacher` must then
        be a function). `stream` (a CPU generator) draws the order.
        """
        self.set_epoch(epoch)
        self.student.train()
        size = self.recipe.batch_size
        order = torch.randperm(len(x), generator=stream).to(x.device)
        if steps is not None:
            order = order[: steps * size]
        try:
            for rows in order.split(size):
                samples = x[rows]
                if prepare is not None:
                    samples = prepare(samples)
                if isinstance(teacher, Tensor):
                    target = teacher[rows]
                else:
                    with torch.no_grad():
                        target = teacher(samples)
                yield self.step(samples, target)
        finally:
            self.student.eval()


def distil(
    student: nn.Module,
    x: Tensor,
    teacher: Teacher,
    recipe: Recipe,
    loss: Loss,
    stream: Generator,
    clip: float | None = None,
) -> Iterator[Tick]:
    """Train `student` in place for `recipe.epochs` passes over `x [N, ...]`; a tick after every step.

    `Tick.done` counts finished epochs; `fresh` marks the epochs at whose end a curve should be drawn.
    """
    learner = Learner(student, recipe, loss, clip=clip)
    curve_epochs = choose_curve_epochs(recipe.epochs)
    for epoch in range(recipe.epochs):
        for _ in learner.train_one_pass(x, teacher, stream, epoch=epoch):
            yield Tick(epoch, recipe.epochs)
        yield Tick(epoch + 1, recipe.epochs, epoch + 1 in curve_epochs)
