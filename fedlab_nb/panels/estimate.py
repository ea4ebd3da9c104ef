"""What one model costs to send, before anything is trained."""

from __future__ import annotations

import functools

from ..formulas import state_bytes
from ..models import build, default_model, model_state


@functools.lru_cache(maxsize=64)
def model_bytes(model: str, input_shape: tuple[int, ...], classes: int) -> int:
    """Bytes of one model's state in float32; of several architectures (`"mlp,cnn"`) the first one's."""
    name, _, width = str(model).split(",")[0].strip().partition(":")
    if name == "auto":
        name = default_model(input_shape)
    network = build(name, input_shape, classes, width=int(width) if width else None)
    return state_bytes(sum(t.numel() for t in model_state(network).values()))
