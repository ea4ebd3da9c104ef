"""A second device without a GPU: its tensors say `device=meta` and hold their numbers in the host's memory.

    with EmulatedDevice() as device:
        x = torch.zeros(3).to("meta")          # a copy to the device, counted
        float((x + 1).sum())                   # two launches; one copy to the host, counted
        x + torch.zeros(3)                     # RuntimeError: the tensors are on two devices

Its operations run on the CPU, bit for bit as there, by a GPU's rules:
- tensors of both devices in one operation raise; a CPU tensor without dimensions may stand for a number, and CPU rows
  may index a tensor of the device, which copies them there;
- `.numpy()` raises; `.cpu()`, `.item()`, `.tolist()`, `float()`, `bool()`, `if`, `torch.tensor(..., device=...)`, a
  list as index and copies in both directions count in `device.transfers`, and so does what makes a GPU wait because a
  shape depends on the numbers (`nonzero`, a mask as index, `unique`, `bincount`);
- numbers drawn on the device come from a stream of its own, so whoever draws there has other numbers than on the CPU.

`device.launches` counts operations that would launch a kernel. It says nothing of speed, TF32, streams or CUDA graphs.
"""

from __future__ import annotations

import collections
import functools
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

NAME = "meta"
aten = torch.ops.aten
NO_LAUNCH = ("empty", "_unsafe_view", "_local_scalar_dense", "is_same_size", "new_empty", "lift")
INDEXED = (
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
)
JOINED = (aten.cat.default, aten.stack.default)
PLAIN = {
    int,
    float,
    bool,
    str,
    type(None),
    torch.dtype,
    torch.device,
}  # arguments that hold no tensor
# Answers whose size, or whether there is one, only the numbers tell: a GPU's host waits for them.
WAITING = {
    aten.equal.default,
    aten.bincount.default,
    aten.linalg_eigh.default,
    aten._linalg_eigh.default,
}
_current: EmulatedDevice | None = None


class Emulated(torch.Tensor):
    """A tensor of the device; `raw` are its numbers."""

    raw: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> Emulated:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=NAME,
        )
        made.raw = raw
        return made

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
        return super().__getitem__(_rows(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_rows(index), value)


def _rows(index: Any) -> Any:
    """Lists in an index as tensors of the host: what torch copies to the device before it looks them up."""
    if isinstance(index, tuple):
        return tuple(map(_rows, index))
    return torch.tensor(index) if isinstance(index, list) else index


@functools.cache
def launches(func: Any) -> bool:
    """Whether an operation would launch a kernel: neither a view nor bookkeeping."""
    returned = func._schema.returns
    view = any(value.alias_info is not None and not value.alias_info.is_write for value in returned)
    return not view and not func._schema.name.removeprefix("aten::").startswith(NO_LAUNCH)


@functools.cache
def waits(func: Any) -> bool:
    """Whether the host has to wait for the numbers before it can go on."""
    return func in WAITING or (torch.Tag.dynamic_output_shape in func.tags and func not in INDEXED)


@functools.cache
def draws(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


class EmulatedDevice(TorchDispatchMode):
    """The device, there inside `with`. `launched`, `moved`: counts by operation, and by direction and operation."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: collections.Counter = collections.Counter()
        self.moved: collections.Counter = collections.Counter()
        self.random = torch.Generator().manual_seed(20_000).get_state()

    @property
    def launches(self) -> int:
        return self.launched.total()

    @property
    def to_host(self) -> int:
        """Copies to the host, and waits for numbers there."""
        return sum(count for (way, _), count in self.moved.items() if way == "to host")

    @property
    def to_device(self) -> int:
        return sum(count for (way, _), count in self.moved.items() if way == "to device")

    @property
    def transfers(self) -> int:
        return self.moved.total()

    # ------------------------------------------------------------------ making tensors of Python's numbers
    def __enter__(self) -> EmulatedDevice:
        global _current
        _current, self._made = self, (torch.tensor, torch.as_tensor)
        torch.tensor, torch.as_tensor = (
            functools.partial(self._from_host, made) for made in self._made
        )
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        global _current
        super().__exit__(*error)
        _current, (torch.tensor, torch.as_tensor) = None, self._made

    def _from_host(
        self,
        make: Any,
        data: Any,
        *,
        dtype: torch.dtype | None = None,
        device: Any = None,
        **more: Any,
    ):
        """`torch.tensor` and `torch.as_tensor`, which would make an empty tensor on "meta"."""
        if isinstance(data, torch.Tensor) or device is None or torch.device(device).type != NAME:
            return make(data, dtype=dtype, device=device, **more)
        return make(data, dtype=dtype, device="cpu", **more).to(NAME)

    # ------------------------------------------------------------------ one operation
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """One operation, on the CPU, by the rules of two devices."""
        ours: list[Emulated] = []
        others: list[torch.Tensor] = []
        raw = _unwrapped(args, ours, others)
        named = (
            {name: _unwrapped(value, ours, others) for name, value in kwargs.items()}
            if kwargs
            else {}
        )
        target = kwargs.get("device")
        here = bool(ours) if target is None else target.type == NAME
        if not ours and not here:
            return func(*args, **kwargs)
        if target is not None:
            named["device"] = "cpu"
        if func is aten._to_copy.default:
            named = {
                name: value
                for name, value in named.items()
                if name not in ("pin_memory", "non_blocking")
            }
            if here and ours:
                self.launched["copy"] += 1
            else:
                self.moved["to device" if here else "to host", "copy"] += 1
            copied = func(*raw, **named)
            return Emulated(copied) if here else copied
        if func is aten.copy_.default:
            if ours and others:
                self.moved[
                    "to device" if isinstance(args[0], Emulated) else "to host", "copy_"
                ] += 1
            else:
                self.launched["copy"] += 1
            raw[0].copy_(raw[1])
            return args[0]
        self._check(func, args, ours, others)
        if launches(func):
            self.launched[func._schema.name] += 1
        if here and kwargs.get("generator") is not None:
            raise RuntimeError(
                f"Expected a 'meta' device type for generator, but {func} got a 'cpu' one."
            )
        out = self._drawn(func, raw, named) if here and draws(func) else func(*raw, **named)
        if func is aten._local_scalar_dense.default:
            self.moved["to host", "item"] += 1
            return out
        if waits(func):
            self.moved["to host", func._schema.name] += 1
        return _wrapped(out, {id(tensor.raw): tensor for tensor in ours}) if here else out

    def _drawn(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An operation that draws, from the device's own stream."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.random)
            out = func(*args, **kwargs)
            self.random = torch.get_rng_state()
        return out

    def _check(
        self, func: Any, args: tuple, ours: list[Emulated], others: list[torch.Tensor]
    ) -> None:
        """RuntimeError for tensors of both devices; rows of the host that look up a tensor of the device are copied."""
        if func in INDEXED and isinstance(args[0], Emulated):
            looked_up = [rows for rows in args[1] if rows is not None]
            self.moved["to device", "index"] += sum(
                not isinstance(rows, Emulated) for rows in looked_up
            )
            self.moved["to host", "mask"] += any(
                rows.dtype in (torch.bool, torch.uint8) for rows in looked_up
            )
            others = [tensor for tensor in others if not any(tensor is rows for rows in looked_up)]
        if not ours or not others:
            return
        written = func._schema.is_mutable and args and not isinstance(args[0], Emulated)
        if written or func in JOINED or any(tensor.dim() for tensor in others):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but {func} got both devices' tensors."
            )


def _unwrapped(value: Any, ours: list[Emulated], others: list[torch.Tensor]) -> Any:
    """`value` with the numbers of the device's tensors; which tensors of either device there were is noted."""
    kind = type(value)
    if kind is Emulated:
        ours.append(value)
        return value.raw
    if kind is list or kind is tuple:
        return kind([_unwrapped(part, ours, others) for part in value])
    if kind not in PLAIN and isinstance(value, torch.Tensor):
        others.append(value)
    return value


def _wrapped(value: Any, known: dict[int, Emulated]) -> Any:
    """A result as tensors of the device; what an operation has written to stays the tensor that it was."""
    if isinstance(value, torch.Tensor):
        return known.get(id(value)) if id(value) in known else Emulated(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_wrapped(part, known) for part in value)
    return value
