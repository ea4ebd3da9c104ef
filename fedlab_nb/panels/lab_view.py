"""What a panel is made of: `LabSpec` says which method, knobs and views; a `LabView` is one of its pictures, drawn from
a `PanelState`.

    class Trust(LabView):
        name, title, ready = "trust", "Who is trusted", "run"
        def draw(self, state):
            return draw_trust(state.report.weights, client=state.client, setting=state.setting)
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import ipywidgets as widgets

from ..plots import Picture
from .state import PanelState, caption

READY = ("always", "data", "live", "run")


class LabView:
    """One picture under its own tab. Subclasses set the names below and give `draw`.

    name:   CSS class `fl-view-NAME`;   title: of the tab
    ready:  "always" (the knobs suffice), "data" (a federation), "live" (also while the method runs), "run"
    empty:  what to do so that there will be a picture;   waiting: the same while a job runs (empty: the old one stays)
    preview: whether there is a picture before `prepare` is done;   work_label: of the button that starts `work`
    controls: widgets above the picture; each change redraws it at once
    """

    name: ClassVar[str]
    title: ClassVar[str]
    ready: ClassVar[str] = "run"
    empty: ClassVar[str] = "Press Run: this picture is made from the result."
    waiting: ClassVar[str] = "Running …"
    preview: ClassVar[bool] = False
    work_label: ClassVar[str] = ""
    controls: Sequence[widgets.Widget] = ()

    def adapt(self, state: PanelState) -> None:
        """Fit the view's own controls to `state` before it is drawn."""

    def prepare(self, state: PanelState) -> Any:
        """Slow work on an outcome, done once in the worker; a generator lets Stop act. None: there is none."""

    def work(self, state: PanelState) -> Generator[tuple[int, int, str], None, Any]:
        """What the view's button does: yields (done, total, words), returns what `draw` finds in `state.worked`."""
        raise NotImplementedError
        yield

    def draw(self, state: PanelState) -> Picture:
        raise NotImplementedError

    def caption(self, state: PanelState) -> str:
        """The line over the picture."""
        return caption(state)

    def is_ready(self, state: PanelState) -> bool:
        """Whether there is what the view is drawn from."""
        if self.ready == "always":
            return True
        if state.federation is None:
            return False
        result = state.outcome is not None if state.method else state.runs.has_results
        running = self.ready == "live" and state.report is not None
        return self.ready == "data" or result or running

    def lacks(self, state: PanelState) -> bool:
        """Whether the view's slow work is still to be done; what is live is drawn without it."""
        if type(self).prepare is LabView.prepare or (self.ready == "live" and state.outcome is None):
            return False
        return self.name not in state.own or state.own[self.name].anchor is not state.anchor


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
    first:      the view that is seen first;   ran: the one that Run turns to, if no own view is drawn while it runs
    settings:   starting values;   last: own views stand after the common ones
    """

    method: str = ""
    companions: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    extras: tuple[Extra, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[type[LabView], ...] = ()
    first: str = "partition"
    ran: str = "accuracy"
    name: str = "playground"
    last: bool = False
