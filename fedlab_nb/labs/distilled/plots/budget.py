"""Accuracy against one client's bytes, for several numbers of images per class."""

from collections.abc import Mapping, Sequence
from statistics import mean

from ....plots.axes import FIFTHS, SIZES, log_axis, percent_axis, seed_lines
from ....plots.style import ACCENT, INK, Picture, drawing, dress, legend, look
from ....plots.words import data_size, listed, mean_percent, percent, tabled
from ..numbers import Budget


def budgets(
    points: Sequence[Budget], chosen: int, *, setting: str, way: str, others: Mapping[str, tuple[float, float]]
) -> Picture:
    """Lines of validation accuracy against bytes up of the client that sends most.

    chosen: `m_c` whose test accuracy is named;   way: how the images are chosen;   others: {title of another method:
    (bytes up of a client, test accuracy)} of the same run
    """
    points = sorted(points, key=lambda p: p.per_class)
    taken = next((p for p in points if p.per_class == chosen), points[0])
    hue = look("distilled").colour
    runs = {s: [(p.bytes, p.validation[s]) for p in points if s in p.validation] for s in points[0].validation}
    with drawing() as (figure, ax):
        dress(ax, title=f"Images per class: {way}", x="bytes that one client sends, at most", y="", grid="both")
        x, y = seed_lines(ax, runs, hue, "o", label="validation images")
        for place, share, p in zip(x, y, points, strict=False):
            ax.annotate(
                str(p.per_class), (place, share), (0, 9), textcoords="offset points", ha="center", fontsize=9, color=INK
            )
        ax.plot(
            [taken.bytes], [mean(taken.test.values())], "s", ms=10, mfc="none", mec=ACCENT, mew=2, label="test images"
        )
        for title, (size, share) in others.items():
            style = look(title)
            ax.plot([size], [share], style.marker, ms=8, color=style.colour)
            ax.annotate(
                title,
                (size, share),
                (-8, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=9,
                color=style.colour,
            )
        sizes = [p.bytes for p in points] + [size for size, _ in others.values()]
        log_axis(ax, "x", ticks=[d * 10**e for e in range(1, 10) for d in (1, 3)], form=SIZES)
        ax.set_xlim(min(sizes) / 1.6, max(sizes) * 1.6)
        percent_axis(ax, "y", 1.04, ticks=FIFTHS)
        legend(ax, loc="lower left")
    few, many = points[0], points[-1]
    text = f"With {taken.per_class} per class a client sends at most {data_size(taken.bytes)}, and the server is right "
    text += f"for {mean_percent(taken.test)} of the test images"
    if few is not many and few.validation:
        text += f". On validation images it has {mean_percent(few.validation)} with {few.per_class} per class, and "
        text += f"{mean_percent(many.validation)} with {many.per_class} per class, "
        text += f"for {many.bytes / few.bytes:.0f} times the bytes"
    known = [f"{title} {percent(share)} for {data_size(size)}" for title, (size, share) in others.items()]
    text += f". Beside it: {listed(known)}." if known else "."
    judged = [mean_percent(p.validation) if p.validation else "unknown" for p in points]
    values = "; ".join(f"{p.per_class}: {data_size(p.bytes)}, {v}" for p, v in zip(points, judged, strict=True))
    alt = (
        f"Validation accuracy against one client's bytes for several numbers of images per class, {way} ({setting}): "
        f"{values}."
    )
    tests = [mean_percent(p.test) if p is taken else "" for p in points]
    rows = ((p.per_class, p.bytes, v, test) for p, v, test in zip(points, judged, tests, strict=True))
    table = tabled("images per class | bytes of one client | validation | test", rows)
    return Picture(figure, alt, text, table)
