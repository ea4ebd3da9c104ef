"""A finished run's server, ready to do its part again from what the clients had measured; and what the pictures of it
share.
"""

import math
from typing import Any

import torch

from ...data import load
from ...errors import RunError
from ...methods.fedlpa.server import LIMIT, ServerReplay

Samples = tuple[torch.Tensor, torch.Tensor]
LARGE = 400_000  # bytes that one client measured; beyond that fewer test images are looked at
DAMPINGS = [10.0**e for e in range(-6, 3)]  # λ_damp
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def posteriors_of(outcome: Any) -> list:
    """What the clients of a run had measured; RunError where it was too large to stay with the model."""
    if not outcome.model.posteriors:
        most = f"more than {LIMIT // 10**6} MB in all"
        raise RunError(
            f"The factors are too large to be stored ({most}); choose a smaller network or fewer clients."
        )
    return outcome.model.posteriors


def replay(outcome: Any, samples: Samples | None = None) -> ServerReplay:
    """The run's server, ready to do its part again. `samples`: on which accuracies are reported; default: the test
    images."""
    one = posteriors_of(outcome)[0]
    dataset, like = load(outcome.settings.dataset), next(iter(one.state.values()))
    rows = slice(0, 1000 if one.size > LARGE else None)
    x, y = samples or (dataset.x_test, dataset.y_test)
    x, y = x[rows].to(like.device, like.dtype), y[rows].to(like.device)
    return ServerReplay(outcome.model, x, y, outcome.options["weights"])


def offered(damping: float = 1e-3) -> dict[str, Any]:
    """Options of a menu of DAMPINGS, and its value: the one that is nearest to `damping`."""
    value = min(DAMPINGS, key=lambda each: abs(math.log(each / damping)))
    return {"options": [(f"{each:.1g}", each) for each in DAMPINGS], "value": value}


def ten(value: float) -> str:
    """A power of ten, such as 10⁻³."""
    return "10" + str(round(math.log10(value))).translate(SUPERSCRIPT)


def power(value: float) -> str:
    """A positive number in at most two digits: 16, 0.25, 8.6·10⁻⁶, 10⁻³."""
    if 0.01 <= value < 1000:
        return f"{value:.2g}" if value < 100 else f"{value:.0f}"
    digits, exponent = f"{value:.1e}".split("e")
    return ten(value) if digits == "1.0" else f"{digits}·{ten(10.0 ** int(exponent))}"
