"""A toy in two dimensions, for lessons 01 to 03: points in the plane, three clients, and where each predictor draws its
borders.

    from fedlab_nb.teach import plane
    plane.show(["clients", "weights", "predictions"])     # a panel: drag α and watch

`toy` trains and combines, `squares` says what is shown, `panel` has the controls; the picture is `plots.plane`.
"""

from .panel import show
from .squares import VIEWS, picture
from .toy import Toy, toy_at

__all__ = ["VIEWS", "Toy", "picture", "show", "toy_at"]
