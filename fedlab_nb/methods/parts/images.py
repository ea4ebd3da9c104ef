"""Synthetic images: how they are searched for, and the pool that they are kept in.

- `x = yield from search(make, parameters, loss, ...)`: Adam on whatever makes the images (a generator and its z, or
  the pixels); yields Progress after each step and *returns* the batch of the lowest loss, cloned.
- `Pool()`: images, their labels and the clients' logits on them, so that a fixed teacher is never asked
  twice.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ...training.optim import Adam
from ...training.optim import clip as clip_gradients
from ..base import Progress, Steps

CLIP = 10.0  # largest norm of a gradient, of generator and student (Co-Boosting's code)
BETAS = (0.5, 0.999)  # Adam's, for the generator


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
    clipped: int | None = None,
    after: Callable[[], object] = lambda: None,
) -> Steps[Tensor]:
    """Adam on `parameters` so that the images `make()` have a low `loss`; returns the batch with the lowest one,
    cloned.

    Yields `progress` after every step. Gradients go to `parameters` only, never to a network inside `loss`. `clip`:
    largest norm of their gradient, jointly of all or of `parameters[:clipped]`, while the others' are left alone.
    `after` runs after each step (a projection). Kept by value: kept by reference, as in two released codes, the "best"
    pixels would be the last ones, since the optimizer changes them in place.
    """
    parameters = list(parameters)
    optimizer = Adam(parameters, lr, betas=betas, fused=True)
    best = lowest = torch.empty(0)
    for _ in range(steps):
        x = make()
        value = loss(x)
        best, lowest = _lower(best, lowest, x.detach(), value.detach())
        gradients = torch.autograd.grad(value, parameters)
        if clip is not None:
            clip_gradients(gradients[:clipped], clip)
        optimizer.step(gradients)
        with torch.no_grad():
            after()
        yield progress
    return best


def _lower(best: Tensor, lowest: Tensor, x: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The better of two batches (`best` may have none yet) and its loss, without asking the host which it is."""
    if not len(best):
        return x.clone(), value
    better = value < lowest
    return torch.where(better, x, best), torch.where(better, value, lowest)


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
    """Synthetic samples: `x [n, ...]`, `labels [n]`, clients' `logits [M, n, C]`; n = len(pool)."""

    def __init__(self) -> None:
        self.x, self.labels, self.logits = torch.empty(0), torch.empty(0), torch.empty(0)

    def add(self, x: Tensor, labels: Tensor, logits: Tensor) -> None:
        """Append a batch."""
        if len(self):
            x, labels, logits = (
                torch.cat([self.x, x]), torch.cat([self.labels, labels]), torch.cat([self.logits, logits], 1)
            )  # fmt: skip
        self.x, self.labels, self.logits = x, labels, logits

    def __len__(self) -> int:
        return len(self.x)
