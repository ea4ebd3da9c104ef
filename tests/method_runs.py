"""Contexts for tests that run a method: a small federation of the digits, one architecture or several."""

from dataclasses import replace

import torch

from fedlab_nb.data import federate
from fedlab_nb.methods.context import Context
from fedlab_nb.models.build import architecture_of
from fedlab_nb.training import Recipe


def context(
    federation=None, *, data="digits", share=1.0, clients=3, alpha=0.5, seed=0, model="mlp", width=None, models=(),
    epochs=2, recipe=Recipe(), remembered=None, **options,  # noqa: B008  (frozen)
):  # fmt: skip
    """A run on the `federation`, or on `data` shared out. `models`, as "mlp:8", are dealt out in turn, in place of
    `model` and `width`. A list `remembered` keeps the first local training for all runs with it."""
    federation = federation or federate(data, share=share, alpha=alpha, clients=clients, seed=seed)
    shape, classes = federation.dataset.input_shape, federation.classes
    kinds = [architecture_of(name, shape, classes) for name in models] or [(model, shape, classes, width)]
    if remembered is not None:
        options["recall"] = lambda: remembered[0] if remembered else None
        options["remember"] = lambda models: remembered.append(models.states())
    return Context(
        federation, architectures=[kinds[k % len(kinds)] for k in range(federation.clients)],
        recipe=replace(recipe, epochs=epochs), seed=seed, **options,
    )  # fmt: skip


def seeded(seed=0):
    """A random stream of its own."""
    return torch.Generator().manual_seed(seed)
