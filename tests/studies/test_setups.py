"""Set-ups of papers: their values, copied here from the papers; settings that override them; `fl.plan`."""

import dataclasses

import numpy as np
import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.data import DATASETS, Dataset, describe
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.models import build, parse_models
from fedlab_nb.studies.settings import RECIPE_FIELDS, Settings, list_setting_names, make_plans
from fedlab_nb.studies.setups import CLASSROOM, SETUPS, ValueAndSource
from fedlab_nb.training import Recipe

PAPERS = [name for name in SETUPS if name != CLASSROOM]

# ------------------------------------------------------------------------------- the papers' values
CROPPED = "crop+flip"  # on CIFAR, in the authors' code
FENS = Recipe(
    500,
    16,
    lr=0.0025,
    momentum=0,
    weight_decay=0,
    schedule="cosine",
    lr_min=0.001,
    augmentation=CROPPED,
)
FEDET = Recipe(200, 64, lr=0.1, momentum=0, weight_decay=0)
COBOOSTING = Recipe(
    300, 128, lr=0.01, momentum=0.9, weight_decay=0, clip_norm=10, augmentation=CROPPED
)
FUSEFL = Recipe(200, 128, lr=0.01, momentum=0.9, weight_decay=0, augmentation=CROPPED)
# Data set, α, number of clients, model and recipe of each set-up.
CLIENTS = {
    "fens": ("cifar10", 0.1, 20, "resnet8:128", FENS),
    "fedet": ("cifar10", 0.1, 100, "resnet18-nobn:64,resnet8-nobn:128,cnn:14", FEDET),
    "coboosting": ("cifar10", 0.1, 10, "cnn3", COBOOSTING),
    "fusefl": ("cifar10", 0.5, 5, "resnet18", FUSEFL),
    "fedlpa": (
        "fashion-mnist",
        0.1,
        10,
        "cnn",
        Recipe(200, 64, lr=0.01, momentum=0.9, weight_decay=1e-5),
    ),
}
SYNTHESIS_KNOBS = {"epochs": 200, "images": 128, "batch": 128, "server_lr": 0.01, "temperature": 4}
GENERATOR_KNOBS = {"generator_steps": 30, "generator_lr": 1e-3, "latent": 256, "width": 64}
DENSE_KNOBS = {"passes": 0, "div_weight": 1, "reset": True}
COBOOSTING_KNOBS = {
    "epochs": 500, "generator_steps": 30, "generator_lr": 1e-3, "server_lr": 0.01, "temperature": 4, "epsilon": 8,
    "mu": 0.1, "adversarial_temperature": 1, "perturbation_temperature": 4, "clip": "generator",
    "batch": 128, "images": 128, "latent": 256, "width": 64,
}  # fmt: skip
FADI_KNOBS = {
    "steps": 2000,
    "image_lr": 0.05,
    "tv": 2.5e-5,
    "l2": 0,
    "bn_weight": 10,
    "adaptive": 10,
}
FDAFL_KNOBS = {"one_hot": 1, "entropy": 5, "activation": 0.1}
FIVE_HUNDRED = {
    **SYNTHESIS_KNOBS,
    "epochs": 500,
}  # Co-Boosting uses the same hyperparameters for all methods
ROUNDS = {"rounds": 100, "local_epochs": 2, "schedule": "constant"}
OFTEN = {"rounds": 230, "local_epochs": 5, "per_round": 10}
ONCE = {"rounds": 1, "local_epochs": 200}
KNOBS = {
    "fens": {
        "fedavg": {}, "ensemble": {"rule": "logits"},
        "fedkd": {"epochs": 200, "batch": 512, "server_lr": 1e-3, "loss": "l1"},
        "fedet": {"rounds": 1, "diversity": 0.05}, "fedcvae": {}, "coboosting": COBOOSTING_KNOBS,
        "fens": {"aggregator": "nn", "k": 40, "eta_l": 1, "eta_s": 0.001, "batch": 128, "local_steps": 1,
                 "rounds": 500, "server": "fedadam"},
        "fedavg_multi": {**ROUNDS, "lr": 0.1, "keep": 0.5}, "fedprox": {**ROUNDS, "lr": 0.1, "mu": 0.01},
        "fednova": {**ROUNDS, "lr": 0.005, "momentum": 0.9, "server_momentum": 0.9},
        "scaffold": {**ROUNDS, "lr": 0.01, "eta_s": 1}, "fedyogi": {**ROUNDS, "lr": 0.01, "eta_s": 0.01},
        "fedadam": {**ROUNDS, "lr": 0.01, "eta_s": 0.01},
    },
    "fedet": {
        "fedavg_multi": OFTEN, "fedprox": OFTEN, "scaffold": OFTEN, "moon": {**OFTEN, "mu": 5, "temperature": 0.5},
        "feddf": {**OFTEN, "epochs": 1}, "fedgkt": {**OFTEN, "server_epochs": 20, "weight": 1, "temperature": 3},
        "dsfl": {"rounds": 100, "local_epochs": 5, "temperature": 0.1, "aggregation": "era"},
        "fedet": {"per_round": 10, "local_steps": 30, "server_lr": 0.005, "server_batch": 64, "server_steps": 128,
                  "diversity": 0.05, "width": 128, "pool": "drawn", "transform": True},
    },
    "coboosting": {
        "local": {}, "fedavg": {}, "ensemble": {"rule": "logits"}, "coboosting": COBOOSTING_KNOBS,
        "feddf": {"epochs": 500, "batch": 128, "server_lr": 0.01, "temperature": 4},
        "fadi": {**FIVE_HUNDRED, **FADI_KNOBS}, "fdafl": {**FIVE_HUNDRED, **GENERATOR_KNOBS, **FDAFL_KNOBS},
        "dense": {**FIVE_HUNDRED, **GENERATOR_KNOBS, **DENSE_KNOBS, "bn_weight": 0, "augment": "none"},
        "fedavg_multi": {"rounds": 200, "local_epochs": 10}, "scaffold": {"rounds": 200, "local_epochs": 10},
    },
    "fusefl": {
        "fedavg": {}, "ensemble": {"rule": "logits"}, "coboosting": COBOOSTING_KNOBS, "fedavg_multi": {"rounds": 10},
        "feddf": {"epochs": 200, "batch": 128, "server_lr": 0.01, "temperature": 4},
        "fdafl": {**SYNTHESIS_KNOBS, **GENERATOR_KNOBS, **FDAFL_KNOBS}, "fadi": {**SYNTHESIS_KNOBS, **FADI_KNOBS},
        "dense": {**SYNTHESIS_KNOBS, **GENERATOR_KNOBS, **DENSE_KNOBS, "bn_weight": 1, "augment": "crop+flip"},
        "fusefl": {"blocks": 2, "adaptor": "conv", "virtual": 5000, "passes": 1, "client_rate": True, "fused_rate": 1,
                   "rescale": False, "head": "ccvr"},
    },
    "fedlpa": {
        "fedavg": {}, "fedprox": ONCE, "fednova": {**ONCE, "momentum": 0.9}, "scaffold": ONCE,
        "fisher_merge": {"labels": "true"},
        "dense": {**GENERATOR_KNOBS, **DENSE_KNOBS, "epochs": 200, "images": 256, "batch": 64, "server_lr": 0.005,
                  "temperature": 20, "bn_weight": 1},
        "fedlpa": {"damping": 0.001, "solver": "gd", "step": "official", "iterations": 10_000, "pi": "one"},
        "fedov": {"optimizer": "adam", "lr": 1e-3, "fresh": True, "adversarial": 5},
        "coboosting": COBOOSTING_KNOBS, "fedavg_multi": {"rounds": 50, "local_epochs": 10},
    },
}  # fmt: skip
RATES = {"mnist": (0.001, 0.001, 0.001), "fashion-mnist": (0.001, 0.01, 0.01), "svhn": (0.001, 0.01, 0.01),
         "cifar10": (0.01, 0.01, 0.01), "cifar100": (0.01, 0.01, 0.01)}  # fmt: skip
# Set-up, data set, α, and the values by method ("" for the clients).
ROWS = [
    ("fens", "cifar100", 0.1, {"": {"lr": 0.0025, "epochs": 500},
                               "fens": {"aggregator": "per_class", "eta_s": 0.003, "rounds": 1000, "eta_l": 1}}),
    ("fens", "svhn", 0.1, {"": {"lr": 0.01, "epochs": 50},
                           "fens": {"aggregator": "nn", "k": 40, "eta_l": 0.1, "eta_s": 0.01, "rounds": 500}}),
    ("fens", "cifar10", 0.05, {"fedavg_multi": {"lr": 0.01}, "fedprox": {"lr": 0.01, "mu": 0.01},
                               "fednova": {"lr": 0.02}, "scaffold": {"lr": 0.01, "eta_s": 0.1}}),
    ("fens", "cifar10", 0.01, {"fedavg_multi": {"lr": 0.01}, "fednova": {"lr": 1e-4},
                               "scaffold": {"lr": 1e-4, "eta_s": 1}, "fedyogi": {"lr": 0.01, "eta_s": 0.01}}),
    ("fedet", "cifar100", 0.5, {"": {"lr": 0.1, "batch_size": 64}, "fedet": {"rounds": 270}}),
    *[("fusefl", data, a, {"": {"lr": lr}, "fusefl": {"client_rate": True}}) for data, rates in RATES.items()
      for a, lr in zip((0.1, 0.3, 0.5), rates, strict=True)],
]  # fmt: skip


def make_plans_by_method(preset, names=None, **settings):
    names = names or list(KNOBS[preset])
    return {
        plan.method_name: plan
        for plan in make_plans(Settings.make(preset=preset, device="cpu", **settings), names)
    }


def read_values(plan, names):
    """The values by name: those of the method's knobs, otherwise those of its clients' recipe."""
    knobs = {knob.name for knob in plan.method.fields()}
    return {name: getattr(plan.method if name in knobs else plan.recipe, name) for name in names}


@pytest.mark.parametrize("preset", PAPERS)
def test_set_ups_have_the_papers_values(preset):
    dataset, alpha, clients, model, recipe = CLIENTS[preset]
    plans = make_plans_by_method(preset)
    assert tuple(KNOBS[preset]) and set(KNOBS[preset]) == set(SETUPS[preset].methods)
    for name, plan in plans.items():
        settings = plan.settings
        assert (settings.dataset, settings.alpha, settings.clients) == (dataset, alpha, clients)
        assert read_values(plan, KNOBS[preset][name]) == KNOBS[preset][name], name
        if plan.method.trains_locally:
            assert plan.recipe == recipe
    line = SETUPS[preset].block.shared["model"]
    assert line.value == model


def test_images_are_transformed_as_in_the_papers():
    """As in the authors' code: mean and deviation 0.5 in FENS and Co-Boosting; crop and flip on CIFAR, flip on SVHN."""

    def get_transform(preset, dataset):
        return Settings.make(preset=preset, dataset=dataset, device="cpu").transform

    assert get_transform("fens", "cifar10") == "symmetric+crop+flip"
    assert get_transform("fens", "svhn") == "symmetric+flip"
    assert get_transform("coboosting", "cifar10") == "symmetric+crop+flip"
    assert get_transform("coboosting", "svhn") == "symmetric"
    assert get_transform("coboosting", "mnist") == "symmetric"
    assert get_transform("fedet", "cifar10") == "none"
    for preset in ("fusefl", "fedlpa"):
        assert get_transform(preset, "cifar10") == "crop+flip"
        for dataset in ("svhn", "mnist", "digits"):
            assert get_transform(preset, dataset) == "none"
    assert get_transform("fedlpa", "cifar100") == "standardise+crop+flip"


def test_public_data_and_held_out_parts_are_those_of_the_papers():
    public = {name: Settings.make(preset=name, device="cpu").public for name in PAPERS}
    assert public == {
        "fens": "cifar100",
        "fedet": 0.12,
        "coboosting": 0.2,
        "fusefl": "own",
        "fedlpa": 0,
    }
    assert Settings.make(preset="fens", dataset="svhn", device="cpu").public == "cifar10"
    # Of the 60,000 images seven times as many are private as public.
    fedet = Settings.make(preset="fedet", device="cpu")
    assert round(fedet.share * fedet.describe_dataset().n_train) == 42_000
    assert fedet.describe_dataset().n_public == 6_000
    assert all(Settings.make(preset=name, device="cpu").holdout_for == "needed" for name in PAPERS)


@pytest.mark.parametrize(("preset", "dataset", "alpha", "expected"), ROWS)
def test_rows_of_data_sets_have_their_own_values(preset, dataset, alpha, expected):
    plans = make_plans_by_method(preset, dataset=dataset, alpha=alpha)
    for name, values in expected.items():
        plan = plans[name or preset]
        assert read_values(plan, values) == values, name


@pytest.mark.parametrize("preset", PAPERS)
def test_all_methods_of_a_set_up_share_federation_recipe_and_networks(preset):
    """One federation, and one recipe and one architecture or mixture for all methods with local training. Methods of
    rounds, and those with a training of their own, may have further values."""
    plans = make_plans_by_method(preset).values()
    assert (
        len({tuple(plan.settings.list_nondefault_federation_options().items()) for plan in plans})
        == 1
    )
    assert len({plan.digest for plan in plans}) == 1
    shared = {plan.recipe for plan in plans if plan.method.trains_locally}
    assert len(shared) == 1
    kinds = {plan.architectures for plan in plans}
    mixed = {
        plan.architectures for plan in plans if "one architecture" not in plan.method.info.needs
    }
    assert len(kinds) == (2 if preset == "fedet" else 1) and len(mixed) == 1
    if preset == "fedet":  # methods for one architecture train the large network
        (architectures,) = kinds - mixed
        assert {(name, width) for name, *_, width in architectures} == {("vgg9", 78)}


def test_every_line_is_a_setting_with_a_source():
    for name in PAPERS:
        setup = SETUPS[name]
        assert set(setup.datasets) <= set(DATASETS) and setup.title and setup.paper and setup.help
        for block in (setup.block, *setup.rows):
            assert set(block.shared) <= list_setting_names() | set(RECIPE_FIELDS) | {
                "model",
                "one_model",
            }
            lines = list(block.shared.values())
            for method, own in block.methods.items():
                assert set(own) <= {k.name for k in METHODS[method].fields()} | set(
                    RECIPE_FIELDS
                ), method
                lines += own.values()
            assert all(isinstance(line, ValueAndSource) and line.source.strip() for line in lines)
        for method in setup.methods:
            assert setup.block.sources[method]


@pytest.mark.slow
@pytest.mark.parametrize("preset", PAPERS)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
def test_the_networks_can_be_built(preset, shape):
    lines = SETUPS[preset].copy_with_values_for_dataset_and_alpha("any", 0.1, shape).block.shared
    for line in {"model", "one_model"} & lines.keys():
        for name, width in parse_models(lines[line].value, shape):
            assert build(name, shape, 10, width=width)(torch.zeros(1, *shape)).shape == (1, 10)


def test_given_settings_override_those_of_the_set_up():
    given = {
        "dataset": "digits",
        "alpha": 0.3,
        "clients": 4,
        "model": "mlp",
        "public": 0.2,
        "holdout": 0.2,
    }
    plans = make_plans_by_method(
        "fens", ["fens", "fedadam"], lr=0.5, rounds=7, **{"fens.k": 5}, **given
    )
    for plan in plans.values():
        assert {name: getattr(plan.settings, name) for name in given} == given
        assert plan.recipe.lr == 0.5 and plan.method.rounds == 7
        assert {name for name, *_ in plan.architectures} == {"mlp"}
    assert plans["fens"].recipe.epochs == 500 and plans["fens"].method.k == 5
    assert plans["fedadam"].recipe.schedule == "constant" and plans["fedadam"].method.eta_s == 0.01


def test_methods_outside_the_paper_have_its_clients_and_default_knobs():
    plans = make_plans_by_method("coboosting", ["coboosting", "fedov", "fens"])
    assert len({plan.architectures for plan in plans.values()}) == 1
    assert len({plan.recipe for plan in plans.values()}) == 1
    assert plans["fens"].method == METHODS["fens"]() and plans["fedov"].method == METHODS["fedov"]()
    on_grey_images = make_plans_by_method("coboosting", dataset="mnist")
    assert {plan.client_model for plan in on_grey_images.values()} == {"lenet5"}


# ------------------------------------------------------------------------------------------------------- fl.plan
@pytest.mark.parametrize("preset", SETUPS)
def test_a_plan_gives_a_source_for_every_line(preset):
    methods = ["fens", "fedavg_multi"] if preset == CLASSROOM else None
    overview = fl.plan(preset, methods)
    assert all(source.strip() for _, _, source in overview.list_rows())
    shared, text = overview.shared, repr(overview)
    assert {"dataset", "alpha", "clients", "partition", "model", "epochs", "lr"} <= set(shared)
    assert [plan.method_name for plan in overview.plans] == list(methods or SETUPS[preset].methods)
    for plan in overview.plans:
        assert {k.name for k in plan.method.fields()} <= set(overview.methods[plan.method_name])
        assert f"\n{plan.method_name} " in text
    assert overview._repr_html_().count("<tr>") == len(overview.list_rows()) + 1


def test_a_plan_marks_given_values_and_those_that_are_not_the_papers():
    overview = fl.plan(
        "fusefl", ["fusefl", "fens"], dataset="digits", lr=0.2, **{"fusefl.blocks": 4}
    )
    shared, methods = overview.shared, overview.methods
    assert shared["dataset"] == ValueAndSource("digits", "given here") and shared[
        "lr"
    ] == ValueAndSource(0.2, "given here")
    assert shared["momentum"].value == 0.9 and "4.1" in shared["momentum"].source
    assert (
        methods["fusefl"]["blocks"] == ValueAndSource(4, "given here")
        and methods["fusefl"]["virtual"].source == "code"
    )
    assert (
        methods["fusefl"]["warm_start"].source
        == methods["fens"]["rounds"].source
        == "not given: classroom"
    )
    assert methods["fens"][""].source.startswith("not in this paper")
    assert overview.notes[0].startswith("digits is not in this paper")
    assert fl.plan("fusefl", "fedavg_multi").methods["fedavg_multi"]["rounds"].value == 10


def test_a_plan_keeps_the_clients_of_the_data():
    data = Dataset("wards", torch.rand(30, 1, 8, 8), torch.arange(30) % 3, torch.rand(6, 1, 8, 8), torch.arange(6) % 3,
                   None, ("a", "b", "c"), "wards", client_train=torch.arange(30) % 5,
                   client_names=tuple("12345"))  # fmt: skip
    shared = fl.plan("fedlpa", ["fedavg"], dataset=data, model="mlp").shared
    assert (
        shared["partition"] == ValueAndSource("natural", "the data's own clients")
        and shared["clients"].value == 5
    )
    assert "alpha" not in shared and shared["epochs"].value == 200


def test_a_plan_for_feature_rows_uses_a_perceptron(tmp_path):
    path = tmp_path / "rows.npz"
    rows = np.random.default_rng(0).normal(size=(40, 7))
    np.savez(path, x_train=rows, y_train=np.arange(40) % 2, x_test=rows, y_test=np.arange(40) % 2)
    overview = fl.plan("fens", ["ensemble"], dataset=path, clients=2)
    assert overview.shared["model"].value == "mlp" and overview.shared["transform"].value == "none"
    assert overview.shared["model"].source.startswith("the paper has no feature rows")


def test_wrong_plans_are_refused():
    for wrong in ({"preset": "paper"}, {"methods": ["fenz"]}, {"alpha": 0}, {"roundz": 3}):
        with pytest.raises(UsageError):
            fl.plan(**wrong)


def test_the_classroom_is_the_default_set_up():
    assert Settings.make() == dataclasses.replace(Settings(), device=Settings.make().device)
    overview = fl.plan(methods="fedavg")
    assert overview.shared["epochs"].value == 40 and overview.shared["dataset"].value == "digits"
    assert describe("digits").n_train == 1237
