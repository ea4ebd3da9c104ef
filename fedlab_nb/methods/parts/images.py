"""Synthetic images: how they are searched for, and the pool that they are kept in.

- `x = yield from optimise_images(make, parameters, loss, ...)`: Adam on whatever makes the images (a generator
  and its z, or the pixels); yields Progress after each step and *returns* the batch of the lowest loss, cloned.
- `Pool()`: images, their labels and the clients' logits on them, so that a fixed teacher reads each image once.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import DATASETS, load
from ...errors import UsageError
from ...models import Network
from ...models.state import copy_model
from ...training import Recipe, optim
from ...training.recipe import crop_and_flip
from ..base import Context, NetworkModel, Progress, Report, Steps

CLIP = 10.0  # largest norm of a gradient, of generator and student (Co-Boosting's code)
BETAS = (0.5, 0.999)  # Adam's, for the generator


def optimise_images(
    make: Callable[[], Tensor],
    parameters: Sequence[Tensor],
    loss: Callable[[Tensor], Tensor],
    *,
    steps: int,
    lr: float,
    progress: Progress,
    betas: tuple[float, float] = BETAS,
    clip: float | None = CLIP,
    clipped: int | None = None,
    after: Callable[[], object] = lambda: None,
) -> Steps[Tensor]:
    """Adam on `parameters` so that the images `make()` have a low `loss`; returns the batch with the lowest one,
    cloned.

    Yields `progress` after every step. Gradients go to `parameters` only, never to a network inside `loss`. `clip`:
    largest norm of their gradient, jointly of all or of `parameters[:clipped]`, while the others' are left alone.
    `after` runs after each step (a projection). The batch is kept by value: kept by reference, as in two released
    codes, the "best" pixels would be the last ones, since the optimizer changes them in place.
    """
    parameters = list(parameters)
    clipped_count = len(parameters[:clipped])
    optimizer = optim.Adam(parameters, lr, betas=betas)
    best = lowest = torch.empty(0)
    for _ in range(steps):
        x = make()
        value = loss(x)
        best, lowest = _choose_lower(best, lowest, x.detach(), value.detach())
        gradients = torch.autograd.grad(value, parameters)
        if clip is not None:
            clipped_gradients = optim.clip_gradients(gradients[:clipped_count], clip)
            gradients = (*clipped_gradients, *gradients[clipped_count:])
        optimizer.step(gradients)
        with torch.no_grad():
            after()
        yield progress
    return best


def _choose_lower(best: Tensor, lowest: Tensor, x: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The better of two batches (`best` may have none yet) and its loss, decided on the device, without a wait."""
    if not len(best):
        return x.clone(), value
    better = value < lowest
    return torch.where(better, x, best), torch.where(better, value, lowest)


def crop_randomly(
    images: Tensor, stream: torch.Generator, *, padding: int, flip: bool = False
) -> Tensor:
    """Each image of `images [N, C, H, W]` moved by up to `padding` pixels (zeros come in), half of them mirrored if
    `flip`.

    Differentiable with respect to `images`.
    """
    top, left = torch.randint(2 * padding + 1, (2, len(images)), generator=stream)
    if flip:
        is_mirrored = (torch.rand(len(images), generator=stream) < 0.5).long()
    else:
        is_mirrored = torch.zeros_like(top)
    offsets = torch.stack([top, left, is_mirrored], 1)
    return crop_and_flip(images, offsets.to(images.device), (padding, padding))


class Pool:
    """Synthetic samples: `x [n, ...]`, `labels [n]`, clients' `logits [M, n, C]`; n = len(pool)."""

    def __init__(self) -> None:
        self.x = torch.empty(0)
        self.labels = torch.empty(0)
        self.logits = torch.empty(0)

    def add(self, images: Tensor, labels: Tensor, logits: Tensor) -> None:
        """Append a batch."""
        if len(self):
            images = torch.cat([self.x, images])
            labels = torch.cat([self.labels, labels])
            logits = torch.cat([self.logits, logits], 1)
        self.x = images
        self.labels = labels
        self.logits = logits

    def __len__(self) -> int:
        return len(self.x)


# --------------------------------------------------------------------------------------------------------------- public
# Unlabelled samples at the server: the data set's own public part, those of another data set, or noise.
#
# `choose_public_samples` gives them in the shape of the clients' inputs. Of another data set only its public
# part is taken, so that no client's private samples can get in this way. There is never a label.

# Of the federation's own data set. "other-mix": half the classes, which the caller selects (`choose_half_of_classes`).
OWN_SOURCES = ("held-out", "other-mix")
# One size of each data set: images are resized.
IMAGE_SETS = [name for name, info in DATASETS.items() if info.images and ":" not in name]
SOURCES = (*OWN_SOURCES, "noise", *IMAGE_SETS)
NOISE = 1000  # samples of noise where no number is given


def check_source(ctx: Context, source: str, transform: bool, title: str) -> None:
    """UsageError, in one sentence, if `source` is not available for this run's inputs."""
    has_images = ctx.has("images")
    if source in OWN_SOURCES and not ctx.has("public"):
        others = "glyphs or noise" if has_images else "noise"
        raise UsageError(
            f"{title} needs unlabelled public samples; set public=0.1, or fedet.public={others}."
        )
    if has_images:
        return
    if source in DATASETS or transform:
        unusable = "images of another data set" if source in DATASETS else "transformed images"
        raise UsageError(
            f"{title} cannot use {unusable} with {ctx.kind};"
            " set fedet.public=held-out, transform=false."
        )


def choose_public_samples(
    ctx: Context, source: str, size: int = 0, transform: bool = False
) -> Tensor:
    """`[P, *input_shape]` on the run's device; `size` of them at most, drawn without replacement (0: all there are)."""
    stream = ctx.generator("public", source)
    if source == "noise":
        # In the range of images, or on the scale of standardised rows.
        draw = torch.rand if ctx.has("images") else torch.randn
        x = draw(size or NOISE, *ctx.input_shape, generator=stream).to(ctx.device, ctx.dtype)
    elif source in OWN_SOURCES:
        x = ctx.public
    else:
        foreign = load(source).x_public
        assert foreign is not None  # all of SOURCES have some
        x = fit_images(foreign.to(ctx.device, ctx.dtype), ctx.input_shape)
    if 0 < size < len(x):
        rows = torch.randperm(len(x), generator=stream).to(x.device)[:size]
        x = x[rows]
    if transform:
        x = transform_images(x, ctx.generator("public", "transform"))
    return x


def choose_half_of_classes(labels: Tensor) -> Tensor:
    """Rows of the samples whose label, of `labels [P]`, is in the lower half of those that occur ("other-mix").

    The server knows no true label: these labels are its teachers' first consensus.
    """
    classes = labels.unique()
    lower_half = classes[: (len(classes) + 1) // 2]
    return torch.isin(labels, lower_half).nonzero()[:, 0]


def fit_images(images: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Images `[P, C', H', W']` in the `shape` (C, H, W): resized, grey spread over channels or colours averaged."""
    if tuple(images.shape[2:]) != tuple(shape[1:]):
        images = F.interpolate(images, size=shape[1:], mode="bilinear", antialias=True)
    if images.shape[1] != shape[0]:
        images = images.mean(1, keepdim=True).expand(-1, shape[0], -1, -1)
    return images.clamp(0, 1)


def transform_images(
    images: Tensor, stream: torch.Generator, pad: int = 4, jitter: float = 0.4, grey: float = 0.2
) -> Tensor:
    """Images `[P, C, H, W]` in [0, 1], changed once and for all: random crop after padding, mirroring, brightness,
    contrast and saturation each times 1 ± `jitter`, and grey with probability `grey`."""

    def draw(low: float, high: float) -> Tensor:
        u = torch.rand(len(images), 1, 1, 1, generator=stream)
        return (low + (high - low) * u).to(images.device, images.dtype)

    images = crop_randomly(images, stream, padding=pad, flip=True)
    images = images * draw(1 - jitter, 1 + jitter)
    mean = images.mean((1, 2, 3), keepdim=True)
    images = mean + (images - mean) * draw(1 - jitter, 1 + jitter)
    grey_image = images.mean(1, keepdim=True)
    saturation = torch.where(draw(0, 1) < grey, 0.0, draw(1 - jitter, 1 + jitter))
    return (grey_image + (images - grey_image) * saturation).clamp(0, 1)


# -------------------------------------------------------------------------------------------------------------- student
# The server's student: a network of its own that learns from the clients' answers, and never travels.


def make_student_recipe(epochs: int, batch: int, lr: float) -> Recipe:
    """SGD with momentum 0.9, weight decay 1e-4, cosine over the epochs: DENSE's student in Co-Boosting's code."""
    return Recipe(epochs, batch, lr=lr, momentum=0.9, weight_decay=1e-4, schedule="cosine")


def make_student(ctx: Context, method: str, model: str) -> Network:
    """The server's network, `model` (see `ctx.server_architecture`), freshly drawn: not an average, as clients' may
    differ.

    In eval mode, so that images made against it before it has learnt anything leave its batch norm alone.
    """
    return ctx.build(ctx.server_architecture(model), ctx.generator(method, "student")).eval()


def make_snapshot(student: Network, report: Report | None = None) -> NetworkModel:
    """The student as it is now; training goes on with the original."""
    return NetworkModel(copy_model(student), report)
