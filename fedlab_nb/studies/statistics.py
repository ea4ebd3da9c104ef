"""The package's one way to say how sure a number is: Student's t over seeds.

A band is the 95 % confidence interval of a mean over n seeds, with n - 1 degrees of freedom. Two methods that ran on
the same seeds saw the same federations, so they are compared by their differences, seed by seed. A difference is
"clear" if its band leaves out zero, else it is "within the noise"; with one seed nobody can tell.

All seeds share one set of test images. Such a band says what other seeds would show on the same images;
`compute_band_over_images` says what other seeds and other images would. Of many differences one in twenty is clear by
chance: `correct_verdicts_by_holm` allows for that.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev, variance

import numpy as np

LEVEL = 0.95
# The band of fewer seeds is so wide that it confuses: no picture and no sentence shows it.
LEAST_SEEDS_OF_A_BAND = 5


@functools.cache
def compute_t_quantile(degrees: float, level: float = LEVEL) -> float:
    """How many standard errors a two-sided band of `level` reaches; 4.30 for three seeds, 2.26 for ten.

    >>> round(compute_t_quantile(2), 2), round(compute_t_quantile(9), 2)
    (4.3, 2.26)
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + level) / 2))


@dataclass(frozen=True)
class Band:
    """Mean of `n` values and half the width of its confidence interval; nan for a single value.

    degrees: of freedom of Student's t for this interval; None: n - 1
    """

    mean: float
    half_width: float
    n: int
    degrees: float | None = field(default=None, compare=False)

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width

    @property
    def is_shown(self) -> bool:
        """Whether pictures and sentences show the half width; tests use it from two values on."""
        return self.n >= LEAST_SEEDS_OF_A_BAND and not math.isnan(self.half_width)

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
    if isinstance(values, Mapping):
        values = list(values.values())
    return _compute_band(tuple(values), level)


# Pictures ask for the same bands again and again, and `stdev` computes with fractions.
@functools.lru_cache(maxsize=4096)
def _compute_band(values: tuple[float, ...], level: float) -> Band:
    """`band` of a tuple."""
    n = len(values)
    if n < 2:
        return Band(fmean(values), math.nan, n)
    standard_error = stdev(values) / math.sqrt(n)
    return Band(fmean(values), compute_t_quantile(n - 1, level) * standard_error, n)


def difference(
    a: Mapping[int, float], b: Mapping[int, float], *, paired: bool = True, level: float = LEVEL
) -> Band:
    """a - b, of values by seed. Paired over the seeds that both have; `paired=False`, or fewer than two common seeds
    where both have two of their own: Welch's interval of two independent means.
    """
    common = sorted(set(a) & set(b))
    has_two_of_each = len(a) > 1 and len(b) > 1
    if paired and (len(common) > 1 or (common and not has_two_of_each)):
        return band([a[seed] - b[seed] for seed in common], level)
    return compute_welch_band(list(a.values()), list(b.values()), level)


def compute_welch_band(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Band:
    """Mean of `a` minus mean of `b` for independent samples, with Welch's degrees of freedom."""
    gap = fmean(a) - fmean(b)
    n = min(len(a), len(b))
    if n < 2:
        return Band(gap, math.nan, n)
    variances = (variance(a), variance(b))
    counts = (len(a), len(b))
    half_width = compute_welch_width(variances, counts, level)
    return Band(gap, half_width, n, compute_welch_degrees(variances, counts))


def compute_welch_width(
    variances: tuple[float, float], counts: tuple[int, int], level: float = LEVEL
) -> float:
    """Half the width of Welch's interval of the difference of two means of so many independent values (two at least).

    >>> round(compute_welch_width((3**2, 4**2), (3, 3)), 2)     # t(3.71) = 2.86 times sqrt(9/3 + 16/3) = 2.89
    8.27
    """
    squared_error = variances[0] / counts[0] + variances[1] / counts[1]
    if squared_error == 0:
        return 0.0
    degrees = compute_welch_degrees(variances, counts)
    return compute_t_quantile(degrees, level) * math.sqrt(squared_error)


def compute_welch_degrees(variances: tuple[float, float], counts: tuple[int, int]) -> float:
    """Welch's degrees of freedom; as if the variances were equal where both are 0.

    >>> round(compute_welch_degrees((3**2, 4**2), (3, 3)), 2)
    3.71
    """
    squared_error_a = variances[0] / counts[0]
    squared_error_b = variances[1] / counts[1]
    denominator = squared_error_a**2 / (counts[0] - 1) + squared_error_b**2 / (counts[1] - 1)
    if denominator == 0:
        return sum(counts) - 2
    return (squared_error_a + squared_error_b) ** 2 / denominator


def compute_band_over_images(values: np.ndarray, level: float = LEVEL) -> Band:
    """The mean of `values [S, N]`, one for each seed and test image, with a band for other seeds and other images.

    Seeds and images are crossed random effects: the variance of the mean is (MS_seeds + MS_images - MS_rest) / (S N)
    (Cornfield and Tukey 1956), with Satterthwaite's degrees of freedom. One seed has no band.
    """
    seeds, images = values.shape
    mean = values.mean()
    if seeds < 2:
        return Band(float(mean), math.nan, seeds)
    seed_means = values.mean(1)
    image_means = values.mean(0)
    residuals = values - seed_means[:, None] - image_means + mean
    # Degrees of freedom and mean squares of seeds, images and the rest.
    seed_degrees = seeds - 1
    image_degrees = images - 1
    rest_degrees = seed_degrees * image_degrees
    seed_squares = images * seed_means.var(ddof=1)
    image_squares = seeds * image_means.var(ddof=1)
    rest_squares = (residuals**2).sum() / rest_degrees
    spread = max(seed_squares + image_squares - rest_squares, seed_squares, image_squares)
    denominator = (
        seed_squares**2 / seed_degrees
        + image_squares**2 / image_degrees
        + rest_squares**2 / rest_degrees
    )
    degrees = spread**2 / denominator if denominator else seed_degrees
    half_width = compute_t_quantile(degrees, level) * math.sqrt(spread / values.size)
    return Band(float(mean), half_width, seeds, degrees)


def correct_verdicts_by_holm(differences: Sequence[Band], level: float = LEVEL) -> list[str]:
    """Verdicts on several differences at once (Holm 1979): the chance that any of them is clear without a reason is
    1 - `level` in all. The least p-value has to be below (1 - level)/m, the next below (1 - level)/(m - 1), and so on.
    """
    verdicts = [difference.verdict for difference in differences]
    p_values = {}
    for i, difference in enumerate(differences):
        if difference.verdict != "one seed":
            p_values[i] = compute_p_value(difference)
    ascending = sorted(p_values, key=lambda i: p_values[i])
    is_clear = True
    for rank, i in enumerate(ascending):
        is_clear = is_clear and p_values[i] <= (1 - level) / (len(p_values) - rank)
        verdicts[i] = "clear" if is_clear else "within the noise"
    return verdicts


def compute_p_value(difference: Band) -> float:
    """The two-sided p-value of a clear difference with a 95 % band; 1 for one within the noise."""
    from scipy.special import stdtr

    if difference.verdict != "clear":
        return 1.0
    degrees = difference.n - 1 if difference.degrees is None else difference.degrees
    standard_errors = math.inf
    if difference.half_width:
        standard_errors = abs(difference.mean) * compute_t_quantile(degrees) / difference.half_width
    return 2 * float(stdtr(degrees, -standard_errors))


def compute_mean_ranks(values: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Mean rank of each name over the seeds that all of them have, the best (1) first; ties share their ranks' mean."""
    from pandas import DataFrame

    ranks = DataFrame(values).dropna().rank(axis=1, ascending=False)
    return ranks.mean().sort_values(kind="stable").to_dict()
