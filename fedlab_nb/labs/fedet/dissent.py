"""Does disagreement predict error? Accuracy of Fed-ET's consensus by dissent mass, and below a threshold of it."""

from collections.abc import Mapping

import ipywidgets as widgets
import numpy as np
import torch

from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, legend, percent, seeds_of, tabled, told
from ...plots.axes import FIFTHS, percent_axis
from ...plots.style import ACCENT, INK
from ...studies import Outcome
from .votes import rule_of, votes_on_test

THIRDS = ("least dissent", "middle", "most dissent")
BARS = {"consensus": ACCENT, "server": "#9aa4ae"}
Samples = tuple[
    np.ndarray, np.ndarray, np.ndarray
]  # dissent, whether the consensus is right, whether the server is


class Dissent(LabView):
    """How often the consensus is right if few or many clients dissent."""

    name, title = "dissent", "Dissent"

    def __init__(self) -> None:
        help = "If a larger part of the weight disagrees, no answer is given"
        ends = {"value": 0.6, "max": 1, "step": 0.02}
        self.limit = made(
            widgets.FloatSlider, label="Answer only if dissent ≤", help=help, width=340, **ends
        )

    def draw(self, state: PanelState) -> Picture:
        samples = {
            seed: by_dissent(outcome, state.klass) for seed, outcome in state.outcomes.items()
        }
        who = (
            "all test samples"
            if state.klass is None
            else f"test samples of class {state.class_names[state.klass]}"
        )
        return dissent(samples, state.setting, self.limit.value, who)


def by_dissent(outcome: Outcome, klass: int | None = None) -> Samples:
    """Of test samples (of class `klass`, if there are any): dissent, whether the consensus is right, and the server."""
    vote, truth = votes_on_test(outcome, *rule_of(outcome.options))
    rows = truth == klass if klass is not None and bool((truth == klass).any()) else truth >= 0
    student = torch.as_tensor(outcome.report.test_student).argmax(1)
    return (
        vote.mass[rows].numpy(),
        (vote.labels == truth)[rows].numpy(),
        (student == truth)[rows].numpy(),
    )


def thirds(mass: np.ndarray, right: np.ndarray) -> list[float]:
    """Share of right answers in the thirds with the least, middle and most dissent; an empty third counts as its
    neighbour before it."""
    shares: list[float] = []
    for rows in np.array_split(np.argsort(mass, kind="stable"), 3):
        shares.append(float(right[rows].mean()) if len(rows) else shares[-1])
    return shares


def dissent(
    runs: Mapping[int, Samples], setting: str, threshold: float, who: str = "all test samples"
) -> Picture:
    """Bars of right answers over test samples, {seed: `Samples`}, whose labels no part of the method knows.

    threshold: answer only where the dissent is at most this;   who: which samples
    """
    mass, right, server = (np.concatenate(columns) for columns in zip(*runs.values(), strict=True))
    chosen, columns = mass <= threshold, [*THIRDS, f"dissent ≤ {threshold:.2f}"]
    shares = {}
    for i, (name, answers) in enumerate({"consensus": right, "server": server}.items(), 1):
        answered = answers[chosen].mean() if chosen.any() else 0.0
        shares[name] = [*np.mean([thirds(run[0], run[i]) for run in runs.values()], 0), answered]
    with drawing() as (figure, ax):
        dress(ax, title="Right answers, by thirds of the dissent", grid="y")
        for i, (name, colour) in enumerate(BARS.items()):
            bars = ax.bar(
                np.arange(4) + 0.38 * i - 0.19, shares[name], 0.36, color=colour, label=name
            )
            ax.bar_label(
                bars, [f"{100 * v:.0f}" for v in shares[name]], padding=2, fontsize=9, color=INK
            )
        ax.set_xticks(range(4), [name.replace(" ", "\n", 1) for name in columns])
        percent_axis(ax, top=1.2, ticks=FIFTHS)
        legend(ax, loc="upper right", ncols=2)
    first, _, last, answered = shares["consensus"]
    pairs = [
        np.subtract.outer(m[~(yes := r.astype(bool))], m[yes])
        for m, r, _ in runs.values()
        if 0 < r.mean() < 1
    ]
    aucs = [
        np.heaviside(apart, 0.5).mean() for apart in pairs
    ]  # a wrong answer has more dissent than a right one
    area = f" (AUC {np.mean(aucs):.2f})" if aucs else ""
    sentence = (
        f"The consensus is right for {percent(first)} of the third with the least dissent and {percent(last)} of the "
        f"third with the most{area}. With answers only at a dissent ≤ {threshold:.2f}, {percent(chosen.mean())} of the "
        f"samples get an answer, {percent(answered)} of these a right one ({who}, {len(mass)} in {seeds_of(runs)})."
    )
    rows = zip(columns, *(map(percent, of) for of in shares.values()), strict=True)
    title = "Bars of the accuracy by thirds of the dissent mass, and below a threshold of it"
    return told(
        figure, title, setting, sentence, tabled("samples | consensus right | server right", rows)
    )
