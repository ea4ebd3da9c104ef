"""Runs of FENS in a test: five clients of digits, trained once for all tests that ask for the same training."""

import collections

import method_runs
import torch
from collected_steps import run_and_collect_steps

from fedlab_nb.methods.fens import Fens
from fedlab_nb.training import Recipe

M, C = 5, 10
TRAINED_ONCE = collections.defaultdict(list)
FEDERATIONS: dict = {}  # kept alive, so that no other one gets an id that TRAINED_ONCE knows


def make_context(federation, model="mlp", width=None, epochs=2, dtype=torch.float32, **settings):
    """A run whose clients are trained once for all tests."""
    FEDERATIONS[id(federation)] = federation
    settings |= {"model": model, "width": width, "epochs": epochs, "dtype": dtype}
    remembered = TRAINED_ONCE[id(federation), tuple(settings.items())]
    recipe = Recipe(batch_size=16, lr=0.1, momentum=0, weight_decay=0)
    return method_runs.make_context(federation, recipe=recipe, remembered=remembered, **settings)


def run_fens_and_collect_steps(ctx, **options):
    """The final model and everything that was yielded."""
    return run_and_collect_steps(Fens(**options).run(ctx))


def get_test_images(federation, dtype=torch.float32):
    return federation.dataset.x_test.to(dtype)
