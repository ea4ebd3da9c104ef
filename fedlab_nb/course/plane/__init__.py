"""A toy in two dimensions, for lesson 2: points in the plane, three clients, and the borders of each predictor.

    from fedlab_nb.course import plane
    plane.show()     # a panel: drag α and watch

`toy` trains and combines, `squares` says what is shown, `panel` has the controls; the picture is `plots.plane`.
"""

from .panel import picture, show
from .toy import Toy, toy_at
