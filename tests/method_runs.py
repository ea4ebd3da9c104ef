"""Contexts for tests that run a method: a small federation of the digits, one architecture or several."""

from dataclasses import replace

import torch

from fedlab_nb.data import federate
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.context import Context
from fedlab_nb.models.build import parse_architecture
from fedlab_nb.training import Recipe


def make_context(
    federation=None, *, data="digits", share=1.0, clients=3, alpha=0.5, seed=0, model="mlp", width=None, models=(),
    epochs=2, recipe=Recipe(), remembered=None, **options,  # noqa: B008  (frozen)
):  # fmt: skip
    """The context of a run, on the `federation` or on `data` that are partitioned.

    models: such as "mlp:8", dealt out to the clients in turn, in place of `model` and `width`
    remembered: a list that keeps the first local training for all runs with this list
    """
    federation = federation or federate(data, share=share, alpha=alpha, clients=clients, seed=seed)
    shape = federation.dataset.input_shape
    classes = federation.classes
    kinds = [parse_architecture(name, shape, classes) for name in models]
    if not kinds:
        kinds = [(model, shape, classes, width)]
    if remembered is not None:
        options["recall"] = lambda: remembered[0] if remembered else None
        options["remember"] = lambda models: remembered.append(models.states())
    return Context(
        federation, architectures=[kinds[k % len(kinds)] for k in range(federation.clients)],
        recipe=replace(recipe, epochs=epochs), seed=seed, **options,
    )  # fmt: skip


def make_torch_generator(seed=0):
    """A random stream of its own."""
    return torch.Generator().manual_seed(seed)


# Small values of knobs, for fast runs.
FEWER = {
    "rounds": 2, "iterations": 3, "epochs": 2, "steps": 3, "generator_steps": 2, "passes": 2, "distil_steps": 2,
    "server_epochs": 1, "samples": 20, "server_steps": 2, "one_shot_steps": 2, "server_width": 4, "virtual": 20,
    "local_epochs": 2, "local_steps": 2, "latent": 8, "hidden": 8, "images": 16, "adversarial": 1, "width": 4,
}  # fmt: skip


def make_fast_knobs(name):
    """Knobs that make the method fast."""
    return {
        k.name: FEWER[k.name]
        for k in METHODS[name].fields()
        if k.name in FEWER and isinstance(k.default, int)
    }


def make_fast_study_settings(*names):
    """Settings of `study` that are cheap for these methods."""
    settings = {"share": 0.3, "clients": 3, "alpha": 0.5, "epochs": 2, "model": "mlp"}
    for name in names:
        for knob, value in make_fast_knobs(name).items():
            settings[f"{name}.{knob}"] = value
    return settings
