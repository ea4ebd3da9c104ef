"""What the controls say before a run: what an upload and the whole run will cost, and how skewed the data are; and
`Debouncer`, by which slow updates wait until a hand is off the controls.
"""

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from threading import Lock, RLock, Thread
from typing import Any

from ..comm.formulas import count_state_bytes
from ..data import Federation
from ..models import build_from_text, model_state
from ..plots.words import capitalize, data_size, format_duration, plural
from ..studies.cost import Cost
from .lab_view import PanelState

DELAY = 0.3  # seconds without a change after which a slow update is made


class Debouncer:
    """Debounces slow updates: makes them in a thread of its own once nothing has changed for DELAY, and of each kind
    only the last one that was asked for. One thread waits for all, as a new one for each change would cost the hand.

    guard:   held while something is shown
    fail(error): told of errors
    is_immediate(): whether nobody's hand is waited for
    """

    def __init__(
        self,
        guard: RLock,
        fail: Callable[[Exception], None],
        is_immediate: Callable[[], bool],
    ) -> None:
        self._guard = guard
        self._fail = fail
        self._is_immediate = is_immediate
        self._lock = Lock()  # of what follows
        self._is_waiting = False
        self._requests: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {}
        self._due: dict[str, float] = {}

    def request(
        self,
        kind: str,
        make: Callable[[], Any],
        show: Callable[[Any], None],
        is_urgent: bool = False,
    ) -> None:
        """`make()` something without the guard, then `show` it, unless something else of this kind was requested
        meanwhile. is_urgent: at once, in the calling thread
        """
        is_immediate = is_urgent or self._is_immediate()
        request = (make, show)
        with self._lock:
            self._requests[kind] = request
            if is_immediate:
                self._due.pop(kind, None)
            else:
                self._due[kind] = time.monotonic() + DELAY
                if not self._is_waiting:
                    self._is_waiting = True
                    Thread(target=self._wait, daemon=True).start()
        if is_immediate:
            self._update(kind, request)

    def _wait(self) -> None:
        while True:
            with self._lock:
                if not self._due:
                    self._is_waiting = False
                    return
                kind = min(self._due, key=lambda kind: self._due[kind])
                seconds = self._due[kind] - time.monotonic()
                if seconds <= 0:
                    del self._due[kind]
                    request = self._requests[kind]
            if seconds > 0:
                time.sleep(seconds)
            else:
                self._update(kind, request)

    def _update(self, kind: str, request: tuple[Callable[[], Any], Callable[[Any], None]]) -> None:
        make, show = request
        try:
            content = make()
            with self._guard:
                if self._requests.get(kind) is request:
                    show(content)
        except Exception as error:
            with self._guard:
                self._fail(error)

    def cancel(self) -> None:
        """Nothing that was requested is shown any more."""
        with self._lock:
            self._requests.clear()
            self._due.clear()


def describe_cost(cost: Cost | None) -> str:
    """What a run takes, in words that fit into a line."""
    if cost is None:
        return ""
    if cost.seconds is None:
        text = "How long is not known yet;"
    elif cost.seconds:
        text = f"{capitalize(format_duration(cost.seconds))};"
    else:
        text = "Cached:"
    size = data_size(cost.bytes)
    if not cost.exact:
        size = f"about {size}"
    return f"{text} {size} both ways."


def describe_federation(state: PanelState) -> str:
    """Where the clients come from, if the data name them, and what uploading their models costs; '' without data."""
    federation = state.federation
    if federation is None:
        return ""
    text = describe_upload(federation, state.settings)
    if federation.partition in ("natural", "fonts", "own"):
        return f"{federation.note} {text}"
    return text


def describe_skew_exactly(state: PanelState) -> str:
    """The numbers behind "different clients", for the tooltip; '' without data."""
    federation = state.federation
    if federation is None:
        return ""
    skew = federation.skew
    return (
        f"A client effectively sees {skew.effective_classes:.1f} of {federation.dataset.classes} "
        f"classes. The skew is {skew.jensen_shannon:.2f}: at 0 all clients hold the same mix, at 1 "
        "no two clients share a class."
    )


def describe_upload(federation: Federation, settings: Mapping[str, Any]) -> str:
    """What it costs a client, and all of them, to upload their models once. Several models are dealt out in turn."""
    dataset = federation.dataset
    clients = federation.clients
    models = [name.strip() for name in settings.get("model", "auto").split(",")]
    sizes = []
    for client in range(clients):
        model = models[client % len(models)]
        sizes.append(count_model_bytes(model, dataset.input_shape, dataset.classes))
    smallest = data_size(min(sizes))
    largest = data_size(max(sizes))
    text = f"Uploading its model once costs a client {smallest}"
    if largest != smallest:
        text += f" to {largest}"
    if clients > 1:
        text += f", all {plural(clients, 'client')} {data_size(sum(sizes))}"
    return f"{text}."


@lru_cache(maxsize=64)
def count_model_bytes(model: str, input_shape: tuple[int, ...], classes: int) -> int:
    """Bytes of the state of a `model`, such as "mlp" or "mlp:32", in float32."""
    state = model_state(build_from_text(model, input_shape, classes))
    return count_state_bytes(sum(tensor.numel() for tensor in state.values()))
