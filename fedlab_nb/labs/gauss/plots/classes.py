"""What the server knows of each class: its mean, its spread, and draws from its Gaussian; as images where features
are pixels."""

from collections.abc import Sequence

import numpy as np

from ....methods.gauss import GaussReport
from ....plots.axes import class_ticks, colour_bar, few_ticks
from ....plots.style import Picture, drawing, dress
from ....plots.words import listed, marked_words, plural, tabled
from .tiles import tile_rows

DRAWS = 2  # rows of them
WORDS = {
    "qda": "each class has a covariance of its own",
    "nb": "each class has variances of its own, and its features count as independent",
    "lda": "all classes share one covariance",
    "fedcgs": "all classes share the covariance of all samples",
    "means": "nothing is known of the spread",
}


def classes(
    report: GaussReport, head: str, names: Sequence[str], *, shape: tuple[int, ...] | None, setting: str,
    klass: int | None = None, seed: int = 0,
) -> Picture:  # fmt: skip
    """Picture of the summed statistics. shape: of an image, where features are its pixels; else None, and the means
    are drawn as a table of colours. seed: of the draws."""
    counts = report.counts.sum(0)
    missing = [names[c] for c in np.flatnonzero(counts == 0)]
    rows = pictured(report, shape, seed) if shape else []
    with drawing() as (figure, ax):
        if rows:
            tile_rows(ax, rows, names, klass, [f"{n}" for n in counts])
        else:
            image = ax.imshow(report.means, cmap="cividis", aspect="auto", interpolation="nearest")
            dress(ax, x="feature", y="class")
            class_ticks(ax, names, "y")
            few_ticks(ax, "x", 6, whole=True)
            colour_bar(image, ax, "mean")
    shown = listed([word for word, _ in rows if word]) if rows else f"means of {report.means.shape[1]} features"
    alt = f"Class by class ({setting}): {shown}, from sums over {plural(len(report.counts), 'client')}."
    sentence = f"The server has seen no sample, and knows this of {plural(int(counts.sum()), 'sample')}: {WORDS[head]}."
    if missing:
        sentence += f" Nobody holds class {listed(missing)}, so it is never named."
    values = [(n, int(c), *summary(report, k)) for k, (n, c) in enumerate(zip(names, counts, strict=True))]
    table = tabled("class | samples | mean of the mean | mean deviation", values)
    return Picture(figure, alt + marked_words(None, klass), sentence, table)


def pictured(report: GaussReport, shape: tuple[int, ...], seed: int) -> list[tuple[str, np.ndarray]]:
    """Rows of images: mean, deviation (brightest: the largest), draws."""
    held = (report.counts.sum(0) > 0)[:, None]
    means = np.where(held, report.means, np.nan)
    rows = [("mean", means)]
    if report.deviations is not None:
        spread = np.broadcast_to(report.deviations, means.shape)
        rows.append(("deviation", np.where(held, spread / max(spread.max(), 1e-12), np.nan)))
        drawn = draws(report, seed)
        rows += [("draws" if i == 0 else "", means + part) for i, part in enumerate(drawn)]
    return [(word, part.reshape(len(part), *shape)) for word, part in rows]


def draws(report: GaussReport, seed: int) -> np.ndarray:
    """What draws from the classes' Gaussians add to the means `[DRAWS, C, d]`."""
    classes, d = report.means.shape
    noise = np.random.default_rng(seed).standard_normal((DRAWS, classes, d))
    if report.covariances is None:
        return noise * report.deviations
    values, axes = np.linalg.eigh(report.covariances.astype(np.float64))
    roots = axes * np.sqrt(values.clip(min=0))[:, None]  # [G, d, d]
    return np.einsum("cij,rcj->rci", np.broadcast_to(roots, (classes, d, d)), noise)


def summary(report: GaussReport, c: int) -> tuple[float, float | str]:
    """Of class c: the mean over its features of mean and deviation."""
    mean = round(float(report.means[c].mean()), 3)
    if report.deviations is None:
        return mean, "not sent"
    return mean, round(float(report.deviations[min(c, len(report.deviations) - 1)].mean()), 3)
