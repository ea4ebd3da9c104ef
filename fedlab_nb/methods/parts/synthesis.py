"""What the data-free methods share at the server: searching images, a pool of them, knobs, and a diary for pictures.

In short (dense.py shows them all at work; an epoch is: search a batch of images, add it to the pool, distil from the
pool):
- `x = yield from search(make, parameters, loss, ...)`: Adam on whatever makes the images (a generator and its z, or
  the pixels); yields Progress after each step and *returns* the batch of the lowest loss, cloned.
- `Pool(capacity)`: images, their labels and the clients' logits on them, so that a fixed teacher is never asked
  twice.
- `ServerKnobs`, `GeneratorKnobs`: dataclass bases with the hyper-parameters; `ServerKnobs.learner(student)` is the
  `Learner`, `loss = yield from self.distil(learner, pool.x, teacher, stream, t)` one epoch of it.
- `new_student(ctx, method)`, `snapshot(student)`; `random_crop`; `Diary`, whose `artefacts()` go to the final model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...models import generators
from ...training import Recipe
from ...training.distill import Learner, Teacher, distillation_loss
from ..base import Method, NetworkModel, Progress, knob
from ..context import Context

FRAMES = 12  # snapshots of student and images over a run
SHOWN = 20  # images kept of each frame
CLIP = 10.0  # largest norm of a gradient, of generator and student (Co-Boosting's code)
BETAS = (0.5, 0.999)  # Adam's, for the generator


# -------------------------------------------------------------------------------------------------------------- student
def student_recipe(epochs: int, batch: int, lr: float) -> Recipe:
    """SGD with momentum 0.9, weight decay 1e-4, cosine over the epochs: DENSE's student in Co-Boosting's code."""
    return Recipe(epochs, batch, lr=lr, momentum=0.9, weight_decay=1e-4, schedule="cosine")


def new_student(ctx: Context, method: str) -> nn.Module:
    """The server's network: the first client's architecture, freshly drawn (not an average: clients' may differ)."""
    return ctx.build(ctx.architectures[0], ctx.generator(method, "student"))


def snapshot(student: nn.Module, **kept) -> NetworkModel:
    """The student as it is now; training goes on with the original. `kept`: artefacts=, numbers=."""
    return NetworkModel(copy.deepcopy(student), **kept)


def shows(done: int, total: int) -> bool:
    """Whether epoch `done` (from 1) of `total` is one of the about FRAMES that are shown; the last one is."""
    return done == total or done % max(1, round(total / FRAMES)) == 0


# ---------------------------------------------------------------------------------------------------------------- knobs
@dataclass(frozen=True)
class ServerKnobs(Method):
    """Distilling from a pool of synthetic images that grows by `images` an epoch."""

    epochs: int = knob(30, "Server epochs", "Rounds of 'make images, distil'.", symbol="T", low=1, high=5000, paper=200)
    images: int = knob(
        64, "Images an epoch", "New synthetic images in an epoch.", symbol="b", low=2, high=4096, paper=128
    )
    batch: int = knob(64, "Batch", "Images in one distillation step.", low=2, high=4096, log=True, paper=128)
    passes: int = knob(
        12, "Distillation steps", "At most so many steps an epoch; 0: the whole pool.", low=0, high=100_000, paper=0
    )
    server_lr: float = knob(0.1, "Server rate", "SGD's, momentum 0.9.", low=1e-5, high=10, log=True, paper=0.01)
    temperature: float = knob(
        4.0, "Temperature", "Softens teacher and student.", symbol="τ", low=0.1, high=100, log=True
    )

    paper_recipe = Recipe(epochs=200, batch_size=128, lr=0.01, momentum=0.9, weight_decay=0)  # DENSE's clients

    def learner(self, student: nn.Module) -> Learner:
        """With the optimizer of `student_recipe`, clipped gradients, KL at `temperature`."""
        recipe = student_recipe(self.epochs, self.batch, self.server_lr)
        return Learner(student, recipe, distillation_loss("kl", self.temperature), clip=CLIP)

    def distil(
        self,
        learner: Learner,
        x: Tensor,
        teacher: Teacher,
        stream: torch.Generator,
        t: int,
        prepare: Callable[[Tensor], Tensor] | None = None,
    ) -> Generator[Progress, None, Tensor]:
        """Epoch t's distillation steps on the pool's `x`; returns their mean loss. See `Learner.one_pass`."""
        losses = []
        steps = self.passes or None
        for value in learner.one_pass(x, teacher, stream, epoch=t, steps=steps, prepare=prepare):
            losses.append(value)
            yield Progress("distillation", t, self.epochs)
        return torch.stack(losses).mean()


@dataclass(frozen=True)
class GeneratorKnobs(ServerKnobs):
    """And a generator of those images."""

    generator_steps: int = knob(
        15, "Generator steps", "Adam steps for one batch of images.", symbol="T_G", low=1, high=5000, paper=30
    )
    generator_lr: float = knob(
        0.01, "Generator rate", "Adam's, betas 0.5 and 0.999.", low=1e-6, high=1, log=True, paper=1e-3
    )
    latent: int = knob(32, "Latent size", "Length of z.", symbol="nz", low=1, high=4096, paper=256)
    width: int = knob(
        8, "Generator width", "Channels of its last layer but one.", symbol="ngf", low=1, high=512, paper=64
    )

    def generator(self, ctx: Context, stream: torch.Generator) -> nn.Module:
        """Freshly drawn, for samples like the clients'."""
        return generators.build_generator(
            ctx.input_shape, width=self.width, latent=self.latent, generator=stream, device=ctx.device, dtype=ctx.dtype
        )

    def noise(self, ctx: Context, stream: torch.Generator, count: int | None = None) -> Tensor:
        """z ~ N(0, I), `[count, nz]` (None: b)."""
        return torch.randn(count or self.images, self.latent, generator=stream).to(ctx.device, ctx.dtype)


# --------------------------------------------------------------------------------------------------------------- images
def search(
    make: Callable[[], Tensor],
    parameters: Sequence[Tensor],
    loss: Callable[[Tensor], Tensor],
    *,
    steps: int,
    lr: float,
    progress: Progress,
    betas: tuple[float, float] = BETAS,
    clip: float | None = CLIP,
    after: Callable[[], None] = lambda: None,
) -> Generator[Progress, None, Tensor]:
    """Adam on `parameters` so that the images `make()` have a low `loss`; returns the batch with the lowest one,
    cloned.

    Yields `progress` after every step. Gradients go to `parameters` only, never to a network inside `loss`. `clip`:
    largest norm of their gradient. `after` runs after each step (a projection). Kept by value: kept by reference, as
    in two released codes, the "best" pixels would be the last ones, since the optimizer changes them in place.
    """
    parameters = list(parameters)
    optimizer = torch.optim.Adam(parameters, lr=lr, betas=betas)
    best, lowest = None, None
    for _ in range(steps):
        x = make()
        value = loss(x)
        now = float(value.detach())
        if lowest is None or now < lowest:
            best, lowest = x.detach().clone(), now
        for parameter, gradient in zip(parameters, torch.autograd.grad(value, parameters), strict=True):
            parameter.grad = gradient
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        with torch.no_grad():
            after()
        yield progress
    return best


def intended_labels(count: int, classes: int, stream: torch.Generator, device: torch.device) -> Tensor:
    """y ~ U{0, …, C-1}, sorted, `[count]`."""
    return torch.randint(classes, (count,), generator=stream).sort().values.to(device)


def random_crop(x: Tensor, stream: torch.Generator, *, padding: int, flip: bool = False) -> Tensor:
    """Each image of `x [N, C, H, W]` moved by up to `padding` pixels (zeros come in), half of them mirrored if
    `flip`.

    Differentiable with respect to x.
    """
    n, _, height, breadth = x.shape
    padded = nn.functional.pad(x, (padding,) * 4)
    top, left = torch.randint(2 * padding + 1, (2, n, 1), generator=stream).to(x.device)
    rows = top + torch.arange(height, device=x.device)  # [N, H]
    columns = torch.arange(breadth, device=x.device).expand(n, -1)
    if flip:
        mirrored = torch.rand(n, 1, generator=stream).to(x.device) < 0.5
        columns = torch.where(mirrored, breadth - 1 - columns, columns)
    columns = left + columns
    image = torch.arange(n, device=x.device)[:, None, None]
    return padded.movedim(1, -1)[image, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)


class Pool:
    """Up to `capacity` synthetic samples: `x [n, ...]`, `labels [n]`, clients' `logits [M, n, C]`; n = len(pool)."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self._n = capacity, 0
        self._x: Tensor | None = None

    def add(self, x: Tensor, labels: Tensor, logits: Tensor) -> None:
        """Append a batch."""
        if self._x is None:  # room for all, once: growing by concatenation would copy the pool every epoch
            self._x = x.new_empty(self.capacity, *x.shape[1:])
            self._labels = labels.new_empty(self.capacity)
            self._logits = logits.new_empty(logits.shape[0], self.capacity, logits.shape[2])
        here = slice(self._n, self._n + len(x))
        self._x[here], self._labels[here], self._logits[:, here] = x, labels, logits
        self._n += len(x)

    def __len__(self) -> int:
        return self._n

    @property
    def x(self) -> Tensor:
        return self._x[: self._n]

    @property
    def labels(self) -> Tensor:
        return self._labels[: self._n]

    @property
    def logits(self) -> Tensor:
        return self._logits[:, : self._n]


class Diary:
    """What a lesson shows of a synthesis, epoch by epoch.

    `artefacts()`: `synthetic_images [F, S, C, H, W]` (uint8, 0–255; S of the images of F epochs) with
    `synthetic_labels [F, S]` and `synthetic_epochs [F]`; `teacher_classes [T, C]` (how the teacher classifies each
    new batch); `disagreement [T]` (share of it that the student classifies otherwise, before it learns from it); and
    each series given to `note`, `[T]` or `[T, ...]`.
    """

    def __init__(self, epochs: int, classes: int) -> None:
        self.epochs, self.classes = epochs, classes
        self.frames: list[tuple[int, Tensor, Tensor]] = []
        self.series: dict[str, list[Tensor]] = {"teacher_classes": [], "disagreement": []}

    @torch.no_grad()
    def batch(self, done: int, x: Tensor, labels: Tensor, teacher: Tensor, student: nn.Module) -> None:
        """Epoch `done` (from 1): new `x [b, ...]`, their labels `[b]`, the teacher's logits `[b, C]`, the student."""
        answers = teacher.argmax(1)
        self.note("teacher_classes", torch.bincount(answers, minlength=self.classes))
        student.eval()
        self.note("disagreement", (student(x).argmax(1) != answers).double().mean())
        if shows(done, self.epochs):
            some = torch.linspace(0, len(x) - 1, min(SHOWN, len(x))).round().long().to(x.device)
            self.frames.append((done, x[some].cpu(), labels[some].cpu()))

    def note(self, name: str, value: Tensor | float) -> None:
        """One more value of the series `name`."""
        self.series.setdefault(name, []).append(torch.as_tensor(value).detach().cpu().clone())

    def artefacts(self) -> dict[str, np.ndarray]:
        found = {name: torch.stack(values).numpy() for name, values in self.series.items() if values}
        if self.frames:
            epochs, images, labels = zip(*self.frames, strict=True)
            shown = torch.stack(images)
            if shown.dim() == 5:
                shown = (shown.clamp(0, 1) * 255).round().to(torch.uint8)
            found |= {
                "synthetic_images": shown.numpy(),
                "synthetic_labels": torch.stack(labels).numpy(),
                "synthetic_epochs": np.array(epochs),
            }
        return found
