"""The lab of distilled data: the images that a client sends beside its own; accuracy and bytes."""

from ...panels import LabSpec
from .budget import ImagesPerClassView
from .sent_images import SentImagesView

LAB = LabSpec(
    method="distilled",
    name="distilled",
    companions=("fedavg", "ensemble"),
    knobs=("images", "per_class", "server"),
    settings={"alpha": 0.1, "seeds": 1},
    views=(SentImagesView, ImagesPerClassView),
    first="sent",
)
