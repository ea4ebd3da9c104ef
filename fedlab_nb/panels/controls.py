"""The controls of a panel, their limits, and the chosen values as settings of `study.job`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets as widgets

from ..data import (
    DATASETS,
    RULES,
    Federation,
    add_public_part,
    find_dataset_title,
    is_dataset_name,
    is_dataset_path,
    load,
)
from ..data import federate as deal_out
from ..data.files import ENDINGS
from ..data.public import PublicShareOrDatasetName
from ..errors import (
    UsageError,
    check_allowed_name,
    check_and_list_unique_names,
    check_number,
    check_whole_number,
)
from ..methods import METHODS
from ..plots.style import list_class_colours
from ..plots.words import format_rough_duration
from ..studies.cost import EstimatedCost, estimate_cost
from ..studies.settings import Settings, choose_classroom_epochs
from ..value_types import SettingsByName, SettingValue
from .choices import NO_POISON, KnobControls, MethodChooser, PoisonControls
from .facts import Debouncer, describe_cost_or_empty
from .file_card import FileCard
from .lab_view import FederationArguments, LabSpec, PanelState, PanelStateChanges
from .sliders import FineLogSlider
from .theme import (
    make_paragraph_html,
    make_widget,
    set_menu_options_and_keep_choice,
    show_widgets_if,
)

OWN_FILE = "own file"
SETTINGS = ("dataset", "alpha", "clients", "epochs", "device", "seed", "seeds")
# The values of the α slider for which there are small pictures; they are equally far apart on it.
PREVIEWED = (0.01, 0.1, 1.0, 10.0, 100.0)
THUMB = 10  # the most clients in a small picture
# Endings of suggested files.
SUGGESTED = (".csv", ".csv.gz", ".tsv", ".xlsx", ".parquet", ".npz", ".npy")
MAX_FILES = 100  # the most suggested files
MOST_SEED = 1_000_000
LONG = 60.0  # seconds; a run that takes longer has to be confirmed
WIDE = {"label_width": 58}  # pixels, for labels in the column
SHORT = {"label_width": 52}  # pixels, for labels in the grid within the column


class RunToEstimate(NamedTuple):
    """A run whose cost is to be estimated.

    finished_runs: the number of runs before it. A finished run changes the estimate, since its results are stored.
    """

    methods: tuple[str, ...]
    settings: SettingsByName
    finished_runs: int


def make_alpha_slider(**traits: Any) -> FineLogSlider:
    # A run uses two digits, as the readout shows.
    form = {"base": 10, "min": -2, "max": 2, "step": 0.05, "readout_format": ".2r"}
    help = "How unevenly the samples are divided. A smaller α is more skewed"
    return make_widget(
        FineLogSlider, "fl-alpha", label="α (skew)", value=0.1, help=help, **form, **WIDE, **traits
    )


def make_whole_number_field(
    label: str, initial_value: int, lowest: int, highest: int, help: str, **traits: Any
) -> widgets.BoundedIntText:
    """Make a field of the grid for a whole number from `lowest` to `highest`."""
    style = f"fl-{label.lower()}"
    return make_widget(
        widgets.BoundedIntText,
        style,
        label=label,
        value=initial_value,
        min=lowest,
        max=highest,
        help=help,
        **SHORT,
        **traits,
    )


def make_seed_field(**traits: Any) -> widgets.BoundedIntText:
    help = (
        "The first seed. It decides how the samples are divided, the initial model, and "
        "every random choice"
    )
    return make_whole_number_field("Seed", 0, 0, MOST_SEED, help, **traits)


def make_heading_widget(text: str) -> widgets.HTML:
    return widgets.HTML(f'<span class="fl-heading">{text}</span>')


class Controls:
    """The left column. Each widget is an attribute with the name of its setting.

    `read_settings_for_study_job()` reads all of them.

    A lab also has the knobs of its method (`knobs`) and further settings of the run (`extras`).
    """

    def __init__(self, spec: LabSpec, debouncer: Debouncer) -> None:
        self.spec = spec
        self.debouncer = debouncer
        self.knobs = KnobControls(spec.method, spec.knobs)
        self.extras = {}
        for extra in spec.extras:
            self.extras[extra.name] = make_widget(
                widgets.Dropdown,
                label_width=112,
                label=extra.label,
                help=extra.help,
                options=extra.options,
                value=extra.options[0][1],
            )
        # Settings without a control, which are used in every run.
        self.hidden_settings: dict[str, Any] = {}
        self.poison = PoisonControls()
        names = []
        for name, info in DATASETS.items():
            title = info.title if info.offline else f"{info.title} (download)"
            names.append((title, name))
        self.dataset = make_widget(
            widgets.Dropdown, "fl-dataset", label="Data set", **WIDE,
            options=[*names, ("Choose a file …", OWN_FILE)], value="digits",
            help="The data set. Its training samples are divided among the clients",
        )  # fmt: skip
        self.path = make_widget(
            widgets.Combobox, "fl-path", label="File", placeholder="path/to/data.csv, then Enter", **WIDE,
            help=(
                "A table (.csv, .xlsx, …), arrays (.npz) or a folder of pictures. Files of "
                "this folder are suggested"
            ),
            continuous_update=False,
        )  # fmt: skip
        self.card = FileCard()
        self.dealing = make_widget(
            widgets.Dropdown, "fl-dealing", label="Divided", options=["dirichlet"], **WIDE,
            help="Use the clients that the data set names, or divide the samples again with the sliders",
        )  # fmt: skip
        self.alpha = make_alpha_slider()
        self.ends = make_widget(widgets.HTML, "fl-ends")
        self.seed = make_seed_field()

        self.clients = make_widget(
            widgets.IntSlider,
            "fl-clients",
            label="Clients",
            value=10,
            min=1,
            max=100,
            help="How many share the data (M in formulas)",
            **WIDE,
        )
        self.epochs = make_whole_number_field(
            "Epochs", 40, 1, 500, "How many times each client goes through its own samples"
        )

        self.device = make_widget(
            widgets.Dropdown,
            "fl-device",
            label="Device",
            options=["auto", "cpu", "cuda"],
            help="Where to compute. auto uses a CUDA GPU if there is one",
            **SHORT,
        )
        self.seeds = make_whole_number_field(
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
        self.methods = MethodChooser(spec.method)
        self.most_clients = self.clients.max
        self.phase = make_widget(widgets.HTML, "fl-phase")
        self.error = make_widget(widgets.HTML, "fl-error")
        self.facts = make_widget(widgets.HTML, "fl-facts")
        self.cost = make_widget(widgets.HTML, "fl-cost")
        self.preset_epochs = self.epochs.value
        self.named_clients = 0  # the number of clients that the data set names
        self.named = {name: getattr(self, name) for name in SETTINGS}
        self.named |= self.extras
        self.named |= {"methods": self.methods.widget, "poison": self.poison.row}
        self.more = make_widget(
            widgets.ToggleButton,
            "fl-more",
            label="More",
            help="What most runs leave as it is",
            width="auto",
        )
        self._fixed: set[str] = set()
        # The number of clients that a person had chosen before a data set's own clients were used.
        self._chosen_clients: int | None = None
        self._cost_request = RunToEstimate((), {}, 0)
        # Whether a warning was shown, so that pressing Run starts a long run.
        self._is_confirmed = False
        self._previewed: Mapping[str, Any] | None = None
        show_widgets_if(False, self.dealing)
        self.clients.observe(
            lambda change: self.poison.limit_poisoned_count_to(change["new"]), "value"
        )
        self.dealing.observe(lambda _: self._enable_or_disable_partition_sliders(), "value")
        if "partition" in self.extras:
            self.extras["partition"].observe(
                lambda _: self._enable_or_disable_partition_sliders(), "value"
            )

    def make_column_of_controls(self) -> widgets.VBox:
        """Make the column of all controls."""
        own: list[widgets.Widget] = []
        if self.spec.method:
            own = [
                make_heading_widget(METHODS[self.spec.method].info.title),
                *self.extras.values(),
                self.knobs.widget,
            ]
        grid = make_widget(
            widgets.Box, "fl-grid", children=[self.epochs, self.device, self.seed, self.seeds]
        )
        rest = [grid, self.poison.row]
        if not own:
            rest = [*self.extras.values(), *rest]
        if self.knobs.rest.children:
            rest.append(self.knobs.rest)
        folded = make_widget(widgets.VBox, "fl-folded", children=rest)
        self.more.observe(lambda change: show_widgets_if(change["new"], folded), "value")
        show_widgets_if(False, folded)
        buttons = make_widget(widgets.HBox, "fl-buttons", children=[self.run, self.stop])
        start = make_widget(
            widgets.VBox,
            "fl-start",
            children=[buttons, self.cost, self.progress, self.phase, self.error],
        )
        beside = make_heading_widget("Beside it" if self.spec.method else "Methods")
        column = [
            self.dataset, self.path, self.card.widget, self.dealing, self.alpha, self.ends, self.clients, start,
            self.facts, *own, beside, self.methods.widget, self.more, folded,
        ]  # fmt: skip
        return make_widget(widgets.VBox, "fl-controls", children=column)

    def show_partition_previews_if_changed(self, federation_arguments: FederationArguments) -> None:
        """Show below the slider how the same data would be divided with five values of α."""
        options = dict(federation_arguments)
        options.pop("alpha", None)
        options.pop("moves", None)
        if options != self._previewed:
            self._previewed = options
            if self.natural_client_count_or_zero:
                self.ends.value = ""
            else:
                self.ends.value = make_partition_previews_html(options)

    def set_initial_values(
        self,
        methods_or_companions: Iterable[str] | None,
        settings: SettingsByName,
        fixed_settings: Mapping[str, Any],
    ) -> None:
        """Set the controls to the values with which a panel begins; UsageError for a value that a control
        does not take.

        methods_or_companions: the chosen methods; None: the lab's companions
        settings: values other than the defaults
        fixed_settings: the same, for controls that cannot be changed
        """
        ticked = (
            self.spec.companions
            if methods_or_companions is None
            else check_and_list_unique_names("methods", methods_or_companions)
        )
        self.methods.chosen_method_names = [name for name in ticked if name != self.spec.method]
        self.hidden_settings = {}
        for name, value in settings.items():
            if self.has_control(name):
                self.set_control(name, value)
            else:
                self.hidden_settings[name] = value
        for name, value in fixed_settings.items():
            self.set_and_disable_control(name, value)

    @property
    def observed_widgets(self) -> list[widgets.Widget]:
        """The widgets that can be changed at any time; each change of their values changes the panel's state."""
        observed = []
        for name, widget in self.named.items():
            if name not in ("dataset", "methods", "poison"):
                observed.append(widget)
        observed += [self.dealing, self.poison.kind, self.poison.count]
        observed += self.methods.boxes.values()
        observed += self.knobs.controls.values()
        return observed

    # ------------------------------------------------------------------------------------------- reading and writing
    @property
    def dataset_name_or_path(self) -> str:
        """The chosen data set's name or path; UsageError as long as "Choose a file" has no path."""
        if self.dataset.value != OWN_FILE:
            return self.dataset.value
        path = self.path.value.strip()
        if not path:
            raise UsageError(f"No file is named yet: give the path of {ENDINGS}.")
        return path if is_dataset_path(path) else f"./{path}"

    @dataset_name_or_path.setter
    def dataset_name_or_path(self, name_or_path: object) -> None:
        name = str(name_or_path)
        if is_dataset_name(name):
            known = [option for _, option in self.dataset._options_full]
            if name not in known:  # it is in no menu, or was added after the panel was made
                self.dataset.options = [*self.dataset.options, (find_dataset_title(name), name)]
            self.dataset.value = name
            return
        if not is_dataset_path(name):
            check_allowed_name("dataset", name, [*DATASETS, "PATH.npz", "PATH.csv"])
        self.path.value = name
        self.dataset.value = OWN_FILE

    def show_file_field_if_own_file_chosen(self) -> None:
        """Show the field for a file if "Choose a file" is chosen, with the files of this folder as suggestions."""
        is_own = self.dataset.value == OWN_FILE
        if is_own:
            # Before the field is shown: new suggestions reset its text, so that they would delete what is being typed.
            self.path.options = list_data_file_names_in_current_folder()
        else:
            self.card.hide()
        show_widgets_if(is_own, self.path)

    def read_settings_for_study_job(self) -> dict[str, SettingValue]:
        """Read the keyword arguments of `study.job`; most of them only if they are not at the default."""
        chosen: dict[str, SettingValue] = {
            "dataset": self.dataset_name_or_path,
            "alpha": float(f"{self.alpha.value:.2g}"),
            "clients": self.clients.value,
            "seed": self.seed.value,
            "seeds": self.seeds.value,
        }
        defaults = {"epochs": self.preset_epochs, "device": "auto"}
        for name, menu in self.extras.items():
            defaults[name] = menu.options[0][1]
        for name, default in defaults.items():
            value = self.named[name].value
            if value != default:
                chosen[name] = value
        if self.poison.poison_setting != NO_POISON:
            chosen["poison"] = self.poison.poison_setting
        if self.named_clients:
            # A lab's own menu of partitions has precedence over this one.
            chosen = {"partition": self.dealing.value, **chosen}
            chosen["clients"] = self.natural_client_count_or_zero or self.clients.value
        elif self.dealing.layout.display is None and self.dealing.value != "dirichlet":
            chosen["partition"] = self.dealing.value
        return {**chosen, **self.knobs.non_default_settings}

    def schedule_cost_estimate_if_changed(self, request: RunToEstimate) -> None:
        """Estimate what a run will cost, and show it under Run, once the controls rest: it takes 10 ms or more."""
        if request == self._cost_request:
            return
        self._cost_request = request
        self._is_confirmed = False
        self.run.description = "Run"
        self.debouncer.schedule_update(
            "cost", self.estimate_cost_of_requested_run, self._show_cost_line
        )

    def _show_cost_line(self, cost: EstimatedCost | None) -> None:
        self.cost.value = make_paragraph_html(describe_cost_or_empty(cost))

    def estimate_cost_of_requested_run(self) -> EstimatedCost | None:
        """Estimate what Run will cost; None if no method is chosen."""
        request = self._cost_request
        if not request.methods:
            return None
        return estimate_cost((request.methods, request.settings))

    def ask_to_confirm_if_run_is_long(self) -> bool:
        """Ask a person to press Run once more if the run takes LONG seconds or more. Returns whether this was asked.

        Each long run has to be confirmed: the button says "Run" again as soon as a run has begun.
        """
        if self._is_confirmed:
            self._is_confirmed = False
            self.run.description = "Run"
            return False
        cost = self.estimate_cost_of_requested_run()
        if cost is None or cost.seconds is None or cost.seconds < LONG:
            return False
        self._is_confirmed = True
        self.run.description = "Run anyway"
        text = f"This takes {format_rough_duration(cost.seconds)}. Press once more to start."
        self.phase.value = make_paragraph_html(text, "status")
        return True

    @property
    def chosen_methods(self) -> tuple[str, ...]:
        """The methods that Run runs: the lab's method first, then the chosen ones."""
        if self.spec.method:
            return (self.spec.method, *self.methods.chosen_method_names)
        return self.methods.chosen_method_names

    def read_changes_and_make_federation(
        self, old_state: PanelState, is_new_dataset: bool = False
    ) -> PanelStateChanges:
        """Read the controls, as changes of `old_state`.

        The federation is made again if a setting of the partition has changed. If there is no federation
        yet, none is made, unless `is_new_dataset`.

        is_new_dataset: make the federation in any case
        """
        methods = self.chosen_methods
        settings = self.read_settings_for_study_job()
        if old_state.settings and has_other_dataset_clients_or_partition(
            settings, self.hidden_settings, old_state.settings
        ):
            self.hidden_settings.pop("moves", None)  # the edits belonged to other clients
        for name, value in self.hidden_settings.items():
            method, dot, _ = name.partition(".")
            if not dot or method in methods:  # not a knob of a method that does not run
                settings[name] = value
        federation = old_state.federation
        partition = old_state.partition
        if is_new_dataset or federation is not None:
            partition = make_federation_arguments(settings)
            if is_new_dataset or partition != old_state.partition:
                federation = load_dataset_and_deal_federation(**partition)
        return {
            "settings": settings,
            "knobs": self.knobs.value_by_plain_knob_name,
            "methods": methods,
            "epochs": self.epochs.value,
            "federation": federation,
            "partition": partition,
        }

    def load_dataset_and_fit_controls(self) -> None:
        """Load the chosen data set, and set limits and defaults for it.

        There are never more clients than samples, and the local epochs are those of the preset. If the
        data set names clients, a person can choose between these and clients drawn at random.
        """
        data = load(self.dataset_name_or_path)
        if self.dataset.value == OWN_FILE:
            self.card.show_columns_of_file(self.dataset_name_or_path, data)
        self.named_clients = 0 if "partition" in self.hidden_settings else len(data.client_names)
        self._fill_partition_menu(has_fonts=data.font_train is not None)
        self.clients.max = max(1, min(self.most_clients, len(data.y_train)))
        self._enable_or_disable_partition_sliders()
        old_epochs = self.preset_epochs
        self.preset_epochs = choose_classroom_epochs(self.dataset_name_or_path, len(data.y_train))
        if self.epochs.value == old_epochs:
            self.epochs.value = self.preset_epochs

    def _fill_partition_menu(self, *, has_fonts: bool) -> None:
        """Fill the menu of partitions, and hide it if there is nothing to choose."""
        ways = [(f"Anew: {rule}", rule) for rule in RULES]
        if self.named_clients:
            ways.insert(0, ("The data set's own clients", "natural"))
        if has_fonts:
            ways.append(("Each client its own fonts", "fonts"))
        had_natural = "natural" in [way for _, way in self.dealing._options_full]
        set_menu_options_and_keep_choice(self.dealing, ways)
        if self.named_clients and not had_natural:
            self.dealing.value = "natural"
        show_widgets_if(bool(self.named_clients) or has_fonts, self.dealing)

    @property
    def natural_client_count_or_zero(self) -> int:
        """The number of clients that the data set names, if these are used; otherwise 0."""
        if self.dealing.value != "natural":
            return 0
        # If something is chosen in a lab's own menu of partitions, that counts.
        menu = self.extras.get("partition")
        if menu is not None and menu.value != menu.options[0][1]:
            return 0
        return self.named_clients

    def _enable_or_disable_partition_sliders(self) -> None:
        """Enable the sliders of the partition that have an effect, and disable the others."""
        has_named_clients = self.natural_client_count_or_zero > 0
        has_fonts = self.dealing.value == "fonts"
        self.alpha.disabled = has_named_clients or has_fonts or "alpha" in self._fixed
        self.clients.disabled = has_named_clients or "clients" in self._fixed
        self._fit_client_slider_to_natural_clients()

    def _fit_client_slider_to_natural_clients(self) -> None:
        """Set the slider of the clients to the number of clients that the data set names, if these are used.
        Otherwise it goes back to its earlier value.
        """
        named_clients = self.natural_client_count_or_zero
        if named_clients:
            if self._chosen_clients is None:
                self._chosen_clients = self.clients.value
            self.clients.max = max(named_clients, self.clients.max)
            self.clients.value = named_clients
        elif self._chosen_clients is not None:
            self.clients.value = min(self._chosen_clients, self.clients.max)
            self._chosen_clients = None

    def enable_stop_if_running_else_run(self, is_running: bool) -> None:
        """Enable Stop while a job runs, and disable Run and the choice of the data set."""
        self.stop.disabled = not is_running
        self.run.disabled = self.dataset.disabled = self.path.disabled = is_running

    def hide_controls(self, setting_names: Sequence[str]) -> None:
        """Hide controls, by the names of their settings (teacher mode)."""
        for name in setting_names:
            show_widgets_if(False, self._find_control(name))
            if name == "alpha":
                show_widgets_if(False, self.ends)

    def set_and_disable_control(self, setting_name: str, value: SettingValue) -> None:
        """Give a control a value that cannot be changed."""
        widget = self._find_control(setting_name)
        self._fixed.add(setting_name)
        self.set_control(setting_name, value)
        for part in iterate_leaf_widgets(widget):
            part.disabled = True

    def has_control(self, setting_name: str) -> bool:
        """Whether a setting has a control."""
        return setting_name in self.named or self.knobs.has_knob(setting_name)

    def set_control(self, setting_name: str, value: SettingValue) -> None:
        """Set a control by the name of its setting."""
        if setting_name == "dataset":
            self.dataset_name_or_path = value
        elif setting_name == "methods":
            self.methods.chosen_method_names = value
        elif setting_name == "poison":
            self.poison.set_poison_setting(value, self.clients.value)
        elif setting_name not in self.named:
            # `epochs` is in it: the plain name is the local epochs, not a knob's.
            self.knobs.set_knob(setting_name, value)
        else:
            widget = self.named[setting_name]
            if setting_name in self.extras:
                known_values = [option for _, option in widget.options]
                if value not in known_values:
                    widget.options = [*widget.options, (str(value), value)]
            hint = "smaller is more skewed" if setting_name == "alpha" else ""
            check_and_set_widget_value(widget, setting_name, value, hint)

    def _find_control(self, setting_name: str) -> widgets.Widget:
        if setting_name not in self.named and self.knobs.has_knob(setting_name):
            return self.knobs[setting_name]
        return self.named[
            check_allowed_name("control", setting_name, (*self.named, *self.knobs.knobs))
        ]


def list_data_file_names_in_current_folder() -> list[str]:
    """List the names of the files in the present folder that can be read as data."""
    try:
        names = sorted(path.name for path in Path().iterdir() if path.is_file())
    except OSError:
        return []
    return [name for name in names if name.endswith(SUGGESTED)][:MAX_FILES]


def has_other_dataset_clients_or_partition(
    settings: SettingsByName, settings_without_control: SettingsByName, old_settings: SettingsByName
) -> bool:
    """Whether settings have another data set, number of clients or partition than `old_settings`."""
    chosen = {**settings, **settings_without_control}
    names = ("dataset", "clients", "partition")
    return any(chosen.get(name) != old_settings.get(name) for name in names)


def iterate_leaf_widgets(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    """Yield the widgets in a box and in all boxes within it; for another widget, the widget itself."""
    if not hasattr(widget, "children"):
        yield widget
        return
    for part in widget.children:
        yield from iterate_leaf_widgets(part)


def check_and_set_widget_value(
    widget: widgets.Widget, setting_name_for_errors: str, value: SettingValue, error_hint: str = ""
) -> None:
    """Set a widget to a value; UsageError, which names the setting, for a value that it does not take."""
    if hasattr(widget, "options"):
        allowed = [option for _, option in widget._options_full]
        if value not in allowed:
            listed = ", ".join(map(str, allowed))
            raise UsageError(
                f"{setting_name_for_errors} is {value!r}, but it must be one of: {listed}."
            )
    elif hasattr(widget, "min"):
        low = widget.min
        high = widget.max
        if hasattr(widget, "base"):  # a logarithmic slider, whose ends are exponents
            low = widget.base**low
            high = widget.base**high
        check = check_whole_number if isinstance(widget.value, int) else check_number
        value = check(setting_name_for_errors, value, low, high, hint=error_hint)
    widget.value = value


def make_federation_arguments(settings: SettingsByName) -> FederationArguments:
    """Make the arguments of `load_dataset_and_deal_federation` for the first seed."""
    # With "cpu" nothing is said of a missing device here; the run says it.
    chosen = Settings.make(**{**settings, "device": "cpu"})
    return {
        "dataset": chosen.dataset,
        "public": chosen.public,
        **chosen.list_nondefault_federation_options(),
    }


def load_dataset_and_deal_federation(
    dataset: str, public: PublicShareOrDatasetName, **federate_options: SettingValue
) -> Federation:
    """Make the federation of a run. federate_options: arguments of `data.federate`"""
    return deal_out(add_public_part(load(dataset), public), **federate_options)


def make_partition_previews_html(federation_arguments: FederationArguments) -> str:
    """Make small pictures of the partition with each α of PREVIEWED, as HTML."""
    options = dict(federation_arguments)
    data = add_public_part(load(options.pop("dataset")), options.pop("public"))
    pictures = []
    for alpha in PREVIEWED:
        federation = deal_out(data, **options, alpha=alpha)
        pictures.append(draw_partition_preview_svg(federation, f"α = {alpha:g}"))
    low_text = "each client sees one or two classes"
    high_text = "everyone sees the same mix"
    label = f"{low_text} … {high_text}"
    row = f'<div class="fl-thumbs" role="img" aria-label="{label}">{"".join(pictures)}</div>'
    return f"{row}<div><span>{low_text}</span><span>{high_text}</span></div>"


def draw_partition_preview_svg(federation: Federation, title: str) -> str:
    """Draw a small picture of a federation as SVG: a column for each client, with its classes stacked."""
    counts = federation.label_counts[:THUMB].double()
    percent = 100 * counts / counts.sum(1, keepdim=True)
    ends = percent.cumsum(1).round().int().tolist()  # [M, C]: where each class ends
    paths = [""] * counts.shape[1]  # a path for each class
    for client, client_ends in enumerate(ends):
        low = 0
        for label, high in enumerate(client_ends):
            if high > low:
                paths[label] += f"M{10 * client} {low}h9v{high - low}h-9z"
            low = high
    parts = [f"<title>{title}</title>"]
    for colour, path in zip(list_class_colours(len(paths)), paths, strict=True):
        if path:
            parts.append(f'<path fill="{colour}" d="{path}"/>')
    box = f'viewBox="0 0 {10 * len(ends)} 100" preserveAspectRatio="none"'
    return f"<svg {box}>{''.join(parts)}</svg>"
