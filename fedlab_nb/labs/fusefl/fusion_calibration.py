"""Fusion × calibration: which half of FuseFL does the work.

The picture has bars for the network fused block by block, and hatched bars for the same clients
without fusion (K = 1), for each way of making the classifier.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ...panels import LabView, MethodAndArgumentsByName, PanelState, ProgressThenResult
from ...plots import (
    MethodResults,
    Picture,
    build_table,
    describe_picture,
    drawing,
    format_mean_percent,
)
from ...plots.kit import AccuracyBars
from ...plots.words import (
    SettingCaption,
    describe_accuracy_difference,
    format_half_width_or_seed_count,
    format_percent_of_each_seed,
)
from ...studies import Outcome
from ...value_types import Accuracy0To1
from ..button_view import AccuracyBySeed
from ..runs import plan_runs, run_planned_runs

HEADS = {
    "average": "classifiers averaged",
    "own": "everyone's own",
    "ccvr": "averaged and calibrated",
}
AccuraciesByHead = Mapping[str, AccuracyBySeed]  # a key of HEADS -> accuracies


class FusionCalibrationView(LabView):
    """The same run with and without fusion, with each classifier."""

    name, title = "halves", "Fusion × calibration"
    summary = "Then this compares the run with one without fusion, with each classifier."
    work_label = "Run without fusion"
    work_help = (
        "Run the same federation without fusion (K = 1) and calibrated, on the same seeds. Earlier "
        "runs are kept."
    )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        """Plan the calibrated run without fusion; for a run without fusion, the one with it. Plan
        the run itself with calibration, too, if it had none.
        """
        options = state.outcome.options
        blocks = [1 if options["blocks"] > 1 else 2]
        if options["head"] != "ccvr":
            blocks.append(options["blocks"])
        changes = {f"K = {k}": {"fusefl.blocks": k, "fusefl.head": "ccvr"} for k in blocks}
        return plan_runs("fusefl", state.runs.find_current_row("fusefl").settings, changes)

    def work(self, state: PanelState) -> ProgressThenResult[list[Outcome]]:
        """Make the planned runs, and list their outcomes."""
        runs = yield from run_planned_runs(self.planned_runs(state))
        outcomes = []
        for by_seed in runs.values():
            outcomes += by_seed.values()
        return outcomes

    def draw(self, state: PanelState) -> Picture:
        outcomes = [*state.outcomes.values(), *(state.worked or [])]
        ensemble = {}
        for seed, outcome in state.others.get("ensemble", {}).items():
            if seed in state.outcomes:
                ensemble[seed] = outcome.accuracy
        return draw_fusion_calibration(
            group_accuracies_by_block_count_and_head(outcomes),
            setting=state.setting,
            ensemble_accuracies=ensemble,
            chance_accuracy=1 / len(state.class_names),
        )


def group_accuracies_by_block_count_and_head(
    fusefl_outcomes: Iterable[Outcome],
) -> dict[int, AccuraciesByHead]:
    """Group the accuracies of FuseFL's `fusefl_outcomes` as {K: {head: {seed: accuracy}}}. A head is a key
    of `FuseFLReport.heads`.
    """
    accuracies: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for outcome in fusefl_outcomes:
        blocks = outcome.options["blocks"]
        for head, accuracy in outcome.report.heads.items():
            accuracies[blocks][head][outcome.settings.seed] = accuracy
    return accuracies


def draw_fusion_calibration(
    accuracies_by_block_count: Mapping[int, AccuraciesByHead],
    *,
    setting: SettingCaption | str,
    ensemble_accuracies: AccuracyBySeed,
    chance_accuracy: Accuracy0To1,
) -> Picture:
    """Draw bars, a pair for each head.

    accuracies_by_block_count: {K: {head: {seed: accuracy}}} with K = 1 and another K; either may be missing
    ensemble_accuracies: accuracies of the plain ensemble, whose clients have the full width
    chance_accuracy: accuracy of guessing
    """
    blocks = max([2, *accuracies_by_block_count])
    rows = []
    for head, label in HEADS.items():
        for network, k in (("not fused", 1), ("fused", blocks)):
            rows.append(
                MethodResults(
                    label,
                    detail=f"{network}, K = {k}",
                    accuracies=accuracies_by_block_count.get(k, {}).get(head, {}),
                    method="fusefl",
                    pinned=k == 1,
                )
            )
    if ensemble_accuracies:
        rows.append(
            MethodResults(
                "Ensemble", detail="full width", accuracies=ensemble_accuracies, method="ensemble"
            )
        )
    with drawing() as (figure, ax):
        AccuracyBars(ax, rows, chance_accuracy).update(rows, "Which half of FuseFL does the work")
    cells = []
    for row in rows:
        if row.accuracies:
            accuracy = format_mean_percent(row.accuracies)
            seeds = format_percent_of_each_seed(row.accuracies)
            cells.append(
                (row.label, row.detail, accuracy, format_half_width_or_seed_count(row.band), seeds)
            )
    return describe_picture(
        figure,
        "Bars of test accuracy, fused or not, by classifier",
        setting,
        describe_gains_of_calibration_and_fusion(
            accuracies_by_block_count.get(blocks, {}), accuracies_by_block_count.get(1, {})
        ),
        build_table("classifier | network | accuracy | ± 95 % band | seeds", cells),
    )


def describe_gains_of_calibration_and_fusion(
    fused_accuracies: AccuraciesByHead, unfused_accuracies: AccuraciesByHead
) -> str:
    """Say what each half adds, over the seeds that both sides have."""
    words = {
        "clear_words": "more than noise",
        "one_seed_words": "one seed: this may be noise",
    }
    sentences = []
    if "ccvr" in fused_accuracies and "average" in fused_accuracies:
        gain = describe_accuracy_difference(
            fused_accuracies["ccvr"], fused_accuracies["average"], **words
        )
        sentences.append(f"Calibrating the averaged classifier: {gain}.")
    if "ccvr" in fused_accuracies and "ccvr" in unfused_accuracies:
        gain = describe_accuracy_difference(
            fused_accuracies["ccvr"], unfused_accuracies["ccvr"], **words
        )
        sentences.append(f"Fusing, between two calibrated networks: {gain}.")
    return " ".join(sentences) or "Press the button for the same without fusion."
