"""The lab of Gaussian heads: classes as images, what one client sends, and a comparison of all
heads.
"""

from ...panels import LabSpec
from .class_pictures import ClassStatisticsView
from .heads import HeadsView
from .sent_means import SentMeansView

LAB = LabSpec(
    method="gauss",
    name="gauss",
    companions=("fedpft", "ensemble", "fedavg"),
    knobs=("head", "shrinkage", "features", "size"),
    settings={"alpha": 0.1, "seeds": 1},
    views=(ClassStatisticsView, SentMeansView, HeadsView),
    first="pictures",
)
