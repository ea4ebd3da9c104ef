"""Named, independent random streams from one integer seed.

`generator(seed, "batches", k)` gives client k's batch stream whatever ran before it and whatever runs beside it;
nothing in the package seeds or draws from torch's or numpy's global state. The names are hashed (SHA-256), so streams
of neighbouring seeds or clients share nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_stream_seed(seed: int, *names: object) -> int:
    """A 63-bit seed that depends on `seed` and on every name, in order."""
    text = "/".join([str(int(seed)), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: object) -> torch.Generator:
    """A CPU torch.Generator for the stream `names`; draw on the CPU, then move, so that a device changes nothing."""
    import torch

    return torch.Generator().manual_seed(derive_stream_seed(seed, *names))


def draw_laplace_noise(shape: Sequence[int], stream: torch.Generator) -> torch.Tensor:
    """Laplace noise of scale 1, float64 on the CPU: the difference of two exponential draws."""
    import torch

    draws = torch.empty(2, *shape, dtype=torch.float64).exponential_(generator=stream)
    return draws[0] - draws[1]


def make_numpy_generator(seed: int, *names: object) -> np.random.Generator:
    """The same for numpy. PCG64 by name: what `default_rng` takes may be another one some day."""
    return np.random.Generator(np.random.PCG64(derive_stream_seed(seed, *names)))
