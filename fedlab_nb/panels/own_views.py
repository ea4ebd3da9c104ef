"""A lab's own views at work: what they are drawn from, what they have prepared, what their buttons have found."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping
from typing import Any

import ipywidgets as widgets

from .lab_view import READY, LabView, Look
from .scene import words

KEPT = 40  # prepared results remembered


class OwnViews:
    """The `LabView`s of a panel by name. `look(view)` tells a view the state; `jobs` are generators for the worker."""

    def __init__(self, panel: Any) -> None:
        self._panel = panel
        self.views: dict[str, LabView] = {}
        for kind in panel.spec.views:
            view = kind()
            if view.ready not in READY or view.name in self.views:
                raise ValueError(f"The lab view {view.name!r} is named twice, or is ready when {view.ready!r}.")
            self.views[view.name] = view
        self.buttons: dict[str, widgets.Button] = {}
        self._prepared: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._worked: dict[str, Any] = {}
        self.live: Mapping[str, Any] = {}
        self.metrics: list[dict[str, Any]] = []

    def tools(self, name: str) -> list[widgets.Widget]:
        """A view's own controls, with the button of its `work`."""
        view = self.views[name]
        found = list(view.controls)
        if view.work_label:
            button = widgets.Button(description=view.work_label, tooltip=view.work.__doc__ or view.work_label)
            button.add_class("fl-work")
            button.layout.width = "auto"
            self.buttons[name] = button
            found.append(button)
        return found

    def begin(self) -> None:
        """A new run: nothing of it is live yet."""
        self.live, self.metrics = {}, []

    def hear(self, event: Any) -> None:
        """Keep what a running method shows."""
        if event.method != self._panel.spec.method:
            return
        if event.live:
            self.live = event.live
        if event.metrics:
            self.metrics.append({"phase": event.phase, "done": event.done, "seed": event.seed, **event.metrics})

    def look(self, name: str) -> Look:
        panel = self._panel
        record, ground = panel.record, panel.ground
        current = record.current
        mine = next((row for row in current if row.method == panel.spec.method), None) if panel.spec.method else None
        outcomes = {} if mine is None else dict(sorted(mine.outcomes.items()))
        outcome = next(iter(outcomes.values()), None)
        settings = ground.settings()
        look = Look(
            federation=ground.federation,
            settings=settings,
            knobs=panel.controls.knobs.value if panel.controls.knobs else {},
            setting=words(settings) if outcome is None else words(dict(mine.settings)),
            class_names=current[0].classes if current else ground.class_names,
            record=record,
            number=record.run,
            methods=panel.methods,
            outcome=outcome,
            outcomes=outcomes,
            others={row.method: dict(sorted(row.outcomes.items())) for row in current if row is not mine},
            client=panel.views.chosen,
            klass=panel.views.chosen_class,
            live=self.live,
            metrics=self.metrics,
            worked=self._worked.get(name),
        )
        kept = self._prepared.get(self._key(name, look))
        look.prepared = None if kept is None else kept[1]
        return look

    @staticmethod
    def _anchor(look: Look) -> Any:
        return look.outcome if look.outcome is not None else look.federation

    def _key(self, name: str, look: Look) -> tuple[str, int]:
        return name, id(self._anchor(look))

    def is_ready(self, name: str, look: Look) -> bool:
        """Whether there is what the view is drawn from."""
        ready = self.views[name].ready
        if ready == "always":
            return True
        if look.federation is None:
            return False
        has_result = any(row.outcomes for row in look.record.current) if not self._panel.spec.method else look.outcome
        return ready == "data" or bool(has_result) or (ready == "live" and bool(look.live))

    def lacks(self, name: str, look: Look) -> bool:
        """Whether the view's slow work is still to be done; what is live is drawn without it."""
        view = self.views[name]
        waits = view.ready != "live" or look.outcome is not None
        return view.prepares and waits and self._key(name, look) not in self._prepared

    def preparing(self, name: str) -> Generator[None, None, None]:
        """The view's slow work, as a job."""
        look = self.look(name)
        key, anchor = self._key(name, look), self._anchor(look)
        made = self.views[name].prepare(look)
        if inspect.isgenerator(made):
            made = yield from made
        self._prepared[key] = (anchor, made)  # with what it was made from, so that the identity stays taken
        while len(self._prepared) > KEPT:
            self._prepared.pop(next(iter(self._prepared)))
        yield

    def working(self, name: str) -> Generator[tuple[int, int, str], None, None]:
        """What the view's button does, as a job."""
        self._worked[name] = yield from self.views[name].work(self.look(name))
