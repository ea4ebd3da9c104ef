"""What the left column says before a run: how skewed the data are, what an upload and the whole run will cost. What
takes long to say is said once a hand is off the controls (`AtRest`).
"""

import time
from collections.abc import Callable
from functools import lru_cache
from threading import Lock, RLock, Thread
from typing import Any

from ..comm.formulas import state_bytes
from ..models import build_from_text, model_state
from ..plots.words import capital, data_size, duration, plural
from ..studies.cost import Cost
from .lab_view import PanelState

REST = 0.3  # seconds after which a hand is taken to be off the controls


class AtRest:
    """Does what takes longer than a hand on a slider can wait: once the hand is off, in a thread of its own, and of
    each kind only the last thing asked for. One thread waits for all, as a new one for each move would cost the hand.

    guard: held while something is said;   fail(error): told of errors;   now(): whether nobody's hand is waited for
    """

    def __init__(
        self, guard: RLock, fail: Callable[[Exception], None], now: Callable[[], bool]
    ) -> None:
        self._guard, self._fail, self._now = guard, fail, now
        self._lock, self._waiting = Lock(), False  # the lock: of what follows
        self._last: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {}
        self._due: dict[str, float] = {}

    def ask(
        self, kind: str, make: Callable[[], Any], say: Callable[[Any], None], now: bool = False
    ) -> None:
        """`make()` something without the guard, then `say` it, if nothing else of this kind is asked for by then."""
        at_once, asked = now or self._now(), (make, say)
        with self._lock:
            self._last[kind], self._due[kind] = asked, time.monotonic() + REST
            if at_once:
                del self._due[kind]
            elif not self._waiting:
                self._waiting = True
                Thread(target=self._wait, daemon=True).start()
        if at_once:
            self._do(kind, asked)

    def _wait(self) -> None:
        while True:
            with self._lock:
                if not self._due:
                    self._waiting = False
                    return
                due, kind = min((due, kind) for kind, due in self._due.items())
                if (rest := due - time.monotonic()) <= 0:
                    del self._due[kind]
                    asked = self._last[kind]
            if rest > 0:
                time.sleep(rest)
            else:
                self._do(kind, asked)

    def _do(self, kind: str, asked: tuple[Callable[[], Any], Callable[[Any], None]]) -> None:
        make, say = asked
        try:
            made = make()
            with self._guard:
                if self._last.get(kind) is asked:
                    say(made)
        except Exception as error:
            with self._guard:
                self._fail(error)

    def cancel(self) -> None:
        """What was asked for is not said any more."""
        with self._lock:
            self._last.clear()
            self._due.clear()


def costs(cost: Cost | None) -> str:
    """What a run takes, in words that fit into a line."""
    if cost is None:
        return ""
    if cost.seconds is None:
        takes = "How long is not known yet;"
    elif cost.seconds:
        takes = f"{capital(duration(cost.seconds))};"
    else:
        takes = "Remembered:"
    return f"{takes} {'' if cost.exact else 'about '}{data_size(cost.bytes)} both ways."


def facts(state: PanelState) -> str:
    """Skew and upload in a sentence, before a training; '' without data."""
    if (federation := state.federation) is None:
        return ""
    skew, dataset, clients = federation.skew, federation.dataset, federation.clients
    models = state.settings.get("model", "auto").split(",")  # several are dealt out in turn
    sizes = [model_bytes(model.strip(), dataset.input_shape, dataset.classes) for model in models]
    sizes = [sizes[k % len(sizes)] for k in range(clients)]
    each = " to ".join(dict.fromkeys(data_size(size) for size in (min(sizes), max(sizes))))
    together = f", all {plural(clients, 'client')} {data_size(sum(sizes))}" if clients > 1 else ""
    return (
        f"{federation.note + ' ' if federation.partition in ('natural', 'fonts', 'own') else ''}"
        f"A client effectively sees {skew.effective_classes:.1f} of {dataset.classes} classes (skew "
        f"{skew.jensen_shannon:.2f}). Uploading its model once costs it {each}{together}."
    )


@lru_cache(maxsize=64)
def model_bytes(model: str, input_shape: tuple[int, ...], classes: int) -> int:
    """Bytes of the state of a `name` or `name:width` in float32."""
    return state_bytes(
        sum(t.numel() for t in model_state(build_from_text(model, input_shape, classes)).values())
    )
