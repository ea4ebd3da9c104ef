"""The controls of a playground: what can be chosen, within which limits, and the choice as settings of `study.job`."""

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from ..data import DATASETS, RULES, is_name, is_path, title_of
from ..errors import UsageError, choose, demand, number, whole
from ..methods import METHODS
from ..study.settings import classroom_epochs
from .guess import Guess
from .knobs import KnobBox
from .lab_view import LabSpec
from .method_box import MethodBox
from .poisoned import NOBODY, PoisonRow
from .theme import made, named

OWN_FILE = "own file"
SETTINGS = ("dataset", "alpha", "clients", "epochs", "device", "seed", "seeds")
ROWS = ("methods", "guess", "poison")  # controls of several widgets
NAMES = (*SETTINGS, *ROWS)


def heading(text: str) -> widgets.HTML:
    return widgets.HTML(f'<span class="fl-heading">{text}</span>')


class Controls:
    """The left column. Names of the widgets are names of settings; `settings()` reads them. A lab has the knobs of its
    method (`knobs`) and further settings of the run (`extras`).
    """

    def __init__(self, spec: LabSpec) -> None:
        self.method = spec.method
        self.knobs = KnobBox(spec.method, spec.knobs) if spec.method else None
        self.extras = {
            extra.name: made(
                widgets.Dropdown, options=extra.options, value=extra.options[0][1], description=extra.label,
                tooltip=extra.help, label_width=112,
            )
            for extra in spec.extras
        }  # fmt: skip
        self.guess, self.poison = Guess(), PoisonRow()
        names = [(f"{info.title}{'' if info.offline else ' (download)'}", name) for name, info in DATASETS.items()]
        self.dataset = named("dataset", options=[*names, ("Your own file (.csv, .npz) …", OWN_FILE)], value="digits")
        self.path, self.alpha, self.ends, self.clients = map(named, ("path", "alpha", "ends", "clients"))
        self.epochs, self.device, self.seed, self.seeds = map(named, ("epochs", "device", "seed", "seeds"))
        self.run, self.stop, self.progress = map(named, ("run", "stop", "progress"))
        self.methods, self.most_clients = MethodBox(), self.clients.max
        self.phase, self.error, self.facts = (made(widgets.HTML, f"fl-{name}") for name in ("phase", "error", "facts"))
        self.epochs_are_default, self.named_clients = True, 0
        self._fixed: set[str] = set()
        ways = [("The data set's own clients", "natural"), *((f"Anew: {rule}", rule) for rule in RULES)]
        self.dealing = named("dealing", options=ways, layout={"display": "none"})
        self.clients.observe(lambda change: self.poison.fit(change["new"]), "value")
        for menu in filter(None, (self.dealing, self.extras.get("partition"))):
            menu.observe(lambda _: self._deal(), "value")

    def layout(self) -> widgets.VBox:
        own: list[widgets.Widget] = list(self.extras.values())
        if self.knobs:
            own = [heading(METHODS[self.method].info.title), *own, self.knobs.widget]
            self.methods.leave_out(self.method)
            self.methods.widget.add_class("fl-few")
        grid = made(widgets.Box, "fl-grid", children=[self.epochs, self.device, self.seed, self.seeds])
        buttons = made(widgets.HBox, "fl-buttons", children=[self.run, self.stop])
        start = made(widgets.VBox, "fl-start", children=[buttons, self.progress, self.phase, self.error])
        title = heading("Beside it" if self.method else "Methods")
        column = [
            self.dataset, self.path, self.dealing, self.alpha, self.ends, self.clients, start, self.facts, *own,
            made(widgets.HBox, "fl-over", children=[title, self.methods.filter]), self.methods.widget,
            grid, self.poison.row, self.guess.row,
        ]  # fmt: skip
        return made(widgets.VBox, "fl-controls", children=column)

    @property
    def choices(self) -> list[Any]:
        """All that has a value and can be changed at any time: what `observe` it is a change of the panel's state."""
        plain = [
            self.dealing,
            self.alpha,
            self.clients,
            self.seed,
            self.seeds,
            self.device,
            self.epochs,
            self.guess.method,
            self.poison.kind,
            self.poison.count,
        ]
        knobs = self.knobs.controls.values() if self.knobs else ()
        return [*plain, *self.methods.boxes.values(), *self.extras.values(), *knobs]

    # ------------------------------------------------------------------------------------------- reading and writing
    @property
    def data(self) -> str:
        """The chosen data set's name or path; UsageError while a file is to be named and is not."""
        if self.dataset.value != OWN_FILE:
            return self.dataset.value
        path = self.path.value.strip()
        demand(
            path,
            "No file is named yet: give the path of a .csv table, or of an .npz file with x_train, y_train, "
            "x_test and y_test.",
        )
        return path if is_path(path) else f"./{path}"

    @data.setter
    def data(self, name: Any) -> None:
        name = str(name)
        if is_name(name):
            if all(name != known for _, known in self.dataset._options_full):  # no menu's, or added since
                self.dataset.options = [*self.dataset.options, (title_of(name), name)]
            self.dataset.value = name
            return
        if not is_path(name):
            choose("dataset", name, [*DATASETS, "PATH.npz", "PATH.csv"])
        self.path.value = name
        self.dataset.value = OWN_FILE

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of `study.job`; the epochs only where they are not the preset's own."""
        chosen = {"dataset": self.data, "alpha": float(f"{self.alpha.value:.2g}")}
        chosen |= {name: getattr(self, name).value for name in ("clients", "seed", "seeds")}
        if not self.epochs_are_default:
            chosen["epochs"] = self.epochs.value
        if self.device.value != "auto":
            chosen["device"] = self.device.value
        if self.poison.value != NOBODY:
            chosen["poison"] = self.poison.value
        for name, widget in self.extras.items():
            if widget.value != widget.options[0][1]:
                chosen[name] = widget.value
        if self.named_clients:
            chosen = {"partition": self.dealing.value, **chosen, "clients": self.own_clients or self.clients.value}
        return {**chosen, **(self.knobs.changed if self.knobs else {})}

    def adapt(self, samples: int, named_clients: int = 0) -> None:
        """Limits and defaults for that many training samples: never more clients than samples, the preset's local
        epochs. named_clients: how many clients the data name, which are then the choice beside dealing samples out.
        """
        self.named_clients = named_clients
        self.dealing.layout.display = None if named_clients else "none"
        self._deal()
        self.clients.max = max(1, min(self.most_clients, samples))
        if self.epochs_are_default:
            self.epochs.value = classroom_epochs(self.data, samples)

    @property
    def own_clients(self) -> int:
        """How many clients the data name, if these are used; else 0."""
        menu = self.extras.get("partition")  # a lab's own: what is chosen there counts, but not what it begins with
        dealt = self.dealing.value != "natural" or (menu is not None and menu.value != menu.options[0][1])
        return 0 if dealt else self.named_clients

    def _deal(self) -> None:
        """The sliders that deal samples out move only if they do something."""
        for name, widget in (("alpha", self.alpha), ("clients", self.clients)):
            widget.disabled = bool(self.own_clients) or name in self._fixed

    def note_epochs(self, samples: int | None) -> None:
        """Remember whether the epochs are the preset's own for that many samples, or the learner's."""
        if samples is not None:
            self.epochs_are_default = self.epochs.value == classroom_epochs(self.data, samples)

    def busy(self, is_busy: bool) -> None:
        """While a job runs, Stop can be pressed and the data set cannot be changed."""
        self.stop.disabled = not is_busy
        self.run.disabled = self.dataset.disabled = self.path.disabled = is_busy

    def hide(self, names: Sequence[str]) -> None:
        """Take controls off the panel, by the name of their setting (teacher mode)."""
        for name in names:
            self._control(name).layout.display = "none"
            if name == "alpha":
                self.ends.layout.display = "none"

    def fix(self, name: str, value: Any) -> None:
        """Give a control a value that cannot be changed."""
        self._fixed.add(name)
        self.put(name, value)
        widget = self._control(name)
        for part in widget.children if name in ROWS else (widget,):
            part.disabled = True

    def takes(self, name: str) -> bool:
        """Whether the setting `name` has a control."""
        return name in (*SETTINGS, "poison") or name in self.extras or bool(self.knobs and self.knobs.has(name))

    def put(self, name: str, value: Any) -> None:
        """Set a control by the name of its setting."""
        if name == "dataset":
            self.data = value
        elif name == "methods":
            self.methods.value = value
        elif name == "poison":
            self.poison.put(value, self.clients.value)
        elif name not in NAMES and name not in self.extras and self.knobs and self.knobs.has(name):
            self.knobs.put(name, value)  # plain `epochs` are the local ones
        else:
            widget = self._control(name)
            if name in self.extras and all(value != each for _, each in widget.options):
                widget.options = [*widget.options, (str(value), value)]
            if name == "epochs":
                self.epochs_are_default = False
            put(widget, name, value, "smaller is more skewed" if name == "alpha" else "")

    def _control(self, name: str) -> widgets.Widget:
        if name not in NAMES and self.knobs and self.knobs.has(name):
            return self.knobs[name]
        choose("control", name, (*NAMES, *self.extras, *(self.knobs.knobs if self.knobs else ())))
        if name in ("guess", "poison"):
            return getattr(self, name).row
        return self.methods.widget if name == "methods" else self.extras.get(name) or getattr(self, name)


def put(widget: widgets.Widget, name: str, value: Any, hint: str = "") -> None:
    """Give a widget a value; UsageError, with the widget's `name`, for one that it has not."""
    if hasattr(widget, "options"):
        allowed = [option for _, option in widget._options_full]
        if value not in allowed:
            raise UsageError(f"{name} is {value!r}, but it must be one of: {', '.join(map(str, allowed))}.")
    elif hasattr(widget, "min"):
        ends = [widget.base**end if hasattr(widget, "base") else end for end in (widget.min, widget.max)]
        value = (whole if isinstance(widget.value, int) else number)(name, value, *ends, hint=hint)
    widget.value = value
