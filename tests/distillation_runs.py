"""Short runs of methods that distil, for their tests: three clients on the digits."""

import torch
from watched import watched

from fedlab_nb.data import federate
from fedlab_nb.methods.context import Context
from fedlab_nb.study.experiment import finished
from fedlab_nb.training import Recipe

M, C = 3, 10


def logits(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def context(model="mlp", width=None, federation=None, **options):
    federation = federation or federate("digits", alpha=0.5, clients=M, seed=0)
    architecture = (model, federation.dataset.input_shape, federation.classes, width)
    recipe = Recipe(epochs=2, batch_size=64)
    return Context(federation, architectures=[architecture] * federation.clients, recipe=recipe, seed=0, **options)


def finish(method, ctx):
    method.validate(ctx)
    return watched(method.run(ctx))


def trained_clients(ctx):
    return finished(ctx.local_training())
