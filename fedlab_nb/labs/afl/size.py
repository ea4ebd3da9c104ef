"""Accuracy against the number of random features, in words with bytes."""

from collections.abc import Mapping
from typing import NamedTuple

from ...panels import LabView, PanelState, words
from ...plots import Picture, blank, data_size, mean_percent
from ...plots.study import against
from ...studies.outcome import Outcome
from ..runs import Steps, tries

SIZES = (16, 32, 64, 128, 256, 512, 1024)


class Size(LabView):
    name, title, ready, work_label = "size", "Features", "data", "Try 16 to 1024"

    def work(self, state: PanelState) -> Steps:
        """Run AFL with 16 to 1024 random features of both kinds"""
        kinds = ("relu", "conv") if state.federation.dataset.x_train.dim() == 4 else ("relu",)
        by_kind = {}
        for kind in kinds:
            choices = {f"{kind}, d = {d}": {"afl.features": kind, "afl.size": d} for d in SIZES}
            runs = yield from tries("afl", state.settings, choices)
            by_kind[kind] = dict(zip(SIZES, map(sized, runs.values()), strict=True))
        pixels = yield from tries("afl", state.settings, {"pixels": {"afl.features": "pixels"}})
        return by_kind, sized(pixels["pixels"]), dict(state.settings)

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: AFL is run with more and more random features."
            return blank(text, setting=state.setting)
        by_kind, pixels, then = state.worked
        return sizes(by_kind, pixels, setting=words(then))


class Sized(NamedTuple):
    """Some features: bytes up of one client, test accuracies `{seed: share}`."""

    bytes: int
    accuracies: Mapping[int, float]


def sized(outcomes: Mapping[int, Outcome]) -> Sized:
    """`Sized` of outcomes `{seed: Outcome}`."""
    first = next(iter(outcomes.values()))
    return Sized(first.ledger.up // first.settings.clients, {s: o.accuracy for s, o in outcomes.items()})


def sizes(by_kind: Mapping[str, Mapping[int, Sized]], pixels: Sized, *, setting: str) -> Picture:
    """Lines of test accuracy against the number of random features, beside the pixels."""
    lines = {kind: {d: of.accuracies for d, of in by_size.items()} for kind, by_size in by_kind.items()}
    lines["pixels"] = dict.fromkeys(next(iter(by_kind.values())), pixels.accuracies)
    parts = [
        f"{d} {kind} features {mean_percent(of.accuracies)} for {data_size(of.bytes)} a client"
        for kind, by_size in by_kind.items()
        for d, of in (min(by_size.items()), max(by_size.items()))
    ]
    text = f"{', '.join(parts)}; the pixels {mean_percent(pixels.accuracies)} for {data_size(pixels.bytes)}."
    return against(lines, "d", "number of random features d", setting=setting, sentence=text)
