"""`crops`: what of FedSD2C (Zhang et al., NeurIPS 2024) can be done without its pretrained autoencoder.

1. Of each image, CROPS random crops; the one on which the client's network has the least loss. Of each class, the `m`
   best of these.
2. Their Fourier amplitudes are mixed with those of another image of the client, λ of them; their phases stay. This
   changes how they look.
3. The result is moved until the client's network sees in it what it saw in the crop: the least of
   mean ‖features - features of the crop‖² + 0.01 · cross-entropy.

FedSD2C does step 3 on the latent vectors of SDXL's autoencoder and sends those; here it is done on the pixels, which
are sent. So this is only FedSD2C-like: no pretrained prior keeps the images natural.
"""

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ...models import Network
from ...training import in_chunks
from ...training.optim import Adam

CROPS = 10  # of each image
SMALLEST = 0.7  # a crop's side, as a share of the image's
ENTROPY = 0.01  # weight of the cross-entropy beside the features


@torch.no_grad()
def best_crops(network: Network, x: Tensor, y: Tensor, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """Of each image of `x [n, C, H, W]` the crop with the least loss of `network`, and that loss `[n]`."""
    best, least = x, torch.full((len(x),), torch.inf, device=x.device, dtype=x.dtype)
    for draw in torch.rand(CROPS, 3, len(x), generator=stream).to(x):
        crops = cropped(x, *draw)
        losses = F.cross_entropy(in_chunks(network, crops), y, reduction="none")
        better = losses < least
        best, least = torch.where(better[:, None, None, None], crops, best), torch.where(better, losses, least)
    return best, least


def cropped(x: Tensor, size: Tensor, left: Tensor, top: Tensor) -> Tensor:
    """A square part of each image of `x [n, C, H, W]`, brought back to H x W; the draws `[n]` are uniform in [0, 1]."""
    side = SMALLEST + (1 - SMALLEST) * size
    room = 1 - side
    rows = torch.stack([side, torch.zeros_like(side), room * (2 * left - 1)], 1)
    columns = torch.stack([torch.zeros_like(side), side, room * (2 * top - 1)], 1)
    grid = F.affine_grid(torch.stack([rows, columns], 1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


def least_lossy(groups: Sequence[Tensor], losses: Tensor, m: int) -> Tensor:
    """The places of the `m` least `losses [n]` in each group of places (all of a smaller one), ascending."""
    losses = losses.cpu()
    return torch.cat([rows[losses[rows].argsort(stable=True)[:m]].sort().values for rows in groups])


def amplitude_mix(x: Tensor, others: Tensor, share: float) -> Tensor:
    """Images `x [S, C, H, W]` with `share` of their Fourier amplitudes from `others`, and their own phases."""
    own, other = torch.fft.fft2(x), torch.fft.fft2(others)
    amplitude = (1 - share) * own.abs() + share * other.abs()
    return torch.fft.ifft2(torch.polar(amplitude, own.angle())).real.clamp(0, 1)


def feature_matched(
    network: Network, start: Tensor, crops: Tensor, labels: Tensor, *, steps: int, lr: float
) -> Iterator[tuple[Tensor, Tensor]]:
    """`start [S, C, H, W]` moved by `steps` steps of Adam until `network` sees in it the features of `crops`.

    Yields the images as they are after each step, and the loss before it. Pixels stay in [0, 1].
    """
    with torch.no_grad():
        wanted = network.features(crops)
    images = start.clone().requires_grad_()
    optimizer = Adam([images], lr)
    for _ in range(steps):
        features = network.features(images)
        loss = (features - wanted).square().sum(1).mean()
        loss = loss + ENTROPY * F.cross_entropy(network.classifier(features), labels)
        optimizer.step(torch.autograd.grad(loss, [images]))
        images.detach().clamp_(0, 1)
        yield images.detach().clone(), loss.detach()
