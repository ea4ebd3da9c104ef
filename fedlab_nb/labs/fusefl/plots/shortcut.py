"""Why a client takes the shortcut: what a real cue and a spurious one tell of the label, in one client and in all,
exactly, from a small table of probabilities.
"""

from matplotlib.axes import Axes

from ....plots.axes import two_axes
from ....plots.style import ACCENT, INK, QUIET, SECOND, SERIES, Picture, dress
from ..two_cues import Bits, two_cues

CUES = ("real cue", "shortcut")
KEY = (
    (0.09, 0.1, ACCENT, "I(H; Y): what H tells of the label"),
    (0.56, 0.1, SECOND, "I(H; R): what H keeps of the shortcut"),
    (0.09, 0.03, SERIES[6], "I(H; X) − I(H; Y): the bound on I(H; R), where label and shortcut are independent"),
)


def shortcut(classes: int, real: float, spurious: float) -> Picture:
    """The world of two cues; real, spurious: how often the cue agrees with the label beyond chance, 0–1, in one client.

    The shortcut of all clients together agrees with the label by chance alone.
    """
    here, everywhere = two_cues(classes, real, spurious), two_cues(classes, real, 0)
    with two_axes(left=0.09, right=0.98, bottom=0.27, top=0.89, between=0.05 / 0.42) as (figure, left, right):
        panel(left, here, "Inside this client")
        panel(right, everywhere, "Over all clients")
        left.set_ylabel("mutual information, bits", fontsize=10, color=QUIET)
        for x, y, hue, text in KEY:
            figure.text(x, y, f"■ {text}", fontsize=9.5, color=hue)
    numbers, rows = [], []
    for where, cues in (("in this client", here), ("over all", everywhere)):
        for name, b in zip(CUES, cues, strict=True):
            words = f"label {b.label:.2f}, nuisance {b.nuisance:.2f}, bound {b.bound:.2f}"
            numbers.append(f"{where}, H the {name}: {words}")
            bits = {"I(H;Y)": b.label, "I(H;X)": b.image, "I(H;R)": b.nuisance, "I(H;X) − I(H;Y)": b.bound}
            row = {"where": where.replace("all", "all clients"), "feature H": name}
            rows.append(row | {term: f"{value:.3f}" for term, value in bits.items()})
    setting = f"{classes} classes, real cue {real:.0%}, shortcut {spurious:.0%}"
    alt = f"Bars of mutual information in bits ({setting}): {'; '.join(numbers)}."
    return Picture(figure, alt, sentence(here, everywhere[1]), rows)


def panel(ax: Axes, cues: tuple[Bits, Bits], title: str) -> None:
    """Three bars for each cue, and a word where the bound is broken."""
    dress(ax, title=title, grid="y")
    top = cues[0].image
    for i, cue in enumerate(cues):
        for j, (value, hue) in enumerate(((cue.label, ACCENT), (cue.nuisance, SECOND), (cue.bound, SERIES[6]))):
            x = i + 0.26 * (j - 1)
            ax.bar(x, value, width=0.24, color=hue, alpha=0.85)
            ax.text(x, max(value, 0) + 0.02 * top, f"{abs(value):.2g}", ha="center", fontsize=9, color=INK)
        if cue.broken:
            ax.text(i, 1.13 * top, "bound broken", ha="center", fontsize=9.5, color=SECOND)
    ax.set_xticks([0, 1], [f"H = {name}" for name in CUES], fontsize=10)
    ax.set(xlim=(-0.5, 1.5), ylim=(0, 1.22 * top))
    ax.tick_params(axis="x", length=0)


def sentence(here: tuple[Bits, Bits], everywhere: Bits) -> str:
    """Which cue is the better one in this client, and whether the bound holds; `everywhere`: the shortcut over all."""
    cue, short = here
    if abs(short.label - cue.label) <= 1e-9:
        which = "both cues say equally much about the label"
    elif short.label > cue.label:
        which = "the shortcut says more about the label than the real cue"
    else:
        which = "the real cue still says more about the label than the shortcut"
    bound = f"is broken by {short.nuisance - short.bound:.2f} bits" if short.broken else "holds"
    return (
        f"Inside this client {which} (shortcut {short.label:.2f}, real cue {cue.label:.2f} bits). The bound on what H "
        f"keeps of the nuisance {bound}. Over all clients the shortcut has {everywhere.label:.2f} bits about the "
        "label, and the bound holds."
    )
