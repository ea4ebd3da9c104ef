"""Why a client takes the shortcut: what a real cue and a spurious one tell of the label, in one client and in all.

A world of two cues, small enough to be computed exactly: why a client takes the shortcut (FuseFL, sections 3 and 7).

    Y uniform over C classes;   V, the real cue, and R, the spurious one, independent given Y;   X = (V, R)
    V = Y with probability s, else uniform: in every client alike
    R = Y with probability rho, else uniform: in one client. Every client has its own assignment of R to the classes,
    so that over all clients R and Y are independent. That is a premise: clients that share one assignment break it.

Lemma 3.1 in the form that needs no sufficient H: I(H; R) <= I(H; X) - I(H; Y) wherever Y and R are independent. Inside
the client they are not, and H = R breaks it by exactly I(R; Y). The paper has no theorem about FuseFL itself.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from ipywidgets import FloatSlider
from torch import Tensor

from ...errors import number, whole
from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, legend, tabled, told
from ...plots.style import ACCENT, SECOND, SERIES

FEATURES = ("H = real cue", "H = shortcut")
REAL = "How well the real cue shows the label at every client: from 0 %, by chance alone, to 100 %, always"
SPURIOUS = "How well the spurious cue shows the label at this one client, likewise"
MOST = 100  # classes
TERMS = {  # of `Bits`: words, colour
    "label": ("I(H; Y): what H tells of the label", ACCENT),
    "nuisance": ("I(H; R): what H keeps of the shortcut", SECOND),
    "bound": ("I(H; X) − I(H; Y): the bound on I(H; R)", SERIES[6]),
}


class TwoCues(LabView):
    """A real cue and a shortcut, exactly: what each tells of the label, in one client and over all."""

    name, title, ready = "cues", "Why the shortcut", "always"

    def __init__(self) -> None:
        share = {"width": 310, "min": 0, "max": 1, "step": 0.05, "readout_format": ".0%"}
        self.real = made(FloatSlider, label="Real cue", help=REAL, value=0.6, **share)
        self.spurious = made(FloatSlider, label="Shortcut here", help=SPURIOUS, value=0.9, **share)

    def draw(self, state: PanelState) -> Picture:
        return shortcut(min(max(len(state.class_names), 2), MOST), self.real.value, self.spurious.value)


def shortcut(classes: int, real: float, spurious: float) -> Picture:
    """The world of two cues; real, spurious: how often the cue agrees with the label beyond chance, 0–1, in one client.

    The shortcut of all clients together agrees with the label by chance alone.
    """
    places = {"in this client": two_cues(classes, real, spurious), "over all clients": two_cues(classes, real, 0)}
    cues = {f"{name},\n{where}": cue for where, two in places.items() for name, cue in zip(FEATURES, two, strict=True)}
    with drawing() as (figure, ax):
        dress(ax, title="Bits of a feature H that copies one cue", y="mutual information, bits", grid="y")
        for j, (term, (words, hue)) in enumerate(TERMS.items()):
            at = np.arange(len(cues)) + j / 4 - 0.25
            bars = ax.bar(at, [getattr(of, term) for of in cues.values()], 0.24, color=hue, alpha=0.85, label=words)
            ax.bar_label(bars, fmt="%.2g", fontsize=9, padding=2)
        ax.set_xticks(range(len(cues)), list(cues))
        ax.set_ylim(0, 1.4 * math.log2(classes))  # room for the legend
        legend(ax, loc="upper left")
    bits_of = ((of.label, of.image, of.nuisance, of.bound) for of in cues.values())
    rows = ((name.replace("\n", " "), *np.round(of, 3).tolist()) for name, of in zip(cues, bits_of, strict=True))
    (cue, short), (_, everywhere) = places.values()
    bound = f"is broken by {short.nuisance - short.bound:.2f} bits" if short.broken else "holds"
    return told(
        figure,
        "Bars of mutual information in bits",
        f"{classes} classes, real cue {real:.0%}, shortcut {spurious:.0%}",
        f"Inside this client the shortcut has {short.label:.2f} bits about the label, the real cue {cue.label:.2f}. "
        f"The bound on what H keeps of the nuisance {bound}. Over all clients the shortcut has "
        f"{everywhere.label:.2f} bits about the label, and the bound holds.",
        tabled("feature H | I(H;Y) | I(H;X) | I(H;R) | I(H;X) − I(H;Y)", rows),
    )


class Bits(NamedTuple):
    """Mutual information in bits of a feature H that copies one cue: with label Y, image X and nuisance R."""

    label: float
    image: float
    nuisance: float

    @property
    def bound(self) -> float:
        """I(H; X) − I(H; Y), which I(H; R) may not exceed where Y and R are independent."""
        return self.image - self.label

    @property
    def broken(self) -> bool:
        """Whether I(H; R) exceeds the bound."""
        return self.nuisance > self.bound + 1e-9


def two_cues(classes: int, real: float, spurious: float) -> tuple[Bits, Bits]:
    """For H = V (the real cue) and for H = R (the shortcut).

    `real` s and `spurious` rho, 0-1. With spurious=0 these are the values over all clients.
    """
    classes = whole("classes", classes, 2, 100)
    real, spurious = number("real", real, 0, 1), number("spurious", spurious, 0, 1)
    v_y, r_y = agreeing(classes, real), agreeing(classes, spurious)  # joint tables [cue, label]
    v_r = classes * v_y @ r_y.T  # sum over y of p(y) p(v|y) p(r|y)
    image = math.log2(classes)  # H is a part of X and uniform, so I(H; X) is its entropy
    return Bits(bits(v_y), image, bits(v_r)), Bits(bits(r_y), image, image)


def agreeing(classes: int, strength: float) -> Tensor:
    """Joint probabilities `[C, C]` of a cue and a uniform label: alike with probability `strength`, else by chance."""
    same = torch.eye(classes, dtype=torch.float64) / classes
    return strength * same + (1 - strength) / classes**2


def mutual_information(joint: Tensor) -> Tensor:
    """I(A; B) in nats of a table of probabilities `[A, B]`."""
    joint = joint.double() / joint.sum()
    independent = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    return (torch.xlogy(joint, joint) - torch.xlogy(joint, independent)).sum()


def bits(joint: Tensor) -> float:
    """Mutual information of a table in bits; rounding below zero is zero."""
    return max(0.0, float(mutual_information(joint)) / math.log(2))


def cue_over_clients(label_counts: Tensor, marked: Sequence[int]) -> tuple[float, float]:
    """(I(R; Y), entropy of Y) in bits over all clients' images together, of a cue R that the `marked` clients share.

    label_counts: images `[M, C]`; R is the label where the client is marked, and one value more, "none", elsewhere.
    Lemma 3.1 needs I(R; Y) = 0; it is above 0 whenever a marked client holds more than one class.

    >>> counts = torch.tensor([[5, 5], [5, 5]])
    >>> [round(cue_over_clients(counts, marked)[0], 2) for marked in ([], [0], [0, 1])]
    [0.0, 0.5, 1.0]
    """
    counts = torch.as_tensor(label_counts).double()
    own = counts[list(marked)].sum(0)
    rest = counts.sum(0) - own
    return bits(torch.cat([torch.diag(own), rest[None]])), bits(torch.diag(counts.sum(0)))
