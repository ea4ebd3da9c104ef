"""Networks on the features of a frozen body: the features, the methods that use them, bytes, and refusals."""

import numpy as np
import pytest
import torch

from fedlab_nb import load_model, run
from fedlab_nb.data import add_dataset, load
from fedlab_nb.errors import UsageError
from fedlab_nb.models import count_parameters, lite0
from fedlab_nb.studies.experiment import compare
from fedlab_nb.studies.grid import Study
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.studies.store import Store

SMALL = {"dataset": "tiny", "clients": 2, "alpha": 10, "epochs": 2, "device": "cpu"}


@pytest.fixture(autouse=True)
def tiny(forget_names):
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 12, 12)), np.arange(40) % 2
    x[y == 1, :6] /= 3
    add_dataset("tiny", {"x_train": x[:28], "y_train": y[:28], "x_test": x[28:], "y_test": y[28:]})


def test_the_data_are_the_bodys_standardised_features_and_are_stored(monkeypatch):
    images = load("tiny")
    data = Settings.make(**SMALL, transform="lite0").load_dataset()
    features = lite0.load_lite0()(images.x_train)
    expected = lite0.load_lite0()(images.x_test) - features.mean(0)
    torch.testing.assert_close(
        data.x_test, expected / features.std(0, correction=0), rtol=1e-4, atol=1e-4
    )
    assert torch.equal(data.y_train, images.y_train) and data.digest != images.digest
    assert str(count_parameters(lite0.load_lite0())) in data.note
    feature_store = Store("features")
    monkeypatch.setattr(
        lite0.Lite0, "forward", lambda self, x: pytest.fail("features were computed again")
    )
    assert feature_store.has(data.digest)
    from_store = Settings.make(**SMALL, transform="lite0").load_dataset()
    assert torch.equal(from_store.x_train, data.x_train)


def test_features_are_a_transform_for_networks_and_a_knob_for_methods_that_have_it():
    fens_plan, afl_plan = make_plans(Settings.make(**SMALL, features="lite0"), ["fens", "afl"])
    assert (fens_plan.settings.transform, fens_plan.architectures[0][1]) == ("lite0", (112,))
    assert (afl_plan.settings.transform, afl_plan.method.features) == ("none", "lite0")
    (transform_plan,) = make_plans(Settings.make(**SMALL, transform="lite0"), ["fens"])
    key = transform_plan.hash_settings_of_local_training()
    assert fens_plan.hash_settings_of_local_training() == key
    assert afl_plan.hash_settings_of_local_training() != key
    fens, ensemble = make_plans(
        Settings.make(**SMALL, **{"fens.features": "lite0"}), ["fens", "ensemble"]
    )
    assert fens.settings.reads_frozen_features
    assert not ensemble.settings.reads_frozen_features
    cells = Study.declare(["fens", "afl"], features=["pixels", "lite0"], **SMALL).cells()
    kinds = [(cell.plan.method_name, cell.plan.settings.reads_frozen_features) for cell in cells]
    assert len(cells) == 4
    assert kinds.count(("fens", True)) == 1
    (plain,) = make_plans(Settings.make(**SMALL, features="pixels"), ["fens"])
    assert plain.architectures[0][1] == (1, 12, 12)


def test_a_scale_free_rule_is_the_same_by_features_and_by_transform():
    """LDA without shrinkage does not depend on the units of its features."""
    by_features = run("gauss", **SMALL, head="lda", shrinkage=0, features="lite0")
    by_transform = run("gauss", **SMALL, head="lda", shrinkage=0, transform="lite0")
    assert np.array_equal(by_features.test_predictions, by_transform.test_predictions)


def test_a_run_counts_the_head_alone_and_its_model_can_be_saved(tmp_path):
    out = run("fedavg", **SMALL, features="lite0", cache=False)
    assert out.bytes_up == 2 * 4 * out.parameters
    assert out.parameters == 112 * 64 + 64 + 64 * 32 + 32 + 32 * 2 + 2
    model = load_model(out.save(tmp_path / "m.safetensors"))
    rows = out.settings.load_dataset().x_test
    assert np.array_equal(model.predict(rows), out.predict(rows))
    assert torch.equal(out.federation().dataset.x_test, rows)


def test_cues_are_drawn_on_the_images_that_the_body_sees():
    settings = {**SMALL, "transform": "lite0", "cue": "shape"}
    plain = Settings.make(**settings).make_federation()
    marked = Settings.make(**settings, spurious="0").make_federation()
    changed = (plain.dataset.x_train != marked.dataset.x_train).any(1)
    assert bool(changed[marked.shards[0]].all()) and plain.dataset.digest != marked.dataset.digest


@pytest.mark.parametrize(
    "change", [{"features": "relu"}, {"features": "lite0", "dataset": "watch"}, {"transform": "lite0+flip"},
               {"features": "lite0", "model": "cnn"}],
)  # fmt: skip
def test_impossible_settings_are_refused_in_one_sentence(change):
    with pytest.raises(UsageError) as error:
        compare(["fens"], **{**SMALL, "partition": "iid", **change})
    assert str(error.value).endswith(".") and ". " not in str(error.value)
