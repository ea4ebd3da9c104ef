"""What the data-free methods share at the server: hyper-parameters, and the server itself, put together.

An epoch of theirs is: (a) make a batch of images, (b) add it to the pool, (c) distil from the pool. In short:
- `ServerKnobs`, `GeneratorKnobs`: dataclass bases with the hyper-parameters; a method overrides `first_weights`,
  `teacher` and `model` where it differs from DENSE.
- `server = Server(self, ctx, uploaded)`: frozen ensemble, its weights, student, pool and trace, all at their start;
  `server.add(t, x, y)` is (b), `yield from server.distil(t)` is (c), `self.model(server)` what predicts.
- `GeneratorServer`: with a generator; `x, y = yield from server.images(t, self.loss)` is (a).
The student by itself, for those who distil on real samples, is in `images.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...models import Network
from ...models.generators import build_generator, initialise_generator
from ...training import ClientModels
from ...training.distill import Learner, distillation_loss
from ..base import Context, GlobalModel, Method, Progress, Report, Steps, knob, server_model_knob
from .frozen_ensemble import WEIGHTS, FrozenEnsemble, client_weights, combine
from .images import CLIP, Pool, new_student, search, snapshot, student_recipe

# ------------------------------------------------------------------------------------------------------ synthesis trace
# What a synthesis leaves behind for pictures: images and series, epoch by epoch.

FRAMES = 12  # snapshots of student and images over a run
SHOWN = 20  # images kept of each frame


@dataclass(frozen=True, eq=False)
class SynthesisReport(Report):
    """Of T epochs in which synthetic images were made; S images of F epochs (about FRAMES) are kept.

    synthetic_images:  `[F, S, C, H, W]` uint8, 0–255, or feature rows `[F, S, D]`;   synthetic_labels: `[F, S]`, those
                       asked for;   synthetic_epochs: `[F]`, from 1
    difficulty:        `[T]`, 1 - the mean probability that the teacher gives to the intended labels
    disagreement:      `[T]`, share of the batch that the student classifies otherwise, before it learns from it
    distillation_loss: `[T]`, mean over the epoch's steps
    """

    synthetic_images: np.ndarray | None = None
    synthetic_labels: np.ndarray | None = None
    synthetic_epochs: np.ndarray | None = None
    difficulty: np.ndarray | None = None
    disagreement: np.ndarray | None = None
    distillation_loss: np.ndarray | None = None


def shows(done: int, total: int) -> bool:
    """Whether epoch `done` (from 1) of `total` is one of the about FRAMES that are shown; the last one is."""
    return done == total or done % max(1, round(total / FRAMES)) == 0


class SynthesisTrace:
    """Collects, epoch by epoch, the arrays of a `SynthesisReport`; `note` adds a value to any of its series."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.frames: list[tuple[int, Tensor, Tensor]] = []
        self.series: dict[str, list[Tensor]] = {}

    @torch.no_grad()
    def batch(
        self, done: int, x: Tensor, labels: Tensor, teacher: Tensor, student: nn.Module
    ) -> None:
        """Epoch `done` (from 1): new `x [b, ...]`, their labels `[b]`, the teacher's logits `[b, C]`, the student."""
        answers = teacher.argmax(1)
        self.note("difficulty", 1 - teacher.softmax(1).gather(1, labels[:, None]).mean())
        student.eval()
        self.note("disagreement", (student(x).argmax(1) != answers).double().mean())
        if shows(done, self.epochs):
            some = torch.linspace(0, len(x) - 1, min(SHOWN, len(x))).round().long().to(x.device)
            self.frames.append((done, x[some], labels[some]))

    def note(self, name: str, value: Tensor) -> None:
        """One more value of the series `name`."""
        self.series.setdefault(name, []).append(value.detach().clone())

    def arrays(self) -> dict[str, Any]:
        """The report's arrays so far, by field name."""
        arrays = {name: torch.stack(values).cpu().numpy() for name, values in self.series.items()}
        if self.frames:
            epochs, images, labels = zip(*self.frames, strict=True)
            shown = torch.stack(images)
            if shown.dim() == 5:
                shown = (shown.clamp(0, 1) * 255).round().to(torch.uint8)
            labelled = torch.stack(labels).cpu().numpy()
            made = {"images": shown.cpu().numpy(), "labels": labelled, "epochs": np.array(epochs)}
            arrays |= {f"synthetic_{name}": array for name, array in made.items()}
        return arrays


CLIPS = ("together", "generator")


# ---------------------------------------------------------------------------------------------------------------- knobs
def weights_knob() -> str:
    """The field `weights` of the methods whose teacher is fixed: FedENS, or by sample counts (DW-X in Co-Boosting)."""
    return knob("uniform", "Weights", symbol="w_k", options=WEIGHTS)


def clip_knob() -> str:
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

    server_model: str = server_model_knob()

    report = SynthesisReport
    # At 0.1 a student with convolutions dies. A trial, not a study: on 28x28 letters drawn for validation FedDF and
    # DENSE stayed at chance there, and 0.02 was above 0.05 for both and for Co-Boosting.
    convolutional = {"server_lr": 0.02}

    def learner(self, student: Network) -> Learner:
        """With the optimizer of `student_recipe`, clipped gradients, KL at `temperature`."""
        recipe = student_recipe(self.epochs, self.batch, self.server_lr)
        return Learner(student, recipe, distillation_loss("kl", self.temperature), clip=CLIP)

    def first_weights(self, ctx: Context, like: Tensor) -> Tensor | None:
        """w `[M]` of the clients in the teacher, device and dtype of `like`; None: all alike."""
        kind = getattr(self, "weights", "uniform")
        return None if kind == "uniform" else client_weights(kind, ctx.sizes, like)

    def teacher(self, logits: Tensor, w: Tensor | None) -> Tensor:
        """What the clients' logits `[M, N, C]` say together, `[N, C]`."""
        return combine(logits, w)

    def model(self, server: Server) -> GlobalModel:
        """What predicts, as it is now, with the report so far."""
        return snapshot(server.student, self.report(**server.trace.arrays()))


@dataclass(frozen=True)
class GeneratorKnobs(ServerKnobs):
    """And a generator of those images."""

    generator_steps: int = knob(15, "Generator steps", symbol="T_G", low=1, high=5000)
    generator_lr: float = knob(0.01, "Generator rate", low=1e-6, high=1, log=True)
    latent: int = knob(32, "Latent size", symbol="nz", low=1, high=4096)
    width: int = knob(8, "Generator width", symbol="ngf", low=1, high=512)


# --------------------------------------------------------------------------------------------------------------- server
class Server:
    """The server of a data-free method: the `uploaded` models, frozen as `ensemble`, their `weights` w `[M]` (None: all
    alike), `student`, its `learner`, `pool`, `trace`, and `draws`, the random stream of the images."""

    def __init__(self, method: Any, ctx: Context, uploaded: ClientModels) -> None:
        self.method, self.ctx, self.uploaded = method, ctx, uploaded
        name = method.info.name
        self.ensemble, self.student = (
            FrozenEnsemble(uploaded),
            new_student(ctx, name, method.server_model),
        )
        self.learner = method.learner(self.student)
        self.weights = method.first_weights(ctx, next(self.student.parameters()))
        self.pool, self.trace = Pool(), SynthesisTrace(method.epochs)
        self.draws, self._order = ctx.generator(name, "synthesis"), ctx.generator(name, "batches")

    def teacher(self, x: Tensor) -> Tensor:
        """What the clients say of `x [N, ...]` together, `[N, C]`."""
        return self.method.teacher(self.ensemble.logits(x), self.weights)

    def labels(self) -> Tensor:
        """Intended labels of a batch, y ~ U{0, …, C-1}, sorted, `[b]`."""
        drawn = torch.randint(self.ctx.classes, (self.method.images,), generator=self.draws)
        return drawn.sort().values.to(self.ctx.device)

    def add(self, t: int, x: Tensor, labels: Tensor) -> None:
        """(b) of epoch t (from 0): `x [b, ...]` with `labels [b]` joins the pool, and is noted."""
        logits = self.ensemble.remembered(x)
        self.pool.add(x, labels, logits)
        self.trace.batch(t + 1, x, labels, self.method.teacher(logits, self.weights), self.student)

    def distil(self, t: int, prepare: Callable[[Tensor], Tensor] | None = None) -> Steps[None]:
        """(c) of epoch t: a pass over the pool, of `passes` steps at most. `prepare` changes a batch before teacher and
        student see it; without it the teacher's cached answers do."""
        teacher = self.teacher if prepare else self.method.teacher(self.pool.logits, self.weights)
        losses, steps = [], self.method.passes or None
        for loss in self.learner.one_pass(
            self.pool.x, teacher, self._order, epoch=t, steps=steps, prepare=prepare
        ):
            losses.append(loss)
            yield Progress("distillation", t, self.method.epochs)
        yield self.done(t, losses)

    def done(self, t: int, losses: list[Tensor]) -> Progress:
        """Epoch t is over, with the `losses` of its distillation steps."""
        loss, epochs = torch.stack(losses).mean(), self.method.epochs
        self.trace.note("distillation_loss", loss)
        model = self.method.model(self) if shows(t + 1, epochs) else None
        return Progress("distillation", t + 1, epochs, {"loss": float(loss)}, model=model)


class GeneratorServer(Server):
    """With a `generator` of samples like the clients', freshly drawn."""

    def __init__(self, method: GeneratorKnobs, ctx: Context, uploaded: ClientModels) -> None:
        super().__init__(method, ctx, uploaded)
        self.generator = build_generator(
            ctx.input_shape, width=method.width, latent=method.latent, generator=self.draws, device=ctx.device,
            dtype=ctx.dtype,
        )  # fmt: skip

    def noises(self, steps: int, count: int) -> Tensor:
        """z of so many steps, `[steps, count, nz]`: drawn one after the other, and sent to the device at once."""
        drawn = [torch.randn(count, self.method.latent, generator=self.draws) for _ in range(steps)]
        return torch.stack(drawn).to(self.ctx.device, self.ctx.dtype)

    def images(self, t: int, loss: Callable[..., Tensor]) -> Steps[tuple[Tensor, Tensor]]:
        """(a) of epoch t: T_G Adam steps on the generator (with `reset` a fresh one) *and* z for
        `loss(x, y, ensemble, student, w)`.

        Returns the images x `[b, ...]` of the lowest loss and their intended labels y `[b]`.
        """
        method = self.method
        if method.reset and t:
            initialise_generator(self.generator, self.draws)
        z, y = self.noises(1, method.images)[0].requires_grad_(), self.labels()
        self.student.requires_grad_(False)  # here the images learn, not the student
        parameters, seen = (
            [*self.generator.parameters(), z],
            (self.ensemble, self.student, self.weights),
        )
        clipped = None if method.clip == "together" else -1  # z is the last
        adam: dict[str, Any] = {
            "steps": method.generator_steps,
            "lr": method.generator_lr,
            "clipped": clipped,
        }
        adam["progress"] = Progress("synthesis", t, method.epochs)
        x = yield from search(
            lambda: self.generator(z), parameters, lambda x: loss(x, y, *seen), **adam
        )
        self.student.requires_grad_(True)
        return x, y
