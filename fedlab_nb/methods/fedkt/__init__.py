"""FedKT: `method` is the algorithm from top to bottom; `votes` makes labels of votes and says what they cost."""

from .method import FedKT
