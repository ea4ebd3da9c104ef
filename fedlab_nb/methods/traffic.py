"""The bytes of a run before it begins: `Method.bytes_sent` computes them from the sizes that are
known by then.

Each method does so in its own file. The ledger counts what was really sent, and a test compares the
two to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..comm.formulas import FLOAT
from ..value_types import SampleShape


class RunBytesUpPlusDown(NamedTuple):
    """The bytes of a run.

    bytes: between clients and server, both ways, of all clients
    is_exact: whether the ledger will have exactly these bytes
    """

    bytes: float
    is_exact: bool = True

    @property
    def as_estimate(self) -> RunBytesUpPlusDown:
        """The same as an estimate."""
        return RunBytesUpPlusDown(self.bytes, is_exact=False)


@dataclass(frozen=True)
class NetworkSizes:
    """The sizes of one network on which bytes can depend.

    state_bytes, parameter_bytes: with and without batch norm's statistics
    coded_numbers, coded_tensors: the part of the state that can be quantised
    features: numbers that the last map reads
    input_triangles, output_triangles: numbers of the upper triangles of all layers' inputs and
        outputs
    """

    state_bytes: int
    parameter_bytes: int
    coded_numbers: int
    coded_tensors: int
    features: int
    input_triangles: int
    output_triangles: int


@dataclass(frozen=True, kw_only=True)
class FederationSizes(NetworkSizes):
    """The sizes of a federation, and of its first client's network, on which bytes can depend.

    clients: M, the number of clients that take part
    samples, public_samples: their numbers
    classes: C, the number of classes
    input_shape, numbers: the shape of one sample, and how many numbers it has
    models_up: bytes of all clients' states
    models_down: bytes of the initial models, 0 if each client draws its own
    """

    clients: int
    samples: float
    public_samples: int
    classes: int
    input_shape: SampleShape
    numbers: int
    models_up: int
    models_down: int

    @property
    def one_shot_bytes(self) -> RunBytesUpPlusDown:
        """The bytes of one initial model down to each client, and of one trained model up."""
        return RunBytesUpPlusDown(self.models_down + self.models_up)

    def count_bytes_from_all_clients(self, float32_numbers_per_client: float) -> float:
        """Count the bytes if each client sends this many float32 numbers."""
        return FLOAT * self.clients * float32_numbers_per_client


def count_upper_triangle_entries(side: int) -> int:
    """Count the entries of the upper triangle of a side × side matrix, including the diagonal."""
    return side * (side + 1) // 2
