"""Runs of FENS in a test: five clients of digits, trained once for all tests that ask for the same training."""

import torch
from watched import watched

from fedlab_nb.methods.context import Context
from fedlab_nb.methods.fens import Fens
from fedlab_nb.training import Recipe

M, C = 5, 10
TRAINED_ONCE: dict = {}
FEDERATIONS: dict = {}  # kept alive, so that no other one gets an id that TRAINED_ONCE knows


def context(federation, model="mlp", width=None, epochs=2, dtype=torch.float32, **settings):
    """A run whose clients are trained once for all tests."""
    FEDERATIONS[id(federation)] = federation
    key = (id(federation), model, width, epochs, dtype, tuple(settings.items()))
    architecture = (model, federation.dataset.input_shape, federation.classes, width)
    return Context(
        federation,
        architectures=[architecture] * federation.clients,
        recipe=Recipe(epochs=epochs, batch_size=16, lr=0.1, momentum=0, weight_decay=0),
        seed=settings.pop("seed", 0),
        dtype=dtype,
        recall=lambda: TRAINED_ONCE.get(key),
        remember=lambda clients: TRAINED_ONCE.update({key: [clients.state(k) for k in range(len(clients))]}),
        **settings,
    )


def run(ctx, **options):
    """The final model and everything that was yielded."""
    return watched(Fens(**options).run(ctx))


def x_test(federation, dtype=torch.float32):
    return federation.dataset.x_test.to(dtype)
