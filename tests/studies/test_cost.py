"""The estimate of a run beforehand: bytes equal to the ledger's, seconds from stored runs, none for cached results."""

from dataclasses import replace

import numpy as np
import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.panels.facts import describe_cost_or_empty
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


def make_call(methods, **options):
    """The methods and the settings of a short run."""
    knobs = {name: value for name, value in SHORT.items() if name.split(".")[0] in methods}
    return methods, {**SMALL, **knobs, **options}


# Methods whose bytes depend on the layers of the network, not on its size alone.
BY_LAYER = ("fens", "fedlpa", "regmean", "fisher_merge", "fedov")


@pytest.mark.slow
@pytest.mark.parametrize(
    "method, model", [*((m, "mlp") for m in EXACT), *((m, "cnn") for m in BY_LAYER)]
)
def test_estimated_bytes_equal_those_of_the_ledger(method, model, monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    methods, settings = make_call([method], model=model)
    estimate = cost.estimate_cost((methods, settings))
    (outcome,) = compare(methods, **settings)
    assert estimate.exact
    assert estimate.bytes == outcome.bytes_up + outcome.bytes_down
    assert estimate.seconds > 0


def test_every_method_has_an_estimate_of_bytes_and_seconds():
    for plan in make_plans(Settings.make(), [*METHODS]):
        assert cost.estimate_bytes_of_run(plan).bytes > 0, plan.method_name
        assert 0 < cost.estimate_seconds_besides_local_training(plan) < 60, plan.method_name


def test_estimated_seconds_are_the_stored_ones_scaled_by_the_time_of_a_step(monkeypatch):
    """Worked out by hand; where a step takes twice as long, the run takes twice as long."""
    table = stored_results.load("digits")
    monkeypatch.setattr(
        cost, "measure_step_seconds_once", lambda network, device: cost.StepSeconds(2.0, 0.0, 1)
    )
    cost.compute_slowdown_relative_to_stored_runs.cache_clear()
    (plan,) = make_plans(Settings.make(alpha=0.1, clients=5, device="cpu"), ["dense"])
    row = table.rows["dense", 0.1, 5]
    estimate = cost.estimate_seconds_besides_local_training(plan)
    # Centralised training: 1237 samples, a tenth of them held out, in batches of 32; 40 passes.
    stored_seconds = [
        seconds
        for (method, _, _), stored in table.rows.items()
        if method == "centralized"
        for seconds in stored["seconds_method"]
    ]
    slowdown = cost.OVERHEAD * 40 * 2.0 * (1237 * 0.9 / 32) / np.median(stored_seconds)
    assert estimate == pytest.approx(np.median(row["seconds_method"]) * slowdown)
    monkeypatch.setattr(
        cost, "measure_step_seconds_once", lambda network, device: cost.StepSeconds(4.0, 0.0, 1)
    )
    cost.compute_slowdown_relative_to_stored_runs.cache_clear()
    assert cost.estimate_seconds_besides_local_training(plan) == pytest.approx(2 * estimate)
    cost.compute_slowdown_relative_to_stored_runs.cache_clear()
    # The last batch of each of the 5 clients is half full on average.
    batches = 1237 * 0.9 / 32 + 5 / 2
    assert cost.estimate_local_training_seconds_of_all_clients(
        plan, passes_over_local_data=3
    ) == pytest.approx(cost.OVERHEAD * 3 * 4.0 * batches)


def test_the_network_has_no_effect_on_the_time_of_a_method_that_trains_none():
    small, large = (make_plans(Settings.make(model=model), ["afl"])[0] for model in ("mlp", "cnn"))
    assert cost.estimate_seconds_besides_local_training(large) == pytest.approx(
        cost.estimate_seconds_besides_local_training(small)
    )


def test_estimated_seconds_are_proportional_to_the_number_of_steps():
    usual, changed = (
        make_plans(
            Settings.make(**{"dense.epochs": 20, "dense.generator_steps": steps}), ["dense"]
        )[0]
        for steps in (15, 60)
    )
    assert cost.estimate_seconds_besides_local_training(changed) == pytest.approx(
        4 * cost.estimate_seconds_besides_local_training(usual)
    )


def test_the_recipes_epochs_count_where_the_method_itself_trains():
    def estimate_seconds(method, epochs):
        (plan,) = make_plans(Settings.make(epochs=epochs), [method])
        return cost.estimate_seconds_besides_local_training(plan)

    for method, factor in (("centralized", 10), ("fusefl", 10), ("fedavg_multi", 1), ("afl", 1)):
        assert estimate_seconds(method, 400) == pytest.approx(
            factor * estimate_seconds(method, 40)
        ), method


@pytest.mark.parametrize("method", ["fedavg_multi", "moon"])
def test_clients_that_are_not_sampled_take_no_time(method):
    """5 of 20 clients a round: a quarter of the time of all. 0 and more than there are mean all."""
    seconds = {}
    for per_round in (0, 5, 40):
        settings = Settings.make(clients=20, **{f"{method}.per_round": per_round})
        (plan,) = make_plans(settings, [method])
        seconds[per_round] = cost.estimate_seconds_besides_local_training(plan)
    assert seconds[5] == pytest.approx(seconds[0] / 4)
    assert seconds[40] == pytest.approx(seconds[0])


def test_the_time_of_a_method_without_stored_results_is_not_known(monkeypatch):
    monkeypatch.setattr(
        cost, "find_stored_row_with_nearest_clients_and_alpha", lambda table, plan: None
    )
    estimate = cost.estimate_cost(make_call(["fedavg"]))
    assert estimate.seconds is None and estimate.bytes > 0
    assert describe_cost_or_empty(estimate) == (
        "A run sends 158 kB both ways; how long it takes is not known yet."
    )


def test_the_described_bytes_are_those_of_one_seed():
    one_seed, three_seeds = (
        cost.estimate_cost(make_call(["fedavg"], seeds=seeds)) for seeds in (1, 3)
    )
    assert three_seeds.bytes == 3 * one_seed.bytes and three_seeds.bytes_per_seed == one_seed.bytes
    assert describe_cost_or_empty(one_seed).endswith(" sends 158 kB both ways.")
    assert describe_cost_or_empty(three_seeds).endswith(" sends 158 kB both ways per seed.")
    without_seconds = describe_cost_or_empty(replace(three_seeds, seconds=0.0))
    assert without_seconds == (
        "Run shows stored results at once; such a run sends 158 kB both ways per seed."
    )


def test_the_described_cost_of_local_training_has_no_upload():
    estimate = cost.estimate_cost(make_call(["local"], seeds=3))
    models = 3 * 4 * 6570  # bytes of three clients' models
    assert estimate.bytes_per_seed == models
    assert describe_cost_or_empty(estimate).endswith(
        " sends 78.8 kB down per seed (the initial model) and nothing up."
    )
    with_different_starts = cost.estimate_cost(make_call(["local"], init="different"))
    assert describe_cost_or_empty(with_different_starts).endswith(" sends nothing.")
    with_fedavg = cost.estimate_cost(make_call(["local", "fedavg"]))
    assert with_fedavg.bytes_per_seed == 3 * models
    assert describe_cost_or_empty(with_fedavg).endswith(" sends 237 kB both ways.")


@pytest.mark.gpu
def test_sums_and_many_clients_take_little_time_on_a_card():
    # On a CPU it would be half a minute.
    assert cost.estimate_cost(make_call(["gauss"], dataset="glyphs:28g", clients=4)).seconds < 2
    few, many = (
        cost.estimate_cost(make_call(["dense"], clients=clients)).seconds for clients in (10, 50)
    )
    assert many < 2 * few


def test_cached_results_take_no_time_and_clients_are_trained_once(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))

    def estimate_seconds(methods, **options):
        return cost.estimate_cost(make_call(methods, epochs=17, **options)).seconds

    fedavg = estimate_seconds(["fedavg"])
    ensemble = estimate_seconds(["ensemble"])
    assert max(fedavg, ensemble) < estimate_seconds(["fedavg", "ensemble"]) < fedavg + ensemble
    three_seeds = cost.estimate_cost(make_call(["fedavg"], epochs=17, seeds=3))
    assert three_seeds.seconds == pytest.approx(3 * fedavg)
    assert three_seeds.bytes == 3 * cost.estimate_cost(make_call(["fedavg"])).bytes
    compare(["fedavg"], **make_call(["fedavg"], epochs=17)[1])
    assert estimate_seconds(["fedavg"]) == 0
    assert 0 < estimate_seconds(["ensemble"]) < ensemble
    assert estimate_seconds(["fedavg"], seeds=3) == pytest.approx(2 * fedavg)


def test_a_wrong_setting_has_no_estimate_and_mixed_models_no_exact_one():
    assert cost.estimate_cost((["fedavg"], {"alpha": -1})) is None
    assert not cost.estimate_cost((["fedavg"], {**SMALL, "model": "mlp:16,mlp:32"})).exact
