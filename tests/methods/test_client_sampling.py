"""Client sampling, m clients a round: the draw, the bytes, and each method's update formulas written out."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from iterative_runs import (
    ALL,
    PLAIN,
    compute_largest_difference,
    draw_participants_of_rounds,
    make_context,
    run_to_final_state,
    train_client_by_torch_sgd,
)

from fedlab_nb.comm import count_payload_bytes
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.fedavg_multi import FedAvgMulti
from fedlab_nb.methods.fednova import FedNova
from fedlab_nb.methods.moon import Moon
from fedlab_nb.methods.scaffold import Scaffold
from fedlab_nb.models import copy_model_state

TWO_CLIENTS = {"clients": 2, "alpha": 0.5}


def cross_entropy(model, x, y):
    return F.cross_entropy(model(x), y)


def test_every_round_draws_afresh_and_every_client_is_equally_likely():
    """Uniform, whatever the sizes: 2 of 6 clients a round in 300 rounds give each client 100 rounds, standard deviation
    8.2; the bound is four of them."""
    rounds = draw_participants_of_rounds(make_context(clients=6), 2, 300)
    assert all(len(set(chosen)) == 2 and chosen == sorted(chosen) for chosen in rounds)
    counts = torch.bincount(torch.tensor(rounds).flatten(), minlength=6)
    assert (counts - 100).abs().max() < 33
    assert rounds == draw_participants_of_rounds(make_context(clients=6), 2, 300)


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.info.name)
def test_drawing_all_clients_equals_no_sampling_and_bytes_count_participants_alone(method):
    plain = dataclasses.replace(method(rounds=3, local_epochs=1))
    assert (
        compute_largest_difference(
            run_to_final_state(plain, make_context()),
            run_to_final_state(dataclasses.replace(plain, per_round=9), make_context()),
        )
        == 0
    )
    few, ctx = dataclasses.replace(plain, per_round=2), make_context()
    run_to_final_state(few, ctx)
    state = copy_model_state(ctx.initial_model())
    message = count_payload_bytes(state)
    if method is Scaffold:
        message *= 2  # control variates are as many as the weights: there is no batch norm here
    times_drawn = torch.bincount(
        torch.tensor(draw_participants_of_rounds(make_context(), 2, 3)).flatten(), minlength=4
    ).tolist()
    assert len(set(times_drawn)) > 1
    expected = [(n * message, n * message) for n in times_drawn]
    assert list(ctx.link.ledger.by_client().values()) == expected
    assert few.local_passes(PLAIN, [10] * 4) == plain.local_passes(PLAIN, [10] * 4) / 2 == 1.5


def test_with_one_participant_the_server_takes_over_that_clients_model():
    """Participants' weights sum to 1, so with one participant FedAvg and FedNova continue from its model."""
    ctx = make_context(PLAIN, **TWO_CLIENTS)
    state, participants = (
        copy_model_state(ctx.initial_model()),
        draw_participants_of_rounds(ctx, 1, 4),
    )
    assert {k for (k,) in participants} == {0, 1}
    for t, (k,) in enumerate(participants):
        state = train_client_by_torch_sgd(ctx, k, t, state, cross_entropy)
    for method in (FedAvgMulti(rounds=4, local_epochs=2, per_round=1),
                   FedNova(rounds=4, local_epochs=2, per_round=1, server_momentum=0.0)):  # fmt: skip
        assert (
            compute_largest_difference(
                state, run_to_final_state(method, make_context(PLAIN, **TWO_CLIENTS))
            )
            < 1e-10
        )


@pytest.mark.parametrize(
    ("m", "weights", "eta_s"),
    [(1, "samples", 1.0), (1, "uniform", 1.0), (2, "samples", 1.0), (2, "uniform", 0.5)],
)
def test_scaffold_by_the_papers_formulas(m, weights, eta_s):
    """Plain SGD with K η_l as the paper prints it; the correction is a linear term <c - c_k, θ> of the loss. θ moves to
    the participants' models, and c by w_k times the change of each c_k, so that c = Σ_k w_k c_k."""
    ctx, rounds = make_context(PLAIN, **TWO_CLIENTS), 4
    w = [0.5, 0.5]
    if weights == "samples":
        w = [n / sum(ctx.sizes) for n in ctx.sizes]
    state = copy_model_state(ctx.initial_model())
    c = {name: torch.zeros_like(value) for name, value in state.items()}
    client_c = {0: c, 1: c}
    for t, chosen in enumerate(draw_participants_of_rounds(ctx, m, rounds)):
        end_states, new_c = {}, {}
        for k in chosen:

            def loss(model, x, y, c=c, client_variate=client_c[k]):
                linear = sum(
                    ((c[n] - client_variate[n]) * q).sum() for n, q in model.named_parameters()
                )
                return cross_entropy(model, x, y) + linear

            end_state = train_client_by_torch_sgd(ctx, k, t, state, loss)
            steps = PLAIN.epochs * -(-ctx.sizes[k] // PLAIN.batch_size)
            new_c[k] = {
                n: client_c[k][n] - c[n] + (state[n] - end_state[n]) / (steps * PLAIN.lr) for n in c
            }
            end_states[k] = end_state
        share = {k: w[k] / sum(w[i] for i in chosen) for k in chosen}
        state = {
            n: state[n] + eta_s * sum(share[k] * (end_states[k][n] - state[n]) for k in chosen)
            for n in c
        }
        c = {n: c[n] + sum(w[k] * (new_c[k][n] - client_c[k][n]) for k in chosen) for n in c}
        client_c |= new_c
        torch.testing.assert_close(
            c, {n: w[0] * client_c[0][n] + w[1] * client_c[1][n] for n in c}, rtol=0, atol=1e-12
        )
    method = Scaffold(rounds=rounds, local_epochs=2, per_round=m, weights=weights, eta_s=eta_s)
    assert (
        compute_largest_difference(
            state, run_to_final_state(method, make_context(PLAIN, **TWO_CLIENTS))
        )
        < 1e-10
    )


# Takes its time: five rounds, in the method and in the slow loop beside it.
@pytest.mark.parametrize("m", [2, 3])
def test_moon_compares_with_the_model_of_the_last_round_that_a_client_took_part_in(m):
    """A client that skipped a round keeps its model; one that takes part for the first time has no contrastive term."""
    rounds, settings = 5, {"clients": 3, "alpha": 0.5}
    ctx = make_context(PLAIN, **settings)
    state = copy_model_state(ctx.initial_model())
    previous_states = {}
    for t, chosen in enumerate(draw_participants_of_rounds(ctx, m, rounds)):
        end_states = []
        for k in chosen:
            glob, prev = (
                ctx.new_model(state).eval(),
                ctx.new_model(previous_states.get(k, state)).eval(),
            )

            def loss(model, x, y, glob=glob, prev=prev):
                z, zg, zp = model.features(x), glob.features(x).detach(), prev.features(x).detach()
                near, far = (F.cosine_similarity(z, reference) / 0.5 for reference in (zg, zp))
                return (
                    cross_entropy(model, x, y)
                    - 2.0 * (near.exp() / (near.exp() + far.exp())).log().mean()
                )

            previous_states[k] = train_client_by_torch_sgd(ctx, k, t, state, loss)
            end_states.append(previous_states[k])
        state = weighted_mean(end_states, [ctx.sizes[k] for k in chosen])
    assert (
        m == 3 or len({tuple(chosen) for chosen in draw_participants_of_rounds(ctx, m, rounds)}) > 1
    )
    assert len(previous_states) == 3
    method = Moon(rounds=rounds, local_epochs=2, per_round=m, mu=2.0, temperature=0.5)
    assert (
        compute_largest_difference(
            state, run_to_final_state(method, make_context(PLAIN, **settings))
        )
        < 1e-10
    )
