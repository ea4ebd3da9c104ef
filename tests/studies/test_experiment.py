"""Runs, comparisons and jobs on digits: the same results alone and together, nothing lost, nothing computed twice."""

import gc
import weakref

import numpy as np
import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.data import federate, load
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.studies import Store, compare, experiment, job, run, sweep
from fedlab_nb.studies.settings import Settings, make_plans

QUICK = {"clients": 4, "epochs": 2, "alpha": 0.5}


def test_methods_of_a_comparison_share_the_trained_clients(monkeypatch):
    calls = []
    real_check = experiment.Context.check_finite

    def count_check(self, clients):
        calls.append(1)
        return real_check(self, clients)

    # Every local training ends with this check.
    monkeypatch.setattr(experiment.Context, "check_finite", count_check)
    compare(["local", "fedavg", "ensemble", "fens", "fedlpa"], cache=False, **QUICK)
    assert len(calls) == 1


def test_an_outcome_prints_as_two_lines():
    outcome = run("fens", **QUICK)
    up = f"{outcome.bytes_up / 1000:.3g} kB"
    down = f"{outcome.bytes_down / 1000:.3g} kB"
    percent = f"{100 * outcome.accuracy:.1f} %"
    seconds = f"{outcome.seconds_total:.2f} seconds"
    first_line = f"FENS on digits (alpha 0.5, 4 clients, seed 0): accuracy {percent}"
    second_line = f"{up} up, {down} down, {seconds}"
    assert repr(outcome) == f"{first_line}\n{second_line}"
    assert repr(run("fens", **QUICK)) == f"{first_line}\n{second_line}, from the store"
    of_index_lists = run(
        "local", federation=federate("digits", indices=[range(9), range(9, 30)]), epochs=1
    )
    assert repr(of_index_lists).partition(":")[0].endswith("(2 clients, seed 0)")
    assert len(repr(of_index_lists).splitlines()) == 2


@pytest.fixture
def trainings(monkeypatch):
    """The number of clients of each local training in the test."""
    client_counts = []
    real_train = experiment.iterate_training_of_clients_in_place

    def count_and_train(models, *args, **options):
        client_counts.append(len(models))
        return real_train(models, *args, **options)

    monkeypatch.setattr(experiment, "iterate_training_of_clients_in_place", count_and_train)
    return client_counts


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"init": "different"}, {"alpha": 0.1, "poison": "labels:1"}]
)
def test_clients_trained_together_equal_clients_trained_alone(trainings, settings):
    settings = QUICK | {"epochs": 3} | settings
    plans = []
    for seed in range(3):
        plans += make_plans(Settings.make(**settings, seed=seed), ["local", "ensemble"])
    outcomes = []
    for event in experiment.iterate_events_of_plans(
        plans, use_store=False, should_train_together=True
    ):
        if event.outcome:
            outcomes.append(event.outcome)
    assert trainings == [12]
    assert len(outcomes) == 6
    for outcome in outcomes:
        alone = run(outcome.method, cache=False, seed=outcome.settings.seed, **settings)
        assert np.allclose(alone.test_features, outcome.test_features, atol=1e-4)
        assert alone.accuracy == pytest.approx(outcome.accuracy, abs=0.01)
        assert alone.ledger == outcome.ledger
        for expected, point in zip(alone.history, outcome.history, strict=True):
            for key in ("phase", "progress", "bytes"):
                assert expected[key] == point[key]
            assert expected["accuracy"] == pytest.approx(point["accuracy"], abs=0.01)
    # One training, so all runs have its time.
    times = {out.seconds["local training"] for out in outcomes if out.method == "local"}
    assert len(times) == 1


@pytest.mark.slow
def test_up_to_eight_runs_with_equal_clients_are_trained_together(trainings):
    run("local", seed=1, **QUICK)
    fl.study(["local"], seeds=10, **QUICK)
    assert trainings == [4, 32, 4]
    fl.study(["ensemble"], seeds=10, **QUICK)
    assert trainings == [4, 32, 4]
    fl.study(["local"], backend=["loop", "stacked"], seeds=2, cache=False, **QUICK)
    fl.study(["local"], model="mlp,cnn", seeds=2, cache=False, **QUICK)
    assert trainings[3:] == [4, 4, 8, 4, 4]
    compare(["local"], seeds=2, cache=False, **QUICK)
    assert trainings[8:] == [4, 4]


def test_a_run_that_diverges_among_others_reports_its_own_error():
    rows = fl.study(["local"], seeds=2, cache=False, lr=100, weight_decay=10, **QUICK).rows
    assert all("diverged with lr=100" in row["error"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), [("fens", {"rounds": 5}), ("afl", {})])
def test_an_outcome_without_its_model_computes_it_again(name, settings):
    fresh = run(name, **QUICK, **settings)
    model = weakref.ref(fresh.model)
    without_model = fresh.without_model()
    without_features = fresh.without_model(features=False)
    assert (
        without_model.accuracy == without_features.accuracy == fresh.accuracy
        and fresh.model is model()
    )
    assert without_model.test_features is fresh.test_features and "test_features" not in vars(
        without_features.without_model()
    )
    features = fresh.test_features.copy()
    x = load("digits").x_test
    expected = fresh.predict(x)
    del fresh
    gc.collect()
    assert model() is None  # nothing else refers to it
    stored = run(name, **QUICK, **settings)
    assert np.array_equal(without_model.predict(x), expected) and stored.cached
    assert np.array_equal(stored.predict(x), expected)
    assert np.array_equal(without_features.test_features, features) and "test_features" in vars(
        without_features
    )
    with pytest.raises(AttributeError, match="'Outcome' object has no attribute 'best'"):
        without_features.best  # noqa: B018


def test_to_json_has_the_documented_keys():
    record = run("fedavg", **QUICK).to_json()
    keys = """method dataset alpha clients seed preset device accuracy bytes_up bytes_down parameters seconds_local
    seconds_method seconds_total cached"""
    assert set(keys.split()) <= set(record)
    assert record["parameters"] == 6570 and 0 <= record["accuracy"] <= 1
    # One upload and one download of the float32 model a client.
    assert record["bytes_up"] == record["bytes_down"] == 4 * 4 * 6570


def test_a_failing_method_loses_no_other_result(monkeypatch):
    def broken(self, ctx):
        yield from ctx.local_training()
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(METHODS["ensemble"], "run", broken)
    events = list(job(["fedavg", "ensemble", "fens"], **QUICK))
    assert [e.outcome.method for e in events if e.outcome] == ["fedavg", "fens"]
    assert [(e.method, str(e.error)) for e in events if e.error] == [
        ("ensemble", "broken on purpose")
    ]
    with pytest.raises(RuntimeError, match="on purpose"):
        compare(["ensemble", "fedlpa"], **QUICK)
    assert run("fedavg", **QUICK).cached and run("fedlpa", **QUICK).cached


def test_closing_a_job_keeps_finished_runs():
    steps = job(["fedavg", "fens"], seeds=3, **QUICK)
    for event in steps:
        if event.outcome is not None:
            break
    steps.close()
    assert run("fedavg", **QUICK).cached


def test_seeds_count_up_and_can_be_averaged():
    outcomes = compare(["fedavg"], seeds=3, seed=5, **QUICK)
    assert [outcome.settings.seed for outcome in outcomes] == [5, 6, 7]
    assert outcomes.mean("fedavg") == pytest.approx(
        np.mean([outcome.accuracy for outcome in outcomes])
    )
    assert len(outcomes.table()) == 3
    with pytest.raises(Exception, match="No outcome of 'fens'"):
        outcomes.mean("fens")


def test_diverging_training_is_an_error_with_the_learning_rate():
    with pytest.raises(RunError, match="diverged with lr=100"):
        run("fedavg", cache=False, lr=100, weight_decay=10, **QUICK)


def test_clients_can_have_different_architectures():
    from fedlab_nb.models import build, count_parameters

    out = run("ensemble", model="mlp,cnn", **QUICK)
    assert out.parameters == 2 * (6570 + count_parameters(build("cnn", (1, 8, 8), 10)))
    with pytest.raises(UsageError, match="needs the same architecture at every client"):
        run("fedavg", model="mlp,cnn", **QUICK)


def test_methods_must_be_names():
    wrong = {
        fl.run: ["local"],
        fl.compare: None,
        fl.Study.declare: 7,
        lambda names: fl.playground(methods=names): 3,
    }
    for call, methods in [*wrong.items(), (fl.compare, [])]:
        with pytest.raises(UsageError):
            call(methods)


WRONG = [
    {"alpha": 0}, {"alpha": float("nan")}, {"alpha": -1}, {"clients": 1238}, {"clients": 0}, {"dataset": "digit"},
    {"dataset": "nowhere.npz"}, {"partition": "dirichlett"}, {"model": "resnet"}, {"device": "tpu"}, {"seed": 1.5},
    {"holdout": 1}, {"epochs": -1}, {"round": 3}, {"preset": "big"}, {"fens.rounds": 3}, {"spurious": "99"},
    {"partition": "natural"}, {"minimum": 124}, {"repair": "mend"}, {"share": 0}, {"share": 0.01, "clients": 13},
    {"size_sigma": 0.4, "partition": "quantity"},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_settings_are_refused_with_their_name_before_any_work(wrong, monkeypatch):
    monkeypatch.setattr(
        experiment, "iterate_events_of_plan", lambda *a: pytest.fail("work was begun")
    )
    with pytest.raises(UsageError) as caught:
        job(["fedavg"], **wrong)
    words = str(caught.value)
    assert "\n" not in words
    assert words.endswith(".")
    names_and_values = [*wrong, *wrong.values()]
    assert any(str(part) in words for part in names_and_values)


def test_store_keys_depend_on_all_settings_that_affect_a_result():
    def hash_plan(**settings):
        """The keys of the trained clients and of the run."""
        (plan,) = make_plans(Settings.make(**settings), ["fens"])
        return plan.hash_settings_of_local_training(), plan.hash_settings_of_run()

    clients_key, run_key = hash_plan()
    assert hash_plan(alpha="0.1") == (clients_key, run_key)
    for change in ({"alpha": 0.2}, {"clients": 9}, {"seed": 1}, {"epochs": 3}, {"holdout": 0.2}, {"model": "cnn"},
                   {"init": "different"}, {"partition": "iid"}, {"spurious": "1"}, {"backend": "loop"},
                   {"share": 0.5}, {"size_sigma": 1}, {"minimum": 5}, {"repair": "redraw"},
                   {"partition": "client_dirichlet"}):  # fmt: skip
        changed_clients_key, changed_run_key = hash_plan(**change)
        assert changed_clients_key != clients_key, change
        assert changed_run_key != run_key, change
    same_clients_key, changed_run_key = hash_plan(rounds=7)
    assert same_clients_key == clients_key
    assert changed_run_key != run_key


def test_an_outcome_has_its_complete_setting_fresh_and_stored():
    partition = {"partition": "classes", "classes_per_client": 3, "tint": 0.4}
    setting = {**QUICK, **partition, "spurious": "2,0", "backend": "loop"}
    federation = federate("digits", alpha=0.5, clients=4, seed=0, spurious=(0, 2), **partition)
    fresh = run("fedavg", weights="uniform", **setting)
    stored = run("fedavg", weights="uniform", **setting)
    for outcome in (fresh, stored):
        assert outcome.settings == Settings.make(weights="uniform", **setting)
        defaults = {"average": "mean", "assumed": 2, "rank": 0}
        assert outcome.options == {"weights": "uniform", **defaults}
        assert outcome.recipe.epochs == 2
        shards = outcome.federation().shards
        assert torch.equal(outcome.federation().dataset.x_train, federation.dataset.x_train)
        assert np.array_equal(outcome.label_counts, federation.label_counts)
        assert all(torch.equal(a, b) for a, b in zip(shards, federation.shards, strict=True))
    other_seed = run("fedavg", seed=3, **setting)
    other_method = run("local", **setting)
    assert other_seed.conditions == stored.conditions == other_method.conditions
    assert other_seed.conditions != run("fedavg", **{**setting, "epochs": 1}).conditions


def test_every_curve_ends_at_the_models_accuracy_and_the_ledgers_bytes():
    for out in compare(
        ["local", "fedavg", "fens", "fedavg_multi", "centralized"],
        rounds=3,
        local_epochs=2,
        **QUICK,
    ):
        last_point = out.history[-1]
        data = out.federation().dataset
        if out.method == "local":
            expected = np.mean(out.report.each_client)
        else:
            expected = (out.predict(data.x_test) == data.y_test.numpy()).mean()
        assert last_point["accuracy"] == out.accuracy == pytest.approx(expected)
        assert last_point["bytes"] == out.bytes_up + out.bytes_down
        assert last_point["bytes"] == sum(row["bytes"] for row in out.ledger.rows())
        for column in ("progress", "bytes"):
            values = [point[column] for point in out.history]
            assert values == sorted(values) and values[0] >= 0
        assert last_point["progress"] == 1
        if out.method in ("fedavg_multi", "centralized"):  # their last snapshot is the result
            assert out.history[-2]["accuracy"] == out.accuracy
            assert out.history[-2]["bytes"] == last_point["bytes"]


def test_accuracies_of_local_training_are_those_of_each_clients_own_network():
    out = run("local", clients=4, alpha=0.1, epochs=3, device="cpu")
    data = out.federation().dataset
    answers = out.model.clients.logits(data.x_test).argmax(-1).numpy()  # [M, N]
    truth = data.y_test.numpy()
    classes = np.array([(answers[:, truth == c] == c).mean() for c in range(10)])
    assert out.per_class == pytest.approx(classes, abs=1e-12)
    client_accuracies = []
    for client_answers, counts in zip(answers, out.label_counts, strict=True):
        class_accuracies = [(client_answers[truth == c] == c).mean() for c in range(10)]
        client_accuracies.append(np.average(class_accuracies, weights=counts))
    assert out.per_client == pytest.approx(client_accuracies, abs=1e-12)
    assert min(out.per_client) > out.accuracy, "every client is better on its own classes"
    hospitals = run("local", dataset="heart", epochs=2, device="cpu")
    data = hospitals.federation().dataset
    is_right = hospitals.model.clients.logits(data.x_test).argmax(-1) == data.y_test
    hospital_accuracies = [
        float(is_right[k][data.client_test == k].double().mean()) for k in range(4)
    ]
    assert hospitals.per_client == pytest.approx(hospital_accuracies, abs=1e-12)


def test_the_best_client_is_not_chosen_on_the_test_set(tmp_path):
    """Three clients with one class each, and test images of one class alone, on which that class's client is the best.
    Other test images must not change the choice."""
    data = load("digits")
    rows = data.y_train < 3
    chosen_clients = []
    for label in range(3):
        path = tmp_path / f"test_{label}.npz"
        test_rows = data.y_test == label
        np.savez(
            path,
            x_train=data.x_train[rows],
            y_train=data.y_train[rows],
            x_test=data.x_test[test_rows],
            y_test=data.y_test[test_rows],
        )
        out = run(
            "local", dataset=path, clients=3, epochs=3, partition="classes", classes_per_client=1
        )
        report = out.report
        federation = out.federation()
        (owner,) = (k for k in range(3) if federation.label_counts[k, label])
        assert int(np.argmax(report.each_client)) == owner
        held_out = torch.cat(
            [
                federation.dataset.y_train[held_out_rows]
                for _, held_out_rows in federation.split(0.1)
            ]
        )
        # A client that knows one class gets that class right, so the most frequent one wins.
        most_frequent = int(torch.bincount(held_out).argmax())
        assert federation.label_counts[report.best_client, most_frequent]
        assert report.best_client_accuracy == report.each_client[report.best_client]
        assert out.accuracy == pytest.approx(np.mean(report.each_client))
        chosen_clients.append(report.best_client)
    assert len(set(chosen_clients)) == 1


def test_sweep_resumes_and_writes_one_row_for_each_cell(tmp_path):
    settings = {
        "methods": ["fedavg", "ensemble"],
        "alphas": [0.1, 1],
        "clients": [2, 3],
        "epochs": 1,
    }
    outcomes = sweep(**settings, out=tmp_path)
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert (
        lines[0]
        == "method,dataset,alpha,clients,seed,preset,accuracy,bytes_up,bytes_down,seconds_total"
    )
    assert len(lines) == 9 == len(outcomes) + 1
    events = []
    resumed = sweep(**settings, watch=events.append)
    assert {event.phase for event in events} == {"remembered"}
    assert resumed.rows == outcomes.rows
    with pytest.raises(UsageError, match="axis clients of the study is empty"):
        sweep(**settings | {"clients": []})


def test_the_store_ignores_damaged_entries(tmp_path):
    store = Store("runs", tmp_path)
    assert store.write_entry_if_possible("k", {"a": 1}, {"x": np.arange(3)})
    values, arrays = store.get("k")
    assert values == {"a": 1} and arrays["x"].tolist() == [0, 1, 2]
    body = tmp_path / "runs" / "k" / "arrays.npz"
    body.write_bytes(body.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="Ignored the stored entry"):
        assert store.get("k") is None
    assert store.write_entry_if_possible("k", {"a": 2}, {}) and store.get("k")[0] == {"a": 2}
    (tmp_path / "runs" / "k" / "entry.json").write_text("{")
    with pytest.warns(UserWarning, match="Ignored"):
        assert store.get("k") is None
    assert store.get("nothing") is None
    # Pickled arrays are never loaded.
    store.write_entry_if_possible("k", {}, {"x": np.array([{"evil": 1}], dtype=object)})
    with pytest.warns(UserWarning, match="Ignored"):
        assert store.get("k") is None


def test_a_full_disk_is_a_warning_and_loses_no_result(monkeypatch):
    def raise_disk_full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", raise_disk_full)
    with pytest.warns(UserWarning, match="No space left"):
        out = run("fedavg", seed=77, **QUICK)
    assert 0 <= out.accuracy <= 1


def test_a_changed_file_is_another_data_set(tmp_path):
    rng = np.random.default_rng(0)

    def write_shifted_file(shift):
        x, y = rng.random((60, 8, 8)).astype("float32"), np.arange(60) % 3
        np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x[:9] * shift, y_test=y[:9])

    write_shifted_file(1.0)
    before = run("fedavg", dataset=tmp_path / "own.npz", **QUICK)
    write_shifted_file(0.5)
    after = run("fedavg", dataset=tmp_path / "own.npz", **QUICK)
    assert not after.cached
    assert not np.array_equal(before.test_features, after.test_features)


def test_plain_names_of_the_recipe_set_the_recipe_and_convolutions_have_a_smaller_rate():
    def make_plan(method, **settings):
        (plan,) = make_plans(Settings.make(**settings), [method])
        return plan

    default = METHODS["dense"]().epochs
    by_plain_name = make_plan("dense", epochs=3)
    assert (by_plain_name.recipe.epochs, by_plain_name.method.epochs) == (3, default)
    by_method = make_plan("dense", **{"dense.epochs": 4})
    assert (by_method.recipe.epochs, by_method.method.epochs) == (40, 4)
    assert make_plan("fedavg", model="mlp").recipe.lr == 0.05
    assert make_plan("fedavg", model="cnn").recipe.lr == 0.02
    assert make_plan("fedavg", model="cnn", lr=0.1).recipe.lr == 0.1


def test_only_methods_that_need_a_held_out_part_have_one():
    setting = {**QUICK, "cache": False, "holdout": 0.2}
    expected_shares = {"fens": 0.2, "fedavg": 0.0}
    outcomes = compare(["fens", "fedavg"], holdout_for="needed", **setting)
    assert [outcome.method for outcome in outcomes] == list(expected_shares)
    for outcome in outcomes:
        share = expected_shares[outcome.method]
        assert outcome.to_json()["holdout"] == share
        alone = run(outcome.method, **{**setting, "holdout": share})
        assert outcome.accuracy == alone.accuracy
        assert np.array_equal(outcome.test_features, alone.test_features)
    with_holdout_for_all = compare(["fens", "fedavg"], **setting)
    keys = {out.plan.hash_settings_of_local_training() for out in with_holdout_for_all}
    assert len(keys) == 1
    with pytest.raises(UsageError, match="holdout_for"):
        run("fens", holdout_for="fens", **setting)


def test_methods_declare_whether_they_need_held_out_samples():
    """Without a held-out part, methods that declare the need refuse, and the others accept."""
    for name, cls in METHODS.items():
        (plan,) = make_plans(Settings.make(holdout=0, **QUICK), [name])
        prepared_run = experiment.Run(plan, experiment.TrainedClientsCache(), cache=False)
        prepared_run.prepare_context()
        if cls.holds_out:
            with pytest.raises(UsageError, match="held-out"):
                cls().validate(prepared_run.ctx)
        else:
            cls().validate(prepared_run.ctx)
