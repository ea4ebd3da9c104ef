"""FedLPA's lab: the evidence that a run kept, its server once more, and the words for both."""

from __future__ import annotations

from typing import Any

from ...draw.words import setting_of
from ...errors import RunError

LARGE = 400_000  # bytes of one client's evidence; beyond that fewer λ, draws and test images are tried


def evidence_of(outcome: Any) -> list:
    """What the clients of a run had measured; RunError where it was too large to keep."""
    from ...methods.parts.evidence import KEPT

    found = outcome.model.evidence
    if not found:
        raise RunError(
            f"The factors of these networks are too large to keep beside the run (more than {KEPT // 10**6} MB in "
            "all); choose a smaller network or fewer clients."
        )
    return found


def again(outcome: Any) -> tuple[Any, bool]:
    """The run's server, ready to do its part again, and whether its networks are large."""
    from ...data import load
    from ...methods.parts.again import Again

    evidence = evidence_of(outcome)
    large = evidence[0].size > LARGE
    dataset = load(outcome.setting["dataset"])
    tensor = next(iter(evidence[0].state.values()))
    rows = slice(0, 1000 if large else None)
    x, y = dataset.x_test[rows].to(tensor.device, tensor.dtype), dataset.y_test[rows].to(tensor.device)
    return Again(outcome.model, x, y, outcome.setting["options"]["weights"]), large


def where(outcome: Any) -> str:
    """The setting of one run in words."""
    return f"{setting_of(outcome.setting)}, seed {outcome.setting['seed']}"


def layer_names(outcome: Any) -> list[str]:
    return [f"layer {i + 1}" for i in range(len(outcome.extras["layers"]))]
