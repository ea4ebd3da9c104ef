"""A finished run's server, ready to do its part again from what the clients had measured; and what the pictures of it
share.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from ...data import load
from ...errors import RunError
from ...methods.fedlpa.server import LIMIT, FedLPAReport, ServerReplay

Samples = tuple[torch.Tensor, torch.Tensor]
LARGE = 400_000  # bytes that one client measured; beyond that fewer λ_damp, draws and test images are tried
HALVES = [10 ** (e / 2) for e in range(-12, 5)]  # λ_damp from 1e-6 to 100
DECADES = HALVES[::2]
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def posteriors_of(outcome: Any) -> list:
    """What the clients of a run had measured; RunError where it was too large to stay with the model."""
    if not outcome.model.posteriors:
        most = f"more than {LIMIT // 10**6} MB in all"
        raise RunError(f"The factors are too large to be stored ({most}); choose a smaller network or fewer clients.")
    return outcome.model.posteriors


def replay(outcome: Any, samples: Samples | None = None) -> tuple[ServerReplay, bool]:
    """The run's server, ready to do its part again, and whether its networks are large. `samples`: on which accuracies
    are reported; default: the test images."""
    one = posteriors_of(outcome)[0]
    large = one.size > LARGE
    dataset, like = load(outcome.settings.dataset), next(iter(one.state.values()))
    rows = slice(0, 1000 if large else None)
    x, y = samples or (dataset.x_test, dataset.y_test)
    x, y = x[rows].to(like.device, like.dtype), y[rows].to(like.device)
    return ServerReplay(outcome.model, x, y, outcome.options["weights"]), large


def layer_names(report: FedLPAReport) -> list[str]:
    return [f"layer {i + 1}" for i in range(len(report.layers))]


def labelled(dampings: Sequence[float]) -> list[tuple[str, float]]:
    """Choices of λ_damp for a menu."""
    return [(f"{value:.1g}", value) for value in dampings]


def nearest(dampings: Sequence[float], damping: float) -> float:
    return min(dampings, key=lambda value: abs(math.log(value / damping)))


def ten(value: float) -> str:
    """A power of ten, such as 10⁻³."""
    return "10" + str(round(math.log10(value))).translate(SUPERSCRIPT)


def power(value: float) -> str:
    """A positive number in at most two digits: 16, 0.25, 8.6·10⁻⁶, 10⁻³."""
    if 0.01 <= value < 1000:
        return f"{value:.2g}" if value < 100 else f"{value:.0f}"
    digits, exponent = f"{value:.1e}".split("e")
    return ten(value) if digits == "1.0" else f"{digits}·{ten(10.0 ** int(exponent))}"
