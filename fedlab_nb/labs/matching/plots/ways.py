"""Ways to average the same uploads: bars of test accuracy, one for each way."""

from collections.abc import Mapping
from statistics import mean

from ....plots.axes import rows_axis
from ....plots.style import INK, Picture, drawing, dress, look
from ....plots.words import mean_percent, percent, seeds_of, tabled


def ways(accuracies: Mapping[str, Mapping[int, float]], methods: Mapping[str, str], setting: str) -> Picture:
    """`accuracies`: way in words -> {seed: test accuracy 0–1};   methods: way -> the method whose colour it has."""
    with drawing() as (figure, ax):
        dress(ax, x="test accuracy (%)", grid="x")
        for i, (name, shares) in enumerate(accuracies.items()):
            colour = look(methods[name]).colour
            ax.barh(i, 100 * mean(shares.values()), height=0.6, color=colour, alpha=0.8)
            for share in shares.values() if len(shares) > 1 else ():
                ax.plot(100 * share, i, "o", ms=3.5, color=INK, alpha=0.6)
            ax.text(100 * max(shares.values()) + 1.5, i, mean_percent(shares), va="center", fontsize=9.5, color=INK)
        rows_axis(ax, list(accuracies), least=6)
        ax.set_xlim(0, 105)
    rows = {name: mean_percent(shares) for name, shares in accuracies.items()}
    seeds = seeds_of(next(iter(accuracies.values())))
    best = max(accuracies, key=lambda name: mean(accuracies[name].values()))
    return Picture(
        figure,
        alt=f"Bars of test accuracy for {len(rows)} ways to use the same uploads ({setting}, {seeds}): "
        + ", ".join(f"{name} {share}" for name, share in rows.items())
        + ".",
        sentence=f"{best} is highest with {rows[best]}; "
        + ", ".join(f"{name} {share}" for name, share in rows.items() if name != best)
        + f" ({seeds}).",
        table=tabled(
            "way | mean | each seed",
            (
                (name, rows[name], ", ".join(f"{seed}: {percent(share)}" for seed, share in sorted(shares.items())))
                for name, shares in accuracies.items()
            ),
        ),
    )
