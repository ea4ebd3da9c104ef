"""The views: a row of tabs, and for each view a caption, a sentence, its own controls, a picture of fixed height and
its table.

A view is out of date if the part of the state on which it depends has changed. It is drawn when it becomes visible.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Literal, TypedDict

import anywidget
import ipywidgets as widgets
import traitlets

from ..front import HERE as FRONT
from ..front import join_front_modules_into_expression, join_modules
from ..plots import Picture
from ..plots.marks import get_hover_texts_and_keys_by_mark_id
from ..plots.style import SIZE, draw_light_dark_svg_element, use_figure_size
from ..plots.vector import get_thumbnail_sheet_or_empty
from ..value_types import JsonValue
from .figures import COMMON
from .lab_view import (
    LabView,
    PanelState,
    draw_view_with_words_for_its_samples,
    estimate_button_job_cost,
)
from .theme import (
    PICTURE_HEIGHT,
    HandlerPause,
    make_paragraph_html,
    make_tab_buttons,
    make_table_html,
    make_widget,
    set_menu_options_and_keep_choice,
    show_only_named_widget,
    show_widgets_if,
    toggle_class,
)
from .worker import Worker, run_on_idle_or_new_thread

HERE = Path(__file__).parent
FRAME = (
    "const { NO_SELECTION, announceSelection, chooseMark, watchSelection } = "
    f"{join_front_modules_into_expression('selection')};\n{(HERE / 'frame.js').read_text(encoding='utf-8')}"
)
# The least seconds between two drawings while a job runs. The pause is also at least twice as long as the drawing, so
# that drawing takes at most a third of the time.
REDRAW = 0.15
# How many pixels of the screen an inch of a picture has. It is fixed, so that the letters of a picture are as large as
# those of the panel: a larger frame has more room, and no larger letters. In a small frame they are a little smaller.
PIXELS_AN_INCH = 96
SMALL_PIXELS_AN_INCH = 76
SMALL_FRAME = 480  # pixels; a frame up to this width is small
# A table in place of a picture. It scrolls, so it needs a tabindex for the keyboard.
WORDS = '<div class="fl-table fl-words" tabindex="0" role="region" aria-label="table">{}</div>'
SOON = 2.0  # seconds; shorter work of a view's button begins by itself
PROJECTOR = "For a class, key P: larger letters, few controls, and every result is covered until it is guessed"
NOBODY = -1
NONE = ("none", NOBODY)
EARLIER = "Run {run} has no result yet. This is the picture from before it."


def make_scene_frame_javascript_text() -> str:
    """Make the JavaScript module of a frame with scenes, from modules of `front`, `frame.js` and `scene_frame.js`."""
    style = (FRONT / "scene.css").read_text(encoding="utf-8")
    scenes = (HERE / "scene_frame.js").read_text(encoding="utf-8")
    return (
        "const { createRace, createHand, html, isDark, watchTheme } = "
        f"{join_front_modules_into_expression('race', 'hand', 'dom', 'theme')};\n"
        f"const SCENE_STYLE = {json.dumps(style)};\n{FRAME}{scenes}"
        "export default { render: renderScene };\n"
    )


class Chores(anywidget.AnyWidget):
    """An invisible widget that does what the page needs besides a panel's widgets (`chores.js`).

    It gives sliders and tabs names and values for assistive technology, and shows a message when the kernel is gone.
    """

    _esm = (HERE / "chores.js").read_text(encoding="utf-8")


class Frame(anywidget.AnyWidget):
    """The frame of a picture: an SVG that fills it, or HTML. Its marks react to pointer and keyboard.

    Python sets:

    value:      an SVG element, or HTML
    alt:        the alt text of the SVG
    thumbnails: the sheet of small images that marks show (`plots.vector.attach_thumbnail_sheet`), or {}
    marks:      {id: hover text and keys of a mark}, see `plots.marks`
    held:       the method that is highlighted in all pictures, or ""
    drawn:      the number of drawings, which also changes if a drawing equals the one before
    selection:  {"client": …, "class_index": …} that are selected, None for none

    The browser (`frame.js`) sets:

    size:       width and height of the visible frame in pixels, [0, 0] before it was visible
    picked:     the mark that was clicked last, with a number that counts the clicks

    Within a window, `front/selection.js` passes a selection on to all parts without Python.
    """

    _esm = FRAME + "export default { render };\n"
    value = traitlets.Unicode().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)
    thumbnails: Any = traitlets.Dict().tag(sync=True)
    marks: Any = traitlets.Dict().tag(sync=True)
    held = traitlets.Unicode().tag(sync=True)
    drawn = traitlets.Int().tag(sync=True)
    size = traitlets.List([0, 0]).tag(sync=True)
    picked: Any = traitlets.Dict().tag(sync=True)
    selection: Any = traitlets.Dict().tag(sync=True)


class SceneFrame(Frame):
    """A frame whose picture the browser draws from data, frame by frame (`scene_frame.js`).

    scene: the data and their `kind`; {}: the frame has an SVG or HTML, as every frame
    given: what a person has set in the scene (`LabView.adopt_values_set_in_browser_scene`)
    """

    _esm = make_scene_frame_javascript_text()
    scene: Any = traitlets.Dict().tag(sync=True)
    given: Any = traitlets.Dict().tag(sync=True)


class Ink(anywidget.AnyWidget):
    """A field in which a person draws a digit with mouse, pen or finger. `front/pen.js` converts it to an image like
    those of the package's digits.

    seen:  the present drawing, 64 numbers 0-1, row by row; [] as long as there is no ink
    value: the same as it was when the pen was last lifted
    """

    _esm = join_modules([FRONT / "dom.js", FRONT / "pen.js"]) + (HERE / "ink.js").read_text(
        encoding="utf-8"
    )
    seen: Any = traitlets.List().tag(sync=True)
    value: Any = traitlets.List().tag(sync=True)


Scene = Mapping[str, JsonValue]  # what `front` draws: its `kind`, and the data of this kind


class ViewWidgets:
    """The widgets of one `LabView`. `button` starts the view's own work, if it has any.

    Their CSS classes are fl-view-NAME for all, and within it fl-caption, fl-sentence, fl-tools (the view's own
    controls) and fl-frame (the picture). A view that is out of date and not visible has the class fl-old, a view of
    another setting than that of the controls has fl-older.
    """

    def __init__(self, lab_view: LabView) -> None:
        self.lab_view = lab_view
        self.caption = make_widget(widgets.HTML, "fl-caption")
        self.sentence = make_widget(widgets.HTML, "fl-sentence")
        frame = SceneFrame if lab_view.has_scene else Frame
        self.frame = make_widget(frame, "fl-frame", width="auto", layout={"height": PICTURE_HEIGHT})
        if lab_view.has_scene:
            self.frame.observe(
                lambda change: lab_view.adopt_values_set_in_browser_scene(change["new"]), "given"
            )
        self.button: widgets.Button | None = None
        tools = list(lab_view.controls)
        if lab_view.work_label:
            self.button = make_widget(
                widgets.Button,
                "fl-work",
                label=lab_view.work_label,
                help=lab_view.work_help or lab_view.work_label,
                width="auto",
            )
            tools.append(self.button)
        children = [self.caption, self.sentence]
        if tools:
            children.append(make_widget(widgets.HBox, "fl-tools", children=tools))
        children.append(self.frame)
        classes = ("fl-view", f"fl-view-{lab_view.name}", "fl-old")
        self.box = make_widget(widgets.VBox, *classes, children=children)
        self.picture: Picture | None = None

    def show_picture(self, picture: Picture, caption: str, svg_or_empty: str = "") -> None:
        """Show a picture. svg_or_empty: its figure as SVG, if that was drawn already"""
        self.box.remove_class("fl-old")
        if picture.waits:
            self.show_text_in_place_of_picture(picture.sentence, caption, "fl-todo")
            self.picture = picture
            return
        self.picture = picture
        figure = picture.figure
        marks = {}
        thumbnails = {}
        if picture.scene:
            svg_or_empty = ""
        elif figure is not None:
            svg_or_empty = svg_or_empty or draw_light_dark_svg_element(figure)
            marks = get_hover_texts_and_keys_by_mark_id(figure)
            thumbnails = get_thumbnail_sheet_or_empty(figure)
        value = svg_or_empty
        if picture.tabled or (figure is None and not picture.scene):
            image = (
                f'<div role="img" aria-label="{escape(picture.alt)}">{svg_or_empty}</div>'
                if svg_or_empty
                else ""
            )
            value = WORDS.format(
                image + make_table_html(picture.table, has_column_names_in_cells=True)
            )
        self.box.remove_class("fl-waits")
        self.box.remove_class("fl-unready")
        toggle_class(self.box, "fl-tabled", figure is None or picture.tabled)
        self.set_caption(caption)
        self.sentence.value = make_paragraph_html(picture.sentence, "status", picture.detail)
        # Last, so that the texts are there before the picture is visible.
        with self.frame.hold_sync():
            self.frame.alt = picture.alt
            self.frame.thumbnails = thumbnails
            self.frame.marks = marks
            self.frame.value = value
            self.frame.drawn += 1
            self._set_browser_scene(picture.scene)

    def _set_browser_scene(self, scene: Scene) -> None:
        """Let the browser draw a scene; {} for none."""
        if self.lab_view.has_scene:
            self.frame.scene = dict(scene)

    def show_text_in_place_of_picture(
        self,
        text: str,
        caption: str = "",
        style: Literal["", "fl-todo"] = "",
        *,
        has_result: bool = True,
    ) -> None:
        """Show a text in place of a picture.

        style: "fl-todo" for a text on what to do to get a picture, which takes less room
        has_result: False hides the controls of a view that has nothing to draw yet: what they set is that of a run
        """
        self.picture = None
        toggle_class(self.box, "fl-unready", not has_result)
        self._set_browser_scene({})
        self.box.remove_class("fl-tabled")
        toggle_class(self.box, "fl-waits", bool(style))
        self.frame.value = f'<div class="fl-empty {style}">{make_paragraph_html(text)}</div>'
        self.sentence.value = ""
        self.set_caption(caption)

    def set_dimmed(self, is_dimmed: bool) -> None:
        """Dim a view of an older setting than that of the controls."""
        toggle_class(self.box, "fl-older", is_dimmed)

    def set_caption(self, caption: str) -> None:
        self.caption.value = make_paragraph_html(caption)


# The `client`, `class_index` and `method` of the mark, as far as it has them; or `none`.
ClickedMark = Mapping[str, Any]


class DisplayOptions(TypedDict):
    """What is visible and selected, as parts of `PanelState`."""

    view: str
    frame: tuple[int, int]
    shows_stored: bool
    client: int | None
    class_index: int | None


class TabOptions(TypedDict, total=False):
    """Arguments of `TabbedViews` on its tabs."""

    names_without_tab: Sequence[str]
    titles_by_name: Mapping[str, str]
    groups_tabs: bool


class TabbedViews:
    """All views under their tabs, in this order; one of them is visible.

    `take_over_state_without_drawing(state)` marks the views that depend on what has changed as out of
    date; their names are in `dirty`.
    `draw_visible_view_if_out_of_date()` draws the visible view if it is out of date.

    lock:              held while something is shown
    handler_pause:     on while a view adapts its own controls
    prepare_in_background_if_idle: called with a view and a state, to begin the view's slow work
    names_without_tab: names of views that have no tab, and are drawn only when they are requested
    titles_by_name:    titles of tabs, by view, instead of the views' own titles
    groups_tabs:       whether a lab's own views, which come first or last, have a row of tabs of their own
    """

    def __init__(
        self,
        lab_views: Sequence[LabView],
        lock: threading.RLock,
        handler_pause: HandlerPause,
        prepare_in_background_if_idle: Callable[[LabView, PanelState], None],
        names_without_tab: Sequence[str] = (),
        titles_by_name: Mapping[str, str] | None = None,
        groups_tabs: bool = False,
    ) -> None:
        self.groups_tabs = groups_tabs
        self._lock = lock
        self._handler_pause = handler_pause
        self._prepare_view_in_background_if_idle = prepare_in_background_if_idle
        self.views = {lab_view.name: ViewWidgets(lab_view) for lab_view in lab_views}
        self.without_tab = set(names_without_tab)
        self._make_tabs(lab_views, titles_by_name or {})
        self._make_footer()
        self.table = make_widget(widgets.HTML, "fl-table", "fl-numbers")
        boxes = [view.box for view in self.views.values()]
        children = [self.tabs, *boxes, self._foot, self.table]
        self.box = make_widget(widgets.VBox, "fl-main", children=children)
        self.allows_stored = True  # whether stored results are to be seen
        self.frame = (0, 0)  # width and height of the frames in pixels
        self.held = ""  # the method that is highlighted in all pictures
        self.state = PanelState()
        self.dirty = set(self.views)  # names of the views that are out of date
        # Names of the views that could not be drawn in the background.
        self._failed: set[str] = set()
        self.has_news = False  # whether a run has new results for the visible view
        self._resting_until = 0.0  # seconds; before this time nothing is drawn while a run goes on
        self._hide_views_of_other_tabs()
        self.tables.observe(lambda _: self.show_table_if_on(), "value")
        self.show_table_if_on()

    def _make_tabs(self, lab_views: Sequence[LabView], titles_by_name: Mapping[str, str]) -> None:
        options = {}
        for lab_view in lab_views:
            if lab_view.name not in self.without_tab:
                options[titles_by_name.get(lab_view.name, lab_view.title)] = lab_view.name
        first = "partition"
        if first in self.without_tab:
            first = next(iter(options.values()))
        self.tabs = make_tab_buttons(options, first)
        own = [lab_view for lab_view in lab_views if type(lab_view) not in COMMON]
        if not self.groups_tabs or not own:
            return
        if lab_views[0] in own:
            self.tabs.add_class(f"fl-split-{len(own)}")
        else:
            self.tabs.add_class(f"fl-split-{len(lab_views) - len(own)}")
            self.tabs.add_class("fl-own-last")

    def _make_footer(self) -> None:
        """Make the row below the pictures: menus for the selection, and buttons such as that of the table."""
        self.tables = make_widget(
            widgets.ToggleButton,
            "fl-tables",
            label="Numbers as a table",
            help="The numbers of this picture",
        )
        self.enlarge = make_widget(
            widgets.ToggleButton,
            "fl-enlarge",
            label="Enlarge",
            help="The picture over the whole width; the controls come back with a second click",
        )
        self.projector = make_widget(
            widgets.ToggleButton, "fl-to-guess", label="Projector: guess first", help=PROJECTOR
        )
        self.reveal = make_widget(
            widgets.ToggleButton,
            "fl-reveal",
            label="Show the result",
            help="Once it is guessed: key G, or a click on the covered picture",
        )
        menu = {"help": "It is marked in every view", "options": [NONE]}
        self.client = make_widget(
            widgets.Dropdown, "fl-client", label="Look at client", width=172, label_width=92, **menu
        )
        self.class_index = make_widget(
            widgets.Dropdown, "fl-class", label="class", width=134, label_width=36, **menu
        )
        buttons = [self.tables, self.enlarge, self.projector, self.reveal]
        parts = [self.client, self.class_index, *buttons]
        self._foot = make_widget(widgets.HBox, "fl-foot", children=parts)

    @property
    def visible_view_name(self) -> str:
        return self.tabs.value

    def __getitem__(self, name: str) -> ViewWidgets:
        return self.views[name]

    def select_view(self, view_name: str) -> None:
        self.tabs.value = view_name

    # ------------------------------------------------------------------------------------------ what is looked at
    def call_when_display_options_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` when another client, class or view is selected, or the frames have another size.

        For another view it is called before that becomes visible, so that no old picture flashes up.
        """

        def show_tab(_: object) -> None:
            callback()
            self._hide_views_of_other_tabs()
            self.show_table_if_on()

        def resize(change: Mapping[str, Any]) -> None:
            size = tuple(change["new"])
            if size != self.frame:
                self.frame = size
                callback()

        self.tabs.observe(show_tab, "value")
        for choice in (self.client, self.class_index):
            choice.observe(lambda _: self._send_selection_to_frames(), "value")
        for choice in (self.client, self.class_index, self.projector, self.reveal):
            choice.observe(lambda _: callback(), "value")
        for view in self.views.values():
            view.frame.observe(resize, "size")
            view.frame.observe(
                lambda change: self._select_or_unselect_mark(change["new"]), "picked"
            )

    def set_client_and_class_options(
        self, client_names: Sequence[str], class_names: Sequence[str]
    ) -> None:
        """Set the clients and classes in the menus; a selection stays if it is still among them."""
        for menu, names in ((self.client, client_names), (self.class_index, class_names)):
            options = [(str(name), number) for number, name in enumerate(names)]
            set_menu_options_and_keep_choice(menu, (NONE, *options))

    @property
    def display_options(self) -> DisplayOptions:
        """What is visible and selected, as parts of the state. Stored results are not shown while a class guesses."""
        is_revealed = self.reveal.value or not self.projector.value
        return {
            "view": self.visible_view_name,
            "frame": self.frame,
            "shows_stored": self.allows_stored and is_revealed,
            "client": get_chosen_menu_number_or_none(self.client),
            "class_index": get_chosen_menu_number_or_none(self.class_index),
        }

    @property
    def picture_size_inches(self) -> tuple[float, float]:
        """The size of pictures that fill the frames as they are now."""
        width, height = self.frame
        if not width or not height:
            return SIZE
        pixels_an_inch = PIXELS_AN_INCH if width > SMALL_FRAME else SMALL_PIXELS_AN_INCH
        return width / pixels_an_inch, height / pixels_an_inch

    def _select_or_unselect_mark(self, mark: ClickedMark) -> None:
        """Select the client and class of a mark that was clicked, and highlight its method in all pictures.

        A second click on the same mark undoes this, and Escape (`none`) undoes every selection.
        """
        if mark.get("none"):
            self.highlight_method_in_all_pictures("")
            self.client.value = NOBODY
            self.class_index.value = NOBODY
            return
        method = mark.get("method")
        if method:
            self.highlight_method_in_all_pictures("" if method == self.held else method)
        picked = {}
        for menu, name in ((self.client, "client"), (self.class_index, "class_index")):
            number = mark.get(name)
            known = [value for _, value in menu.options[1:]]
            if number is not None and number in known:
                picked[menu] = number
        # A mark with the same client and another class is another mark.
        is_same = all(menu.value == number for menu, number in picked.items())
        for menu, number in picked.items():
            menu.value = NOBODY if is_same and method is None else number

    def select_client_and_class(
        self, client_index_or_none: int | None, class_index_or_none: int | None
    ) -> None:
        """Select a client and a class; None, or a number that does not exist, selects none."""
        for menu, number in (
            (self.client, client_index_or_none),
            (self.class_index, class_index_or_none),
        ):
            known = [value for _, value in menu.options[1:]]
            menu.value = number if number in known else NOBODY

    def _send_selection_to_frames(self) -> None:
        """Send the selection to every frame, which marks it before the picture is drawn again."""
        selection = {
            "client": get_chosen_menu_number_or_none(self.client),
            "class_index": get_chosen_menu_number_or_none(self.class_index),
        }
        for view in self.views.values():
            view.frame.selection = selection

    def highlight_method_in_all_pictures(self, method_or_empty: str) -> None:
        """Highlight a method in every picture; "" for none."""
        self.held = method_or_empty
        for view in self.views.values():
            view.frame.held = method_or_empty

    def _hide_views_of_other_tabs(self) -> None:
        show_only_named_widget(
            self.visible_view_name, {name: view.box for name, view in self.views.items()}
        )

    def show_table_if_on(self) -> None:
        """Show the table of the visible picture if its button is on."""
        show_widgets_if(self.tables.value, self.table)
        if self.tables.value:
            picture = self.views[self.visible_view_name].picture
            self.table.value = make_table_html(picture.table if picture else [])

    def has_quick_button_job_to_do(self) -> bool:
        """Whether the visible view has a button that was not pressed yet, and whose work takes less than SOON."""
        state = self.state.make_state_for_view(self.visible_view_name)
        if state.worked is not None:
            return False
        cost = estimate_button_job_cost(self[self.visible_view_name].lab_view, state)
        return cost is not None and cost.seconds is not None and cost.seconds < SOON

    # ------------------------------------------------------------------------------------------------- what is drawn
    def take_over_state_without_drawing(self, state: PanelState) -> None:
        """Take over a new state; nothing is drawn yet."""
        old = self.state
        self.state = state
        changes = state.find_names_of_changed_fields(old)
        is_other_setting = bool(changes & {"settings", "knobs", "federation"})
        for name, view in self.views.items():
            needs = set(view.lab_view.needs)
            if view.picture is not None and view.picture.waits:
                needs.add("running")
            has_other_state = state.view_states.get(name) is not old.view_states.get(name)
            if changes & needs or has_other_state:
                self.dirty.add(name)
                self._failed.discard(name)
                toggle_class(view.box, "fl-old", name != self.visible_view_name)
                if is_other_setting and name == self.visible_view_name:
                    # Until it is drawn, which may be later while a slider moves.
                    view.set_dimmed(True)
            if name not in self.dirty:
                view.set_caption(view.lab_view.caption(state))
                view.set_dimmed(view.lab_view.is_older(state))

    def _delay_next_drawing_during_run(self, last_drawing_start_seconds: float) -> None:
        """After a drawing that began at `last_drawing_start_seconds`, delay the next one for as long as a job runs."""
        now = time.monotonic()
        self._resting_until = now + max(REDRAW, 2 * (now - last_drawing_start_seconds))

    def draw_visible_view_if_out_of_date(self) -> None:
        """Draw the visible view if it is out of date. Other views are drawn when they become visible."""
        name = self.state.view
        if name not in self.dirty:
            return
        start = time.monotonic()
        self.dirty.discard(name)
        self._draw_or_show_waiting_text(self[name])
        self.show_table_if_on()
        self._delay_next_drawing_during_run(start)

    def draw_view_even_if_hidden(self, view_name: str) -> None:
        """Draw a view, whether it is visible or not."""
        self.dirty.discard(view_name)
        self._draw_or_show_waiting_text(self[view_name])

    def _draw_or_show_waiting_text(self, view: ViewWidgets) -> None:
        """Draw one view, or show a text on what to do to get a picture."""
        lab_view = view.lab_view
        state = self.state.make_state_for_view(lab_view.name)
        view.set_dimmed(True)  # visible only if the drawing takes long (theme.css)
        if not lab_view.is_ready(state):
            self.dirty.add(lab_view.name)
            self._show_waiting_text(view, state)
            return
        needs_preparing = lab_view.needs_preparing(state)
        if needs_preparing and not lab_view.preview:
            view.show_text_in_place_of_picture("Computing …", lab_view.caption(state))
        else:
            with self._handler_pause:
                lab_view.adapt(state)
            with use_figure_size(self.picture_size_inches):
                view.show_picture(
                    draw_view_with_words_for_its_samples(lab_view, state), lab_view.caption(state)
                )
        view.set_dimmed(lab_view.is_older(state))
        if needs_preparing:
            self.dirty.add(lab_view.name)
            self._prepare_view_in_background_if_idle(lab_view, state)

    def _show_waiting_text(self, view: ViewWidgets, state: PanelState) -> None:
        """In a view that has nothing to draw yet, leave the earlier picture while a job runs, or show what to do."""
        lab_view = view.lab_view
        has_earlier_picture = view.picture is not None and state.federation is not None
        if state.running and has_earlier_picture:
            view.set_caption(EARLIER.format(run=state.number))
            return
        text = lab_view.waiting if state.running else lab_view.empty
        if text:
            style = "" if state.running else "fl-todo"
            view.show_text_in_place_of_picture(
                text, lab_view.caption(state), style, has_result=False
            )
            view.set_dimmed(False)

    def draw_visible_view_if_run_has_news(self) -> None:
        """Draw the visible view during a run, if there are new results and the last drawing is long enough ago."""
        start = time.monotonic()
        if self.has_news and start > self._resting_until:
            self.has_news = False
            self._draw_one_view_in_background({self.visible_view_name}, allows_preview=True)
            self._delay_next_drawing_during_run(start)

    def draw_one_hidden_view_if_any(self) -> bool:
        """Draw one hidden view that is out of date, so that it is there when it is selected; False if there is none."""
        if not self.frame[0]:  # no frame has been visible yet
            return False
        names = {name for name, view in self.views.items() if view.lab_view.is_drawn_ahead}
        return self._draw_one_view_in_background(
            names - self._failed - {self.visible_view_name} - self.without_tab
        )

    def _draw_one_view_in_background(
        self, view_names: set[str], *, allows_preview: bool = False
    ) -> bool:
        """Draw one of these views that is out of date; False if there is none.

        The lock is free while the view is drawn, so that controls react. If they change the view's state meanwhile, the
        view is drawn again.
        """
        with self._lock:
            name = self._find_name_of_drawable_view_or_none(view_names & self.dirty, allows_preview)
            if name is None:
                return False
            view = self[name]
            state = self.state.make_state_for_view(name)
            inches = self.picture_size_inches
            earlier = view.picture
            self.dirty.discard(name)
            with self._handler_pause:
                view.lab_view.adapt(state)
        # An error is not shown here: when the view becomes visible, it is drawn again, and shows the error.
        with suppress(Exception), use_figure_size(inches):
            picture = draw_view_with_words_for_its_samples(view.lab_view, state)
            is_svg = picture.figure is not None and not picture.scene
            svg = draw_light_dark_svg_element(picture.figure) if is_svg else ""
            with self._lock:
                if name not in self.dirty and view.picture is earlier:
                    view.show_picture(picture, view.lab_view.caption(state), svg)
                    view.set_dimmed(view.lab_view.is_older(state))
                    self.show_table_if_on()
                return True
        self.dirty.add(name)
        self._failed.add(name)
        return True

    def _find_name_of_drawable_view_or_none(
        self, view_names: set[str], allows_preview: bool
    ) -> str | None:
        """Find one of these views that can be drawn now; None if there is none."""
        for name in view_names:
            lab_view = self[name].lab_view
            is_prepared = not lab_view.needs_preparing(self.state)
            if allows_preview and lab_view.preview:
                is_prepared = True
            if is_prepared and lab_view.is_ready(self.state.make_state_for_view(name)):
                return name
        return None

    def start_drawing_hidden_views(self, worker: Worker) -> None:
        """Draw the views that are not visible, until a job starts or the federation changes.

        Nothing is drawn if all work is done in the calling thread.
        """
        federation = self.state.federation

        def draw() -> None:
            while self.state.federation is federation and not worker.is_busy:
                if not self.draw_one_hidden_view_if_any():
                    return

        if not worker.inline:
            run_on_idle_or_new_thread(draw)

    def draw_pictures_by_view(self) -> dict[str, Picture]:
        """Return all pictures, by view. The common views are drawn again, with missing t-SNE maps; a lab's own views
        are taken as they are."""
        pictures = {}
        for name, view in self.views.items():
            picture = view.picture
            if type(view.lab_view) in COMMON:
                picture = self._draw_common_view_or_none(name)
            if picture is not None:
                pictures[name] = picture
        return pictures

    def _draw_common_view_or_none(self, view_name: str) -> Picture | None:
        """Draw a view that every panel has, without stored results; None if there is no result."""
        lab_view = self[view_name].lab_view
        state = replace(self.state.make_state_for_view(view_name), stored=None)
        if view_name != "partition" and not state.runs.has_results:
            return None
        if lab_view.needs_preparing(state):
            list(lab_view.prepare(state))
        return draw_view_with_words_for_its_samples(lab_view, state)


def get_chosen_menu_number_or_none(menu: widgets.Dropdown) -> int | None:
    """Return the number that is selected in a menu; None if none is selected."""
    return None if menu.value == NOBODY else menu.value
