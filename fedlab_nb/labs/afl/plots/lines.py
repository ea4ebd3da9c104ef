"""AFL's accuracy against the privacy budget ε, and against the number of random features."""

from collections.abc import Mapping, Sequence
from statistics import mean

from ....methods.afl import SENSITIVITY
from ....methods.parts.privacy import sigma_for
from ....plots.axes import FIFTHS, level_line, log_axis, percent_axis, seed_lines
from ....plots.style import ACCENT, INK, SERIES, Picture, drawing, dress, legend, look
from ....plots.words import data_size, mean_percent, percent, tabled
from ..numbers import Sized

Budgets = Mapping[float | None, Mapping[int, float]]


def budgets(by_kind: Mapping[str, Budgets], chosen: float, delta: float, *, setting: str) -> Picture:
    """Lines of test accuracy against ε for each kind of features, `{label: {ε: {seed: share}}}` (None: no noise); the
    promise of the `chosen` ε in words."""
    hues = (look("afl").colour, SERIES[1])
    epsilons = sorted(e for e in next(iter(by_kind.values())) if e is not None)
    with drawing() as (figure, ax):
        dress(ax, title="Less privacy, less noise", x="ε (smaller: more private)", y="test accuracy", grid="y")
        for (label, of), hue, marker in zip(by_kind.items(), hues, "os", strict=False):
            runs = {s: [(e, of[e][s]) for e in epsilons] for s in of[epsilons[0]]}
            seed_lines(ax, runs, hue, marker, label=label)
            level_line(ax, mean(of[None].values()), colour=hue)
        log_axis(ax, "x", ticks=epsilons)
        ax.axvline(chosen, color=ACCENT, lw=9, alpha=0.16, zorder=0)
        percent_axis(ax, "y", 1.04, ticks=FIFTHS)
        legend(ax, loc="lower right", title="dotted: without noise")
    sigma = sigma_for(chosen, delta, sensitivity=SENSITIVITY)
    each = ", ".join(
        f"{label} {mean_percent(of[chosen])} (without noise {mean_percent(of[None])})" for label, of in by_kind.items()
    )
    text = (
        f"At ε = {chosen:g} the noise on every summed number has σ = {sigma:.2g}: {each}. Promised: one sample more or "
        f"less changes the odds of any result by a factor of at most e^ε = {factor(chosen)}. This may fail with "
        f"probability δ = {delta:g}. Nothing is promised against a server that sees the sums before the noise. Secure "
        "sums protect against such a server. Nothing is promised about what many samples have in common."
    )
    rows = [
        (label, "off" if e is None else f"{e:g}", mean_percent(of[e]))
        for label, of in by_kind.items()
        for e in (*epsilons, None)
    ]
    values = "; ".join(f"{label} at ε {e}: {share}" for label, e, share in rows)
    alt = f"Test accuracy against ε ({setting}, δ = {delta:g}): {values}."
    return Picture(figure, alt, text, tabled("features | ε | accuracy", rows))


def factor(epsilon: float) -> str:
    """e^ε as a reader says it."""
    value = 2.718281828**epsilon
    return f"{value:.1f}" if value < 100 else f"{value:.0e}"


def sizes(by_kind: Mapping[str, Sequence[Sized]], pixels: Sized, *, setting: str) -> Picture:
    """Lines of test accuracy against the bytes of one client, one point for each number of features."""
    hues = (look("afl").colour, SERIES[1])
    with drawing() as (figure, ax):
        dress(ax, title="More random features", x="bytes that one client sends", y="test accuracy", grid="both")
        for (kind, points), hue, marker in zip(by_kind.items(), hues, "os", strict=False):
            runs = {s: [(p.bytes, p.accuracies[s]) for p in points] for s in points[0].accuracies}
            x, y = seed_lines(ax, runs, hue, marker, label=kind)
            for place, share, p in zip(x, y, points, strict=True):
                up = kind == next(iter(by_kind))
                ax.annotate(f"{p.size}", (place, share), (0, -14 if up else 7), textcoords="offset points", ha="center",
                            fontsize=8.5, color=INK)  # fmt: skip
        ax.plot([pixels.bytes], [mean(pixels.accuracies.values())], "D", ms=8, color=ACCENT, label="pixels")
        log_axis(ax, "x", ticks=[d * 10**e for e in range(2, 9) for d in (1,)], form=data_size)
        percent_axis(ax, "y", 1.04, ticks=FIFTHS)
        legend(ax, loc="lower right")
    parts = []
    for kind, points in by_kind.items():
        few, many = points[0], points[-1]
        parts.append(
            f"{few.size} {kind} features {mean_percent(few.accuracies)}, {many.size} of them "
            f"{mean_percent(many.accuracies)} for {many.bytes / few.bytes:.0f} times the bytes"
        )
    text = (
        f"{'; '.join(parts)}. The pixels themselves: {mean_percent(pixels.accuracies)} for {data_size(pixels.bytes)}."
    )
    rows = [
        (kind, p.size, p.bytes, percent(mean(p.accuracies.values())))
        for kind, points in by_kind.items()
        for p in points
    ]
    rows.append(("pixels", "", pixels.bytes, mean_percent(pixels.accuracies)))
    values = "; ".join(f"{kind} {size}: {data_size(count)}, {share}" for kind, size, count, share in rows)
    alt = f"Test accuracy against one client's bytes ({setting}): {values}."
    return Picture(figure, alt, text, tabled("features | number | bytes of one client | accuracy", rows))
