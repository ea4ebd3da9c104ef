"""Sets PyTorch's global switches to their default values while the package computes.

A person's own `torch.set_default_dtype(torch.float64)`, default device, autocast, `no_grad`, deterministic flags or
matmul precision would change the result of a run. The store would then return this result also where nothing was set.
So each step of a run stands within `use_default_torch_switches()`. If nothing was set, it does nothing.

    with use_default_torch_switches():
        ...                       # float32, CPU unless a device is named, gradients on, no autocast
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from typing import Any, Literal

from fedlab_nb.errors import UsageError
from fedlab_nb.value_types import WithBlock

_lock = threading.Lock()
_inside = 0  # how many nested blocks the main thread is in
# The values that the process's switches had before the outermost block; only of those that were changed.
_before: dict[str, Any] = {}


@contextlib.contextmanager
def use_default_torch_switches() -> WithBlock:
    """Within the block, all switches of PyTorch have their default values. May also decorate a function.

    Default number type, deterministic flags and matmul precision are those of the whole process, so other threads are
    not allowed to change them. In the main thread they are changed, and changed back afterwards. In another thread
    UsageError is raised if they would change results.
    """
    import torch

    is_main = threading.current_thread() is threading.main_thread()
    with contextlib.ExitStack() as stack:
        if is_main:
            _set_process_switches()
            stack.callback(_restore_process_switches)
        else:
            check_process_switches_are_default()
        if torch.empty(0).device.type != "cpu":
            stack.enter_context(torch.device("cpu"))
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        device_types: tuple[Literal["cpu", "cuda"], ...] = ("cpu", "cuda")
        for device in device_types:
            if is_autocast_on(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def is_autocast_on(device_type: Literal["cpu", "cuda"]) -> bool:
    """Whether autocast is on for a kind of device."""
    import torch

    try:
        return bool(torch.is_autocast_enabled(device_type))
    except TypeError:  # before torch 2.4 each kind of device had a function of its own
        if device_type == "cpu":
            return bool(torch.is_autocast_cpu_enabled())
        return bool(torch.is_autocast_enabled())


def check_process_switches_are_default() -> None:
    """Raise UsageError if the number type or the matmul precision of the process is not the default one."""
    import torch

    if _inside:
        return
    if torch.get_default_dtype() != torch.float32:
        raise UsageError(
            f"PyTorch's default number type is {torch.get_default_dtype()}, and results are made in float32; call "
            f"torch.set_default_dtype(torch.float32) first, or run in the main thread."
        )
    if torch.get_float32_matmul_precision() != "highest":
        raise UsageError(
            f"PyTorch's matmul precision is {torch.get_float32_matmul_precision()!r}, which changes results; call "
            f"torch.set_float32_matmul_precision('highest') first, or run in the main thread."
        )


def _set_process_switches() -> None:
    """Set number type, flags and precision to their defaults. The outermost block stores what they were."""
    global _inside
    import torch

    with _lock:
        _inside += 1
        if _inside > 1:
            return
        _before.clear()
        if torch.get_default_dtype() != torch.float32:
            _before["dtype"] = torch.get_default_dtype()
            torch.set_default_dtype(torch.float32)
        if torch.are_deterministic_algorithms_enabled():
            _before["deterministic"] = torch.is_deterministic_algorithms_warn_only_enabled()
            torch.use_deterministic_algorithms(False)
        if torch.get_float32_matmul_precision() != "highest":
            _before["precision"] = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("highest")


def _restore_process_switches() -> None:
    """At the end of the outermost block, set the switches back to what they were before it."""
    global _inside
    import torch

    with _lock:
        _inside -= 1
        if _inside:
            return
        if "dtype" in _before:
            torch.set_default_dtype(_before["dtype"])
        if "deterministic" in _before:
            torch.use_deterministic_algorithms(True, warn_only=_before["deterministic"])
        if "precision" in _before:
            torch.set_float32_matmul_precision(_before["precision"])
        _before.clear()


def iterate_with_default_torch_switches(
    steps: Generator[Any, None, Any],
) -> Generator[Any, None, Any]:
    """Yield what a generator yields. Its code runs with the default switches, the code that receives it does not."""
    try:
        while True:
            with use_default_torch_switches():
                try:
                    item = next(steps)
                except StopIteration as end:
                    return end.value
            yield item
    finally:
        with use_default_torch_switches():
            steps.close()
