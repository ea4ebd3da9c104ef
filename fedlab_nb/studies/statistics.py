"""The package's one way to say how sure a number is: Student's t over seeds.

A band is the 95 % confidence interval of a mean over n seeds, with n - 1 degrees of freedom. Two methods that ran on
the same seeds saw the same federations, so they are compared by their differences, seed by seed. A difference is
"clear" if its band leaves out zero, else it is "within the noise"; with one seed nobody can tell.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

LEVEL = 0.95


@functools.cache
def t_quantile(degrees: float, level: float = LEVEL) -> float:
    """How many standard errors a two-sided band of `level` reaches; 4.30 for three seeds, 2.26 for ten.

    >>> round(t_quantile(2), 2), round(t_quantile(9), 2)
    (4.3, 2.26)
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + level) / 2))


@dataclass(frozen=True)
class Band:
    """Mean of `n` values and half the width of its confidence interval; nan for a single value."""

    mean: float
    half_width: float
    n: int

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width

    @property
    def is_noise(self) -> bool:
        """Whether a difference is within the noise; of one seed nobody knows, so it is neither that nor clear."""
        return self.verdict == "within the noise"

    @property
    def verdict(self) -> str:
        """Of a difference: "clear", "within the noise", or "one seed". Two equal differences say nothing of how
        they vary, so they are not clear."""
        if math.isnan(self.half_width):
            return "one seed"
        if self.n == 2 and self.half_width < 1e-9:
            return "within the noise"
        return "clear" if abs(self.mean) > self.half_width else "within the noise"


def band(values: Mapping[int, float] | Sequence[float], level: float = LEVEL) -> Band:
    """The mean of `values` (at least one, a list or by seed) with its band.

    >>> band([0.5, 0.6, 0.7]).half_width.__round__(3)
    0.248
    """
    return band_of(tuple(values.values() if isinstance(values, Mapping) else values), level)


# Pictures ask for the same bands again and again, and `stdev` computes with fractions.
@functools.lru_cache(maxsize=4096)
def band_of(values: tuple[float, ...], level: float) -> Band:
    """`band` of a tuple."""
    if len(values) < 2:
        return Band(fmean(values), math.nan, len(values))
    return Band(fmean(values), t_quantile(len(values) - 1, level) * stdev(values) / math.sqrt(len(values)), len(values))


def difference(a: Mapping[int, float], b: Mapping[int, float], *, paired: bool = True, level: float = LEVEL) -> Band:
    """a - b, of values by seed. Paired over the seeds that both have; `paired=False`, or fewer than two common seeds
    where both have two of their own: Welch's interval of two independent means.
    """
    common = sorted(set(a) & set(b))
    if paired and common and (len(common) > 1 or min(len(a), len(b)) < 2):
        return band([a[seed] - b[seed] for seed in common], level)
    return welch(list(a.values()), list(b.values()), level)


def welch(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Band:
    """Mean of `a` minus mean of `b` for independent samples, with Welch's degrees of freedom."""
    gap, n = fmean(a) - fmean(b), min(len(a), len(b))
    if n < 2:
        return Band(gap, math.nan, n)
    return Band(gap, welch_width((variance(a), variance(b)), (len(a), len(b)), level), n)


def welch_width(variances: tuple[float, float], counts: tuple[int, int], level: float = LEVEL) -> float:
    """Half the width of Welch's interval of the difference of two means of so many independent values (two at least).

    >>> round(welch_width((3**2, 4**2), (3, 3)), 2)     # t(3.71) = 2.86 times sqrt(9/3 + 16/3) = 2.89
    8.27
    """
    one, other = (variance / count for variance, count in zip(variances, counts, strict=True))
    if one + other == 0:
        return 0.0
    degrees = (one + other) ** 2 / (one**2 / (counts[0] - 1) + other**2 / (counts[1] - 1))
    return t_quantile(degrees, level) * math.sqrt(one + other)


def mean_ranks(values: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Mean rank of each name over the seeds that all of them have, the best (1) first; ties share their ranks' mean."""
    from pandas import DataFrame

    return DataFrame(values).dropna().rank(axis=1, ascending=False).mean().sort_values(kind="stable").to_dict()
