"""m of the clients a round: who is drawn, what is counted, and each method's formulas worked by hand."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from iterative_runs import ALL, PLAIN, context, distance, drawn, finish, local_steps

from fedlab_nb.comm import count_payload_bytes
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.fedavg_multi import FedAvgMulti
from fedlab_nb.methods.fednova import FedNova
from fedlab_nb.methods.moon import Moon
from fedlab_nb.methods.scaffold import Scaffold
from fedlab_nb.models import model_state

TWO = {"clients": 2, "alpha": 0.5}


def cross_entropy(model, x, y):
    return F.cross_entropy(model(x), y)


def test_every_round_draws_anew_and_every_client_is_as_likely():
    """Uniform, whatever the sizes; of 6 clients 2 a round, 300 rounds: 100 each, give or take 4 deviations of 8.2."""
    rounds = drawn(context(clients=6), 2, 300)
    assert all(len(set(chosen)) == 2 and chosen == sorted(chosen) for chosen in rounds)
    counts = torch.bincount(torch.tensor(rounds).flatten(), minlength=6)
    assert (counts - 100).abs().max() < 33
    assert rounds == drawn(context(clients=6), 2, 300)


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.info.name)
def test_everyone_drawn_is_no_draw_and_bytes_are_those_of_who_takes_part(method):
    plain = dataclasses.replace(method(rounds=3, local_epochs=1))
    assert (
        distance(
            finish(plain, context()), finish(dataclasses.replace(plain, per_round=9), context())
        )
        == 0
    )
    few, ctx = dataclasses.replace(plain, per_round=2), context()
    finish(few, ctx)
    state = model_state(ctx.initial_model())
    message = count_payload_bytes(state) * (
        2 if method is Scaffold else 1
    )  # its control variates are as many: no batch norm here
    taken = torch.bincount(torch.tensor(drawn(context(), 2, 3)).flatten(), minlength=4).tolist()
    assert len(set(taken)) > 1
    assert [both for both in ctx.link.ledger.by_client().values()] == [
        (n * message, n * message) for n in taken
    ]
    assert few.local_passes(PLAIN, [10] * 4) == plain.local_passes(PLAIN, [10] * 4) / 2 == 1.5


def test_one_of_two_is_that_clients_model():
    """The weights of who takes part sum to 1: with one client FedAvg and FedNova go on from its model."""
    ctx = context(PLAIN, **TWO)
    state, participants = model_state(ctx.initial_model()), drawn(ctx, 1, 4)
    assert {k for (k,) in participants} == {0, 1}
    for t, (k,) in enumerate(participants):
        state = local_steps(ctx, k, t, state, cross_entropy)
    for method in (FedAvgMulti(rounds=4, local_epochs=2, per_round=1),
                   FedNova(rounds=4, local_epochs=2, per_round=1, server_momentum=0.0)):  # fmt: skip
        assert distance(state, finish(method, context(PLAIN, **TWO))) < 1e-10


@pytest.mark.parametrize(
    ("m", "weights", "eta_s"),
    [(1, "samples", 1.0), (1, "uniform", 1.0), (2, "samples", 1.0), (2, "uniform", 0.5)],
)
def test_scaffold_by_the_papers_formulas(m, weights, eta_s):
    """Plain SGD, K η_l as printed; the correction as a linear term <c - c_k, θ> of the loss. θ goes to the models of
    who takes part, c moves by w_k of each one's change: c = Σ_k w_k c_k."""
    ctx, rounds = context(PLAIN, **TWO), 4
    w = [n / sum(ctx.sizes) for n in ctx.sizes] if weights == "samples" else [0.5, 0.5]
    state = model_state(ctx.initial_model())
    c = {name: torch.zeros_like(value) for name, value in state.items()}
    client_c = {0: c, 1: c}
    for t, chosen in enumerate(drawn(ctx, m, rounds)):
        ends, fresh = {}, {}
        for k in chosen:

            def loss(model, x, y, c=c, mine=client_c[k]):
                linear = sum(((c[n] - mine[n]) * q).sum() for n, q in model.named_parameters())
                return cross_entropy(model, x, y) + linear

            end = local_steps(ctx, k, t, state, loss)
            steps = PLAIN.epochs * -(-ctx.sizes[k] // PLAIN.batch_size)
            fresh[k] = {
                n: client_c[k][n] - c[n] + (state[n] - end[n]) / (steps * PLAIN.lr) for n in c
            }
            ends[k] = end
        share = {k: w[k] / sum(w[i] for i in chosen) for k in chosen}
        state = {
            n: state[n] + eta_s * sum(share[k] * (ends[k][n] - state[n]) for k in chosen) for n in c
        }
        c = {n: c[n] + sum(w[k] * (fresh[k][n] - client_c[k][n]) for k in chosen) for n in c}
        client_c |= fresh
        torch.testing.assert_close(
            c, {n: w[0] * client_c[0][n] + w[1] * client_c[1][n] for n in c}, rtol=0, atol=1e-12
        )
    method = Scaffold(rounds=rounds, local_epochs=2, per_round=m, weights=weights, eta_s=eta_s)
    assert distance(state, finish(method, context(PLAIN, **TWO))) < 1e-10


@pytest.mark.parametrize("m", [2, 3])
def test_moon_compares_with_the_model_of_the_last_round_that_a_client_took_part_in(m):
    """A client that sat out for a round still has its model; one that comes for the first time has no term."""
    rounds, settings = 5, {"clients": 3, "alpha": 0.5}
    ctx = context(PLAIN, **settings)
    state, last = model_state(ctx.initial_model()), {}
    for t, chosen in enumerate(drawn(ctx, m, rounds)):
        ends = []
        for k in chosen:
            glob, prev = ctx.new_model(state).eval(), ctx.new_model(last.get(k, state)).eval()

            def loss(model, x, y, glob=glob, prev=prev):
                z, zg, zp = model.features(x), glob.features(x).detach(), prev.features(x).detach()
                near, far = (F.cosine_similarity(z, other) / 0.5 for other in (zg, zp))
                return (
                    cross_entropy(model, x, y)
                    - 2.0 * (near.exp() / (near.exp() + far.exp())).log().mean()
                )

            last[k] = local_steps(ctx, k, t, state, loss)
            ends.append(last[k])
        state = weighted_mean(ends, [ctx.sizes[k] for k in chosen])
    assert m == 3 or len({tuple(chosen) for chosen in drawn(ctx, m, rounds)}) > 1
    assert len(last) == 3
    method = Moon(rounds=rounds, local_epochs=2, per_round=m, mu=2.0, temperature=0.5)
    assert distance(state, finish(method, context(PLAIN, **settings))) < 1e-10
