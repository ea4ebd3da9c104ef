"""The views: a row of tabs, and for each view a caption, a sentence, its own controls, a picture of fixed height and
its table. A view whose part of the state has changed is out of date, and is drawn when it is looked at.
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
from ..front import join_front_modules, join_modules
from ..plots import Picture
from ..plots.marks import get_marks_by_id
from ..plots.style import SIZE, use_figure_size
from ..plots.vector import draw_svg, get_thumbnail_sheet
from ..value_types import JsonValue
from .figures import COMMON
from .lab_view import LabView, PanelState, draw_picture, estimate_button_job_cost
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
from .worker import Worker, run_on_worker_thread

HERE = Path(__file__).parent
FRAME = (
    "const { NO_SELECTION, announceSelection, chooseMark, watchSelection } = "
    f"{join_front_modules('selection')};\n{(HERE / 'frame.js').read_text(encoding='utf-8')}"
)
REDRAW = 0.15  # seconds between two drawings while a job runs, at least; and drawing takes at most a third of the time
# Pixels of an inch of a picture, so that its letters are as large as those of the panel in every window: a larger frame
# has more room, and no larger letters. A telephone has few pixels: there they are a little smaller.
PIXELS_AN_INCH = 96
SMALL_PIXELS_AN_INCH = 76
SMALL_FRAME = 480  # pixels of width
# A picture in words; it scrolls, so a keyboard must reach it.
WORDS = '<div class="fl-table fl-words" tabindex="0" role="region" aria-label="table">{}</div>'
SOON = 2.0  # seconds of work that begins by itself, at most
PROJECTOR = "For a class, key P: larger letters, few controls, and every result is covered until it is guessed"
NOBODY = -1
NONE = ("none", NOBODY)
EARLIER = "Run {run} has no result yet. This is the picture from before it."


def make_scene_module_text() -> str:
    """The module of a frame with scenes: what they need of `front`, the frame, and what joins both."""
    style = (FRONT / "scene.css").read_text(encoding="utf-8")
    scenes = (HERE / "scene_frame.js").read_text(encoding="utf-8")
    return (
        "const { createRace, createHand, html, isDark, watchTheme } = "
        f"{join_front_modules('race', 'hand', 'dom', 'theme')};\n"
        f"const SCENE_STYLE = {json.dumps(style)};\n{FRAME}{scenes}"
        "export default { render: renderScene };\n"
    )


class Chores(anywidget.AnyWidget):
    """What the page of a panel needs beside its widgets (`chores.js`): names and values of sliders and tabs for
    assistive technology, a word when the kernel is gone. It is not seen.
    """

    _esm = (HERE / "chores.js").read_text(encoding="utf-8")


class Frame(anywidget.AnyWidget):
    """The frame of a picture: an SVG that fills it, or words. What is in it answers to pointer and keyboard.

    value: an SVG element, or HTML;   alt: what the SVG shows, in words;   marks: {id: what it says and stands for}
    thumbnails: the sheet of small images that marks show (`plots.vector.attach_thumbnail_sheet`), or {}
    size:  width and height of the visible frame in pixels, [0, 0] before it was seen
    drawn: counts the drawings, also those that look as the one before
    held:  the method that is held in all pictures, or "";   picked: the last choice, with a number that counts them
    selection: the client and the class_index that are looked at, None for no one in particular

    Python sends the first ones, `held` and `selection`; the browser (`frame.js`) sends `size` and `picked`. Within a
    window a selection goes from part to part by itself (`front/selection.js`).
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

    scene: what is drawn, with its `kind`; {}: an SVG or words, as in every frame
    given: what a hand has set in it (`LabView.take`)
    """

    _esm = make_scene_module_text()
    scene: Any = traitlets.Dict().tag(sync=True)
    given: Any = traitlets.Dict().tag(sync=True)


class Ink(anywidget.AnyWidget):
    """A field in which a person draws a digit with mouse, pen or finger; `front/pen.js` makes of it what the package's
    digits are made of.

    seen: what the drawing is by now, 64 numbers 0-1, row by row; [] as long as there is no ink
    value: the same when the pen was last lifted
    """

    _esm = join_modules([FRONT / "dom.js", FRONT / "pen.js"]) + (HERE / "ink.js").read_text(
        encoding="utf-8"
    )
    seen: Any = traitlets.List().tag(sync=True)
    value: Any = traitlets.List().tag(sync=True)


Scene = Mapping[str, JsonValue]  # what `front` draws: its `kind`, and what belongs to that


class View:
    """The widgets of one `LabView`. Classes for the browser: fl-view-NAME (fl-old: out of date while nobody looks;
    fl-older: of another setting than the controls say), and within it fl-caption, fl-sentence, fl-tools (controls of
    its own) and fl-frame (the picture). `button` starts the view's own work, where it has any.
    """

    def __init__(self, lab_view: LabView) -> None:
        self.lab_view = lab_view
        self.caption = make_widget(widgets.HTML, "fl-caption")
        self.sentence = make_widget(widgets.HTML, "fl-sentence")
        frame = SceneFrame if lab_view.has_scene else Frame
        self.frame = make_widget(frame, "fl-frame", width="auto", layout={"height": PICTURE_HEIGHT})
        if lab_view.has_scene:
            self.frame.observe(lambda change: lab_view.take(change["new"]), "given")
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

    def show_picture(self, picture: Picture, caption: str, svg: str = "") -> None:
        """Show a picture. svg: its figure, where that was drawn before."""
        self.box.remove_class("fl-old")
        if picture.waits:
            self.show_message(picture.sentence, caption, "fl-todo")
            self.picture = picture
            return
        self.picture = picture
        figure = picture.figure
        marks = {}
        thumbnails = {}
        if picture.scene:
            svg = ""
        elif figure is not None:
            svg = svg or draw_svg(figure)
            marks = get_marks_by_id(figure)
            thumbnails = get_thumbnail_sheet(figure)
        value = svg
        if picture.tabled or (figure is None and not picture.scene):
            image = f'<div role="img" aria-label="{escape(picture.alt)}">{svg}</div>' if svg else ""
            value = WORDS.format(image + make_table_html(picture.table))
        self.box.remove_class("fl-waits")
        toggle_class(self.box, "fl-tabled", figure is None or picture.tabled)
        self.set_caption(caption)
        self.sentence.value = make_paragraph_html(picture.sentence, "status", picture.detail)
        with self.frame.hold_sync():  # last: where the picture is seen, its words are there
            self.frame.alt = picture.alt
            self.frame.thumbnails = thumbnails
            self.frame.marks = marks
            self.frame.value = value
            self.frame.drawn += 1
            self._show_scene(picture.scene)

    def _show_scene(self, scene: Scene) -> None:
        """Let the browser draw a scene; {}: none."""
        if self.lab_view.has_scene:
            self.frame.scene = dict(scene)

    def show_message(
        self, text: str, caption: str = "", style: Literal["", "fl-todo"] = ""
    ) -> None:
        """Words in place of a picture. style "fl-todo": they say what to do so that there will be one, in less room."""
        self.picture = None
        self._show_scene({})
        self.box.remove_class("fl-tabled")
        toggle_class(self.box, "fl-waits", bool(style))
        self.frame.value = f'<div class="fl-empty {style}">{make_paragraph_html(text)}</div>'
        self.sentence.value = ""
        self.set_caption(caption)

    def set_dimmed(self, is_dimmed: bool) -> None:
        """Dim what is older than the setting that the controls say."""
        toggle_class(self.box, "fl-older", is_dimmed)

    def set_caption(self, caption: str) -> None:
        self.caption.value = make_paragraph_html(caption)


# Its `client`, `class_index` and `method` where it has them; or `none`.
ClickedMark = Mapping[str, Any]


class DisplayOptions(TypedDict):
    """What is looked at, as parts of `PanelState`."""

    view: str
    frame: tuple[int, int]
    shows_stored: bool
    client: int | None
    class_index: int | None


class TabOptions(TypedDict, total=False):
    """Arguments of `Views` on its tabs."""

    names_without_tab: Sequence[str]
    titles_by_name: Mapping[str, str]
    groups_tabs: bool


class Views:
    """All views under their tabs, in this order; one is visible; `look` is what is looked at.

    `update_state(state)`: views that depend on what changed are out of date, their names in `dirty`
    `draw_visible_view()`: draw the visible one if it is out of date

    lock:  held while something is shown;   handler_pause: on while a view fits its own controls
    start_preparation(lab_view, state): begins a view's slow work
    names_without_tab: names of views that are drawn only when they are asked for
    titles_by_name: titles of tabs, by view, in the place of the views' own
    groups_tabs: whether a lab's own views, which come first or last, have a row of tabs of their own
    """

    def __init__(
        self,
        lab_views: Sequence[LabView],
        lock: threading.RLock,
        handler_pause: HandlerPause,
        start_preparation: Callable[[LabView, PanelState], None],
        names_without_tab: Sequence[str] = (),
        titles_by_name: Mapping[str, str] | None = None,
        groups_tabs: bool = False,
    ) -> None:
        self.groups_tabs = groups_tabs
        self._lock = lock
        self._handler_pause = handler_pause
        self._start_preparation = start_preparation
        self.views = {lab_view.name: View(lab_view) for lab_view in lab_views}
        self.without_tab = set(names_without_tab)
        self._make_tabs(lab_views, titles_by_name or {})
        self._make_footer()
        self.table = make_widget(widgets.HTML, "fl-table", "fl-numbers")
        boxes = [view.box for view in self.views.values()]
        children = [self.tabs, *boxes, self._foot, self.table]
        self.box = make_widget(widgets.VBox, "fl-main", children=children)
        self.allows_stored = True  # whether stored results are to be seen
        self.frame = (0, 0)  # width and height of the frames in pixels
        self.held = ""  # the method that stands out in all pictures
        self.state = PanelState()
        self.dirty = set(self.views)
        self._failed: set[str] = set()  # could not be drawn ahead
        self.has_news = False  # whether a run has more to show in the visible view
        self._resting_until = 0.0  # before that time nothing is drawn while a run goes on
        self._hide_other_views()
        self.tables.observe(lambda _: self.show_table(), "value")
        self.show_table()

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
        """The row under the pictures: the table, and what is looked at."""
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

    def __getitem__(self, name: str) -> View:
        return self.views[name]

    def select_view(self, view_name: str) -> None:
        self.tabs.value = view_name

    # ------------------------------------------------------------------------------------------ what is looked at
    def observe_display_options(self, callback: Callable[[], None]) -> None:
        """`call()` when a person looks at something else: another client or class, frames of another size, another
        view. Of a view it is called before that becomes visible, so that no old picture flashes up.
        """

        def show_tab(_: object) -> None:
            callback()
            self._hide_other_views()
            self.show_table()

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
            view.frame.observe(lambda change: self._handle_mark_click(change["new"]), "picked")

    def set_client_and_class_options(
        self, client_names: Sequence[str], class_names: Sequence[str]
    ) -> None:
        """Offer the clients, as they are called, and the classes; each choice stays where it can."""
        for menu, names in ((self.client, client_names), (self.class_index, class_names)):
            options = [(str(name), number) for number, name in enumerate(names)]
            set_menu_options_and_keep_choice(menu, (NONE, *options))

    @property
    def display_options(self) -> DisplayOptions:
        """What is looked at, as parts of the state: the view, the client and the class (None: none of them); stored
        results are not where a class still guesses."""
        is_revealed = self.reveal.value or not self.projector.value
        return {
            "view": self.visible_view_name,
            "frame": self.frame,
            "shows_stored": self.allows_stored and is_revealed,
            "client": get_menu_number_or_none(self.client),
            "class_index": get_menu_number_or_none(self.class_index),
        }

    @property
    def picture_size_inches(self) -> tuple[float, float]:
        """Size of the pictures that fill the frames as they are now."""
        width, height = self.frame
        if not width or not height:
            return SIZE
        pixels_an_inch = PIXELS_AN_INCH if width > SMALL_FRAME else SMALL_PIXELS_AN_INCH
        return width / pixels_an_inch, height / pixels_an_inch

    def _handle_mark_click(self, mark: ClickedMark) -> None:
        """A mark was chosen: its client and class are those that are looked at, its method is held in all pictures.
        Chosen once more it is let go of; Escape lets go of everything.
        """
        if mark.get("none"):
            self.highlight_method("")
            self.client.value = NOBODY
            self.class_index.value = NOBODY
            return
        method = mark.get("method")
        if method:
            self.highlight_method("" if method == self.held else method)
        picked = {}
        for menu, name in ((self.client, "client"), (self.class_index, "class_index")):
            number = mark.get(name)
            known = [value for _, value in menu.options[1:]]
            if number is not None and number in known:
                picked[menu] = number
        # Another class of the client that is looked at is another mark.
        is_same = all(menu.value == number for menu, number in picked.items())
        for menu, number in picked.items():
            menu.value = NOBODY if is_same and method is None else number

    def select_client_and_class(self, client: int | None, class_index: int | None) -> None:
        """Look at a client and a class; None, and a number that there is not: at no one in particular."""
        for menu, number in ((self.client, client), (self.class_index, class_index)):
            known = [value for _, value in menu.options[1:]]
            menu.value = number if number in known else NOBODY

    def _send_selection_to_frames(self) -> None:
        """Tell every frame what is looked at: it is marked before the picture is drawn anew."""
        selection = {
            "client": get_menu_number_or_none(self.client),
            "class_index": get_menu_number_or_none(self.class_index),
        }
        for view in self.views.values():
            view.frame.selection = selection

    def highlight_method(self, method: str) -> None:
        """Let one method stand out in every picture; "" for none."""
        self.held = method
        for view in self.views.values():
            view.frame.held = method

    def _hide_other_views(self) -> None:
        show_only_named_widget(
            self.visible_view_name, {name: view.box for name, view in self.views.items()}
        )

    def show_table(self) -> None:
        """The visible picture's numbers, where they are wanted."""
        show_widgets_if(self.tables.value, self.table)
        if self.tables.value:
            picture = self.views[self.visible_view_name].picture
            self.table.value = make_table_html(picture.table if picture else [])

    def has_quick_button_job(self) -> bool:
        """Whether the button of the visible view was not pressed yet, and takes no time worth a question."""
        state = self.state.make_state_for_view(self.visible_view_name)
        if state.worked is not None:
            return False
        cost = estimate_button_job_cost(self[self.visible_view_name].lab_view, state)
        return cost is not None and cost.seconds is not None and cost.seconds < SOON

    # ------------------------------------------------------------------------------------------------- what is drawn
    def update_state(self, state: PanelState) -> None:
        """Go over to a state; nothing is drawn yet."""
        old = self.state
        self.state = state
        changes = state.find_changes(old)
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
                    view.set_dimmed(True)  # until it is drawn, which a hand on α may delay
            if name not in self.dirty:
                view.set_caption(view.lab_view.caption(state))
                view.set_dimmed(view.lab_view.is_older(state))

    def _pause_drawing_in_proportion_to_last_one(self, start_seconds: float) -> None:
        """After a drawing that began at `start_seconds`: no other one for a while, as long as a job runs."""
        now = time.monotonic()
        self._resting_until = now + max(REDRAW, 2 * (now - start_seconds))

    def draw_visible_view(self) -> None:
        """Draw the visible view if it is out of date; the others wait until they are looked at."""
        name = self.state.view
        if name not in self.dirty:
            return
        start = time.monotonic()
        self.dirty.discard(name)
        self._draw_or_show_waiting_text(self[name])
        self.show_table()
        self._pause_drawing_in_proportion_to_last_one(start)

    def draw_hidden_view(self, view_name: str) -> None:
        """Draw a view whether it is looked at or not."""
        self.dirty.discard(view_name)
        self._draw_or_show_waiting_text(self[view_name])

    def _draw_or_show_waiting_text(self, view: View) -> None:
        """Draw one view, or say what to do so that there will be a picture."""
        lab_view = view.lab_view
        state = self.state.make_state_for_view(lab_view.name)
        view.set_dimmed(True)  # seen where the drawing takes long (theme.css)
        if not lab_view.is_ready(state):
            self.dirty.add(lab_view.name)
            self._show_waiting_text(view, state)
            return
        needs_preparing = lab_view.needs_preparing(state)
        if needs_preparing and not lab_view.preview:
            view.show_message("Computing …", lab_view.caption(state))
        else:
            with self._handler_pause:
                lab_view.adapt(state)
            with use_figure_size(self.picture_size_inches):
                view.show_picture(draw_picture(lab_view, state), lab_view.caption(state))
        view.set_dimmed(lab_view.is_older(state))
        if needs_preparing:
            self.dirty.add(lab_view.name)
            self._start_preparation(lab_view, state)

    def _show_waiting_text(self, view: View, state: PanelState) -> None:
        """Of a view that has nothing to draw yet: the earlier picture while a job runs, else what to do."""
        lab_view = view.lab_view
        has_earlier_picture = view.picture is not None and state.federation is not None
        if state.running and has_earlier_picture:
            view.set_caption(EARLIER.format(run=state.number))
            return
        text = lab_view.waiting if state.running else lab_view.empty
        if text:
            style = "" if state.running else "fl-todo"
            view.show_message(text, lab_view.caption(state), style)
            view.set_dimmed(False)

    def draw_visible_view_during_run(self) -> None:
        """Draw the visible view while a run goes on, if it has more to show and the last drawing is a while ago."""
        start = time.monotonic()
        if self.has_news and start > self._resting_until:
            self.has_news = False
            self._draw_one_view_in_background({self.visible_view_name}, allows_preview=True)
            self._pause_drawing_in_proportion_to_last_one(start)

    def draw_one_hidden_view_if_any(self) -> bool:
        """Draw one view that nobody looks at yet, so that it is there when it is chosen; False if there is none."""
        if not self.frame[0]:  # nobody looks on
            return False
        names = {name for name, view in self.views.items() if view.lab_view.is_drawn_ahead}
        return self._draw_one_view_in_background(
            names - self._failed - {self.visible_view_name} - self.without_tab
        )

    def _draw_one_view_in_background(
        self, view_names: set[str], *, allows_preview: bool = False
    ) -> bool:
        """Draw one of these views that is out of date; False if there is none. The lock is free meanwhile: a hand does
        not wait, and what it changes is drawn again.
        """
        with self._lock:
            name = self._find_drawable_view(view_names & self.dirty, allows_preview)
            if name is None:
                return False
            view = self[name]
            state = self.state.make_state_for_view(name)
            inches = self.picture_size_inches
            earlier = view.picture
            self.dirty.discard(name)
            with self._handler_pause:
                view.lab_view.adapt(state)
        with suppress(Exception), use_figure_size(inches):  # who looks at it will read why
            picture = draw_picture(view.lab_view, state)
            is_svg = picture.figure is not None and not picture.scene
            svg = draw_svg(picture.figure) if is_svg else ""
            with self._lock:
                if name not in self.dirty and view.picture is earlier:
                    view.show_picture(picture, view.lab_view.caption(state), svg)
                    view.set_dimmed(view.lab_view.is_older(state))
                    self.show_table()
                return True
        self.dirty.add(name)
        self._failed.add(name)
        return True

    def _find_drawable_view(self, view_names: set[str], allows_preview: bool) -> str | None:
        """One of these views that can be drawn now."""
        for name in view_names:
            lab_view = self[name].lab_view
            is_prepared = not lab_view.needs_preparing(self.state)
            if allows_preview and lab_view.preview:
                is_prepared = True
            if is_prepared and lab_view.is_ready(self.state.make_state_for_view(name)):
                return name
        return None

    def start_drawing_hidden_views(self, worker: Worker) -> None:
        """Draw what nobody looks at yet, until there is something better to do: a job, or a hand on α. Not where all
        work is done in the calling thread.
        """
        federation = self.state.federation

        def draw() -> None:
            while self.state.federation is federation and not worker.is_busy:
                if not self.draw_one_hidden_view_if_any():
                    return

        if not worker.inline:
            run_on_worker_thread(draw)

    def draw_pictures_by_view(self) -> dict[str, Picture]:
        """Every picture that there is, drawn anew but for a lab's own; the t-SNE maps that are missing are made."""
        pictures = {}
        for name, view in self.views.items():
            picture = view.picture
            if type(view.lab_view) in COMMON:
                picture = self._draw_common_view_or_none(name)
            if picture is not None:
                pictures[name] = picture
        return pictures

    def _draw_common_view_or_none(self, view_name: str) -> Picture | None:
        """A view that every panel has, without stored results; None where there is no result."""
        lab_view = self[view_name].lab_view
        state = replace(self.state.make_state_for_view(view_name), stored=None)
        if view_name != "partition" and not state.runs.has_results:
            return None
        if lab_view.needs_preparing(state):
            list(lab_view.prepare(state))
        return draw_picture(lab_view, state)


def get_menu_number_or_none(menu: widgets.Dropdown) -> int | None:
    """The number that a menu says; None where nobody is chosen."""
    return None if menu.value == NOBODY else menu.value
