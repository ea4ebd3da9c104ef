"""What the server knows of each class: its mean, its spread, and draws from its Gaussian. They are
images if the features are pixels.
"""

from collections.abc import Sequence

import ipywidgets as widgets
import numpy as np
from matplotlib.axes import Axes

from ...methods.gauss import TRAINED, GaussReport
from ...panels import LabView, PanelState, make_widget
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    join_with_and,
)
from ...plots.array_types import CountPerClass
from ...plots.kit import draw_heat_map, draw_image_rows
from ...plots.style import (
    draw_colour_bar,
    get_default_figure_size_inches,
    limit_tick_count,
    set_class_ticks,
)
from ...plots.words import SettingCaption, shorten_labels
from ...value_types import SampleShape
from ..array_types import ClassMeans, GaussianDeviations
from ..runs import describe_setting

MIN_DRAWS = 2  # rows of draws
MAX_DRAWS = 5
MAX_CLASSES = 20  # classes that are drawn as columns
SPREADS = {
    "qda": "each class has a covariance of its own",
    "nb": "each class has variances of its own, and its features count as independent",
    "lda": "all classes share one covariance",
    "fedcgs": "all classes share the covariance of all samples",
    "means": "nothing is known of the spread",
    **dict.fromkeys(
        TRAINED, "a head is trained on draws, for which each class has a covariance of its own"
    ),
}
LabelledRowsOfClassImages = list[tuple[str, np.ndarray]]  # (label, images [C, ...])


class ClassStatisticsView(LabView):
    """Mean, deviation and draws of each class, from the sums of all clients."""

    name, title = "pictures", "Classes as images"
    summary = (
        "Then this shows mean, deviation and draws of each class, from the sums of all clients."
    )

    def __init__(self) -> None:
        self.draws = make_widget(
            widgets.IntSlider,
            label="Seed of the draws",
            help="Draw other images from the same Gaussians",
            width=280,
            max=20,
        )

    def draw(self, state: PanelState) -> Picture:
        return draw_class_statistics(
            state.report,
            state.outcome.options["head"],
            state.class_names,
            pixel_image_shape=find_image_shape_of_pixel_features(state),
            setting=describe_setting(state),
            selected_class=state.class_index,
            draws_seed=self.draws.value,
        )


def find_image_shape_of_pixel_features(state: PanelState) -> SampleShape | None:
    """Return the shape of an image if the run's features are its pixels, else None."""
    shape = tuple(state.outcome.federation().dataset.input_shape)
    if state.outcome.options["features"] == "pixels" and len(shape) > 1:
        return shape
    return None


# ------------------------------------------------------------------------------------------ picture
def draw_class_statistics(
    report: GaussReport,
    head_name: str,
    class_names: Sequence[str],
    *,
    pixel_image_shape: SampleShape | None,
    setting: SettingCaption | str,
    selected_class: int | None = None,
    draws_seed: int = 0,
) -> Picture:
    """Draw the summed statistics, class by class.

    pixel_image_shape: the shape of an image, if features are pixels; None: the means are drawn as a
        heat map
    draws_seed:        of the rows of draws
    """
    counts = report.counts.sum(0)
    rows = []
    if pixel_image_shape:
        rows = make_rows_of_means_and_draws(
            report,
            pixel_image_shape,
            draws_seed,
            count_rows_of_draws_that_fit_in_frame(len(class_names)),
        )
    with drawing() as (figure, ax):
        if rows:
            draw_class_tiles(ax, rows, class_names, counts, selected_class)
        else:
            draw_heat_map_of_class_means(ax, report.means, class_names)
    if rows:
        content = join_with_and([label for label, _ in rows if label])
    else:
        content = f"means of {report.means.shape[1]} features"
    samples = format_count_and_noun(int(counts.sum()), "sample")
    sentence = f"The server has seen no sample, and knows this of {samples}: {SPREADS[head_name]}."
    missing = [class_names[c] for c in np.flatnonzero(counts == 0)]
    if missing:
        sentence += f" Nobody holds class {join_with_and(missing)}, so it is never named."
    table = build_table("class | samples", zip(class_names, counts.tolist(), strict=True))
    return describe_picture(figure, f"Class by class: {content}", setting, sentence, table)


def count_rows_of_draws_that_fit_in_frame(class_count: int) -> int:
    """Count the rows of draws that fit into the frame."""
    width, height = get_default_figure_size_inches()
    if width <= height:
        return MIN_DRAWS
    rows = 0.9 * height / width * min(class_count, MAX_CLASSES)
    other_rows = 3  # mean, deviation, and the names below
    return int(np.clip(rows - other_rows, MIN_DRAWS, MAX_DRAWS))


def draw_class_tiles(
    ax: Axes,
    rows: LabelledRowsOfClassImages,
    class_names: Sequence[str],
    counts: CountPerClass,
    selected_class: int | None,
) -> None:
    """Draw a column for each class, with its name and its number of samples below."""
    columns = []
    for name, count in zip(shorten_labels(class_names[:MAX_CLASSES], 9), counts, strict=False):
        columns.append(f"{name}\n{count}")
    shown = [(label, images[:MAX_CLASSES]) for label, images in rows]
    draw_image_rows(ax, shown, column_names=columns, selected_column=selected_class)


def draw_heat_map_of_class_means(ax: Axes, means: ClassMeans, class_names: Sequence[str]) -> None:
    """Draw the means `[C, d]` as a table of colours."""
    dress(ax, x="feature", y="class")
    image = draw_heat_map(
        ax, means, largest_value=float(np.abs(means).max()) or 1.0, is_symmetric_around_zero=True
    )
    set_class_ticks(ax, class_names, "y")
    limit_tick_count(ax, "x", 6, only_whole_numbers=True)
    draw_colour_bar(image, ax, "mean")


# ------------------------------------------------------------------------------------------ numbers
def make_rows_of_means_and_draws(
    report: GaussReport, pixel_image_shape: SampleShape, draws_seed: int, draw_count: int
) -> LabelledRowsOfClassImages:
    """Make rows of images: the mean, the deviation, scaled so that the largest is 1, and
    `draw_count` rows of draws. Classes that nobody holds are nan.
    """
    is_held = (report.counts.sum(0) > 0)[:, None]
    means = np.where(is_held, report.means, np.nan)
    rows = [("mean", means)]
    if report.deviations is not None:
        deviations = np.broadcast_to(report.deviations, means.shape)
        brightness = deviations / max(deviations.max(), 1e-12)
        rows.append(("deviation", np.where(is_held, brightness, np.nan)))
        for i, noise in enumerate(sample_gaussian_deviations(report, draws_seed, draw_count)):
            rows.append(("draws" if i == 0 else "", means + noise))
    return [(label, values.reshape(len(values), *pixel_image_shape)) for label, values in rows]


def sample_gaussian_deviations(
    report: GaussReport, draws_seed: int, draw_count: int
) -> GaussianDeviations:
    """Draw from the classes' Gaussians, and return the deviations from their means, `[count, C,
    d]`.
    """
    classes, d = report.means.shape
    noise = np.random.default_rng(draws_seed).standard_normal((draw_count, classes, d))
    if report.covariances is None:
        return noise * report.deviations
    values, axes = np.linalg.eigh(report.covariances.astype(np.float64))
    roots = axes * np.sqrt(values.clip(min=0))[:, None]  # [1 or C, d, d]
    roots = np.broadcast_to(roots, (classes, d, d))
    return np.einsum("cij,rcj->rci", roots, noise)
