"""Synthetic images: how they are searched for, and the pool that they are kept in.

- `x = yield from optimise_images(make, parameters, loss, ...)`: Adam on whatever makes the images (a generator
  and its z, or the pixels); yields Progress after each step and *returns* a copy of the batch of the lowest loss.
- `SyntheticPool()`: images, their labels and the clients' logits on them, so that a fixed teacher reads each image
  once.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data import DATASETS, load
from ...errors import UsageError
from ...models import Network
from ...models.state import copy_model
from ...tensor_types import ClientLogits, Images, Labels, SampleIndices, Samples, ScalarLoss
from ...training import Recipe, optim
from ...training.recipe import crop_and_flip
from ...value_types import SampleShape
from ..base import Context, NetworkModel, Progress, Report, Steps

ImagesOfLowestLoss = Tensor  # [N, ...]
CLIP = 10.0  # largest norm of a gradient, of generator and student (Co-Boosting's code)
BETAS = (0.5, 0.999)  # Adam's, for the generator


def optimise_images(
    make_images: Callable[[], Images],
    parameters: Sequence[Tensor],
    compute_loss: Callable[[Images], ScalarLoss],
    *,
    steps: int,
    lr: float,
    progress_of_each_step: Progress,
    adam_betas: tuple[float, float] = BETAS,
    maximum_gradient_norm: float | None = CLIP,
    clipped_parameter_count: int | None = None,
    project_parameters: Callable[[], object] = lambda: None,
) -> Steps[ImagesOfLowestLoss]:
    """Adam on `parameters`, in place, so that the images `make_images()` have a low `compute_loss`.

    Returns a copy of the batch with the lowest loss of all steps. Yields `progress_of_each_step` after every step.
    Gradients go to `parameters` only, never to a network inside `compute_loss`.

    maximum_gradient_norm: largest joint norm of the gradients that are clipped; None: none are
    clipped_parameter_count: only the gradients of the first so many are clipped (-1: of all but the last); None: all
    project_parameters: runs after each step

    The batch is kept by value: kept by reference, as in two released codes, the "best" pixels
    would be the last ones, since the optimizer changes them in place.
    """
    parameters = list(parameters)
    clipped_count = len(parameters[:clipped_parameter_count])
    optimizer = optim.Adam(parameters, lr, betas=adam_betas)
    best = lowest = torch.empty(0)
    for _ in range(steps):
        x = make_images()
        value = compute_loss(x)
        best, lowest = _select_images_of_lower_loss(best, lowest, x.detach(), value.detach())
        gradients = torch.autograd.grad(value, parameters)
        if maximum_gradient_norm is not None:
            clipped_gradients = optim.clip_gradients_to_norm(
                gradients[:clipped_count], maximum_gradient_norm
            )
            gradients = (*clipped_gradients, *gradients[clipped_count:])
        optimizer.step(gradients)
        with torch.no_grad():
            project_parameters()
        yield progress_of_each_step
    return best


class ImagesAndLowestLoss(NamedTuple):
    """The batch of images with the lowest loss so far, and that loss."""

    images: Tensor
    loss: Tensor


def _select_images_of_lower_loss(
    best_images: Images, lowest_loss: ScalarLoss, images: Images, loss: ScalarLoss
) -> ImagesAndLowestLoss:
    """The batch with the lower loss (`best_images` may be empty) and its loss, without a wait for the device."""
    if not len(best_images):
        return ImagesAndLowestLoss(images.clone(), loss)
    better = loss < lowest_loss
    return ImagesAndLowestLoss(
        torch.where(better, images, best_images), torch.where(better, loss, lowest_loss)
    )


def shift_and_mirror_randomly(
    images: Images,
    stream: torch.Generator,
    *,
    maximum_shift_pixels: int,
    should_mirror_half: bool = False,
) -> Images:
    """`images [N, C, H, W]`, each moved at random in both directions (zeros come in); some mirrored.

    should_mirror_half: whether each is mirrored with probability 1/2

    Differentiable with respect to `images`.
    """
    top, left = torch.randint(2 * maximum_shift_pixels + 1, (2, len(images)), generator=stream)
    if should_mirror_half:
        is_mirrored = (torch.rand(len(images), generator=stream) < 0.5).long()
    else:
        is_mirrored = torch.zeros_like(top)
    offsets = torch.stack([top, left, is_mirrored], 1)
    return crop_and_flip(
        images, offsets.to(images.device), (maximum_shift_pixels, maximum_shift_pixels)
    )


class SyntheticPool:
    """Synthetic samples: `x [n, ...]`, `labels [n]`, clients' `logits [M, n, C]`; n = len(pool)."""

    def __init__(self) -> None:
        self.x = torch.empty(0)
        self.labels = torch.empty(0)
        self.logits = torch.empty(0)

    def add_batch(self, images: Images, labels: Labels, logits: ClientLogits) -> None:
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

# Of the federation's own data set. "other-mix": half the classes, which the caller selects
# (`find_sample_indices_of_lower_half_of_classes`).
OWN_SOURCES = ("held-out", "other-mix")
# One size of each data set: images are resized.
IMAGE_SETS = [name for name, info in DATASETS.items() if info.images and ":" not in name]
SOURCES = (*OWN_SOURCES, "noise", *IMAGE_SETS)
ImageSource = str  # one of SOURCES
NOISE = 1000  # samples of noise where no number is given


def check_image_source(
    ctx: Context, source: ImageSource, should_augment: bool, method_title: str
) -> None:
    """UsageError, in one sentence, if `source` is not available for this run's inputs."""
    has_images = ctx.has("images")
    if source in OWN_SOURCES and not ctx.has("public"):
        others = "glyphs or noise" if has_images else "noise"
        raise UsageError(
            f"{method_title} needs unlabelled public samples; set public=0.1, or fedet.public={others}."
        )
    if has_images:
        return
    if source in DATASETS or should_augment:
        unusable = "images of another data set" if source in DATASETS else "transformed images"
        raise UsageError(
            f"{method_title} cannot use {unusable} with {ctx.kind};"
            " set fedet.public=held-out, transform=false."
        )


def choose_public_samples(
    ctx: Context,
    source: ImageSource,
    maximum_samples_or_0_for_all: int = 0,
    should_augment: bool = False,
) -> Samples:
    """Public samples `[P, *input_shape]` on the run's device.

    maximum_samples_or_0_for_all: so many are drawn without replacement, if there are more; 0: all"""
    stream = ctx.generator("public", source)
    if source == "noise":
        # In the range of images, or on the scale of standardised rows.
        draw = torch.rand if ctx.has("images") else torch.randn
        x = draw(maximum_samples_or_0_for_all or NOISE, *ctx.input_shape, generator=stream).to(
            ctx.device, ctx.dtype
        )
    elif source in OWN_SOURCES:
        x = ctx.public
    else:
        foreign = load(source).x_public
        assert foreign is not None  # all of SOURCES have some
        x = resize_images_to_shape(foreign.to(ctx.device, ctx.dtype), ctx.input_shape)
    if 0 < maximum_samples_or_0_for_all < len(x):
        rows = torch.randperm(len(x), generator=stream).to(x.device)[:maximum_samples_or_0_for_all]
        x = x[rows]
    if should_augment:
        x = augment_images_randomly(x, ctx.generator("public", "transform"))
    return x


def find_sample_indices_of_lower_half_of_classes(consensus_labels: Labels) -> SampleIndices:
    """Rows of the samples whose label, of `consensus_labels [P]`, is in the lower half of those
    that occur ("other-mix").

    The server knows no true label: these labels are its teachers' first consensus.
    """
    classes = consensus_labels.unique()
    lower_half = classes[: (len(classes) + 1) // 2]
    return torch.isin(consensus_labels, lower_half).nonzero()[:, 0]


def resize_images_to_shape(images: Images, shape: SampleShape) -> Images:
    """Images `[P, C', H', W']` in the `shape` (C, H, W): resized, grey spread over channels or colours averaged."""
    if tuple(images.shape[2:]) != tuple(shape[1:]):
        images = F.interpolate(images, size=shape[1:], mode="bilinear", antialias=True)
    if images.shape[1] != shape[0]:
        images = images.mean(1, keepdim=True).expand(-1, shape[0], -1, -1)
    return images.clamp(0, 1)


def augment_images_randomly(
    images: Images,
    stream: torch.Generator,
    padding_in_pixels: int = 4,
    jitter_share: float = 0.4,
    grey_probability: float = 0.2,
) -> Images:
    """Images `[P, C, H, W]` in [0, 1], changed once and for all: random crop after padding, mirroring, brightness,
    contrast and saturation each times 1 ± `jitter_share`, and some grey."""

    def draw(low: float, high: float) -> Tensor:
        u = torch.rand(len(images), 1, 1, 1, generator=stream)
        return (low + (high - low) * u).to(images.device, images.dtype)

    images = shift_and_mirror_randomly(
        images, stream, maximum_shift_pixels=padding_in_pixels, should_mirror_half=True
    )
    images = images * draw(1 - jitter_share, 1 + jitter_share)
    mean = images.mean((1, 2, 3), keepdim=True)
    images = mean + (images - mean) * draw(1 - jitter_share, 1 + jitter_share)
    grey_image = images.mean(1, keepdim=True)
    saturation = torch.where(
        draw(0, 1) < grey_probability, 0.0, draw(1 - jitter_share, 1 + jitter_share)
    )
    return (grey_image + (images - grey_image) * saturation).clamp(0, 1)


# -------------------------------------------------------------------------------------------------------------- student
# The server's student: a network of its own that learns from the clients' answers, and never travels.


def make_student_recipe(epochs: int, batch_size: int, lr: float) -> Recipe:
    """SGD with momentum 0.9, weight decay 1e-4, cosine over the epochs: DENSE's student in Co-Boosting's code."""
    return Recipe(epochs, batch_size, lr=lr, momentum=0.9, weight_decay=1e-4, schedule="cosine")


def make_student_network(ctx: Context, stream_name: str, model_text: str) -> Network:
    """The server's network, freshly drawn: not an average, as the clients' may differ.

    model_text: see `ctx.server_architecture`

    In eval mode, so that images made against it before it has learnt anything leave its batch norm alone.
    """
    return ctx.build(
        ctx.server_architecture(model_text), ctx.generator(stream_name, "student")
    ).eval()


def copy_student_as_model(student: Network, report: Report | None = None) -> NetworkModel:
    """A copy of the student as it is now, as a model that predicts; the original learns on."""
    return NetworkModel(copy_model(student), report)
