"""What methods send in bytes, as closed formulas: for what is shown before anything is sent, and at
the papers' size.

parameters: float32 numbers in one model's state, d in the papers; S = 4 d are its bytes. The papers
write M clients, T rounds, and q numbers of an aggregator. Every function gives the bytes of *one
client* unless it says "all". Byte counts are exact integers; a MiB is 2^20 bytes, which is what the
papers' "MB" are. Nothing here trains, sends or builds anything.
"""

FLOAT = 4  # bytes of a float32 number
MIB = 2**20


def count_state_bytes(parameters: int) -> int:
    """S = 4 d: one model in float32, one way."""
    return FLOAT * parameters


def count_one_shot_bytes(parameters: int) -> int:
    """2 S, down and up: the initial model comes down, the trained one goes up (what FENS calls
    OFL)."""
    return 2 * count_state_bytes(parameters)


def count_iterative_bytes(parameters: int, rounds: int) -> int:
    """2 S T, down and up, with one model-sized message each way in each of T `rounds` (as FedAvg
    and FedAdam; SCAFFOLD has two)."""
    return 2 * count_state_bytes(parameters) * rounds


def count_fens_bytes(
    parameters: int,
    clients: int,
    aggregator_parameters: int,
    rounds: int,
    bits: int = 8,
    unquantised: int = 0,
    scales: int = 0,
    ranges: int = 0,
) -> int:
    """FENS, down and up: S + S + M E + 2 * 4 q T, where E are the bytes of one quantised model.

    The paper prints ratios and no formula; this is the simple accounting that gives all of them.
    It neglects the last three arguments, hence their defaults.

    aggregator_parameters, rounds: q numbers of the aggregator, T rounds of its training
    bits: of a number in a quantised model; 32: the ensemble is not quantised
    unquantised: how many of the d numbers stay float32 (biases, batch norm)
    scales: how many float32 numbers a model has as scales, one for each quantised tensor
    ranges: float32 numbers that go up and come down with every model, if activations are quantised

    So E = bits (d - unquantised) / 8 + 4 unquantised + 4 scales + 4 ranges. It is exact where every
    tensor's codes fill whole bytes (always at 8 bits), otherwise up to one byte a tensor and client
    too low.
    """
    code_bytes = divide_rounding_up(bits * (parameters - unquantised), 8)
    model_bytes = code_bytes + FLOAT * (unquantised + scales + ranges)
    exchange_of_own_model = count_one_shot_bytes(parameters) + FLOAT * ranges
    aggregator_rounds = count_iterative_bytes(aggregator_parameters, rounds)
    return exchange_of_own_model + clients * model_bytes + aggregator_rounds


def divide_rounding_up(dividend: int, divisor: int) -> int:
    """The quotient of two whole numbers, rounded up.

    >>> divide_rounding_up(8, 8), divide_rounding_up(9, 8)
    (1, 2)
    """
    return (dividend + divisor - 1) // divisor


def compute_fens_ratio(
    parameters: int,
    clients: int,
    aggregator_parameters: int,
    rounds: int,
    bits: int = 8,
    unquantised: int = 0,
    scales: int = 0,
) -> float:
    """FENS's bytes by those of one shot; with the defaults 1 + M/8 + q T / d.

    FENS costs less than an iterative method only if that has more rounds than this.
    """
    fens = count_fens_bytes(
        parameters, clients, aggregator_parameters, rounds, bits, unquantised, scales
    )
    return fens / count_one_shot_bytes(parameters)
