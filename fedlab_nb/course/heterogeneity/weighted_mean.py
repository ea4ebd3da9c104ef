"""Lesson 01, exercise 3: FedAvg's average of the clients' networks. The right function, wrong ones, hidden inputs.

All take `networks`, a dict {layer: array} for each client, and `counts`, the number of images of each client. They
return one network, {layer: array}.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ..kit.build import Build, by_name

Network = Mapping[str, np.ndarray]
CLIENTS = (2, 3, 5)  # in the hidden inputs


def right(networks, counts):
    average = {}
    for layer in networks[0]:
        average[layer] = 0
        for k in range(len(networks)):
            average[layer] = average[layer] + counts[k] / sum(counts) * networks[k][layer]
    return average


def hidden_inputs() -> list[tuple[list[Network], np.ndarray]]:
    """Networks of three layers, none of them square; clients hold between 5 and 60 images, each another number."""
    made, shapes = [], {"hidden": (4, 3), "bias": (4,), "output": (2, 4)}
    for seed, clients in enumerate(CLIENTS):
        stream = np.random.default_rng(seed)
        networks = [{layer: stream.normal(size=shape) for layer, shape in shapes.items()} for _ in range(clients)]
        made.append((networks, stream.permutation(np.arange(5, 61))[:clients]))
    return made


def weighted(networks: Sequence[Network], weights: np.ndarray) -> Network:
    """Σ_k weights[k] · θ_k."""
    return {layer: sum(w * n[layer] for w, n in zip(weights, networks, strict=True)) for layer in networks[0]}


def plain(networks, counts):
    return weighted(networks, np.full(len(counts), 1 / len(counts)))


def not_divided(networks, counts):
    return weighted(networks, counts)


def by_clients(networks, counts):
    return weighted(networks, counts / len(counts))


def twice(networks, counts):
    return weighted(networks, counts / counts.sum() / len(counts))


def added(networks, counts):
    return weighted(networks, np.ones(len(counts)))


def last_alone(networks, counts):
    """The loop writes over what it has: = in the place of +=."""
    return weighted(networks[-1:], (counts / counts.sum())[-1:])


def first_alone(networks, counts):
    """`return` stands inside the loop over the clients."""
    return weighted(networks[:1], (counts / counts.sum())[:1])


def begun_with_first(networks, counts):
    """The sum begins with client 0's network, and the loop with client 1."""
    return weighted(networks, np.r_[1, counts[1:] / counts.sum()])


def begun_with_first_too(networks, counts):
    """The sum begins with client 0's network, and the loop has it once more."""
    return weighted(networks, np.eye(len(counts))[0] + counts / counts.sum())


def turned_round(networks, counts):
    """Client k gets the number of client M - 1 - k."""
    return weighted(networks, counts[::-1] / counts.sum())


def first_missing(networks, counts):
    """The loop begins at client 1."""
    return weighted(networks, np.r_[0, counts[1:] / counts.sum()])


def last_missing(networks, counts):
    """The loop ends at client M - 2."""
    return weighted(networks, np.r_[counts[:-1] / counts.sum(), 0])


def neighbours(networks, counts):
    """Client k gets the number of client k - 1."""
    return weighted(networks, np.roll(counts, 1) / counts.sum())


def in_order_of_size(networks, counts):
    return weighted(networks, np.sort(counts) / counts.sum())


def cut_off(networks, counts):
    """n // N is 0 for each client."""
    return weighted(networks, counts // counts.sum())


def transposed(networks, counts):
    return {layer: values.T for layer, values in right(networks, counts).items()}


WRONG = (
    plain, not_divided, by_clients, twice, added, last_alone, first_alone, begun_with_first, begun_with_first_too,
    first_missing, last_missing, neighbours, turned_round, in_order_of_size, cut_off, transposed,
)  # fmt: skip
FEDAVG = Build("fedavg", right, hidden_inputs, by_name(WRONG))
