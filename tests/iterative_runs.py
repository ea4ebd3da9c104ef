"""Runs of the iterative methods for tests: a small federation, recipes, and a client's steps by torch's own SGD."""

import torch

from fedlab_nb.data import federate
from fedlab_nb.methods.context import Context
from fedlab_nb.methods.fedadam import FedAdam, FedYogi
from fedlab_nb.methods.fedavg_multi import FedAvgMulti
from fedlab_nb.methods.fednova import FedNova
from fedlab_nb.methods.fedprox import FedProx
from fedlab_nb.methods.moon import Moon
from fedlab_nb.methods.parts.rounds import Rounds
from fedlab_nb.methods.scaffold import Scaffold
from fedlab_nb.models import copy_model_state
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe

EXACT = torch.float64
ALL = [FedAvgMulti, FedProx, Scaffold, FedNova, FedAdam, FedYogi, Moon]
PLAIN = Recipe(epochs=2, batch_size=32, lr=0.05, momentum=0, weight_decay=0)
HEAVY = Recipe(epochs=2, batch_size=32, lr=0.05, momentum=0.9, weight_decay=1e-3)


def make_context(
    recipe=HEAVY,
    model="mlp",
    width=None,
    alpha=0.3,
    clients=4,
    dtype=EXACT,
    partition="dirichlet",
    **more,
):
    federation = federate(
        "digits", alpha=alpha, clients=clients, seed=0, partition=partition, share=0.3
    )
    architecture = (model, federation.dataset.input_shape, federation.classes, width)
    ctx = Context(
        federation,
        architectures=[architecture] * clients,
        recipe=recipe,
        seed=0,
        dtype=dtype,
        **more,
    )
    ctx.messages = []  # every message to the server, in order
    up = ctx.link.up
    ctx.link.up = lambda k, payload, phase: (
        ctx.messages.append(up(k, payload, phase=phase)) or ctx.messages[-1]
    )
    return ctx


def run_to_final_state(method, ctx):
    """Run a method to its end; returns the final state."""
    return copy_model_state(exhaust_generator(method.run(ctx)).module)


def compute_largest_difference(state, other_state):
    assert state.keys() == other_state.keys()
    return max(float((state[name] - other_state[name]).abs().max()) for name in state)


def draw_participants_of_rounds(ctx, m, rounds):
    """S_t of every round: the clients that take part."""
    loop = Rounds(ctx, FedAvgMulti(rounds=rounds, per_round=m, local_epochs=2))
    return [list(loop.draw_and_set_participants(t)) for t in range(rounds)]


def iterate_uploads_by_round(ctx, m, rounds):
    """Of each round of a run that is over: p_k and n_k of those who took part, and what they sent."""
    messages = iter(ctx.messages)
    for chosen in draw_participants_of_rounds(ctx, m, rounds):
        sizes = [ctx.sizes[k] for k in chosen]
        yield [n / sum(sizes) for n in sizes], sizes, [next(messages) for _ in chosen]


def train_client_by_torch_sgd(ctx, k, t, start, loss):
    """Client k's local epochs of round t from `start`, by torch's own SGD on `loss(model, x, y)`."""
    model = ctx.new_model(start)
    model.train()
    recipe = ctx.recipe
    (x, y) = ctx.private.train(k)
    sgd = torch.optim.SGD(
        model.parameters(), recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay
    )
    stream = make_torch_generator(0, "batches" if t == 0 else f"batches of round {t}", k)
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(y), generator=stream).split(recipe.batch_size):
            sgd.zero_grad()
            loss(model, x[batch], y[batch]).backward()
            sgd.step()
    return copy_model_state(model)
