"""AFL in the classroom: accuracy against skew, forgetting a client, the image in a sum, noise for privacy, number of
features. Each view is a file here."""

from ...panels import LabSpec
from .budget import Budget
from .forget import Forget
from .image import Image
from .size import Size
from .skew import Skew

LAB = LabSpec(
    method="afl", name="afl", companions=("fedavg", "ensemble"), settings={"alpha": 0.1, "seeds": 1}, first="skew",
    knobs=("features", "size", "rho", "secure", "epsilon", "delta"), views=(Skew, Forget, Image, Budget, Size),
)  # fmt: skip
