"""Validation images: what no client trained on and no test uses. Choices are made on them, never on test images."""

import torch
from torch import Tensor

from ..data import Federation
from ..methods.context import Context

WORDS = {
    "held-out": "the clients' held-out samples",
    "public": "the public images, with their labels",
    "": "no validation images",
}


def validation_samples(ctx: Context, federation: Federation, holds_out: bool) -> tuple[Tensor, Tensor, str] | None:
    """`(x, y, which)`: the clients' held-out parts ("held-out"), or the public share with its labels ("public").

    `holds_out`: whether the method may learn from held-out samples. All its variants are then judged on public images,
    those too that have not used the held-out ones, if labels are known. None without samples of either kind.
    """
    labels = federation.dataset.y_public
    public = labels is not None and len(ctx.public) > 0
    unused = not ctx.private.held_out_used and any(ctx.private.sizes("held_out"))
    if unused and not (holds_out and public):
        parts = [ctx.private.held_out(k) for k in range(ctx.clients_count)]
        x, y = (torch.cat(part) for part in zip(*parts, strict=True))
        return x, y, "held-out"
    return (ctx.public, labels.to(ctx.device), "public") if labels is not None and public else None
