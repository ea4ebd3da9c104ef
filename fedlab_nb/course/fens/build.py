"""Lesson 03, exercise 4: the sum that FENS learns to weight. The right function, wrong ones, hidden inputs.

All take `logits`, an array [M, N, C] of each client, image and class, and `weights`, λ, an array [M, C]. They return an
array [N, C].
"""

import numpy as np

from ..kit.build import Build, by_name

SIZES = ((3, 3, 3), (2, 4, 3), (4, 2, 3), (3, 5, 3), (1, 2, 2))  # M, N, C; wrong axes run for the first, and stop later


def right(logits, weights):
    return (weights[:, None, :] * logits).sum(axis=0)


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Logits of both signs, and weights of which some are below zero and some above one."""
    made = []
    for seed, (clients, images, classes) in enumerate(SIZES):
        stream = np.random.default_rng(seed)
        made.append((3 * stream.normal(size=(clients, images, classes)), stream.normal(0.4, 0.6, (clients, classes))))
    return made


def not_used(logits, weights):
    return logits.mean(0)


def added(logits, weights):
    return logits.sum(0)


def divided_by_clients(logits, weights):
    return right(logits, weights) / len(logits)


def divided_by_weights(logits, weights):
    return right(logits, weights) / weights.sum(0)


def by_image(logits, weights):
    """weights * logits without a new axis: row k of λ goes to image k."""
    return (weights * logits).sum(0)


def turned(logits, weights):
    """λ_ck in the place of λ_kc."""
    return right(logits, weights.T)


def one_a_client(logits, weights):
    return right(logits, np.repeat(weights.mean(1, keepdims=True), weights.shape[1], axis=1))


def over_classes(logits, weights):
    """[N, M]: one number for each image and client."""
    return (weights[:, None, :] * logits).sum(2).T


def over_images(logits, weights):
    return (weights[:, None, :] * logits).sum(1)


def another_client(logits, weights):
    """Client k's logits with the weights of client k - 1."""
    return right(logits, np.roll(weights, 1, axis=0))


def first_missing(logits, weights):
    return right(logits[1:], weights[1:])


def first_alone(logits, weights):
    """`return` stands inside the loop."""
    return right(logits[:1], weights[:1])


def last_missing(logits, weights):
    """The loop ends at client M - 2."""
    return right(logits[:-1], weights[:-1])


def begun_with_first(logits, weights):
    """The sum begins with client 0's logits, and the loop with client 1."""
    return logits[0] + right(logits[1:], weights[1:])


def begun_with_first_too(logits, weights):
    """The sum begins with client 0's logits, and the loop has them once more."""
    return logits[0] + right(logits, weights)


def turned_round(logits, weights):
    """Client k's logits with the weights of client M - 1 - k."""
    return right(logits, weights[::-1])


def one_a_class(logits, weights):
    return right(logits, np.repeat(weights.mean(0, keepdims=True), len(weights), axis=0))


def above_zero(logits, weights):
    return right(logits, weights.clip(min=0))


def last_alone(logits, weights):
    """The loop writes over what it has: = in the place of +=."""
    return right(logits[-1:], weights[-1:])


def softmax(z: np.ndarray) -> np.ndarray:
    powers = np.exp(z - z.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def of_probabilities(logits, weights):
    return right(softmax(logits), weights)


def of_weights(logits, weights):
    """λ through a softmax over the clients."""
    return right(logits, softmax(weights.T).T)


def probabilities(logits, weights):
    return softmax(right(logits, weights))


def digits(logits, weights):
    return right(logits, weights).argmax(1)


def transposed(logits, weights):
    return right(logits, weights).T


WRONG = (
    not_used, added, divided_by_clients, divided_by_weights, by_image, turned, one_a_client, one_a_class, above_zero,
    of_weights, over_classes, over_images, another_client, turned_round, first_alone, begun_with_first,
    begun_with_first_too, first_missing, last_missing, last_alone, of_probabilities, probabilities, digits, transposed,
)  # fmt: skip
FENS = Build("weighted_sum", right, hidden_inputs, by_name(WRONG))
