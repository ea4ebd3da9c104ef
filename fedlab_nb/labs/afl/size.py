"""Accuracy against the number of random features, in words with bytes."""

from collections.abc import Mapping

from ...panels import PanelState, words
from ...plots import Picture, Series, data_size, percent
from ...plots.study import against
from ..runs import Steps, tries
from ..tried import Tried, series

SIZES = (16, 32, 64, 128, 256, 512, 1024)


class Size(Tried):
    name, title, work_label = "size", "Features", "Try 16 to 1024"
    before = "AFL is run with more and more random features."

    def work(self, state: PanelState) -> Steps:
        """Run AFL with 16 to 1024 random features of both kinds"""
        by_kind = {}
        for kind in ("relu", "conv") if state.federation.dataset.x_train.dim() == 4 else ("relu",):
            choices = {d: {"afl.features": kind, "afl.size": d} for d in SIZES}
            runs = yield from tries("afl", state.settings, choices)
            by_kind[kind] = {d: series(kind, of) for d, of in runs.items()}
        runs = yield from tries("afl", state.settings, {"pixels": {"afl.features": "pixels"}})
        return by_kind, series("pixels", runs["pixels"]), words(state.settings)

    def tried(self, state: PanelState) -> Picture:
        return sizes(*state.worked)


def sizes(by_kind: Mapping[str, Mapping[int, Series]], pixels: Series, setting: str) -> Picture:
    """Lines of test accuracy against the number of random features, beside the pixels; `up` of a series: the bytes of
    one client."""
    lines = {kind: {d: of.accuracies for d, of in by_size.items()} for kind, by_size in by_kind.items()}
    lines["pixels"] = dict.fromkeys(next(iter(by_kind.values())), pixels.accuracies)
    parts = [
        f"{d} {kind} features {percent(of.mean)} for {data_size(of.up)} a client"
        for kind, by_size in by_kind.items()
        for d, of in (min(by_size.items()), max(by_size.items()))
    ]
    text = f"{', '.join(parts)}; the pixels {percent(pixels.mean)} for {data_size(pixels.up)}."
    return against(lines, "d", "number of random features d", setting=setting, sentence=text)
