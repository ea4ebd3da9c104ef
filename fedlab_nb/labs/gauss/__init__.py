"""The Gaussian heads in the classroom: classes as images, what one client sends, and all heads side by side. Each view
is a file here."""

from ...panels import LabSpec
from .heads import Heads
from .pictures import Pictures
from .sent import Sent

LAB = LabSpec(
    method="gauss", name="gauss", companions=("fedpft", "ensemble", "fedavg"), settings={"alpha": 0.1, "seeds": 1},
    knobs=("head", "shrinkage", "features", "size"), first="pictures", views=(Pictures, Sent, Heads),
)  # fmt: skip
