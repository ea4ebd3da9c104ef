"""λ_div and the target it makes: Fed-ET's soft label of one public sample, the dissenters' share over all samples."""

from collections.abc import Sequence

import numpy as np

from ....plots.axes import class_ticks, level_line, mark, percent_axis, two_axes
from ....plots.characters import client_name
from ....plots.style import ACCENT, INK, QUIET, SECOND, Picture, class_colours, dress, legend
from ....plots.words import listed, percent, plural, tabled

MOST = 6  # dissenters that get a colour of their own; the others are one more part of the bar


def target(
    labels: np.ndarray, voices: np.ndarray, names: Sequence[str], *, strength: float, sample: int, setting: str,
    members: Sequence[int], client: int | None = None, klass: int | None = None,
) -> Picture:  # fmt: skip
    """q* = (e_y + λ_div s_div) / (1 + λ_div Σ s_div).

    labels [B]:     y_s of each public sample;   voices [m, B, C]: what each client adds to s_div, 0 if it follows
    strength:       λ_div;   sample: which of the B is drawn in full;   members [m]: the clients' ids
    """
    _, count, classes = voices.shape
    ids = [int(k) for k in members]
    diversity = voices.sum(0)
    mass = diversity.sum(1)
    share = strength * mass / (1 + strength * mass)
    q = strength * diversity
    q[np.arange(count), labels] += 1
    overruled = int((q.argmax(1) != labels).sum())
    y, scale = int(labels[sample]), 1 + strength * mass[sample]
    shares = [percent(v) for v in q[sample] / scale]
    with two_axes((1.5, 1), between=0.22) as (figure, left, ax):
        left.bar([y], [1 / scale], color="#9aa4ae", width=0.72, label="consensus")
        _dissenters(left, strength * voices[:, sample] / scale, np.eye(classes)[y] / scale, ids, client, setting)
        dress(left, title=f"Target of sample {sample}", x="class", y="", grid="y")
        class_ticks(left, names, length=6)
        mark(left, klass, classes)
        left.set_xlim(-0.6, classes - 0.4)
        percent_axis(left, top=1.05)
        legend(left, loc="upper right" if y < classes / 2 else "upper left")
        _shares(ax, mass, share, sample, strength)
    who = [f"“{names[c]}”" for c in np.argsort(-diversity[sample], kind="stable")[:2] if diversity[sample, c] > 0.02]
    first = f"nobody dissents on sample {sample}, its target is “{names[y]}” alone"
    if mass[sample]:
        first = f"on sample {sample} (“{names[y]}”) the dissenters get {percent(share[sample])} of the target"
        first += f", mostly for {listed(who)}"
    flips = "the consensus stays on top everywhere" + (", as it must for λ_div < 1" if strength < 1 else "")
    if overruled:
        flips = f"they overrule the consensus on {overruled}"
    most = percent(share.max())
    every = f"Over {plural(count, 'sample')}: {percent(share.mean())} on average, {most} at most; {flips}."
    each = ", ".join(f"“{names[c]}” {shares[c]}" for c in np.flatnonzero(q[sample] / scale >= 0.005))
    alt = f"Soft target of public sample {sample} at λ_div = {strength:.3g} ({setting}): {each}; the dissenters' share "
    alt += f"over all samples, {percent(share.min())} to {most}."
    table = tabled("class | target", zip(names, shares, strict=True))
    return Picture(figure, alt, f"λ_div = {strength:.3g}: {first}. {every}", table)


def _dissenters(
    ax, parts: np.ndarray, floor: np.ndarray, ids: Sequence[int], client: int | None, setting: str
) -> None:  # fmt: skip
    """What each client adds to the target, `parts [m, C]`, stacked on the `floor [C]`, the loudest first."""
    loud = [i for i in np.argsort(-parts.sum(1), kind="stable") if parts[i].sum() > 0]
    own = loud[:MOST] + [i for i in loud[MOST:] if ids[i] == client]
    place, colours = np.arange(len(floor)), [c for c in class_colours(10) if c != "#94a4a2"]
    for n, i in enumerate(own):
        mine, seen = ids[i] == client, parts[i] > 0.002
        ax.bar(
            place[seen], parts[i][seen], bottom=floor[seen], width=0.72, color=colours[n % len(colours)],
            ec=INK if mine else "white", lw=1.6 if mine else 0.4, label=client_name(ids[i], setting),
        )  # fmt: skip
        floor = floor + parts[i]
    rest = parts[[i for i in loud if i not in own]].sum(0)
    if rest.any():
        ax.bar(place, rest, bottom=floor, width=0.72, color=QUIET, hatch="....", ec="white", lw=0.4, label="others")


def _shares(ax, mass: np.ndarray, share: np.ndarray, sample: int, strength: float) -> None:
    """λ_div ω_div / (1 + λ_div ω_div) against ω_div, a dot a sample, under the most that λ_div allows."""
    grid = np.linspace(0, max(1.0, float(mass.max())), 60)
    ax.plot(grid, strength * grid / (1 + strength * grid), color=QUIET, lw=1.2)
    ax.scatter(mass, share, s=16, color=ACCENT, alpha=0.35, lw=0)
    ax.plot([mass[sample]], [share[sample]], "D", ms=8, color=SECOND, mec="white", clip_on=False)
    most = strength / (1 + strength)
    level_line(ax, most, f"at most {percent(most)}", left=True, lift=0.01 * most, size=9)
    dress(ax, title="Dissenters' share", x="dissent mass ω_div", y="", grid="both")
    ax.set_xlim(0, grid[-1] * 1.02)
    percent_axis(ax, top=max(0.06, most * 1.25))
