"""Marks: artists of a picture that have a hover text in a browser, and are highlighted when their
client, class or method is selected elsewhere.

`attach_hover_text(artist, "FENS\\n87 % ± 2", method="fens")` makes an artist a mark;
`get_hover_texts_and_keys_by_mark_id(figure)` returns the marks of a figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text


def attach_hover_text(artist: Artist, hover_text: str | list[str], **mark_keys: Any) -> None:
    """Attach a hover text to an artist. It is shown when the pointer or the keyboard focus is on
    the artist.

    hover_text: one text; for a collection a list with one text per member
    mark_keys:  what the artist stands for: `method` (name or title), `client`, `class_index` (for a collection lists of
                them); `thumbnail`: the number of its image on the figure's sheet (`attach_thumbnail_sheet`)
    """
    figure: Any = artist.get_figure(root=True)
    marks = figure.__dict__.setdefault("fedlab_marks", {})
    gid = artist.get_gid()
    if gid not in marks:
        kind = "word" if isinstance(artist, Text) else "mark"
        gid = f"{kind}-{len(marks)}"
        artist.set_gid(gid)
    marks[gid] = {
        "says": hover_text,
        **{name: value for name, value in mark_keys.items() if value is not None},
    }


def attach_tick_hover_texts(
    axis: Axis,
    hover_texts: Sequence[str],
    mark_key: Literal["client", "class_index"],
    client_or_class_indices: Sequence[int] | None = None,
) -> None:
    """Attach hover texts to the tick labels of an axis.

    hover_texts: one per tick; a tick with an empty text gets none
    mark_key:    what the ticks stand for
    client_or_class_indices: index of the client or class at each tick, by default 0, 1, …
    """
    if client_or_class_indices is None:
        client_or_class_indices = range(len(hover_texts))
    for tick, text, number in zip(
        axis.get_major_ticks(), hover_texts, client_or_class_indices, strict=False
    ):
        if text:
            attach_hover_text(tick.label1, text, **{mark_key: number})


def get_hover_texts_and_keys_by_mark_id(figure: Figure) -> dict[str, Any]:
    """Return {id of a mark: its hover text `says` and its keys}: see `attach_hover_text`."""
    return dict(getattr(figure, "fedlab_marks", {}))
