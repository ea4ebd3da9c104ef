"""Describe a data set on a card, so that its owner can check how it was read before anything runs.

A notebook shows the card for `fl.load("mine.csv")`, a terminal for `fedlab-nb look mine.csv`. It
lists the number of samples, the kind of each column and the reason for it, the columns that are left
out, the classes and clients with their counts, and the first rows or images. As HTML it needs no
style sheet and no script.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple

from fedlab_nb.data.input_types import CellValue
from fedlab_nb.errors import SAMPLES
from fedlab_nb.value_types import Sentence, SentenceOrEmpty

if TYPE_CHECKING:
    from fedlab_nb.data.dataset import Dataset
    from fedlab_nb.data.schema import InputSchema
    from fedlab_nb.tensor_types import SingleImage

MAX_COLUMNS = 40  # columns that a card lists; it counts the rest
MAX_LISTED_COUNTS = 12  # classes and clients that it lists
MAX_IMAGES = 8
MAX_CELL_CHARACTERS = 40  # characters of a cell that a card shows
# From this ratio of the largest class to the smallest on, accuracy alone says little.
UNEQUAL = 2
HEAD = ("column", "taken for", "why", "values")
ColumnRole = Literal["label", "client", "split", "group"]
ROLES: tuple[ColumnRole, ...] = ("label", "client", "split", "group")
WHY = {
    "label": "what is to be predicted",
    "client": "who holds the row",
    "split": "whether the row is for testing",
    "group": "rows that stay together",
}


# ------------------------------------------------------------------------------------ its parts
def describe_dataset_in_one_line(dataset: Dataset) -> Sentence:
    """Say in a sentence how many samples there are and of what form.

    >>> from fedlab_nb.data import load
    >>> describe_dataset_in_one_line(load("digits"))
    'digits: 1,237 training and 360 test images of 1x8x8, 10 classes, 200 public images.'
    """
    kind = SAMPLES[len(dataset.input_shape)]
    shape = "x".join(map(str, dataset.input_shape))
    if len(dataset.input_shape) == 1:
        shape = f"{shape} features"
    public = ""
    if dataset.x_public is not None:
        public = f", {len(dataset.x_public):,} public {kind}"
    return (
        f"{dataset.name}: {len(dataset.y_train):,} training and {len(dataset.y_test):,} test "
        f"{kind} of {shape}, {dataset.classes} classes{public}."
    )


class TrainAndTestCountOfClass(NamedTuple):
    """A class: its name, and how many training and test samples it has."""

    name: str
    train: int
    test: int


def count_samples_by_class(dataset: Dataset) -> list[TrainAndTestCountOfClass]:
    """Count the training and test samples of each class."""
    import torch

    train = torch.bincount(dataset.y_train, minlength=dataset.classes).tolist()
    test = torch.bincount(dataset.y_test, minlength=dataset.classes).tolist()
    return list(map(TrainAndTestCountOfClass, dataset.class_names, train, test))


class TrainCountOfClient(NamedTuple):
    """A client: its name, and how many training samples it has."""

    name: str
    train: int


def count_samples_by_client(dataset: Dataset) -> list[TrainCountOfClient]:
    """Count the training samples of each client that the data name."""
    if dataset.client_train is None:
        return []
    owners = dataset.client_train.tolist()
    return [
        TrainCountOfClient(name, owners.count(k)) for k, name in enumerate(dataset.client_names)
    ]


def has_unequal_classes(dataset: Dataset) -> bool:
    """Whether the largest class has at least UNEQUAL times the training samples of the smallest."""
    counts = [train for _, train, _ in count_samples_by_class(dataset)]
    return max(counts) >= UNEQUAL * max(1, min(counts))


def describe_classes_and_clients(dataset: Dataset) -> list[Sentence]:
    """Describe in sentences the classes and clients, with their counts and what unequal classes
    mean."""
    counts = [train + test for _, train, test in count_samples_by_class(dataset)]
    classes = [f"{name} {count:,}" for name, count in zip(dataset.class_names, counts, strict=True)]
    sentences = [f"Classes: {join_first_texts_and_count_rest(classes)}."]
    if has_unequal_classes(dataset):
        share = max(counts) / sum(counts)
        sentences.append(
            f"The classes are unequal: always saying the largest one gets {share:.0%} right; look "
            "at the balanced accuracy, which is the mean over the classes."
        )
    clients = [f"{name} {count:,}" for name, count in count_samples_by_client(dataset)]
    if clients:
        sentences.append(
            f"Clients ({len(clients)}), with training samples: {join_first_texts_and_count_rest(clients)}."
        )
    else:
        sentences.append("Clients: none are named; the samples are dealt out.")
    return sentences


def join_first_texts_and_count_rest(texts: Sequence[str]) -> str:
    """Join the first texts by commas, and say how many more there are."""
    text = ", ".join(texts[:MAX_LISTED_COUNTS])
    hidden_count = len(texts) - MAX_LISTED_COUNTS
    if hidden_count > 0:
        text += f", and {hidden_count} more"
    return text


def find_column_role(table_schema: InputSchema, column_name: str) -> ColumnRole | Literal[""]:
    """Find which of ROLES a column has; "" if it has none."""
    for role in ROLES:
        if getattr(table_schema, role) == column_name:
            return role
    return ""


class NameRoleReasonAndValues(NamedTuple):
    """A row of the card's table of columns, whose head is HEAD."""

    name: str
    role: str
    reason: str
    values: str


def list_rows_of_column_table(schema: InputSchema) -> list[NameRoleReasonAndValues]:
    """List how each column was read, in the order of the file."""
    columns_by_name = {column.name: column for column in schema.columns}
    rows = []
    for name in schema.names or tuple(columns_by_name):
        role = find_column_role(schema, name)
        if role:
            rows.append(NameRoleReasonAndValues(name, role, WHY[role], ""))
        elif name in columns_by_name:
            column = columns_by_name[name]
            values = column.describe_values()
            rows.append(NameRoleReasonAndValues(name, column.kind, column.reason, values))
    return rows


def describe_left_out_columns(schema: InputSchema) -> SentenceOrEmpty:
    """Name in a sentence the columns that are left out; "" if there are none."""
    names = [column.name for column in schema.columns if not column.feature_count]
    if not names:
        return ""
    return f"Left out: {join_first_texts_and_count_rest(names)}."


def list_header_and_first_rows_as_texts(dataset: Dataset) -> list[list[str]]:
    """List the head and the first rows of a table as texts; an empty list for other data."""
    if dataset.first_rows is None:
        return []
    table = dataset.first_rows.iloc[:, :MAX_COLUMNS]
    rows = [[str(name) for name in table.columns]]
    for cells in table.astype(object).values.tolist():
        rows.append([format_cell_text(cell) for cell in cells])
    return rows


def format_cell_text(cell: CellValue) -> str:
    """Write a cell as text of at most MAX_CELL_CHARACTERS; "" if there is no value."""
    if cell is None or cell != cell:  # nan is unequal to itself
        return ""
    return str(cell)[:MAX_CELL_CHARACTERS]


# ------------------------------------------------------------------------------------ as text
def format_data_card_as_text(dataset: Dataset) -> str:
    """Format the card for a terminal."""
    parts = [describe_dataset_in_one_line(dataset), *describe_classes_and_clients(dataset)]
    schema = dataset.schema
    if schema is not None and schema.names:  # of a table
        columns = list_rows_of_column_table(schema)
        parts += ["", format_table_with_aligned_columns([HEAD, *columns[:MAX_COLUMNS]])]
        if len(columns) > MAX_COLUMNS:
            parts.append(f"... and {len(columns) - MAX_COLUMNS} more columns")
        parts.append("")
        left_out = describe_left_out_columns(schema)
        if left_out:
            parts.append(left_out)
    rows = list_header_and_first_rows_as_texts(dataset)
    if rows:
        parts += ["First rows:", format_table_with_aligned_columns(rows)]
    if dataset.note:
        parts += ["", dataset.note]
    return "\n".join(parts)


def format_table_with_aligned_columns(rows: Sequence[Sequence[str]]) -> str:
    """Write rows as lines whose columns are aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


# ------------------------------------------------------------------------------------ as HTML
def format_data_card_as_html(dataset: Dataset) -> str:
    """Format the card for a notebook."""
    schema = dataset.schema
    sentences = [f"<b>{escape(describe_dataset_in_one_line(dataset))}</b>"]
    for sentence in describe_classes_and_clients(dataset):
        sentences.append(escape(sentence))
    parts = [f"<p>{'<br>'.join(sentences)}</p>"]
    if schema is not None and schema.names:  # of a table
        columns = list_rows_of_column_table(schema)
        parts.append(format_html_table([HEAD, *columns[:MAX_COLUMNS]]))
        if len(columns) > MAX_COLUMNS:
            parts.append(f"<p>… and {len(columns) - MAX_COLUMNS} more columns</p>")
        left_out = describe_left_out_columns(schema)
        if left_out:
            parts.append(f"<p>{escape(left_out)}</p>")
    rows = list_header_and_first_rows_as_texts(dataset)
    if rows:
        parts.append(f"<p>First rows:</p>{format_html_table(rows)}")
    if len(dataset.input_shape) == 3:
        parts.append(format_first_training_images_as_html(dataset))
    if dataset.note:
        parts.append(f"<p>{escape(dataset.note)}</p>")
    return f'<div class="fl-card" style="overflow-x:auto">{"".join(parts)}</div>'


def format_html_table(header_and_rows: Sequence[Sequence[str]]) -> str:
    """Write rows as an HTML table; the first row is its head."""
    lines = []
    for number, row in enumerate(header_and_rows):
        tag = "td" if number else 'th scope="col"'
        end = "</td>" if number else "</th>"
        cells = [f'<{tag} style="text-align:left">{escape(cell)}{end}' for cell in row]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def format_first_training_images_as_html(dataset: Dataset) -> str:
    """Show the first training images, each with its class as alt text."""
    image_tags = []
    for x, y in zip(dataset.x_train[:MAX_IMAGES], dataset.y_train.tolist(), strict=False):
        name = escape(dataset.class_names[y])
        image_tags.append(
            f'<img alt="a training image of {name}" title="{name}" src="{encode_image_as_data_url(x)}" '
            'style="height:48px;image-rendering:pixelated;margin-right:4px">'
        )
    return f"<p>First training images:</p><p>{''.join(image_tags)}</p>"


def encode_image_as_data_url(image: SingleImage) -> str:
    """Encode an image [C, H, W] in [0, 1] as a data URL."""
    from PIL import Image

    pixels = (image.clamp(0, 1) * 255).round().byte().movedim(0, -1).numpy()
    if pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    png = io.BytesIO()
    Image.fromarray(pixels).save(png, "png")
    return f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"
