"""Random crop and mirroring of training images, drawn anew in every epoch, the same in both backends.

Crop: an image is moved by up to an eighth of its side (1 pixel of 8, 4 of 32) in each direction, and black comes in.
Flip: half of the images are mirrored. Each client draws for its own samples from its own stream, so that neither the
backend nor the company changes what an image becomes.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import demand


class Augmentation:
    """What becomes of the images `[sum of sizes, C, H, W]` of some clients; `kind`: of `AUGMENTATIONS`.

    `renew()` draws the next epoch, `apply(x [n, C, H, W], rows [n])` gives the images of these rows as it wants them.
    """

    def __init__(self, kind: str, like: Tensor, sizes: Sequence[int], streams: Sequence[torch.Generator]) -> None:
        demand(
            like.dim() == 4,
            f"{kind} needs images [N, C, H, W], but the samples have shape {tuple(like.shape[1:])}; set "
            "transform=none.",
        )
        self.crop, self.flip = "crop" in kind, "flip" in kind
        self.pads = [max(1, side // 8) if self.crop else 0 for side in like.shape[2:]]
        self.sizes, self.streams, self.device = sizes, streams, like.device
        self.moves = torch.empty(0)

    def renew(self) -> None:
        """Top, left and whether mirrored, `[N, 3]`."""
        drawn = []
        for n, stream in zip(self.sizes, self.streams, strict=True):
            columns = [torch.randint(2 * pad + 1, (n,), generator=stream) for pad in self.pads]
            drawn.append(torch.stack([*columns, torch.randint(1 + self.flip, (n,), generator=stream)], 1))
        self.moves = torch.cat(drawn).to(self.device)

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        return moved(x, self.moves.index_select(0, rows), self.pads)


def moved(x: Tensor, moves: Tensor, pads: Sequence[int]) -> Tensor:
    """Images `x [n, C, H, W]`, padded by `pads` (rows, columns), cut out at `moves [n, 3]` (top, left, mirrored)."""
    n, _, height, width = x.shape
    top, left, mirrored = moves.unbind(1)
    padded = F.pad(x, (pads[1], pads[1], pads[0], pads[0]))
    columns = torch.arange(width, device=x.device).expand(n, -1)
    columns = torch.where(mirrored.bool().unsqueeze(1), width - 1 - columns, columns) + left.unsqueeze(1)
    rows = top.unsqueeze(1) + torch.arange(height, device=x.device)
    image = torch.arange(n, device=x.device)[:, None, None]
    cut = padded.movedim(1, -1)[image, rows[:, :, None], columns[:, None, :]]
    return cut.movedim(-1, 1).contiguous()
