"""Gaussian heads in the plane: three digits, two features, a bell for each digit that can be dragged.

    from fedlab_nb.course import bells
    bells.show()       # the panel: drag a bell, change the head, or let the sums place the bells

`plane.py` has the points and the classifier (the package's own `make_scores`), `panel.py` the panel, `bells.js` its
drawing.
"""

from .panel import show

__all__ = ["show"]
