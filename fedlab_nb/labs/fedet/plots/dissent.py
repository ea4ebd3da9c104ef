"""Does disagreement predict error? Accuracy of Fed-ET's consensus by dissent mass, and what a threshold would give."""

from collections.abc import Mapping

import numpy as np

from ....plots.axes import FIFTHS, level_line, percent_axis, two_axes
from ....plots.style import ACCENT, INK, SECOND, Picture, dress, legend
from ....plots.words import percent, plural, seeds_of, tabled
from ..numbers import answered, ranked, thirds

THIRDS = ("least dissent", "middle", "most dissent")
BARS = {"consensus": (ACCENT, "", "white"), "server": ("#9aa4ae", "////", INK)}  # colour, hatch, colour of its numbers
Samples = tuple[np.ndarray, np.ndarray, np.ndarray]


def dissent(runs: Mapping[int, Samples], *, setting: str, threshold: float, who: str = "all test samples") -> Picture:
    """Two charts over test samples whose labels are known here and nowhere in the method.

    runs {seed: (ω_div [B], whether the consensus is right [B], whether the server is [B])}
    threshold: answer only where ω_div is at most this;   who: which samples
    """
    mass, right, _ = (np.concatenate(columns) for columns in zip(*runs.values(), strict=True))
    shares = {name: np.array([thirds(run[0], run[i]) for run in runs.values()]) for i, name in enumerate(BARS, 1)}
    consensus = shares["consensus"].mean(0)
    chosen = mass <= threshold
    share = float(chosen.mean())
    accuracy = float(right[chosen].mean()) if chosen.any() else None
    areas = [area for area in (ranked(*run[:2]) for run in runs.values()) if not np.isnan(area)]
    with two_axes((1, 1.1), between=0.24, bottom=0.15) as (figure, left, ax):
        for i, (name, (colour, hatch, written)) in enumerate(BARS.items()):
            places, heights = np.arange(3) + 0.38 * i - 0.19, shares[name].mean(0)
            left.bar(places, heights, 0.36, color=colour, hatch=hatch, ec="white", lw=0, label=name)
            for row in shares[name] if len(runs) > 1 else ():
                left.plot(places, row, "o", ms=3.5, color=INK, alpha=0.5)
            for x, value in zip(places, heights, strict=True):
                left.text(x, 0.02, f"{100 * value:.0f}", ha="center", fontsize=9.5, fontweight="bold", color=written)
        dress(left, title="Right answers, by thirds of the dissent", grid="y")
        left.set_xticks(range(3), [name.replace(" ", "\n") for name in THIRDS])
        percent_axis(left, top=1.2, ticks=FIFTHS)
        legend(left, loc="upper right", ncol=2)
        dress(ax, title="If it may give no answer", x="share of samples answered", y="", grid="both")
        curve = answered(mass, right)
        ax.plot(*curve, color=ACCENT, lw=2)
        level_line(ax, float(right.mean()), "answering always", left=True, lift=0.01, size=9)
        if accuracy is not None:
            ax.plot([share], [accuracy], "o", ms=9, color=SECOND, mec="white", clip_on=False, zorder=4)
            ax.annotate(
                f"dissent ≤ {threshold:.2f}", (share, accuracy), xytext=(10, 10), textcoords="offset points",
                ha="left", fontsize=9.5, color=SECOND, bbox={"fc": "white", "ec": "none", "alpha": 0.85, "pad": 1},
            )  # fmt: skip
        percent_axis(ax, "x")
        percent_axis(ax, "y", 1.03, low=min(0.5, float(curve[1].min()) - 0.1))
    area = f" (AUC {np.mean(areas):.2f})" if areas else ""
    sentence = f"The consensus is right for {percent(consensus[0])} of the third with the least dissent and "
    sentence += f"{percent(consensus[2])} of the third with the most{area}. "
    if accuracy is None:
        sentence += f"No sample has a dissent ≤ {threshold:.2f}."
    else:
        sentence += (
            f"If it answers only at a dissent ≤ {threshold:.2f}, it answers {percent(share)} of the samples, and is "
            f"right for {percent(accuracy)} of these."
        )
    each = ", ".join(f"{n} {percent(v)}" for n, v in zip(THIRDS, consensus, strict=True))
    alt = f"Accuracy by thirds of the dissent mass ({setting}; {who}, {len(mass)} in {seeds_of(runs)}): {each}; and "
    alt += f"accuracy against the share of samples answered, {percent(share)} at the threshold {threshold:.2f}."
    means = ([percent(v) for v in of.mean(0)] for of in shares.values())
    seeds = (", ".join(f"{s}: {percent(v)}" for s, v in zip(runs, of, strict=True)) for of in shares["consensus"].T)
    columns = ["third", *(f"{who} right" for who in shares), "consensus by seed"]
    table = tabled(columns, zip(THIRDS, *means, seeds, strict=True))
    return Picture(figure, alt, sentence, [*table, {"third": plural(len(mass), "sample")}])
