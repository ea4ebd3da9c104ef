"""Fusion × calibration: which half of FuseFL does the work. Bars for the network fused block by block and for the same
clients merely added up (K = 1), under each way of making the classifier, with every seed as a dot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean

from matplotlib.axes import Axes

from .accuracy import PERCENT
from .style import FAINT, INK, LOCK, QUIET, SECOND, Picture, dress, new_figure
from .words import gap, half_width, is_noise, percent, seeds_of

HEADS = {"average": "classifiers\naveraged", "own": "everyone's\nown", "ccvr": "averaged and\ncalibrated"}
HUES = {"alone": "#7f8a94", "fused": SECOND, "ensemble": "#0072B2"}
WIDE = 0.29
Accuracies = Mapping[int, float]  # seed -> share of the test samples


def halves(
    fused: Mapping[str, Accuracies],
    alone: Mapping[str, Accuracies],
    *,
    blocks: int,
    setting: str,
    ensemble: Accuracies | None = None,
    chance: float | None = None,
) -> Picture:
    """`fused`, `alone`: {"average" | "own" | "ccvr": {seed: accuracy}} with K = `blocks` and with K = 1.

    Either may still be empty. `ensemble`: full-width clients, predictions averaged; `chance`: accuracy of guessing.
    """
    names = [name for name in HEADS if name in fused or name in alone]
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")
        ax = dress(figure.add_axes((0.11, 0.25, 0.87, 0.65)), y="test accuracy", grid="y")
        ax.set_title("Which half of FuseFL does the work", loc="left", fontsize=11, fontweight="bold", color=INK, pad=7)
        for i, name in enumerate(names):
            bars = {"alone": alone.get(name, {}), "fused": fused.get(name, {})}
            if name == "own" and ensemble:
                bars["ensemble"] = ensemble
            for j, (which, accuracies) in enumerate(bars.items()):
                x = i + WIDE * (j - (len(bars) - 1) / 2)
                if not accuracies:
                    ax.bar(x, 1, width=0.93 * WIDE, color=FAINT, alpha=0.5)
                    ax.text(x, 0.03, "not run\nyet", ha="center", fontsize=9, color=QUIET)
                    continue
                column(ax, x, list(accuracies.values()), HUES[which])
        if chance:
            ax.axhline(chance, color=QUIET, lw=1, ls=(0, (2, 2)))
        ax.set_xticks(range(len(names)), [HEADS[name] for name in names], fontsize=10)
        ax.set_xlim(-0.5, max(len(names), 1) - 0.5)
        ax.set_ylim(0, 1.08)
        ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        ax.yaxis.set_major_formatter(PERCENT)
        ax.tick_params(axis="x", length=0)
        labels = {"alone": "not fused (K = 1)", "fused": f"fused block by block (K = {blocks})"}
        labels |= {"ensemble": "ensemble, full width"} if ensemble else {}
        for x, (which, label) in zip((0.11, 0.37, 0.72), labels.items(), strict=False):
            figure.text(x, 0.04, f"■ {label}", fontsize=9.5, color=HUES[which])
    return Picture(
        figure,
        alt=alt_text(fused, alone, blocks, setting, ensemble),
        sentence=sentence(fused, alone, blocks),
        table=table(fused, alone, blocks, ensemble),
    )


def column(ax: Axes, x: float, values: list[float], hue: str) -> None:
    """One bar: the mean, every seed as a dot, and mean ± two standard errors in figures."""
    ax.bar(x, mean(values), width=0.93 * WIDE, color=hue, alpha=0.85)
    ax.plot([x] * len(values), values, "o", mfc="white", mec=INK, mew=0.9, ms=5, zorder=3)
    wide = half_width(values)
    text = f"{100 * mean(values):.0f}" + ("" if math.isnan(wide) else f" ± {100 * wide:.0f}")
    ax.text(x, max(values) + 0.025, text, ha="center", fontsize=9.5, color=INK)


def sentence(fused: Mapping[str, Accuracies], alone: Mapping[str, Accuracies], blocks: int) -> str:
    """What each half adds, over the seeds that both sides have."""
    parts = []
    if fused.get("ccvr") and fused.get("average"):
        parts.append(f"Over the averaged classifier, calibration {_adds(fused['ccvr'], fused['average'])}")
    if fused.get("ccvr") and alone.get("ccvr"):
        added = _adds(fused["ccvr"], alone["ccvr"])
        parts.append(f"between two calibrated networks, fusing block by block {added}")
    elif fused and not alone:
        parts.append("press the button for the same without fusion")
    elif not fused:
        parts.append("No result yet")
    seeds = sorted({seed for values in fused.values() for seed in values})
    told = f" (K = {blocks}, {seeds_of(dict.fromkeys(seeds))})" if seeds else ""
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}{told}."


def _adds(a: Accuracies, b: Accuracies) -> str:
    """'adds 56 ± 8 points', 'takes 20 ± 1 points', 'changes the accuracy by −1 ± 2 points, within the noise'."""
    difference, wide = gap(a, b)
    points = signed(difference)
    if math.isnan(wide):
        return f"changes the accuracy by {points} points (one seed: nobody can tell noise from more)"
    if is_noise(difference, wide):
        return f"changes the accuracy by {points} ± {100 * wide:.0f} points, within the noise"
    return f"{'adds' if difference > 0 else 'takes'} {abs(100 * difference):.0f} ± {100 * wide:.0f} points"


def signed(difference: float) -> str:
    """A difference of accuracies in points with its sign: '+3', '−1', '0'."""
    text = f"{100 * difference:+.0f}".replace("-", "−")
    return "0" if text in ("+0", "−0") else text


def alt_text(fused, alone, blocks: int, setting: str, ensemble: Accuracies | None) -> str:
    told = []
    for label, table_ in ((f"K = {blocks}", fused), ("K = 1", alone)):
        told += [
            f"{label}, {HEADS[name].replace(chr(10), ' ')}: {percent(mean(values.values()))}"
            for name, values in table_.items()
            if values
        ]
    reference = f"; ensemble {percent(mean(ensemble.values()))}" if ensemble else ""
    return (
        f"Bars of test accuracy, fused or not, by classifier ({setting}): {'; '.join(told) or 'none yet'}{reference}."
    )


def table(fused, alone, blocks: int, ensemble: Accuracies | None) -> list[dict]:
    rows = []
    for label, values in ((f"fused, K = {blocks}", fused), ("not fused, K = 1", alone)):
        for name, accuracies in values.items():
            rows.append({"network": label, "classifier": HEADS[name].replace("\n", " "), **_numbers(accuracies)})
    if ensemble:
        rows.append({"network": "ensemble", "classifier": "everyone's own", **_numbers(ensemble)})
    return rows


def _numbers(accuracies: Accuracies) -> dict[str, str]:
    wide = half_width(list(accuracies.values()))
    return {
        "accuracy": percent(mean(accuracies.values())) if accuracies else "",
        "± 2 standard errors": "one seed" if math.isnan(wide) else f"{100 * wide:.1f} points",
        "seeds": ", ".join(f"{seed}: {100 * a:.1f} %" for seed, a in sorted(accuracies.items())),
    }
