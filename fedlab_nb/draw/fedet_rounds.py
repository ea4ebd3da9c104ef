"""Fed-ET's feedback loop, round by round: the large model between two overwritings of its head, and the small ones.

`one_shot` is the same for a single round: the student on its way up to what its teachers say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from .accuracy import PERCENT
from .fedet_axes import two_axes
from .style import ACCENT, LOCK, QUIET, SECOND, SERIES, Picture, dress, legend, new_figure
from .words import percent, seeds_of

# name -> (label, colour, marker, line, hollow); the order is that of the legends
SERVER = {
    "consensus": ("consensus of the clients", QUIET, "", "--", False),
    "server_before": ("head overwritten", SECOND, "v", "", True),
    "server_after": ("after distillation", ACCENT, "o", "-", False),
}
SMALL = {
    "clients": ("clients after local steps", QUIET, "", "-", False),
    "small_before": ("averaged by kind", SERIES[3], "s", "", True),
    "small_after": ("server's head copied in", SERIES[2], "D", "-", False),
    "dissent": ("votes against the consensus", SECOND, "", ":", False),
}


def rounds(curves: Mapping[str, Mapping[int, float]], *, setting: str, marked: int, total: int) -> Picture:
    """`curves`: {name of SERVER or SMALL: {round from 1: share 0–1}}; what is not known yet may be missing."""
    with LOCK:
        figure, left, right = two_axes(left=0.115, bottom=0.37, between=0.06, sharey=True)
        _lines(left, SERVER, curves, shift={"server_before": -0.5})
        _lines(right, SMALL, curves)
        zigzag = sorted(
            [(t - 0.5, a) for t, a in curves.get("server_before", {}).items()]
            + [(t, a) for t, a in curves.get("server_after", {}).items()]
        )
        if zigzag:
            left.plot(*zip(*zigzag, strict=True), color=ACCENT, lw=1.2, alpha=0.6, zorder=1)
        dress(left, title="The large model", x="round", y="accuracy on test samples", grid="y")
        dress(right, title="The small models", x="round", grid="y")
        for ax in (left, right):
            ax.axvline(marked, color=QUIET, lw=1, ls=(0, (2, 2)), zorder=0)
            ax.set_xlim(0.3, total + 0.4)
            ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
            ax.set_ylim(0, 1.02)
            ax.yaxis.set_major_formatter(PERCENT)
            if ax.get_legend_handles_labels()[0]:
                legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.19), ncol=1, borderaxespad=0)
    names = {**SERVER, **SMALL}
    table = [
        {"round": t, **{names[n][0]: percent(of[t]) for n, of in curves.items() if t in of}}
        for t in sorted({t for of in curves.values() for t in of})
    ]
    last = ", ".join(f"{names[n][0]} {percent(of[max(of)])}" for n, of in curves.items() if of)
    alt = f"Curves over {total} rounds of Fed-ET ({setting}), at the last known one: {last}. Round {marked} is marked."
    return Picture(figure, alt, _sentence(curves, marked, total), table)


def _lines(ax, kinds, curves, shift: Mapping[str, float] | None = None) -> None:
    for name, (label, colour, marker, line, hollow) in kinds.items():
        of = curves.get(name, {})
        if of:
            t = [k + (shift or {}).get(name, 0) for k in sorted(of)]
            ax.plot(
                t, [of[k] for k in sorted(of)], marker=marker or None, ls=line or "none", color=colour, lw=1.8, ms=5.5,
                mfc="white" if hollow else colour, label=label,
            )  # fmt: skip


def _sentence(curves: Mapping[str, Mapping[int, float]], t: int, total: int) -> str:
    def at(name: str, when: int = t) -> float | None:
        return curves.get(name, {}).get(when)

    parts = []
    before, after, past = at("server_before"), at("server_after"), at("server_after", t - 1)
    if after is not None and before is not None:
        start = "" if past is None else f" from {percent(past)}"
        parts.append(f"new heads take the server{start} to {percent(before)}, distillation to {percent(after)}")
    elif after is not None:
        parts.append(f"distillation takes the server to {percent(after)}")
    mean, copied = at("small_before"), at("small_after")
    if mean is not None and copied is not None and mean != copied:
        parts.append(f"its head takes the averaged small models from {percent(mean)} to {percent(copied)}")
    elif at("dissent") is not None:
        parts.append(f"{percent(at('dissent'))} of the votes go against the consensus")
    if not parts:
        return f"Round {t} of {total} has not been measured."
    text = f"Round {t} of {total}: {'; '.join(parts)}."
    first, last = (f(curves.get("dissent", {0: 0})) for f in (min, max))
    if last > first:
        text += f" Dissent went from {percent(at('dissent', first))} to {percent(at('dissent', last))}."
    return text


def one_shot(
    steps: Sequence[int],
    student: Mapping[int, Sequence[float]],
    ceiling: Mapping[int, float],
    clients: Mapping[int, float],
    *,
    setting: str,
) -> Picture:
    """The student's accuracy after so many server `steps`, {seed: one value a step}; its teachers' consensus and the
    mean single client, {seed: accuracy}."""
    middle = np.mean(list(student.values()), 0)
    top, low = (float(np.mean(list(of.values()))) if of else None for of in (ceiling, clients))
    with LOCK:
        figure = new_figure()
        ax = dress(figure.subplots(), title="One shot: the student and its teachers", grid="y")
        for curve in student.values() if len(student) > 1 else ():
            ax.plot(steps, curve, color=ACCENT, lw=0.9, alpha=0.4)
        ax.plot(steps, middle, color=ACCENT, lw=2.2, marker="o", ms=5, label="large model at the server")
        if top is not None:
            ax.axhline(top, color=SECOND, lw=1.6, ls="--", label="consensus of the clients")
            ax.axhline(low, color=QUIET, lw=1.6, ls="-.", label="one client alone, mean")
        ax.set_ylim(0, 1.02)
        ax.set_xlim(0, max(steps) * 1.02)
        ax.yaxis.set_major_formatter(PERCENT)
        ax.set_xlabel("steps of the server on public samples", fontsize=10, color=QUIET)
        ax.set_ylabel("accuracy on test samples", fontsize=10, color=QUIET)
        legend(ax, loc="lower right")
    sentence = f"After {steps[-1]} steps the student is right for {percent(middle[-1])} ({seeds_of(student)})"
    if top is not None:
        sentence += f"; its teachers' consensus for {percent(top)}, one client alone for {percent(low)}"
    alt = f"Accuracy of the student against server steps ({setting}): " + ", ".join(
        f"{s} steps {percent(a)}" for s, a in zip(steps, middle, strict=True)
    )
    table = [{"server steps": int(s), "student": percent(a)} for s, a in zip(steps, middle, strict=True)]
    return Picture(figure, f"{alt}.", f"{sentence}.", table)
