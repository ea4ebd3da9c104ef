"""The controls of a playground: what can be chosen, within which limits, and the choice as settings of `study.job`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ipywidgets as widgets

from ..data import DATASETS
from ..errors import UsageError, choose, number
from ..methods import METHODS
from ..study.settings import classroom_recipe
from .guess import Guess
from .knobs import KnobBox
from .lab_view import LabSpec

OWN_FILE = "own file"
MOST_CLIENTS = 50
NAMES = ("dataset", "alpha", "clients", "methods", "epochs", "device", "seed", "seeds", "guess")
ALPHA = (-2, 2)  # powers of ten that the slider spans


class MethodBox:
    """One checkbox a method. `value` is the tuple of those that are ticked; `observe(f)` calls f after each change."""

    def __init__(self) -> None:
        self.boxes = {
            name: widgets.Checkbox(False, description=cls.info.title, indent=False, tooltip=tip(cls.info))
            for name, cls in METHODS.items()
        }
        self.widget = widgets.VBox(list(self.boxes.values()))
        self.widget.add_class("fl-methods")

    @property
    def value(self) -> tuple[str, ...]:
        return tuple(name for name, box in self.boxes.items() if box.value)

    @value.setter
    def value(self, names: Iterable[str]) -> None:
        names = [choose("method", name, self.boxes) for name in ([names] if isinstance(names, str) else names)]
        for name, box in self.boxes.items():
            box.value = name in names

    def ticked_first(self) -> None:
        """Put the ticked ones on top, so that what is chosen can be seen without scrolling; done once, at the start."""
        self.widget.children = sorted(self.boxes.values(), key=lambda box: not box.value)

    def observe(self, call: Any) -> None:
        for box in self.boxes.values():
            box.observe(call, "value")


def tip(info: Any) -> str:
    return f"{info.help} ({info.paper}; {info.rounds})"


class Controls:
    """The left column. Names of the widgets are names of settings; `settings()` reads them. A lab has the knobs of its
    method (`knobs`) and further settings of the run (`extras`).
    """

    def __init__(self, spec: LabSpec | None = None) -> None:
        spec = spec or LabSpec()
        self.method = spec.method
        self.knobs = KnobBox(spec.method, spec.knobs) if spec.method else None
        self.extras = {
            extra.name: widgets.Dropdown(
                options=extra.options, value=extra.options[0][1], description=extra.label, tooltip=extra.help,
                style={"description_width": "112px"},
            )
            for extra in spec.extras
        }  # fmt: skip
        self.guess = Guess()
        wide = {"description_width": "58px"}
        names = [(f"{info.title}{'' if info.offline else ' (download)'}", name) for name, info in DATASETS.items()]
        self.dataset = widgets.Dropdown(
            options=[*names, ("Your own file (.npz) …", OWN_FILE)], value="digits", description="Data set", style=wide,
            tooltip="Data whose training samples are dealt out to the clients",
        )  # fmt: skip
        self.path = widgets.Text(
            placeholder="path/to/data.npz, then Enter", description="File", continuous_update=False, style=wide,
            tooltip="A file with x_train, y_train, x_test, y_test (and x_public, if there is any)",
        )  # fmt: skip
        self.alpha = widgets.FloatLogSlider(
            value=0.1, base=10, min=ALPHA[0], max=ALPHA[1], step=0.05, description="α (skew)", style=wide,
            readout_format=".2g", tooltip="Dirichlet concentration: smaller is more skewed",
        )  # fmt: skip
        self.ends = widgets.HTML(
            '<div class="fl-ends"><span>each client sees one or two classes</span>'
            "<span>everyone sees the same mix</span></div>"
        )
        self.clients = widgets.IntSlider(
            value=10,
            min=1,
            max=MOST_CLIENTS,
            description="Clients",
            style=wide,
            tooltip="How many clients share the data",
        )
        self.methods = MethodBox()
        self.epochs = self._whole("Epochs", 40, 1, 500, "Local epochs: passes of each client over its own samples")
        self.device = widgets.Dropdown(
            options=["auto", "cpu", "cuda"], description="Device", style={"description_width": "52px"},
            tooltip="Where to compute; auto takes a CUDA GPU if there is one",
        )  # fmt: skip
        self.seed = self._whole(
            "Seed", 0, 0, 10**6, "The first seed: it decides the partition, the initial model, every shuffle"
        )
        self.seeds = self._whole(
            "Seeds", 3, 1, 50, "How many seeds: each is a federation of its own; bands show their spread"
        )
        self.run = widgets.Button(description="Run", tooltip="Train the clients and run the ticked methods")
        self.run.add_class("fl-run")
        self.stop = widgets.Button(description="Stop", tooltip="Stop the run; finished results stay", disabled=True)
        self.stop.add_class("fl-stop")
        self.progress = widgets.FloatProgress(value=0, min=0, max=1)
        self.progress.add_class("fl-progress")
        self.phase, self.error, self.facts = widgets.HTML(), widgets.HTML(), widgets.HTML()
        for name in ("phase", "error", "facts"):
            getattr(self, name).add_class(f"fl-{name}")
        for name in ("dataset", "path", "alpha", "clients", "epochs", "device", "seed", "seeds"):
            getattr(self, name).add_class(f"fl-{name}")
        self.epochs_are_default = True

    @staticmethod
    def _whole(label: str, value: int, low: int, high: int, tooltip: str) -> widgets.BoundedIntText:
        return widgets.BoundedIntText(
            value=value, min=low, max=high, description=label, tooltip=tooltip, style={"description_width": "52px"}
        )

    def layout(self) -> widgets.VBox:
        title = METHODS[self.method].info.title if self.method else ""
        heading = widgets.HTML(f'<span class="fl-heading">{"Beside it" if self.method else "Methods"}</span>')
        own: list[widgets.Widget] = []
        if self.knobs:
            own = [widgets.HTML(f'<span class="fl-heading">{title}</span>'), *self.extras.values(), self.knobs.widget]
            self.methods.boxes[self.method].layout.display = "none"
            self.methods.widget.add_class("fl-few")
        else:
            own = list(self.extras.values())
        grid = widgets.Box([self.epochs, self.device, self.seed, self.seeds])
        grid.add_class("fl-grid")
        buttons = widgets.HBox([self.run, self.stop])
        buttons.add_class("fl-buttons")
        start = [buttons, self.progress, self.phase, self.error]
        above, below = ([], start) if not self.method else (start, [])  # with knobs Run would slip off a small screen
        column = [
            self.dataset, self.path, self.alpha, self.ends, self.clients, *above, self.facts, *own, heading,
            self.methods.widget, grid, self.guess.row, *below,
        ]  # fmt: skip
        box = widgets.VBox(column)
        box.add_class("fl-controls")
        return box

    # ------------------------------------------------------------------------------------------- reading and writing
    @property
    def data(self) -> str:
        """The chosen data set's name or path; UsageError while a file is to be named and is not."""
        if self.dataset.value != OWN_FILE:
            return self.dataset.value
        path = self.path.value.strip()
        if not path:
            raise UsageError(
                "No file is named yet: give the path of an .npz file with x_train, y_train, x_test and y_test."
            )
        return path if path.lower().endswith(".npz") or "/" in path or "\\" in path else f"./{path}"

    @data.setter
    def data(self, name: Any) -> None:
        name = str(name)
        if name in DATASETS:
            self.dataset.value = name
            return
        if not (name.lower().endswith(".npz") or "/" in name or "\\" in name):
            choose("dataset", name, [*DATASETS, "PATH.npz"])
        self.path.value = name
        self.dataset.value = OWN_FILE

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of `study.job`; the epochs only where they are not the preset's own."""
        chosen = {
            "dataset": self.data,
            "alpha": float(f"{self.alpha.value:.2g}"),
            "clients": self.clients.value,
            "seed": self.seed.value,
            "seeds": self.seeds.value,
        }
        if not self.epochs_are_default:
            chosen["epochs"] = self.epochs.value
        if self.device.value != "auto":
            chosen["device"] = self.device.value
        for name, widget in self.extras.items():
            if widget.value != widget.options[0][1]:
                chosen[name] = widget.value
        return {**chosen, **(self.knobs.changed if self.knobs else {})}

    def adapt(self, samples: int) -> None:
        """Limits and defaults for that many training samples: never more clients than samples, the preset's local
        epochs.
        """
        self.clients.max = max(1, min(MOST_CLIENTS, samples))
        if self.epochs_are_default:
            self.epochs.value = classroom_recipe(samples).epochs

    def note_epochs(self, samples: int | None) -> None:
        """Remember whether the epochs are the preset's own for that many samples, or the learner's."""
        if samples is not None:
            self.epochs_are_default = self.epochs.value == classroom_recipe(samples).epochs

    def busy(self, is_busy: bool) -> None:
        """While a job runs, Stop can be pressed and the data set cannot be changed."""
        self.stop.disabled = not is_busy
        self.run.disabled = is_busy
        self.dataset.disabled = self.path.disabled = is_busy

    def hide(self, names: Sequence[str]) -> None:
        """Take controls off the panel, by the name of their setting (teacher mode)."""
        for name in names:
            widget = self._control(name)
            widget.layout.display = "none"
            if name == "alpha":
                self.ends.layout.display = "none"

    def fix(self, name: str, value: Any) -> None:
        """Give a control a value that cannot be changed."""
        self.put(name, value)
        widget = self._control(name)
        for part in widget.children if name in ("methods", "guess") else (widget,):
            part.disabled = True

    def put(self, name: str, value: Any) -> None:
        """Set a control by the name of its setting."""
        if name == "dataset":
            self.data = value
        elif name == "methods":
            self.methods.value = value
        elif name == "device":
            self.device.value = choose("device", value, self.device.options)
        elif name in self.extras:
            self._put_extra(name, value)
        elif name not in NAMES and self.knobs and self.knobs.has(name):  # plain `epochs` are the local ones
            self.knobs.put(name, value)
        else:
            self._put_number(name, value)

    def _put_extra(self, name: str, value: Any) -> None:
        widget = self.extras[name]
        if all(value != each for _, each in widget.options):
            widget.options = [*widget.options, (str(value), value)]
        widget.value = value

    def _put_number(self, name: str, value: Any) -> None:
        widget = self._control(name)
        low, high = (10.0 ** ALPHA[0], 10.0 ** ALPHA[1]) if name == "alpha" else (widget.min, widget.max)
        checked = number(
            name, value, low, high, integer=name != "alpha", hint="smaller is more skewed" if name == "alpha" else ""
        )
        if name == "epochs":
            self.epochs_are_default = False
        widget.value = checked

    def _control(self, name: str) -> widgets.Widget:
        if name not in NAMES and self.knobs and self.knobs.has(name):
            return self.knobs[name]
        choose("control", name, (*NAMES, *self.extras, *(self.knobs.knobs if self.knobs else ())))
        if name == "guess":
            return self.guess.row
        return self.methods.widget if name == "methods" else self.extras.get(name) or getattr(self, name)

    def takes(self, name: str) -> bool:
        """Whether there is a control for the setting `name`."""
        return name in NAMES or name in self.extras or bool(self.knobs and self.knobs.has(name))
