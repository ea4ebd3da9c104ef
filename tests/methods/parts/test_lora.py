"""Low-rank changes sent once: what moves, what is sent, full rank is plain training; and the bound on one round."""

import functools

import method_runs
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedavg import FedAvg
from fedlab_nb.models import model_state
from fedlab_nb.rng import generator
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe

PLAIN = Recipe(weight_decay=0.0)
context = functools.partial(method_runs.context, recipe=PLAIN, dtype=torch.float64, alpha=10)
HIDDEN = {"body.0.1.weight": (64, 64), "body.1.0.weight": (32, 64)}


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_only_matrices_of_that_rank_and_the_last_layer_move(backend):
    ctx = context(backend=backend)
    start, end = (
        model_state(ctx.initial_model()),
        model_state(exhaust_generator(FedAvg(rank=3).run(ctx)).module),
    )
    for name in start:
        if name in HIDDEN:
            assert torch.linalg.matrix_rank(end[name] - start[name], rtol=1e-9) == 3
        else:
            assert torch.equal(start[name], end[name]) != name.startswith("classifier"), name
    sent = 8 * (3 * (64 + 32) + 32 * 10 + 10)
    assert {up for up, _ in ctx.link.ledger.by_client().values()} == {sent}


def test_backends_agree_and_full_rank_is_training_of_the_matrices_themselves():
    """Against a loop in plain PyTorch, whose biases stay."""
    by = {
        b: exhaust_generator(FedAvg(rank=64).run(context(backend=b))).module.state_dict()
        for b in ("loop", "stacked")
    }
    for name, value in by["loop"].items():
        torch.testing.assert_close(by["stacked"][name], value, rtol=1e-9, atol=1e-10)
    ctx = context(clients=1, epochs=1)
    trained = exhaust_generator(FedAvg(rank=64).run(ctx)).module.state_dict()
    ctx = context(clients=1, epochs=1)
    model, (x, y) = ctx.initial_model(), ctx.private.train(0)
    moving = [
        p for name, p in model.named_parameters() if name in HIDDEN or name.startswith("classifier")
    ]
    speeds = [torch.zeros_like(p) for p in moving]
    order = torch.randperm(len(x), generator=generator(0, "batches", 0))
    for rows in order.split(PLAIN.batch_size):
        slopes = torch.autograd.grad(
            torch.nn.functional.cross_entropy(model(x[rows]), y[rows]), moving
        )
        for p, speed, slope in zip(moving, speeds, slopes, strict=True):
            speed.mul_(PLAIN.momentum).add_(slope)
            p.data.sub_(PLAIN.lr * speed)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(trained[name], value, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "setting, words",
    [({"init": "different"}, "init=same"), ({"model": "cnn2"}, "batch norm"),
     ({"recipe": Recipe(optimizer="adam")}, "optimizer=sgd")],
)  # fmt: skip
def test_refused(setting, words):
    with pytest.raises(UsageError, match=words):
        FedAvg(rank=2).validate(context(**setting))


# ------------------------------------------------------------------------------------------------ one round or many
def paths(gradients, w0, rate, steps, rounds):
    """The end of FedAvg with gradient descent, and the greatest distance of a client from w0; rounds of `steps`."""
    w, far = w0, 0.0
    for _ in range(rounds):
        client_weights = [w] * len(gradients)
        for _ in range(steps):
            client_weights = [
                v - rate * gradient(v)
                for v, gradient in zip(client_weights, gradients, strict=True)
            ]
            far = max(far, *(np.linalg.norm(v - w0) for v in client_weights))
        w = np.mean(client_weights, 0)
    return w, far


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 5),
    st.integers(1, 4),
    st.integers(1, 5),
    st.floats(0.01, 0.3),
    st.integers(0, 10**6),
)
def test_one_round_is_no_farther_from_many_than_the_bound(clients, rounds, steps, rate, seed):
    """Quadratic losses, whose smoothness is the largest eigenvalue."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(clients, 3, 3))
    curves, goals, w0 = (
        roots @ roots.transpose(0, 2, 1),
        rng.normal(size=(clients, 3)),
        rng.normal(size=3),
    )
    gradients = [lambda w, h=h, c=c: h @ (w - c) for h, c in zip(curves, goals, strict=True)]
    many, far = paths(gradients, w0, rate, steps, rounds)
    one, moved = paths(gradients, w0, rate, rounds * steps, 1)
    smooth = max(np.linalg.eigvalsh(h)[-1] for h in curves)
    gap = np.linalg.norm(one - many)
    assert gap <= 2 * rate * smooth * max(far, moved) * rounds * steps + 1e-12  # 2 η L τ T k ‖w_0‖
    if rounds == 1:
        assert gap == 0
    alike = [
        lambda w, c=c: curves[0] @ (w - c) for c in goals
    ]  # one curvature: averaging and descent commute
    np.testing.assert_allclose(
        paths(alike, w0, rate, steps, rounds)[0], paths(alike, w0, rate, rounds * steps, 1)[0]
    )
