"""The data of a panel: load a data set, deal it out as the controls say, and what is known before a training."""

import functools
from collections.abc import Generator, Mapping
from typing import Any

from .. import data
from ..comm.formulas import state_bytes
from ..models import build_specified, model_state
from ..plots.words import data_size, plural
from ..studies.settings import Settings


def loading(name: str) -> Generator[None, None, None]:
    """Load a data set as a job of the worker."""
    data.load(name)
    yield


def samples(name: str) -> int:
    """How many training samples a data set has that is loaded."""
    return len(data.load(name).y_train)


def named_clients(name: str) -> int:
    """How many clients a data set that is loaded names."""
    return len(data.load(name).client_names)


def partition_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `federate` for the first seed. Whether the device is there is a matter of the run."""
    chosen = Settings.make(**{**settings, "device": "cpu"})
    return {"dataset": chosen.dataset, "public": chosen.public, **chosen.federation_options()}


def federate(dataset: str, public: str | float, **options: Any) -> data.Federation:
    """The federation of a run with these settings; `options`: of `data.federate`."""
    return data.federate(data.with_public(data.load(dataset), public), **options)


@functools.lru_cache(maxsize=64)
def model_bytes(model: str, input_shape: tuple[int, ...], classes: int) -> int:
    """Bytes of the state of a `name` or `name:width` in float32."""
    return state_bytes(sum(t.numel() for t in model_state(build_specified(model, input_shape, classes)).values()))


def models_bytes(model: str, clients: int, input_shape: tuple[int, ...], classes: int) -> list[int]:
    """Bytes of each client's model; several architectures (`"mlp,cnn"`) are dealt to the clients in turn."""
    sizes = [model_bytes(one.strip(), input_shape, classes) for one in model.split(",")]
    return [sizes[k % len(sizes)] for k in range(clients)]


def facts(federation: data.Federation, model: str) -> str:
    """Skew and upload in a sentence, before anything is trained."""
    skew, dataset, clients = federation.skew, federation.dataset, federation.clients
    sizes = models_bytes(model, clients, dataset.input_shape, dataset.classes)
    least, most = min(sizes), max(sizes)
    each = data_size(least) if least == most else f"{data_size(least)} to {data_size(most)}"
    together = f", all {plural(clients, 'client')} {data_size(sum(sizes))}" if clients > 1 else ""
    return (
        f"{federation.note + ' ' if federation.partition == 'natural' else ''}"
        f"A client effectively sees {skew.effective_classes:.1f} of {dataset.classes} classes (skew "
        f"{skew.jensen_shannon:.2f}). Uploading its model once costs it {each}{together}."
    )
