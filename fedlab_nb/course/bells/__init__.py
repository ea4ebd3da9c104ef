"""Gaussian heads in the plane: three digits, two features, a bell for each digit that can be dragged.

    from fedlab_nb.course import bells
    bells.show()       # the panel: drag a bell, change the head, or let the sums place the bells

`plane.py` has the points and the classifier (the package's own `make_class_scorer`), `panel.py`
the panel, `bells.js` its drawing.
"""

from ..kit.missing_name import make_getattr_for_missing_names
from .panel import show

__getattr__ = make_getattr_for_missing_names(__name__)

__all__ = ["show"]
