"""The theme: one style sheet for all panels (`theme.css`), functions for HTML, and `make_widget`."""

import html
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import ipywidgets as widgets

from ..plots.style import format_table_html
from ..plots.words import TableRows
from ..symbols import append_symbol_meanings_to_tooltip

Slider = widgets.IntSlider | widgets.FloatSlider | widgets.FloatLogSlider | widgets.SelectionSlider
W = TypeVar("W", bound=widgets.Widget)
MenuOption = Any | tuple[str, Any]  # a value, or (its text in the menu, the value)
# It depends on the window alone (theme.css), so that nothing jumps.
PICTURE_HEIGHT = "var(--fl-height)"
GREEK = re.compile(r"[α-ωΑ-Ω]\w*")  # Greek symbols only: a Latin letter in a label may be a word
HERE = Path(__file__).parent
STYLE = (HERE / "theme.css").read_text(encoding="utf-8")
# The output that a saved notebook shows without a kernel: a style sheet, and a text on how to wake the panel. The style
# hides the output two places before it, which is the widget's: without a kernel that is a line such as "Loading
# widget..." or "Error displaying widget".
WAKE = "This panel sleeps: run its cell again to wake it. Above is what it showed last."
SAVED_RULES = (HERE / "saved.css").read_text(encoding="utf-8")
SAVED_STYLE = f'<style class="fl-saved">\n{SAVED_RULES}\n</style><p class="fl-wake">{WAKE}</p>'


def make_paragraph_html(
    text: str, role: Literal["", "alert", "status"] = "", hover_text: str = ""
) -> str:
    """Make a paragraph of HTML from a text; "" for an empty text.

    role:       ARIA role
    hover_text: its tooltip
    """
    if not text:
        return ""
    attributes = f' role="{role}"' if role else ""
    if hover_text:
        attributes += f' class="fl-exact" title="{html.escape(hover_text)}"'
    return f"<p{attributes}>{html.escape(text)}</p>"


def make_table_html(table_rows: TableRows, *, has_column_names_in_cells: bool = False) -> str:
    """Format rows as an HTML table; without rows, as the paragraph "No numbers yet."

    has_column_names_in_cells: each cell has its column's name as `data-column`, for frames with room for one column
    """
    if not table_rows:
        return make_paragraph_html("No numbers yet.")
    return format_table_html(table_rows, has_column_names_in_cells=has_column_names_in_cells)


def show_widgets_if(is_shown: bool, *shown_widgets: widgets.Widget) -> None:
    """Show widgets, or hide them without leaving a gap."""
    for part in shown_widgets:
        part.layout.display = None if is_shown else "none"


def show_only_named_widget(name: str, widgets_by_name: Mapping[str, widgets.Widget]) -> None:
    """Show the widget with this name, and hide the others."""
    for part_name, part in widgets_by_name.items():
        show_widgets_if(part_name == name, part)


def set_menu_options_and_keep_choice(
    menu: widgets.Dropdown, options: Iterable[MenuOption], value_if_choice_is_gone: Any = None
) -> None:
    """Set the options of a menu.

    The chosen value stays chosen if it is among them.

    value_if_choice_is_gone: chosen otherwise; None: the first option is
    """
    options = tuple(options)
    if menu.options == options:
        return
    values = [option[1] if isinstance(option, tuple) else option for option in options]
    chosen = menu.value
    if chosen not in values:
        chosen = values[0] if value_if_choice_is_gone is None else value_if_choice_is_gone
    menu.options = options
    menu.value = chosen


def make_widget(
    widget_type: type[W],
    *css_classes: str,
    label: str = "",
    help: str = "",
    width: int | str | None = None,
    label_width: int | str = "",
    **traits: Any,
) -> W:
    """Make a widget. All widgets of the package are made by this function, where they are used.

    label:       in front of the widget; of a button, on it
    help:        its tooltip
    width:       of the whole widget, in pixels or as CSS has it ("auto")
    label_width: of the label, by default as wide as its text
    traits:      arguments of `widget_type`
    """
    if label:
        traits["description"] = label
    if help:
        traits["tooltip"] = append_symbol_meanings_to_tooltip(help, " ".join(GREEK.findall(label)))
    if width:
        traits["layout"] = {"width": format_pixels_or_css_length(width), **traits.get("layout", {})}
    has_label_before_it = widget_type is not widgets.Button  # a button's label is all of it
    if has_label_before_it and (label or label_width):
        style = {"description_width": format_pixels_or_css_length(label_width or "initial")}
        traits["style"] = {**style, **traits.get("style", {})}
    widget = widget_type(**traits)
    for name in css_classes:
        widget.add_class(name)
    return widget


def format_pixels_or_css_length(pixels_or_css_length: int | str) -> str:
    """Format a number of pixels for CSS; a text such as "auto" is returned as it is."""
    if isinstance(pixels_or_css_length, int):
        return f"{pixels_or_css_length}px"
    return pixels_or_css_length


class HandlerPause:
    """Pauses change handlers: within `with`, code sets controls, and the handlers do nothing since `is_on` is True."""

    is_on = False

    def __enter__(self) -> None:
        self.is_on = True

    def __exit__(self, *_: object) -> None:
        self.is_on = False


def make_tab_buttons(
    values_by_title: Mapping[str, str], selected_value: str | None, *css_classes: str
) -> widgets.ToggleButtons:
    """Make a row of tabs from {title of a tab: its value}."""
    return make_widget(
        widgets.ToggleButtons,
        "fl-tabs",
        *css_classes,
        options=list(values_by_title.items()),
        value=selected_value,
    )


def toggle_class(widget: widgets.DOMWidget, css_class: str, is_on: bool) -> None:
    """Add a CSS class to a widget, or remove it."""
    if is_on:
        widget.add_class(css_class)
    else:
        widget.remove_class(css_class)


def make_slider_player(slider: Slider, **traits: Any) -> widgets.Play:
    """Make a `Play` widget that moves a slider, beginning where the slider is.

    traits: of `Play`, such as interval and tooltip
    """
    trait = "index" if hasattr(slider, "index") else "value"
    ends = {"min": getattr(slider, "min", 0), "max": getattr(slider, "max", 0)}
    play = widgets.Play(value=getattr(slider, trait), **ends, **traits)
    widgets.jslink((play, "value"), (slider, trait))
    return play


def list_nested_widgets(root_widgets: Iterable[widgets.Widget]) -> list[widgets.Widget]:
    """List widgets and all widgets within them, each once: the children of boxes, and each one's layout and style."""
    found: dict[int, widgets.Widget] = {}
    waiting = list(root_widgets)
    while waiting:
        widget = waiting.pop()
        if id(widget) in found:
            continue
        found[id(widget)] = widget
        for name in widget.keys:
            value = getattr(widget, name)
            values = value if isinstance(value, tuple) else (value,)
            waiting.extend(part for part in values if isinstance(part, widgets.Widget))
    return list(found.values())
