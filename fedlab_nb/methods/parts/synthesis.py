"""What the data-free methods share at the server: a student, hyper-parameters, and a workshop that puts it together.

In short (dense.py shows it at work; an epoch is: (a) search a batch of images, (b) add it to the pool, (c) distil from
the pool):
- `ServerKnobs`, `GeneratorKnobs`: dataclass bases with the hyper-parameters.
- `shop = self.workshop(ctx, uploaded)`: frozen ensemble, student, pool, diary; `shop.add(t, x, y)` is (b),
  `yield from shop.distil(t)` is (c), `shop.result()` the student with its diary.
- `new_student(ctx, method)`, `student_recipe(...)` for those who distil on real samples.
`images.py` has the search and the pool, `diary.py` what is kept for pictures; their names can be taken from here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...models import generators
from ...training import ClientModels, Recipe
from ...training.distill import Learner, Teacher, distillation_loss
from ..base import GlobalModel, Method, NetworkModel, Progress, knob
from ..context import Context
from .diary import FRAMES, Diary, shows, snapshot
from .frozen_ensemble import WEIGHTS, FrozenEnsemble, client_weights, combine
from .images import BETAS, CLIP, Pool, intended_labels, random_crop, search

__all__ = [
    "BETAS",
    "CLIP",
    "FRAMES",
    "Diary",
    "GeneratorKnobs",
    "Pool",
    "ServerKnobs",
    "Workshop",
    "intended_labels",
    "new_student",
    "random_crop",
    "search",
    "shows",
    "snapshot",
    "student_recipe",
    "weights_knob",
]

# DENSE's networks, by the images' channels.
DENSE_MODELS = {1: "cnn2", 3: "cnn3"}


# -------------------------------------------------------------------------------------------------------------- student
def student_recipe(epochs: int, batch: int, lr: float) -> Recipe:
    """SGD with momentum 0.9, weight decay 1e-4, cosine over the epochs: DENSE's student in Co-Boosting's code."""
    return Recipe(epochs, batch, lr=lr, momentum=0.9, weight_decay=1e-4, schedule="cosine")


def new_student(ctx: Context, method: str) -> nn.Module:
    """The server's network: the first client's architecture, freshly drawn (not an average: clients' may differ).

    In eval mode, so that images made against it before it has learnt anything leave its batch norm alone.
    """
    return ctx.build(ctx.architectures[0], ctx.generator(method, "student")).eval()


# ---------------------------------------------------------------------------------------------------------------- knobs
def weights_knob() -> str:
    """The field `weights` of the methods whose teacher is fixed: FedENS, or by sample counts (DW-X in Co-Boosting)."""
    return knob("uniform", "Weights", "Of the clients in the teacher.", symbol="w_k", options=WEIGHTS)


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

    # At 0.1 a student with convolutions dies: FedDF's 10 %, and 76 at 0.02, 69 at 0.05 (DENSE 10, 71, 67; Co-Boosting
    # 74 at 0.02, 64 at 0.05) on 28x28 letters drawn for validation, three clients, α = 1, where the ensemble has 80.
    convolutional = {"server_lr": 0.02}
    # DENSE's clients.
    paper_recipe = Recipe(epochs=200, batch_size=128, lr=0.01, momentum=0.9, weight_decay=0)
    paper_model = DENSE_MODELS

    def workshop(self, ctx: Context, uploaded: ClientModels) -> Workshop:
        """Everything at its start; random streams are the method's own."""
        return Workshop(self, ctx, uploaded)

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


# ------------------------------------------------------------------------------------------------------------- workshop
class Workshop:
    """The server of a data-free method: `ensemble` (the uploaded models, frozen), its `weights [M]` (None: all alike),
    `student`, its `learner`, `pool`, `diary`, and `draws`, the random stream of the images."""

    def __init__(self, method: ServerKnobs, ctx: Context, uploaded: ClientModels) -> None:
        self.method, name = method, method.info.name
        self.ensemble = FrozenEnsemble(uploaded)
        self.student = new_student(ctx, name)
        self.learner = method.learner(self.student)
        like, kind = next(self.student.parameters()), getattr(method, "weights", "uniform")
        self.weights = None if kind == "uniform" else client_weights(kind, ctx.sizes, like)
        self.pool, self.diary = Pool(method.epochs * method.images), Diary(method.epochs, ctx.classes)
        self.draws, self._order = ctx.generator(name, "synthesis"), ctx.generator(name, "batches")

    def add(
        self, t: int, x: Tensor, labels: Tensor, logits: Tensor | None = None, teacher: Tensor | None = None
    ) -> None:
        """(b) of epoch t (from 0): `x [b, ...]` with `labels [b]` joins the pool, and the diary notes it.

        `logits [M, b, C]`: the clients' of x, if they are known; `teacher [b, C]`: what they say together (None:
        their weighted mean).
        """
        logits = self.ensemble.remembered(x) if logits is None else logits
        self.pool.add(x, labels, logits)
        self.diary.batch(t + 1, x, labels, combine(logits, self.weights) if teacher is None else teacher, self.student)

    def distil(
        self,
        t: int,
        teacher: Teacher | None = None,
        prepare: Callable[[Tensor], Tensor] | None = None,
        shown: Callable[[], GlobalModel] | None = None,
    ) -> Generator[Progress, None, None]:
        """(c) of epoch t: a pass over the pool. `teacher`: None for the clients' weighted mean; `shown`: what the live
        curve shows (None: the student)."""
        teacher = combine(self.pool.logits, self.weights) if teacher is None else teacher
        loss = yield from self.method.distil(self.learner, self.pool.x, teacher, self._order, t, prepare)
        yield self.done(t, loss, shown)

    def done(self, t: int, loss: Tensor, shown: Callable[[], GlobalModel] | None = None) -> Progress:
        """Epoch t is over, with the mean distillation `loss`."""
        self.diary.note("distillation_loss", loss)
        epochs, model = self.method.epochs, None
        if shows(t + 1, epochs):
            model = shown() if shown else snapshot(self.student)
            model.live = self.diary.artefacts()
        return Progress("distillation", t + 1, epochs, {"loss": float(loss)}, model=model)

    def result(self) -> NetworkModel:
        """The student as it is now, and the diary."""
        return snapshot(self.student, artefacts=self.diary.artefacts())
