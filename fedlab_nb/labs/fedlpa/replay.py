"""Replays the server's part of a finished run from what its clients had measured. Also numbers and
menus that several views of FedLPA's lab share.
"""

import math
from typing import Any

import torch

from ...data import load
from ...errors import RunError
from ...methods.fedlpa.client import LocalPosterior
from ...methods.fedlpa.server import LIMIT, ServerReplay
from ...studies import Outcome

SamplesAndLabels = tuple[torch.Tensor, torch.Tensor]
LARGE_POSTERIOR = 400_000  # bytes of one client; above this only FEW_IMAGES are used
FEW_IMAGES = 1000
DAMPINGS = [10.0**exponent for exponent in range(-6, 3)]  # the values of λ_damp on offer
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def get_posteriors(outcome: Outcome) -> list[LocalPosterior]:
    """Return what the clients of a run had measured. Raises RunError if it was too large to store."""
    if not outcome.model.posteriors:
        raise RunError(
            f"The factors are too large to be stored (more than {LIMIT // 10**6} MB in all); "
            "choose a smaller network or fewer clients."
        )
    return outcome.model.posteriors


def make_server_replay(outcome: Outcome, samples: SamplesAndLabels | None = None) -> ServerReplay:
    """Make the run's server, ready to do its part again.

    samples: x and y on which accuracies are reported; the default is the test images
    """
    posterior = get_posteriors(outcome)[0]
    if samples is None:
        dataset = load(outcome.settings.dataset)
        samples = (dataset.x_test, dataset.y_test)
    x, y = samples
    if posterior.byte_count > LARGE_POSTERIOR:
        x = x[:FEW_IMAGES]
        y = y[:FEW_IMAGES]
    weight = next(iter(posterior.state.values()))
    x = x.to(weight.device, weight.dtype)
    y = y.to(weight.device)
    return ServerReplay(outcome.model, x, y, outcome.options["weights"])


def find_nearest_offered_damping(damping: float) -> float:
    """Find the value of DAMPINGS that is nearest to `damping` on a logarithmic scale."""
    return min(DAMPINGS, key=lambda value: abs(math.log(value / damping)))


def make_damping_control_traits(damping: float = 1e-3) -> dict[str, Any]:
    """Make the options and the value of a control that offers DAMPINGS."""
    options = [(f"{value:.1g}", value) for value in DAMPINGS]
    return {"options": options, "value": find_nearest_offered_damping(damping)}


def format_power_of_ten(value: float) -> str:
    """Format a power of ten, such as 10⁻³."""
    return "10" + str(round(math.log10(value))).translate(SUPERSCRIPT)


def format_small_number(value: float) -> str:
    """Format a positive number briefly: 16, 0.25, 120, 8.6·10⁻⁶, 10⁻³."""
    if 0.01 <= value < 100:
        return f"{value:.2g}"
    if 100 <= value < 1000:
        return f"{value:.0f}"
    digits, exponent = f"{value:.1e}".split("e")
    power = format_power_of_ten(10.0 ** int(exponent))
    return power if digits == "1.0" else f"{digits}·{power}"
