"""What a file of a person's own was taken for, in a panel, before anything runs: each guess has a menu.

A choice becomes an option of the path (`mine.csv?label=outcome&leave_out=age`), so that it stands in `panel.code()` and
in every stored run. The file is then read again.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from ..data import Dataset
from ..data.card import (
    MOST_COLUMNS,
    ROLES,
    describe_classes,
    list_columns,
    write_headline,
    write_html_table,
)
from ..data.card import list_first_rows as first_rows
from ..data.files import KINDS, join_options, split_options
from ..data.schema import InputSchema
from ..errors import UsageError
from .theme import Fitting, make_widget, show_if

CHOICES = (*KINDS.values(), *ROLES)
NAMES = 110  # pixels for the name of a column


class FileCard:
    """`widget` shows a data set that comes from a file. `on_choice(column, choice)` is called when a person chooses
    from a column's menu; `choose` then gives the path that means it."""

    def __init__(self) -> None:
        self.on_choice: Callable[[str, str], None] = lambda column, choice: None
        self._path = ""
        self._fitting = Fitting()
        self._schema: InputSchema | None = None
        self.menus: dict[str, widgets.Dropdown] = {}
        self.summary = make_widget(widgets.HTML, "fl-card-words")
        self.columns = make_widget(widgets.VBox, "fl-card-columns")
        self.rows = make_widget(widgets.HTML, "fl-card-rows")
        parts = [self.summary, self.columns, self.rows]
        self.widget = make_widget(widgets.VBox, "fl-card", children=parts)
        self.hide()

    def hide(self) -> None:
        show_if(False, self.widget)

    def show(self, path: str, dataset: Dataset) -> None:
        """Show what the file at `path` was taken for."""
        self._path = path
        schema = dataset.schema
        self._schema = schema
        sentences = [write_headline(dataset), *describe_classes(dataset)]
        self.summary.value = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
        is_table = schema is not None and bool(schema.names)
        self._show_columns(list_columns(schema) if is_table and schema else [])
        table = first_rows(dataset)
        details = [f"<p>{escape(dataset.note)}</p>"]
        if table:
            details.insert(0, write_html_table(table))
        title = "First rows and notes" if table else "Notes"
        self.rows.value = f"<details><summary>{title}</summary>{''.join(details)}</details>"
        show_if(True, self.widget)

    def _show_columns(self, rows: list[tuple[str, str, str, str]]) -> None:
        """A menu for each column, with the reason of the guess as its tooltip."""
        for menu in self.menus.values():
            menu.close()
        self.menus = {}
        for name, taken, why, values in rows[:MOST_COLUMNS]:
            help = f"{why} {values}".strip()
            menu = make_widget(
                widgets.Dropdown,
                label=name,
                options=CHOICES,
                value=taken,
                help=help,
                label_width=NAMES,
            )
            menu.observe(
                lambda change, name=name: self._report_choice(name, change["new"]), "value"
            )
            self.menus[name] = menu
        children: list[widgets.Widget] = list(self.menus.values())
        more = len(rows) - MOST_COLUMNS
        if more > 0:
            text = f"<p>{more} more columns: name them in the path, as in ?leave_out=NAME</p>"
            children.append(make_widget(widgets.HTML, value=text))
        self.columns.children = children
        show_if(bool(rows), self.columns)

    def _report_choice(self, column: str, choice: str) -> None:
        if not self._fitting.is_on:
            self.on_choice(column, choice)

    def apply_choice(self, column: str, choice: str) -> str:
        """Return the path on which `column` is what `choice` says. UsageError where that cannot be; the
        menu then shows again what it showed before."""
        assert self._schema is not None
        try:
            return make_choice_path(self._path, self._schema, column, choice)
        except UsageError:
            with self._fitting:
                self.menus[column].value = find_column_choice(self._schema, column)
            raise


def find_column_choice(schema: InputSchema, column: str) -> str:
    """What a column's menu says: its role, or its kind."""
    for name, choice, *_ in list_columns(schema):
        if name == column:
            return choice
    raise KeyError(column)


def make_choice_path(path: str, schema: InputSchema, column: str, choice: str) -> str:
    """The path of a table with the options that make `column` what `choice` says: a kind or a role.

    UsageError where the label's own column would be left without another one.
    """
    file, options = split_options(path)
    if schema.label == column and choice != "label":
        raise UsageError(
            f"Column {column!r} is the label; choose another column as the label first, and then what this one is."
        )
    if schema.client == column and choice != "client":
        options["client"] = ""  # nobody's: no column is guessed either
    for role in ("split", "group"):
        if getattr(schema, role) == column and choice != role:
            options.pop(role, None)
    for option, kind in KINDS.items():
        columns = options.pop(option, "").split(",")
        listed = [name for name in columns if name and name != column]
        if kind == choice:
            listed.append(column)
        if listed:
            options[option] = ",".join(listed)
    if choice in ROLES:
        options[choice] = column
    return join_options(file, options)
