"""The controls of labs' views, each in a line: a label, what to choose from, what it is for."""

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets

WIDE = {"description_width": "initial"}


def dropdown(label: str, options: Iterable[Any], tooltip: str, width: int) -> widgets.Dropdown:
    """`options`: values, or (words, value) pairs; `width` in pixels."""
    layout = {"width": f"{width}px"}
    return widgets.Dropdown(options=list(options), description=label, tooltip=tooltip, style=WIDE, layout=layout)


def offer(menu: widgets.Dropdown, options: Iterable[Any], otherwise: Any) -> None:
    """Give `menu` other `options` (as for `dropdown`). What is chosen stays where it can, else it is `otherwise`."""
    options = tuple(options)
    if menu.options != options:
        chosen, values = menu.value, [option[1] if isinstance(option, tuple) else option for option in options]
        menu.options = options
        menu.value = chosen if chosen in values else otherwise


def whole_numbers(label: str, value: int, low: int, high: int, tooltip: str, **more: Any) -> widgets.IntSlider:
    """A slider; `more` as for `IntSlider`."""
    return widgets.IntSlider(value, low, high, description=label, tooltip=tooltip, style=WIDE, **more)
