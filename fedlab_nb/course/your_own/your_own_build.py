"""Lesson 09, exercise 4: mean and spread from the hospitals' sums. The right function, wrong ones, hidden inputs."""

import numpy as np

from ..kit.build import Build, by_name


def mean_and_spread(counts, sums, squares):
    """Mean [D] and standard deviation [D] of all rows, from what M hospitals send: counts [M], sums and sums of squares
    [M, D]."""
    rows = counts.sum()
    mean = sums.sum(0) / rows
    return mean, np.sqrt(squares.sum(0) / rows - mean**2)


def mean_of_means(counts, sums, squares):
    means = sums / counts[:, None]
    mean = means.mean(0)
    return mean, np.sqrt((squares / counts[:, None]).mean(0) - mean**2)


def one_row_less(counts, sums, squares):
    mean, spread = mean_and_spread(counts, sums, squares)
    return mean, spread * np.sqrt(counts.sum() / (counts.sum() - 1))


def variance(counts, sums, squares):
    mean, spread = mean_and_spread(counts, sums, squares)
    return mean, spread**2


def mean_not_taken_off(counts, sums, squares):
    rows = counts.sum()
    return sums.sum(0) / rows, np.sqrt(squares.sum(0) / rows)


def own_spreads(counts, sums, squares):
    own = np.sqrt(squares / counts[:, None] - (sums / counts[:, None]) ** 2)
    return mean_and_spread(counts, sums, squares)[0], counts @ own / counts.sum()


def own_variances(counts, sums, squares):
    own = squares / counts[:, None] - (sums / counts[:, None]) ** 2
    return mean_and_spread(counts, sums, squares)[0], np.sqrt(counts @ own / counts.sum())


def sums_squared(counts, sums, squares):
    rows = counts.sum()
    return sums.sum(0) / rows, np.sqrt(squares.sum(0) / rows - (sums**2).sum(0) / rows**2)


def turned(counts, sums, squares):
    mean, spread = mean_and_spread(counts, sums, squares)
    return spread, mean


def last_left_out(counts, sums, squares):
    return mean_and_spread(*(part[:-1] if len(part) > 1 else part for part in (counts, sums, squares)))


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sums of one, two and five hospitals of different sizes and patients: no value is exactly constant."""
    stream, made = np.random.default_rng(9), []
    for hospitals, columns in ((1, 2), (2, 3), (5, 4), (3, 1)):
        groups = [stream.normal(3 + k, 1 + k, size=(int(stream.integers(3, 30)), columns)) for k in range(hospitals)]
        counts = np.array([len(x) for x in groups])
        made.append((counts, np.array([x.sum(0) for x in groups]), np.array([(x**2).sum(0) for x in groups])))
    return made


WRONG = (
    mean_of_means, one_row_less, variance, mean_not_taken_off, own_spreads, own_variances, sums_squared, turned,
    last_left_out,
)  # fmt: skip
SUMS = Build("mean_and_spread", mean_and_spread, hidden_inputs, by_name(WRONG))
