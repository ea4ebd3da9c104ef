"""Neuron matching as a method: limiting cases, its report, and its bytes."""

import byte_formulas
import numpy as np
import pytest
import torch

from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.matching import RULES, Matching
from fedlab_nb.methods.matching.wiring import find_unit_wiring, permute_units
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.studies.experiment import exhaust_generator
from tests.methods.test_fisher_merge import context

EXACT = torch.float64
ORDERS = [rule for rule in RULES if rule != "pfnm"]


def make_initial_state():
    return copy_model_state(build("mlp", (1, 8, 8), 10, dtype=EXACT))


@pytest.mark.parametrize("rule", ORDERS)
def test_equal_networks_are_not_permuted(rule):
    """Without training all clients have the initial weights: every order is 0, 1, 2, …"""
    model = exhaust_generator(
        Matching(rule=rule).run(context(clients=3, remembered=[[make_initial_state()] * 3]))
    )
    report = model.report
    assert np.array_equal(
        report.orders, np.tile(np.concatenate([np.arange(64), np.arange(32)]), (3, 1))
    )
    assert report.moved == [0.0] * 3 and report.distances == [[0.0, 0.0]] * 3
    for name, tensor in copy_model_state(model.module).items():
        torch.testing.assert_close(tensor, make_initial_state()[name])


def test_pfnm_of_one_client_is_its_model_for_a_flat_prior():
    """σ0 → ∞: nothing is shrunk, and weights of classes that the client has stay the same."""
    remembered = []
    ctx = context(clients=1, model="mlp1", remembered=remembered)
    model = exhaust_generator(Matching(rule="pfnm", sigma0=1e3, sigma=1e-3).run(ctx))
    held_classes = torch.bincount(ctx.private.train(0)[1], minlength=10) > 0
    state = copy_model_state(model.module)
    for name, tensor in remembered[0][0].items():
        rows = held_classes if name.startswith("classifier") else slice(None)
        torch.testing.assert_close(state[name][rows], tensor[rows], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("weights", ["samples", "uniform"])
@pytest.mark.parametrize("rule", ORDERS)
def test_the_result_is_the_average_in_the_reported_orders(rule, weights):
    remembered = []
    ctx = context(clients=4, remembered=remembered)
    ctx.init = "different"
    model = exhaust_generator(Matching(rule=rule, weights=weights).run(ctx))
    report = model.report
    wiring = find_unit_wiring(model.module)
    orders = [torch.as_tensor(order).split(report.units) for order in report.orders]
    states = [permute_units(s, wiring, o) for s, o in zip(remembered[0], orders, strict=True)]
    client_weights = ctx.sizes if weights == "samples" else [1] * 4
    by_hand = weighted_mean(states, client_weights)
    assert all(torch.equal(t, by_hand[name]) for name, t in copy_model_state(model.module).items())
    assert report.reference == int(np.argmax(ctx.sizes)) and report.neurons == 96
    assert report.layers == ["body.0.1", "body.1.0"]
    plain = weighted_mean(remembered[0], client_weights)
    assert all(
        torch.equal(t, plain[name]) for name, t in copy_model_state(model.average.module).items()
    )


def test_without_sweeps_all_clients_are_matched_with_the_largest():
    remembered = []
    ctx = context(clients=4, remembered=remembered)
    ctx.init = "different"
    report = exhaust_generator(Matching(sweeps=0).run(ctx)).report
    for k, moved in enumerate(report.moved):
        assert (moved == 0) == (k == report.reference)
    for k, (before, after) in enumerate(report.distances):
        reference = remembered[0][report.reference]
        squared = sum((remembered[0][k][n] - t).square().sum() for n, t in reference.items())
        assert before == pytest.approx(float(squared**0.5))
        assert after < before or k == report.reference
    assert all(
        b > a for values in report.objective for a, b in zip(values, values[1:], strict=False)
    )


@pytest.mark.parametrize(
    ("rule", "model", "init"),
    [("rebasin", "mlp", "same"), ("pfnm", "mlp1", "same"), ("greedy", "cnn2", "different")],
)
def test_bytes_follow_the_formula(rule, model, init):
    ctx = context(clients=3, model=model, dtype=torch.float32)
    ctx.init = init
    out = exhaust_generator(Matching(rule=rule).run(ctx))
    d = sum(t.numel() for t in copy_model_state(out.clients.module(0)).values())
    up, down = byte_formulas.count_matching_bytes_up_and_down(
        d, 10 if rule == "pfnm" else 0, init == "different"
    )
    assert set(ctx.link.ledger.by_client().values()) == {(up, down)}
