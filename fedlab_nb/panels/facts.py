"""The texts beside the controls before a run: what an upload and the whole run will cost, and how skewed the data are.

And `Debouncer`, by which slow updates wait until the controls have not changed for a moment.
"""

import time
from collections.abc import Callable
from functools import lru_cache
from threading import Lock, RLock, Thread
from typing import Any, NamedTuple, TypeVar

from ..comm.formulas import count_model_bytes_one_way
from ..data import Federation
from ..errors import SAMPLES
from ..front.vocabulary import choose_words_for_clients_and_samples
from ..models import build_untrained_network_of_first_model, copy_model_state
from ..plots.words import format_count_and_noun, format_data_size, format_rough_duration
from ..studies.cost import EstimatedCost
from ..value_types import SettingsByName
from .lab_view import PanelState
from .memory import return_freed_memory_to_system

DELAY = 0.3  # seconds without a change after which a slow update is made


class UpdateRequest(NamedTuple):
    """A slow update: `show_result` is called with the result of `compute`."""

    compute: Callable[[], Any]
    show_result: Callable[[Any], None]


Result = TypeVar("Result")


class Debouncer:
    """Debounces slow updates: makes an update in a thread once no other update of its topic was scheduled for DELAY.

    One thread waits for all topics: starting a thread for each change would make a slider lag.

    display_lock:       held while something is shown
    show_error:         called with the error of an update that fails
    is_without_delay(): whether updates are made at once, in the calling thread
    """

    def __init__(
        self,
        display_lock: RLock,
        show_error: Callable[[Exception], None],
        is_without_delay: Callable[[], bool],
    ) -> None:
        self._display_lock = display_lock
        self._show_error = show_error
        self._is_without_delay = is_without_delay
        self._lock = Lock()  # protects the following attributes
        self._is_waiting = False
        self._requests: dict[str, UpdateRequest] = {}
        self._due: dict[str, float] = {}

    def schedule_update(
        self,
        topic: str,
        compute: Callable[[], Result],
        show_result: Callable[[Result], None],
        runs_at_once_in_caller: bool = False,
        delay_seconds: float = DELAY,
    ) -> None:
        """Call `compute` without the display lock, then `show_result` with its result and the lock.

        The result is not shown if another update of this topic was scheduled meanwhile.

        runs_at_once_in_caller: make the update at once, in the calling thread
        delay_seconds: without a change of this topic, before the update is made
        """
        is_immediate = runs_at_once_in_caller or self._is_without_delay()
        request = UpdateRequest(compute, show_result)
        with self._lock:
            self._requests[topic] = request
            if is_immediate:
                self._due.pop(topic, None)
            else:
                self._due[topic] = time.monotonic() + delay_seconds
                if not self._is_waiting:
                    self._is_waiting = True
                    Thread(target=self._compute_updates_then_free_memory, daemon=True).start()
        if is_immediate:
            self._compute_and_show(topic, request)

    def _compute_updates_then_free_memory(self) -> None:
        """Make updates until none is scheduled; then free the memory that a long drag has used."""
        self._wait_and_compute_until_none_is_scheduled()
        return_freed_memory_to_system()

    def _wait_and_compute_until_none_is_scheduled(self) -> None:
        while True:
            with self._lock:
                if not self._due:
                    self._is_waiting = False
                    return
                topic = min(self._due, key=lambda topic: self._due[topic])
                seconds = self._due[topic] - time.monotonic()
                if seconds <= 0:
                    del self._due[topic]
                    request = self._requests[topic]
            if seconds > 0:
                time.sleep(seconds)
            else:
                self._compute_and_show(topic, request)

    def _compute_and_show(self, topic: str, request: UpdateRequest) -> None:
        try:
            content = request.compute()
            with self._display_lock:
                if self._requests.get(topic) is request:
                    request.show_result(content)
        except Exception as error:
            with self._display_lock:
                self._show_error(error)

    def cancel_all_updates(self) -> None:
        """Cancel all updates: no result is shown any more."""
        with self._lock:
            self._requests.clear()
            self._due.clear()


def describe_cost_or_empty(cost: EstimatedCost | None) -> str:
    """Describe in one sentence how long a run takes and how much it sends."""
    if cost is None:
        return ""
    traffic = describe_traffic_of_one_seed(cost)
    if cost.seconds is None:
        return f"A run {traffic}; how long it takes is not known yet."
    if cost.seconds:
        return f"A run takes {format_rough_duration(cost.seconds)} and {traffic}."
    return f"Run shows stored results at once; such a run {traffic}."


def describe_traffic_of_one_seed(cost: EstimatedCost) -> str:
    """Describe what one seed sends. A federation runs once, so the sum over seeds would mean nothing."""
    if cost.bytes_per_seed == 0:
        return "sends nothing"
    size = format_data_size(cost.bytes_per_seed)
    if not cost.exact:
        size = f"about {size}"
    per_seed = " per seed" if cost.seeds > 1 else ""
    if cost.has_upload:
        return f"sends {size} both ways{per_seed}"
    return f"sends {size} down{per_seed} (the initial model) and nothing up"


def describe_client_origin_and_upload_bytes(state: PanelState) -> str:
    """Describe where the clients come from, if the data name them, and what uploading their models costs; '' without
    data."""
    federation = state.federation
    if federation is None:
        return ""
    text = describe_model_upload_bytes(federation, state.settings)
    if federation.partition in ("natural", "fonts", "own"):
        return f"{federation.note} {text}"
    return text


def describe_skew_in_numbers_or_empty(state: PanelState) -> str:
    """Describe the skew in numbers, for the tooltip; '' without data."""
    federation = state.federation
    if federation is None:
        return ""
    skew = federation.skew
    dataset = federation.dataset
    people = choose_words_for_clients_and_samples(dataset.name, SAMPLES[len(dataset.input_shape)])
    return (
        f"A client effectively sees {skew.effective_classes:.1f} of {dataset.classes} "
        f"{people['kinds']}. The skew is {skew.jensen_shannon:.2f}: at 0 all clients hold the "
        f"same mix, at 1 no two clients share a {people['kind']}."
    )


def describe_model_upload_bytes(federation: Federation, settings: SettingsByName) -> str:
    """Describe what it costs a client, and all of them, to upload their models once. Several models are assigned to the
    clients in turn."""
    dataset = federation.dataset
    clients = federation.clients
    models = [name.strip() for name in settings.get("model", "auto").split(",")]
    sizes = []
    for client in range(clients):
        model = models[client % len(models)]
        sizes.append(count_model_bytes_in_float32(model, dataset.input_shape, dataset.classes))
    smallest = format_data_size(min(sizes))
    largest = format_data_size(max(sizes))
    text = f"Uploading its model once costs a client {smallest}"
    if largest != smallest:
        text += f" to {largest}"
    if clients > 1:
        text += f", all {format_count_and_noun(clients, 'client')} {format_data_size(sum(sizes))}"
    return f"{text}."


@lru_cache(maxsize=64)
def count_model_bytes_in_float32(
    model_name: str, input_shape: tuple[int, ...], class_count: int
) -> int:
    """Count the bytes of a model's state in float32. model_name: such as "mlp" or "mlp:32" """
    state = copy_model_state(
        build_untrained_network_of_first_model(model_name, input_shape, class_count)
    )
    return count_model_bytes_one_way(sum(tensor.numel() for tensor in state.values()))
