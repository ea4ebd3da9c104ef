"""Seeds trained together: what each run alone gives, to rounding, and nobody's trouble but one's own."""

import numpy as np
import pytest

from fedlab_nb.errors import RunError
from fedlab_nb.study import Store, compare, experiment, job, run
from fedlab_nb.study.clients import SeedTraining
from fedlab_nb.study.settings import Settings, plans_for

QUICK = {"clients": 4, "epochs": 3, "alpha": 0.5}


@pytest.fixture
def trainings(monkeypatch):
    """How many seeds each local training of the test had."""
    counts = []
    real = experiment.train_together

    def counted(parties):
        counts.append(len(parties))
        return real(parties)

    monkeypatch.setattr(experiment, "train_together", counted)
    return counts


@pytest.mark.parametrize("settings", [{}, {"init": "different"}, {"model": "mlp,cnn"}], ids=["", "init", "mixed"])
def test_each_seed_is_what_it_is_alone(trainings, settings):
    methods = ["local", "ensemble"]
    together = compare(methods, seeds=3, cache=False, **QUICK, **settings)
    assert trainings == [3] and len(together) == 6
    for there in together:
        alone = run(there.method, cache=False, seed=there.settings.seed, **QUICK, **settings)
        assert np.allclose(alone.test_features, there.test_features, atol=1e-4)
        assert alone.accuracy == pytest.approx(there.accuracy, abs=0.01)
        assert alone.ledger == there.ledger and np.array_equal(alone.label_counts, there.label_counts)
        assert [p["phase"] for p in alone.history] == [p["phase"] for p in there.history]
        for one, other in zip(alone.history, there.history, strict=True):
            assert one["progress"] == other["progress"] and one["bytes"] == other["bytes"]
            assert one["accuracy"] == pytest.approx(other["accuracy"], abs=0.01)
        assert there.seconds_local > 0 and there.plan == alone.plan
        assert there.clients_cached == (there.method == "ensemble")  # the first method of each seed trained them


def test_time_is_shared_out():
    compare(["local"], seeds=4, **QUICK)
    keys = [plans_for(Settings.make(seed=seed, **QUICK), ["local"])[0].clients_key() for seed in range(4)]
    seconds = {Store("clients").get(key)[0]["seconds"] for key in keys}
    assert len(seconds) == 1 and seconds.pop() > 0


def test_only_what_is_missing_is_trained(trainings):
    run("local", seed=1, **QUICK)
    assert compare(["local"], seeds=4, **QUICK)[1].cached
    assert trainings == [1, 3]
    assert all(o.cached for o in compare(["local"], seeds=4, **QUICK)) and len(trainings) == 2
    assert not any(o.clients_cached is False for o in compare(["ensemble"], seeds=4, **QUICK)) and len(trainings) == 2


def test_the_loop_takes_one_seed_after_the_other(trainings):
    compare(["local"], seeds=2, cache=False, backend="loop", **QUICK)
    assert trainings == [1, 1]


def test_no_more_than_eight_at_a_time(trainings):
    compare(["local"], seeds=10, cache=False, clients=2, epochs=1, alpha=1)
    assert trainings == [8, 2]


def test_what_diverged_in_company_is_told_by_its_own_run(monkeypatch, trainings):
    monkeypatch.setattr(SeedTraining, "finite", property(lambda self: self.context.seed != 1))
    outs = compare(["local"], seeds=3, cache=False, **QUICK)
    assert trainings == [3, 1] and [o.settings.seed for o in outs] == [0, 1, 2]
    with pytest.raises(RunError, match="diverged with lr=100"):
        compare(["local"], seeds=2, cache=False, lr=100, weight_decay=10, **QUICK)


def test_stop_before_and_after_the_common_training(trainings):
    steps = job(["local"], seeds=3, **QUICK)
    for event in steps:
        if event.curve is not None:
            break
    steps.close()
    assert not run("local", seed=2, **QUICK).clients_cached and trainings == [3, 1]
    steps = job(["ensemble"], seeds=2, seed=5, **QUICK)
    for event in steps:
        if event.outcome is not None:
            break
    steps.close()
    run("local", seed=6, **QUICK)
    assert trainings == [3, 1, 2]


def test_a_method_that_fails_later_has_not_trained_for_nothing(monkeypatch):
    def broken(self, ctx):
        yield from ctx.local_training()
        yield experiment.Progress("server", 0, 1)
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(experiment.METHODS["ensemble"], "run", broken)
    assert [str(e.error) for e in job("ensemble", **QUICK) if e.error] == ["broken on purpose"]
    assert run("local", **QUICK).clients_cached
