"""What a file of a person's own was taken for, in a panel, before anything runs: each guess has a menu.

A choice becomes an option of the path (`mine.csv?label=outcome&leave_out=age`), so that it stands in `panel.code()` and
in every stored run. The file is then read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import ipywidgets as widgets

from ..data import Dataset
from ..data.card import (
    MAX_COLUMNS,
    ROLES,
    NameRoleReasonAndValues,
    describe_classes_and_clients,
    describe_dataset_in_one_line,
    format_html_table,
    list_rows_of_column_table,
)
from ..data.card import list_header_and_first_rows_as_texts as first_rows
from ..data.files import KINDS, join_path_and_options, split_path_and_options
from ..data.schema import InputSchema
from ..errors import UsageError
from .theme import HandlerPause, make_widget, show_widgets_if

CHOICES = (*KINDS.values(), *ROLES)
NAMES = 110  # pixels for the name of a column


class FileCard:
    """`widget` shows a data set that comes from a file.

    `on_choice(column, choice)` is called when a person chooses from a column's menu. Then
    `make_path_with_choice_or_reset_menu` makes the path that has this choice as an option.
    """

    def __init__(self) -> None:
        self.on_choice: Callable[[str, str], None] = lambda column, choice: None
        self._path = ""
        self._handler_pause = HandlerPause()
        self._schema: InputSchema | None = None
        self.menus: dict[str, widgets.Dropdown] = {}
        self.summary = make_widget(widgets.HTML, "fl-card-words")
        self.columns = make_widget(widgets.VBox, "fl-card-columns")
        self.rows = make_widget(widgets.HTML, "fl-card-rows")
        parts = [self.summary, self.columns, self.rows]
        self.widget = make_widget(widgets.VBox, "fl-card", children=parts)
        self.hide()

    def hide(self) -> None:
        show_widgets_if(False, self.widget)

    def show_columns_of_file(self, path: str, dataset: Dataset) -> None:
        """Show what the file at `path` was taken for."""
        self._path = path
        schema = dataset.schema
        self._schema = schema
        sentences = [describe_dataset_in_one_line(dataset), *describe_classes_and_clients(dataset)]
        self.summary.value = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
        is_table = schema is not None and bool(schema.names)
        self._show_column_menus(list_rows_of_column_table(schema) if is_table and schema else [])
        table = first_rows(dataset)
        details = [f"<p>{escape(dataset.note)}</p>"]
        if table:
            details.insert(0, format_html_table(table))
        title = "First rows and notes" if table else "Notes"
        self.rows.value = f"<details><summary>{title}</summary>{''.join(details)}</details>"
        show_widgets_if(True, self.widget)

    def _show_column_menus(self, rows: Sequence[NameRoleReasonAndValues]) -> None:
        """Show a menu for each column, with the reason of the guess as its tooltip."""
        for menu in self.menus.values():
            menu.close()
        self.menus = {}
        for name, taken, why, values in rows[:MAX_COLUMNS]:
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
                lambda change, name=name: self._report_column_choice(name, change["new"]), "value"
            )
            self.menus[name] = menu
        children: list[widgets.Widget] = list(self.menus.values())
        more = len(rows) - MAX_COLUMNS
        if more > 0:
            text = f"<p>{more} more columns: name them in the path, as in ?leave_out=NAME</p>"
            children.append(make_widget(widgets.HTML, value=text))
        self.columns.children = children
        show_widgets_if(bool(rows), self.columns)

    def _report_column_choice(self, column_name: str, kind_or_role: str) -> None:
        if not self._handler_pause.is_on:
            self.on_choice(column_name, kind_or_role)

    def make_path_with_choice_or_reset_menu(self, column_name: str, kind_or_role: str) -> str:
        """Return the path on which `column_name` is what `kind_or_role` says. UsageError if that cannot be; the
        menu then shows again what it showed before."""
        assert self._schema is not None
        try:
            return make_path_with_column_choice(self._path, self._schema, column_name, kind_or_role)
        except UsageError:
            with self._handler_pause:
                self.menus[column_name].value = find_menu_choice_of_column(
                    self._schema, column_name
                )
            raise


def find_menu_choice_of_column(schema: InputSchema, column_name: str) -> str:
    """Find the choice of a column's menu: the column's role or kind."""
    for name, choice, *_ in list_rows_of_column_table(schema):
        if name == column_name:
            return choice
    raise KeyError(column_name)


def make_path_with_column_choice(
    path: str, schema: InputSchema, column_name: str, kind_or_role: str
) -> str:
    """Make the path of a table with the options by which `column_name` is what `kind_or_role` says: a kind or a role.

    UsageError if the label's own column would be left without another one.
    """
    file, options = split_path_and_options(path)
    if schema.label == column_name and kind_or_role != "label":
        raise UsageError(
            f"Column {column_name!r} is the label; choose another column as the label first, and then what this one is."
        )
    if schema.client == column_name and kind_or_role != "client":
        options["client"] = ""  # nobody's: no column is guessed either
    for role in ("split", "group"):
        if getattr(schema, role) == column_name and kind_or_role != role:
            options.pop(role, None)
    for option, kind in KINDS.items():
        columns = options.pop(option, "").split(",")
        listed = [name for name in columns if name and name != column_name]
        if kind == kind_or_role:
            listed.append(column_name)
        if listed:
            options[option] = ",".join(listed)
    if kind_or_role in ROLES:
        options[kind_or_role] = column_name
    return join_path_and_options(file, options)
