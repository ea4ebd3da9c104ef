"""A world of two cues, small enough to be computed exactly: why a client takes the shortcut (FuseFL, sections 3 and 7).

    Y uniform over C classes;   V, the real cue, and R, the spurious one, independent given Y;   X = (V, R)
    V = Y with probability s, else uniform: in every client alike
    R = Y with probability rho, else uniform: in one client. Every client has its own assignment of R to the classes,
    so that over all clients R and Y are independent. That is a premise: clients that share one assignment break it.

Lemma 3.1 in the form that needs no sufficient H: I(H; R) <= I(H; X) - I(H; Y) wherever Y and R are independent. Inside
the client they are not, and H = R breaks it by exactly I(R; Y). The paper has no theorem about FuseFL itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import number, whole


@dataclass(frozen=True)
class Bits:
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
