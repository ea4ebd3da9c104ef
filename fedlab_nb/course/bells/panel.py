"""The panel: bells that can be dragged, three heads, and the button that lets the sums place the bells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import numpy as np
import traitlets
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Ellipse

from ...errors import check_allowed_name
from ...panels.saved import SavedPanel
from ...plots import Picture
from ...plots.kit import describe_picture
from ...plots.style import INK, drawing, dress, list_class_colours
from ...plots.words import build_table, format_percent, join_with_and
from ...value_types import Accuracy0To1
from .plane import (
    COLUMNS,
    DIGITS,
    EDGE,
    HEADS,
    ROWS,
    Bell,
    HeadName,
    classify_points_by_bells,
    fit_bells_to_all_training_images,
    make_misplaced_starting_bells,
    make_plane_grid_points,
    measure_test_accuracy_of_bells,
    project_images_to_plane,
)

HERE = Path(__file__).parent


class Field(anywidget.AnyWidget):
    """The plane in the browser (`bells.js`). Both sides change `bells`; only Python changes the other traits.

    bells:   for each digit the fields of its `Bell`, as a dict
    regions: the class of each place of the grid, one digit a place
    points:  [x, y, class] of each image that is drawn
    names:   the digits, as text
    colours: a colour for each digit
    shape:   COLUMNS, ROWS and EDGE
    """

    _esm = (HERE / "bells.js").read_text(encoding="utf-8")
    bells: Any = traitlets.List().tag(sync=True)
    regions = traitlets.Unicode().tag(sync=True)
    points: Any = traitlets.List().tag(sync=True)
    names: Any = traitlets.List().tag(sync=True)
    colours: Any = traitlets.List().tag(sync=True)
    shape: Any = traitlets.List([COLUMNS, ROWS, EDGE]).tag(sync=True)


class BellsPanel(SavedPanel):
    """Public: `bells`, `head`, `test_accuracy`, `place_by_sums`, `sentence`, `still`."""

    def __init__(self, head: HeadName) -> None:
        train, _ = project_images_to_plane()
        points = [
            [round(float(x), 3), round(float(y), 3), int(c)]
            for (x, y), c in zip(train.x, train.y, strict=True)
        ]
        self.field = Field(
            bells=[asdict(bell) for bell in make_misplaced_starting_bells()],
            points=points,
            names=[str(digit) for digit in DIGITS],
            colours=list_hex_colour_of_each_digit(),
        )
        self.heads = widgets.ToggleButtons(
            options=[(words, name) for name, words in HEADS.items()], value=head
        )
        self.heads.style.button_width = "auto"
        self.sums = widgets.Button(description="Let the sums place them", layout={"width": "auto"})
        self.reset = widgets.Button(description="Start again", layout={"width": "auto"})
        self.note = widgets.HTML()
        self.field.observe(lambda _: self._refresh_regions_and_sentence(), "bells")
        self.heads.observe(lambda _: self._refresh_regions_and_sentence(), "value")
        self.sums.on_click(lambda _: self.place_by_sums())
        self.reset.on_click(lambda _: self._set_bells(make_misplaced_starting_bells()))
        buttons = widgets.HBox([self.sums, self.reset])
        super().__init__([self.heads, self.field, buttons, self.note])
        self.add_class(
            "fl-live"
        )  # while the panel is on the page, the still picture beside it is hidden
        self._refresh_regions_and_sentence()

    @property
    def bells(self) -> list[Bell]:
        """The bells as they stand."""
        return [parse_bell_of_browser(values) for values in self.field.bells]

    @property
    def head(self) -> HeadName:
        """Which of HEADS draws the borders."""
        return self.heads.value

    @property
    def test_accuracy(self) -> Accuracy0To1:
        """The share of test images that these bells get right."""
        return measure_test_accuracy_of_bells(self.bells, self.head)

    @property
    def sentence(self) -> str:
        """A sentence on what these bells get right, and what the bells of the sums would."""
        best = measure_test_accuracy_of_bells(fit_bells_to_all_training_images(), self.head)
        words = HEADS[self.head][0].lower() + HEADS[self.head][1:]
        return (
            f"With {words} your bells get {format_percent(self.test_accuracy)} of the test images right; "
            f"the bells that the sums give get {format_percent(best)}."
        )

    def place_by_sums(self) -> None:
        """Put each bell at the mean and with the covariance of its digit's images."""
        self._set_bells(fit_bells_to_all_training_images())

    def _set_bells(self, bells: Sequence[Bell]) -> None:
        self.field.bells = [asdict(bell) for bell in bells]

    def _refresh_regions_and_sentence(self) -> None:
        labels = classify_points_by_bells(self.bells, self.head, make_plane_grid_points())
        self.field.regions = "".join(str(label) for label in labels.tolist())
        self.note.value = f'<p role="status">{self.sentence}</p>'

    def still(self) -> Picture:
        """Draw the plane as it is now."""
        return draw_bells_on_plane(self.bells, self.head, self.sentence)

    def __repr__(self) -> str:
        return self.sentence


def parse_bell_of_browser(values: Mapping[str, float]) -> Bell:
    """Make a bell of the values, by field of `Bell`, that the browser sends."""
    return Bell(**{name: float(values[name]) for name in Bell.__dataclass_fields__})


def list_hex_colour_of_each_digit() -> list[str]:
    """List a colour for each of DIGITS, as everywhere in the course."""
    return [to_hex(list_class_colours(10)[digit]) for digit in DIGITS]


def draw_bells_on_plane(bells: Sequence[Bell], head: HeadName, sentence: str) -> Picture:
    """Draw regions, points and ellipses at two standard deviations."""
    train, _ = project_images_to_plane()
    height = EDGE * ROWS / COLUMNS
    colours = list_hex_colour_of_each_digit()
    rgb = np.array([to_rgb(colour) for colour in colours])
    labels = classify_points_by_bells(bells, head, make_plane_grid_points()).reshape(ROWS, COLUMNS)
    rows = []
    with drawing(size=(7.2, 5.0)) as (figure, ax):
        dress(ax, title=HEADS[head])
        opacity = np.full(labels.shape, 0.25)
        regions = np.dstack([rgb[labels], opacity])
        ax.imshow(regions, extent=(-EDGE, EDGE, -height, height), interpolation="nearest")
        for i, (digit, bell) in enumerate(zip(DIGITS, bells, strict=True)):
            x, y = train.x[train.y == i].T
            ax.plot(x, y, "o", ms=3, mew=0, alpha=0.6, color=colours[i])
            variances, axes = np.linalg.eigh(bell.covariance)  # in ascending order
            short, long = np.sqrt(variances)
            angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
            # From end to end, at two standard deviations.
            ellipse = Ellipse(
                bell.mean, 4 * long, 4 * short, angle=angle, fill=False, ec=INK, lw=1.8
            )
            ax.add_patch(ellipse)
            ax.text(*bell.mean, str(digit), ha="center", va="center", weight="bold", color=INK)
            numbers = (*bell.mean, long, short)
            rows.append((str(digit), *(f"{number:.2f}" for number in numbers)))
        ax.set(xlim=(-EDGE, EDGE), ylim=(-height, height), xticks=[], yticks=[])
    return describe_picture(
        figure,
        f"Points of the digits {join_with_and([str(d) for d in DIGITS])}, a bell for each, and the borders",
        "two directions of the digits' pixels",
        sentence,
        build_table("digit | x | y | long half axis | short half axis", rows),
    )


def show(*, head: HeadName = "qda") -> BellsPanel:
    """Make the panel.

    head: which of HEADS draws the borders at first; UsageError if it is none of them
    """
    return BellsPanel(check_allowed_name("head", head, HEADS))
