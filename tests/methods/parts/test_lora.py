"""Low-rank updates sent once: which weights change, bytes, full rank as plain training; and the bound on one round."""

import functools

import method_runs
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedavg import FedAvg
from fedlab_nb.models import copy_model_state
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe

PLAIN = Recipe(weight_decay=0.0)
context = functools.partial(method_runs.make_context, recipe=PLAIN, dtype=torch.float64, alpha=10)
HIDDEN = {"body.0.1.weight": (64, 64), "body.1.0.weight": (32, 64)}


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_only_low_rank_updates_of_matrices_and_the_last_layer_are_trained(backend):
    ctx = context(backend=backend)
    start = copy_model_state(ctx.initial_model())
    end = copy_model_state(exhaust_generator(FedAvg(rank=3).run(ctx)).module)
    for name in start:
        if name in HIDDEN:
            assert torch.linalg.matrix_rank(end[name] - start[name], rtol=1e-9) == 3
        else:
            assert torch.equal(start[name], end[name]) != name.startswith("classifier"), name
    sent = 8 * (3 * (64 + 32) + 32 * 10 + 10)
    assert {up for up, _ in ctx.link.ledger.by_client().values()} == {sent}


def test_backends_agree_and_full_rank_equals_plain_training_of_the_matrices():
    """Against a loop in plain PyTorch that does not train the hidden biases."""
    states = {}
    for backend in ("loop", "stacked"):
        model = exhaust_generator(FedAvg(rank=64).run(context(backend=backend)))
        states[backend] = model.module.state_dict()
    for name, value in states["loop"].items():
        torch.testing.assert_close(states["stacked"][name], value, rtol=1e-9, atol=1e-10)
    ctx = context(clients=1, epochs=1)
    trained = exhaust_generator(FedAvg(rank=64).run(ctx)).module.state_dict()
    ctx = context(clients=1, epochs=1)
    model, (x, y) = ctx.initial_model(), ctx.private.train(0)
    trained_parameters = [
        p for name, p in model.named_parameters() if name in HIDDEN or name.startswith("classifier")
    ]
    velocities = [torch.zeros_like(p) for p in trained_parameters]
    order = torch.randperm(len(x), generator=make_torch_generator(0, "batches", 0))
    for rows in order.split(PLAIN.batch_size):
        gradients = torch.autograd.grad(
            torch.nn.functional.cross_entropy(model(x[rows]), y[rows]), trained_parameters
        )
        for p, velocity, gradient in zip(trained_parameters, velocities, gradients, strict=True):
            velocity.mul_(PLAIN.momentum).add_(gradient)
            p.data.sub_(PLAIN.lr * velocity)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(trained[name], value, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "setting, words",
    [({"init": "different"}, "init=same"), ({"model": "cnn2"}, "batch norm"),
     ({"recipe": Recipe(optimizer="adam")}, "optimizer=sgd")],
)  # fmt: skip
def test_impossible_settings_are_refused(setting, words):
    with pytest.raises(UsageError, match=words):
        FedAvg(rank=2).validate(context(**setting))


# ------------------------------------------------------------------------------------------------ one round or many
def run_fedavg(gradients, w0, rate, steps, rounds):
    """The end of FedAvg with `steps` of gradient descent a round, and the largest distance of a client from w0."""
    w = w0
    largest_distance = 0.0
    for _ in range(rounds):
        client_weights = [w] * len(gradients)
        for _ in range(steps):
            client_weights = [
                v - rate * gradient(v)
                for v, gradient in zip(client_weights, gradients, strict=True)
            ]
            distances = [np.linalg.norm(v - w0) for v in client_weights]
            largest_distance = max(largest_distance, *distances)
        w = np.mean(client_weights, 0)
    return w, largest_distance


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 5),
    st.integers(1, 4),
    st.integers(1, 5),
    st.floats(0.01, 0.3),
    st.integers(0, 10**6),
)
def test_one_round_is_as_near_to_many_as_the_bound_says(clients, rounds, steps, rate, seed):
    """Quadratic losses, whose smoothness is the largest eigenvalue of their Hessians."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(clients, 3, 3))
    hessians = roots @ roots.transpose(0, 2, 1)
    minima = rng.normal(size=(clients, 3))
    w0 = rng.normal(size=3)
    gradients = [lambda w, h=h, c=c: h @ (w - c) for h, c in zip(hessians, minima, strict=True)]
    many_rounds, distance = run_fedavg(gradients, w0, rate, steps, rounds)
    one_round, distance_in_one = run_fedavg(gradients, w0, rate, rounds * steps, 1)
    smoothness = max(np.linalg.eigvalsh(h)[-1] for h in hessians)
    gap = np.linalg.norm(one_round - many_rounds)
    # 2 η L τ T k, where τ is the largest distance from w0.
    bound = 2 * rate * smoothness * max(distance, distance_in_one) * rounds * steps
    assert gap <= bound + 1e-12
    if rounds == 1:
        assert gap == 0
    # With one Hessian for all clients, averaging and gradient descent commute.
    gradients = [lambda w, c=c: hessians[0] @ (w - c) for c in minima]
    many_rounds, _ = run_fedavg(gradients, w0, rate, steps, rounds)
    one_round, _ = run_fedavg(gradients, w0, rate, rounds * steps, 1)
    np.testing.assert_allclose(many_rounds, one_round)
