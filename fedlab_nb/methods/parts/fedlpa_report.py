"""What a run of FedLPA leaves to look at: residuals, damping beside what it is added to, what the upload reveals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .evidence import Evidence
from .label_leak import label_leak
from .posterior import Posterior, Round


@dataclass(frozen=True)
class ClientNote:
    """Of one client, not sent: by layer, mean diagonal of the undamped B and the damping on it; n by class."""

    b_diagonal: list[float]
    b_damping: list[float]
    counts: Tensor

    @classmethod
    def of(cls, evidence: Evidence, pi: str, damping: float, counts: Tensor) -> ClientNote:
        diagonals = [f.b.diagonal().mean().item() for f in evidence.factors.values()]
        return cls(diagonals, [damping**0.5 / ratio for ratio in evidence.ratios(pi)], counts.cpu())


def artefacts(
    systems: Mapping[str, Posterior], end: Round, notes: Sequence[ClientNote], biased: bool
) -> dict[str, np.ndarray]:
    """Arrays for the lesson; the layers of a column are in `numbers["layers"]`.

    `residual.<layer>` [steps]: relative residual of each iterate. `b_diagonal` [K, layers]: mean diagonal of the
    undamped B, beside `b_damping` [K, layers], what was added to it: where it is the larger, damping has taken over.
    `input_column` [K, i], if the first layer has a bias (`biased`): last column of its A without the corner, which is
    the client's mean input (of a convolution: its mean patch). `output_diagonal` [K, C]: diagonal of the last layer's
    B, as sent. `train_counts` [K, C]: samples by class that the clients trained on.
    """
    first, last = (list(systems.values())[at] for at in (0, -1))
    arrays = {f"residual.{name}": torch.stack(curve).cpu().numpy() for name, curve in end.curves.items()}
    arrays["b_diagonal"] = np.array([note.b_diagonal for note in notes])
    arrays["b_damping"] = np.array([note.b_damping for note in notes])
    if biased:
        arrays["input_column"] = first.a[:, :-1, -1].cpu().numpy()
    arrays["train_counts"] = torch.stack([note.counts for note in notes]).numpy()
    arrays["output_diagonal"] = last.b.diagonal(dim1=1, dim2=2).cpu().numpy()
    return arrays


def numbers(systems: Mapping[str, Posterior], end: Round, notes: Sequence[ClientNote]) -> dict[str, Any]:
    """`layers`, their `iterations` and last `residual`; `label_leak`: what the last B gives away (see there)."""
    last = list(systems.values())[-1]
    return {
        "layers": list(end.curves),
        "iterations": {name: len(curve) - 1 for name, curve in end.curves.items()},
        "residual": {name: curve[-1].item() for name, curve in end.curves.items()},
        "label_leak": label_leak(last.b.diagonal(dim1=1, dim2=2).cpu(), torch.stack([note.counts for note in notes])),
    }
