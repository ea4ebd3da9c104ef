"""The iterative methods: where they equal FedAvg, their steps by hand, their bytes, and what a run yields."""

import copy
import dataclasses
import math

import byte_formulas
import pytest
import torch
import torch.nn.functional as F
from iterative_runs import (
    ALL,
    EXACT,
    HEAVY,
    PLAIN,
    compute_largest_difference,
    iterate_uploads_by_round,
    make_context,
    run_to_final_state,
    train_client_by_torch_sgd,
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
from fedlab_nb.models import copy_model_state
from fedlab_nb.training import Recipe


# ------------------------------------------------------------------------------------------- identities
@pytest.mark.parametrize("dtype", [torch.float32, EXACT])
def test_one_round_of_fedavg_is_fedavg_to_the_last_bit(dtype):
    one_shot = run_to_final_state(FedAvg(), make_context(dtype=dtype))
    assert (
        compute_largest_difference(
            one_shot,
            run_to_final_state(FedAvgMulti(rounds=1, local_epochs=2), make_context(dtype=dtype)),
        )
        == 0
    )


@pytest.mark.parametrize(
    "method", [FedProx(rounds=1), Scaffold(rounds=1), Moon(rounds=1)], ids=lambda m: m.info.name
)
@pytest.mark.parametrize("model", ["mlp", "resnet8"])
def test_in_round_one_they_equal_fedavg(method, model):
    """FedProx's first step starts at θ_t, where its proximal gradient is 0; SCAFFOLD's control variates are 0; MOON's
    previous and global features are the same."""
    options = {"model": model, "width": 4 if model == "resnet8" else None, "clients": 3}
    recipe = HEAVY
    if isinstance(method, FedProx):
        recipe = dataclasses.replace(HEAVY, epochs=1, batch_size=10_000)  # one step
    method = dataclasses.replace(method, local_epochs=1)
    fedavg = run_to_final_state(
        FedAvgMulti(rounds=1, local_epochs=1), make_context(recipe, **options)
    )
    assert (
        compute_largest_difference(
            fedavg, run_to_final_state(method, make_context(recipe, **options))
        )
        == 0
    )


@pytest.mark.parametrize(
    ("method", "tolerance"),
    [(FedProx(rounds=3, local_epochs=2, mu=0), 0), (Moon(rounds=3, local_epochs=2, mu=0), 1e-12)],
    ids=["fedprox", "moon"],
)
@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_without_its_additional_term_a_method_is_fedavg(method, tolerance, backend):
    fedavg = run_to_final_state(
        FedAvgMulti(rounds=3, local_epochs=2), make_context(backend=backend)
    )
    assert (
        compute_largest_difference(
            fedavg, run_to_final_state(method, make_context(backend=backend))
        )
        <= tolerance
    )


@pytest.mark.parametrize("recipe", [PLAIN, HEAVY], ids=["plain", "momentum"])
def test_fednova_with_equal_steps_is_fedavg(recipe):
    ctx = make_context(recipe, partition="iid", clients=5)
    assert len({-(-n // 32) for n in ctx.sizes}) == 1  # equal numbers of batches
    fednova = run_to_final_state(FedNova(rounds=3, local_epochs=2, server_momentum=0), ctx)
    same_ctx = make_context(recipe, partition="iid", clients=5)
    fedavg = run_to_final_state(FedAvgMulti(rounds=3, local_epochs=2), same_ctx)
    assert compute_largest_difference(fednova, fedavg) < 1e-12


@pytest.mark.parametrize("per_round", [0, 2])
@pytest.mark.parametrize("method", ALL, ids=lambda m: m.info.name)
def test_both_backends_agree(method, per_round):
    method = method(rounds=2, local_epochs=1, per_round=per_round)
    looped = run_to_final_state(method, make_context(backend="loop"))
    stacked = run_to_final_state(method, make_context(backend="stacked"))
    # An adaptive server divides by the root of a change that may be tiny: rounding is magnified up to 1/τ.
    assert compute_largest_difference(looped, stacked) < 1e-9


# ------------------------------------------------------------------------------------------- the steps, by hand
def test_fedprox_minimises_the_proximal_loss():
    """Autograd differentiates (μ/2) ‖θ - θ_t‖²; the method adds its gradient."""
    ctx = make_context()
    mu = 0.7
    state = copy_model_state(ctx.initial_model())
    for t in range(2):
        anchor = list(ctx.new_model(state).parameters())

        def loss(model, x, y, anchor=anchor):
            squared_distance = sum(
                (p - a.detach()).square().sum()
                for p, a in zip(model.parameters(), anchor, strict=True)
            )
            return F.cross_entropy(model(x), y) + mu / 2 * squared_distance

        state = weighted_mean(
            [train_client_by_torch_sgd(ctx, k, t, state, loss) for k in range(4)], ctx.sizes
        )
    assert (
        compute_largest_difference(
            state, run_to_final_state(FedProx(rounds=2, local_epochs=2, mu=mu), make_context())
        )
        < 1e-10
    )


def test_scaffolds_control_variate_is_a_mean_gradient_even_with_momentum():
    """With full batches and a tiny rate the gradient hardly changes, so c_k must be the gradient at θ_0."""
    recipe = Recipe(epochs=5, batch_size=10_000, lr=1e-6, momentum=0.9, weight_decay=0)
    ctx = make_context(recipe)
    run_to_final_state(Scaffold(rounds=1, local_epochs=5), ctx)
    for k, (_, change) in enumerate(ctx.messages):
        model = ctx.initial_model()
        x, y = ctx.private.train(k)
        F.cross_entropy(model(x), y).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(change[name], parameter.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("rho", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("tau", [1, 7, 40])
def test_effective_steps_follow_the_closed_formula(rho, tau):
    closed = (tau - rho * (1 - rho**tau) / (1 - rho)) / (1 - rho)
    assert count_effective_steps(
        tau, Recipe(epochs=1, batch_size=1, momentum=rho)
    ) == pytest.approx(closed, rel=1e-10)


@pytest.mark.parametrize("per_round", [0, 2])
@pytest.mark.parametrize(
    ("recipe", "server_momentum"), [(HEAVY, 0.5), (PLAIN, 0.0)], ids=["momentum", "plain"]
)
def test_fednova_follows_its_formula(recipe, server_momentum, per_round):
    """m ← β_s m + (Σ p a) Σ p (θ_t - θ_k) / a, θ ← θ - m, from the clients' messages, with a by the closed formula."""
    ctx = make_context(recipe)
    beta = recipe.momentum
    method = FedNova(rounds=2, local_epochs=2, server_momentum=server_momentum, per_round=per_round)
    end = run_to_final_state(method, ctx)
    theta = copy_model_state(ctx.initial_model())
    m = dict.fromkeys(theta, 0.0)
    for p, sizes, client_states in iterate_uploads_by_round(ctx, per_round, 2):
        taus = [2 * -(-n // 32) for n in sizes]
        assert per_round or len(set(taus)) > 1
        a = [(tau - beta * (1 - beta**tau) / (1 - beta)) / (1 - beta) for tau in taus]
        effective_steps = sum(p_k * a_k for p_k, a_k in zip(p, a, strict=True))
        for name in theta:
            mean_change = 0.0
            for p_k, a_k, state in zip(p, a, client_states, strict=True):
                mean_change = mean_change + p_k * (theta[name] - state[name]) / a_k
            m[name] = server_momentum * m[name] + effective_steps * mean_change
            theta[name] = theta[name] - m[name]
    assert compute_largest_difference(end, theta) < 1e-12


@pytest.mark.parametrize("per_round", [0, 2])
@pytest.mark.parametrize("method", [FedAdam, FedYogi], ids=lambda m: m.info.name)
def test_adaptive_servers_follow_their_formulas(method, per_round):
    """Two rounds: m and v of one tensor at a time, from the clients' messages."""
    ctx = make_context()
    final_state = run_to_final_state(
        method(rounds=2, local_epochs=2, eta_s=0.02, tau=1e-2, per_round=per_round), ctx
    )
    rounds = list(iterate_uploads_by_round(ctx, per_round, 2))
    for name, theta in copy_model_state(ctx.initial_model()).items():
        m = v = 0.0
        for p, _, client_states in rounds:
            delta = sum(
                p_k * (state[name] - theta) for p_k, state in zip(p, client_states, strict=True)
            )
            m = 0.9 * m + 0.1 * delta
            if method is FedAdam:
                v = 0.99 * v + 0.01 * delta**2
            else:
                v = v - 0.01 * delta**2 * torch.sign(v - delta**2)
            theta = theta + 0.02 * m / (v**0.5 + 1e-2)
        torch.testing.assert_close(final_state[name], theta, rtol=0, atol=1e-12)


def test_moons_loss_by_hand():
    """τ = 0.5. Sample 1: parallel to the global features, orthogonal to the previous ones, -log(e² / (e² + 1));
    sample 2: parallel to both, log 2. The cross-entropy of four equal logits is log 4."""
    z = torch.tensor([[2.0, 0.0], [0.0, 3.0]], dtype=EXACT)
    pairs = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 5.0], [0.0, 1.0]]], dtype=EXACT)
    logits = torch.zeros(2, 4, dtype=EXACT)
    labels = torch.tensor([0, 3])
    e2 = math.exp(2)
    first = math.log(4) - 3 * math.log(e2 / (e2 + 1))
    second = math.log(4) + 3 * math.log(2)
    expected = torch.tensor([first, second], dtype=EXACT)
    torch.testing.assert_close(make_contrastive_loss(3.0, 0.5)(z, logits, labels, pairs), expected)


# ------------------------------------------------------------------------------------------- batch norm, bytes, errors
@pytest.mark.slow
@pytest.mark.parametrize("method", ALL, ids=lambda m: m.info.name)
def test_batch_norm_statistics_are_averaged_and_bytes_follow_the_formula(method):
    ctx = make_context(model="resnet8", width=4, clients=3, dtype=torch.float32)
    end = run_to_final_state(method(rounds=2, local_epochs=1), ctx)
    messages = ctx.messages[3:]  # of the second round
    if method is Scaffold:
        messages = [state for state, _ in messages]
    mean = weighted_mean(messages, ctx.sizes)
    module = ctx.initial_model()
    statistics = [name for name in end if name not in dict(module.named_parameters())]
    assert len(statistics) > 10
    for name in statistics:
        torch.testing.assert_close(end[name], mean[name], rtol=1e-6, atol=1e-7)
        assert "var" not in name or bool((end[name] > 0).all())
    d = sum(t.numel() for t in end.values())
    parameters = sum(p.numel() for p in module.parameters())
    expected = formulas.count_iterative_bytes_per_client(d, 2)
    if method is Scaffold:  # only parameters have control variates
        expected += formulas.count_iterative_bytes_per_client(parameters, 2)
    assert all(up + down == expected for up, down in ctx.link.ledger.by_client().values())


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["half", "ternary"])
@pytest.mark.parametrize(("model", "width"), [("mlp", None), ("resnet8", 4)])
def test_compressed_bytes_follow_the_formula(compression, model, width):
    rounds = 3
    ctx = make_context(model=model, width=width, clients=3, dtype=torch.float32)
    end = run_to_final_state(
        FedAvgMulti(rounds=rounds, local_epochs=1, compression=compression, keep=0.5), ctx
    )
    parameters = sum(p.numel() for p in ctx.initial_model().parameters())
    d = sum(t.numel() for t in end.values())
    sparse = byte_formulas.count_sparse_message_bytes(
        parameters, round(parameters / 2), compression == "ternary"
    )
    message = sparse + 4 * (d - parameters)
    for up, down in ctx.link.ledger.by_client().values():
        assert up == rounds * message
        assert down == 4 * d + (rounds - 1) * message


def test_compression_that_keeps_everything_is_fedavg_to_16_bits():
    fedavg = run_to_final_state(FedAvgMulti(rounds=1, local_epochs=2), make_context())
    compressed = run_to_final_state(
        FedAvgMulti(rounds=1, local_epochs=2, compression="half", keep=1.0), make_context()
    )
    assert 0 < compute_largest_difference(fedavg, compressed) < 1e-3


def test_server_and_clients_decode_the_same_model():
    """With clients that do not learn, every round must end at the initial model, whatever the compression lost."""
    recipe = dataclasses.replace(PLAIN, lr=1e-30)
    ctx = make_context(recipe)
    end = run_to_final_state(
        FedAvgMulti(rounds=3, local_epochs=2, compression="ternary", keep=0.1), ctx
    )
    assert compute_largest_difference(end, copy_model_state(ctx.initial_model())) < 1e-20


def test_divergence_is_an_error_that_names_the_learning_rate():
    # Every step multiplies the weights by -899.
    diverging = dataclasses.replace(PLAIN, lr=90.0, weight_decay=10)
    with pytest.raises(RunError, match="lr=90"):
        run_to_final_state(
            FedAvgMulti(rounds=3, local_epochs=2), make_context(diverging, dtype=torch.float32)
        )


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 7, 41])
def test_a_curve_has_about_twenty_points(rounds):
    steps = list(
        FedAvgMulti(rounds=rounds, local_epochs=1).run(make_context(clients=2, dtype=torch.float32))
    )
    points = [step for step in steps if step.model is not None]
    assert min(rounds, 20) <= len(points) <= 25 and steps[-1] is points[-1]
    assert steps[-1].done == steps[-1].total == rounds
    assert all(step.done <= later.done for step, later in zip(steps, steps[1:], strict=False))


@pytest.mark.parametrize(
    "method",
    [FedAvgMulti(rounds=2, local_epochs=1), DSFL(rounds=2, local_epochs=1, distil_steps=7)],
)
def test_later_rounds_do_not_change_earlier_snapshots(method):
    snapshots = []
    for step in method.run(make_context(clients=2)):
        if step.model is not None:
            snapshots.append((step.model, copy.deepcopy(copy_model_state(step.model.module))))
    assert len(snapshots) == 2
    assert all(
        compute_largest_difference(copy_model_state(model.module), before) == 0
        for model, before in snapshots
    )
