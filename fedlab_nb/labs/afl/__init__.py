"""The lab of AFL: accuracy against skew, forgetting a client, the image in a sum, noise for
privacy, number of features.
"""

from ...panels import LabSpec
from .budget import Budget
from .forget import Forget
from .image import Image
from .size import Size
from .skew import Skew

LAB = LabSpec(
    method="afl",
    name="afl",
    companions=("fedavg", "ensemble"),
    knobs=("features", "size", "rho", "secure", "epsilon", "delta"),
    settings={"alpha": 0.1, "seeds": 1},
    views=(Skew, Forget, Image, Budget, Size),
    first="skew",
)
