"""Widget panels: thin wiring between `study`, which computes, and `draw`, which makes the pictures.

panel = fl.playground(alpha=0.1, methods=["fedavg", "fens"])     # shows itself as the last line of a cell
panel.run(wait=True); panel.outcomes; panel.code(); panel.export("results/mine"); panel.close()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .playground import DEFAULT_METHODS, Playground
from .saved import stop_earlier

__all__ = ["Playground", "playground"]

CONTROLS = ("dataset", "alpha", "clients", "seed", "seeds", "epochs", "device")


def playground(
    *,
    methods: Iterable[str] = DEFAULT_METHODS,
    hide: Iterable[str] = (),
    fixed: Mapping[str, Any] | None = None,
    inline: bool | None = None,
    job: Callable[..., Any] | None = None,
    **settings: Any,
) -> Playground:
    """The playground panel.

    methods:  ticked at the start;   settings: starting values of the controls (dataset, alpha, clients, seed, seeds,
    epochs, device), and any other setting of `study.run` (partition, model, lr, fens.rounds, …), which then holds for
    every run
    hide, fixed: teacher mode; controls to leave out, and values that cannot be changed
    inline:   work in the calling thread, for notebooks that do not show what threads do (Colab, found out by itself);
    Stop
              cannot act then
    job:      another source of events than `study.job`

    Raises UsageError for a name or value that no control takes.
    """
    if job is None:
        from ..study import job
    chosen = {name: settings.pop(name) for name in CONTROLS if name in settings}
    panel = Playground(
        inline="google.colab" in sys.modules if inline is None else inline,
        job=job, hide=hide, fixed=dict(fixed or {}), methods=methods, chosen=chosen, extra=settings,
    )  # fmt: skip
    stop_earlier(panel)
    return panel
