"""The views: a row of tabs, and for each view a caption, a sentence, its own controls, a picture of fixed height and
its table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import ipywidgets as widgets

from ..draw import Picture, png
from .look import PICTURE_HEIGHT, image, paragraph, table

VIEWS = {
    "partition": "Who holds what",
    "accuracy": "Accuracy",
    "communication": "Communication",
    "features": "Features (t-SNE)",
    "classes": "Clients and classes",
}

DOTS = ("partition", "features")  # many small marks, which a dark page needs brighter
NOBODY = -1


class View:
    """One view. Classes for the browser: fl-view-NAME, and within it fl-caption, fl-sentence, fl-tools (controls of its
    own) and fl-frame (the picture).
    """

    def __init__(self, name: str, tools: Sequence[widgets.Widget] = ()) -> None:
        self.name = name
        self.caption, self.sentence = widgets.HTML(), widgets.HTML()
        self.frame = widgets.HTML(layout=widgets.Layout(height=PICTURE_HEIGHT, width="auto"))
        for part in ("caption", "sentence", "frame"):
            getattr(self, part).add_class(f"fl-{part}")
        parts: list[widgets.Widget] = [self.caption, self.sentence, self.frame]
        if tools:
            row = widgets.HBox(list(tools))
            row.add_class("fl-tools")
            parts.insert(2, row)
        self.box = widgets.VBox(parts)
        self.box.add_class("fl-view").add_class(f"fl-view-{name}")
        if name in DOTS:
            self.box.add_class("fl-dots")
        self.picture: Picture | None = None

    def show(self, picture: Picture, caption: str) -> None:
        self.picture = picture
        if picture.figure is None:
            self.frame.value = f'<div class="fl-table fl-words">{table(picture.table)}</div>'
        else:
            self.frame.value = image(png(picture), picture.alt)
        self.sentence.value = paragraph(picture.sentence, "status")
        self.caption.value = paragraph(caption)

    def say(self, text: str, caption: str = "") -> None:
        """Words in place of a picture: what to do so that there will be one."""
        self.picture = None
        self.frame.value = f'<div class="fl-empty">{paragraph(text)}</div>'
        self.sentence.value = ""
        self.caption.value = paragraph(caption)


class Views:
    """All views under their tabs; one is visible; `chosen` and `chosen_class` are the client and the class looked at.

    own: {name: (title, tools)} of a lab's views, which stand before the ones that all panels have, or `last`
    """

    def __init__(
        self, own: Mapping[str, tuple[str, Sequence[widgets.Widget]]] | None = None, last: bool = False
    ) -> None:
        own = own or {}
        self.views = {name: View(name, tools) for name, (_, tools) in own.items()} | {n: View(n) for n in VIEWS}
        titles = {title: name for name, title in VIEWS.items()}
        mine = {title: name for name, (title, _) in own.items()}
        titles = {**titles, **mine} if last else {**mine, **titles}
        self.tabs = tabs(titles, "partition")
        self.tables = widgets.ToggleButton(
            False, description="Numbers as a table", tooltip="Show the numbers of this picture"
        )
        self.tables.add_class("fl-tables")
        self.client = widgets.Dropdown(
            options=[("none", NOBODY)], description="Look at client", tooltip="Mark one client in every view",
            style={"description_width": "92px"}, layout=widgets.Layout(width="180px"),
        )  # fmt: skip
        self.client.add_class("fl-client")
        self.klass = widgets.Dropdown(
            options=[("none", NOBODY)], description="class", tooltip="Mark one class in every view",
            style={"description_width": "36px"}, layout=widgets.Layout(width="170px"),
        )  # fmt: skip
        self.klass.add_class("fl-class")
        foot = widgets.HBox([self.tables, self.client, self.klass])
        foot.add_class("fl-foot")
        self.table = widgets.HTML()
        self.table.add_class("fl-table").add_class("fl-numbers")
        self.box = widgets.VBox([self.tabs, *(view.box for view in self.views.values()), foot, self.table])
        self.box.add_class("fl-main")
        self._hide_others()
        self.tables.observe(lambda _: self.show_table(), "value")
        self.show_table()

    @property
    def visible(self) -> str:
        return self.tabs.value

    def __getitem__(self, name: str) -> View:
        return self.views[name]

    def choose(self, name: str) -> None:
        self.tabs.value = name

    def on_choice(self, call: Callable) -> None:
        """`call()` after another view was chosen and before it becomes visible, so that no old picture flashes up."""

        def changed(_: object) -> None:
            call()
            self._hide_others()
            self.show_table()

        self.tabs.observe(changed, "value")

    def set_clients(self, count: int) -> None:
        """Offer clients 0 … count − 1; the choice stays where it can."""
        if len(self.client.options) != count + 1:
            chosen = self.client.value
            self.client.options = [("none", NOBODY), *((str(k), k) for k in range(count))]
            self.client.value = chosen if chosen < count else NOBODY

    def set_classes(self, names: Sequence[str]) -> None:
        """Offer the classes by name; the choice stays where it can."""
        options = [("none", NOBODY), *((str(name), c) for c, name in enumerate(names))]
        if list(self.klass.options) != options:
            chosen = self.klass.value
            self.klass.options = options
            self.klass.value = chosen if chosen < len(names) else NOBODY

    @property
    def chosen_class(self) -> int | None:
        """The class that is looked at, or None."""
        return None if self.klass.value == NOBODY else self.klass.value

    @property
    def chosen(self) -> int | None:
        """The client that is looked at, or None."""
        return None if self.client.value == NOBODY else self.client.value

    def _hide_others(self) -> None:
        for name, view in self.views.items():
            view.box.layout.display = None if name == self.visible else "none"

    def show_table(self) -> None:
        """The visible picture's numbers, where they are wanted."""
        self.table.layout.display = None if self.tables.value else "none"
        if self.tables.value:
            picture = self.views[self.visible].picture
            self.table.value = table(picture.table if picture else [])


def tabs(options: dict[str, str], value: str | None, extra: Sequence[str] = ()) -> widgets.ToggleButtons:
    """A quiet row of tabs."""
    made = widgets.ToggleButtons(options=list(options.items()), value=value)
    made.add_class("fl-tabs")
    for name in extra:
        made.add_class(name)
    return made
