"""A toy in two dimensions: points in the plane, three clients, and the borders of each predictor.

`toy` trains and combines, `view` says what is shown; the picture is `plots.plane`.
"""

from .toy import ToyFederation, make_toy_federation
from .view import SQUARES, PlaneView, draw_toy_federation
