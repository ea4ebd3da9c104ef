"""Compares the memory that a method will need with the free memory, before it is allocated.

Moments, covariances and Kronecker factors grow with the square of the width: for a table with 20,000 columns they take
3.2 GB for each client. Without this check a run ends after minutes with an error message of the allocator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from ..errors import RunError, UsageError
from ..value_types import Bytes

ADVICE = (
    "take fewer clients, fewer columns or smaller images, and with features=pixels fewer features "
    "(features=relu, size=256)"
)


@dataclass(frozen=True)
class SquareMatricesInMemory:
    """`count` matrices `[side, side]` that a method holds at the same time."""

    count: int
    side: int
    bytes_per_number: int = 8

    @property
    def bytes(self) -> Bytes:
        return self.count * self.side**2 * self.bytes_per_number


def check_matrices_fit_in_memory(
    method_title: str,
    matrices_held_together: Iterable[SquareMatricesInMemory],
    device: torch.device,
) -> None:
    """Raise UsageError if the matrices do not fit into the free memory of `device`.

    Do nothing if that is not known.
    """
    held = sorted(matrices_held_together, key=lambda part: -part.bytes)
    # While a triangle is sent, its indices take as much memory as another matrix of 8 bytes a number.
    index_bytes = [8 * part.side**2 for part in held if part.count]
    needed = sum(part.bytes for part in held) + max(index_bytes, default=0)
    free = get_free_memory_in_bytes(device) if needed else None
    if free is None or needed <= free:
        return
    largest = held[0]
    raise UsageError(
        f"{method_title} needs {largest.count:,} matrices of {largest.side:,} x {largest.side:,} "
        f"numbers here, {needed / 1e9:,.1f} GB in all, and {free / 1e9:,.1f} GB are free on "
        f"{device.type}; {ADVICE}."
    )


def make_run_error_if_out_of_memory(
    method_title: str, error: BaseException, device: torch.device
) -> RunError | None:
    """Make the error for a run that was out of memory; None for an error of another kind."""
    text = str(error)
    match = re.search(r"tried to allocate ([\d.]+ ?\w+)", text)
    is_memory_error = isinstance(error, MemoryError | torch.cuda.OutOfMemoryError)
    if not is_memory_error and "DefaultCPUAllocator" not in text:
        return None
    size = match[1] if match else "more"
    if size.endswith("bytes"):
        size = f"{float(size.split()[0]) / 1e9:,.1f} GB"
    return RunError(
        f"{method_title} ran out of memory on {device.type}, where it asked for {size}; {ADVICE}."
    )


def get_free_memory_in_bytes(device: torch.device) -> int | None:
    """Return the bytes that can still be allocated on `device`; None if the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    bounds = (
        read_available_system_bytes(),
        read_free_address_space_bytes(),
        read_free_container_bytes(),
    )
    return min((bound for bound in bounds if bound is not None), default=None)


def read_available_system_bytes() -> int | None:
    """Read the available memory on Linux, including swap."""
    with suppress(OSError, ValueError, IndexError, KeyError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = {line.partition(":")[0]: int(line.split()[1]) for line in lines}
        return 1024 * (kilobytes["MemAvailable"] + kilobytes.get("SwapFree", 0))
    return None


def read_free_address_space_bytes() -> int | None:
    """Read what is left of the process's own limit (`ulimit -v`)."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return max(0, limit - pages * resource.getpagesize())
    return None


def read_free_container_bytes(cgroup_folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Read what is left of a container's limit (cgroup v2, as in Docker and on Binder). Its file
    cache counts as free.
    """
    with suppress(OSError, ValueError):
        limit = int((cgroup_folder / "memory.max").read_text(encoding="ascii"))  # "max": no bound
        used = int((cgroup_folder / "memory.current").read_text(encoding="ascii"))
        stat = dict(
            line.split() for line in (cgroup_folder / "memory.stat").read_text("ascii").splitlines()
        )
        return max(0, limit - used + int(stat.get("inactive_file", 0)))
    return None
