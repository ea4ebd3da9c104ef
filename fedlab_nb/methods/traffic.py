"""What travels in a run, said before it: `Method.bytes_sent` gives it from the sizes that are known by then.

Each method states it in its own file; the ledger counts what was really sent, and a test compares the two to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..comm.formulas import FLOAT


class Traffic(NamedTuple):
    """bytes: between clients and server, both ways, of all clients
    is_exact: whether the ledger will say just that
    """

    bytes: float
    is_exact: bool = True

    @property
    def about(self) -> Traffic:
        """The same as an estimate."""
        return Traffic(self.bytes, is_exact=False)


@dataclass(frozen=True)
class Sizes:
    """What bytes can depend on. Of a network: of the first client's.

    clients: M, those that take part;   samples, public_samples: how many;   classes: C
    input_shape, numbers: of one sample;   models_up: bytes of all clients' states;   models_down: bytes of the initial
        models, 0 where each client draws its own
    state_bytes, parameter_bytes: of a network, with and without batch norm's statistics
    coded_numbers, coded_tensors: what of its state can be quantised;   features: numbers that its last map reads
    input_triangles, output_triangles: numbers of the upper triangles of all layers' inputs and outputs
    """

    clients: int
    samples: float
    public_samples: int
    classes: int
    input_shape: tuple[int, ...]
    numbers: int
    models_up: int
    models_down: int
    state_bytes: int
    parameter_bytes: int
    coded_numbers: int
    coded_tensors: int
    features: int
    input_triangles: int
    output_triangles: int

    @property
    def one_shot(self) -> Traffic:
        """The initial model down to each client, the trained one up."""
        return Traffic(self.models_down + self.models_up)

    def count_bytes_of_all(self, floats: float) -> float:
        """Bytes of so many float32 numbers from each client."""
        return FLOAT * self.clients * floats


def count_triangle_entries(n: int) -> int:
    """Numbers of the upper triangle of a symmetric n × n matrix, the diagonal included."""
    return n * (n + 1) // 2
