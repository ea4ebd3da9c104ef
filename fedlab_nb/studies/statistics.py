"""The uncertainty of all numbers in this package: Student's t over seeds.

A band is the 95 % confidence interval of a mean over n seeds, with n - 1 degrees of freedom. Two methods that ran on
the same seeds had the same federations, so they are compared by their differences, seed by seed. A difference is
"clear" if its band does not contain zero; otherwise it is "within the noise". One seed is not enough to tell.

All seeds share one set of test images. Such a band covers other seeds on the same images; that of
`compute_band_over_images` covers other seeds and other images. One in twenty differences is clear by chance alone:
`list_verdicts_with_holm_correction` corrects for that.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev, variance
from typing import Literal

import numpy as np

Seed = int
MethodName = str
MeanRankByMethod = dict[str, float]  # 1 is best
ValuesBySeedAndImage = np.ndarray  # [seeds, images]

ValuesBySeed = dict[int, float]
Verdict = Literal["clear", "within the noise", "one seed"]
LEVEL = 0.95
# With fewer seeds a band is so wide that it only confuses, so pictures and sentences do not show it.
LEAST_SEEDS_OF_A_BAND = 5


@functools.cache
def compute_two_sided_t_quantile(
    degrees_of_freedom: float, confidence_level: float = LEVEL
) -> float:
    """Compute the half width of a two-sided band of `confidence_level` in standard errors; 4.30 for three seeds,
    2.26 for ten.

    >>> round(compute_two_sided_t_quantile(2), 2), round(compute_two_sided_t_quantile(9), 2)
    (4.3, 2.26)
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, (1 + confidence_level) / 2))


@dataclass(frozen=True)
class Band:
    """The mean of `n` values and half the width of its confidence interval, which is nan for a single value.

    degrees: the degrees of freedom of Student's t for this interval; None: n - 1
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
        """Whether pictures and sentences show the half width; verdicts use it from two values on."""
        return self.n >= LEAST_SEEDS_OF_A_BAND and not math.isnan(self.half_width)

    @property
    def is_noise(self) -> bool:
        """Whether a difference is within the noise; with one seed it is neither that nor clear."""
        return self.verdict == "within the noise"

    @property
    def verdict(self) -> Verdict:
        """The verdict on a difference: "clear", "within the noise", or "one seed".

        Two equal differences do not show how much differences vary, so they are not clear.
        """
        if math.isnan(self.half_width):
            return "one seed"
        if self.n == 2 and self.half_width < 1e-9:
            return "within the noise"
        return "clear" if abs(self.mean) > self.half_width else "within the noise"


def compute_band(
    values: Mapping[Seed, float] | Sequence[float], confidence_level: float = LEVEL
) -> Band:
    """Compute the mean of `values` (at least one, a list or by seed) with its band.

    >>> compute_band([0.5, 0.6, 0.7]).half_width.__round__(3)
    0.248
    """
    if isinstance(values, Mapping):
        values = list(values.values())
    return _compute_band_of_tuple(tuple(values), confidence_level)


# Pictures ask for the same bands again and again, and `stdev` computes with fractions.
@functools.lru_cache(maxsize=4096)
def _compute_band_of_tuple(values: tuple[float, ...], confidence_level: float) -> Band:
    """`compute_band` of a tuple."""
    n = len(values)
    if n < 2:
        return Band(fmean(values), math.nan, n)
    standard_error = stdev(values) / math.sqrt(n)
    return Band(
        fmean(values), compute_two_sided_t_quantile(n - 1, confidence_level) * standard_error, n
    )


def difference(
    first_values: Mapping[Seed, float],
    second_values: Mapping[Seed, float],
    *,
    paired: bool = True,
    level: float = LEVEL,
) -> Band:
    """The mean difference of first minus second values, by seed, with its band.

    It is paired over the common seeds if there are at least two. If there are fewer, or with `paired=False`, it is
    Welch's interval of two independent means; but a single common seed is paired if one side has no other seed.
    """
    common = sorted(set(first_values) & set(second_values))
    has_two_of_each = len(first_values) > 1 and len(second_values) > 1
    can_be_paired = len(common) > 1 or (len(common) == 1 and not has_two_of_each)
    if paired and can_be_paired:
        return compute_band([first_values[seed] - second_values[seed] for seed in common], level)
    return compute_welch_band(list(first_values.values()), list(second_values.values()), level)


def compute_welch_band(
    first_values: Sequence[float], second_values: Sequence[float], confidence_level: float = LEVEL
) -> Band:
    """Compute the mean of `first_values` minus mean of `second_values` for independent samples, with Welch's
    degrees of freedom."""
    gap = fmean(first_values) - fmean(second_values)
    n = min(len(first_values), len(second_values))
    if n < 2:
        return Band(gap, math.nan, n)
    variances = (variance(first_values), variance(second_values))
    counts = (len(first_values), len(second_values))
    half_width = compute_welch_half_width(variances, counts, confidence_level)
    return Band(gap, half_width, n, compute_welch_degrees_of_freedom(variances, counts))


def compute_welch_half_width(
    variances: tuple[float, float], sample_counts: tuple[int, int], confidence_level: float = LEVEL
) -> float:
    """Half the width of Welch's interval of the difference of two means of independent values.

    variances, sample_counts: those of the two groups of values, at least two in each

    >>> round(compute_welch_half_width((3**2, 4**2), (3, 3)), 2)     # t(3.71) = 2.86 times sqrt(9/3 + 16/3) = 2.89
    8.27
    """
    squared_error = variances[0] / sample_counts[0] + variances[1] / sample_counts[1]
    if squared_error == 0:
        return 0.0
    degrees = compute_welch_degrees_of_freedom(variances, sample_counts)
    return compute_two_sided_t_quantile(degrees, confidence_level) * math.sqrt(squared_error)


def compute_welch_degrees_of_freedom(
    variances: tuple[float, float], sample_counts: tuple[int, int]
) -> float:
    """Welch's degrees of freedom; if both variances are 0, those for equal variances.

    >>> round(compute_welch_degrees_of_freedom((3**2, 4**2), (3, 3)), 2)
    3.71
    """
    squared_error_a = variances[0] / sample_counts[0]
    squared_error_b = variances[1] / sample_counts[1]
    term_a = squared_error_a**2 / (sample_counts[0] - 1)
    term_b = squared_error_b**2 / (sample_counts[1] - 1)
    denominator = term_a + term_b
    if denominator == 0:
        return sum(sample_counts) - 2
    return (squared_error_a + squared_error_b) ** 2 / denominator


def compute_band_over_images(values: ValuesBySeedAndImage, confidence_level: float = LEVEL) -> Band:
    """Compute the mean of `values [S, N]`, one for each seed and test image, with a band for other seeds and other
    images.

    Seeds and images are crossed random effects: the variance of the mean is (MS_seeds + MS_images - MS_rest) / (S N)
    (Cornfield and Tukey 1956), with Satterthwaite's degrees of freedom. With one seed there is no band.
    """
    seeds, images = values.shape
    mean = values.mean()
    if seeds < 2:
        return Band(float(mean), math.nan, seeds)
    seed_means = values.mean(1)
    image_means = values.mean(0)
    residuals = values - seed_means[:, None] - image_means + mean
    # Degrees of freedom and mean squares (MS) of seeds, images and the rest.
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
    half_width = compute_two_sided_t_quantile(degrees, confidence_level) * math.sqrt(
        spread / values.size
    )
    return Band(float(mean), half_width, seeds, degrees)


def list_verdicts_with_holm_correction(
    differences: Sequence[Band], confidence_level: float = LEVEL
) -> list[Verdict]:
    """List the verdicts on m differences at once (Holm 1979).

    The probability that any of them is wrongly called clear is at most 1 - `confidence_level`. The smallest
    p-value must be at most (1 - confidence_level)/m, the next one (1 - confidence_level)/(m - 1), and so on, until
    the first that is larger.
    """
    verdicts = [difference.verdict for difference in differences]
    p_values = {}
    for i, difference in enumerate(differences):
        if difference.verdict != "one seed":
            p_values[i] = compute_p_value_of_95_percent_band(difference)
    ascending = sorted(p_values, key=lambda i: p_values[i])
    is_clear = True
    for rank, i in enumerate(ascending):
        is_clear = is_clear and p_values[i] <= (1 - confidence_level) / (len(p_values) - rank)
        verdicts[i] = "clear" if is_clear else "within the noise"
    return verdicts


def compute_p_value_of_95_percent_band(difference: Band) -> float:
    """Compute the two-sided p-value of a clear difference with a 95 % band; 1 for one within the noise."""
    from scipy.special import stdtr

    if difference.verdict != "clear":
        return 1.0
    degrees = difference.n - 1 if difference.degrees is None else difference.degrees
    standard_errors = math.inf
    if difference.half_width:
        standard_errors = (
            abs(difference.mean) * compute_two_sided_t_quantile(degrees) / difference.half_width
        )
    return 2 * float(stdtr(degrees, -standard_errors))


def compute_mean_ranks(
    values_by_method: Mapping[MethodName, Mapping[Seed, float]],
) -> MeanRankByMethod:
    """Compute the mean rank of each method over the seeds that all methods have, the best (1) first.

    Methods that tie share the mean of their ranks.
    """
    from pandas import DataFrame

    ranks = DataFrame(values_by_method).dropna().rank(axis=1, ascending=False)
    return ranks.mean().sort_values(kind="stable").to_dict()
