"""Lesson 08, exercise 4: the paired 95 % band of a difference. The right function, wrong ones, hidden inputs."""

import numpy as np

from ..kit.build import Build


def paired_band(a, b):
    """Mean of the differences a - b, seed by seed, and half the width of its 95 % band."""
    from scipy import stats

    gaps = a - b
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean(), stats.t.ppf(0.975, len(gaps) - 1) * error


def student(degrees, upper=0.975):
    """The point of Student's t below which the share `upper` lies."""
    from scipy import stats

    return stats.t.ppf(upper, degrees)


def variant(gaps, ddof=1, factor=None, root=0.5):
    """Mean and half width with one part changed: `ddof` of the spread, the `factor` instead of t, the `root` of n."""
    n = len(gaps)
    return gaps.mean(), (student(n - 1) if factor is None else factor) * gaps.std(ddof=ddof) / n**root


def ddof_0(a, b):
    return variant(a - b, ddof=0)


def normal(a, b):
    return variant(a - b, factor=1.959963984540054)


def normal_rounded(a, b):
    return variant(a - b, factor=1.96)


def n_degrees(a, b):
    return variant(a - b, factor=student(len(a)))


def no_root(a, b):
    return variant(a - b, root=0)


def whole_n(a, b):
    return variant(a - b, root=1)


def one_sided(a, b):
    return variant(a - b, factor=student(len(a) - 1, 0.95))


def unpaired(a, b):
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    return np.mean(a) - np.mean(b), student(2 * len(a) - 2) * error


def unpaired_few(a, b):
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    return np.mean(a) - np.mean(b), student(len(a) - 1) * error


def turned(a, b):
    return paired_band(b, a)


def absolute(a, b):
    return variant(np.abs(a - b))


def ends(a, b):
    mean, half = paired_band(a, b)
    return mean - half, mean + half


def whole_width(a, b):
    mean, half = paired_band(a, b)
    return mean, 2 * half


def half_first(a, b):
    mean, half = paired_band(a, b)
    return half, mean


def no_factor(a, b):
    return variant(a - b, factor=1)


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Accuracies of two methods on 3 to 10 seeds, in per cent: a seed is easy or hard for both, as in a federation."""
    stream, made = np.random.default_rng(8), []
    for n in (3, 5, 10, 4):
        seed = stream.normal(60, 12, size=n)
        made.append((seed + stream.normal(0, 4, size=n), seed + stream.normal(1, 4, size=n)))
    return made


SLIPS = {
    "ddof": ddof_0, "normal": normal, "normal_rounded": normal_rounded, "degrees": n_degrees, "root": no_root,
    "whole_n": whole_n, "one_sided": one_sided, "unpaired": unpaired, "unpaired_few": unpaired_few, "turned": turned,
    "absolute": absolute, "ends": ends, "whole_width": whole_width, "half_first": half_first, "no_factor": no_factor,
}  # fmt: skip
BAND = Build("paired_band", paired_band, hidden_inputs, SLIPS)
