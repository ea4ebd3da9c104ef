"""What a learner may set in a capstone: a method's own knobs, local training, the network; how it is typed."""

from __future__ import annotations

from ...errors import UsageError
from ...methods import METHODS
from ...study.settings import RECIPE_FIELDS

FREE = ("model", "holdout", "init", "transform")  # settings of the run that a learner may choose


def knobs_of(text: str) -> dict[str, str]:
    """'rounds=20, lr=0.1' as {"rounds": "20", "lr": "0.1"}; UsageError for a part without a value."""
    made = {}
    for part in filter(None, map(str.strip, text.replace(";", ",").split(","))):
        name, equals, value = part.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise UsageError(
                f"{part!r} is not a setting; write NAME=VALUE, such as rounds=20, with commas between them."
            )
        made[name.strip()] = value.strip()
    return made


def explained(method: str) -> list[str]:
    """A line for each knob of a method, and one for what every method takes."""
    own = [f"{k.name} = {k.default}: {k.help}" for k in METHODS[method].fields()]
    return [
        *own,
        f"Of every method: {', '.join((*RECIPE_FIELDS, *FREE))}. For example model=mlp:32 is a smaller network.",
    ]
