"""What is said of a run before it: bytes to the byte, against the ledger; what is remembered costs no time."""

import pytest

from fedlab_nb.declared import declared
from fedlab_nb.methods import METHODS
from fedlab_nb.studies import compare, cost
from fedlab_nb.studies.settings import Settings, plans_for

SMALL = {"clients": 3, "epochs": 1, "alpha": 0.5}
SHORT = {
    "fens.rounds": 2, "fedkd.epochs": 1, "fedkt.epochs": 1, "fedavg_multi.rounds": 2, "scaffold.rounds": 3,
    "scaffold.per_round": 2, "dsfl.rounds": 2, "dsfl.distil_steps": 1, "fedcvae.steps": 1, "fedcvae.server_epochs": 1,
    "fedcvae.samples": 10, "deepafl.layers": 2, "afl.features": "relu", "fens.bits": 4, "fedlpa.iterations": 1,
}  # fmt: skip
EXACT = (
    "local fedavg ensemble fens fedlpa regmean fisher_merge fedkd fedkt fedcvae afl deepafl dsfl fedavg_multi scaffold "
    "fedov centralized"
).split()


def asked(methods, **more):
    own = {name: value for name, value in SHORT.items() if name.split(".")[0] in methods}
    return methods, {**SMALL, **own, **more}


BY_LAYER = (
    "fens",
    "fedlpa",
    "regmean",
    "fisher_merge",
    "fedov",
)  # there is more of the network in it than its size


@pytest.mark.parametrize(
    "method, model", [*((m, "mlp") for m in EXACT), *((m, "cnn") for m in BY_LAYER)]
)
def test_the_bytes_are_those_of_the_ledger(method, model, monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    methods, settings = asked([method], model=model)
    told = cost.cost_of((methods, settings))
    (outcome,) = compare(methods, **settings)
    assert told.exact and told.bytes == outcome.bytes_up + outcome.bytes_down and told.seconds > 0


def test_formulas_can_be_reckoned_and_grow_with_a_step():
    formulas = declared("methods/costs.toml")
    known = [name for name in METHODS if name in formulas]
    assert {*formulas} == {*known, "local training"}
    for plan in plans_for(Settings.make(), known):
        names = cost.names_of(plan)
        seconds = cost.terms(formulas[plan.name]["seconds"], names)
        more = cost.terms(
            formulas[plan.name]["seconds"], names | {step: 2 * names[step] for step in "tua"}
        )
        assert 0 < seconds < 60 and more == pytest.approx(2 * seconds), plan.name
        assert cost.value(formulas[plan.name].get("about", "D + U"), names) > 0


def test_a_step_that_was_slow_when_it_was_measured_makes_no_time_negative(monkeypatch):
    measured, slow = cost.step_of, {cost.UNIT: 9.0}
    monkeypatch.setattr(
        cost,
        "step_of",
        lambda of, device: (step := measured(of, device))._replace(
            seconds=slow.get(of, step.seconds)
        ),
    )
    assert cost.cost_of(asked(["fedkt"])).seconds >= 9


@pytest.mark.gpu
def test_arithmetic_and_many_clients_cost_a_card_little():
    assert (
        cost.cost_of(asked(["gauss"], dataset="glyphs:28g", clients=4)).seconds < 2
    )  # a processor: half a minute
    few, many = (cost.cost_of(asked(["dense"], clients=clients)).seconds for clients in (10, 50))
    assert many < 2 * few


def test_what_is_remembered_takes_no_time_and_clients_are_trained_once(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    both, one, other = (
        cost.cost_of(asked(m, epochs=17)).seconds
        for m in (["fedavg", "ensemble"], ["fedavg"], ["ensemble"])
    )
    assert max(one, other) < both < one + other
    three = cost.cost_of(asked(["fedavg"], epochs=17, seeds=3))
    assert (
        three.seconds == pytest.approx(3 * one)
        and three.bytes == 3 * cost.cost_of(asked(["fedavg"])).bytes
    )
    compare(["fedavg"], **asked(["fedavg"], epochs=17)[1])
    assert cost.cost_of(asked(["fedavg"], epochs=17)).seconds == 0
    assert 0 < cost.cost_of(asked(["ensemble"], epochs=17)).seconds < other
    assert cost.cost_of(asked(["fedavg"], epochs=17, seeds=3)).seconds == pytest.approx(2 * one)


def test_a_wrong_setting_costs_nothing_that_can_be_told():
    assert cost.cost_of((["fedavg"], {"alpha": -1})) is None
    assert not cost.cost_of((["fedavg"], {**SMALL, "model": "mlp:16,mlp:32"})).exact
