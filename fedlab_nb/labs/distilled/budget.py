"""Accuracy against one client's bytes, for several numbers of images per class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import ipywidgets as widgets

from ...methods import METHODS
from ...panels import LabView, PanelState, made, words
from ...plots import Picture, blank, drawing, dress, legend, listed, percent, tabled, told
from ...plots.axes import FIFTHS, percent_axis, seed_lines
from ...plots.kit import bytes_axis
from ...plots.style import ACCENT, INK, look
from ...plots.words import data_size, mean_percent
from ...studies.outcome import Outcome
from ..runs import Steps, tries
from .sent import WAYS

PER_CLASS = (1, 2, 3, 5, 10)


class Bytes(LabView):
    name, title, ready, work_label = "budget", "Accuracy and bytes", "data", "Try 1 to 10 per class"

    def __init__(self) -> None:
        about = "How many images a client sends of each class that it holds. The sentence names the test accuracy for "
        self.per_class = made(
            widgets.SelectionSlider, label="Images per class", help=f"{about}this number", width=340, label_width=112,
            options=PER_CLASS, value=3,
        )  # fmt: skip
        self.controls = (self.per_class,)

    def work(self, state: PanelState) -> Steps:
        """Run with 1, 2, 3, 5 and 10 images per class, on every seed of the panel. Nothing else changes"""
        choices = {f"m_c = {m}": {"distilled.per_class": m} for m in PER_CLASS}
        outcomes = yield from tries("distilled", state.settings, choices)
        points = [budget(m, runs) for m, runs in zip(PER_CLASS, outcomes.values(), strict=True)]
        return points, dict(state.settings), state.knobs["images"]

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”. The method then runs with several numbers of images per class."
            return blank(text, setting=state.setting)
        points, then, way = state.worked
        others = {METHODS[name].info.title: point(runs) for name, runs in state.others.items() if runs}
        return budgets(points, self.per_class.value, setting=words(then), way=WAYS[way], others=others)


def point(outcomes: Mapping[int, Outcome]) -> tuple[float, float]:
    """Bytes up of a client and test accuracy, means over `{seed: Outcome}`."""
    of = outcomes.values()
    return mean(o.ledger.up / o.settings.clients for o in of), mean(o.accuracy for o in of)


@dataclass(frozen=True, eq=False)
class Budget:
    """One value of `m_c`: bytes up of the client that sends most, accuracies `{seed: share}` on validation and test
    images."""

    per_class: int
    bytes: int
    validation: dict[int, float]
    test: dict[int, float]


def budget(per_class: int, outcomes: Mapping[int, Outcome]) -> Budget:
    """`Budget` of the outcomes `{seed: Outcome}` with one `m_c`."""
    validation = {s: o.accuracy_validation for s, o in outcomes.items() if o.accuracy_validation is not None}
    up = max(up for up, _ in next(iter(outcomes.values())).ledger.by_client().values())
    return Budget(per_class, up, validation, {s: o.accuracy for s, o in outcomes.items()})


def budgets(
    points: Sequence[Budget], chosen: int, *, setting: str, way: str, others: Mapping[str, tuple[float, float]]
) -> Picture:
    """Lines of validation accuracy against bytes up of the client that sends most.

    points: by rising `m_c`;   chosen: `m_c` whose test accuracy is named;   way: how the images are chosen
    others: {title of another method: (bytes up of a client, test accuracy)} of the same run
    """
    taken = next((p for p in points if p.per_class == chosen), points[0])
    runs = {s: [(p.bytes, p.validation[s]) for p in points if s in p.validation] for s in points[0].validation}
    beside = {"textcoords": "offset points", "fontsize": 9}
    with drawing() as (figure, ax):
        dress(ax, title=f"Images per class: {way}", x="bytes that one client sends, at most", y="", grid="both")
        x, y = seed_lines(ax, runs, look("distilled").colour, "o", label="validation images")
        for p, *at in zip(points, x, y, strict=False):
            ax.annotate(str(p.per_class), at, (0, 9), ha="center", color=INK, **beside)
        ring = {"ms": 10, "mfc": "none", "mec": ACCENT, "mew": 2, "label": "test images"}
        ax.plot([taken.bytes], [mean(taken.test.values())], "s", **ring)
        for title, at in others.items():
            hue, marker, _ = look(title)
            ax.plot(*at, marker, ms=8, color=hue)
            ax.annotate(title, at, (-8, 0), ha="right", va="center", color=hue, **beside)
        bytes_axis(ax, [p.bytes for p in points] + [size for size, _ in others.values()])
        percent_axis(ax, "y", 1.04, ticks=FIFTHS)
        legend(ax, loc="lower left")
    few, many = points[0], points[-1]
    text = f"With {taken.per_class} per class a client sends at most {data_size(taken.bytes)}, and the server is right "
    text += f"for {mean_percent(taken.test)} of the test images"
    if few is not many and few.validation:
        text += f". On validation images it has {mean_percent(few.validation)} with {few.per_class} per class, and "
        text += f"{mean_percent(many.validation)} with {many.per_class} per class, "
        text += f"for {many.bytes / few.bytes:.0f} times the bytes"
    known = [f"{title} {percent(share)} for {data_size(size)}" for title, (size, share) in others.items()]
    text += f". Beside it: {listed(known)}." if known else "."
    rows = (
        (p.per_class, p.bytes, mean_percent(p.validation) if p.validation else "unknown",
         mean_percent(p.test) if p is taken else "")
        for p in points
    )  # fmt: skip
    table = tabled("images per class | bytes of one client | validation | test", rows)
    return told(figure, f"Validation accuracy against one client's bytes, {way}", setting, text, table)
