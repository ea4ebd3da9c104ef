"""A toy in two dimensions, for lessons 01 and 03: points in the plane, three clients, and the borders of each
predictor.

    from fedlab_nb.course import plane
    plane.show(["clients", "weights", "predictions"])     # a panel: drag α and watch
    plane.over_seeds("fens", "predictions")               # two predictors on ten seeds

`toy` trains and combines, `squares` says what is shown and what lessons quote, `panel` has the controls; the picture is
`plots.plane`.
"""

from .panel import show
from .squares import VIEWS, over_seeds, picture
from .toy import Toy, toy_at

__all__ = ["VIEWS", "Toy", "over_seeds", "picture", "show", "toy_at"]
