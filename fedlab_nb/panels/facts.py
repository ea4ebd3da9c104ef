"""What the left column says before a run: how skewed the data are, what an upload and the whole run will cost."""

from functools import lru_cache

from ..comm.formulas import state_bytes
from ..data import Federation
from ..models import build_specified, model_state
from ..plots.words import capital, data_size, duration, plural
from ..studies.cost import Cost


def costs(cost: Cost) -> str:
    """What a run takes, in words."""
    time = capital(duration(cost.seconds)) if cost.seconds else "At once, as it is remembered"
    return f"{time}; {'' if cost.exact else 'about '}{data_size(cost.bytes)} between clients and server."


def facts(federation: Federation, models: str) -> str:
    """Skew and upload in a sentence, before a training. models: several (`"mlp,cnn"`) are dealt out in turn."""
    skew, dataset, clients = federation.skew, federation.dataset, federation.clients
    sizes = [model_bytes(model.strip(), dataset.input_shape, dataset.classes) for model in models.split(",")]
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
