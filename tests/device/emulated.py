"""A second device without a GPU: its tensors say `device=meta` and hold their numbers in the host's memory.

    with EmulatedDevice() as device:
        x = torch.zeros(3).to("meta")          # a copy to the device, counted
        float((x + 1).sum())                   # two launches; one copy to the host, counted
        x + torch.zeros(3)                     # RuntimeError: the tensors are on two devices

Its operations run on the CPU and give the CPU's bits, but they follow a GPU's rules:
- An operation on tensors of both devices raises. There are two exceptions: a CPU tensor without dimensions may stand
  for a number, and CPU rows may index a tensor of the device, which copies them there.
- `.numpy()` raises.
- `device.transfers` counts copies in both directions: `.cpu()`, `.item()`, `.tolist()`, `float()`, `bool()`, `if`,
  `torch.tensor(..., device=...)` and a list as index. It also counts what makes a GPU's host wait because a shape
  depends on the numbers: `nonzero`, a mask as index, `unique`, `bincount`.
- Random numbers drawn on the device come from the device's own stream, so they differ from the CPU's.

`device.launches` counts operations that would launch a kernel. The device says nothing of speed, TF32, streams or
CUDA graphs.
"""

from __future__ import annotations

import collections
import functools
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

NAME = "meta"
aten = torch.ops.aten
# Operations that launch no kernel, by the beginning of their names.
NO_LAUNCH = ("empty", "_unsafe_view", "_local_scalar_dense", "is_same_size", "new_empty", "lift")
INDEXING = (
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
)
JOINING = (aten.cat.default, aten.stack.default)
# Types of arguments that hold no tensor.
PLAIN_TYPES = {int, float, bool, str, type(None), torch.dtype, torch.device}
# Operations whose answer or its size depends on the numbers, so that a GPU's host waits for them.
WAITING = {
    aten.equal.default,
    aten.bincount.default,
    aten.linalg_eigh.default,
    aten._linalg_eigh.default,
}
_current: EmulatedDevice | None = None


class Emulated(torch.Tensor):
    """A tensor of the device; `raw` holds its numbers on the CPU."""

    raw: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> Emulated:
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=NAME,
        )
        tensor.raw = raw
        return tensor

    def __init__(self, raw: torch.Tensor) -> None: ...

    def __repr__(self) -> str:
        return f"Emulated({self.raw})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if _current is None:
            raise RuntimeError("A tensor of the emulated device was used after the device's end.")
        return _current.run(func, args, kwargs or {})

    is_meta = property(lambda self: False)

    @property
    def data(self) -> torch.Tensor:
        return self.detach()

    @data.setter
    def data(self, value: Emulated) -> None:
        self.raw = value.raw
        torch.Tensor.data.__set__(self, value)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def new_tensor(self, data: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.tensor(data, dtype=dtype or self.dtype, device=NAME)

    def __getitem__(self, index: Any) -> torch.Tensor:
        return super().__getitem__(_convert_lists_to_tensors(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_convert_lists_to_tensors(index), value)


def _convert_lists_to_tensors(index: Any) -> Any:
    """Make the lists in an index tensors of the host, which torch copies to the device to look them up."""
    if isinstance(index, tuple):
        return tuple(map(_convert_lists_to_tensors, index))
    if isinstance(index, list):
        return torch.tensor(index)
    return index


@functools.cache
def launches_kernel(func: Any) -> bool:
    """Whether an operation would launch a kernel: neither a view nor bookkeeping."""
    aliases = [value.alias_info for value in func._schema.returns]
    is_view = any(alias is not None and not alias.is_write for alias in aliases)
    return not is_view and not func._schema.name.removeprefix("aten::").startswith(NO_LAUNCH)


@functools.cache
def makes_host_wait(func: Any) -> bool:
    """Whether the host has to wait for the numbers before it can go on."""
    if func in WAITING:
        return True
    return torch.Tag.dynamic_output_shape in func.tags and func not in INDEXING


@functools.cache
def draws_random_numbers(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


class EmulatedDevice(TorchDispatchMode):
    """The device, which exists inside `with`.

    launch_counts: {operation: launches}
    transfer_counts: {(direction, operation): transfers}
    """

    def __init__(self) -> None:
        super().__init__()
        self.launch_counts: collections.Counter = collections.Counter()
        self.transfer_counts: collections.Counter = collections.Counter()
        self.random_state = torch.Generator().manual_seed(20_000).get_state()

    @property
    def launches(self) -> int:
        return self.launch_counts.total()

    @property
    def to_host(self) -> int:
        """Copies to the host, and waits of the host for numbers."""
        return self._count_transfers("to host")

    @property
    def to_device(self) -> int:
        return self._count_transfers("to device")

    def _count_transfers(self, direction: str) -> int:
        return sum(n for (way, _), n in self.transfer_counts.items() if way == direction)

    @property
    def transfers(self) -> int:
        return self.transfer_counts.total()

    # ------------------------------------------------------------------ making tensors of Python's numbers
    def __enter__(self) -> EmulatedDevice:
        global _current
        _current = self
        self._torch_tensor = torch.tensor
        self._torch_as_tensor = torch.as_tensor
        torch.tensor = functools.partial(self._make_from_host, torch.tensor)
        torch.as_tensor = functools.partial(self._make_from_host, torch.as_tensor)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        global _current
        super().__exit__(*error)
        _current = None
        torch.tensor = self._torch_tensor
        torch.as_tensor = self._torch_as_tensor

    def _make_from_host(
        self,
        make: Any,
        data: Any,
        *,
        dtype: torch.dtype | None = None,
        device: Any = None,
        **more: Any,
    ):
        """Stands in for `torch.tensor` and `torch.as_tensor`, which would make an empty tensor on "meta"."""
        if isinstance(data, torch.Tensor) or device is None or torch.device(device).type != NAME:
            return make(data, dtype=dtype, device=device, **more)
        return make(data, dtype=dtype, device="cpu", **more).to(NAME)

    # ------------------------------------------------------------------ one operation
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run one operation on the CPU, by the rules of two devices."""
        ours: list[Emulated] = []
        others: list[torch.Tensor] = []
        raw = _unwrap(args, ours, others)
        options = {name: _unwrap(value, ours, others) for name, value in kwargs.items()}
        target = kwargs.get("device")
        is_result_ours = bool(ours) if target is None else target.type == NAME
        if not ours and not is_result_ours:
            return func(*args, **kwargs)
        if target is not None:
            options["device"] = "cpu"
        if func is aten._to_copy.default:
            return self._copy_to(is_result_ours, bool(ours), raw, options)
        if func is aten.copy_.default:
            self._count_copy_into(args[0], crosses_devices=bool(ours and others))
            raw[0].copy_(raw[1])
            return args[0]
        if func in INDEXING and isinstance(args[0], Emulated):
            rows = [index for index in args[1] if index is not None]
            self._count_lookup(rows)
            others = [tensor for tensor in others if not any(tensor is index for index in rows)]
        if ours and others:
            _refuse_mixed_devices(func, args, others)
        if launches_kernel(func):
            self.launch_counts[func._schema.name] += 1
        if is_result_ours and kwargs.get("generator") is not None:
            raise RuntimeError(
                f"Expected a 'meta' device type for generator, but {func} got a 'cpu' one."
            )
        if is_result_ours and draws_random_numbers(func):
            result = self._run_with_device_stream(func, raw, options)
        else:
            result = func(*raw, **options)
        if func is aten._local_scalar_dense.default:
            self.transfer_counts["to host", "item"] += 1
            return result
        if makes_host_wait(func):
            self.transfer_counts["to host", func._schema.name] += 1
        if not is_result_ours:
            return result
        return _wrap(result, {id(tensor.raw): tensor for tensor in ours})

    def _copy_to(
        self, to_device: bool, from_device: bool, raw: tuple, options: dict[str, Any]
    ) -> torch.Tensor:
        """`aten._to_copy`: a copy within the device is a launch, one between the devices a transfer."""
        if to_device and from_device:
            self.launch_counts["copy"] += 1
        elif to_device:
            self.transfer_counts["to device", "copy"] += 1
        else:
            self.transfer_counts["to host", "copy"] += 1
        for name in ("pin_memory", "non_blocking"):
            options.pop(name, None)
        copy = aten._to_copy.default(*raw, **options)
        return Emulated(copy) if to_device else copy

    def _count_copy_into(self, destination: torch.Tensor, *, crosses_devices: bool) -> None:
        if not crosses_devices:
            self.launch_counts["copy"] += 1
        elif isinstance(destination, Emulated):
            self.transfer_counts["to device", "copy_"] += 1
        else:
            self.transfer_counts["to host", "copy_"] += 1

    def _count_lookup(self, rows: list[torch.Tensor]) -> None:
        """Rows of the host are copied to the device; for a mask the host waits, because its count is needed."""
        host_rows = [index for index in rows if not isinstance(index, Emulated)]
        has_mask = any(index.dtype in (torch.bool, torch.uint8) for index in rows)
        self.transfer_counts["to device", "index"] += len(host_rows)
        self.transfer_counts["to host", "mask"] += has_mask

    def _run_with_device_stream(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run an operation that draws random numbers, from the device's own stream."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.random_state)
            result = func(*args, **kwargs)
            self.random_state = torch.get_rng_state()
        return result


def _refuse_mixed_devices(func: Any, args: tuple, others: list[torch.Tensor]) -> None:
    """RuntimeError, unless the tensors of the host are single numbers that are only read."""
    writes_to_host = func._schema.is_mutable and args and not isinstance(args[0], Emulated)
    if writes_to_host or func in JOINING or any(tensor.dim() for tensor in others):
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but {func} got both devices' tensors."
        )


def _unwrap(value: Any, ours: list[Emulated], others: list[torch.Tensor]) -> Any:
    """`value` with raw tensors in the place of the device's.

    The device's tensors are appended to `ours`, the host's to `others`.
    """
    kind = type(value)
    if kind is Emulated:
        ours.append(value)
        return value.raw
    if kind is list or kind is tuple:
        return kind([_unwrap(part, ours, others) for part in value])
    if kind not in PLAIN_TYPES and isinstance(value, torch.Tensor):
        others.append(value)
    return value


def _wrap(value: Any, known: dict[int, Emulated]) -> Any:
    """A result as tensors of the device.

    known: {id of raw numbers: tensor}; a tensor that an operation has written to stays the same tensor
    """
    if isinstance(value, torch.Tensor):
        return known[id(value)] if id(value) in known else Emulated(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_wrap(part, known) for part in value)
    return value
