"""The synthetic images of an epoch, a column for each class; a sentence says how hard they are for
teacher and student. Co-Boosting and the other data-free methods (DENSE, F-DAFL, F-ADI) have this
view.
"""

from collections.abc import Sequence

import numpy as np
from ipywidgets import SelectionSlider
from matplotlib.axes import Axes

from ...data import Dataset
from ...methods.parts.synthesis import SynthesisReport
from ...panels import LabSpec, LabView, PanelState, make_slider_player, make_widget
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    drawing,
    format_count_and_noun,
    format_percent,
    write_axes_title,
)
from ...plots.array_types import SampleLabels
from ...plots.kit import draw_image_rows
from ...plots.style import ACCENT, INK
from ...plots.words import SettingCaption, shorten_labels
from ..array_types import ImagePerClass, Images
from ..runs import describe_setting

IMAGES_A_CLASS = 3  # at most
MAX_COLUMNS = 10  # with more classes there are no columns: the images stand in rows of this length

# The methods whose lab has this view alone, and their knobs.
DATA_FREE = {
    "dense": ("epochs", "images", "generator_steps", "bn_weight", "div_weight", "temperature"),
    "fdafl": ("epochs", "images", "generator_steps", "temperature"),
    "fadi": ("epochs", "images", "temperature"),
}


class SyntheticImagesView(LabView):
    """The synthetic images of an epoch, and a replay over the epochs."""

    name, title, ready = "images", "Synthetic images", "live"
    summary = "Then this shows the synthetic images of each epoch."

    def __init__(self) -> None:
        self.epoch = make_widget(
            SelectionSlider,
            label="Server epoch",
            help="The epoch whose images are shown",
            width=330,
            label_width=88,
            options=[("–", 0)],
        )
        self.play = make_slider_player(self.epoch, interval=700, tooltip="Replay the epochs")

    def adapt(self, state: PanelState) -> None:
        """Offer the known epochs. If the last one is shown, move on to the new last one."""
        options = [(str(epoch), i) for i, epoch in enumerate(state.report.synthetic_epochs)]
        if list(self.epoch.options) == options:
            return
        last_index = len(options) - 1
        is_at_end = self.epoch.index in (None, len(self.epoch.options) - 1)
        index = last_index if is_at_end else min(self.epoch.index, last_index)
        self.epoch.options = options
        self.epoch.index = index
        self.play.max = last_index

    def draw(self, state: PanelState) -> Picture:
        report = state.report
        dataset = state.federation.dataset
        has_same_shape = dataset.x_test.shape[1:] == report.synthetic_images.shape[2:]
        return draw_synthetic_images(
            report,
            state.class_names,
            setting=describe_setting(state),
            stored_epoch_index=min(self.epoch.value, len(report.synthetic_epochs) - 1),
            planned_epochs_or_0_if_ended=get_planned_epochs_of_running_run_or_0(state),
            real_image_per_class=find_first_test_image_of_each_class(dataset)
            if has_same_shape
            else None,
            selected_class=state.class_index,
        )


def get_planned_epochs_of_running_run_or_0(state: PanelState) -> int:
    """Return the number of epochs of a run in progress; 0 when it has ended."""
    return state.knobs["epochs"] if state.outcome is None else 0


def make_data_free_lab_spec(method: str) -> LabSpec:
    """Make the lab of `method`, a key of DATA_FREE."""
    return LabSpec(
        method=method,
        name="lab",
        companions=("ensemble", "feddf"),
        knobs=DATA_FREE[method],
        settings={"seeds": 1, "ensemble.rule": "logits"},  # the ensemble is the teacher
        views=(SyntheticImagesView,),
    )


def find_first_test_image_of_each_class(dataset: Dataset) -> ImagePerClass | None:
    """Return the first test image of each class `[C, c, H, W]`. None if a class has none, or if the
    samples are not images.
    """
    labels = dataset.y_test.numpy()
    rows = []
    for c in range(dataset.classes):
        rows_of_class = np.flatnonzero(labels == c)
        if not len(rows_of_class):
            return None
        rows.append(int(rows_of_class[0]))
    images = dataset.x_test[rows].numpy()
    return images if images.ndim > 2 else None


# ------------------------------------------------------------------------------------------ picture
def draw_synthetic_images(
    report: SynthesisReport,
    class_names: Sequence[str],
    *,
    setting: SettingCaption | str,
    stored_epoch_index: int = -1,
    planned_epochs_or_0_if_ended: int = 0,
    real_image_per_class: ImagePerClass | None = None,
    selected_class: int | None = None,
) -> Picture:
    """Draw the synthetic samples of one epoch by intended class: images, or features as strips.

    stored_epoch_index:           which of the epochs that the report has, -1 for the last
    planned_epochs_or_0_if_ended: number of epochs of the whole run
    real_image_per_class:         one real image of each class `[C, c, H, W]`, for comparison
    """
    images = report.synthetic_images[stored_epoch_index]
    labels = report.synthetic_labels[stored_epoch_index]
    epoch = int(report.synthetic_epochs[stored_epoch_index])
    planned_epochs_or_0_if_ended = max(planned_epochs_or_0_if_ended, len(report.difficulty))
    pixels = images.astype(float)
    if images.ndim == 4:
        pixels /= 255
    with drawing() as (figure, ax):
        if len(class_names) > MAX_COLUMNS:
            draw_labelled_image_rows(ax, pixels, labels, class_names, selected_class)
        else:
            draw_image_columns_by_class(
                ax, pixels, labels, class_names, real_image_per_class, selected_class
            )
        write_axes_title(ax, f"Epoch {epoch} of {planned_epochs_or_0_if_ended}", 6)
    difficulty = float(report.difficulty[epoch - 1])
    disagreement = float(report.disagreement[epoch - 1])
    sentence = (
        f"Images of epoch {epoch}: the ensemble gives the wanted class "
        f"{format_percent(1 - difficulty)} on average, and the server model still disagrees with "
        f"it on {format_percent(disagreement)} of them."
    )
    rows = []
    measures = zip(report.difficulty, report.disagreement, strict=True)
    for number, (difficulty, disagreement) in enumerate(measures, 1):
        rows.append((number, format_percent(difficulty), format_percent(disagreement)))
    count = format_count_and_noun(len(images), "synthetic image")
    return describe_picture(
        figure,
        f"{count} of server epoch {epoch} of {planned_epochs_or_0_if_ended} by intended class",
        setting,
        sentence,
        build_table("epoch | difficulty | disagreement", rows),
    )


def draw_image_columns_by_class(
    ax: Axes,
    images_0_to_1: Images,
    intended_labels: SampleLabels,
    class_names: Sequence[str],
    real_image_per_class: ImagePerClass | None,
    selected_class: int | None,
) -> None:
    """Draw a column for each class, with a real image on top. `images_0_to_1 [S, ...]` have values 0–1."""
    rows: list[tuple[str, Sequence[np.ndarray | None]]] = []
    if real_image_per_class is not None:
        rows.append(("real", real_image_per_class))
    for row in range(IMAGES_A_CLASS):
        images_of_row: list[np.ndarray | None] = []
        for c in range(len(class_names)):
            images_of_class = images_0_to_1[intended_labels == c]
            images_of_row.append(images_of_class[row] if row < len(images_of_class) else None)
        rows.append(("made" if row == 0 else "", images_of_row))
    draw_image_rows(
        ax, rows, column_names=shorten_labels(class_names, 9), selected_column=selected_class
    )


def draw_labelled_image_rows(
    ax: Axes,
    images_0_to_1: Images,
    intended_labels: SampleLabels,
    class_names: Sequence[str],
    selected_class: int | None,
) -> None:
    """Draw all images in rows, with the name of the intended class below each."""
    words = {}
    for i, label in enumerate(intended_labels):
        place = (i // MAX_COLUMNS, i % MAX_COLUMNS)
        colour = ACCENT if label == selected_class else INK
        words[place] = (shorten_labels([class_names[label]], 8)[0], colour)
    starts = range(0, len(images_0_to_1), MAX_COLUMNS)
    draw_image_rows(
        ax,
        [("", images_0_to_1[start : start + MAX_COLUMNS]) for start in starts],
        words_under_tiles=words,
    )
