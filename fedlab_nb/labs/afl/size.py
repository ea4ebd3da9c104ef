"""Accuracy and bytes against the number of random features."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from ...panels import LabView, PanelState, words
from ...plots import Picture, blank, drawing, dress, legend, tabled, told
from ...plots.axes import FIFTHS, log_axis, percent_axis, seed_lines
from ...plots.style import ACCENT, INK
from ...plots.words import data_size, mean_percent
from ...studies.outcome import Outcome
from ..runs import Steps, tries
from .budget import HUES

SIZES = (16, 32, 64, 128, 256, 512, 1024)


class Size(LabView):
    name, title, ready, work_label = "size", "Features", "data", "Try 16 to 1024"

    def work(self, state: PanelState) -> Steps:
        """Run AFL with 16 to 1024 random features of both kinds"""
        by_kind = {}
        kinds = ("relu", "conv") if state.federation.dataset.x_train.dim() == 4 else ("relu",)
        for kind in kinds:
            choices = {f"{kind}, d = {d}": {"afl.features": kind, "afl.size": d} for d in SIZES}
            runs = yield from tries("afl", state.settings, choices)
            by_kind[kind] = by_size(SIZES, runs.values())
        pixels = yield from tries("afl", state.settings, {"pixels": {"afl.features": "pixels"}})
        return by_kind, by_size((0,), pixels.values())[0], dict(state.settings)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: AFL is run with more and more random features."
            return blank(text, setting=state.setting)
        by_kind, pixels, then = state.worked
        return sizes(by_kind, pixels, setting=words(then))


@dataclass(frozen=True)
class Sized:
    """`size` random features: bytes up of one client, test accuracies `{seed: share}`."""

    size: int
    bytes: int
    accuracies: Mapping[int, float]


def by_size(sizes: Sequence[int], runs: Iterable[Mapping[int, Outcome]]) -> list[Sized]:
    """`Sized` of the outcomes `{seed: Outcome}` with each number of features."""
    made = []
    for size, outcomes in zip(sizes, runs, strict=True):
        first = next(iter(outcomes.values()))
        up = first.ledger.up // first.settings.clients
        made.append(Sized(size, up, {s: o.accuracy for s, o in outcomes.items()}))
    return made


def sizes(by_kind: Mapping[str, Sequence[Sized]], pixels: Sized, *, setting: str) -> Picture:
    """Lines of test accuracy against the bytes of one client, one point for each number of features."""
    with drawing() as (figure, ax):
        dress(ax, title="More random features", x="bytes that one client sends", y="test accuracy", grid="both")
        for (kind, points), hue, marker, lift in zip(by_kind.items(), HUES, "os", (-14, 7), strict=False):
            runs = {s: [(p.bytes, p.accuracies[s]) for p in points] for s in points[0].accuracies}
            x, y = seed_lines(ax, runs, hue, marker, label=kind)
            beside = {"textcoords": "offset points", "ha": "center", "fontsize": 8.5, "color": INK}
            for p, *at in zip(points, x, y, strict=True):
                ax.annotate(f"{p.size}", at, (0, lift), **beside)
        ax.plot([pixels.bytes], [mean(pixels.accuracies.values())], "D", ms=8, color=ACCENT, label="pixels")
        log_axis(ax, "x", ticks=[10**e for e in range(2, 9)], form=data_size)
        percent_axis(ax, "y", 1.04, ticks=FIFTHS)
        legend(ax, loc="lower right")
    ends = ((kind, points[0], points[-1]) for kind, points in by_kind.items())
    parts = [
        f"{few.size} {kind} features {mean_percent(few.accuracies)}, {many.size} of them "
        f"{mean_percent(many.accuracies)} for {many.bytes / few.bytes:.0f} times the bytes"
        for kind, few, many in ends
    ]
    own = f"The pixels themselves: {mean_percent(pixels.accuracies)} for {data_size(pixels.bytes)}."
    every = [(kind, p.size, p) for kind, points in by_kind.items() for p in points] + [("pixels", "", pixels)]
    rows = ((kind, size, p.bytes, mean_percent(p.accuracies)) for kind, size, p in every)
    table = tabled("features | number | bytes of one client | accuracy", rows)
    return told(figure, "Test accuracy against one client's bytes", setting, f"{'; '.join(parts)}. {own}", table)
