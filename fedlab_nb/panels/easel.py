"""What a panel draws, and when: the visible view if it is out of date, slow pictures in the background.

A view that is not looked at waits. Before the first run the stored results speak; a lab's own views are drawn from a
`Look`, after their slow work was done in the worker.
"""

from __future__ import annotations

import time
from typing import Any

from ..study.stored import load
from .scene import caption
from .stored import StoredResults

WHAT_TO_DO = "Drag α or the clients, then press Run: the clients are trained and the ticked methods compared."
RESULTS = ("accuracy", "communication", "features", "classes")
REDRAW = 0.15  # seconds between two drawings while a job runs, at least; and drawing takes at most a third of the time


class Easel:
    """Belongs to one panel. `mark(*names)`: these views are out of date; `draw()`: draw the visible one if it is."""

    def __init__(self, panel: Any, worker: Any, scene: Any) -> None:
        self._panel, self._worker, self._scene = panel, worker, scene
        self._stored = StoredResults()
        self.results = (*panel.own.views, *RESULTS)
        self.show_stored = True
        self.adapting = ""  # the view that fits its own controls just now, so that nobody redraws for it
        self._dirty: set[str] = set(self.results)
        self._drawn, self._cost = 0.0, 0.0

    def mark(self, *names: str) -> None:
        """These views are out of date."""
        self._dirty |= set(names)

    @property
    def rested(self) -> bool:
        """Whether enough time has passed since the last drawing for another one while a job runs."""
        return time.monotonic() - self._drawn > max(REDRAW, 2 * self._cost)

    @property
    def caption(self) -> str:
        return caption(self._panel.record, self._panel.ground.settings())

    @property
    def has_results(self) -> bool:
        return any(row.outcomes for row in self._panel.record.current)

    @property
    def tells_stored(self) -> bool:
        """Until the first run of a panel, and where a teacher does not hide it, the stored table speaks."""
        panel = self._panel
        return self.show_stored and not panel.record.run and panel.ground.federation is not None

    def draw(self) -> None:
        """Draw the visible view if it is out of date; the others wait until they are looked at."""
        name = self._panel.views.visible
        if name == "partition" and self._panel.ground.federation is None:
            return
        if name in self._dirty:
            start = time.monotonic()
            self._dirty.discard(name)
            self.paint(name)
            self._panel.views.show_table()
            self._drawn = time.monotonic()
            self._cost = self._drawn - start
        if name == "features":
            self._map_features()

    def paint(self, name: str) -> None:
        """Draw one view, or say what to do so that there will be a picture."""
        panel = self._panel
        view, client, klass = panel.views[name], panel.views.chosen, panel.views.chosen_class
        if name in panel.own.views:
            self._paint_own(name)
        elif name == "partition":
            view.show(*self._partition(client, klass))
        elif self.has_results or any(row.live for row in panel.record.current):
            view.show(self._scene.result(name, panel.record, client, klass), self.caption)
        elif panel.status == "running":
            view.say("Training …", self.caption)
        elif name == "accuracy" and (stored := self._stored_picture()) is not None:
            view.show(stored, "Nothing was run here yet: these are stored results. Press Run for yours.")
        else:
            view.say(WHAT_TO_DO, self.caption)

    def _partition(self, client: int | None, klass: int | None) -> tuple[Any, str]:
        ground = self._panel.ground
        beside = self._stored.bars(self._told(), ground.settings()) if self.tells_stored else None
        title = f"{ground.words()}. Smaller α is more skewed."
        return ground.picture(client, klass, beside), title + (f" At the right {load().label}." if beside else "")

    def _stored_picture(self) -> Any:
        return self._stored.show("both", self._told(), self._panel.ground.settings()) if self.tells_stored else None

    def _told(self) -> list[str]:
        """The methods that the table may tell of: not the one that somebody is guessing."""
        guess = self._panel.controls.guess.committed
        return [name for name in self._panel.methods if guess is None or name != guess[0]]

    def _paint_own(self, name: str) -> None:
        panel = self._panel
        own, look, view = panel.own.views[name], panel.own.look(name), panel.views[name]
        if not panel.own.is_ready(name, look):
            view.say("Running …" if panel.status == "running" else own.empty, self.caption)
        elif panel.own.lacks(name, look):
            view.say("Computing …", self.caption)
            self.mark(name)
            self._prepare(name)
        else:
            self.adapting = name
            try:
                own.adapt(look)
            finally:
                self.adapting = ""
            view.show(own.draw(look), self.caption)

    def _prepare(self, name: str) -> None:
        """Do a view's slow work in the background, once nothing else runs."""
        panel = self._panel
        if self._worker.busy or panel.status == "running":
            return
        panel.add_class("fl-mapping")

        def ended(how: str, error: Exception | None) -> None:
            panel.remove_class("fl-mapping")
            if error is not None:
                self._dirty.discard(name)
                panel.views[name].say("This picture could not be made.", self.caption)
                panel.tell_error(error)
            elif how == "done":
                panel.redraw()

        self._worker.start(lambda: panel.own.preparing(name), lambda event: None, ended)

    def _map_features(self) -> None:
        """Replace the PCA preview by t-SNE in the background, once nothing else runs."""
        panel = self._panel
        if self._worker.busy or not self.has_results:
            return
        missing = self._scene.missing(panel.record)
        if not missing:
            return
        panel.add_class("fl-mapping")

        def ended(how: str, error: Exception | None) -> None:
            panel.remove_class("fl-mapping")
            if error is not None:
                panel.tell_error(error)
            else:
                self.mark("features")
                if panel.views.visible == "features":
                    panel.redraw()

        self._worker.start(lambda: self._scene.embed(missing), lambda event: None, ended)
