"""What a lab is made of: `LabSpec` says which method, knobs and views; a `LabView` is one of its pictures; a `Look` is
what that picture is drawn from.

    class Trust(LabView):
        name, title, ready = "trust", "Who is trusted", "run"
        def draw(self, look):
            return draw_trust(look.outcome.artefacts["weights"], client=look.client, setting=look.setting)
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import ipywidgets as widgets
import numpy as np

from ..draw import Picture

READY = ("always", "data", "live", "run")


@dataclass
class Look:
    """The state that a view is drawn from.

    outcome:  of the lab's method in the present run, for the first seed that is done; None before
    outcomes: {seed: Outcome} of it;   others: {method: {seed: Outcome}} of the methods beside it
    client, klass: what is looked at, None for nothing in particular; every view marks them
    live:     small arrays of the running method (`GlobalModel.live`);   metrics: dicts(phase, done, …) so far
    prepared, worked: what the view's own `prepare` and `work` returned; None before
    setting:  in words;   number: of the run;   methods: that Run would run
    """

    federation: Any
    settings: Mapping[str, Any]
    knobs: Mapping[str, Any]
    setting: str
    class_names: Sequence[str]
    record: Any = None
    number: int = 0
    methods: Sequence[str] = ()
    outcome: Any = None
    outcomes: Mapping[int, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)
    client: int | None = None
    klass: int | None = None
    live: Mapping[str, np.ndarray] = field(default_factory=dict)
    metrics: Sequence[Mapping[str, Any]] = ()
    prepared: Any = None
    worked: Any = None


class LabView:
    """One picture under its own tab. Subclasses set the names below and give `draw`.

    name:   CSS class `fl-view-NAME`;   title: of the tab
    ready:  "always" (the knobs suffice), "data" (a federation), "live" (also while the method runs), "run"
    empty:  what to do so that there will be a picture;   work_label: of the button that starts `work`
    controls: widgets above the picture; each change redraws it at once
    """

    name: ClassVar[str]
    title: ClassVar[str]
    ready: ClassVar[str] = "run"
    empty: ClassVar[str] = "Press Run: this picture is made from the result."
    work_label: ClassVar[str] = ""

    def __init__(self) -> None:
        self.controls: list[widgets.Widget] = []

    def adapt(self, look: Look) -> None:
        """Fit the view's own controls to `look` before it is drawn."""

    def prepare(self, look: Look) -> Any:
        """Slow work on an outcome, done once in the worker; a generator lets Stop act. None: there is none."""

    def work(self, look: Look) -> Generator[tuple[int, int, str], None, Any]:
        """What the view's button does: yields (done, total, words), returns what `draw` finds in `look.worked`."""
        raise NotImplementedError
        yield

    def draw(self, look: Look) -> Picture:
        raise NotImplementedError

    @property
    def prepares(self) -> bool:
        return type(self).prepare is not LabView.prepare


@dataclass(frozen=True)
class Extra:
    """A setting of the whole run as a dropdown: `options` are (words, value) pairs, the first one the default."""

    name: str
    label: str
    options: tuple[tuple[str, Any], ...]
    help: str


@dataclass(frozen=True)
class LabSpec:
    """A panel's contents.

    method:     whose knobs are shown; empty for a panel of many methods
    companions: methods that run beside it, ticked at the start;   knobs: shown at once, the rest under "More settings"
    first:      the view that is seen first;   settings: starting values;   last: own views stand after the common ones
    """

    method: str = ""
    companions: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    extras: tuple[Extra, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[type[LabView], ...] = ()
    first: str = "partition"
    name: str = "playground"
    last: bool = False
