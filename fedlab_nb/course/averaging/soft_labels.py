"""Lesson 02, exercise 4: the answers that a teacher gives its student. The right function, wrong ones, hidden inputs.

All take `logits`, an array [M, N, C] of each client, image and class, and `temperature`, τ. They return an array
[N, C].
"""

import numpy as np

from ..kit.build import Build, by_name

SIZES = ((3, 3, 3), (2, 4, 3), (5, 2, 4), (1, 3, 2))  # M, N, C; the first lets a wrong axis run, the others stop it


def right(logits, temperature):
    teacher = logits.mean(axis=0) / temperature
    powers = np.exp(teacher)
    return powers / powers.sum(axis=1, keepdims=True)


def hidden_inputs() -> list[tuple[np.ndarray, float]]:
    """Logits as large as those of real networks, each with another temperature."""
    made = []
    for seed, size in enumerate(SIZES):
        stream = np.random.default_rng(seed)
        made.append((3 * stream.normal(size=size), round(stream.uniform(1.5, 6), 1)))
    return made


def softmax(z: np.ndarray, axis: int | tuple[int, ...] = -1) -> np.ndarray:
    return np.exp(z) / np.exp(z).sum(axis, keepdims=True)


def over_images(logits, temperature):
    return softmax(logits.mean(0) / temperature, axis=0)


def over_everything(logits, temperature):
    return softmax(logits.mean(0) / temperature, axis=(0, 1))


def sums_in_columns(logits, temperature):
    """Without keepdims each column is divided by the sum of a row."""
    powers = np.exp(logits.mean(0) / temperature)
    return powers / powers.sum(1)


def softmax_first(logits, temperature):
    return softmax(logits / temperature).mean(0)


def over_clients(logits, temperature):
    return softmax(logits / temperature, axis=0).mean(0)


def mean_over_images(logits, temperature):
    return softmax(logits.mean(1) / temperature)


def mean_over_classes(logits, temperature):
    return softmax(logits.mean(2) / temperature)


def added(logits, temperature):
    return softmax(logits.sum(0) / temperature)


def one_client(logits, temperature):
    return softmax(logits[0] / temperature)


def last_client(logits, temperature):
    return softmax(logits[-1] / temperature)


def no_temperature(logits, temperature):
    return softmax(logits.mean(0))


def multiplied(logits, temperature):
    return softmax(logits.mean(0) * temperature)


def divided_after(logits, temperature):
    return softmax(logits.mean(0)) / temperature


def divided_twice(logits, temperature):
    return softmax(logits.mean(0) / temperature**2)


def of_the_loss(logits, temperature):
    """τ² stands in the loss alone."""
    return temperature**2 * right(logits, temperature)


def softmax_first_without(logits, temperature):
    return softmax(logits).mean(0)


def two_softmaxes(logits, temperature):
    """Of each client's logits first, and of the mean of the probabilities once more."""
    return softmax(softmax(logits).mean(0) / temperature)


def not_normalised(logits, temperature):
    return np.exp(logits.mean(0) / temperature)


def no_softmax(logits, temperature):
    return logits.mean(0) / temperature


def logarithm(logits, temperature):
    return np.log(right(logits, temperature))


def hard(logits, temperature):
    return np.eye(logits.shape[2])[logits.mean(0).argmax(1)]


def transposed(logits, temperature):
    return right(logits, temperature).T


WRONG = (
    over_images, over_everything, sums_in_columns, softmax_first, softmax_first_without, two_softmaxes, over_clients,
    mean_over_images, mean_over_classes, added, one_client, last_client, no_temperature, multiplied, divided_after,
    divided_twice, of_the_loss, not_normalised, no_softmax, logarithm, hard, transposed,
)  # fmt: skip
SOFT = Build("soft_labels", right, hidden_inputs, by_name(WRONG))
