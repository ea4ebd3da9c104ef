"""FedLPA's global model, with what its clients had measured beside it.

With that the server's part can be done again (`server_replay.py`): another λ_damp, π, solver or noise, same clients.
"""

from collections.abc import Sequence

from torch import nn

from ..base import NetworkModel
from .client import LocalPosterior
from .report import FedLPAReport

LIMIT = 48_000_000  # bytes of all clients' posteriors that a model holds; beyond that (large networks) it holds none


class FedLPAModel(NetworkModel):
    """FedLPA's network; `posteriors`: of the clients that it was made from, none where they are too large."""

    def __init__(self, module: nn.Module, report: FedLPAReport, posteriors: Sequence[LocalPosterior]) -> None:
        super().__init__(module, report)
        self.posteriors = list(posteriors) if sum(own.size for own in posteriors) <= LIMIT else []
