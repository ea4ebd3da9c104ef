"""Samples that a client should not recognise, made by destroying its own: FedOV's "unknown" class.

Each destroyed image is like its original in colours and strokes and unlike it as a whole. Rows of features are
destroyed by taking each number from some sample of the client, whichever. `harder` moves outliers towards what the
client's model takes for known.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LARGEST, SMALLEST = 0.6, 0.25  # sides of a patch, as shares of the image's
STEP = 0.002  # of `harder`, in the samples' own units (FedOV's code)


def destroyed(x: Tensor, stream: torch.Generator) -> Tensor:
    """One outlier for each of `x [n, ...]`: for images one of `WAYS`, drawn by `stream` (a CPU generator)."""
    if x.dim() == 2:
        return _mixed_columns(x, stream)
    way = torch.randint(len(WAYS), (len(x),), generator=stream).tolist()
    return torch.stack([WAYS[way[i]](x, i, stream) for i in range(len(x))]) if len(x) else x


def harder(model: nn.Module, x: Tensor, unknown: int, steps: int, step: float = STEP, chunk: int = 1024) -> Tensor:
    """Outliers `x [n, ...]` moved `steps` times by `step` along the sign of the gradient of the cross-entropy to class
    `unknown`: each number by steps * step at most. The model runs in eval mode and is left as it was."""
    was = model.training
    model.eval()
    moved = []
    for part in x.split(chunk):
        now, label = part.clone(), torch.full((len(part),), unknown, device=x.device)
        for _ in range(steps):
            now.requires_grad_()
            with torch.enable_grad():
                loss = F.cross_entropy(model(now), label, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, now)
            now = now.detach() + step * gradient.sign()
        moved.append(now)
    model.train(was)
    return torch.cat(moved) if moved else x


def cut_paste(x: Tensor, i: int, stream: torch.Generator) -> Tensor:
    """A patch of the image moved to another place of it."""
    out, (top, left, height, width) = x[i].clone(), _patch(x, stream)
    to_top, to_left = _place(x, height, width, stream)
    out[:, to_top : to_top + height, to_left : to_left + width] = x[i, :, top : top + height, left : left + width]
    return out


def erase(x: Tensor, i: int, stream: torch.Generator) -> Tensor:
    """A patch replaced by noise, uniform over the image's own range."""
    out, (top, left, height, width) = x[i].clone(), _patch(x, stream)
    noise = torch.rand(len(out), height, width, generator=stream).to(out)
    out[:, top : top + height, left : left + width] = x[i].min() + noise * (x[i].max() - x[i].min())
    return out


def shuffle_quarters(x: Tensor, i: int, stream: torch.Generator) -> Tensor:
    """The four quarters in another order; an odd last row or column stays."""
    height, width = (side // 2 for side in x.shape[2:])
    corners = [(0, 0), (0, width), (height, 0), (height, width)]
    shift = int(torch.randint(1, 4, (), generator=stream))
    out = x[i].clone()
    for at, (top, left) in enumerate(corners):
        y0, x0 = corners[(at + shift) % 4]
        out[:, top : top + height, left : left + width] = x[i, :, y0 : y0 + height, x0 : x0 + width]
    return out


def join_halves(x: Tensor, i: int, stream: torch.Generator) -> Tensor:
    """The upper (or left) half of the image, and the other half of another of the client's images, upside down."""
    other = x[int(torch.randint(len(x), (), generator=stream))].flip(1, 2)
    out, upper = x[i].clone(), bool(torch.randint(2, (), generator=stream))
    if upper:
        out[:, x.shape[2] // 2 :] = other[:, x.shape[2] // 2 :]
    else:
        out[:, :, x.shape[3] // 2 :] = other[:, :, x.shape[3] // 2 :]
    return out


WAYS = (cut_paste, erase, shuffle_quarters, join_halves)


def _patch(x: Tensor, stream: torch.Generator) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random patch."""
    shares = SMALLEST + (LARGEST - SMALLEST) * torch.rand(2, generator=stream)
    height, width = (max(1, round(float(s) * side)) for s, side in zip(shares, x.shape[2:], strict=True))
    return *_place(x, height, width, stream), height, width


def _place(x: Tensor, height: int, width: int, stream: torch.Generator) -> tuple[int, int]:
    top = int(torch.randint(x.shape[2] - height + 1, (), generator=stream))
    return top, int(torch.randint(x.shape[3] - width + 1, (), generator=stream))


def _mixed_columns(x: Tensor, stream: torch.Generator) -> Tensor:
    n, d = x.shape
    rows = torch.randint(max(n, 1), (n, d), generator=stream).to(x.device)
    return x.gather(0, rows) if n else x
