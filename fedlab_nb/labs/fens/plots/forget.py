"""FENS without a client: accuracy by class before and after, or what each client's leaving changes, beside who holds
what."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ....plots.axes import HALVES, class_ticks, legend_above, mark, percent_axis
from ....plots.characters import client_name
from ....plots.kit import Heat
from ....plots.style import ACCENT, FAINT, SECOND, Picture, drawing, dress
from ....plots.words import percent, tabled
from ..numbers import Forgotten


def forget_one(
    forgotten: Forgotten, gone: int, names: Sequence[str], *, setting: str, klass: int | None = None
) -> Picture:
    """Accuracy by class with everybody and without client `gone`, and its share of each class."""
    before, after, share = forgotten.per_class(), forgotten.per_class(gone), forgotten.shares[gone]
    with drawing(2, 1, height_ratios=[2.6, 1], sharex=True) as (figure, (upper, lower)):
        name = client_name(gone, setting)
        dumbbells(upper, before, after, name)
        dress(lower, x=f"class, and how much of its training samples {name} holds", y="its share", grid="y")
        lower.bar(range(len(share)), share, width=0.55, color="#9aa4ae")
        percent_axis(lower, "y", 1.05, ticks=HALVES)
        class_ticks(lower, names, few=26)
        lower.set_xlim(-0.6, len(share) - 0.4)
        for ax in (upper, lower):
            mark(ax, klass, len(share), colour=SECOND)
    totals = f"from {percent(forgotten.whole.accuracy)} to {percent(forgotten.without[gone].accuracy)}"
    columns = [["" if np.isnan(v) else percent(v) for v in values] for values in (before, after, share)]
    keys = f"class | with all | without client {gone} | its share of the samples"
    table = tabled(keys, zip(names, *columns, strict=True))
    alt = f"Accuracy by class with all clients and without client {gone} ({setting}): {totals} over all classes. "
    alt += "Below, the client's share of each class."
    sentence = f"Without client {gone}, accuracy goes {totals}{of_classes(forgotten, gone, names, klass)}."
    return Picture(figure, alt, sentence, table)


def dumbbells(ax: Axes, before: np.ndarray, after: np.ndarray, gone: str) -> None:
    dress(ax, title="Accuracy by class", grid="y")
    x = np.arange(len(before))
    ax.vlines(x, np.minimum(before, after), np.maximum(before, after), color=FAINT, lw=6, zorder=1)
    ax.plot(x, before, "o", color=ACCENT, ms=8, label="with all clients")
    ax.plot(x, after, "D", color=SECOND, ms=6.5, label=f"without {gone}")
    percent_axis(ax, "y", 1.05, low=-0.04)
    ax.tick_params(axis="x", length=0)
    legend_above(ax, 2)


def of_classes(forgotten: Forgotten, gone: int, names: Sequence[str], klass: int | None) -> str:
    """The end of the sentence: the class that is looked at, or the one that loses most and the others."""
    before, after, share = forgotten.per_class(), forgotten.per_class(gone), forgotten.shares[gone]
    fall = before - after
    if np.isnan(fall).all():
        return ""
    looked_at = klass is not None and klass < len(fall) and not np.isnan(fall[klass])
    c = klass if looked_at else int(np.nanargmax(fall))
    held, change = f"of which it holds {percent(share[c])}", f"{percent(before[c])} to {percent(after[c])}"
    if looked_at:
        return f"; on class {names[c]}, {held}, from {change}"
    text, others = f". Class {names[c]}, {held}, loses most ({change})", np.delete(fall, c)
    if np.isnan(others).all():
        return text
    return f"{text}; the others change by {-100 * np.nanmean(others):+.0f} points on average"


def forget_each(
    forgotten: Forgotten, names: Sequence[str], *, setting: str, client: int | None = None, klass: int | None = None
) -> Picture:
    """What each client's leaving changes, class by class, beside who holds what."""
    counts, change = forgotten.whole.label_counts, forgotten.change
    with drawing(1, 2, width_ratios=[1, 1.14]) as (figure, (left, right)):
        marks = {"client": client, "klass": klass, "setting": setting}
        held = Heat(left, len(counts), names, signed=False)
        held.show(counts, "Training samples", max(int(counts.max(initial=0)), 1), **marks)
        lost = Heat(right, len(counts), names, signed=True, first=False)
        lost.show(100 * change, "Change without the client", 100, ring=False, **marks)
        lost.scale("accuracy of the class, points")
    rows = ((k, *("" if np.isnan(v) else f"{100 * v:+.0f}" for v in row)) for k, row in enumerate(change))
    table = tabled(["without client", *(f"class {n}" for n in names)], rows)
    alt = f"Two heat-maps ({setting}), clients across, classes down: training samples, and by how many points the "
    alt += f"accuracy of a class changes when a client is forgotten, from {100 * np.nanmin(change):.0f} to "
    alt += f"{100 * np.nanmax(change):+.0f}."
    return Picture(figure, alt, f"{largest_loss(forgotten, names, client, klass)}.", table)


def largest_loss(forgotten: Forgotten, names: Sequence[str], client: int | None, klass: int | None) -> str:
    """The sentence: which class loses most without whom, among what is looked at."""
    change, share = forgotten.change, forgotten.shares
    shown, text = np.full_like(change, np.nan), "The largest loss"
    if client is not None and client < len(change):
        shown[client], text = change[client], f"Client {client}'s largest loss"
    elif klass is not None and klass < len(names):
        shown[:, klass], text = change[:, klass], f"Class {names[klass]}'s largest loss"
    else:
        shown = change
    if np.isnan(shown).all():
        return "No accuracy is known there"
    k, c = np.unravel_index(np.nanargmin(shown), shown.shape)
    if change[k, c] >= 0:
        return f"{text}: there is none"
    text += f": class {names[c]} without client {k}, {100 * change[k, c]:.0f} points"
    text += f"; it holds {percent(share[k, c])} of it"
    if client is not None or klass is not None:
        return text
    losses, owned, known = change < -0.2, share > 0.5, ~np.isnan(change)
    return (
        f"{text}. {losses.sum()} of {known.sum()} cells lose more than 20 points, {(losses & owned).sum()} of them "
        "where the client holds more than half of the class"
    )
