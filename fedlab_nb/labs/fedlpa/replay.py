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
WidgetTraits = dict[str, Any]  # arguments of a widget
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def get_stored_posteriors(fedlpa_outcome: Outcome) -> list[LocalPosterior]:
    """Return what the clients of a run had measured. Raises RunError if it was too large to store."""
    if not fedlpa_outcome.model.posteriors:
        raise RunError(
            f"The factors are too large to be stored (more than {LIMIT // 10**6} MB in all); "
            "choose a smaller network or fewer clients."
        )
    return fedlpa_outcome.model.posteriors


def make_server_replay(
    fedlpa_outcome: Outcome, evaluation_samples: SamplesAndLabels | None = None
) -> ServerReplay:
    """Make the run's server, ready to do its part again.

    evaluation_samples: x and y on which accuracies are reported; the default is the test images
    """
    posterior = get_stored_posteriors(fedlpa_outcome)[0]
    if evaluation_samples is None:
        dataset = load(fedlpa_outcome.settings.dataset)
        evaluation_samples = (dataset.x_test, dataset.y_test)
    x, y = evaluation_samples
    if posterior.byte_count > LARGE_POSTERIOR:
        x = x[:FEW_IMAGES]
        y = y[:FEW_IMAGES]
    weight = next(iter(posterior.state.values()))
    x = x.to(weight.device, weight.dtype)
    y = y.to(weight.device)
    return ServerReplay(fedlpa_outcome.model, x, y, fedlpa_outcome.options["weights"])


def find_nearest_offered_damping(damping: float) -> float:
    """Find the value of DAMPINGS that is nearest to `damping` on a logarithmic scale."""
    return min(DAMPINGS, key=lambda value: abs(math.log(value / damping)))


def make_options_and_value_of_damping_menu(preferred_damping: float = 1e-3) -> WidgetTraits:
    """Make the options and the value of a control that offers DAMPINGS."""
    options = [(f"{value:.1g}", value) for value in DAMPINGS]
    return {"options": options, "value": find_nearest_offered_damping(preferred_damping)}


def format_power_of_ten(power_of_ten: float) -> str:
    """Format a power of ten: 0.001 becomes 10⁻³."""
    return "10" + str(round(math.log10(power_of_ten))).translate(SUPERSCRIPT)


def format_positive_number_briefly(positive_value: float) -> str:
    """Format a positive number briefly: 16, 0.25, 120, 8.6·10⁻⁶, 10⁻³."""
    if 0.01 <= positive_value < 100:
        return f"{positive_value:.2g}"
    if 100 <= positive_value < 1000:
        return f"{positive_value:.0f}"
    digits, exponent = f"{positive_value:.1e}".split("e")
    power = format_power_of_ten(10.0 ** int(exponent))
    return power if digits == "1.0" else f"{digits}·{power}"
