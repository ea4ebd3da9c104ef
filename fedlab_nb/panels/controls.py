"""The controls of a panel: what can be chosen, within which limits, and the choice as settings of `study.job`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..data import DATASETS, RULES, Federation, add_public_part, find_title, is_name, is_path, load
from ..data import federate as deal_out
from ..data.files import ENDINGS
from ..errors import UsageError, check_names, check_number, check_whole_number, choose
from ..methods import METHODS
from ..plots.style import class_colours
from ..plots.words import duration
from ..studies.cost import Cost, estimate_cost
from ..studies.settings import Settings, choose_classroom_epochs
from .choices import NO_POISON, KnobBox, MethodBox, PoisonRow
from .facts import Debouncer, describe_cost
from .file_card import FileCard
from .lab_view import LabSpec, PanelState
from .theme import make_widget, offer, paragraph, show_if

OWN_FILE = "own file"
SETTINGS = ("dataset", "alpha", "clients", "epochs", "device", "seed", "seeds")
PREVIEWED = (
    0.01,
    0.1,
    1.0,
    10.0,
    100.0,
)  # five places of the α slider, as far from each other as they are there
THUMB = 10  # clients in a small picture, at most
SUGGESTED = (".csv", ".csv.gz", ".tsv", ".xlsx", ".parquet", ".npz", ".npy")
MOST_FILES = 100  # suggestions of a file's name
LONG = 60.0  # seconds of a run before which it asks, at least
WIDE, SHORT = (
    {"label_width": 58},
    {"label_width": 52},
)  # labels of the column, and of the grid in it


def alpha_slider(**traits: Any) -> widgets.FloatLogSlider:
    form = {
        "base": 10,
        "min": -2,
        "max": 2,
        "step": 0.05,
        "readout_format": ".2r",
    }  # what a run uses: two digits
    help = "How unevenly the samples are divided. A smaller α is more skewed"
    return make_widget(
        widgets.FloatLogSlider,
        "fl-alpha",
        label="α (skew)",
        value=0.1,
        help=help,
        **form,
        **WIDE,
        **traits,
    )


def whole_field(
    label: str, value: int, low: int, high: int, help: str, **traits: Any
) -> widgets.BoundedIntText:
    """A field of the grid for a whole number from `low` to `high`."""
    style = f"fl-{label.lower()}"
    return make_widget(
        widgets.BoundedIntText,
        style,
        label=label,
        value=value,
        min=low,
        max=high,
        help=help,
        **SHORT,
        **traits,
    )


def seed_field(**traits: Any) -> widgets.BoundedIntText:
    help = "The first seed. It decides how the samples are divided, the initial model, and every random choice"
    return whole_field("Seed", 0, 0, 1_000_000, help, **traits)


def heading(text: str) -> widgets.HTML:
    return widgets.HTML(f'<span class="fl-heading">{text}</span>')


class Controls:
    """The left column. Names of the widgets are names of settings; `settings()` reads them. A lab has the knobs of its
    method (`knobs`) and further settings of the run (`extras`).
    """

    def __init__(self, spec: LabSpec, debouncer: Debouncer) -> None:
        self.spec, self.debouncer = spec, debouncer
        self.knobs = KnobBox(spec.method, spec.knobs)
        self.extras = {}
        for extra in spec.extras:
            own = {
                "label": extra.label,
                "help": extra.help,
                "options": extra.options,
                "value": extra.options[0][1],
            }
            self.extras[extra.name] = make_widget(widgets.Dropdown, label_width=112, **own)
        self.beside: dict[str, Any] = {}  # settings that no control has, and that every run gets
        self.poison = PoisonRow()
        names = [
            (f"{info.title}{'' if info.offline else ' (download)'}", name)
            for name, info in DATASETS.items()
        ]
        self.dataset = make_widget(
            widgets.Dropdown, "fl-dataset", label="Data set", **WIDE,
            options=[*names, ("Choose a file …", OWN_FILE)], value="digits",
            help="The data set. Its training samples are divided among the clients",
        )  # fmt: skip
        self.path = make_widget(
            widgets.Combobox, "fl-path", label="File", placeholder="path/to/data.csv, then Enter", **WIDE,
            help="A table (.csv, .xlsx, …), arrays (.npz) or a folder of pictures. Files of this folder are suggested",
            continuous_update=False,
        )  # fmt: skip
        self.card = FileCard()
        self.dealing = make_widget(
            widgets.Dropdown, "fl-dealing", label="Divided", options=["dirichlet"], **WIDE,
            help="Use the clients that the data set names, or divide the samples again with the sliders",
        )  # fmt: skip
        self.alpha, self.ends, self.seed = (
            alpha_slider(),
            make_widget(widgets.HTML, "fl-ends"),
            seed_field(),
        )
        many = "How many share the data (M in formulas)"
        self.clients = make_widget(
            widgets.IntSlider,
            "fl-clients",
            label="Clients",
            value=10,
            min=1,
            max=100,
            help=many,
            **WIDE,
        )
        self.epochs = whole_field(
            "Epochs", 40, 1, 500, "How many times each client goes through its own samples"
        )
        auto = "Where to compute. auto uses a CUDA GPU if there is one"
        self.device = make_widget(
            widgets.Dropdown,
            "fl-device",
            label="Device",
            options=["auto", "cpu", "cuda"],
            help=auto,
            **SHORT,
        )
        self.seeds = whole_field(
            "Seeds", 3, 1, 50, "Each makes another federation. Bands show how much they differ"
        )
        self.run = make_widget(
            widgets.Button,
            "fl-run",
            label="Run",
            help="Train the clients and run the chosen methods",
        )
        self.stop = make_widget(
            widgets.Button, "fl-stop", label="Stop", help="Stop the run. Finished results are kept"
        )
        self.progress = make_widget(widgets.FloatProgress, "fl-progress", value=0, min=0, max=1)
        self.methods, self.most_clients = MethodBox(spec.method), self.clients.max
        lines = ("phase", "error", "facts", "cost")
        self.phase, self.error, self.facts, self.cost = (
            make_widget(widgets.HTML, f"fl-{name}") for name in lines
        )
        self.preset_epochs, self.named_clients = self.epochs.value, 0
        self.named = {name: getattr(self, name) for name in SETTINGS} | self.extras
        self.named |= {"methods": self.methods.widget, "poison": self.poison.row}
        self.more = make_widget(
            widgets.ToggleButton,
            "fl-more",
            label="More",
            help="What most runs leave as it is",
            width="auto",
        )
        self._fixed: set[str] = set()
        self._chosen_clients: int | None = None  # before a data set's own clients were used
        self._asked, self._agreed = ((), {}, 0), False
        self._previewed: Mapping[str, Any] | None = None
        show_if(False, self.dealing)
        self.clients.observe(lambda change: self.poison.fit(change["new"]), "value")
        for menu in filter(None, (self.dealing, self.extras.get("partition"))):
            menu.observe(lambda _: self._deal(), "value")

    def layout(self) -> widgets.VBox:
        own: list[widgets.Widget] = []
        if self.spec.method:
            own = [
                heading(METHODS[self.spec.method].info.title),
                *self.extras.values(),
                self.knobs.widget,
            ]
        grid = make_widget(
            widgets.Box, "fl-grid", children=[self.epochs, self.device, self.seed, self.seeds]
        )
        rest = [*([] if own else self.extras.values()), grid, self.poison.row]
        rest += [self.knobs.rest] if self.knobs.rest.children else []
        folded = make_widget(widgets.VBox, "fl-folded", children=rest)
        self.more.observe(lambda change: show_if(change["new"], folded), "value")
        show_if(False, folded)
        buttons = make_widget(widgets.HBox, "fl-buttons", children=[self.run, self.stop])
        start = make_widget(
            widgets.VBox,
            "fl-start",
            children=[buttons, self.cost, self.progress, self.phase, self.error],
        )
        beside = heading("Beside it" if self.spec.method else "Methods")
        column = [
            self.dataset, self.path, self.card.widget, self.dealing, self.alpha, self.ends, self.clients, start,
            self.facts, *own, beside, self.methods.widget, self.more, folded,
        ]  # fmt: skip
        return make_widget(widgets.VBox, "fl-controls", children=column)

    def preview(self, partition: Mapping[str, Any]) -> None:
        """Show at the slider how the same data would be divided at five values of α."""
        about = {name: value for name, value in partition.items() if name not in ("alpha", "moves")}
        if about != self._previewed:
            self._previewed = about
            self.ends.value = "" if self.own_clients else thumbs(about)

    def begin(
        self, methods: Iterable[str] | None, settings: Mapping[str, Any], fixed: Mapping[str, Any]
    ) -> None:
        """Put the controls where a panel begins; `fixed` ones stay there. UsageError for a value that cannot be had."""
        ticked = self.spec.companions if methods is None else check_names("methods", methods)
        self.methods.value = [name for name in ticked if name != self.spec.method]
        self.beside = {name: value for name, value in settings.items() if not self.takes(name)}
        for name, value in settings.items():
            if name not in self.beside:
                self.put(name, value)
        for name, value in fixed.items():
            self.fix(name, value)

    @property
    def choices(self) -> list[Any]:
        """All that has a value and can be changed at any time: what `observe` it is a change of the panel's state."""
        plain = [
            widget
            for name, widget in self.named.items()
            if name not in ("dataset", "methods", "poison")
        ]
        rows = [self.dealing, self.poison.kind, self.poison.count, *self.methods.boxes.values()]
        return [*plain, *rows, *self.knobs.controls.values()]

    # ------------------------------------------------------------------------------------------- reading and writing
    @property
    def data(self) -> str:
        """The chosen data set's name or path; UsageError while a file is to be named and is not."""
        if self.dataset.value != OWN_FILE:
            return self.dataset.value
        path = self.path.value.strip()
        if not path:
            raise UsageError(f"No file is named yet: give the path of {ENDINGS}.")
        return path if is_path(path) else f"./{path}"

    @data.setter
    def data(self, name: Any) -> None:
        name = str(name)
        if is_name(name):
            if all(
                name != known for _, known in self.dataset._options_full
            ):  # no menu's, or added since
                self.dataset.options = [*self.dataset.options, (find_title(name), name)]
            self.dataset.value = name
            return
        if not is_path(name):
            choose("dataset", name, [*DATASETS, "PATH.npz", "PATH.csv"])
        self.path.value = name
        self.dataset.value = OWN_FILE

    def show_file_field(self) -> None:
        """Show the field for a file where one is to be chosen, with the files of this folder as suggestions."""
        is_own = self.dataset.value == OWN_FILE
        show_if(is_own, self.path)
        if is_own:
            self.path.options = find_data_files()
        else:
            self.card.hide()

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of `study.job`; most of them only where they are not the usual ones."""
        chosen = {"dataset": self.data, "alpha": float(f"{self.alpha.value:.2g}")}
        chosen |= {name: getattr(self, name).value for name in ("clients", "seed", "seeds")}
        usual = {"epochs": self.preset_epochs, "device": "auto"}
        usual |= {name: menu.options[0][1] for name, menu in self.extras.items()}
        chosen |= {
            name: self.named[name].value for name in usual if self.named[name].value != usual[name]
        }
        if self.poison.value != NO_POISON:
            chosen["poison"] = self.poison.value
        if self.named_clients:
            chosen = {
                "partition": self.dealing.value,
                **chosen,
                "clients": self.own_clients or self.clients.value,
            }
        elif self.dealing.layout.display is None and self.dealing.value != "dirichlet":
            chosen["partition"] = self.dealing.value
        return {**chosen, **self.knobs.changed}

    def tell(self, asked: tuple[Any, Any, int]) -> None:
        """Say under Run what it will cost: (methods, settings, number of runs so far, as what was run is remembered).
        It takes 10 ms and more to reckon."""
        if asked != self._asked:
            self._asked, self._agreed, self.run.description = asked, False, "Run"
            self.debouncer.request(
                "cost",
                self.reckon,
                lambda cost: setattr(self.cost, "value", paragraph(describe_cost(cost))),
            )

    def reckon(self) -> Cost | None:
        """What Run will cost."""
        methods, settings, _ = self._asked
        return estimate_cost((methods, settings)) if methods else None

    def doubts(self) -> bool:
        """Whether Run takes so long that it is to be pressed once more, which is then said."""
        cost = None if self._agreed else self.reckon()
        if cost is None or cost.seconds is None or cost.seconds < LONG:
            return False
        self._agreed, self.run.description = True, "Run all the same"
        self.phase.value = paragraph(
            f"This takes {duration(cost.seconds)}. Press once more to start.", "status"
        )
        return True

    @property
    def chosen(self) -> tuple[str, ...]:
        """What Run runs: the lab's method first, then those that are ticked."""
        return tuple(filter(None, (self.spec.method, *self.methods.value)))

    def changes(self, old: PanelState, fresh: bool = False) -> dict[str, Any]:
        """What the controls say now, as changes of the state `old`. The data are dealt out anew where that is asked for
        in another way, or with `fresh`; as long as there are none, they are not.
        """
        methods = self.chosen
        # A setting of a method that does not run is none.
        beside = {
            name: v
            for name, v in self.beside.items()
            if "." not in name or name.split(".")[0] in methods
        }
        settings = {**self.settings(), **beside}
        now, then = (
            [s.get(n) for n in ("dataset", "clients", "partition")]
            for s in (settings, old.settings)
        )
        if old.settings and now != then:  # what was moved by hand belonged to other clients
            for each in (settings, self.beside):
                each.pop("moves", None)
        federation, partition = old.federation, old.partition
        if fresh or federation is not None:
            partition = partition_of(settings)
            if fresh or partition != old.partition:
                federation = federate(**partition)
        own = {"knobs": self.knobs.value, "methods": methods, "epochs": self.epochs.value}
        return {"settings": settings, **own, "federation": federation, "partition": partition}

    def adapt(self) -> None:
        """Limits and defaults for the chosen data set, which is loaded: never more clients than samples, the preset's
        local epochs; where the data name clients, those are the choice beside dealing samples out.
        """
        data = load(self.data)
        if self.dataset.value == OWN_FILE:
            self.card.show(self.data, data)
        self.named_clients = 0 if "partition" in self.beside else len(data.client_names)
        ways = [("The data set's own clients", "natural")] if self.named_clients else []
        ways += [(f"Anew: {rule}", rule) for rule in RULES]
        ways += [("Each client its own fonts", "fonts")] if data.font_train is not None else []
        known = any(way == "natural" for _, way in self.dealing._options_full)
        offer(self.dealing, ways)
        if self.named_clients and not known:
            self.dealing.value = "natural"
        show_if(ways[0][1] == "natural" or ways[-1][1] == "fonts", self.dealing)
        self.clients.max = max(1, min(self.most_clients, len(data.y_train)))
        self._deal()
        before, self.preset_epochs = (
            self.preset_epochs,
            choose_classroom_epochs(self.data, len(data.y_train)),
        )
        if self.epochs.value == before:
            self.epochs.value = self.preset_epochs

    @property
    def own_clients(self) -> int:
        """How many clients the data name, if these are used; else 0."""
        menu = self.extras.get(
            "partition"
        )  # a lab's own: what is chosen there counts, but not what it begins with
        dealt = self.dealing.value != "natural" or (
            menu is not None and menu.value != menu.options[0][1]
        )
        return 0 if dealt else self.named_clients

    def _deal(self) -> None:
        """The sliders that deal samples out move only if they do something."""
        for name, widget in (("alpha", self.alpha), ("clients", self.clients)):
            nothing = self.own_clients or (name == "alpha" and self.dealing.value == "fonts")
            widget.disabled = bool(nothing) or name in self._fixed
        self._show_client_count()

    def _show_client_count(self) -> None:
        """The slider of the clients says how many the data name where these are used; where samples are dealt out
        again it goes back to what it said before.
        """
        own = self.own_clients
        if own and self._chosen_clients is None:
            self._chosen_clients = self.clients.value
        if own:
            self.clients.max = max(own, self.clients.max)
            self.clients.value = own
        elif self._chosen_clients is not None:
            self.clients.value = min(self._chosen_clients, self.clients.max)
            self._chosen_clients = None

    def busy(self, is_busy: bool) -> None:
        """While a job runs, Stop can be pressed and the data set cannot be changed."""
        self.stop.disabled = not is_busy
        self.run.disabled = self.dataset.disabled = self.path.disabled = is_busy

    def hide(self, names: Sequence[str]) -> None:
        """Take controls off the panel, by the name of their setting (teacher mode)."""
        for name in names:
            show_if(False, self._control(name), *([self.ends] if name == "alpha" else []))

    def fix(self, name: str, value: Any) -> None:
        """Give a control a value that cannot be changed."""
        widget = self._control(name)
        self._fixed.add(name)
        self.put(name, value)
        for part in leaves(widget):
            part.disabled = True

    def takes(self, name: str) -> bool:
        """Whether the setting `name` has a control."""
        return name in self.named or self.knobs.has(name)

    def put(self, name: str, value: Any) -> None:
        """Set a control by the name of its setting."""
        if name == "dataset":
            self.data = value
        elif name == "methods":
            self.methods.value = value
        elif name == "poison":
            self.poison.put(value, self.clients.value)
        elif name not in self.named:  # plain `epochs` are the local ones
            self.knobs.put(name, value)
        else:
            widget = self.named[name]
            if name in self.extras and all(value != each for _, each in widget.options):
                widget.options = [*widget.options, (str(value), value)]
            put(widget, name, value, "smaller is more skewed" if name == "alpha" else "")

    def _control(self, name: str) -> widgets.Widget:
        if name not in self.named and self.knobs.has(name):
            return self.knobs[name]
        return self.named[choose("control", name, (*self.named, *self.knobs.knobs))]


def find_data_files() -> list[str]:
    """Files in this folder that can be read as data, by name."""
    try:
        names = sorted(path.name for path in Path().iterdir() if path.is_file())
    except OSError:
        return []
    return [name for name in names if name.endswith(SUGGESTED)][:MOST_FILES]


def leaves(widget: widgets.Widget) -> Iterator[Any]:
    """The widgets in a box, and in the boxes in it; of any other itself."""
    if not hasattr(widget, "children"):
        yield widget
    for part in getattr(widget, "children", ()):
        yield from leaves(part)


def put(widget: widgets.Widget, name: str, value: Any, hint: str = "") -> None:
    """Give a widget a value; UsageError, with the widget's `name`, for one that it has not."""
    if hasattr(widget, "options"):
        allowed = [option for _, option in widget._options_full]
        if value not in allowed:
            options = ", ".join(map(str, allowed))
            raise UsageError(f"{name} is {value!r}, but it must be one of: {options}.")
    elif hasattr(widget, "min"):
        ends = [
            widget.base**end if hasattr(widget, "base") else end for end in (widget.min, widget.max)
        ]
        value = (check_whole_number if isinstance(widget.value, int) else check_number)(
            name, value, *ends, hint=hint
        )
    widget.value = value


def partition_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `federate` for the first seed. Whether the device is there is a matter of the run."""
    chosen = Settings.make(**{**settings, "device": "cpu"})
    return {"dataset": chosen.dataset, "public": chosen.public, **chosen.make_federation_options()}


def federate(dataset: str, public: str | float, **options: Any) -> Federation:
    """The federation of a run with these settings; `options`: of `data.federate`."""
    return deal_out(add_public_part(load(dataset), public), **options)


def thumbs(partition: Mapping[str, Any]) -> str:
    """Small pictures of a partition at the values PREVIEWED of α: a column a client, its classes on one another."""
    options, pictures = dict(partition), []
    data = add_public_part(load(options.pop("dataset")), options.pop("public"))
    for alpha in PREVIEWED:
        shares = deal_out(data, **options, alpha=alpha).label_counts[:THUMB].double()
        ends = (100 * shares / shares.sum(1, keepdim=True)).cumsum(1).round().int().tolist()
        paths = [""] * shares.shape[1]
        for k, own in enumerate(ends):
            for c, (low, high) in enumerate(zip([0, *own], own, strict=False)):
                if high > low:
                    paths[c] += f"M{10 * k} {low}h9v{high - low}h-9z"
        coloured = zip(class_colours(len(paths)), paths, strict=True)
        drawn = "".join(f'<path fill="{colour}" d="{path}"/>' for colour, path in coloured if path)
        box = f'viewBox="0 0 {10 * len(ends)} 100" preserveAspectRatio="none"'
        pictures.append(f"<svg {box}><title>α = {alpha:g}</title>{drawn}</svg>")
    few, same = "each client sees one or two classes", "everyone sees the same mix"
    row = f'<div class="fl-thumbs" role="img" aria-label="{few} … {same}">{"".join(pictures)}</div>'
    return f"{row}<div><span>{few}</span><span>{same}</span></div>"
