"""Closed formulas for the bytes that methods send: to show a cost before a run, and to check the
papers' figures at their own scale.

`parameters` is the number of float32 values in one model's state, d in the papers; S = 4 d are its
bytes. M is the number of clients, T that of rounds, and q that of an aggregator's parameters. Every
function gives the bytes of *one client* unless it says "all". Byte counts are exact integers; a MiB
is 2^20 bytes, which the papers call "MB". Nothing here trains, sends or builds anything.
"""

FLOAT = 4  # bytes of a float32 number
MIB = 2**20


def count_model_bytes_one_way(model_parameters: int) -> int:
    """S = 4 d: one model in float32, one way."""
    return FLOAT * model_parameters


def count_one_shot_bytes_per_client(model_parameters: int) -> int:
    """2 S: the initial model comes down, the trained one goes up. FENS calls this OFL."""
    return 2 * count_model_bytes_one_way(model_parameters)


def count_iterative_bytes_per_client(model_parameters: int, round_count: int) -> int:
    """2 S T: in each of T `round_count` one message of a model's size goes each way.

    So do FedAvg and FedAdam; SCAFFOLD sends two such messages each way.
    """
    return 2 * count_model_bytes_one_way(model_parameters) * round_count


def count_fens_bytes_per_client(
    model_parameters: int,
    client_count: int,
    aggregator_parameters: int,
    rounds: int,
    bits: int = 8,
    unquantised_numbers: int = 0,
    scale_numbers: int = 0,
    range_numbers: int = 0,
) -> int:
    """FENS, down and up: S + S + M E + 2 * 4 q T, where E is the size of one quantised model in bytes,

    E = bits (d - unquantised_numbers) / 8 + 4 (unquantised_numbers + scale_numbers + range_numbers).

    The paper prints ratios and no formula; this simple accounting reproduces all of them. It neglects
    the last three arguments, which are therefore 0 by default.

    aggregator_parameters, rounds: q and T of the aggregator's training
    bits: of a number in a quantised model; 32: the ensemble is not quantised
    unquantised_numbers: how many of the d numbers stay float32 (biases, batch norm)
    scale_numbers: float32 scales of a model, one for each quantised tensor
    range_numbers: float32 numbers that go up and come down with every model if activations are quantised

    E is exact if every tensor's codes fill whole bytes (always at 8 bits); otherwise it is too low, by
    at most one byte for each tensor and client.
    """
    code_bytes = divide_rounding_up(bits * (model_parameters - unquantised_numbers), 8)
    model_bytes = code_bytes + FLOAT * (unquantised_numbers + scale_numbers + range_numbers)
    exchange_of_own_model = (
        count_one_shot_bytes_per_client(model_parameters) + FLOAT * range_numbers
    )
    aggregator_rounds = count_iterative_bytes_per_client(aggregator_parameters, rounds)
    return exchange_of_own_model + client_count * model_bytes + aggregator_rounds


def divide_rounding_up(dividend: int, divisor: int) -> int:
    """The quotient of two whole numbers, rounded up.

    >>> divide_rounding_up(8, 8), divide_rounding_up(9, 8)
    (1, 2)
    """
    return (dividend + divisor - 1) // divisor


def compute_fens_bytes_relative_to_one_shot(
    model_parameters: int,
    client_count: int,
    aggregator_parameters: int,
    rounds: int,
    bits: int = 8,
    unquantised_numbers: int = 0,
    scale_numbers: int = 0,
) -> float:
    """FENS's bytes divided by those of one shot; with the defaults 1 + M/8 + q T / d.

    FENS costs less than an iterative method only if that has more rounds than this.
    """
    fens = count_fens_bytes_per_client(
        model_parameters,
        client_count,
        aggregator_parameters,
        rounds,
        bits,
        unquantised_numbers,
        scale_numbers,
    )
    return fens / count_one_shot_bytes_per_client(model_parameters)
