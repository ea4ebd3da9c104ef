"""Drawing ahead: before and while another process makes a slow picture, the views that nobody looks at yet are drawn.
So each is there when it is chosen. The panel's lock stays free meanwhile: a hand that changes something does not wait.
"""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager

from ..plots import Picture
from ..plots.moving import moves_of
from ..plots.style import sized
from ..plots.vector import Drawn, drawn
from .state import PanelState
from .views import View, Views


class Ahead:
    """lock: of the panel;   dirty: names of the views that are out of date;   due(view): the state of such a one, where
    nobody looks at it and it can be drawn at once
    """

    def __init__(
        self, views: Views, lock: AbstractContextManager, dirty: set[str], due: Callable[[str], PanelState | None]
    ) -> None:
        self._views, self._lock, self._dirty, self._due = views, lock, dirty, due
        self._underway: dict[str, tuple[PanelState, Future]] = {}

    def draw(self, seconds: float = math.inf) -> Iterator[None]:
        """Draw one view after the other, without the lock; after so many seconds no other is begun."""
        end = time.monotonic() + seconds
        for name, view in self._views.views.items():
            if time.monotonic() > end:
                return
            with self._lock:
                state = self._due(name)
                if state is None:
                    continue
                self._dirty.discard(name)  # a change from here on makes it dirty once more
                made: Future = Future()
                self._underway[name] = state, made
                inches = self._views.inches
            try:
                with sized(inches):
                    made.set_result(made_of(view, state))
            except Exception as error:
                made.set_exception(error)
            with self._lock:
                self.take(name)
            yield

    def take(self, name: str) -> None:
        """Show what of a view is drawn ahead, once it is complete, and not if it is out of date already. Where that
        failed, the view is, too: who looks at it will read why. The lock is held.
        """
        if name not in self._underway:
            return
        state, made = self._underway.pop(name)
        if made.exception() is not None:
            self._dirty.add(name)
        elif name not in self._dirty:
            picture, svg = made.result()
            view = self._views[name]
            view.show(picture, view.kind.caption(state), svg)


def made_of(view: View, state: PanelState) -> tuple[Picture, Drawn | None]:
    """The view's Picture, and where it stands still, its SVG."""
    picture = view.kind.draw(state)
    still = picture.figure is not None and moves_of(picture.figure) is None
    return picture, drawn(picture.figure) if still else None
