"""`transform`: the first layer of every network brings images to the asked scale, wherever they come from; bytes stay
as they are."""

import copy

import numpy as np
import pytest
import torch

from fedlab_nb.data import compute_normalisation, load, normalise_transform_text
from fedlab_nb.errors import UsageError
from fedlab_nb.models import build, load_state, model_state, prepend_input_normalisation_in_place
from fedlab_nb.rng import generator
from fedlab_nb.studies import run
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.training import Recipe, train_clients_to_end

EXACT = torch.float64
QUICK = {"clients": 3, "epochs": 2, "alpha": 1, "cache": False}


def test_the_constants_are_those_of_numpy():
    x = torch.rand(50, 3, 8, 8, generator=generator(0, "images")) ** 2
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
def test_training_is_that_of_the_plain_network_on_images_of_that_scale(name, width, backend):
    g = generator(0, "transform")
    shards = [
        (torch.rand(n, 3, 8, 8, generator=g, dtype=EXACT), torch.randint(4, (n,), generator=g))
        for n in (40, 25)
    ]
    mean, std = compute_normalisation("standardise", shards[0][0])
    plain = [
        build(name, (3, 8, 8), 4, width=width, generator=generator(1, k), dtype=EXACT)
        for k in range(2)
    ]
    scaled = [
        prepend_input_normalisation_in_place(copy.deepcopy(model), mean, std) for model in plain
    ]
    assert all(len(a.body) == len(b.body) for a, b in zip(plain, scaled, strict=True))
    recipe = Recipe(epochs=2, batch_size=16)
    there = [((x - mean.view(-1, 1, 1)) / std.view(-1, 1, 1), y) for x, y in shards]
    train_clients_to_end(plain, there, recipe, seed=3, backend="loop")
    train_clients_to_end(scaled, shards, recipe, seed=3, backend=backend)
    for own, other in zip(plain, scaled, strict=True):
        pairs = list(
            zip(model_state(own).values(), model_state(other).values(), strict=True)
        )  # no constant is sent
        assert max(float((a - b).abs().max()) for a, b in pairs) < 1e-9


@pytest.mark.parametrize("method", ["fedlpa", "fusefl", "dense", "fedet"])
def test_a_method_runs_with_all_parts_and_sends_the_same_bytes(method):
    fewer = {"fedlpa": {"iterations": 5}, "fusefl": {"passes": 1}, "fedet": {"one_shot_steps": 5}}
    short = fewer.get(method, {"epochs": 1, "passes": 2})
    more = {f"{method}.{key}": value for key, value in short.items()}
    here, plain = (
        run(method, transform=t, **more, **QUICK) for t in ("standardise+crop+flip", "none")
    )
    assert (here.bytes_up, here.bytes_down) == (plain.bytes_up, plain.bytes_down)
    assert here.accuracy_validation is not None
    assert not np.array_equal(here.test_features, plain.test_features)


def test_a_network_of_a_run_sees_test_images_on_its_scale():
    model = run("fedavg", transform="symmetric", device="cpu", **QUICK).model.module
    plain = build("mlp", (1, 8, 8), 10)
    load_state(plain, dict(zip(model_state(plain), model_state(model).values(), strict=True)))
    x = load("digits").x_test
    assert torch.allclose(model(x), plain(2 * x - 1), atol=1e-5)


def test_parts_are_put_in_order_and_decide_the_key():
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
def test_what_is_no_transform_is_refused(wrong):
    with pytest.raises(UsageError, match="fedet.transform"):
        Settings.make(transform=wrong)
    with pytest.raises(UsageError, match="feature rows"):
        normalise_transform_text("standardise", (13,))
