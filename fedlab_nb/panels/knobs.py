"""Controls for a method's hyper-parameters, made from its dataclass: adding a field there adds its control here."""

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets

from ..declared import declared
from ..errors import choose
from ..methods import METHODS
from ..methods.base import Knob
from ..models import MENU
from ..symbols import of_label, said_with
from .theme import made

LABEL = {"description_width": "128px"}
SLIDER_STEPS = 60  # whole numbers with a narrower range than this get a slider
STEP = 0.01
HUGE = 10**9
NOBODY, MOST_CLIENTS = -1, 50


class KnobBox:
    """`widget` holds the controls; `value` all settings, `changed` those that are not the preset's."""

    def __init__(self, method: str, shown: Iterable[str] = ()) -> None:
        self.method = method
        self.knobs = {knob.name: knob for knob in METHODS[method].fields()}
        self.controls = {name: control(knob, METHODS[method].info.title) for name, knob in self.knobs.items()}
        first = [choose(f"setting of {method}", name, self.knobs) for name in shown] or list(self.knobs)[:6]
        rest = [name for name in self.knobs if name not in first]
        self.more = made(
            widgets.ToggleButton, "fl-more", description=f"More settings ({len(rest)})", layout={"width": "auto"}
        )
        self.rest = widgets.VBox([self.controls[name] for name in rest], layout={"display": "none"})
        parts = [self.controls[name] for name in first]
        self.widget = made(widgets.VBox, "fl-knobs", children=[*parts, self.more, self.rest] if rest else parts)
        self.more.observe(lambda change: self._unfold(change["new"]), "value")

    def _unfold(self, opened: bool) -> None:
        self.rest.layout.display = None if opened else "none"

    @property
    def value(self) -> dict[str, Any]:
        values = {name: control.value for name, control in self.controls.items()}
        values = {name: float(f"{v:.3g}") if isinstance(v, float) else v for name, v in values.items()}
        return {
            name: knob.default if values[name] == knob.default else values[name] for name, knob in self.knobs.items()
        }

    @property
    def changed(self) -> dict[str, Any]:
        """Qualified settings (`fens.rounds`) that differ from the classroom preset."""
        return {f"{self.method}.{name}": v for name, v in self.value.items() if v != self.knobs[name].default}

    def put(self, name: str, value: Any) -> None:
        """Set a knob by its name, plain or qualified."""
        name = choose(f"setting of {self.method}", name.removeprefix(f"{self.method}."), self.knobs)
        self.controls[name].value = self.knobs[name].check(self.method, value)

    def has(self, name: str) -> bool:
        return name.removeprefix(f"{self.method}.") in self.knobs

    def __getitem__(self, name: str) -> widgets.Widget:
        return self.controls[name.removeprefix(f"{self.method}.")]


def control(knob: Knob, owner: str = "") -> widgets.Widget:
    """The widget of one knob: a dropdown, a box to tick, a slider where the range is short, else a number field. Its
    tooltip has the help, and what the symbol means to the method with the title `owner`.
    """
    label = f"{knob.label} {knob.symbol}".strip()
    same = {
        "description": label,
        "tooltip": said_with(f"{label}: {knob.help}", of_label(knob.symbol, owner)),
        "style": LABEL,
    }
    if knob.model:  # suggestions, and any other with its width
        return widgets.Combobox(value=knob.default, options=("auto", *MENU), continuous_update=False, **same)
    if knob.options:
        return widgets.Dropdown(options=[(spelled(value), value) for value in knob.options], value=knob.default, **same)
    if isinstance(knob.default, bool):
        return widgets.Checkbox(knob.default, indent=False, **{**same, "style": {}})
    if not isinstance(knob.default, int | float):
        return widgets.Text(str(knob.default), continuous_update=False, **same)
    low, high = -HUGE if knob.low is None else knob.low, HUGE if knob.high is None else knob.high
    if isinstance(knob.default, int):
        if knob.default == knob.low == NOBODY:  # a client or none
            clients = [(f"client {k}", k) for k in range(MOST_CLIENTS)]
            return widgets.Dropdown(options=[("nobody", NOBODY), *clients], value=NOBODY, **same)
        if high - low <= SLIDER_STEPS:
            return widgets.IntSlider(knob.default, int(low), int(high), continuous_update=False, **same)
        return widgets.BoundedIntText(knob.default, min=int(low), max=int(high), **same)
    if high - low <= 2 and not knob.log and on_grid(knob.default, low):
        return widgets.FloatSlider(knob.default, min=low, max=high, step=STEP, readout_format=".3g", **same)
    return widgets.BoundedFloatText(knob.default, min=low, max=high, step=None, **same)


def spelled(option: str) -> str:
    """An option of a knob in words: "per_class" -> "per class"."""
    return declared("panels/options.toml").get(option, option.replace("_", " "))


def on_grid(value: float, low: float) -> bool:
    """Whether a slider from `low` in steps of STEP can stand at `value`; a browser would move it to the next place."""
    return abs((value - low) / STEP - round((value - low) / STEP)) < 1e-9
