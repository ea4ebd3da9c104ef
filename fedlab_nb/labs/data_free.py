"""The lab of the data-free distillation methods (DENSE, F-DAFL, F-ADI): the images that they make, epoch by epoch."""

from ..panels.lab_view import LabSpec
from .coboosting.lab import Images

KNOBS = {
    "dense": ("epochs", "images", "generator_steps", "bn_weight", "div_weight", "temperature"),
    "fdafl": ("epochs", "images", "generator_steps", "temperature"),
    "fadi": ("epochs", "images", "temperature"),
}


def spec_of(method: str) -> LabSpec:
    """What the lab of `method` (a key of KNOBS) consists of."""
    return LabSpec(
        method=method, companions=("ensemble", "feddf"), knobs=KNOBS[method], views=(Images,), name="lab",
        settings={"seeds": 1, "ensemble.rule": "logits"},  # the teacher
    )  # fmt: skip
