"""Widget panels: thin wiring between `study`, which computes, and `draw`, which makes the pictures.

panel = fl.playground(alpha=0.1, methods=["fedavg", "fens"])     # shows itself as the last line of a cell
panel = fl.lab("fens", rounds=100)                               # one method, with its own knobs and views
panel.run(wait=True); panel.outcomes; panel.code(); panel.export("results/mine"); panel.close()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import choose
from ..methods import METHODS
from . import comparing, racing
from .lab_view import Extra, LabSpec, LabView, Look
from .labs import spec_of
from .panel import DEFAULT_METHODS, Panel
from .saved import stop_earlier

__all__ = ["Extra", "LabSpec", "LabView", "Look", "Panel", "comparison", "lab", "playground", "race"]

CONTROLS = ("dataset", "alpha", "clients", "seed", "seeds", "epochs", "device")


def playground(
    *,
    methods: Iterable[str] = DEFAULT_METHODS,
    hide: Iterable[str] = (),
    fixed: Mapping[str, Any] | None = None,
    inline: bool | None = None,
    job: Callable[..., Any] | None = None,
    **settings: Any,
) -> Panel:
    """The playground panel.

    methods:  ticked at the start;   settings: starting values of the controls (dataset, alpha, clients, seed, seeds,
    epochs, device), and any other setting of `study.run` (partition, model, lr, fens.rounds, …), which then holds for
    every run
    hide, fixed: teacher mode; controls to leave out, and values that cannot be changed
    inline:   work in the calling thread, for notebooks that do not show what threads do (Colab, found out by itself);
    Stop cannot act then
    job:      another source of events than `study.job`

    Raises UsageError for a name or value that no control takes.
    """
    return build(LabSpec(), methods=methods, hide=hide, fixed=fixed, inline=inline, job=job, **settings)


def lab(
    method: str,
    *,
    methods: Iterable[str] | None = None,
    hide: Iterable[str] = (),
    fixed: Mapping[str, Any] | None = None,
    inline: bool | None = None,
    job: Callable[..., Any] | None = None,
    **settings: Any,
) -> Panel:
    """The panel of one method: its knobs as controls, its own views, and a few methods beside it.

    method:   any registered one;   methods: those beside it (default: the lab's own choice)
    settings: as for `playground`, and the method's knobs, plain (`rounds=100`) or qualified (`**{"fens.rounds": 100}`)
    hide, fixed, inline, job: as for `playground`; the names of knobs may be among them

    Raises UsageError for a name or value that no control takes.
    """
    spec = spec_of(choose("method", method, METHODS))
    beside = spec.companions if methods is None else methods
    settings = {**spec.settings, **settings}
    return build(spec, methods=beside, hide=hide, fixed=fixed, inline=inline, job=job, **settings)


def comparison(*, methods: Iterable[str] = comparing.METHODS_AT_START, **options: Any) -> Panel:
    """All methods on one federation: accuracy, bytes, features, classes, wall time, what each needs and leaks.

    Arguments and errors are those of `playground`.
    """
    return build(comparing.COMPARE, methods=methods, **{**comparing.COMPARE.settings, **options})


def race(*, methods: Iterable[str] = racing.METHODS_AT_START, **options: Any) -> Panel:
    """One-shot methods against multi-round ones as bytes are spent: run once, then play, step, slow.

    Arguments and errors are those of `playground`.
    """
    return build(racing.RACE, methods=methods, **{**racing.RACE.settings, **options})


def build(
    spec: LabSpec,
    *,
    methods: Iterable[str],
    hide: Iterable[str] = (),
    fixed: Mapping[str, Any] | None = None,
    inline: bool | None = None,
    job: Callable[..., Any] | None = None,
    **settings: Any,
) -> Panel:
    """A panel with the contents of `spec`; the other arguments are those of `playground`."""
    if job is None:
        from ..study import job
    knobs = {knob.name for knob in METHODS[spec.method].fields()} if spec.method else set()
    extras = {extra.name for extra in spec.extras}

    def has_control(name: str) -> bool:
        return name in CONTROLS or name in extras or name.removeprefix(f"{spec.method}.") in knobs

    chosen = {name: settings.pop(name) for name in list(settings) if has_control(name)}
    panel = Panel(
        inline="google.colab" in sys.modules if inline is None else inline, spec=spec,
        job=job, hide=hide, fixed=dict(fixed or {}), methods=methods, chosen=chosen, extra=settings,
    )  # fmt: skip
    stop_earlier(panel)
    return panel
