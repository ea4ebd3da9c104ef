"""What stands under the views: the record of runs with its pins, the methods, the Python lines, the export."""

import html
from collections.abc import Callable

import ipywidgets as widgets

from ..methods import METHODS
from ..plots.classes import beside
from ..plots.words import data_size, number, seeds_of
from ..studies.statistics import band
from .record import Row, Runs, series
from .theme import made, paragraph, show_if, show_only, table, tabs

HEAD = '<div class="fl-cells"><span>Run</span><span>Method</span><span>Setting</span><span>Accuracy</span>'
HEAD += '<span class="fl-right">Up</span><span class="fl-right">Down</span></div>'
ROWS = 12  # of many; a page with all of them is slower under a hand
PAGES = {"Runs": "runs", "Methods": "methods", "Python": "python", "Export": "export"}


class RunsPanel:
    """Classes for the browser: fl-drawer, fl-runs with fl-row (checkbox: pin), fl-code, fl-export.

    on_pin(row's key, pinned): a row was pinned or let go
    """

    def __init__(
        self, on_pin: Callable[[tuple[int, str], bool], None], name: str = "playground"
    ) -> None:
        self._on_pin = on_pin
        self._rows: dict[tuple[int, str], tuple[widgets.HBox, widgets.Checkbox, widgets.HTML]] = {}
        self._shown, self._all = Runs(), False
        self.tabs = tabs(PAGES, "methods", "fl-drawer-tabs")
        head = [made(widgets.HTML, "fl-pad"), widgets.HTML(HEAD)]
        self._head = made(widgets.HBox, "fl-row", "fl-head", children=head)
        self.runs = made(widgets.VBox, "fl-runs")
        self.methods, self.code = (
            made(widgets.HTML, "fl-table", value=methods_table()),
            made(widgets.HTML, "fl-code"),
        )
        self.folder = made(
            widgets.Text, label="Folder", value=f"results/{name}", width=320, label_width=50,
            help="Where to write the files. Files that exist are never overwritten",
        )  # fmt: skip
        self.clear = made(widgets.Button, label="Clear what is not pinned", width="auto")
        self.more = made(widgets.Button, width="auto")
        self.more.on_click(lambda _: self._turned())
        self.export = made(
            widgets.Button, "fl-export", label="Export CSV, JSON, PNG, SVG", width="auto"
        )
        self.written = made(widgets.HTML, "fl-written")
        self.pages = {
            "runs": widgets.VBox([self.runs, widgets.HBox([self.clear, self.more])]), "methods": self.methods,
            "python": self.code, "export": widgets.VBox([widgets.HBox([self.folder, self.export]), self.written]),
        }  # fmt: skip
        self.box = made(widgets.VBox, "fl-drawer", children=[self.tabs, *self.pages.values()])
        self.tabs.observe(lambda _: show_only(self.tabs.value, self.pages), "value")
        show_only(self.tabs.value, self.pages)
        self._list()

    def show(self, runs: Runs) -> None:
        """Bring the table of runs up to date; newest run first. Of many rows it has the last ones, those of the present
        run and those with a pin, until all are asked for."""
        if runs is not self._shown:
            self._shown = runs
            self._list()

    def _turned(self) -> None:
        self._all = not self._all
        self._list()

    def _list(self) -> None:
        runs = self._shown
        every = sorted(runs.rows, key=lambda row: -row.run)
        few = range(len(every) if self._all else ROWS)
        order = [
            row for at, row in enumerate(every) if at in few or row.pinned or row.run == runs.number
        ]
        old, self._rows = (
            self._rows,
            {row.key: self._rows.get(row.key) or self._new(row) for row in order},
        )
        for row in order:
            _, pin, text = self._rows[row.key]
            text.value, pin.value = cells(row), row.pinned
        if not order:
            self.runs.children = [
                widgets.HTML(
                    paragraph("No runs yet. Every run adds a row for each of its methods.")
                )
            ]
        elif self.runs.children[1:] != (boxes := tuple(box for box, _, _ in self._rows.values())):
            self.runs.children = [self._head, *boxes]
        for key in old.keys() - self._rows.keys():
            for widget in old[key]:
                widget.close()
        show_if(order, self.clear)
        show_if(self._all or len(order) < len(every), self.more)
        self.more.description = "Show the last rows" if self._all else f"Show all {len(every)} rows"

    def _new(self, row: Row) -> tuple[widgets.HBox, widgets.Checkbox, widgets.HTML]:
        tooltip = f"Keep {row.title} of run {row.run} in the pictures beside later runs"
        pin, text = (
            widgets.Checkbox(row.pinned, indent=False, tooltip=tooltip, description="pin"),
            widgets.HTML(),
        )
        key = row.key  # not the row: it would keep the models of its run
        pin.observe(lambda change: self._on_pin(key, change["new"]), "value")
        return made(widgets.HBox, "fl-row", children=[pin, text]), pin, text


def cells(row: Row) -> str:
    """A row of the table of runs."""
    values = {seed: o.accuracy for seed, o in row.outcomes.items()}
    setting = html.escape(f"{row.setting}, {seeds_of(values)}" if values else str(row.setting))
    start = f'<span>{row.run}</span><span>{html.escape(row.title)}</span><span title="{setting}">{setting}</span>'
    if row.error and not values:
        end = '<span class="fl-bad" title="{0}">{0}</span>'.format(html.escape(row.error))
    elif not values:
        end = "<span>…</span><span></span><span></span>"
    else:
        sizes = [data_size(row.mean(key)) for key in ("bytes_up", "bytes_down")]
        more = ", ".join(f"{name} {said}" for name, said in beside(series(row)).items())
        end = f'<span title="{more}">{number(band(values))} %</span>'
        end += "".join(f'<span class="fl-right">{s}</span>' for s in sizes)
    return f'<div class="fl-cells">{start}{end}</div>'


def methods_table() -> str:
    """What the methods are, from the registry."""
    columns = {"method": "title", "rounds": "rounds", "bytes of one client, down + up": "traffic"}
    columns |= {"extra data": "extra", "what leaks": "leaks", "paper": "paper"}
    return table(
        [
            {text: getattr(cls.info, name) for text, name in columns.items()}
            for cls in METHODS.values()
        ]
    )
