"""Lesson 04, exercise 4: the consensus of softmax outputs. The right function, wrong ones, hidden inputs."""

from collections.abc import Callable

import numpy as np

from ..kit.build import Build, by_name


def right(s):
    variances = s.var(axis=2)  # [M, N]: of each output, over its C probabilities
    weights = variances / variances.sum(axis=0)  # [M, N]: shares of the clients, image by image
    return (weights[:, :, None] * s).sum(axis=0)  # [N, C]


# ------------------------------------------------------------------------------------------------ wrong functions
def weighted(s: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The sum of outputs `[M, N, C]` whose weights are the clients' shares of `values [M, N]`."""
    return np.einsum("mn,mnc->nc", values / values.sum(0), s)


def equal(s: np.ndarray) -> np.ndarray:
    return s.mean(0)


def one_weight(s: np.ndarray) -> np.ndarray:
    """One weight for each client: its mean variance over the images."""
    return weighted(s, np.repeat(s.var(2).mean(1, keepdims=True), s.shape[1], axis=1))


def over_clients(s: np.ndarray) -> np.ndarray:
    """The variance of the clients' answers, for each image and class."""
    variances = s.var(0)
    return (variances / variances.sum(0) * s).sum(0)


def over_images(s: np.ndarray) -> np.ndarray:
    """The variance of a client's answers over the images, for each class."""
    variances = s.var(1)
    return ((variances / variances.sum(0))[:, None] * s).sum(0)


def shares_of_images(s: np.ndarray) -> np.ndarray:
    """Weights that add up to 1 over the images of one client."""
    variances = s.var(2)
    return np.einsum("mn,mnc->nc", variances / variances.sum(1, keepdims=True), s)


def shares_of_all(s: np.ndarray) -> np.ndarray:
    """Weights that add up to 1 over all clients and images together."""
    return np.einsum("mn,mnc->nc", s.var(2) / s.var(2).sum(), s)


def not_divided(s: np.ndarray) -> np.ndarray:
    return np.einsum("mn,mnc->nc", s.var(2), s)


def divided_twice(s: np.ndarray) -> np.ndarray:
    return right(s) / len(s)


def deviations(s: np.ndarray) -> np.ndarray:
    return weighted(s, s.std(2))


def squares(s: np.ndarray) -> np.ndarray:
    """Squares without the mean taken off."""
    return weighted(s, (s**2).sum(2))


def ten_classes(s: np.ndarray) -> np.ndarray:
    """The lesson's formula with its 1/10, whatever C is."""
    return weighted(s, (s**2).sum(2) - 0.1)


def top_probabilities(s: np.ndarray) -> np.ndarray:
    return weighted(s, s.max(2))


def softmax_of_variances(s: np.ndarray) -> np.ndarray:
    return weighted(s, np.exp(s.var(2)))


def softmax_again(s: np.ndarray) -> np.ndarray:
    return right(np.exp(s) / np.exp(s).sum(2, keepdims=True))


def other_order(s: np.ndarray) -> np.ndarray:
    """The weight of client 0 goes to the last client, and so on."""
    return np.einsum("mn,mnc->nc", (s.var(2) / s.var(2).sum(0))[::-1], s)


def no_third_axis(s: np.ndarray) -> np.ndarray:
    """Weights [M, N] times outputs [M, N, C]: that runs only where the three lengths are alike."""
    return (s.var(2) / s.var(2).sum(0) * s).sum(0)


def turned_weights(s: np.ndarray) -> np.ndarray:
    """Weights [N, M] where [M, N] is wanted."""
    return ((s.var(2) / s.var(2).sum(0)).T[:, :, None] * s).sum(0)


def first_left_out(s: np.ndarray) -> np.ndarray:
    return right(s[1:])


def labels(s: np.ndarray) -> np.ndarray:
    return right(s).argmax(1)


def transposed(s: np.ndarray) -> np.ndarray:
    return right(s).T


WRONG: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    equal, one_weight, over_clients, over_images, shares_of_images, shares_of_all, not_divided, divided_twice,
    deviations, squares, ten_classes, top_probabilities, softmax_of_variances, softmax_again, no_third_axis,
    turned_weights, first_left_out, other_order, labels, transposed,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ hidden inputs
def hidden_inputs() -> list[tuple[np.ndarray]]:
    """Softmax outputs [M, N, C]: first with M = N = C, where a wrong axis gives numbers; then with three lengths."""
    stream, made = np.random.default_rng(4), []
    for shape in ((4, 4, 4), (3, 5, 4), (2, 6, 3)):
        e = np.exp(stream.normal(size=shape) * stream.uniform(0.5, 4, shape[:2])[..., None])
        made.append((e / e.sum(2, keepdims=True),))
    return made


CONSENSUS = Build("consensus", right, hidden_inputs, by_name(WRONG))
