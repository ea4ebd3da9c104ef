"""Accuracy against the number of random features, in words with bytes."""

from collections import defaultdict
from collections.abc import Mapping

from ...panels import Asked, PanelState, words
from ...plots import Picture, Series, data_size, percent
from ...plots.study import against
from ..runs import Steps, all_of, choices
from ..tried import Tried, series

SIZES = (16, 64, 256, 1024)


class Size(Tried):
    name, title, work_label = "size", "Features", "Try 16 to 1024"

    def asked(self, state: PanelState) -> Asked:
        kinds = ("relu", "conv") if state.federation.dataset.x_train.dim() == 4 else ("relu",)
        of = {f"{d} {kind}": {"afl.features": kind, "afl.size": d} for kind in kinds for d in SIZES}
        return choices("afl", state.settings, {**of, "pixels": {"afl.features": "pixels"}})

    def work(self, state: PanelState) -> Steps:
        """Run AFL with 16 to 1024 random features of both kinds"""
        runs = yield from all_of(self.asked(state))
        pixels, by_kind = series("pixels", runs.pop("pixels")), defaultdict(dict)
        for name, of in runs.items():
            d, kind = name.split()
            by_kind[kind][int(d)] = series(kind, of)
        return by_kind, pixels, words(state.settings)

    def tried(self, state: PanelState) -> Picture:
        return sizes(*state.worked)


def sizes(by_kind: Mapping[str, Mapping[int, Series]], pixels: Series, setting: str) -> Picture:
    """Lines of test accuracy against the number of random features, beside the pixels; `up` of a series: the bytes of
    one client."""
    lines = {
        kind: {d: of.accuracies for d, of in by_size.items()} for kind, by_size in by_kind.items()
    }
    lines["pixels"] = dict.fromkeys(next(iter(by_kind.values())), pixels.accuracies)
    parts = [
        f"{d} {kind} features {percent(of.mean)} for {data_size(of.up)} a client"
        for kind, by_size in by_kind.items()
        for d, of in (min(by_size.items()), max(by_size.items()))
    ]
    text = f"{', '.join(parts)}; the pixels {percent(pixels.mean)} for {data_size(pixels.up)}."
    return against(lines, "d", "number of random features d", setting=setting, sentence=text)
