"""The stacked backend: all clients of one architecture take their steps together, as one model.

Clients are sorted by their number of batches, so the ones still at work in an epoch are always the first `a`: the set
shrinks instead of being padded. Within a batch a shorter one is padded with rows of weight zero. Updates are those of
torch's SGD and Adam, written for a leading client axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .loop import Adjust, Loss, Shard
from .recipe import Recipe
from .stack import Stack


class _Sgd:
    """SGD with momentum and coupled weight decay on stacked parameters `[M, ...]` (torch.optim.SGD, row by row)."""

    def __init__(self, stack: Stack, recipe: Recipe) -> None:
        self.recipe = recipe
        self.velocity = {name: torch.zeros_like(t) for name, t in stack.parameters.items()}
        self._prefix: dict[int, list[Tensor]] = {}

    def step(self, leaves: dict[str, Tensor], grads: Sequence[Tensor], active: int, lr: float, steps: Tensor) -> None:
        parameters, grads = list(leaves.values()), list(grads)
        if self.recipe.weight_decay:
            torch._foreach_add_(grads, parameters, alpha=self.recipe.weight_decay)
        if self.recipe.momentum:
            if active not in self._prefix:
                self._prefix[active] = [v[:active] for v in self.velocity.values()]
            velocity = self._prefix[active]
            torch._foreach_mul_(velocity, self.recipe.momentum)
            torch._foreach_add_(velocity, grads)
            grads = velocity
        torch._foreach_add_(parameters, grads, alpha=-lr)


class _Adam:
    """Adam with bias correction on stacked parameters; `steps [a]` counts each client's own steps."""

    beta1, beta2, eps = 0.9, 0.999, 1e-8

    def __init__(self, stack: Stack, recipe: Recipe) -> None:
        self.recipe = recipe
        self.first = {name: torch.zeros_like(t) for name, t in stack.parameters.items()}
        self.second = {name: torch.zeros_like(t) for name, t in stack.parameters.items()}

    def step(self, leaves: dict[str, Tensor], grads: Sequence[Tensor], active: int, lr: float, steps: Tensor) -> None:
        for (name, parameter), grad in zip(leaves.items(), grads, strict=True):
            if self.recipe.weight_decay:
                grad = grad.add(parameter, alpha=self.recipe.weight_decay)
            m, v = self.first[name][:active], self.second[name][:active]
            m.lerp_(grad, 1 - self.beta1)
            v.mul_(self.beta2).addcmul_(grad, grad, value=1 - self.beta2)
            t = steps.view(-1, *[1] * (grad.dim() - 1)).to(grad.dtype)
            root = v.sqrt() / (1 - self.beta2**t).sqrt() + self.eps
            parameter.sub_(lr * m / (1 - self.beta1**t) / root)


def _shuffles(sizes: Sequence[int], offsets: Sequence[int], streams, width: int, device) -> Tensor:
    """One epoch's order of every client, `[M, width]`, as rows of the pooled data; tails repeat a client's first."""
    table = torch.empty(len(sizes), width, dtype=torch.long)
    for k, (n, offset, stream) in enumerate(zip(sizes, offsets, streams, strict=True)):
        table[k, :n] = torch.randperm(n, generator=stream) + offset
        table[k, n:] = offset
    return table.to(device)


def train_stacked(
    models: Sequence[nn.Module],
    shards: Sequence[Shard],
    recipe: Recipe,
    streams: Sequence[torch.Generator],
    snapshots: Sequence[int] = (),
    *,
    places: Sequence[int] | None = None,
    loss: Loss | None = None,
    adjust: Adjust | None = None,
) -> Iterator[int]:
    """Train `models` (one architecture) in place, as `train_loop` does; yield the number of finished epochs a step.

    The plain models are up to date when an epoch in `snapshots` has just been finished, and at the end. `loss`,
    `adjust` and `places` are those of `train_loop`.
    """
    places = range(len(models)) if places is None else places
    order = sorted(range(len(models)), key=lambda k: -(-len(shards[k][0]) // recipe.batch_size), reverse=True)
    models, shards, streams, places = ([values[k] for k in order] for values in (models, shards, streams, places))
    stack = Stack(models)
    stack.net.train()
    size = recipe.batch_size
    sizes = [len(x) for x, *_ in shards]
    batches = [-(-n // size) for n in sizes]
    x, *columns = (torch.cat(parts) for parts in zip(*shards, strict=True))
    offsets = [0, *torch.tensor(sizes).cumsum(0).tolist()[:-1]]
    device = x.device

    # What never changes between epochs: who is at work at step j, how many rows each has, and the weight of each row.
    plan = []
    for j in range(max(batches)):
        active = sum(b > j for b in batches)
        rows = torch.tensor([min(size, n - j * size) for n in sizes[:active]])
        width = int(rows.max())
        weight = (torch.arange(width) < rows[:, None]).double() / rows[:, None]
        ragged = bool((rows != width).any())
        plan.append((active, width, weight.to(x.dtype).to(device).flatten(), rows.to(device) if ragged else None))
    counts = torch.tensor(batches, device=device)
    optimizer = (_Adam if recipe.optimizer == "adam" else _Sgd)(stack, recipe)

    at_work = None
    for epoch in range(recipe.epochs):
        lr = recipe.lr_at(epoch)
        table = _shuffles(sizes, offsets, streams, max(batches) * size, device)
        for j, (active, width, weight, rows) in enumerate(plan):
            if active != at_work:
                leaves = stack.use(active)
                clients = tuple(places[:active])
                at_work = active
            stack.set_rows(rows)
            index = table[:active, j * size : j * size + width].reshape(-1)
            images = x[index].unflatten(0, (active, width))
            if loss is None:
                losses = F.cross_entropy(stack.forward(images).flatten(0, 1), columns[0][index], reduction="none")
            else:
                features = stack.net.features(images)
                logits = stack.net.classifier(features).flatten(0, 1)
                losses = loss(features.flatten(0, 1), logits, *(part[index] for part in columns))
            grads = list(torch.autograd.grad(losses @ weight, list(leaves.values())))
            with torch.no_grad():
                if adjust is not None:
                    adjust(clients, leaves, grads)
                optimizer.step(leaves, grads, active, lr, counts[:active] * epoch + j + 1)
            if j + 1 < len(plan):
                yield epoch
        if epoch + 1 in snapshots:
            stack.write_back()
        yield epoch + 1
    stack.write_back()
    for model in models:
        model.eval()
