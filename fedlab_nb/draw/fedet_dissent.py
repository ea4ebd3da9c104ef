"""Does disagreement predict error? Accuracy of Fed-ET's consensus by dissent mass, and what a threshold would give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .accuracy import PERCENT
from .fedet_axes import two_axes
from .style import ACCENT, INK, LOCK, QUIET, SECOND, Picture, dress, legend
from .words import percent, plural, seeds_of

THIRDS = ("least dissent", "middle", "most dissent")


def dissent(
    mass: Mapping[int, np.ndarray],
    right: Mapping[int, np.ndarray],
    student: Mapping[int, np.ndarray],
    *,
    setting: str,
    threshold: float,
    who: str = "all test samples",
) -> Picture:
    """Two charts over test samples whose labels are known here and nowhere in the method.

    mass {seed: [B]}: ρ;   right, student {seed: [B] bool}: whether the consensus and the server are right
    threshold: answer only where ρ is at most this;   who: which samples
    """
    seeds = [s for s in mass if len(mass[s])]
    thirds = {s: np.array_split(np.argsort(mass[s], kind="stable"), 3) for s in seeds}
    bars = {"consensus": by_third(thirds, right), "server": by_third(thirds, student)}
    curve = answered(np.concatenate([mass[s] for s in seeds]), np.concatenate([right[s] for s in seeds]))
    every_mass, every_right = (np.concatenate([of[s] for s in seeds]) for of in (mass, right))
    told = every_mass <= threshold
    share = float(told.mean())
    kept = float(every_right[told].mean()) if told.any() else None
    areas = [area for area in (ranked(mass[s], right[s]) for s in seeds) if not np.isnan(area)]
    area = f" (AUC {np.mean(areas):.2f})" if areas else ""
    with LOCK:
        figure, left, ax = two_axes((1, 1.1), between=0.24, bottom=0.15)
        for i, (name, colour, hatch) in enumerate((("consensus", ACCENT, ""), ("server", "#9aa4ae", "////"))):
            places = np.arange(3) + 0.38 * i - 0.19
            drawn = left.bar(places, bars[name].mean(0), 0.36, color=colour, hatch=hatch, ec="white", lw=0, label=name)
            if len(seeds) > 1:
                for row in bars[name]:
                    left.plot(places, row, "o", ms=3.5, color=INK, alpha=0.5)
            for bar, value in zip(drawn, bars[name].mean(0), strict=True):
                left.text(
                    bar.get_x() + 0.18, 0.02, f"{100 * value:.0f}", ha="center", fontsize=9.5, fontweight="bold",
                    color="white" if name == "consensus" else INK,
                )  # fmt: skip
        dress(left, title="Right answers, by thirds of ρ", grid="y")
        left.set_xticks(range(3), [name.replace(" ", "\n") for name in THIRDS])
        left.set_ylim(0, 1.2)
        left.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        left.yaxis.set_major_formatter(PERCENT)
        legend(left, loc="upper right", ncol=2)
        dress(ax, title="If it may stay silent", x="share of samples answered", y="", grid="both")
        ax.plot(*curve, color=ACCENT, lw=2)
        ax.axhline(float(every_right.mean()), color=QUIET, lw=1, ls=(0, (2, 2)))
        ax.text(0.01, float(every_right.mean()) + 0.01, "answering always", fontsize=9, color=QUIET)
        if kept is not None:
            ax.plot([share], [kept], "o", ms=9, color=SECOND, mec="white", clip_on=False, zorder=4)
            ax.annotate(
                f"ρ ≤ {threshold:.2f}", (share, kept), xytext=(10, 10), textcoords="offset points",
                ha="left", fontsize=9.5, color=SECOND, bbox={"fc": "white", "ec": "none", "alpha": 0.85, "pad": 1},
            )  # fmt: skip
        ax.set_xlim(0, 1)
        ax.set_ylim(min(0.5, float(curve[1].min()) - 0.1), 1.03)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(PERCENT)
    low, high = bars["consensus"].mean(0)[[0, 2]]
    sentence = (
        f"The consensus is right for {percent(low)} of the third with the least dissent and {percent(high)} of the "
        f"third with the most{area}. "
    )
    sentence += (
        f"Answering only at ρ ≤ {threshold:.2f}: {percent(share)} answered, {percent(kept)} of them right."
        if kept is not None
        else f"No sample has ρ ≤ {threshold:.2f}."
    )
    count = sum(len(mass[s]) for s in seeds)
    alt = (
        f"Accuracy by thirds of the dissent mass ({setting}; {who}, {count} in {seeds_of(dict.fromkeys(seeds))}): "
        + ", ".join(f"{n} {percent(v)}" for n, v in zip(THIRDS, bars["consensus"].mean(0), strict=True))
        + f"; and accuracy against the share of samples answered, {percent(share)} at the threshold {threshold:.2f}."
    )
    return Picture(figure, alt, sentence, _table(bars, seeds, mass))


def by_third(thirds: Mapping[int, list[np.ndarray]], right: Mapping[int, np.ndarray]) -> np.ndarray:
    """Share of right answers, `[seeds, 3]`; an empty third counts as its neighbour before it."""
    rows = []
    for seed, parts in thirds.items():
        values = [float(right[seed][rows_].mean()) if len(rows_) else np.nan for rows_ in parts]
        for i in (1, 2):
            values[i] = values[i - 1] if np.isnan(values[i]) else values[i]
        rows.append(values)
    return np.array(rows).reshape(-1, 3)


def answered(mass: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share answered and accuracy among those, for every threshold that changes something, from few to all."""
    order = np.argsort(mass, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(mass[order]) > 0), len(mass) - 1)
    right_so_far = np.cumsum(right[order])[ends]
    return (ends + 1) / len(mass), right_so_far / (ends + 1)


def ranked(mass: np.ndarray, right: np.ndarray) -> float:
    """AUC: in which share of the pairs (a wrong answer, a right one) the wrong one has more dissent; ties half."""
    right = np.asarray(right, dtype=bool)
    wrong, good = mass[~right], mass[right]
    if not len(wrong) or not len(good):
        return float("nan")
    higher = (wrong[:, None] > good[None]).mean() + 0.5 * (wrong[:, None] == good[None]).mean()
    return float(higher)


def _table(bars, seeds, mass) -> list[dict]:
    rows = []
    for i, name in enumerate(THIRDS):
        values = {who: percent(of.mean(0)[i]) for who, of in bars.items()}
        by_seed = ", ".join(f"{s}: {percent(v)}" for s, v in zip(seeds, bars["consensus"][:, i], strict=True))
        rows.append({"third": name, **{f"{who} right": v for who, v in values.items()}, "consensus by seed": by_seed})
    return rows + [{"third": plural(sum(len(mass[s]) for s in seeds), "sample")}]
