"""The lab of AFL: accuracy against skew, forgetting a client, the image that a class sum gives away,
noise for privacy, and the number of features.
"""

from ...panels import LabSpec
from .budget import PrivacyBudgetView
from .forget import ForgetClientView
from .image import RecoveredImagesView
from .size import FeatureCountView
from .skew import SkewView

LAB = LabSpec(
    method="afl",
    name="afl",
    companions=("fedavg", "ensemble"),
    knobs=("features", "size", "rho", "secure", "epsilon", "delta"),
    settings={"alpha": 0.1, "seeds": 1},
    views=(SkewView, ForgetClientView, RecoveredImagesView, PrivacyBudgetView, FeatureCountView),
    first="skew",
)
