"""The iterative methods against each other, against steps written out by hand, and against their byte formulas."""

import copy
import dataclasses

import byte_formulas
import pytest
import torch
import torch.nn.functional as F
from iterative_runs import (
    ALL,
    EXACT,
    HEAVY,
    PLAIN,
    context,
    distance,
    finish,
    local_steps,
    sent_by_round,
)

from fedlab_nb.comm import formulas
from fedlab_nb.errors import RunError
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.dsfl import DSFL
from fedlab_nb.methods.fedadam import FedAdam, FedYogi
from fedlab_nb.methods.fedavg import FedAvg
from fedlab_nb.methods.fedavg_multi import FedAvgMulti
from fedlab_nb.methods.fednova import FedNova
from fedlab_nb.methods.fedprox import FedProx
from fedlab_nb.methods.moon import Moon, make_contrastive_loss
from fedlab_nb.methods.parts.rounds import count_effective_steps
from fedlab_nb.methods.scaffold import Scaffold
from fedlab_nb.models import model_state
from fedlab_nb.training import Recipe


# ------------------------------------------------------------------------------------------- identities
@pytest.mark.parametrize("dtype", [torch.float32, EXACT])
def test_one_round_of_fedavg_is_fedavg_to_the_last_bit(dtype):
    one_shot = finish(FedAvg(), context(dtype=dtype))
    assert (
        distance(one_shot, finish(FedAvgMulti(rounds=1, local_epochs=2), context(dtype=dtype))) == 0
    )


@pytest.mark.parametrize(
    "method", [FedProx(rounds=1), Scaffold(rounds=1), Moon(rounds=1)], ids=lambda m: m.info.name
)
@pytest.mark.parametrize("model", ["mlp", "resnet8"])
def test_what_equals_fedavg_in_round_one(method, model):
    """At θ_t the proximal gradient is 0: FedProx's first step. Control variates are 0; MOON's two features are one."""
    options = {"model": model, "width": 4 if model == "resnet8" else None, "clients": 3}
    recipe = (
        HEAVY
        if not isinstance(method, FedProx)
        else dataclasses.replace(HEAVY, epochs=1, batch_size=10_000)
    )
    method = dataclasses.replace(method, local_epochs=1)
    fedavg = finish(FedAvgMulti(rounds=1, local_epochs=1), context(recipe, **options))
    assert distance(fedavg, finish(method, context(recipe, **options))) == 0


@pytest.mark.parametrize(
    ("method", "tolerance"),
    [(FedProx(rounds=3, local_epochs=2, mu=0), 0), (Moon(rounds=3, local_epochs=2, mu=0), 1e-12)],
    ids=["fedprox", "moon"],
)
@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_without_their_term_they_are_fedavg(method, tolerance, backend):
    fedavg = finish(FedAvgMulti(rounds=3, local_epochs=2), context(backend=backend))
    assert distance(fedavg, finish(method, context(backend=backend))) <= tolerance


@pytest.mark.parametrize("recipe", [PLAIN, HEAVY], ids=["plain", "momentum"])
def test_fednova_with_equal_steps_is_fedavg(recipe):
    one, other = (context(recipe, partition="iid", clients=5) for _ in range(2))
    assert len({-(-n // 32) for n in one.sizes}) == 1
    fedavg = finish(FedAvgMulti(rounds=3, local_epochs=2), other)
    assert (
        distance(finish(FedNova(rounds=3, local_epochs=2, server_momentum=0), one), fedavg) < 1e-12
    )


@pytest.mark.parametrize("few", [0, 2])
@pytest.mark.parametrize("method", ALL, ids=lambda m: m.info.name)
def test_both_backends_agree(method, few):
    method = method(rounds=2, local_epochs=1, per_round=few)
    one, other = (finish(method, context(backend=backend)) for backend in ("loop", "stacked"))
    # An adaptive server divides by the root of a change that may be tiny: rounding is magnified up to 1/τ.
    assert distance(one, other) < 1e-9


# ------------------------------------------------------------------------------------------- the steps, by hand
def test_fedprox_minimises_the_proximal_loss():
    """(μ/2) ‖θ - θ_t‖² differentiated by autograd, in place of a gradient that we add."""
    ctx, mu = context(), 0.7
    state = model_state(ctx.initial_model())
    for t in range(2):
        anchor = list(ctx.new_model(state).parameters())

        def loss(model, x, y, anchor=anchor):
            far = sum(
                (p - a.detach()).square().sum()
                for p, a in zip(model.parameters(), anchor, strict=True)
            )
            return F.cross_entropy(model(x), y) + mu / 2 * far

        state = weighted_mean([local_steps(ctx, k, t, state, loss) for k in range(4)], ctx.sizes)
    assert distance(state, finish(FedProx(rounds=2, local_epochs=2, mu=mu), context())) < 1e-10


def test_scaffolds_control_variate_is_a_mean_gradient_with_momentum_too():
    """Full batches, a tiny rate: the gradient hardly changes on the way, so c_k must be the gradient at θ_0."""
    recipe = Recipe(epochs=5, batch_size=10_000, lr=1e-6, momentum=0.9, weight_decay=0)
    ctx = context(recipe)
    finish(Scaffold(rounds=1, local_epochs=5), ctx)
    for k, (_, change) in enumerate(ctx.messages):
        model = ctx.initial_model()
        x, y = ctx.private.train(k)
        F.cross_entropy(model(x), y).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(change[name], parameter.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("rho", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("tau", [1, 7, 40])
def test_effective_steps_by_the_closed_formula(rho, tau):
    closed = (tau - rho * (1 - rho**tau) / (1 - rho)) / (1 - rho)
    assert count_effective_steps(
        tau, Recipe(epochs=1, batch_size=1, momentum=rho)
    ) == pytest.approx(closed, rel=1e-10)


@pytest.mark.parametrize("few", [0, 2])
@pytest.mark.parametrize(
    ("recipe", "again"), [(HEAVY, 0.5), (PLAIN, 0.0)], ids=["momentum", "plain"]
)
def test_fednova_by_the_formula(recipe, again, few):
    """m ← β_s m + (Σ p a) Σ p (θ_t - θ_k) / a, θ ← θ - m, from what was sent, with a from the closed formula."""
    ctx, beta = context(recipe), recipe.momentum
    end = finish(FedNova(rounds=2, local_epochs=2, server_momentum=again, per_round=few), ctx)
    now = model_state(ctx.initial_model())
    step = dict.fromkeys(now, 0.0)
    for p, sizes, sent in sent_by_round(ctx, few, 2):
        taus = [2 * -(-n // 32) for n in sizes]
        assert few or len(set(taus)) > 1
        a = [(tau - beta * (1 - beta**tau) / (1 - beta)) / (1 - beta) for tau in taus]
        reach = sum(w * n for w, n in zip(p, a, strict=True))
        for name in now:
            mean = sum(
                w * (now[name] - state[name]) / n for w, state, n in zip(p, sent, a, strict=True)
            )
            step[name] = again * step[name] + reach * mean
            now[name] = now[name] - step[name]
    assert distance(end, now) < 1e-12


@pytest.mark.parametrize("few", [0, 2])
@pytest.mark.parametrize("method", [FedAdam, FedYogi], ids=lambda m: m.info.name)
def test_adaptive_servers_by_hand(method, few):
    """Two rounds: m and v of one number at a time, from what the clients sent."""
    ctx = context()
    end = finish(method(rounds=2, local_epochs=2, eta_s=0.02, tau=1e-2, per_round=few), ctx)
    rounds = list(sent_by_round(ctx, few, 2))
    for name, now in model_state(ctx.initial_model()).items():
        m = v = 0.0
        for p, _, sent in rounds:
            delta = sum(w * (state[name] - now) for w, state in zip(p, sent, strict=True))
            m = 0.9 * m + 0.1 * delta
            if method is FedAdam:
                v = 0.99 * v + 0.01 * delta**2
            else:
                v = v - 0.01 * delta**2 * torch.sign(v - delta**2)
            now = now + 0.02 * m / (v**0.5 + 1e-2)
        torch.testing.assert_close(end[name], now, rtol=0, atol=1e-12)


def test_moons_loss_by_hand():
    """Along the global features, across the previous ones, τ = 0.5: -log(e² / (e² + 1)) and CE."""
    z = torch.tensor([[2.0, 0.0], [0.0, 3.0]], dtype=EXACT)
    pairs = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 5.0], [0.0, 1.0]]], dtype=EXACT)
    logits, labels = torch.zeros(2, 4, dtype=EXACT), torch.tensor([0, 3])
    e2, four = torch.tensor(2.0, dtype=EXACT).exp(), torch.tensor(4.0, dtype=EXACT).log()
    expected = torch.stack(
        [four - 3 * (e2 / (e2 + 1)).log(), four + 3 * torch.tensor(2.0, dtype=EXACT).log()]
    )
    torch.testing.assert_close(make_contrastive_loss(3.0, 0.5)(z, logits, labels, pairs), expected)


# ------------------------------------------------------------------------------------------- batch norm, bytes, errors
@pytest.mark.parametrize("method", ALL, ids=lambda m: m.info.name)
def test_batch_norms_statistics_are_averaged_and_bytes_follow_the_formula(method):
    ctx = context(model="resnet8", width=4, clients=3, dtype=torch.float32)
    end = finish(method(rounds=2, local_epochs=1), ctx)
    sent = [payload[0] if method is Scaffold else payload for payload in ctx.messages[3:]]
    mean = weighted_mean(sent, ctx.sizes)
    module = ctx.initial_model()
    statistics = [name for name in end if name not in dict(module.named_parameters())]
    assert len(statistics) > 10
    for name in statistics:
        torch.testing.assert_close(end[name], mean[name], rtol=1e-6, atol=1e-7)
        assert "var" not in name or bool((end[name] > 0).all())
    d, parameters = (
        sum(t.numel() for t in end.values()),
        sum(p.numel() for p in module.parameters()),
    )
    each = formulas.count_iterative_bytes_per_client(d, 2)
    if method is Scaffold:  # control variates belong to parameters only
        each += formulas.count_iterative_bytes_per_client(parameters, 2)
    assert all(up + down == each for up, down in ctx.link.ledger.by_client().values())


@pytest.mark.parametrize("compression", ["half", "ternary"])
@pytest.mark.parametrize(("model", "width"), [("mlp", None), ("resnet8", 4)])
def test_compressed_bytes_follow_the_formula(compression, model, width):
    rounds = 3
    ctx = context(model=model, width=width, clients=3, dtype=torch.float32)
    end = finish(FedAvgMulti(rounds=rounds, local_epochs=1, compression=compression, keep=0.5), ctx)
    parameters = sum(p.numel() for p in ctx.initial_model().parameters())
    d = sum(t.numel() for t in end.values())
    sparse = byte_formulas.sparse_bytes(parameters, round(parameters / 2), compression == "ternary")
    message = sparse + 4 * (d - parameters)
    for up, down in ctx.link.ledger.by_client().values():
        assert up == rounds * message
        assert down == 4 * d + (rounds - 1) * message


def test_compression_that_keeps_everything_is_fedavg_to_16_bits():
    fedavg = finish(FedAvgMulti(rounds=1, local_epochs=2), context())
    whole = finish(FedAvgMulti(rounds=1, local_epochs=2, compression="half", keep=1.0), context())
    assert 0 < distance(fedavg, whole) < 1e-3


def test_server_and_clients_go_on_from_the_same_model():
    """What is compressed is decoded alike at both ends: with frozen clients nothing but the start remains."""
    recipe = dataclasses.replace(PLAIN, lr=1e-30)
    ctx = context(recipe)
    end = finish(FedAvgMulti(rounds=3, local_epochs=2, compression="ternary", keep=0.1), ctx)
    assert distance(end, model_state(ctx.initial_model())) < 1e-20


def test_divergence_is_told_with_the_rate():
    wild = dataclasses.replace(
        PLAIN, lr=90.0, weight_decay=10
    )  # every step multiplies the weights by -899
    with pytest.raises(RunError, match="lr=90"):
        finish(FedAvgMulti(rounds=3, local_epochs=2), context(wild, dtype=torch.float32))


@pytest.mark.parametrize("rounds", [1, 7, 41])
def test_a_curve_has_about_twenty_points(rounds):
    steps = list(
        FedAvgMulti(rounds=rounds, local_epochs=1).run(context(clients=2, dtype=torch.float32))
    )
    shown = [step for step in steps if step.model is not None]
    assert min(rounds, 20) <= len(shown) <= 25 and steps[-1] is shown[-1]
    assert steps[-1].done == steps[-1].total == rounds
    assert all(step.done <= later.done for step, later in zip(steps, steps[1:], strict=False))


@pytest.mark.parametrize(
    "method",
    [FedAvgMulti(rounds=2, local_epochs=1), DSFL(rounds=2, local_epochs=1, distil_steps=7)],
)
def test_snapshots_are_left_alone_by_later_rounds(method):
    snapshots = []
    for step in method.run(context(clients=2)):
        if step.model is not None:
            snapshots.append((step.model, copy.deepcopy(model_state(step.model.module))))
    assert len(snapshots) == 2
    assert all(distance(model_state(model.module), before) == 0 for model, before in snapshots)
