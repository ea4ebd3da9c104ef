"""Fed-ET: `method` is the algorithm from top to bottom; its parts stand beside it."""

from .method import FedET
