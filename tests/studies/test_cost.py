"""What is said of a run before it: bytes to the byte, against the ledger; what is remembered costs no time."""

from dataclasses import replace

import numpy as np
import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.panels.facts import describe_cost
from fedlab_nb.studies import compare, cost, stored_results
from fedlab_nb.studies.settings import Settings, make_plans

SMALL = {"clients": 3, "epochs": 1, "alpha": 0.5}
SHORT = {
    "fens.rounds": 2, "fedkd.epochs": 1, "fedkt.epochs": 1, "fedavg_multi.rounds": 2, "scaffold.rounds": 3,
    "scaffold.per_round": 2, "dsfl.rounds": 2, "dsfl.distil_steps": 1, "fedcvae.steps": 1, "fedcvae.server_epochs": 1,
    "fedcvae.samples": 10, "deepafl.layers": 2, "afl.features": "relu", "fens.bits": 4, "fedlpa.iterations": 1,
    **{f"{name}.rounds": 2 for name in ("fedprox", "fednova", "fedadam", "fedyogi", "moon")},
    **{f"{name}.epochs": 1 for name in ("feddf", "coboosting", "fadi", "fdafl", "dense")},
    "fedprox.per_round": 2, "fedet.one_shot_steps": 2,
}  # fmt: skip
EXACT = (
    "local fedavg ensemble fens fedlpa regmean fisher_merge fedkd fedkt fedcvae afl deepafl dsfl fedavg_multi scaffold "
    "fedov centralized feddf coboosting fadi fdafl dense fedet matching ties fedprox fednova fedadam "
    "fedyogi moon"
).split()


def make_call(methods, **more):
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
    methods, settings = make_call([method], model=model)
    told = cost.estimate_cost((methods, settings))
    (outcome,) = compare(methods, **settings)
    assert told.exact and told.bytes == outcome.bytes_up + outcome.bytes_down and told.seconds > 0


def test_every_method_says_what_travels_and_how_long_it_takes():
    for plan in make_plans(Settings.make(), [*METHODS]):
        assert cost.estimate_traffic(plan).bytes > 0, plan.method_name
        assert 0 < cost.estimate_server_seconds(plan) < 60, plan.method_name


def test_the_time_of_a_stored_setting_is_the_stored_one_as_much_slower_as_a_step_is(monkeypatch):
    """Worked out by hand: a step that takes twice as long makes everything take twice as long."""
    table = stored_results.load("digits")
    monkeypatch.setattr(
        cost, "measure_step_seconds_once", lambda network, device: cost.StepSeconds(2.0, 0.0, 1)
    )
    cost.compute_slowdown_relative_to_stored_runs.cache_clear()
    (plan,) = make_plans(Settings.make(alpha=0.1, clients=5, device="cpu"), ["dense"])
    row = table.rows["dense", 0.1, 5]
    slow = cost.estimate_server_seconds(plan)
    # 1237 samples, a tenth held out, in batches of 32; 40 passes
    centralized = [
        seconds
        for (method, _, _), stored in table.rows.items()
        if method == "centralized"
        for seconds in stored["seconds_method"]
    ]
    slower = cost.OVERHEAD * 40 * 2.0 * (1237 * 0.9 / 32) / np.median(centralized)
    assert slow == pytest.approx(np.median(row["seconds_method"]) * slower)
    monkeypatch.setattr(
        cost, "measure_step_seconds_once", lambda network, device: cost.StepSeconds(4.0, 0.0, 1)
    )
    cost.compute_slowdown_relative_to_stored_runs.cache_clear()
    assert cost.estimate_server_seconds(plan) == pytest.approx(2 * slow)
    cost.compute_slowdown_relative_to_stored_runs.cache_clear()
    # Of each of 5 clients the last batch is half full.
    batches = 1237 * 0.9 / 32 + 5 / 2
    assert cost.estimate_local_training_seconds(plan, passes_over_local_data=3) == pytest.approx(
        cost.OVERHEAD * 3 * 4.0 * batches
    )


def test_a_method_that_trains_no_network_takes_no_longer_with_a_large_one():
    small, large = (make_plans(Settings.make(model=model), ["afl"])[0] for model in ("mlp", "cnn"))
    assert cost.estimate_server_seconds(large) == pytest.approx(cost.estimate_server_seconds(small))


def test_the_time_goes_with_how_often_something_is_done():
    usual, changed = (
        make_plans(
            Settings.make(**{"dense.epochs": 20, "dense.generator_steps": steps}), ["dense"]
        )[0]
        for steps in (15, 60)
    )
    assert cost.estimate_server_seconds(changed) == pytest.approx(
        4 * cost.estimate_server_seconds(usual)
    )


def test_the_recipes_epochs_count_where_the_method_itself_trains():
    def seconds(method, epochs):
        (plan,) = make_plans(Settings.make(epochs=epochs), [method])
        return cost.estimate_server_seconds(plan)

    for method, times in (("centralized", 10), ("fusefl", 10), ("fedavg_multi", 1), ("afl", 1)):
        assert seconds(method, 400) == pytest.approx(times * seconds(method, 40)), method


@pytest.mark.parametrize("method", ["fedavg_multi", "moon"])
def test_clients_that_take_no_part_in_a_round_take_no_time(method):
    """5 of 20 clients a round: a quarter of the time of all. 0 and more than there are mean all."""
    seconds = {}
    for per_round in (0, 5, 40):
        settings = Settings.make(clients=20, **{f"{method}.per_round": per_round})
        (plan,) = make_plans(settings, [method])
        seconds[per_round] = cost.estimate_server_seconds(plan)
    assert seconds[5] == pytest.approx(seconds[0] / 4)
    assert seconds[40] == pytest.approx(seconds[0])


def test_a_method_without_stored_results_takes_a_time_that_is_not_known(monkeypatch):
    monkeypatch.setattr(
        cost, "find_stored_row_with_nearest_clients_and_alpha", lambda table, plan: None
    )
    told = cost.estimate_cost(make_call(["fedavg"]))
    assert told.seconds is None and told.bytes > 0
    assert describe_cost(told) == (
        "A run sends 158 kB both ways; how long it takes is not known yet."
    )


def test_the_bytes_that_are_named_are_those_of_one_seed():
    one, three = (cost.estimate_cost(make_call(["fedavg"], seeds=seeds)) for seeds in (1, 3))
    assert three.bytes == 3 * one.bytes and three.bytes_per_seed == one.bytes
    assert describe_cost(one).endswith(" sends 158 kB both ways.")
    assert describe_cost(three).endswith(" sends 158 kB both ways per seed.")
    stored = describe_cost(replace(three, seconds=0.0))
    assert stored == (
        "Run shows stored results at once; such a run sends 158 kB both ways per seed."
    )


def test_local_training_sends_nothing_up_and_its_cost_says_so():
    told = cost.estimate_cost(make_call(["local"], seeds=3))
    models = 3 * 4 * 6570  # bytes of three clients: 64 x 86 weights and 86 biases, 86 x 10 and 10
    assert told.bytes_per_seed == models
    assert describe_cost(told).endswith(
        " sends 78.8 kB down per seed (the initial model) and nothing up."
    )
    own = cost.estimate_cost(make_call(["local"], init="different"))
    assert describe_cost(own).endswith(" sends nothing.")
    both = cost.estimate_cost(make_call(["local", "fedavg"]))
    assert both.bytes_per_seed == 3 * models
    assert describe_cost(both).endswith(" sends 237 kB both ways.")


@pytest.mark.gpu
def test_arithmetic_and_many_clients_cost_a_card_little():
    assert (
        cost.estimate_cost(make_call(["gauss"], dataset="glyphs:28g", clients=4)).seconds < 2
    )  # a processor: half a minute
    few, many = (
        cost.estimate_cost(make_call(["dense"], clients=clients)).seconds for clients in (10, 50)
    )
    assert many < 2 * few


def test_what_is_remembered_takes_no_time_and_clients_are_trained_once(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    both, one, other = (
        cost.estimate_cost(make_call(m, epochs=17)).seconds
        for m in (["fedavg", "ensemble"], ["fedavg"], ["ensemble"])
    )
    assert max(one, other) < both < one + other
    three = cost.estimate_cost(make_call(["fedavg"], epochs=17, seeds=3))
    assert (
        three.seconds == pytest.approx(3 * one)
        and three.bytes == 3 * cost.estimate_cost(make_call(["fedavg"])).bytes
    )
    compare(["fedavg"], **make_call(["fedavg"], epochs=17)[1])
    assert cost.estimate_cost(make_call(["fedavg"], epochs=17)).seconds == 0
    assert 0 < cost.estimate_cost(make_call(["ensemble"], epochs=17)).seconds < other
    assert cost.estimate_cost(make_call(["fedavg"], epochs=17, seeds=3)).seconds == pytest.approx(
        2 * one
    )


def test_a_wrong_setting_costs_nothing_that_can_be_told():
    assert cost.estimate_cost((["fedavg"], {"alpha": -1})) is None
    assert not cost.estimate_cost((["fedavg"], {**SMALL, "model": "mlp:16,mlp:32"})).exact
