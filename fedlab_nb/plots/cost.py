"""What a comparison costs beside bytes: wall time by method, and what each method needs and gives away."""

from collections.abc import Mapping, Sequence

from .axes import rows_axis, rows_size
from .series import Series, finished, settings_of
from .style import INK, Picture, drawing, dress, legend
from .words import listed, plural, tabled

SHARED = "Clients are trained once for all methods. Here their time counts for each method that uses them."


def times(series: Sequence[Series], seconds: Mapping[str, tuple[float, float]]) -> Picture:
    """Bars of wall time, mean over seeds. seconds: {series name: (local training, everything after it)}."""
    done = [s for s in finished(series) if s.name in seconds]
    small = rows_size(max(len(done), 3))
    with drawing() as (figure, ax):
        dress(ax, title="Wall time on this machine", x="seconds, mean over seeds", grid="x")
        for i, s in enumerate(done):
            (local, rest), hue = seconds[s.name], s.look.colour
            ax.barh(i, local, height=0.6, color="#c3cad1", label="local training, shared" if not i else None)
            ax.barh(i, rest, left=local, height=0.6, color=hue, label="the method's own part" if not i else None)
            ax.text(local + rest, i, f"  {local + rest:.1f} s", va="center", fontsize=small, color=INK)
        rows_axis(ax, [s.lines for s in done], least=3, size=small, room=0.6)
        ax.margins(x=0.12)
        ax.set_xlim(left=0)
        if done:
            legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncol=2)
    total = {s.name: sum(seconds[s.name]) for s in done}
    text = "No result yet."
    if total:
        slow = max(total, key=total.get)
        text = f"{slow} takes longest, {total[slow]:.1f} s. {SHARED}"
    alt = ", ".join(f"{name} {value:.1f} s" for name, value in total.items()) or "no result yet"
    rows = ((s.name, *(round(v, 2) for v in seconds[s.name])) for s in done)
    table = tabled("method | local training, s | the rest, s", rows)
    return Picture(figure, f"Bars of wall time ({settings_of(done)}): {alt}.", text, table)


def needs(rows: Sequence[Mapping[str, str]]) -> Picture:
    """What methods need and leak: words alone, a Picture without a figure. Rows hold `method` and `extra data`."""
    free = [row["method"] for row in rows if row["extra data"] == "nothing"]
    need = "needs" if len(free) == 1 else "need"
    text = f"{plural(len(free), 'method')} of {len(rows)} {need} nothing but the uploads"
    text += f": {listed(free[:4])}{' and others' if len(free) > 4 else ''}." if free else "."
    return Picture(None, f"What {plural(len(rows), 'method')} need and leak. {text}", text, list(rows))
