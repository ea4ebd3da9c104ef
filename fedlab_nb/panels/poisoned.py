"""One row: how many clients are poisoned, and how. Its value is the setting `poison` (see `methods/poison.py`)."""

import ipywidgets as widgets

from ..methods.poison import Poison
from .theme import made, named

NOBODY = "none"
KINDS = (
    ("no client is poisoned", NOBODY),
    ("flipped labels", "labels"),
    ("change turned round", "sign"),
    ("change blown up", "scaled"),
)


class PoisonRow:
    """`value` is "none", "labels:2", "scaled:1:10"; `row` the widgets."""

    def __init__(self) -> None:
        self.kind, self.count = named("poison", options=KINDS, value=NOBODY), named("poisoned")
        self.row = made(widgets.HBox, "fl-poison", children=[self.kind, self.count])
        self.factor = ""
        self.kind.observe(lambda _: self._fit(), "value")
        self._fit()

    def _fit(self) -> None:
        self.count.disabled = self.kind.value == NOBODY

    def fit(self, clients: int) -> None:
        """There are so many clients."""
        self.count.max = max(1, clients)

    @property
    def value(self) -> str:
        if self.kind.value == NOBODY:
            return NOBODY
        return f"{self.kind.value}:{self.count.value}{self.factor if self.kind.value == 'scaled' else ''}"

    def put(self, value: object, clients: int) -> None:
        """Show a setting; UsageError for one that is none."""
        poison = Poison.read(str(value), clients)
        self.fit(clients)
        self.kind.value = poison.kind if poison.count else NOBODY
        self.count.value = poison.count or 1
        self.factor = f":{poison.factor:g}" if poison.kind == "scaled" else ""
