"""Short runs of methods that distil, for their tests: three clients on the digits."""

import functools

import method_runs
import torch
from watched import watched

from fedlab_nb.studies.experiment import finished
from fedlab_nb.training import Recipe

M, C = 3, 10


def logits(*rows):
    return torch.tensor(rows, dtype=torch.float64)


context = functools.partial(method_runs.context, clients=M, share=0.3, recipe=Recipe(batch_size=64))


def finish(method, ctx):
    method.validate(ctx)
    return watched(method.run(ctx))


def trained_clients(ctx):
    return finished(ctx.local_training())
