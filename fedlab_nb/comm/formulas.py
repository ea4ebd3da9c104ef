"""What methods send in bytes, as closed formulas: for what is shown before anything is sent, and at
the papers' size.

d is the number of float32 numbers in one model's state, S = 4 d its bytes; M clients, T rounds, C
classes. Every function gives the bytes of *one client* unless it says "all". Byte counts are exact
integers; a MiB is 2^20 bytes, which is what the papers' "MB" are. Nothing here trains, sends or
builds anything.
"""

FLOAT = 4  # bytes of a float32 number
MIB = 2**20


def state_bytes(d: int) -> int:
    """S = 4 d: one model in float32, one way."""
    return FLOAT * d


def one_shot_bytes(d: int) -> int:
    """2 S, down and up: the initial model comes down, the trained one goes up (what FENS calls
    OFL)."""
    return 2 * state_bytes(d)


def iterative_bytes(d: int, rounds: int) -> int:
    """2 S T, down and up, with one model-sized message each way (as FedAvg and FedAdam; SCAFFOLD
    has two)."""
    return 2 * state_bytes(d) * rounds


def fens_bytes(
    d: int,
    clients: int,
    q: int,
    rounds: int,
    bits: int = 8,
    unquantised: int = 0,
    scales: int = 0,
    ranges: int = 0,
) -> int:
    """FENS, down and up: S + S + M (ensemble entry) + 2 * 4 q * T, where an entry is one quantised
    model.

    The paper prints ratios and no formula; this is the simple accounting that gives all of them.

    q: numbers of the aggregator; `rounds`: T of its training; bits = 32 means an ensemble that is
    not quantised. An entry is bits (d - unquantised) / 8 + 4 unquantised + 4 scales bytes:
    `unquantised` of the d numbers stay float32 (biases, batch norm), and each quantised tensor has
    one of the `scales`, a float32 number. The paper neglects both, hence the defaults. With
    quantised activations `ranges` float32 numbers go up and come down with every entry. Exact where
    every tensor's codes fill whole bytes (always at 8 bits), otherwise up to one byte a tensor and
    client too low.
    """
    code_bytes = -(-bits * (d - unquantised) // 8)
    entry = code_bytes + FLOAT * (unquantised + scales + ranges)
    own_model = one_shot_bytes(d) + FLOAT * ranges
    aggregator = 2 * state_bytes(q) * rounds
    return own_model + clients * entry + aggregator


def fens_ratio(
    d: int, clients: int, q: int, rounds: int, bits: int = 8, unquantised: int = 0, scales: int = 0
) -> float:
    """`fens_bytes / one_shot_bytes`; with the defaults 1 + M/8 + q T / d.

    FENS costs less than a method of T rounds only while T is larger than this.
    """
    return fens_bytes(d, clients, q, rounds, bits, unquantised, scales) / one_shot_bytes(d)
