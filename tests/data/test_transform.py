"""`transform`: the first layer of every network brings images to the chosen scale, wherever they come from; the bytes
that are sent do not change."""

import copy

import numpy as np
import pytest
import torch

from fedlab_nb.data import compute_normalisation, load, order_transform_parts
from fedlab_nb.errors import UsageError
from fedlab_nb.models import (
    build,
    copy_model_state,
    load_state,
    prepend_input_normalisation_in_place,
)
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.studies import run
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.training import Recipe, train_clients_in_place

EXACT = torch.float64
QUICK = {"clients": 3, "epochs": 2, "alpha": 1, "cache": False}


def test_mean_and_deviation_equal_numpys():
    x = torch.rand(50, 3, 8, 8, generator=make_torch_generator(0, "images")) ** 2
    mean, std = compute_normalisation("standardise", x)
    assert np.allclose(mean, x.double().numpy().mean((0, 2, 3)), atol=1e-9)
    assert np.allclose(std, x.double().numpy().std((0, 2, 3)), atol=1e-9)
    assert compute_normalisation("none", x) is None
    blank_mean, blank_std = compute_normalisation("standardise", torch.full((5, 1, 8, 8), 0.3))
    assert blank_std.tolist() == [1.0]
    assert float(blank_mean) == pytest.approx(0.3)
    mean, std = compute_normalisation("symmetric", x)
    assert ((torch.tensor([0.0, 1.0]) - mean[0]) / std[0]).tolist() == [-1, 1]


@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize(("name", "width"), [("cnn", 3), ("resnet8", 4)])
def test_training_equals_that_of_a_plain_network_on_scaled_images(name, width, backend):
    g = make_torch_generator(0, "transform")
    shards = [
        (torch.rand(n, 3, 8, 8, generator=g, dtype=EXACT), torch.randint(4, (n,), generator=g))
        for n in (40, 25)
    ]
    mean, std = compute_normalisation("standardise", shards[0][0])
    plain = [
        build(name, (3, 8, 8), 4, width=width, generator=make_torch_generator(1, k), dtype=EXACT)
        for k in range(2)
    ]
    scaled = [
        prepend_input_normalisation_in_place(copy.deepcopy(model), mean, std) for model in plain
    ]
    assert all(len(a.body) == len(b.body) for a, b in zip(plain, scaled, strict=True))
    recipe = Recipe(epochs=2, batch_size=16)
    scaled_shards = [((x - mean.view(-1, 1, 1)) / std.view(-1, 1, 1), y) for x, y in shards]
    train_clients_in_place(plain, scaled_shards, recipe, seed=3, backend="loop")
    train_clients_in_place(scaled, shards, recipe, seed=3, backend=backend)
    for plain_model, scaled_model in zip(plain, scaled, strict=True):
        # The states have as many tensors: the constants of the scale are not sent.
        pairs = list(
            zip(
                copy_model_state(plain_model).values(),
                copy_model_state(scaled_model).values(),
                strict=True,
            )
        )
        assert max(float((a - b).abs().max()) for a, b in pairs) < 1e-9


@pytest.mark.parametrize("method", ["fedlpa", "fusefl", "dense", "fedet"])
def test_a_method_runs_with_a_complete_transform_and_sends_the_same_bytes(method):
    knobs_by_method = {
        "fedlpa": {"iterations": 5},
        "fusefl": {"passes": 1},
        "fedet": {"one_shot_steps": 5},
    }
    knobs_of_method = knobs_by_method.get(method, {"epochs": 1, "passes": 2})
    knobs = {f"{method}.{key}": value for key, value in knobs_of_method.items()}
    transformed, plain = (
        run(method, transform=transform, **knobs, **QUICK)
        for transform in ("standardise+crop+flip", "none")
    )
    assert (transformed.bytes_up, transformed.bytes_down) == (plain.bytes_up, plain.bytes_down)
    assert transformed.accuracy_validation is not None
    assert not np.array_equal(transformed.test_features, plain.test_features)


def test_a_trained_network_scales_test_images_itself():
    model = run("fedavg", transform="symmetric", device="cpu", **QUICK).model.module
    plain = build("mlp", (1, 8, 8), 10)
    load_state(
        plain, dict(zip(copy_model_state(plain), copy_model_state(model).values(), strict=True))
    )
    x = load("digits").x_test
    assert torch.allclose(model(x), plain(2 * x - 1), atol=1e-5)


def test_parts_are_sorted_and_enter_the_store_key():
    keys = {
        text: make_plans(Settings.make(transform=text), ["fedavg"])[
            0
        ].hash_settings_of_local_training()
        for text in ("none", "standardise", "symmetric", "crop", "flip+crop", "flip+standardise")
    }
    assert len(set(keys.values())) == len(keys)
    assert Settings.make(transform="flip + crop+symmetric").transform == "symmetric+crop+flip"
    assert Settings.make(transform="crop+flip") == Settings.make(transform="flip+crop")


@pytest.mark.parametrize(
    "wrong", ["standardise+symmetric", "crop+crop", "none+crop", "", "rotate", True]
)
def test_other_values_are_refused(wrong):
    with pytest.raises(UsageError, match="fedet.transform"):
        Settings.make(transform=wrong)
    with pytest.raises(UsageError, match="feature rows"):
        order_transform_parts("standardise", (13,))
