"""Choices of several widgets: a method's knobs, the methods to run, who is poisoned.

The knobs come from the method's dataclass: adding a field there adds its control here.
"""

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets

from ..declared import read_toml
from ..errors import choose
from ..methods import METHODS, group_methods
from ..methods.base import Knob
from ..methods.poison import Poison
from ..models import MENU
from ..plots.words import format_letters
from ..symbols import add_symbol_meanings
from .theme import make_widget, show_if

LABEL = {"description_width": "128px"}
SLIDER_STEPS = 60  # whole numbers with a narrower range than this get a slider
STEP = 0.01
HUGE = 10**9
NOBODY, MOST_CLIENTS = -1, 50
NO_POISON = "none"
# What a chip says where the title does not say which bars its method gives.
CHIPS = {"ensemble": "Ensemble: both means"}
POISONS = (
    ("no client is poisoned", NO_POISON), ("flipped labels", "labels"), ("change turned round", "sign"),
    ("change blown up", "scaled"), ("false answers", "lie"),
)  # fmt: skip


class KnobBox:
    """`widget` holds the controls that are seen at once, `rest` the others; `value` all settings, `changed` those that
    are not the preset's."""

    def __init__(self, method: str, shown: Iterable[str] = ()) -> None:
        self.method = method
        self.knobs = {knob.name: knob for knob in METHODS[method].fields()} if method else {}
        self.controls = {
            name: control(knob, METHODS[method].info.title) for name, knob in self.knobs.items()
        }
        first = [choose(f"setting of {method}", name, self.knobs) for name in shown] or list(
            self.knobs
        )[:6]
        others = [self.controls[name] for name in self.knobs if name not in first]
        self.widget = make_widget(
            widgets.VBox, "fl-knobs", children=[self.controls[name] for name in first]
        )
        self.rest = make_widget(widgets.VBox, "fl-knobs", children=others)

    @property
    def value(self) -> dict[str, Any]:
        values = {name: control.value for name, control in self.controls.items()}
        return {
            name: float(f"{v:.3g}") if isinstance(v, float) else v for name, v in values.items()
        }

    @property
    def changed(self) -> dict[str, Any]:
        """Qualified settings (`fens.rounds`) that differ from the classroom preset."""
        return {
            f"{self.method}.{name}": v
            for name, v in self.value.items()
            if v != self.knobs[name].default
        }

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
    help = add_symbol_meanings(f"{label}: {knob.help}", knob.symbol, owner)
    same = {"value": knob.default, "description": label, "tooltip": help, "style": LABEL}
    if knob.model:  # suggestions, and any other with its width
        return widgets.Combobox(options=("auto", *MENU), continuous_update=False, **same)
    if knob.options:
        return widgets.Dropdown(options=[(spelled(value), value) for value in knob.options], **same)
    if isinstance(knob.default, bool):
        return widgets.Checkbox(indent=False, **{**same, "style": {}})
    if not isinstance(knob.default, int | float):
        return widgets.Text(continuous_update=False, **{**same, "value": str(knob.default)})
    low, high = -HUGE if knob.low is None else knob.low, HUGE if knob.high is None else knob.high
    if isinstance(knob.default, int):
        if knob.default == knob.low == NOBODY:  # a client or none
            clients = [(f"client {format_letters(k)}", k) for k in range(MOST_CLIENTS)]
            return widgets.Dropdown(options=[("nobody", NOBODY), *clients], **same)
        short = high - low <= SLIDER_STEPS
        kind, more = (
            (widgets.IntSlider, {"continuous_update": False})
            if short
            else (widgets.BoundedIntText, {})
        )
        return kind(min=int(low), max=int(high), **more, **same)
    if high - low <= 2 and not knob.log and on_grid(knob.default, low):
        return widgets.FloatSlider(min=low, max=high, step=STEP, readout_format=".3g", **same)
    return widgets.BoundedFloatText(min=low, max=high, step=None, **same)


def spelled(option: str) -> str:
    """An option of a knob in words: "per_class" -> "per class"."""
    return read_toml("panels/options.toml").get(option, option.replace("_", " "))


def on_grid(value: float, low: float) -> bool:
    """Whether a slider from `low` in steps of STEP can stand at `value`; a browser would move it to the next place."""
    return abs((value - low) / STEP - round((value - low) / STEP)) < 1e-9


class MethodBox:
    """The methods to choose from: `value` is the tuple of those that are chosen, each of them a chip that a click takes
    out; "+" opens the list of all, in groups, with a filter.

    without: a lab's own method, which always runs
    """

    def __init__(self, without: str = "") -> None:
        self.boxes, self._chips = {}, {}
        for name, info in ((name, cls.info) for name, cls in METHODS.items() if name != without):
            tip = f"{info.help} ({info.paper}; {info.rounds})"
            self.boxes[name] = widgets.Checkbox(
                False, description=info.title, indent=False, tooltip=tip
            )
            self._chips[name] = make_widget(
                widgets.Button,
                "fl-chip",
                label=CHIPS.get(name, info.title),
                help=f"Remove {info.title}",
            )
            self._chips[name].on_click(lambda _, name=name: self._take_out(name))
            self.boxes[name].observe(lambda _: self._chosen(), "value")
        self.groups = group_methods(self.boxes)
        self.headings = {
            title: make_widget(widgets.HTML, "fl-group", value=title) for title in self.groups
        }
        self.filter = make_widget(
            widgets.Text, "fl-filter", placeholder="filter: a name, a group or a year",
            help="Show the methods whose name, group or paper has these letters",
        )  # fmt: skip
        self.add = make_widget(
            widgets.ToggleButton,
            "fl-add",
            label="+ method",
            help="The list of all methods",
            width="auto",
        )
        children: list[widgets.Widget] = []
        for title, names in self.groups.items():
            children += [self.headings[title], *(self.boxes[name] for name in names)]
        self.list = make_widget(widgets.VBox, "fl-methods", children=children)
        self.chips = make_widget(widgets.Box, "fl-chips", children=[self.add])
        self.widget = make_widget(
            widgets.VBox, "fl-choice", children=[self.chips, self.filter, self.list]
        )
        self.filter.observe(lambda _: self._show(), "value")
        self.add.observe(lambda change: show_if(change["new"], self.filter, self.list), "value")
        show_if(False, self.filter, self.list)

    @property
    def value(self) -> tuple[str, ...]:
        return tuple(name for name, box in self.boxes.items() if box.value)

    @value.setter
    def value(self, names: Iterable[str]) -> None:
        names = [
            choose("method", name, self.boxes)
            for name in ([names] if isinstance(names, str) else names)
        ]
        for name, box in self.boxes.items():
            box.value = name in names

    def _take_out(self, name: str) -> None:
        self.boxes[name].value = False
        self.add.focus()  # the chip that had it is gone

    def _chosen(self) -> None:
        self.chips.children = [*(self._chips[name] for name in self.value), self.add]

    def _show(self) -> None:
        """Show what the field asks for, by title, name, group or paper; everything while it is empty."""
        asked = self.filter.value.strip().lower()
        for title, names in self.groups.items():
            fitting = set()
            for name in names:
                info = METHODS[name].info
                if asked in f"{info.title}\n{name}\n{title}\n{info.paper}".lower():
                    fitting.add(name)
                show_if(name in fitting, self.boxes[name])
            show_if(fitting, self.headings[title])


class PoisonRow:
    """How many clients are poisoned, and how. `value` is the setting `poison`: "none", "labels:2", "scaled:1:10"."""

    def __init__(self) -> None:
        self.kind = make_widget(
            widgets.Dropdown, "fl-poisoned", label="Poison", label_width=58, options=POISONS, value=NO_POISON,
            help="Some clients harm the others. They flip their labels, or they send a change of the model with the "
            "opposite sign, or one that is much too large, or they answer falsely when an ensemble asks them",
        )  # fmt: skip
        self.count = make_widget(
            widgets.BoundedIntText, "fl-bare", label="Poisoned clients", value=1, min=1, max=50, width=56,
            help="How many clients are poisoned. The seed decides which ones", disabled=True,
        )  # fmt: skip
        self.row = make_widget(widgets.HBox, "fl-poison", children=[self.kind, self.count])
        self.factor = ""
        self.kind.observe(
            lambda change: setattr(self.count, "disabled", change["new"] == NO_POISON), "value"
        )

    def fit(self, clients: int) -> None:
        """There are so many clients."""
        self.count.max = max(1, clients)

    @property
    def value(self) -> str:
        if self.kind.value == NO_POISON:
            return NO_POISON
        return f"{self.kind.value}:{self.count.value}{self.factor if self.kind.value == 'scaled' else ''}"

    def put(self, value: object, clients: int) -> None:
        """Show a setting; UsageError for one that is none."""
        poison = Poison.parse(str(value), clients)
        self.fit(clients)
        self.kind.value = poison.kind if poison.count else NO_POISON
        self.count.value = poison.count or 1
        self.factor = str(poison).removeprefix(f"{poison.kind}:{poison.count}")
