"""The lab of distilled data: what a client sends beside its own images; accuracy and bytes."""

from ...panels import LabSpec
from .budget import Bytes
from .sent_images import SentImages

LAB = LabSpec(
    method="distilled",
    name="distilled",
    companions=("fedavg", "ensemble"),
    knobs=("images", "per_class", "server"),
    settings={"alpha": 0.1, "seeds": 1},
    views=(SentImages, Bytes),
    first="sent",
)
