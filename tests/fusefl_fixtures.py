"""Small FuseFL runs for the tests of the method and of its lab."""

import torch

from fedlab_nb.data import federate
from fedlab_nb.methods.context import Context
from fedlab_nb.training import Recipe

EXACT = torch.float64
TABLE_4 = {  # conv, MiB: {clients: {K: storage}}; typed in once more, so that no slip in the package passes
    5: {2: 53.71, 4: 55.38, 8: 68.08},
    10: {2: 42.32, 4: 44.92, 8: 64.77},
    20: {2: 42.13, 4: 47.22, 8: 86.11},
    50: {2: 45.48, 4: 58.63, 8: 159.08},
}
TABLE_13 = {  # conv, MiB
    5: {2: 268.55, 4: 276.9, 8: 340.4},
    10: {2: 423.2, 4: 449.2, 8: 647.7},
    20: {2: 842.6, 4: 944.4, 8: 1722.2},
    50: {2: 2274.0, 4: 2931.5, 8: 7954.0},
}


def make_context(
    clients=3,
    seed=0,
    epochs=4,
    dtype=EXACT,
    model="mlp",
    width=16,
    backend="loop",
    init="same",
    data="digits",
):
    """A small federation of the digits; `model` may name several architectures, dealt out in turn."""
    federation = federate(data, share=0.3, alpha=0.5, clients=clients, seed=seed)
    shape = federation.dataset.input_shape
    names = model.split(",")
    architectures = [
        (names[k % len(names)], shape, federation.classes, width) for k in range(clients)
    ]
    recipe = Recipe(epochs=epochs, batch_size=64, lr=0.02)
    return Context(
        federation, architectures=architectures, recipe=recipe, seed=seed, holdout=0, dtype=dtype, backend=backend,
        init=init,
    )  # fmt: skip


def record_uploads_by_phase(ctx):
    """Everything that goes up the link of `ctx`, by phase: {phase: [payload of client 0, ...]}."""
    sent = {}
    up = ctx.link.up

    def record(client, payload, *, phase):
        sent.setdefault(phase, []).append(payload)
        return up(client, payload, phase=phase)

    ctx.link.up = record
    return sent


def make_random_samples(n=20, dtype=EXACT):
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(5)).to(dtype)
