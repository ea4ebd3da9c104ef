"""What stands under the views: the record of runs with its pins, the methods, the Python lines, the export."""

import html
from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from ..methods import METHODS
from ..plots.classes import format_further_measures_by_name
from ..plots.words import describe_seeds, format_data_size, format_percent_band
from ..studies.statistics import compute_band
from .record import MethodRun, RunAndMethod, RunRecord, make_results_of_row
from .theme import (
    make_paragraph_html,
    make_tab_buttons,
    make_table_html,
    make_widget,
    show_only_named_widget,
    show_widgets_if,
)

BYTES_HELP = "Bytes of all clients together in one run; with several seeds, the mean of their runs"
HEAD = (
    "<div "
    'class="fl-cells"><span>Run</span><span>Method</span><span>Setting</span><span>Accuracy</span><span '
    f'class="fl-right" title="{BYTES_HELP}">Up</span><span class="fl-right" '
    f'title="{BYTES_HELP}">Down</span></div>'
)
MAX_ROWS = 12  # of many; a page with all of them is slower under a hand
PAGES = {"Runs": "runs", "Methods": "methods", "Python": "python", "Export": "export"}
METHOD_COLUMNS = {
    "method": "title",
    "a client sends": "sends",
    "and gets back": "back",
    "rounds": "rounds",
    "extra data": "extra",
    "what leaks": "leaks",
    "paper": "paper",
}


@dataclass(frozen=True)
class RowWidgets:
    """A row of the table of runs: its box, the pin in it and its text."""

    box: widgets.HBox
    pin: widgets.Checkbox
    text: widgets.HTML


class RunsPanel:
    """Classes for the browser: fl-drawer, fl-runs with fl-row (checkbox: pin), fl-code, fl-export.

    on_pin(row_key, is_pinned): called when a row was pinned or unpinned
    """

    def __init__(
        self, on_pin: Callable[[RunAndMethod, bool], None], panel_name: str = "playground"
    ) -> None:
        self._on_pin = on_pin
        self._rows: dict[RunAndMethod, RowWidgets] = {}
        self._shown = RunRecord()
        self._shows_all = False
        self.tabs = make_tab_buttons(PAGES, "methods", "fl-drawer-tabs")
        head = [make_widget(widgets.HTML, "fl-pad"), widgets.HTML(HEAD)]
        self._head = make_widget(widgets.HBox, "fl-row", "fl-head", children=head)
        self.runs = make_widget(widgets.VBox, "fl-runs")
        self.methods = make_widget(widgets.HTML, "fl-table", value=make_methods_table_html())
        self.code = make_widget(widgets.HTML, "fl-code")
        self.folder = make_widget(
            widgets.Text,
            label="Folder",
            value=f"results/{panel_name}",
            width=320,
            label_width=50,
            help="Where to write the files. Files that exist are never overwritten",
        )
        self.clear = make_widget(widgets.Button, label="Clear unpinned runs", width="auto")
        self.more = make_widget(widgets.Button, width="auto")
        self.more.on_click(lambda _: self._toggle_listing_of_all_runs())
        self.export = make_widget(
            widgets.Button, "fl-export", label="Export CSV, JSON, PNG, SVG", width="auto"
        )
        self.written = make_widget(widgets.HTML, "fl-written")
        self.pages = {
            "runs": widgets.VBox([self.runs, widgets.HBox([self.clear, self.more])]),
            "methods": self.methods,
            "python": self.code,
            "export": widgets.VBox([widgets.HBox([self.folder, self.export]), self.written]),
        }
        children = [self.tabs, *self.pages.values()]
        self.box = make_widget(widgets.VBox, "fl-drawer", children=children)
        self.tabs.observe(lambda _: show_only_named_widget(self.tabs.value, self.pages), "value")
        show_only_named_widget(self.tabs.value, self.pages)
        self._show_rows()

    def show_runs(self, runs: RunRecord) -> None:
        """Bring the table of runs up to date; newest run first.

        It has the last MAX_ROWS rows, those of the present run and the pinned ones; all after "Show all" was pressed.
        """
        if runs is not self._shown:
            self._shown = runs
            self._show_rows()

    def _toggle_listing_of_all_runs(self) -> None:
        self._shows_all = not self._shows_all
        self._show_rows()

    def _choose_rows_to_list(self) -> list[MethodRun]:
        """The rows that are listed, newest run first."""
        rows = sorted(self._shown.rows, key=lambda row: -row.run)
        if self._shows_all:
            return rows
        chosen = []
        for place, row in enumerate(rows):
            if place < MAX_ROWS or row.pinned or row.run == self._shown.number:
                chosen.append(row)
        return chosen

    def _show_rows(self) -> None:
        rows = self._choose_rows_to_list()
        before = self._rows
        self._rows = {}
        for row in rows:
            row_widgets = before.get(row.key) or self._make_row_widgets(row)
            row_widgets.text.value = make_run_table_row_html(row)
            row_widgets.pin.value = row.pinned
            self._rows[row.key] = row_widgets
        boxes = tuple(row_widgets.box for row_widgets in self._rows.values())
        if not rows:
            text = "No runs yet. Every run adds a row for each of its methods."
            self.runs.children = [widgets.HTML(make_paragraph_html(text))]
        elif self.runs.children[1:] != boxes:
            self.runs.children = [self._head, *boxes]
        for key in before.keys() - self._rows.keys():
            gone = before[key]
            for widget in (gone.box, gone.pin, gone.text):
                widget.close()
        count = len(self._shown.rows)
        show_widgets_if(bool(rows), self.clear)
        show_widgets_if(self._shows_all or len(rows) < count, self.more)
        self.more.description = f"Show all {count} rows"
        if self._shows_all:
            self.more.description = "Show the last rows"

    def _make_row_widgets(self, row: MethodRun) -> RowWidgets:
        tooltip = f"Keep {row.title} of run {row.run} in the pictures beside later runs"
        pin = widgets.Checkbox(row.pinned, indent=False, tooltip=tooltip, description="pin")
        text = widgets.HTML()
        key = row.key  # not the row: it would keep the models of its run
        pin.observe(lambda change: self._on_pin(key, change["new"]), "value")
        box = make_widget(widgets.HBox, "fl-row", children=[pin, text])
        return RowWidgets(box, pin, text)


def make_run_table_row_html(row: MethodRun) -> str:
    """Make a row of the table of runs."""
    accuracies = {seed: outcome.accuracy for seed, outcome in row.outcomes.items()}
    setting = str(row.setting)
    if accuracies:
        setting += f", {describe_seeds(accuracies)}"
    setting = html.escape(setting)
    cells = [
        f"<span>{row.run}</span>",
        f"<span>{html.escape(row.title)}</span>",
        f'<span title="{setting}">{setting}</span>',
    ]
    if row.error and not accuracies:
        error = html.escape(row.error)
        cells.append(f'<span class="fl-bad" title="{error}">{error}</span>')
    elif not accuracies:
        cells.append("<span>…</span><span></span><span></span>")
    else:
        summary = format_further_measures_by_name(make_results_of_row(row))
        tooltip = ", ".join(f"{name} {value}" for name, value in summary.items())
        cells.append(
            f'<span title="{tooltip}">{format_percent_band(compute_band(accuracies))} %</span>'
        )
        for name in ("bytes_up", "bytes_down"):
            cells.append(
                f'<span class="fl-right">{format_data_size(row.compute_mean_over_seeds(name))}</span>'
            )
    return f'<div class="fl-cells">{"".join(cells)}</div>'


def make_methods_table_html() -> str:
    """Make the table of all registered methods, in words; the guide has formulas of what is sent."""
    rows = []
    for method in METHODS.values():
        row = {}
        for name, field in METHOD_COLUMNS.items():
            row[name] = getattr(method.info, field) or "nothing"
        rows.append(row)
    return make_table_html(rows)
