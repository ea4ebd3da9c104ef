"""Temperature of Fed-ET's weights: how right the consensus is, and how many clients count, against τ."""

from collections.abc import Generator, Mapping, Sequence

import numpy as np

from ...panels import LabView, PanelState
from ...plots import Picture, drawing, dress, legend, percent, seeds_of, tabled, told
from ...plots.axes import level_line, log_axis, percent_axis
from ...plots.style import ACCENT, QUIET, SERIES
from ...studies import Outcome
from .votes import heat_slider, share_right, votes_on_test

OTHERS = {"equal weights": "uniform", "variance of raw logits": "logit-variance", "raw logits summed": "logits"}
HEATS = tuple(float(t) for t in np.geomspace(0.1, 100, 19))
Curves = tuple[Sequence[float], Sequence[float], Mapping[str, float]]


class Temperature(LabView):
    """How right the consensus is and how many clients count, against the temperature of the weights."""

    name, title = "temperature", "Temperature"
    empty = "Press Run. The picture then shows the consensus at each temperature of the weights."

    def __init__(self) -> None:
        help = "The logits are divided by it before the variance is taken. This also changes the labels of the public "
        self.heat = heat_slider("Temperature τ", f"{help}samples", 340)

    def prepare(self, state: PanelState) -> Generator[None, None, dict[int, Curves]]:
        curves = {}
        for seed, outcome in state.outcomes.items():
            curves[seed] = curves_of(outcome)
            yield
        return curves

    def draw(self, state: PanelState) -> Picture:
        return temperature(state.prepared, state.setting, len(state.report.members), self.heat.value)


def curves_of(outcome: Outcome) -> Curves:
    """At each of HEATS, accuracy of the consensus on test samples and effective clients; accuracy of the OTHERS."""
    hot = [votes_on_test(outcome, "softmax", heat) for heat in HEATS]
    others = {name: share_right(*votes_on_test(outcome, rule)) for name, rule in OTHERS.items()}
    return [share_right(*vote) for vote in hot], [float(c.effective_clients.mean()) for c, _ in hot], others


def temperature(
    runs: Mapping[int, Curves], setting: str, clients: int, chosen: float, heats: Sequence[float] = HEATS
) -> Picture:
    """`runs`: {seed: `curves_of`} over the temperatures `heats`; `chosen`: the τ that is marked."""
    right, count = (np.mean([run[i] for run in runs.values()], 0) for i in (0, 1))
    others = {name: float(np.mean([run[2][name] for run in runs.values()])) for name in next(iter(runs.values()))[2]}
    share, few = (float(np.interp(np.log(chosen), np.log(heats), middle)) for middle in (right, count))
    with drawing() as (figure, ax):
        dress(ax, title="Consensus right, and clients that count", x="temperature τ of the weights (log)", grid="y")
        shown = {"consensus right": (right, ACCENT), f"effective clients, of {clients}": (count / clients, QUIET)}
        for label, (of, colour) in shown.items():
            ax.plot(heats, of, color=colour, lw=2, label=label)
            ax.plot([chosen], [np.interp(np.log(chosen), np.log(heats), of)], "o", ms=8, color=colour, mec="white")
        for name, value, colour, dashes in zip(others, others.values(), SERIES[1:], ("--", "-.", ":"), strict=False):
            ax.axhline(value, color=colour, lw=1.5, ls=dashes, label=name)
        level_line(ax, chosen, axis="x")
        log_axis(ax)
        percent_axis(ax, top=1.05)
        legend(ax, loc="best")
    sentence = (
        f"At τ = {chosen:.2g} the consensus is right for {percent(share)} of the test samples, and in effect {few:.1f} "
        f"of {clients} clients count. Best is τ = {heats[right.argmax()]:.2g} with {percent(right.max())} "
        f"({seeds_of(runs)})."
    )
    rows = [(f"{a:.3g}", percent(b), f"{c:.1f}") for a, b, c in zip(heats, right, count, strict=True)]
    rows += [(name, percent(value), "") for name, value in others.items()]
    title = "Accuracy of the consensus, and effective clients, against the temperature of the weights"
    return told(figure, title, setting, sentence, tabled("τ | consensus right | effective clients", rows))
