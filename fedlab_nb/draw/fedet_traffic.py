"""Accuracy against the numbers sent and against rounds: what a large model at the server saves, and what it doesn't."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from .accuracy import PERCENT
from .fedet_axes import two_axes
from .style import INK, LOCK, MARKERS, QUIET, SERIES, Picture, dress, legend
from .words import percent, seeds_of

Lines = Mapping[str, Mapping[int, Sequence[tuple[int, float, float]]]]


def traffic(lines: Lines, *, setting: str, target: float) -> Picture:
    """`lines`: {method: {seed: [(round, numbers sent so far, accuracy 0–1)]}}, the lab's method first. Numbers are
    model parameters up and down, all clients; `target`: the accuracy to be reached."""
    found = {name: first_reached(of, target) for name, of in lines.items()}
    with LOCK:
        figure, *axes = two_axes(left=0.115, between=0.06, sharey=True)
        for i, (name, of) in enumerate(lines.items()):
            hue, mark = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
            middle = _mean(of)
            for ax, column in zip(axes, (1, 0), strict=True):
                for points in of.values() if len(of) > 1 else ():
                    ax.plot([p[column] for p in points], [p[2] for p in points], color=hue, lw=0.8, alpha=0.3)
                ax.plot(middle[:, column], middle[:, 2], color=hue, lw=2, marker=mark, ms=4, label=name)
                if found[name] is not None:
                    ax.plot([found[name][column]], [target], mark, ms=11, color=hue, mec=INK, mew=1.4, zorder=5)
        for ax in axes:
            ax.axhline(target, color=QUIET, lw=1, ls=(0, (2, 2)))
            ax.yaxis.set_major_formatter(PERCENT)
            ax.set_ylim(0, 1.02)
        dress(axes[0], title="Against numbers sent", x="numbers, up and down (log)", y="accuracy", grid="y")
        dress(axes[1], title="Against rounds", x="round", grid="y")
        last = max((point[0] for seeds in lines.values() for points in seeds.values() for point in points), default=1)
        axes[1].set_xlim(0, max(last, 2) + 0.5)
        axes[0].set_xscale("log")
        axes[0].xaxis.set_major_formatter(FuncFormatter(lambda v, _: amount(v)))
        axes[0].xaxis.set_minor_locator(NullLocator())
        axes[0].text(0.01, target, f" {percent(target)}", transform=axes[0].get_yaxis_transform(), va="bottom",
                     fontsize=9, color=QUIET)  # fmt: skip
        axes[1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
        legend(axes[1], loc="lower right")
    told = [
        f"{name} {amount(of[1])} numbers in {short(of[0])} round{'s' * (of[0] != 1)}"
        if of
        else _short_of(name, lines[name], target)
        for name, of in found.items()
    ]
    seeds = next(iter(lines.values()))
    sentence = f"To {percent(target)} ({seeds_of(seeds)}): {'; '.join(told)}."
    first, second = (list(found.values()) + [None, None])[:2]
    if first and second:
        numbers, times = first[1] / second[1], first[0] / second[0]
        own, other = list(lines)[:2]
        sentence += f" {own} needs {numbers:.2g} times the numbers and {times:.2g} times the rounds of {other}."
    alt = f"Accuracy against numbers sent and against rounds ({setting}). {sentence}"
    table = [
        {
            "method": name,
            f"numbers to {percent(target)}": amount(found[name][1]) if found[name] else "not reached",
            "rounds": short(found[name][0]) if found[name] else "",
            "best accuracy": percent(max(p[2] for points in of.values() for p in points)),
            "numbers in all": amount(_mean(of)[-1, 1]),
        }
        for name, of in lines.items()
    ]
    return Picture(figure, alt, sentence, table)


def first_reached(of: Mapping[int, Sequence[tuple[int, float, float]]], target: float) -> tuple[float, float] | None:
    """(rounds, numbers) at which `target` is first reached, means over the seeds; None unless every seed gets there."""
    firsts = [next((p for p in points if p[2] >= target), None) for points in of.values()]
    if not firsts or any(p is None for p in firsts):
        return None
    return float(np.mean([p[0] for p in firsts])), float(np.mean([p[1] for p in firsts]))


def _mean(of: Mapping[int, Sequence[tuple[int, float, float]]]) -> np.ndarray:
    """Means over seeds, `[rounds, 3]`, as far as every seed goes."""
    length = min(len(points) for points in of.values())
    return np.mean([points[:length] for points in of.values()], 0)


def _short_of(name: str, of: Mapping[int, Sequence[tuple[int, float, float]]], target: float) -> str:
    """That some seeds never reach the target."""
    there = sum(any(p[2] >= target for p in points) for points in of.values())
    return f"{name} does not get there" if not there else f"{name} gets there in {there} of {len(of)} seeds"


def short(rounds: float) -> str:
    """8.667 -> '8.7', 8 -> '8'."""
    return f"{rounds:.1f}".removesuffix(".0")


def amount(count: float) -> str:
    """1234567 -> '1.23 M'."""
    for unit in ("", " k", " M", " G"):
        if abs(count) < 999.5 or unit == " G":
            return f"{count:.3g}{unit}"
        count /= 1000
    raise AssertionError
