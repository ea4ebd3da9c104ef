"""Lesson 07, exercise 5: the mean of a product of Gaussians. The right function, wrong ones, hidden inputs."""

import numpy as np

from ..kit.build import Build, by_name

SHAPES = ((1, 2), (2, 2), (3, 3), (2, 4), (5, 3))  # clients and weights of the hidden inputs


def product_mean(means, precisions):
    """The mean [d] of the product of M Gaussians with means [M, d] and precisions [M, d, d]."""
    weighted = sum(p @ m for p, m in zip(precisions, means, strict=True))
    return np.linalg.solve(precisions.sum(0), weighted)


def plain_mean(means, precisions):
    return means.mean(0)


def not_divided(means, precisions):
    return np.einsum("kij,kj->i", precisions, means)


def diagonals(means, precisions):
    weights = np.diagonal(precisions, axis1=1, axis2=2)
    return (weights * means).sum(0) / weights.sum(0)


def covariances(means, precisions):
    return product_mean(means, np.linalg.inv(precisions))


def inverses_summed(means, precisions):
    return np.linalg.inv(precisions).sum(0) @ not_divided(means, precisions)


def mean_and_sum(means, precisions):
    return product_mean(means, precisions) / len(means)


def one_number(means, precisions):
    trust = np.trace(precisions, axis1=1, axis2=2)
    return trust @ means / trust.sum()


def not_multiplied(means, precisions):
    return np.linalg.solve(precisions.sum(0), (precisions * means[:, None]).sum(0))


def first_left_out(means, precisions):
    """Stops with one client, as a loop from 1 does: nothing is left that could be inverted."""
    return product_mean(means[1:], precisions[1:])


def last_left_out(means, precisions):
    return product_mean(means[:-1], precisions[:-1])


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Means [M, d] and precisions [M, d, d]: one client, then several; every third one has diagonal matrices alone."""
    stream, made = np.random.default_rng(7), []
    for i, (clients, d) in enumerate(SHAPES * 2):
        root = stream.normal(size=(clients, d, d))
        precisions = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(d)
        if i % 3 == 2:
            precisions *= np.eye(d)
        made.append((stream.normal(size=(clients, d)), precisions))
    return made


WRONG = (
    plain_mean, not_divided, diagonals, covariances, inverses_summed, mean_and_sum, one_number, not_multiplied,
    first_left_out, last_left_out,
)  # fmt: skip
PRODUCT = Build("product_mean", product_mean, hidden_inputs, by_name(WRONG))
