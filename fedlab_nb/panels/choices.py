"""Choices that have several widgets: a method's knobs, the methods to run, how many clients are poisoned.

The knobs come from the method's dataclass: adding a field there adds its control here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import ipywidgets as widgets
from ipywidgets.widgets.widget_bool import CheckboxStyle

from ..declared import read_toml
from ..errors import check_allowed_name
from ..methods import METHODS, group_method_names
from ..methods.base import Knob, KnobValue
from ..methods.poison import Poison
from ..models import MENU
from ..plots.words import format_client_letters
from ..symbols import append_symbol_meanings_to_tooltip
from ..value_types import SettingValue
from .sliders import FineSlider
from .theme import make_widget, show_widgets_if

LABEL = {"description_width": "128px"}
SLIDER_STEPS = 60  # a knob for whole numbers gets a slider if its range is no larger than this
STEP = 0.01  # of a slider for numbers that are not whole
HUGE = 10**9  # the end of a range that a knob leaves open
NOBODY = -1  # the value "no client" of a knob whose values are clients
MAX_CLIENTS = 50  # in the menu of such a knob
NO_POISON = "none"
# {method: text of its chip}, where the method's title does not say which bars the method has
CHIPS = {"ensemble": "Ensemble: both means"}
POISONS = (
    ("no client is poisoned", NO_POISON), ("flipped labels", "labels"), ("change turned round", "sign"),
    ("change blown up", "scaled"), ("false answers", "lie"),
)  # fmt: skip


class KnobControls:
    """The controls of a method's knobs: `widget` has those that are shown at once, `rest` the others.

    shown_knobs: names of the knobs that are shown at once; if there is none, the first six
    """

    def __init__(self, method_name: str, shown_knobs: Iterable[str] = ()) -> None:
        self.method = method_name
        self.knobs: dict[str, Knob] = {}
        self.controls: dict[str, widgets.Widget] = {}
        if method_name:
            title = METHODS[method_name].info.title
            for knob in METHODS[method_name].fields():
                self.knobs[knob.name] = knob
                self.controls[knob.name] = make_knob_control(knob, title)
        first = [
            check_allowed_name(f"setting of {method_name}", name, self.knobs)
            for name in shown_knobs
        ]
        if not first:
            first = list(self.knobs)[:6]
        shown_controls = [self.controls[name] for name in first]
        other_controls = [self.controls[name] for name in self.knobs if name not in first]
        self.widget = make_widget(widgets.VBox, "fl-knobs", children=shown_controls)
        self.rest = make_widget(widgets.VBox, "fl-knobs", children=other_controls)

    @property
    def value_by_plain_knob_name(self) -> dict[str, KnobValue]:
        """The values of all knobs, by their plain names, such as "rounds"."""
        values = {}
        for name, control in self.controls.items():
            value = control.value
            values[name] = float(f"{value:.3g}") if isinstance(value, float) else value
        return values

    @property
    def non_default_settings(self) -> dict[str, SettingValue]:
        """The values that are not the default, by qualified names, such as "fens.rounds"."""
        changed = {}
        for name, value in self.value_by_plain_knob_name.items():
            if value != self.knobs[name].default:
                changed[f"{self.method}.{name}"] = value
        return changed

    def set_knob(self, plain_or_qualified_name: str, value: SettingValue) -> None:
        """Set a knob by its name, "rounds" or "fens.rounds".

        UsageError for a name that no knob has, and for a value that it does not take.
        """
        plain_name = plain_or_qualified_name.removeprefix(f"{self.method}.")
        name = check_allowed_name(f"setting of {self.method}", plain_name, self.knobs)
        self.controls[name].value = self.knobs[name].convert_and_check(self.method, value)

    def has_knob(self, plain_or_qualified_name: str) -> bool:
        """Whether the method has a knob of this name, plain or qualified."""
        return plain_or_qualified_name.removeprefix(f"{self.method}.") in self.knobs

    def __getitem__(self, name: str) -> widgets.Widget:
        return self.controls[name.removeprefix(f"{self.method}.")]


def make_knob_control(knob: Knob, method_title: str = "") -> widgets.Widget:
    """Make the widget of a knob: a menu, a checkbox, a slider if the range is short, or a number field.

    Its tooltip has the knob's help, and the meaning that its symbol has in this method.
    """
    label = f"{knob.label} {knob.symbol}".strip()
    help = append_symbol_meanings_to_tooltip(f"{label}: {knob.help}", knob.symbol, method_title)
    same = {"value": knob.default, "description": label, "tooltip": help, "style": LABEL}
    if knob.model:  # suggestions, and any other with its width
        return widgets.Combobox(options=("auto", *MENU), continuous_update=False, **same)
    if knob.options:
        return widgets.Dropdown(
            options=[(format_knob_option_for_menu(value), value) for value in knob.options], **same
        )
    if isinstance(knob.default, bool):
        return widgets.Checkbox(indent=False, **{**same, "style": {}})
    if not isinstance(knob.default, int | float):
        return widgets.Text(continuous_update=False, **{**same, "value": str(knob.default)})
    low = -HUGE if knob.low is None else knob.low
    high = HUGE if knob.high is None else knob.high
    if isinstance(knob.default, int):
        return make_whole_number_control(knob, int(low), int(high), same)
    if high - low <= 2 and not knob.log and is_on_step_of_knob_slider(knob.default, low):
        return FineSlider(min=low, max=high, step=STEP, readout_format=".3g", **same)
    return widgets.BoundedFloatText(min=low, max=high, step=None, **same)


def make_whole_number_control(
    knob: Knob, lowest: int, highest: int, widget_traits: Mapping[str, Any]
) -> widgets.Widget:
    """Make the widget of a knob with whole numbers: a menu of clients, a slider or a number field."""
    if knob.default == knob.low == NOBODY:  # a client or none
        options = [("nobody", NOBODY)]
        options += [
            (f"client {format_client_letters(client)}", client) for client in range(MAX_CLIENTS)
        ]
        return widgets.Dropdown(options=options, **widget_traits)
    if highest - lowest <= SLIDER_STEPS:
        return widgets.IntSlider(min=lowest, max=highest, continuous_update=False, **widget_traits)
    return widgets.BoundedIntText(min=lowest, max=highest, **widget_traits)


def format_knob_option_for_menu(option: str) -> str:
    """Format an option of a knob for a menu: "per_class" -> "per class"."""
    return read_toml("panels/options.toml").get(option, option.replace("_", " "))


def is_on_step_of_knob_slider(value: float, slider_minimum: float) -> bool:
    """Whether `value` is a whole number of STEPs from `slider_minimum`; a browser moves a slider to such a value."""
    steps = (value - slider_minimum) / STEP
    return abs(steps - round(steps)) < 1e-9


class MethodChooser:
    """A choice of methods; `chosen_method_names` has the chosen ones, in the order of the list.

    Each chosen method is a chip, which a click removes. "+ method" opens the list of all methods, in
    groups, with a filter.

    excluded_method: a lab's own method, which always runs
    """

    def __init__(self, excluded_method: str = "") -> None:
        self.boxes: dict[str, widgets.Checkbox] = {}
        self._chips: dict[str, widgets.Button] = {}
        shared_style = CheckboxStyle()  # one for all: each widget is a message to the browser
        for name, method in METHODS.items():
            if name == excluded_method:
                continue
            info = method.info
            help = f"{info.help} ({info.paper}; {info.rounds})"
            box = widgets.Checkbox(
                False, description=info.title, indent=False, tooltip=help, style=shared_style
            )
            box.observe(lambda _: self._show_chips_of_chosen_methods(), "value")
            self.boxes[name] = box
        self.groups = group_method_names(self.boxes)
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
        self.filter.observe(lambda _: self._show_methods_that_match_filter(), "value")
        self.add.observe(
            lambda change: show_widgets_if(change["new"], self.filter, self.list), "value"
        )
        show_widgets_if(False, self.filter, self.list)

    @property
    def chosen_method_names(self) -> tuple[str, ...]:
        return tuple(name for name, box in self.boxes.items() if box.value)

    @chosen_method_names.setter
    def chosen_method_names(self, method_names: Iterable[str]) -> None:
        if isinstance(method_names, str):
            method_names = [method_names]
        chosen = [check_allowed_name("method", name, self.boxes) for name in method_names]
        for name, box in self.boxes.items():
            box.value = name in chosen

    def _unselect_method(self, method_name: str) -> None:
        self.boxes[method_name].value = False
        self.add.focus()  # the chip that had the focus is gone

    def _show_chips_of_chosen_methods(self) -> None:
        self.chips.children = [
            *(self._get_or_make_chip(name) for name in self.chosen_method_names),
            self.add,
        ]

    def _get_or_make_chip(self, method_name: str) -> widgets.Button:
        """The chip of a method, made when the method is first chosen."""
        if method_name not in self._chips:
            title = METHODS[method_name].info.title
            chip = make_widget(
                widgets.Button,
                "fl-chip",
                label=CHIPS.get(method_name, title),
                help=f"Remove {title}",
            )
            chip.on_click(lambda _: self._unselect_method(method_name))
            self._chips[method_name] = chip
        return self._chips[method_name]

    def _show_methods_that_match_filter(self) -> None:
        """Show the methods that have the field's text in their title, name, group or paper."""
        text = self.filter.value.strip().lower()
        for title, names in self.groups.items():
            fitting = set()
            for name in names:
                info = METHODS[name].info
                if text in f"{info.title}\n{name}\n{title}\n{info.paper}".lower():
                    fitting.add(name)
                show_widgets_if(name in fitting, self.boxes[name])
            show_widgets_if(bool(fitting), self.headings[title])


class PoisonControls:
    """How many clients are poisoned, and how.

    `poison_setting` is the setting `poison`: "none", "labels:2", "scaled:1:10".
    """

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
        self.kind.observe(lambda _: self._disable_count_if_nobody_is_poisoned(), "value")

    def _disable_count_if_nobody_is_poisoned(self) -> None:
        self.count.disabled = self.kind.value == NO_POISON

    def limit_poisoned_count_to(self, client_count: int) -> None:
        """Let at most so many clients be poisoned."""
        self.count.max = max(1, client_count)

    @property
    def poison_setting(self) -> str:
        kind = self.kind.value
        if kind == NO_POISON:
            return NO_POISON
        factor = self.factor if kind == "scaled" else ""
        return f"{kind}:{self.count.value}{factor}"

    def set_poison_setting(self, poison_setting: str, client_count: int) -> None:
        """Set the controls to a setting such as "labels:2"; UsageError if it is not valid."""
        poison = Poison.parse(str(poison_setting), client_count)
        self.limit_poisoned_count_to(client_count)
        self.kind.value = poison.kind if poison.count else NO_POISON
        self.count.value = poison.count or 1
        self.factor = str(poison).removeprefix(f"{poison.kind}:{poison.count}")
