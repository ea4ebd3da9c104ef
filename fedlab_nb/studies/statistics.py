"""The package's one way to say how sure a number is: Student's t over seeds.

A band is the 95 % confidence interval of a mean over n seeds, with n - 1 degrees of freedom. Two methods that ran on
the same seeds saw the same federations, so they are compared by their differences, seed by seed. A difference is
"clear" if its band leaves out zero, else it is "within the noise"; with one seed nobody can tell.

All seeds share one set of test images. Such a band says what other seeds would show on the same images; `over_images`
says what other seeds and other images would. Of many differences one in twenty is clear by chance: `holm` corrects it.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

import numpy as np

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
    return Band(
        fmean(values),
        t_quantile(len(values) - 1, level) * stdev(values) / math.sqrt(len(values)),
        len(values),
    )


def difference(
    a: Mapping[int, float], b: Mapping[int, float], *, paired: bool = True, level: float = LEVEL
) -> Band:
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


def welch_width(
    variances: tuple[float, float], counts: tuple[int, int], level: float = LEVEL
) -> float:
    """Half the width of Welch's interval of the difference of two means of so many independent values (two at least).

    >>> round(welch_width((3**2, 4**2), (3, 3)), 2)     # t(3.71) = 2.86 times sqrt(9/3 + 16/3) = 2.89
    8.27
    """
    one, other = (variance / count for variance, count in zip(variances, counts, strict=True))
    if one + other == 0:
        return 0.0
    degrees = (one + other) ** 2 / (one**2 / (counts[0] - 1) + other**2 / (counts[1] - 1))
    return t_quantile(degrees, level) * math.sqrt(one + other)


def over_images(values: np.ndarray, level: float = LEVEL) -> Band:
    """The mean of `values [S, N]`, one for each seed and test image, with a band for other seeds and other images.

    Seeds and images are crossed random effects: the variance of the mean is (MS_seeds + MS_images - MS_rest) / (S N)
    (Cornfield and Tukey 1956), with Satterthwaite's degrees of freedom. One seed has no band.
    """
    seeds, images = values.shape
    mean, by_seed, by_image = values.mean(), values.mean(1), values.mean(0)
    if seeds < 2:
        return Band(float(mean), math.nan, seeds)
    rest = ((values - by_seed[:, None] - by_image + mean) ** 2).sum() / ((seeds - 1) * (images - 1))
    of_seeds, of_images = images * by_seed.var(ddof=1), seeds * by_image.var(ddof=1)  # mean squares
    spread = max(of_seeds + of_images - rest, of_seeds, of_images)
    squares = (
        of_seeds**2 / (seeds - 1)
        + of_images**2 / (images - 1)
        + rest**2 / ((seeds - 1) * (images - 1))
    )
    degrees = spread**2 / squares if squares else seeds - 1
    return Band(float(mean), t_quantile(degrees, level) * math.sqrt(spread / values.size), seeds)


def holm(of: Sequence[Band], level: float = LEVEL) -> list[str]:
    """Verdicts on several differences at once (Holm 1979): the chance that any of them is clear without a reason is
    1 - `level` in all. The least p-value has to be below (1 - level)/m, the next below (1 - level)/(m - 1), and so on.
    """
    from scipy.special import stdtr

    verdicts, p = [gap.verdict for gap in of], {}
    for i, gap in enumerate(of):
        if gap.verdict != "one seed":
            errors = (
                abs(gap.mean) * t_quantile(gap.n - 1) / gap.half_width
                if gap.half_width
                else math.inf
            )
            p[i] = 2 * stdtr(gap.n - 1, -errors) if gap.verdict == "clear" else 1.0
    clear = True
    for place, i in enumerate(sorted(p, key=p.__getitem__)):
        clear = clear and p[i] <= (1 - level) / (len(p) - place)
        verdicts[i] = "clear" if clear else "within the noise"
    return verdicts


def mean_ranks(values: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Mean rank of each name over the seeds that all of them have, the best (1) first; ties share their ranks' mean."""
    from pandas import DataFrame

    return (
        DataFrame(values)
        .dropna()
        .rank(axis=1, ascending=False)
        .mean()
        .sort_values(kind="stable")
        .to_dict()
    )
