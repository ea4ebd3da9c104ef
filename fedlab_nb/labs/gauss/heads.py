"""Accuracy against the bytes that a client sends, for every picture of a class: from the mean alone to a covariance."""

from collections.abc import Sequence

from ...methods.gauss import HEADS, TRAINED
from ...panels import Asked, PanelState, words
from ...plots import Picture, Series, data_size, drawing, dress, percent, tabled, told
from ...plots.kit import points
from ...plots.words import seed_words
from ..runs import Steps, all_of, choices
from ..tried import Tried, series

MIXTURES = {"none": "FedPFT, means", "diagonal": "FedPFT, diagonal", "full": "FedPFT, full"}
SHARED = ("features", "size", "features_seed")  # knobs that both methods have


class Heads(Tried):
    """Every head, and FedPFT with three spreads, on the federation that the controls say."""

    name, title, work_label = "heads", "All heads", "Run all heads"

    def asked(self, state: PanelState) -> Asked:
        given = {k.removeprefix("gauss."): v for k, v in state.settings.items()}
        features = {name: given[name] for name in SHARED if name in given}
        plain = {
            k: v
            for k, v in state.settings.items()
            if "." not in k and k not in (*SHARED, "head", "shrinkage")
        }
        variants = {"gauss": {h: {"gauss.head": h} for h in (*HEADS, *TRAINED)}}
        variants["fedpft"] = {name: {"fedpft.covariance": kind} for kind, name in MIXTURES.items()}
        asked = {}
        for method, of in variants.items():
            asked |= choices(
                method, plain | {f"{method}.{name}": v for name, v in features.items()}, of
            )
        return asked

    def work(self, state: PanelState) -> Steps:
        """Run every head, and FedPFT with three spreads, on the federation that the controls describe"""
        runs = yield from all_of(asked := self.asked(state))
        return [series(name, of, asked[name][0]) for name, of in runs.items()], words(
            state.settings
        )

    def tried(self, state: PanelState) -> Picture:
        return heads(*state.worked)


def heads(tried: Sequence[Series], setting: str) -> Picture:
    """A point a classifier. tried: `up` is the mean of a client's bytes"""
    with drawing() as (figure, ax):
        dress(ax, x="bytes that a client sends", y="accuracy", grid="y")
        points(ax, tried, low=max(0.0, 0.9 * min(min(s.accuracies.values()) for s in tried)))
    least, *_, best = sorted(tried, key=lambda s: s.mean)
    high, low = (f"with {percent(s.mean)} for {data_size(s.up)} a client" for s in (best, least))
    rows = ((s.name, seed_words(s.accuracies), data_size(s.up)) for s in tried)
    table = tabled("classifier | accuracy | bytes up of a client", rows)
    text = (
        f"{best.name} is the most accurate {high}, {least.name} the least {low} ({tried[0].seeds})."
    )
    return told(
        figure,
        "Accuracy against a client's bytes for classifiers on frozen features",
        setting,
        text,
        table,
    )
