"""Distilled data in the classroom: what a client sends beside its own images, accuracy and bytes. Each view is a file
here."""

from ...panels import LabSpec
from .budget import Bytes
from .sent import Sent

LAB = LabSpec(
    method="distilled", name="distilled", companions=("fedavg", "ensemble"), settings={"alpha": 0.1, "seeds": 1},
    knobs=("images", "per_class", "server"), first="sent", views=(Sent, Bytes),
)  # fmt: skip
