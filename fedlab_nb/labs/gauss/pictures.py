"""What the server knows of each class: its mean, its spread, and draws from its Gaussian; as images where features
are pixels."""

from collections.abc import Sequence

import ipywidgets as widgets
import numpy as np

from ...methods.gauss import TRAINED, GaussReport
from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, listed, plural, tabled, told
from ...plots.axes import class_ticks, colour_bar, few_ticks
from ...plots.kit import heat_map, tiles
from ...plots.style import current_size, shorten
from ..runs import where

DRAWS = 2, 5  # rows of them, where the frame is on end, and at most
MOST = 20  # classes with a column of their own, at most
WORDS = {
    "qda": "each class has a covariance of its own",
    "nb": "each class has variances of its own, and its features count as independent",
    "lda": "all classes share one covariance",
    "fedcgs": "all classes share the covariance of all samples",
    "means": "nothing is known of the spread",
    **dict.fromkeys(
        TRAINED, "a head is trained on draws, for which each class has a covariance of its own"
    ),
}


class Pictures(LabView):
    """Mean, deviation and draws of each class, from the sums of all clients."""

    name, title = "pictures", "Classes"

    def __init__(self) -> None:
        help = "Draw other images from the same Gaussians"
        self.draws = made(
            widgets.IntSlider, label="Seed of the draws", help=help, width=280, max=20
        )

    def draw(self, state: PanelState) -> Picture:
        about = {"setting": where(state), "klass": state.klass, "seed": self.draws.value}
        head, names, shape = state.outcome.options["head"], state.class_names, image_shape(state)
        return classes(state.report, head, names, shape=shape, **about)


def image_shape(state: PanelState) -> tuple[int, ...] | None:
    """The shape of an image if the run's features are its pixels."""
    shape = tuple(state.outcome.federation().dataset.input_shape)
    return shape if state.outcome.options["features"] == "pixels" and len(shape) > 1 else None


def classes(
    report: GaussReport, head: str, names: Sequence[str], *, shape: tuple[int, ...] | None, setting: str,
    klass: int | None = None, seed: int = 0,
) -> Picture:  # fmt: skip
    """Picture of the summed statistics. shape: of an image, where features are its pixels; else None, and the means
    are drawn as a table of colours. seed: of the draws."""
    counts = report.counts.sum(0)
    width, height = current_size()
    fit = (
        0.9 * height / width * min(len(names), MOST) - 3 if width > height else 0
    )  # beside two rows, names below
    rows = pictured(report, shape, seed, int(np.clip(fit, *DRAWS))) if shape else []
    with drawing() as (figure, ax):
        if rows:
            called = [
                f"{name}\n{n}" for name, n in zip(shorten(names[:MOST], 9), counts, strict=False)
            ]
            tiles(ax, [(word, of[:MOST]) for word, of in rows], columns=called, marked=klass)
        else:
            top = float(np.abs(report.means).max()) or 1.0
            image = heat_map(dress(ax, x="feature", y="class"), report.means, top=top, signed=True)
            class_ticks(ax, names, "y")
            few_ticks(ax, "x", 6, whole=True)
            colour_bar(image, ax, "mean")
    shown = (
        listed([word for word, _ in rows if word])
        if rows
        else f"means of {report.means.shape[1]} features"
    )
    sentence = f"The server has seen no sample, and knows this of {plural(int(counts.sum()), 'sample')}: {WORDS[head]}."
    if missing := [names[c] for c in np.flatnonzero(counts == 0)]:
        sentence += f" Nobody holds class {listed(missing)}, so it is never named."
    table = tabled("class | samples", zip(names, counts.tolist(), strict=True))
    return told(figure, f"Class by class: {shown}", setting, sentence, table)


def pictured(
    report: GaussReport, shape: tuple[int, ...], seed: int, count: int
) -> list[tuple[str, np.ndarray]]:
    """Rows of images: mean, deviation (brightest: the largest), `count` rows of draws."""
    held = (report.counts.sum(0) > 0)[:, None]
    means = np.where(held, report.means, np.nan)
    rows = [("mean", means)]
    if report.deviations is not None:
        spread = np.broadcast_to(report.deviations, means.shape)
        rows.append(("deviation", np.where(held, spread / max(spread.max(), 1e-12), np.nan)))
        rows += [
            ("draws" if i == 0 else "", means + part)
            for i, part in enumerate(draws(report, seed, count))
        ]
    return [(word, part.reshape(len(part), *shape)) for word, part in rows]


def draws(report: GaussReport, seed: int, count: int) -> np.ndarray:
    """What draws from the classes' Gaussians add to the means `[count, C, d]`."""
    classes, d = report.means.shape
    noise = np.random.default_rng(seed).standard_normal((count, classes, d))
    if report.covariances is None:
        return noise * report.deviations
    values, axes = np.linalg.eigh(report.covariances.astype(np.float64))
    roots = axes * np.sqrt(values.clip(min=0))[:, None]  # [G, d, d]
    return np.einsum("cij,rcj->rci", np.broadcast_to(roots, (classes, d, d)), noise)
