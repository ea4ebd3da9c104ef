"""A world of two cues, small enough to be computed exactly: why a client takes the shortcut (FuseFL, sections 3 and 7).

    Y uniform over C classes;   V, the real cue, and R, the spurious one, independent given Y;   X = (V, R)
    V = Y with probability s, else uniform: in every client alike
    R = Y with probability rho, else uniform: in one client. Every client has its own assignment of R to the classes,
    so that over all clients R and Y are independent.

Lemma 3.1 in the form that needs no sufficient H: I(H; R) <= I(H; X) - I(H; Y) wherever Y and R are independent. Inside
the client they are not, and H = R breaks it by exactly I(R; Y).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...errors import number
from .probes import mutual_information

CUES = ("real", "shortcut")


def two_cues(classes: int, real: float, spurious: float) -> dict[str, dict[str, float]]:
    """For H = V ("real") and H = R ("shortcut"): bits I(H;Y) "label", I(H;X) "image" and I(H;R) "nuisance".

    `real` s and `spurious` rho, 0-1. With spurious=0 these are the values over all clients.
    """
    classes = number("classes", classes, 2, 100, integer=True)
    real, spurious = number("real", real, 0, 1), number("spurious", spurious, 0, 1)
    v_y, r_y = agreeing(classes, real), agreeing(classes, spurious)  # joint tables [cue, label]
    v_r = classes * v_y @ r_y.T  # sum over y of p(y) p(v|y) p(r|y)
    image = math.log2(classes)  # H is a part of X and uniform, so I(H; X) is its entropy
    return {
        "real": {"label": bits(v_y), "image": image, "nuisance": bits(v_r)},
        "shortcut": {"label": bits(r_y), "image": image, "nuisance": image},
    }


def agreeing(classes: int, strength: float) -> Tensor:
    """Joint probabilities `[C, C]` of a cue and a uniform label: alike with probability `strength`, else by chance."""
    same = torch.eye(classes, dtype=torch.float64) / classes
    return strength * same + (1 - strength) / classes**2


def bits(joint: Tensor) -> float:
    """Mutual information of a table in bits; rounding below zero is zero."""
    return max(0.0, float(mutual_information(joint)) / math.log(2))
