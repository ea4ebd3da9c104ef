"""What a data set was taken for, for its owner to look at before anything runs: a notebook shows it of
`fl.load("mine.csv")`, a terminal by `fedlab-nb look mine.csv`.

Rows, columns with what each was taken for and why, what is left out, classes and clients with counts, first rows. As
HTML the card depends on no style sheet and no script; first images are shown as such.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from fedlab_nb.errors import SAMPLES

if TYPE_CHECKING:
    import torch

    from fedlab_nb.data.dataset import Dataset
    from fedlab_nb.data.schema import InputSchema

MOST_COLUMNS = 40  # columns that a card lists; of more it says how many there are
MOST_COUNTS = 12  # classes and clients that it lists
MOST_IMAGES = 8
UNEQUAL = (
    2  # the largest class has so many times the samples of the smallest: accuracy alone says little
)
HEAD = ("column", "taken for", "why", "values")
ROLES = ("label", "client", "split", "group")
WHY = {
    "label": "what is to be predicted",
    "client": "who holds the row",
    "split": "whether the row is for testing",
    "group": "rows that stay together",
}


# ---------------------------------------------------------------------------------------------------------- its parts
def headline(dataset: Dataset) -> str:
    """How many samples of what there are, in a sentence.

    >>> from fedlab_nb.data import load
    >>> headline(load("digits"))
    'digits: 1,237 training and 360 test images of 1x8x8, 10 classes, 200 public images.'
    """
    kind = SAMPLES[len(dataset.input_shape)]
    shape = "x".join(map(str, dataset.input_shape))
    size = f"{shape} features" if len(dataset.input_shape) == 1 else shape
    public = "" if dataset.x_public is None else f", {len(dataset.x_public):,} public {kind}"
    return (
        f"{dataset.name}: {len(dataset.y_train):,} training and {len(dataset.y_test):,} test {kind} of {size}, "
        f"{dataset.classes} classes{public}."
    )


def count_classes(dataset: Dataset) -> list[tuple[str, int, int]]:
    """(name, training samples, test samples) of each class."""
    import torch

    counts = [
        torch.bincount(labels, minlength=dataset.classes).tolist()
        for labels in (dataset.y_train, dataset.y_test)
    ]
    return list(zip(dataset.class_names, *counts, strict=True))


def count_clients(dataset: Dataset) -> list[tuple[str, int]]:
    """(name, training samples) of each client that the data name."""
    if dataset.client_train is None:
        return []
    owners = dataset.client_train.tolist()
    return [(name, owners.count(k)) for k, name in enumerate(dataset.client_names)]


def has_unequal_classes(dataset: Dataset) -> bool:
    """Whether the largest class has at least UNEQUAL times the training samples of the smallest."""
    counts = [train for _, train, _ in count_classes(dataset)]
    return max(counts) >= UNEQUAL * max(1, min(counts))


def describe_classes(dataset: Dataset) -> list[str]:
    """Classes and clients with their counts, and what unequal ones mean, in sentences."""
    classes = [f"{name} {train + test:,}" for name, train, test in count_classes(dataset)]
    sentences = [f"Classes: {shorten(classes)}."]
    if has_unequal_classes(dataset):
        counts = [train + test for _, train, test in count_classes(dataset)]
        share = max(counts) / sum(counts)
        sentences.append(
            f"The classes are unequal: always saying the largest one gets {share:.0%} right; look at the balanced "
            "accuracy, which is the mean over the classes."
        )
    clients = [f"{name} {count:,}" for name, count in count_clients(dataset)]
    if clients:
        sentences.append(f"Clients ({len(clients)}), with training samples: {shorten(clients)}.")
    else:
        sentences.append("Clients: none are named; the samples are dealt out.")
    return sentences


def shorten(parts: Sequence[str]) -> str:
    """The first parts in a list, and how many more there are."""
    more = len(parts) - MOST_COUNTS
    return ", ".join(parts[:MOST_COUNTS]) + (f", and {more} more" if more > 0 else "")


def role_of(schema: InputSchema, name: str) -> str:
    """Which of ROLES a column has; "" for none."""
    return next((role for role in ROLES if getattr(schema, role) == name), "")


def list_columns(schema: InputSchema) -> list[tuple[str, str, str, str]]:
    """The rows of HEAD, in the order of the file; columns without a role first say what they were taken for."""
    known = {column.name: column for column in schema.columns}
    rows = []
    for name in schema.names or tuple(known):
        role = role_of(schema, name)
        if role:
            rows.append((name, role, WHY[role], ""))
        elif name in known:
            column = known[name]
            rows.append((name, column.kind, column.reason, column.describe_values()))
    return rows


def describe_left_out(schema: InputSchema) -> str:
    """Which columns are left out, in a sentence; "" for none."""
    names = [column.name for column in schema.columns if not column.width]
    return f"Left out: {shorten(names)}." if names else ""


def show_rows(dataset: Dataset) -> list[list[str]]:
    """The first rows of a table as text, their head first; nothing of other data."""
    if dataset.first_rows is None:
        return []
    head = [str(name) for name in dataset.first_rows.columns][:MOST_COLUMNS]
    rows = dataset.first_rows.iloc[:, :MOST_COLUMNS].astype(object).values.tolist()
    return [head, *(["" if is_nothing(cell) else str(cell)[:40] for cell in row] for row in rows)]


def is_nothing(cell: object) -> bool:
    return cell is None or cell != cell  # nan is unequal to itself


# ---------------------------------------------------------------------------------------------------------- as text
def card_text(dataset: Dataset) -> str:
    """The card for a terminal."""
    parts = [headline(dataset), *describe_classes(dataset)]
    schema = dataset.schema
    if schema is not None and schema.names:  # of a table
        columns = list_columns(schema)
        parts += ["", align([HEAD, *columns[:MOST_COLUMNS]])]
        if len(columns) > MOST_COLUMNS:
            parts.append(f"... and {len(columns) - MOST_COLUMNS} more columns")
        left_out = describe_left_out(schema)
        parts += ["", left_out] if left_out else [""]
    rows = show_rows(dataset)
    if rows:
        parts += ["First rows:", align(rows)]
    if dataset.note:
        parts += ["", dataset.note]
    return "\n".join(parts)


def align(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines, their columns below each other."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------------- as HTML
def card_html(dataset: Dataset) -> str:
    """The card for a notebook."""
    schema = dataset.schema
    sentences = [f"<b>{escape(headline(dataset))}</b>", *map(escape, describe_classes(dataset))]
    parts = [f"<p>{'<br>'.join(sentences)}</p>"]
    if schema is not None and schema.names:  # of a table
        columns = list_columns(schema)
        parts.append(html_rows([HEAD, *columns[:MOST_COLUMNS]]))
        if len(columns) > MOST_COLUMNS:
            parts.append(f"<p>… and {len(columns) - MOST_COLUMNS} more columns</p>")
        left_out = describe_left_out(schema)
        parts += [f"<p>{escape(left_out)}</p>"] if left_out else []
    rows = show_rows(dataset)
    if rows:
        parts.append(f"<p>First rows:</p>{html_rows(rows)}")
    if len(dataset.input_shape) == 3:
        parts.append(html_images(dataset))
    if dataset.note:
        parts.append(f"<p>{escape(dataset.note)}</p>")
    return f'<div class="fl-card" style="overflow-x:auto">{"".join(parts)}</div>'


def html_rows(rows: Sequence[Sequence[str]]) -> str:
    """Rows as an HTML table, the first one its head."""
    lines = []
    for number, row in enumerate(rows):
        tag = "td" if number else 'th scope="col"'
        cells = "".join(
            f'<{tag} style="text-align:left">{escape(cell)}</{tag[:2]}>' for cell in row
        )
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def html_images(dataset: Dataset) -> str:
    """The first training images, each with its class as alt text."""
    shown = []
    for x, y in zip(dataset.x_train[:MOST_IMAGES], dataset.y_train.tolist(), strict=False):
        name = escape(dataset.class_names[y])
        shown.append(
            f'<img alt="a training image of {name}" title="{name}" src="{image_address(x)}" '
            'style="height:48px;image-rendering:pixelated;margin-right:4px">'
        )
    return f"<p>First training images:</p><p>{''.join(shown)}</p>"


def image_address(x: torch.Tensor) -> str:
    """An image [C, H, W] in [0, 1] as an address that holds the picture itself."""
    from PIL import Image

    pixels = (x.clamp(0, 1) * 255).round().byte().movedim(0, -1).numpy()
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    out = io.BytesIO()
    picture.save(out, "png")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
