"""The methods to choose from: one checkbox each, in groups, with a field that filters them."""

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets

from ..errors import choose
from ..methods import METHODS, grouped
from .theme import made, named


class MethodBox:
    """`value` is the tuple of those that are ticked; `widget` the list, `row` the field over it."""

    def __init__(self) -> None:
        self.boxes = {
            name: widgets.Checkbox(False, description=cls.info.title, indent=False, tooltip=tip(cls.info))
            for name, cls in METHODS.items()
        }
        self.groups = grouped(METHODS)
        self.headings = {title: made(widgets.HTML, "fl-group", value=title) for title in self.groups}
        self.filter = named("filter")
        self.widget = made(widgets.VBox, "fl-methods")
        self.first: tuple[str, ...] = ()
        self.filter.observe(lambda _: self._show(), "value")
        self.ticked_first()

    @property
    def value(self) -> tuple[str, ...]:
        return tuple(name for name, box in self.boxes.items() if box.value)

    @value.setter
    def value(self, names: Iterable[str]) -> None:
        names = [choose("method", name, self.boxes) for name in ([names] if isinstance(names, str) else names)]
        for name, box in self.boxes.items():
            box.value = name in names

    def leave_out(self, name: str) -> None:
        """Take a method off the list: a lab's own always runs."""
        self.boxes[name].layout.display = "none"
        self._out = name

    _out = ""

    def ticked_first(self) -> None:
        """Put the ticked ones on top, so that what is chosen can be seen without scrolling; done once, at the start."""
        self.first = self.value
        children: list[widgets.Widget] = [self.boxes[name] for name in self.first]
        for title, names in self.groups.items():
            children += [self.headings[title], *(self.boxes[name] for name in names if name not in self.first)]
        self.widget.children = children
        self._show()

    def _show(self) -> None:
        """Show what the field asks for, by title, name, group or paper; everything while it is empty."""
        asked = self.filter.value.strip().lower()
        for title, names in self.groups.items():
            shown = 0
            for name in names:
                info = METHODS[name].info
                fits = asked in f"{info.title}\n{name}\n{title}\n{info.paper}".lower() and name != self._out
                self.boxes[name].layout.display = None if fits else "none"
                shown += fits and name not in self.first
            self.headings[title].layout.display = None if shown else "none"


def tip(info: Any) -> str:
    return f"{info.help} ({info.paper}; {info.rounds})"
