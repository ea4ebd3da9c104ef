"""What a panel draws, and when: a view whose part of the state has changed is out of date, and is drawn when it is
looked at; slow pictures are prepared in the background.
"""

import inspect
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import Any

from ..plots import Picture
from ..plots.style import UnwantedError, sized, wanted
from .ahead import Ahead
from .figures import COMMON
from .lab_view import ELSEWHERE
from .state import PanelState
from .views import View, Views
from .worker import Worker

REDRAW = 0.15  # seconds between two drawings while a job runs, at least; and drawing takes at most a third of the time
BEFORE = 1.0  # seconds that slow work waits for views to be drawn ahead

EARLIER = "Run {run} has no result yet. This is the picture from before it."

# Which parts of the state each view is drawn from. What a view has of its own (`OwnState`) it always depends on.
LAB = ("settings", "knobs", "methods", "federation", "runs", "report", "metrics", "client", "klass", "frame")
DEPENDS = {
    "partition": ("federation", "stored", "client", "klass", "frame"),
    "accuracy": ("runs", "stored", "frame"),
    "communication": ("runs", "client", "frame"),
    "features": ("runs", "client", "klass", "frame"),
    "classes": ("runs", "client", "klass", "frame"),
}


class Redraw:
    """`update(state)`: views that depend on what changed are out of date; `draw()`: draw the visible one if it is.

    prepared(view, anchor, result): a view's slow work is done;   failed(error): it could not be;   mapping(on): shown
    while it goes on
    """

    def __init__(
        self, views: Views, worker: Worker, *, prepared: Callable, failed: Callable, mapping: Callable
    ) -> None:
        self._views, self._worker = views, worker
        self._prepared, self._failed, self._mapping = prepared, failed, mapping
        self.state = PanelState()
        self.adapting = False  # a view fits its own controls just now, so that nobody redraws for it
        self._dirty = set(views.views)
        self._drawn, self._cost = 0.0, 0.0
        self._ahead = Ahead(views, worker.lock, self._dirty, self._unseen)

    def update(self, state: PanelState) -> None:
        """Go over to a state; nothing is drawn yet."""
        old, self.state = self.state, state
        changes = state.changes(old)
        for name in self._views.views:
            if changes & set(DEPENDS.get(name, LAB)) or state.own.get(name) is not old.own.get(name):
                self._dirty.add(name)

    @property
    def rested(self) -> bool:
        """Whether enough time has passed since the last drawing for another one while a job runs."""
        return time.monotonic() - self._drawn > max(REDRAW, 2 * self._cost)

    def draw(self) -> None:
        """Draw the visible view if it is out of date; the others wait until they are looked at."""
        for name in self._views.views.keys() - self._dirty:
            self._views[name].describe(self._views[name].kind.caption(self.state))
        name = self.state.view
        self._ahead.take(name)
        if name in self._dirty:
            start, late = time.monotonic(), self._worker.stopping  # what is chosen after Stop is wanted
            self._dirty.discard(name)
            try:
                with wanted(lambda: late or not self._worker.stopping):
                    self._paint(self._views[name])
            except UnwantedError:
                self._dirty.add(name)
            self._views.show_table()
            self._drawn = time.monotonic()
            self._cost = self._drawn - start
        with sized(self._views.inches):
            self._views[name].rest()

    def _paint(self, view: View) -> None:
        """Draw one view, or say what to do so that there will be a picture."""
        kind, state = view.kind, self.state.of(view.kind.name)
        if not kind.is_ready(state):
            self._dirty.add(kind.name)
            if state.running and view.picture is not None and state.federation is not None:
                view.describe(EARLIER.format(run=state.number))
            elif words := kind.waiting if state.running else kind.empty:
                view.say(words, kind.caption(state))
            return
        lacks = kind.lacks(state)
        if lacks and not kind.preview:
            view.say("Computing …", kind.caption(state))
        else:
            self._adapt(view, state)
            with sized(self._views.inches):
                view.show(kind.draw(state), kind.caption(state))
        if lacks:
            self._dirty.add(kind.name)
            self._prepare(view, state)

    def _adapt(self, view: View, state: PanelState) -> None:
        self.adapting = True
        try:
            view.kind.adapt(state)
        finally:
            self.adapting = False

    def _unseen(self, name: str) -> PanelState | None:
        """The state of a view that nobody looks at and that can be drawn at once, but is out of date. None where the
        work is inline: there nobody can look at anything else meanwhile.
        """
        view, state = self._views[name], self.state.of(name)
        unseen = name in self._dirty and name != self.state.view and not self._worker.inline
        if not unseen or not view.kind.is_ready(state) or view.kind.lacks(state):
            return None
        self._adapt(view, state)
        return state

    def _prepare(self, view: View, state: PanelState) -> None:
        """Do a view's slow work in the background, once nothing else runs."""
        if self._worker.busy or state.running:
            return
        results: list[Any] = []

        def steps() -> Generator[bool | None, None, None]:
            if view.kind.preview:  # there is something to look at, and a drawing takes longer beside the slow work
                yield from self._ahead.draw(BEFORE)
            yield True
            made = view.kind.prepare(state)
            results.append((yield from self._beside(made)) if inspect.isgenerator(made) else made)
            yield

        def ended(how: str, error: Exception | None) -> None:
            self._mapping(False)
            if error is not None:
                self._dirty.discard(view.kind.name)
                if not view.kind.preview:
                    view.say("This picture could not be made.", view.kind.caption(state))
                self._failed(error)
            elif how == "done":
                self._prepared(view.kind.name, state.anchor, results[0])

        self._worker.start(steps, lambda begins: begins and self._mapping(True), ended)

    def _beside(self, made: Generator[Any, None, Any]) -> Generator[None, None, Any]:
        """Go on with a view's slow work; while another process does it (the work yields ELSEWHERE), draw ahead."""
        with closing(made):
            while True:
                try:
                    step = next(made)
                except StopIteration as end:
                    return end.value
                if step is ELSEWHERE:
                    yield from self._ahead.draw()
                yield

    def pictures(self) -> dict[str, Picture]:
        """Every picture that there is, drawn anew but for a lab's own; the t-SNE maps that are missing are made."""
        pictures = {}
        for name, view in self._views.views.items():
            state = replace(self.state.of(name), stored=None)
            if type(view.kind) not in COMMON:
                pictures[name] = view.picture
            elif name == "partition" or state.runs.has_results:
                if view.kind.lacks(state):
                    list(view.kind.prepare(state))
                pictures[name] = view.kind.draw(state)
        return {name: picture for name, picture in pictures.items() if picture is not None}
