"""AFL: the sums of least squares (`sums.py`), who sends them (`method.py`), what is left behind (`model.py`)."""

from .method import AFL
from .model import AflModel, AflReport, without
from .sums import Sums, head
