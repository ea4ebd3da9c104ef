"""Fusion × calibration: which half of FuseFL does the work. Bars for the network fused block by block and for the same
clients merely averaged (K = 1), under each way of making the classifier, with every seed as a dot.
"""

from collections.abc import Mapping
from statistics import mean

from matplotlib.axes import Axes

from ....plots.axes import FIFTHS, level_line, percent_axis
from ....plots.style import FAINT, INK, QUIET, Picture, drawing, dress, look
from ....plots.words import band_words, capital, mean_percent, number, seed_words, seeds_of, significance, tabled
from ....study.statistics import band, difference

HEADS = {"average": "classifiers\naveraged", "own": "everyone's\nown", "ccvr": "averaged and\ncalibrated"}
HUES = {"alone": "#7f8a94", "fused": look("fusefl").colour, "ensemble": look("ensemble").colour}
WIDE = 0.29
Accuracies = Mapping[int, float]  # seed -> share of the test samples
Heads = Mapping[str, Accuracies]  # by classifier


def halves(
    outcomes: Mapping[int, Heads], *, setting: str, ensemble: Accuracies | None = None, chance: float = 0
) -> Picture:
    """`outcomes`: {K: {"average" | "own" | "ccvr": {seed: accuracy}}} with K = 1 and with one more K; either may still
    be missing. `ensemble`: full-width clients, predictions averaged; `chance`: accuracy of guessing.
    """
    blocks = next((k for k in outcomes if k > 1), 2)
    fused, alone = outcomes.get(blocks, {}), outcomes.get(1, {})
    names = [name for name in HEADS if name in fused or name in alone]
    with drawing(fixed=True) as (figure, _):
        ax, title = figure.add_axes((0.11, 0.25, 0.87, 0.65)), "Which half of FuseFL does the work"
        dress(ax, title=title, y="test accuracy", grid="y")
        for i, name in enumerate(names):
            bars = {"alone": alone.get(name), "fused": fused.get(name)}
            if name == "own" and ensemble:
                bars["ensemble"] = ensemble
            for j, (which, accuracies) in enumerate(bars.items()):
                column(ax, i + WIDE * (j - (len(bars) - 1) / 2), accuracies, HUES[which])
        if chance:
            level_line(ax, chance)
        ax.set_xticks(range(len(names)), [HEADS[name] for name in names], fontsize=10)
        ax.set_xlim(-0.5, max(len(names), 1) - 0.5)
        percent_axis(ax, top=1.08, ticks=FIFTHS)
        ax.tick_params(axis="x", length=0)
        labels = {"alone": "not fused (K = 1)", "fused": f"fused block by block (K = {blocks})"}
        labels |= {"ensemble": "ensemble, full width"} if ensemble else {}
        for x, (which, label) in zip((0.11, 0.37, 0.72), labels.items(), strict=False):
            figure.text(x, 0.04, f"■ {label}", fontsize=9.5, color=HUES[which])
    rows = [
        (network, f"K = {k}", HEADS[name].replace("\n", " "), accuracies)
        for network, k, heads in (("fused", blocks, fused), ("not fused", 1, alone))
        for name, accuracies in heads.items()
    ]
    means = "; ".join(f"{k}, {classifier}: {mean_percent(shares)}" for _, k, classifier, shares in rows) or "none yet"
    more = f"; ensemble {mean_percent(ensemble)}" if ensemble else ""
    alt = f"Bars of test accuracy, fused or not, by classifier ({setting}): {means}{more}."
    each = [(f"{network}, {k}", *rest) for network, k, *rest in rows]
    each += [("ensemble", "everyone's own", ensemble)] if ensemble else []
    words = ((*names, mean_percent(of), band_words(band(of)), seed_words(of)) for *names, of in each)
    table = tabled("network | classifier | accuracy | ± 95 % band | seeds", words)
    return Picture(figure, alt, sentence(fused, alone, blocks), table)


def column(ax: Axes, x: float, accuracies: Accuracies | None, hue: str) -> None:
    """One bar: the mean, every seed as a dot, and the mean with its 95 % band in figures; or a place for it."""
    if not accuracies:
        ax.bar(x, 1, width=0.93 * WIDE, color=FAINT, alpha=0.5)
        ax.text(x, 0.03, "not run\nyet", ha="center", fontsize=9, color=QUIET)
        return
    values = list(accuracies.values())
    ax.bar(x, mean(values), width=0.93 * WIDE, color=hue, alpha=0.85)
    ax.plot([x] * len(values), values, "o", mfc="white", mec=INK, mew=0.9, ms=5, zorder=3)
    ax.text(x, max(values) + 0.025, number(band(values)), ha="center", fontsize=9.5, color=INK)


def sentence(fused: Heads, alone: Heads, blocks: int) -> str:
    """What each half adds, over the seeds that both sides have."""
    if not fused:
        return "No result yet."
    parts = []
    if "ccvr" in fused and "average" in fused:
        parts.append(f"over the averaged classifier, calibration {_adds(fused['ccvr'], fused['average'])}")
    if "ccvr" in fused and "ccvr" in alone:
        added = _adds(fused["ccvr"], alone["ccvr"])
        parts.append(f"between two calibrated networks, fusing block by block {added}")
    elif not alone:
        parts.append("press the button for the same without fusion")
    seeds = seeds_of({seed: None for values in fused.values() for seed in values})
    return f"{capital('; '.join(parts))} (K = {blocks}, {seeds})."


def _adds(a: Accuracies, b: Accuracies) -> str:
    """'adds 56 ± 8 points', 'takes 20 ± 1 points', 'changes the accuracy by −1 ± 2 points, within the noise'."""
    of = difference(a, b)
    one = f"changes the accuracy by {signed(of.mean)} points (one seed: nobody can tell noise from more)"
    clear = f"{'adds' if of.mean > 0 else 'takes'} {abs(100 * of.mean):.0f} ± {100 * of.half_width:.0f} points"
    return significance(of, noise=f"changes the accuracy by {change(a, b)}", clear=clear, one_seed=one)


def change(a: Accuracies, b: Accuracies) -> str:
    """'+3 ± 1 points' or '−1 ± 2 points, within the noise': mean of a − b over the seeds."""
    of = difference(a, b)
    noise = ", within the noise" if of.is_noise else ""
    return f"{signed(of.mean)} ± {100 * of.half_width:.0f} points{noise}"


def signed(difference: float) -> str:
    """A difference of accuracies in points with its sign: '+3', '−1', '0'."""
    text = f"{100 * difference:+.0f}".replace("-", "−")
    return "0" if text in ("+0", "−0") else text
