"""The theme: one style sheet for all panels (`theme.css`), a few pieces of HTML, and how a widget is made."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..plots.style import table_html
from ..symbols import explained

PICTURE_HEIGHT = "var(--fl-height)"  # fixed by the window (theme.css), so that nothing jumps
GREEK = re.compile(r"[α-ωΑ-Ω]\w*")  # a Latin letter of a label may be a word
STYLE = Path(__file__).with_name("theme.css").read_text(encoding="utf-8")
# What a saved notebook needs where no kernel runs: the picture, and how to wake the panel. The output two before this
# style is the widget's: without a kernel it is a line such as "Loading widget..." or "Error displaying widget".
WAKE = "This panel sleeps: run its cell again to wake it. Above are its last results."
SAVED_STYLE = (
    f'<style class="fl-saved">\n{Path(__file__).with_name("saved.css").read_text(encoding="utf-8")}</style>'
    f'<p class="fl-wake">{WAKE}</p>'
)


def paragraph(text: str, role: str = "") -> str:
    attribute = f' role="{role}"' if role else ""
    return f"<p{attribute}>{html.escape(text)}</p>" if text else ""


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as an HTML table, or a word in its place."""
    return table_html(rows) if rows else paragraph("No numbers yet.")


def show_if(seen: object, *parts: widgets.Widget) -> None:
    """Show widgets, or hide them without leaving a gap."""
    for part in parts:
        part.layout.display = None if seen else "none"


def show_only(name: str, parts: Mapping[str, widgets.Widget]) -> None:
    """Of these widgets only the one of that name is seen."""
    for each, part in parts.items():
        show_if(each == name, part)


def offer(menu: widgets.Dropdown, options: Iterable[Any], otherwise: Any = None) -> None:
    """Give a menu its options, values or (words, value) pairs; what was chosen stays chosen where it can, else
    `otherwise` is, or the first one.
    """
    options = tuple(options)
    if menu.options != options:
        before, values = (
            menu.value,
            [option[1] if isinstance(option, tuple) else option for option in options],
        )
        menu.options = options
        menu.value = before if before in values else values[0] if otherwise is None else otherwise


def made(
    kind: type[widgets.Widget],
    *classes: str,
    label: str = "",
    help: str = "",
    width: int | str | None = None,
    label_width: int | str = "",
    **traits: Any,
) -> Any:
    """A widget, made where it is used: the one way of the package.

    classes: of CSS;   label: in front of it;   help: its tooltip;   width: of all of it, label_width: of the label
    alone (without one, as wide as its words), in pixels or as CSS says it ("auto");   traits: what `kind` itself takes
    """
    if label:
        traits["description"] = label
    if help:
        traits["tooltip"] = explained(help, " ".join(GREEK.findall(label)))
    if width:
        traits["layout"] = {
            "width": f"{width}px" if isinstance(width, int) else width,
            **traits.get("layout", {}),
        }
    if (label or label_width) and kind is not widgets.Button:  # whose label is all of it
        label_width = label_width or "initial"
        wide = f"{label_width}px" if isinstance(label_width, int) else label_width
        traits["style"] = {"description_width": wide, **traits.get("style", {})}
    widget = kind(**traits)
    for name in classes:
        widget.add_class(name)
    return widget


class Fitting:
    """`with` it controls are fitted to something else; while it is `on`, what they say is no choice of a person."""

    on = False

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False


def tabs(options: Mapping[str, str], value: str | None, *classes: str) -> widgets.ToggleButtons:
    """A quiet row of tabs: {title: what its `value` then is}."""
    return made(
        widgets.ToggleButtons, "fl-tabs", *classes, options=list(options.items()), value=value
    )


def wears(widget: widgets.DOMWidget, name: str, on: bool) -> None:
    """Let a widget have a CSS class, or not."""
    (widget.add_class if on else widget.remove_class)(name)


def player(slider: widgets.Widget, **traits: Any) -> widgets.Play:
    """A `Play` that replays a slider, from where it starts; `traits` such as interval, tooltip."""
    trait = "index" if hasattr(slider, "index") else "value"
    ends = {"min": getattr(slider, "min", 0), "max": getattr(slider, "max", 0)}
    play = widgets.Play(value=getattr(slider, trait), **ends, **traits)
    widgets.jslink((play, "value"), (slider, trait))
    return play
