"""The views: a row of tabs, and for each view a caption, a sentence, a picture of fixed height and its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


class View:
    """One view. Classes for the browser: fl-view-NAME, and within it fl-caption, fl-sentence, fl-frame (picture) and fl-table."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.caption, self.sentence, self.table = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self.frame = widgets.HTML(layout=widgets.Layout(height=PICTURE_HEIGHT, width="auto"))
        for part in ("caption", "sentence", "frame", "table"):
            getattr(self, part).add_class(f"fl-{part}")
        self.box = widgets.VBox([self.caption, self.sentence, self.frame])
        self.box.add_class("fl-view").add_class(f"fl-view-{name}")
        self.picture: Picture | None = None

    def show(self, picture: Picture, caption: str) -> None:
        self.picture = picture
        self.frame.value = image(png(picture), picture.alt)
        self.sentence.value = paragraph(picture.sentence, "status")
        self.caption.value = paragraph(caption)
        if self.table in self.box.children:
            self.table.value = table(picture.table)

    def say(self, text: str, caption: str = "") -> None:
        """Words in place of a picture: what to do so that there will be one."""
        self.picture = None
        self.frame.value = f'<div class="fl-empty">{paragraph(text)}</div>'
        self.sentence.value, self.table.value = "", ""
        self.caption.value = paragraph(caption)

    def with_table(self, wanted: bool) -> None:
        if wanted:
            self.table.value = table(self.picture.table) if self.picture else ""
        parts = [self.caption, self.sentence, self.frame]
        self.box.children = [*parts, self.table] if wanted else parts


class Views:
    """All views under their tabs; one is visible. `client` is the chosen client or None."""

    def __init__(self) -> None:
        self.views = {name: View(name) for name in VIEWS}
        self.tabs = tabs({title: name for name, title in VIEWS.items()}, "partition")
        self.tables = widgets.ToggleButton(False, description="Numbers as a table", tooltip="Show the numbers of this picture")
        self.tables.add_class("fl-tables")
        self.client = widgets.Dropdown(
            options=[("none", None)], description="Look at client", tooltip="Mark one client in every view",
            style={"description_width": "92px"}, layout=widgets.Layout(width="180px"),
        )  # fmt: skip
        self.client.add_class("fl-client")
        foot = widgets.HBox([self.tables, self.client])
        foot.add_class("fl-foot")
        self.box = widgets.VBox([self.tabs, *(view.box for view in self.views.values()), foot])
        self.box.add_class("fl-main")
        self._hide_others()
        self.tables.observe(lambda _: self._tables(), "value")

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

        self.tabs.observe(changed, "value")

    def set_clients(self, count: int) -> None:
        """Offer clients 0 … count − 1; the choice stays where it can."""
        if len(self.client.options) != count + 1:
            chosen = self.client.value
            self.client.options = [("none", None), *((str(k), k) for k in range(count))]
            self.client.value = chosen if chosen is not None and chosen < count else None

    def _hide_others(self) -> None:
        for name, view in self.views.items():
            view.box.layout.display = None if name == self.visible else "none"

    def _tables(self) -> None:
        for view in self.views.values():
            view.with_table(self.tables.value)


def tabs(options: dict[str, str], value: str | None, extra: Sequence[str] = ()) -> widgets.ToggleButtons:
    """A quiet row of tabs."""
    made = widgets.ToggleButtons(options=list(options.items()), value=value)
    made.add_class("fl-tabs")
    for name in extra:
        made.add_class(name)
    return made
