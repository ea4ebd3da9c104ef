"""What the left column says before a run: how skewed the data are, what an upload and the whole run will cost. What
takes long to say is said once a hand is off the controls (`AtRest`).
"""

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from threading import RLock, Timer
from typing import Any

from ..comm.formulas import state_bytes
from ..models import build_specified, model_state
from ..plots.words import capital, data_size, duration, plural
from ..studies.cost import Cost
from .lab_view import PanelState

REST = 0.3  # seconds after which a hand is taken to be off the controls


class AtRest:
    """Does what takes longer than a hand on a slider can wait: once the hand is off, in a thread of its own, and of
    each kind only the last thing asked for.

    guard: held while something is said;   fail(error): told of errors;   now(): whether nobody's hand is waited for
    """

    def __init__(self, guard: RLock, fail: Callable[[Exception], None], now: Callable[[], bool]) -> None:
        self._guard, self._fail, self._now, self._timers = guard, fail, now, defaultdict(lambda: Timer(0, str))

    def ask(self, kind: str, make: Callable[[], Any], say: Callable[[Any], None], now: bool = False) -> None:
        """`make()` something without the guard, then `say` it, if nothing else of this kind is asked for by then."""

        def do() -> None:
            try:
                made = make()
                with self._guard:
                    if not timer.finished.is_set():
                        say(made)
            except Exception as error:
                with self._guard:
                    self._fail(error)

        self._timers[kind].cancel()
        at_once = now or self._now()
        self._timers[kind] = timer = Timer(0 if at_once else REST, do)
        timer.daemon = True
        (timer.run if at_once else timer.start)()

    def cancel(self) -> None:
        """What was asked for is not said any more."""
        for timer in self._timers.values():
            timer.cancel()


def costs(cost: Cost | None) -> str:
    """What a run takes, in words that fit into a line."""
    if cost is None:
        return ""
    time = capital(duration(cost.seconds)) + ";" if cost.seconds else "Remembered:"
    return f"{time} {'' if cost.exact else 'about '}{data_size(cost.bytes)} both ways."


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
    return state_bytes(sum(t.numel() for t in model_state(build_specified(model, input_shape, classes)).values()))
