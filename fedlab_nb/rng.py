"""Named, independent random streams from one integer seed.

`make_torch_generator(seed, "batches", k)` is the stream of client k's batches, whatever was drawn before from other
streams. Nothing in the package seeds torch's or numpy's global generators or draws from them. Seed and names are hashed
(SHA-256), so the streams of neighbouring seeds or clients are unrelated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_stream_seed(seed: int, *stream_names: object) -> int:
    """Derive a 63-bit seed from `seed` and all names, in their order."""
    text = "/".join([str(int(seed)), *map(str, stream_names)])
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def make_torch_generator(seed: int, *stream_names: object) -> torch.Generator:
    """Make a torch.Generator on the CPU for the stream `stream_names`.

    Draw on the CPU and then move the result to a device: so it is the same for all devices.
    """
    import torch

    return torch.Generator().manual_seed(derive_stream_seed(seed, *stream_names))


def draw_laplace_noise_of_scale_1(shape: Sequence[int], stream: torch.Generator) -> torch.Tensor:
    """Draw Laplace noise of scale 1, float64 on the CPU, as the difference of two exponential draws."""
    import torch

    draws = torch.empty(2, *shape, dtype=torch.float64).exponential_(generator=stream)
    return draws[0] - draws[1]


def make_numpy_generator(seed: int, *stream_names: object) -> np.random.Generator:
    """Make a numpy generator for the stream `stream_names`.

    It is a PCG64, named here because `default_rng` may use another one in a later version of numpy.
    """
    return np.random.Generator(np.random.PCG64(derive_stream_seed(seed, *stream_names)))
