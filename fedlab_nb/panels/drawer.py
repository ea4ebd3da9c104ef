"""The drawer under the views: the record of runs with its pins, the methods, the Python lines, the export."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ..draw.words import data_size, half_width, percent, seeds_of
from ..methods import METHODS
from .look import paragraph, table
from .record import Record, Row
from .views import tabs

HEAD = (
    '<div class="fl-cells"><span>Run</span><span>Method</span><span>Setting</span><span>Accuracy</span>{}</div>'.format(
        '<span class="fl-right">Up</span><span class="fl-right">Down</span>'
    )
)
PAGES = {"Runs": "runs", "Methods": "methods", "Python": "python", "Export": "export"}


class Drawer:
    """Classes for the browser: fl-drawer, fl-runs with fl-row (checkbox: pin), fl-code, fl-export."""

    def __init__(self, on_pin: Callable[[], None], name: str = "playground") -> None:
        self._on_pin = on_pin
        self._rows: dict[Row, tuple[widgets.HBox, widgets.HTML]] = {}
        self.tabs = tabs(PAGES, "methods", ["fl-drawer-tabs"])
        head = widgets.HBox([widgets.HTML(HEAD)])
        head.add_class("fl-row").add_class("fl-head")
        spacer = widgets.HTML()
        spacer.add_class("fl-pad")
        head.children = [spacer, *head.children]
        self._head = head
        self.runs = widgets.VBox([])
        self.runs.add_class("fl-runs")
        self.clear = widgets.Button(
            description="Clear what is not pinned",
            tooltip="Drop the rows that are not pinned",
            layout={"width": "auto"},
        )
        self.methods, self.code = widgets.HTML(methods_table()), widgets.HTML()
        self.methods.add_class("fl-table")
        self.code.add_class("fl-code")
        self.folder = widgets.Text(
            f"results/{name}", description="Folder",
            tooltip="Where to write; an existing export is never overwritten",
            layout={"width": "320px"}, style={"description_width": "50px"},
        )  # fmt: skip
        self.export = widgets.Button(description="Export CSV, JSON, PNG, SVG", layout={"width": "auto"})
        self.export.add_class("fl-export")
        self.written = widgets.HTML()
        self.written.add_class("fl-written")
        self.pages = {
            "runs": widgets.VBox([self.runs, self.clear]),
            "methods": self.methods,
            "python": self.code,
            "export": widgets.VBox([widgets.HBox([self.folder, self.export]), self.written]),
        }
        self.box = widgets.VBox([self.tabs, *self.pages.values()])
        self.box.add_class("fl-drawer")
        self.tabs.observe(lambda _: self._turn(), "value")
        self._turn()
        self.show(Record())

    def _turn(self) -> None:
        for name, page in self.pages.items():
            page.layout.display = None if name == self.tabs.value else "none"

    def show(self, record: Record) -> None:
        """Bring the table of runs up to date; newest run first."""
        self._rows = {row: parts for row, parts in self._rows.items() if row in record.rows}
        order = sorted(record.rows, key=lambda row: -row.run)
        for row in order:
            if row not in self._rows:
                self._rows[row] = self._new(row)
            box, text = self._rows[row]
            text.value = cells(row)
            if box.children[0].value != row.pinned:
                box.children[0].value = row.pinned
        if not order:
            self.runs.children = [widgets.HTML(paragraph("No runs yet. Every run adds a row for each of its methods."))]
        elif self.runs.children[1:] != (wanted := tuple(self._rows[row][0] for row in order)):
            self.runs.children = [self._head, *wanted]
        self.clear.layout.display = None if order else "none"

    def _new(self, row: Row) -> tuple[widgets.HBox, widgets.HTML]:
        tooltip = f"Keep {row.title} of run {row.run} in the pictures beside later runs"
        pin = widgets.Checkbox(False, indent=False, tooltip=tooltip, description="pin")
        text = widgets.HTML()
        box = widgets.HBox([pin, text])
        box.add_class("fl-row")

        def changed(change: Any) -> None:
            row.pinned = change["new"]
            self._on_pin()

        pin.observe(changed, "value")
        return box, text


def cells(row: Row) -> str:
    """A row of the table of runs."""
    start = f"<span>{row.run}</span><span>{html.escape(row.title)}</span>"
    values = {seed: o.accuracy for seed, o in row.outcomes.items()}
    setting = row.setting + (f", {seeds_of(values)}" if values else "")
    start += f'<span title="{html.escape(setting, quote=True)}">{html.escape(setting)}</span>'
    if row.error and not values:
        end = f'<span class="fl-bad" title="{html.escape(row.error, quote=True)}">{html.escape(row.error)}</span>'
    elif not values:
        end = "<span>…</span><span></span><span></span>"
    else:
        mean = sum(values.values()) / len(values)
        wide = half_width(list(values.values()))
        accuracy = percent(mean) if math.isnan(wide) else f"{100 * mean:.0f} ± {100 * wide:.0f} %"
        sizes = [
            sum(getattr(o, key) for o in row.outcomes.values()) / len(values) for key in ("bytes_up", "bytes_down")
        ]
        end = f"<span>{accuracy}</span>" + "".join(f'<span class="fl-right">{data_size(size)}</span>' for size in sizes)
    return f'<div class="fl-cells">{start}{end}</div>'


def methods_table() -> str:
    """What the methods are, from the registry."""
    rows = [
        {
            "method": cls.info.title,
            "rounds": cls.info.rounds,
            "bytes of one client, down + up": cls.info.traffic,
            "extra data": cls.info.extra,
            "what leaks": cls.info.leaks,
            "paper": cls.info.paper,
        }
        for cls in METHODS.values()
    ]
    return table(rows)
