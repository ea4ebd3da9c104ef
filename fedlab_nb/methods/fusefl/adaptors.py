"""Adaptors: how a client's next block reads the outputs of all M clients' previous blocks (FuseFL, Eqs. 7 and 8).

Two parts, so that what is the same for every client is computed once. `join` makes one tensor of the M outputs: the
mean ("average", Eq. 7) or the concatenation along the channels ("conv", Eq. 8). `adaptor` is client m's own piece in
front of its block: nothing for the mean, a 1x1 convolution (between vectors: a linear layer) with bias for the
concatenation. Nothing normalises or activates what it gives. Without adaptors the next block would have to be M times
as wide.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...errors import UsageError
from ...models.build import initialise

ADAPTORS = {
    "conv": "a 1x1 convolution over the concatenated channels, each client its own",
    "average": "the mean of the clients' features, without parameters",
}


def join(kind: str, outputs: Sequence[Tensor]) -> Tensor:
    """One tensor of M outputs `[N, c_m, ...]`: "conv" gives `[N, sum c_m, ...]`, "average" their mean `[N, c, ...]`."""
    return torch.cat(list(outputs), dim=1) if kind == "conv" else added(outputs) / len(outputs)


def added(outputs: Sequence[Tensor]) -> Tensor:
    """Sum of M tensors of one shape."""
    return sum(outputs[1:], outputs[0])


def joined(kind: str, borders: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Shape of `join`'s answer, without the sample axis, for outputs of the shapes `borders`."""
    return (sum(shape[0] for shape in borders) if kind == "conv" else borders[0][0], *borders[0][1:])


def adaptor(
    kind: str, borders: Sequence[tuple[int, ...]], m: int, generator: torch.Generator, like: Tensor
) -> list[nn.Module]:
    """Client m's adaptor as a list of layers: none, or one that maps all clients' channels to client m's own.

    `borders`: shape of each client's output, (c, h, w) or (d,), without the sample axis. First weights by PyTorch's
    default formula from `generator`, on the device and in the dtype of `like`.
    """
    if kind == "average":
        return []
    inputs, outputs = joined(kind, borders)[0], borders[m][0]
    if len(borders[m]) == 3:
        return [fresh(nn.Conv2d, inputs, outputs, 1, generator=generator, like=like)]
    return [fresh(nn.Linear, inputs, outputs, generator=generator, like=like)]


def fresh(kind: type[nn.Module], *sizes: int, generator: torch.Generator, like: Tensor) -> nn.Module:
    """The layer `kind(*sizes)` with first weights from `generator`, on the device and in the dtype of `like`."""
    layer = nn.utils.skip_init(kind, *sizes, dtype=like.dtype)  # no draw from the global random state
    initialise(layer, generator)
    return layer.to(like.device)


def check_borders(kind: str, borders: Sequence[tuple[int, ...]], block: int) -> None:
    """UsageError unless the M outputs of `block` can be joined: same map size, and for the mean also same channels."""
    if len(set(borders)) == 1:
        return
    if kind == "average" or len({shape[1:] for shape in borders}) > 1:
        shapes = ", ".join("x".join(map(str, shape)) for shape in dict.fromkeys(borders))
        wanted = "one shape" if kind == "average" else "maps of one size"
        raise UsageError(
            f"After block {block} the clients' features are {shapes}, but the {kind} adaptor needs {wanted}; choose "
            "models that agree there, another number of blocks or another adaptor."
        )
