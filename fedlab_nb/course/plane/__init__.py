"""The panel of lesson 2 for points in the plane: the playground's view *In the plane*, with α, seed and start alone.

from fedlab_nb.course import plane
plane.show()     # a panel: drag α and watch
"""

from ..kit.missing_name import make_getattr_for_missing_names
from .panel import show

__getattr__ = make_getattr_for_missing_names(__name__)
