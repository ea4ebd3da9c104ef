"""What a client sends: `m` images of each class that it holds, chosen or made from its own.

`random`: some of its samples. `kmeans`: centres of each class. `kip`: kernel inducing points, which start at random
samples and are moved until kernel regression on them answers as the client's labels say. `crops`: after FedSD2C, see
`crops.py`. Each way is a function of one client's samples.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ...training.optim import Adam
from .kernel import centred, inducing_loss

STARTS, LLOYD = 4, 20  # of k-means: seedings side by side, and steps of each
TARGETS = 1000  # KIP looks at no more of a client's samples than this


def rows_by_class(labels: Tensor, classes: int) -> list[Tensor]:
    """For each class that occurs in `labels [n]`, the places where it does, on the CPU."""
    labels = labels.cpu()
    by_class = [(labels == c).nonzero()[:, 0] for c in range(classes)]
    return [rows for rows in by_class if len(rows)]


def random_rows(groups: Sequence[Tensor], m: int, stream: torch.Generator) -> Tensor:
    """`m` places of each group (all of a smaller one), drawn without replacement and in ascending order."""
    drawn = [rows[torch.randperm(len(rows), generator=stream)[:m].sort().values] for rows in groups]
    return torch.cat(drawn)


def centres(x: Tensor, m: int, stream: torch.Generator) -> Tensor:
    """`m` centres of the samples `x [n, ...]` by k-means, `[m, ...]`; the samples themselves if there are no more.

    The best of STARTS seedings by k-means++ (Arthur and Vassilvitskii, 2007), LLOYD steps each. A centre that nobody
    is nearest to stays where it is.
    """
    if len(x) <= m:
        return x.clone()
    flat = x.flatten(1)
    draws = torch.rand(m, STARTS, 1, generator=stream).to(flat)
    chosen = flat[(draws[0, :, 0] * len(x)).long()][:, None]  # [STARTS, 1, p]
    for draw in draws[1:]:
        far = square_distances(flat, chosen).amin(2).cumsum(1)  # [STARTS, n]
        rows = torch.searchsorted(far, draw * far[:, -1:]).clamp(max=len(x) - 1)
        chosen = torch.cat([chosen, flat[rows]], 1)
    for _ in range(LLOYD):
        nearest = square_distances(flat, chosen).argmin(2)
        members = (nearest[:, :, None] == torch.arange(m, device=x.device)).to(flat)  # [STARTS, n, m]
        counts = members.sum(1)[:, :, None]
        chosen = torch.where(counts > 0, members.mT @ flat / counts.clamp(min=1), chosen)
    spread = square_distances(flat, chosen).amin(2).sum(1)
    best = chosen.index_select(0, spread.argmin(0, keepdim=True))[0]
    return best.unflatten(1, x.shape[1:])


def square_distances(x: Tensor, points: Tensor) -> Tensor:
    """‖x_i - z_j‖² of `x [n, p]` and `points [R, m, p]`: `[R, n, m]`."""
    products = x @ points.mT
    return (x.square().sum(1)[:, None] - 2 * products + points.square().sum(2)[:, None]).clamp(min=0)


def kernel_inducing(
    start: Tensor, start_labels: Tensor, x: Tensor, y: Tensor, *, classes: int, depth: int, ridge: float, steps: int,
    lr: float, clip: bool, stream: torch.Generator,
) -> Iterator[tuple[Tensor, Tensor]]:  # fmt: skip
    """KIP on one client: `start [S, ...]` moved by `steps` steps of Adam towards less `inducing_loss` on `x, y`.

    Yields the images as they are after each step, and the loss before it. Labels stay; `clip`: pixels stay in
    [0, 1]. Of more than TARGETS samples, so many are drawn once.
    """
    seen = torch.randperm(len(x), generator=stream)[:TARGETS].sort().values.to(x.device)
    x, targets, own = x[seen].double(), centred(y[seen], classes), centred(start_labels, classes)
    images = start.double().clone().requires_grad_()
    optimizer = Adam([images], lr)
    for _ in range(steps):
        loss = inducing_loss(images, own, x, targets, depth, ridge)
        optimizer.step(torch.autograd.grad(loss, [images]))
        if clip:
            images.detach().clamp_(0, 1)
        yield images.detach().clone().to(start), loss.detach()
