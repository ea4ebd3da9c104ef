"""Why a client takes the shortcut: what a real cue and a spurious one tell of the label, in one client and in all,
exactly, from a small table of probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

from .style import ACCENT, INK, LOCK, QUIET, SECOND, SERIES, Picture, dress, new_figure


@dataclass(frozen=True)
class Bits:
    """Mutual information in bits of a feature H that copies one cue: with the label, the image and the nuisance."""

    label: float
    image: float
    nuisance: float

    @property
    def bound(self) -> float:
        """I(H; X) − I(H; Y), which I(H; R) may not exceed where Y and R are independent."""
        return self.image - self.label


def shortcut(
    here: tuple[Bits, Bits], all_: tuple[Bits, Bits], *, real: float, spurious: float, classes: int
) -> Picture:
    """`here`, `all_`: in one client, and over all clients; each for H = the real cue and H = the shortcut.

    real, spurious: how often the cue agrees with the label beyond chance, 0–1, in this client
    """
    with LOCK:
        figure = new_figure()
        figure.set_layout_engine("none")
        axes = [figure.add_axes((left, 0.27, 0.42, 0.62)) for left in (0.09, 0.56)]
        top = max(b.image for pair in (here, all_) for b in pair)
        for ax, pair, title in zip(axes, (here, all_), ("Inside this client", "Over all clients"), strict=True):
            dress(ax, title=title, grid="y")
            for i, bits in enumerate(pair):
                for j, (value, hue) in enumerate(
                    ((bits.label, ACCENT), (bits.nuisance, SECOND), (bits.bound, SERIES[6]))
                ):
                    x = i + 0.26 * (j - 1)
                    ax.bar(x, value, width=0.24, color=hue, alpha=0.85)
                    ax.text(x, max(value, 0) + 0.02 * top, f"{abs(value):.2g}", ha="center", fontsize=9, color=INK)
                if bits.nuisance > bits.bound + 1e-9:
                    ax.text(i, 1.13 * top, "bound broken", ha="center", fontsize=9.5, color=SECOND)
            ax.set_xticks([0, 1], ["H = real cue", "H = shortcut"], fontsize=10)
            ax.set_xlim(-0.5, 1.5)
            ax.set_ylim(0, 1.22 * top)
            ax.tick_params(axis="x", length=0)
        axes[0].set_ylabel("mutual information, bits", fontsize=10, color=QUIET)
        keys = (
            (0.09, 0.1, ACCENT, "I(H; Y): what H tells of the label"),
            (0.56, 0.1, SECOND, "I(H; R): what H keeps of the shortcut"),
            (
                0.09,
                0.03,
                SERIES[6],
                "I(H; X) − I(H; Y): the bound on I(H; R), where label and shortcut are independent",
            ),
        )
        for x, y, hue, text in keys:
            figure.text(x, y, f"■ {text}", fontsize=9.5, color=hue)
    setting = f"{classes} classes, real cue {real:.0%}, shortcut {spurious:.0%}"
    return Picture(figure, alt_text(here, all_, setting), sentence(here, all_), table(here, all_))


def sentence(here: tuple[Bits, Bits], all_: tuple[Bits, Bits]) -> str:
    cue, short = here
    if short.label > cue.label + 1e-9:
        which = "Inside this client the shortcut tells more of the label than the real cue"
    elif short.label < cue.label - 1e-9:
        which = "Inside this client the real cue still tells more of the label than the shortcut"
    else:
        which = "Inside this client both cues tell the same of the label"
    broken = short.nuisance > short.bound + 1e-9
    bound = (
        f"and the bound on what H keeps of the nuisance is broken by {short.nuisance - short.bound:.2f} bits"
        if broken
        else "and the bound on what H keeps of the nuisance holds"
    )
    return (
        f"{which} ({short.label:.2f} against {cue.label:.2f} bits), {bound}. Over all clients the shortcut tells "
        f"{abs(all_[1].label):.2f} bits, and the bound holds."
    )


def alt_text(here: tuple[Bits, Bits], all_: tuple[Bits, Bits], setting: str) -> str:
    told = "; ".join(
        f"{where}, H the {name}: label {b.label:.2f}, nuisance {b.nuisance:.2f}, bound {b.bound:.2f}"
        for where, pair in (("in this client", here), ("over all", all_))
        for name, b in zip(("real cue", "shortcut"), pair, strict=True)
    )
    return f"Bars of mutual information in bits ({setting}): {told}."


def table(here: tuple[Bits, Bits], all_: tuple[Bits, Bits]) -> list[dict]:
    return [
        {
            "where": where, "feature H": name, "I(H;Y)": f"{b.label:.3f}", "I(H;X)": f"{b.image:.3f}",
            "I(H;R)": f"{b.nuisance:.3f}", "I(H;X) − I(H;Y)": f"{b.bound:.3f}",
        }
        for where, pair in (("in this client", here), ("over all clients", all_))
        for name, b in zip(("real cue", "shortcut"), pair, strict=True)
    ]  # fmt: skip
