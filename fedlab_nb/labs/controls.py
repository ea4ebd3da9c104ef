"""What the menus of labs' views share."""

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets


def offer(menu: widgets.Dropdown, options: Iterable[Any], otherwise: Any) -> None:
    """Give `menu` other `options`, values or (words, value) pairs. What is chosen stays where it can, else it is
    `otherwise`.
    """
    options = tuple(options)
    if menu.options != options:
        chosen, values = menu.value, [option[1] if isinstance(option, tuple) else option for option in options]
        menu.options = options
        menu.value = chosen if chosen in values else otherwise
