"""The panel: α, seed and start above the playground's view of points in the plane.

Each move of the slider trains the clients again and draws the squares again.
"""

from __future__ import annotations

import html
import traceback

from ipywidgets import HTML

from ...errors import check_allowed_name
from ...panels import PanelState, saved, theme
from ...panels.controls import check_and_set_widget_value, make_alpha_slider, make_seed_field
from ...panels.plane import SQUARES, PlaneView
from ...panels.views import Chores, ViewWidgets
from ...plots import Picture
from ...plots.plane import compute_frame_height_inches
from ...plots.style import use_figure_size

WIDTH = 11.5  # inches, of all squares together
MIN_PIXELS_PER_INCH = 72
MAX_PIXELS_PER_INCH = 125
SizeInInches = tuple[float, float]  # width and height
# The size of a picture that is in no frame.
PAGE: SizeInInches = (WIDTH, compute_frame_height_inches(SQUARES, WIDTH))
HEIGHT = "270px"  # of the frame, until its width is known


class PlanePanel(saved.SavedPanel):
    """What `show` makes. Public: `set`, `picture`, `sentence`, `error`, and the controls alpha,
    seed and start.
    """

    def __init__(self, alpha: float, seed: int, start: str) -> None:
        self.error = ""
        self.alpha = make_alpha_slider(width=360)
        self.seed = make_seed_field(width=120)
        self._plane = PlaneView()
        self.start = self._plane.start
        self._plane.controls = [self.alpha, self.seed, self.start]
        self._view = ViewWidgets(self._plane)
        self._view.frame.layout.height = HEIGHT
        self._view.caption.layout.display = "none"
        self._failed = theme.make_widget(HTML, "fl-error")
        style = theme.make_widget(HTML, "fl-style", value=f"<style>{theme.STYLE}</style>")
        super().__init__(
            [style, self._failed, self._view.box, theme.make_widget(Chores, "fl-style")]
        )
        self.add_class("fl-root").add_class("fl-live").add_class("fl-plane")
        self.set(alpha=alpha, seed=seed, start=start)
        for widget in (self.alpha, self.seed, self.start):
            widget.observe(lambda _: self._redraw_or_show_error(), "value")
        self._view.frame.observe(lambda _: self._fit_frame_height_and_redraw(), "size")
        self._redraw_or_show_error()

    def set(self, **values: float | str) -> None:
        """Give controls a value: alpha, seed, start. UsageError for other names and values."""
        for name, value in values.items():
            check_allowed_name("control", name, ("alpha", "seed", "start"))
            check_and_set_widget_value(getattr(self, name), name, value)

    def _draw_squares(self) -> Picture:
        """Draw the view's picture at the controls' setting."""
        alpha = float(f"{self.alpha.value:.2g}")
        return self._plane.draw(PanelState(settings={"alpha": alpha, "seed": self.seed.value}))

    @property
    def picture(self) -> Picture:
        """The squares that are shown."""
        return self._view.picture

    @property
    def sentence(self) -> str:
        """What the picture says, in words."""
        return self.picture.sentence

    @property
    def pixels_per_inch(self) -> float:
        """How many pixels an inch has in the frame as it is now, within MIN_ and MAX_PIXELS_PER_INCH."""
        width_in_pixels = self._view.frame.size[0]
        return min(max(width_in_pixels / WIDTH, MIN_PIXELS_PER_INCH), MAX_PIXELS_PER_INCH)

    @property
    def frame_size_in_inches(self) -> SizeInInches:
        """The size of a picture that fills the frame as it is now; PAGE if the frame has no size yet."""
        width, height = self._view.frame.size
        if not width or not height:
            return PAGE
        return width / self.pixels_per_inch, height / self.pixels_per_inch

    def _fit_frame_height_and_redraw(self) -> None:
        """Give the frame the height that the squares need in its new width, and draw them again."""
        width = self._view.frame.size[0] / self.pixels_per_inch
        height_in_pixels = compute_frame_height_inches(SQUARES, width) * self.pixels_per_inch
        self._view.frame.layout.height = f"{height_in_pixels:.0f}px"
        self._redraw_or_show_error()

    def _redraw_or_show_error(self) -> None:
        """Draw the squares again; an error is shown in their place, and kept as `error`."""
        try:
            with use_figure_size(self.frame_size_in_inches):
                self._view.show_picture(self._draw_squares(), "")
            self.error = ""
            self._failed.value = ""
        except Exception as error:  # a notebook shows no error of a callback
            self.error = traceback.format_exc()
            self._failed.value = f'<p role="alert">{html.escape(str(error))}</p>'

    def still(self) -> Picture:
        """Draw the squares as they are now, in the size of a page."""
        with use_figure_size(PAGE):
            return self._draw_squares()

    def __repr__(self) -> str:
        return self.sentence


def show(*, alpha: float = 0.1, seed: int = 0, start: str = "common") -> PlanePanel:
    """Make the panel.

    alpha, seed, start: first values of the controls; start is "common" or "own"

    UsageError for a value that a control does not have.
    """
    return PlanePanel(alpha, seed, start)
