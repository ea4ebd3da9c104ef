"""fedlab_nb: one-shot federated learning, learnt by doing.

>>> import fedlab_nb as fl
>>> out = fl.run("fens", dataset="digits", alpha=0.1, clients=10, seed=0)          # doctest: +SKIP
>>> outs = fl.compare(["fedavg", "ensemble", "fens", "fedlpa"], alpha=0.05)        # doctest: +SKIP
>>> fl.playground()                                                                # doctest: +SKIP

Names are imported when they are first used, so that `import fedlab_nb` costs little.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_ROOMS = {
    "studies": (
        "study",
        "run",
        "compare",
        "job",
        "sweep",
        "Study",
        "Results",
        "Outcome",
        "Outcomes",
    ),
    "studies.saved": ("load_model",),
    "studies.late": ("late",),
    "papers": ("reproduce", "paper_tables"),
    "papers.overview": ("plan",),
    "papers.which": ("which",),
    "plots.journey": ("journey",),
    "papers.pictures": ("plot_orderings", "plot_claims"),
    "plots.study": ("plot_study",),
    "data": ("federate", "load", "add_dataset"),
    "methods": ("METHODS",),
    "models": ("add_model",),
    "panels": ("playground", "comparison", "race"),
    "labs": ("lab",),
    "course.kit.notation": ("notation",),
    "errors": ("FedlabError", "UsageError", "RunError"),
}
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
