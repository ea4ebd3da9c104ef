"""Runs, comparisons and jobs on digits: same digits alone or in company, nothing lost, nothing computed twice."""

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


def test_clients_are_trained_once(monkeypatch):
    calls = []
    real = experiment.Context.check_finite
    monkeypatch.setattr(
        experiment.Context, "check_finite", lambda self, c: (calls.append(1), real(self, c))[1]
    )
    compare(["local", "fedavg", "ensemble", "fens", "fedlpa"], cache=False, **QUICK)
    assert len(calls) == 1


def test_an_outcome_prints_as_two_lines():
    outcome = run("fens", **QUICK)
    up, down = f"{outcome.bytes_up / 1000:.3g} kB", f"{outcome.bytes_down / 1000:.3g} kB"
    percent, seconds = f"{100 * outcome.accuracy:.1f} %", f"{outcome.seconds_total:.2f} seconds"
    first = f"FENS on digits (alpha 0.5, 4 clients, seed 0): accuracy {percent}"
    second = f"{up} up, {down} down, {seconds}"
    assert repr(outcome) == f"{first}\n{second}"
    assert repr(run("fens", **QUICK)) == f"{first}\n{second}, from the store"
    own = run("local", federation=federate("digits", indices=[range(9), range(9, 30)]), epochs=1)
    assert repr(own).partition(":")[0].endswith("(2 clients, seed 0)")
    assert len(repr(own).splitlines()) == 2


@pytest.fixture
def trainings(monkeypatch):
    """How many clients each local training of the test has had."""
    counts, real = [], experiment.train_clients

    def counted(models, *rest, **options):
        counts.append(len(models))
        return real(models, *rest, **options)

    monkeypatch.setattr(experiment, "train_clients", counted)
    return counts


@pytest.mark.parametrize(
    "settings", [{}, {"init": "different"}, {"alpha": 0.1, "poison": "labels:1"}]
)
def test_clients_trained_in_company_are_what_they_are_alone(trainings, settings):
    settings = QUICK | {"epochs": 3} | settings
    plans = [
        plan
        for seed in range(3)
        for plan in make_plans(Settings.make(**settings, seed=seed), ["local", "ensemble"])
    ]
    together = [
        event.outcome
        for event in experiment.iterate_events_of_plans(plans, use_store=False, train_together=True)
        if event.outcome
    ]
    assert trainings == [12] and len(together) == 6
    for there in together:
        alone = run(there.method, cache=False, seed=there.settings.seed, **settings)
        assert np.allclose(alone.test_features, there.test_features, atol=1e-4)
        assert alone.accuracy == pytest.approx(there.accuracy, abs=0.01)
        assert alone.ledger == there.ledger
        for one, other in zip(alone.history, there.history, strict=True):
            assert [one[key] for key in ("phase", "progress", "bytes")] == [
                other[key] for key in ("phase", "progress", "bytes")
            ]
            assert one["accuracy"] == pytest.approx(other["accuracy"], abs=0.01)
    assert (
        len({there.seconds["local training"] for there in together if there.method == "local"}) == 1
    )


def test_company_is_of_one_kind_at_most_eight_and_only_of_those_to_come(trainings):
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


def test_what_diverges_in_company_is_told_by_its_own_run():
    rows = fl.study(["local"], seeds=2, cache=False, lr=100, weight_decay=10, **QUICK).rows
    assert all("diverged with lr=100" in row["error"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), [("fens", {"rounds": 5}), ("afl", {})])
def test_an_outcome_without_its_model_computes_it_again(name, settings):
    fresh = run(name, **QUICK, **settings)
    model = weakref.ref(fresh.model)
    slim, slimmer = fresh.without_model(), fresh.without_model(features=False)
    assert slim.accuracy == slimmer.accuracy == fresh.accuracy and fresh.model is model()
    assert slim.test_features is fresh.test_features and "test_features" not in vars(
        slimmer.without_model()
    )
    features = fresh.test_features.copy()
    x = load("digits").x_test
    expected = fresh.predict(x)
    del fresh
    gc.collect()
    assert model() is None  # nobody else holds it
    stored = run(name, **QUICK, **settings)
    assert np.array_equal(slim.predict(x), expected) and stored.cached
    assert np.array_equal(stored.predict(x), expected)
    assert np.array_equal(slimmer.test_features, features) and "test_features" in vars(slimmer)
    with pytest.raises(AttributeError, match="'Outcome' object has no attribute 'best'"):
        slimmer.best  # noqa: B018


def test_json_contract():
    record = run("fedavg", **QUICK).to_json()
    keys = """method dataset alpha clients seed preset device accuracy bytes_up bytes_down parameters seconds_local
    seconds_method seconds_total cached""".split()
    assert set(keys) <= set(record)
    assert record["parameters"] == 6570 and 0 <= record["accuracy"] <= 1
    # One upload and one download of the float32 model a client.
    assert record["bytes_up"] == record["bytes_down"] == 4 * 4 * 6570


def test_a_method_that_fails_loses_nothing(monkeypatch):
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


def test_closing_a_job_keeps_what_was_finished():
    steps = job(["fedavg", "fens"], seeds=3, **QUICK)
    for event in steps:
        if event.outcome is not None:
            break
    steps.close()
    assert run("fedavg", **QUICK).cached


def test_seeds_count_up_and_mean():
    outs = compare(["fedavg"], seeds=3, seed=5, **QUICK)
    assert [o.settings.seed for o in outs] == [5, 6, 7]
    assert outs.mean("fedavg") == pytest.approx(np.mean([o.accuracy for o in outs]))
    assert len(outs.table()) == 3
    with pytest.raises(Exception, match="No outcome of 'fens'"):
        outs.mean("fens")


def test_diverging_training_says_so():
    with pytest.raises(RunError, match="diverged with lr=100"):
        run("fedavg", cache=False, lr=100, weight_decay=10, **QUICK)


def test_mixed_architectures():
    from fedlab_nb.models import build, count_parameters

    out = run("ensemble", model="mlp,cnn", **QUICK)
    assert out.parameters == 2 * (6570 + count_parameters(build("cnn", (1, 8, 8), 10)))
    with pytest.raises(UsageError, match="needs the same architecture at every client"):
        run("fedavg", model="mlp,cnn", **QUICK)


def test_methods_are_a_name_or_names():
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
def test_wrong_settings_are_one_sentence_with_the_name_before_any_work(wrong, monkeypatch):
    monkeypatch.setattr(
        experiment, "iterate_events_of_plan", lambda *a: pytest.fail("work was begun")
    )
    with pytest.raises(UsageError) as caught:
        job(["fedavg"], **wrong)
    words = str(caught.value)
    assert (
        "\n" not in words
        and words.endswith(".")
        and any(str(part) in words for item in wrong.items() for part in item)
    )


def test_keys_depend_on_what_decides_a_result():
    base = make_plans(Settings.make(), ["fens"])[0]
    assert (
        base.hash_settings_of_run()
        == make_plans(Settings.make(alpha="0.1"), ["fens"])[0].hash_settings_of_run()
    )
    for change in ({"alpha": 0.2}, {"clients": 9}, {"seed": 1}, {"epochs": 3}, {"holdout": 0.2}, {"model": "cnn"},
                   {"init": "different"}, {"partition": "iid"}, {"spurious": "1"}, {"backend": "loop"},
                   {"share": 0.5}, {"size_sigma": 1}, {"minimum": 5}, {"repair": "redraw"},
                   {"partition": "client_dirichlet"}):  # fmt: skip
        other = make_plans(Settings.make(**change), ["fens"])[0]
        assert (
            other.hash_settings_of_local_training() != base.hash_settings_of_local_training()
            and other.hash_settings_of_run() != base.hash_settings_of_run()
        ), change
    other = make_plans(Settings.make(rounds=7), ["fens"])[0]
    assert (
        other.hash_settings_of_local_training() == base.hash_settings_of_local_training()
        and other.hash_settings_of_run() != base.hash_settings_of_run()
    )


def test_an_outcome_knows_its_whole_setting_fresh_and_stored():
    asked = {
        **QUICK,
        "partition": "classes",
        "classes_per_client": 3,
        "spurious": "2,0",
        "tint": 0.4,
    }
    asked |= {"backend": "loop"}
    for outcome in (
        run("fedavg", weights="uniform", **asked),
        run("fedavg", weights="uniform", **asked),
    ):
        assert outcome.settings == Settings.make(weights="uniform", **asked)
        plain = {"average": "mean", "assumed": 2, "rank": 0}
        assert outcome.options == {"weights": "uniform", **plain} and outcome.recipe.epochs == 2
        here, there = outcome.federation(), federate("digits", alpha=0.5, clients=4, seed=0, partition="classes",
                                                     classes_per_client=3, spurious=(0, 2), tint=0.4)  # fmt: skip
        assert torch.equal(here.dataset.x_train, there.dataset.x_train)
        assert np.array_equal(outcome.label_counts, here.label_counts)
        assert all(torch.equal(a, b) for a, b in zip(here.shards, there.shards, strict=True))
    other = run("fedavg", seed=3, **asked)
    assert other.conditions == outcome.conditions == run("local", **asked).conditions
    assert other.conditions != run("fedavg", **{**asked, "epochs": 1}).conditions


def test_every_curve_ends_at_what_the_model_does_and_the_ledger_holds():
    for out in compare(
        ["local", "fedavg", "fens", "fedavg_multi", "centralized"],
        rounds=3,
        local_epochs=2,
        **QUICK,
    ):
        last, data = out.history[-1], out.federation().dataset
        right = (out.predict(data.x_test) == data.y_test.numpy()).mean()
        measured = np.mean(out.report.each_client) if out.method == "local" else right
        assert last["accuracy"] == out.accuracy == pytest.approx(measured)
        assert (
            last["bytes"]
            == out.bytes_up + out.bytes_down
            == sum(row["bytes"] for row in out.ledger.rows())
        )
        for column in ("progress", "bytes"):
            values = [point[column] for point in out.history]
            assert values == sorted(values) and values[0] >= 0
        assert last["progress"] == 1
        if out.method in ("fedavg_multi", "centralized"):  # their last snapshot is the result
            assert (
                out.history[-2]["accuracy"] == out.accuracy
                and out.history[-2]["bytes"] == last["bytes"]
            )


def test_local_only_is_each_clients_own_network_for_classes_and_clients():
    out = run("local", clients=4, alpha=0.1, epochs=3, device="cpu")
    data = out.federation().dataset
    answers = out.model.clients.logits(data.x_test).argmax(-1).numpy()  # [M, N]
    truth = data.y_test.numpy()
    classes = np.array([(answers[:, truth == c] == c).mean() for c in range(10)])
    assert out.per_class == pytest.approx(classes, abs=1e-12)
    homes = []
    for own, counts in zip(answers, out.label_counts, strict=True):
        shares = [(own[truth == c] == c).mean() for c in range(10)]
        homes.append(np.average(shares, weights=counts))
    assert out.per_client == pytest.approx(homes, abs=1e-12)
    assert min(out.per_client) > out.accuracy, "at home everybody is an expert"
    hospitals = run("local", dataset="heart", epochs=2, device="cpu")
    data = hospitals.federation().dataset
    right = hospitals.model.clients.logits(data.x_test).argmax(-1) == data.y_test
    at_home = [float(right[k][data.client_test == k].double().mean()) for k in range(4)]
    assert hospitals.per_client == pytest.approx(at_home, abs=1e-12)


def test_best_single_client_is_not_chosen_on_the_test_set(tmp_path):
    """Three clients with one class each; the test images are all of one class, so its client is the best on them."""
    data, seen = load("digits"), []
    rows, test = data.y_train < 3, {label: data.y_test == label for label in range(3)}
    for label in range(3):
        path = tmp_path / f"test_{label}.npz"
        np.savez(path, x_train=data.x_train[rows], y_train=data.y_train[rows], x_test=data.x_test[test[label]],
                 y_test=data.y_test[test[label]])  # fmt: skip
        out = run(
            "local", dataset=path, clients=3, epochs=3, partition="classes", classes_per_client=1
        )
        report, federation = out.report, out.federation()
        (owner,) = (k for k in range(3) if federation.label_counts[k, label])
        assert int(np.argmax(report.each_client)) == owner
        held_out = torch.cat(
            [federation.dataset.y_train[rows] for _, rows in federation.split(0.1)]
        )
        commonest = int(
            torch.bincount(held_out).argmax()
        )  # a client that knows one class is right on that one
        assert federation.label_counts[report.best_client, commonest]
        assert report.best_client_accuracy == report.each_client[report.best_client]
        assert out.accuracy == pytest.approx(np.mean(report.each_client))
        seen.append(report.best_client)
    assert len(set(seen)) == 1, "other test images, the same choice"


def test_sweep_resumes_and_writes_one_row_a_cell(tmp_path):
    settings = {
        "methods": ["fedavg", "ensemble"],
        "alphas": [0.1, 1],
        "clients": [2, 3],
        "epochs": 1,
    }
    outs = sweep(**settings, out=tmp_path)
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert (
        lines[0]
        == "method,dataset,alpha,clients,seed,preset,accuracy,bytes_up,bytes_down,seconds_total"
    )
    assert len(lines) == 9 == len(outs) + 1
    events = []
    again = sweep(**settings, watch=events.append)
    assert {event.phase for event in events} == {"remembered"}
    assert again.rows == outs.rows
    with pytest.raises(UsageError, match="axis clients of the study is empty"):
        sweep(**settings | {"clients": []})


def test_the_store_ignores_what_it_cannot_trust(tmp_path):
    store = Store("runs", tmp_path)
    assert store.store_entry_if_possible("k", {"a": 1}, {"x": np.arange(3)})
    values, arrays = store.get("k")
    assert values == {"a": 1} and arrays["x"].tolist() == [0, 1, 2]
    body = tmp_path / "runs" / "k" / "arrays.npz"
    body.write_bytes(body.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="Ignored the stored entry"):
        assert store.get("k") is None
    assert store.store_entry_if_possible("k", {"a": 2}, {}) and store.get("k")[0] == {"a": 2}
    (tmp_path / "runs" / "k" / "entry.json").write_text("{")
    with pytest.warns(UserWarning, match="Ignored"):
        assert store.get("k") is None
    assert store.get("nothing") is None
    store.store_entry_if_possible(
        "k", {}, {"x": np.array([{"evil": 1}], dtype=object)}
    )  # pickled arrays are never loaded
    with pytest.warns(UserWarning, match="Ignored"):
        assert store.get("k") is None


def test_a_full_disk_costs_a_warning_not_the_result(monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(UserWarning, match="No space left"):
        out = run("fedavg", seed=77, **QUICK)
    assert 0 <= out.accuracy <= 1


def test_a_changed_file_is_another_data_set(tmp_path):
    rng = np.random.default_rng(0)

    def write(shift):
        x, y = rng.random((60, 8, 8)).astype("float32"), np.arange(60) % 3
        np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x[:9] * shift, y_test=y[:9])

    write(1.0)
    first = run("fedavg", dataset=tmp_path / "own.npz", **QUICK)
    write(0.5)
    second = run("fedavg", dataset=tmp_path / "own.npz", **QUICK)
    assert not second.cached
    assert not np.array_equal(first.test_features, second.test_features)


def test_a_plain_name_that_the_recipe_has_means_the_recipe_and_convolutions_take_a_smaller_step():
    plans = (
        make_plans(Settings.make(epochs=3), ["dense"]),
        make_plans(Settings.make(**{"dense.epochs": 4}), ["dense"]),
    )
    default = METHODS["dense"]().epochs
    assert [(p.recipe.epochs, p.method.epochs) for (p,) in plans] == [(3, default), (40, 4)]
    rates = [
        make_plans(Settings.make(model=model), ["fedavg"])[0].recipe.lr for model in ("mlp", "cnn")
    ]
    assert rates == [0.05, 0.02]
    assert make_plans(Settings.make(model="cnn", lr=0.1), ["fedavg"])[0].recipe.lr == 0.1


def test_only_methods_that_need_it_pay_the_held_out_part():
    asked = {**QUICK, "cache": False, "holdout": 0.2}
    outs = {o.method: o for o in compare(["fens", "fedavg"], holdout_for="needed", **asked)}
    assert {name: o.to_json()["holdout"] for name, o in outs.items()} == {
        "fens": 0.2,
        "fedavg": 0.0,
    }
    for name, share in (("fens", 0.2), ("fedavg", 0.0)):
        alone = run(name, **{**asked, "holdout": share})
        assert outs[name].accuracy == alone.accuracy and np.array_equal(
            outs[name].test_features, alone.test_features
        )
    everybody = {
        o.method: o.plan.hash_settings_of_local_training()
        for o in compare(["fens", "fedavg"], **asked)
    }
    assert len(set(everybody.values())) == 1
    with pytest.raises(UsageError, match="holdout_for"):
        run("fens", holdout_for="fens", **asked)


def test_methods_that_use_held_out_samples_say_so():
    """Each method without a held-out part: those that hold out refuse, the others run."""
    for name, cls in METHODS.items():
        (plan,) = make_plans(Settings.make(holdout=0, **QUICK), [name])
        context = experiment.Run(plan, experiment.TrainedClients(), cache=False)
        context.prepare_context()
        if cls.holds_out:
            with pytest.raises(UsageError, match="held-out"):
                cls().validate(context.ctx)
        else:
            cls().validate(context.ctx)
