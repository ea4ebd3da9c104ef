"""Synthetic images: how they are searched for, and the pool that they are kept in.

- `x = yield from search(make, parameters, loss, ...)`: Adam on whatever makes the images (a generator and its z, or
  the pixels); yields Progress after each step and *returns* the batch of the lowest loss, cloned.
- `Pool(capacity)`: images, their labels and the clients' logits on them, so that a fixed teacher is never asked
  twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import torch
from torch import Tensor, nn

from ...training.optim import Adam
from ...training.optim import clip as clip_gradients
from ..base import Progress

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
    after: Callable[[], None] = lambda: None,
) -> Generator[Progress, None, Tensor]:
    """Adam on `parameters` so that the images `make()` have a low `loss`; returns the batch with the lowest one,
    cloned.

    Yields `progress` after every step. Gradients go to `parameters` only, never to a network inside `loss`. `clip`:
    largest norm of their gradient. `after` runs after each step (a projection). Kept by value: kept by reference, as
    in two released codes, the "best" pixels would be the last ones, since the optimizer changes them in place.
    """
    parameters = list(parameters)
    optimizer = Adam(parameters, lr, betas=betas)
    best, lowest = None, None
    for _ in range(steps):
        x = make()
        value = loss(x)
        now = float(value.detach())
        if lowest is None or now < lowest:
            best, lowest = x.detach().clone(), now
        gradients = torch.autograd.grad(value, parameters)
        if clip is not None:
            clip_gradients(gradients, clip)
        optimizer.step(gradients)
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
