"""Fusion × calibration: which half of FuseFL does the work. Bars for the network fused block by block and for the same
clients merely averaged (K = 1, hatched), under each way of making the classifier.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ...panels import Asked, LabView, PanelState
from ...plots import Picture, Series, drawing, mean_percent, tabled, told
from ...plots.kit import Bars
from ...plots.words import apart, band_words, seed_words
from ..runs import Steps, all_of, choices

HEADS = {
    "average": "classifiers averaged",
    "own": "everyone's own",
    "ccvr": "averaged and calibrated",
}
Accuracies = Mapping[int, float]  # seed -> share of the test samples
Heads = Mapping[str, Accuracies]  # by classifier


class Halves(LabView):
    """The same run with and without fusion, under each classifier."""

    name, title, work_label = "halves", "Fusion × calibration", "Run without fusion"

    def asked(self, state: PanelState) -> Asked:
        own = state.outcome.options
        wanted = [1 if own["blocks"] > 1 else 2] + [own["blocks"]] * (own["head"] != "ccvr")
        of = {
            f"K = {blocks}": {"fusefl.blocks": blocks, "fusefl.head": "ccvr"} for blocks in wanted
        }
        return choices("fusefl", state.runs.find("fusefl").settings, of)

    def work(self, state: PanelState) -> Steps:
        """Run the same federation without fusion (K = 1) and calibrated, on the same seeds. Earlier runs are kept."""
        runs = yield from all_of(self.asked(state))
        return [outcome for by_seed in runs.values() for outcome in by_seed.values()]

    def draw(self, state: PanelState) -> Picture:
        heads = by_classifier([*state.outcomes.values(), *(state.worked or [])])
        ensemble = {
            s: o.accuracy
            for s, o in state.others.get("ensemble", {}).items()
            if s in state.outcomes
        }
        return halves(
            heads, setting=state.setting, ensemble=ensemble, chance=1 / len(state.class_names)
        )


def by_classifier(outcomes: Iterable[Any]) -> dict[int, dict[str, dict[int, float]]]:
    """{K: {classifier: {seed: accuracy}}} of FuseFL's `outcomes`, a classifier being a key of `FuseFLReport.heads`."""
    accuracies: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for outcome in outcomes:
        for head, accuracy in outcome.report.heads.items():
            accuracies[outcome.options["blocks"]][head][outcome.settings.seed] = accuracy
    return accuracies


def halves(
    outcomes: Mapping[int, Heads], *, setting: str, ensemble: Accuracies, chance: float
) -> Picture:
    """`outcomes`: {K: {"average" | "own" | "ccvr": {seed: accuracy}}} with K = 1 and with one more K; either may still
    be missing. `ensemble`: full-width clients, predictions averaged; `chance`: accuracy of guessing.
    """
    blocks = max([2, *outcomes])
    rows = []
    for head, words in HEADS.items():
        for network, k in (("not fused", 1), ("fused", blocks)):
            accuracies = outcomes.get(k, {}).get(head, {})
            rows.append(
                Series(words, f"{network}, K = {k}", "", accuracies, method="fusefl", pinned=k == 1)
            )
    rows += [Series("Ensemble", "full width", "", ensemble, method="ensemble")] * bool(ensemble)
    with drawing() as (figure, ax):
        Bars(ax, rows, chance).update(rows, "Which half of FuseFL does the work")
    shown = [s for s in rows if s.accuracies]
    each = (
        (s.label, s.detail, mean_percent(of := s.accuracies), band_words(s.band), seed_words(of))
        for s in shown
    )
    table = tabled("classifier | network | accuracy | ± 95 % band | seeds", each)
    text = sentence(outcomes.get(blocks, {}), outcomes.get(1, {}))
    return told(figure, "Bars of test accuracy, fused or not, by classifier", setting, text, table)


def sentence(fused: Heads, alone: Heads) -> str:
    """What each half adds, over the seeds that both sides have."""
    parts, words = (
        [],
        {"clear": "more than noise", "one_seed": "one seed: nobody can tell noise from more"},
    )
    if "ccvr" in fused and "average" in fused:
        parts.append(
            f"Calibrating the averaged classifier: {apart(fused['ccvr'], fused['average'], **words)}."
        )
    if "ccvr" in fused and "ccvr" in alone:
        parts.append(
            f"Fusing, between two calibrated networks: {apart(fused['ccvr'], alone['ccvr'], **words)}."
        )
    return " ".join(parts) or "Press the button for the same without fusion."
