"""The architectures: published sizes, every image size, features and classifier, initial weights, copies, refusals."""

import math

import pytest
import torch
from torch import nn

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedet.consensus import CommonHeadNetwork
from fedlab_nb.models import (
    MODELS,
    add_model,
    build,
    choose_default_model_name,
    copy_model_state,
    count_parameters,
    load_state,
)
from fedlab_nb.models.build import make_initialised_layer
from fedlab_nb.models.state import copy_model

IMAGE_MODELS = [name for name, info in MODELS.items() if info.required_sample_kind != "recordings"]
TORCHVISION_MODELS = ["mobilenet", "shufflenet"]
SIZES = [(8, 8), (9, 13), (16, 16), (28, 28), (32, 32)]
SLIM = dict.fromkeys(
    "resnet10 resnet18 resnet26 vgg9 vgg11 wrn40 mobilenet shufflenet".split(), 4
)  # widths that make a test fast; maps are as large as at full width


def make_generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    "name, input_shape, width, parameters",
    [
        ("mlp", (64,), None, 64 * 64 + 64 + 64 * 32 + 32 + 32 * 10 + 10),  # 6,570 by hand
        ("mlp", (1, 28, 28), None, 784 * 256 + 256 + 256 * 64 + 64 + 64 * 10 + 10),
        ("cnn", (1, 28, 28), None, 44_426),
        ("cnn", (3, 32, 32), None, 62_006),
        ("lenet5", (1, 32, 32), None, 61_706),
        ("lenet5", (1, 28, 28), None, 61_706),
        ("lenet5", (1, 8, 8), None, 61_706),
        (
            "cnn2",
            (1, 28, 28),
            None,
            416 + 32 + 12_832 + 64 + 1568 * 10 + 10,
        ),  # DENSE's for grey images
        ("cnn1d", (6, 100), None, 6 * 80 + 16 + 16 * 160 + 32 + 32 * 160 + 32 + 330),
        ("cnn3", (3, 32, 32), None, 3_584 + 2 * 147_584 + 2048 * 10 + 10),  # Co-Boosting's CNN1
        (
            "resnet8",
            (3, 32, 32),
            128,
            4_932_344 - 20_590,
        ),  # FENS' count less the layers that its forward pass never uses
        ("resnet18", (3, 32, 32), 64, 11_173_962),
        ("resnet10", (3, 32, 32), 64, 4_903_242),
        ("resnet26", (3, 32, 32), 64, 17_444_682),
        ("vgg9", (3, 32, 32), 32, 3_491_530),  # FedMA's
        ("vgg11", (3, 32, 32), None, 9_231_114),  # Co-Boosting's, as the next two
        ("mobilenet", (3, 32, 32), None, 1_528_106),
        ("shufflenet", (3, 32, 32), None, 1_263_854),
        (
            "shufflenet",
            (3, 32, 32),
            24,
            352_042,
        ),  # 0.5x: torchvision's 1,366,792 less 990 rows of 1,025
        ("wrn16", (3, 32, 32), 32, 691_674),  # WRN-16-2 and WRN-40-2, which are often given
        ("wrn40", (3, 32, 32), 32, 2_243_546),
        ("wrn16", (3, 32, 32), None, 175_066),
        ("wrn40", (3, 32, 32), None, 563_930),
        ("resnet18-gn", (3, 32, 32), None, 11_173_962),
        (
            "resnet18-nobn",
            (3, 32, 32),
            None,
            11_173_962 - 4_800,
        ),  # a bias instead of scale and shift
    ],
)
def test_the_number_of_parameters_is_the_published_one(name, input_shape, width, parameters):
    assert count_parameters(build(name, input_shape, 10, width=width)) == parameters
    if name == "resnet8":
        # For 100 classes, less the second linear layer and the embedding of FENS' public code.
        assert count_parameters(build(name, input_shape, 100, width=width)) == 5_311_064 - (
            100 * 2148 + 100
        )


def test_resnet18_state_has_the_published_buffers():
    state = copy_model_state(build("resnet18", (3, 32, 32), 10))
    assert sum(t.numel() for t in state.values()) == 11_173_962 + 2 * 4_800
    assert not any(name.endswith("num_batches_tracked") for name in state)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [(1, 8, 8), (3, 9, 13), (1, 28, 28), (3, 32, 32), (3, 8, 40), (1, 37, 64)]
)
@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_every_model_takes_every_size(name, shape):
    model = build(name, shape, 7, width=SLIM.get(name), generator=make_generator())
    x = torch.rand(3, *shape, generator=make_generator(1))
    features = model.features(x)
    assert features.shape == (3, model.classifier.in_features)
    assert torch.equal(model(x), model.classifier(features))
    logits = model.eval()(x)
    assert logits.shape == (3, 7) and logits.isfinite().all()
    assert torch.equal(logits, model.classifier(model.features(x)))
    if name in TORCHVISION_MODELS:
        # Through fifty untrained layers an image has an effect only with the statistics of its own batch.
        logits = model.train()(x)
    assert len({row.round(decimals=6).sum().item() for row in logits}) == 3  # one for each image
    model.train()(x[:1]).logsumexp(1).sum().backward()  # a batch of one
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_mlp_takes_feature_rows_and_any_image():
    assert build("mlp", (20,), 3)(torch.rand(5, 20)).shape == (5, 3)
    assert build("mlp", (2, 5, 5), 3)(torch.rand(5, 2, 5, 5)).shape == (5, 3)
    for features, units in ((256, [64, 32, 3]), (257, [256, 64, 3])):
        layers = build("mlp", (features,), 3).modules()
        assert [layer.out_features for layer in layers if isinstance(layer, nn.Linear)] == units


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "name", [name for name, info in MODELS.items() if info.batch_norm and name != "cnn2"]
)
def test_no_feature_map_is_below_two_by_two(name, size):
    model = build(name, (1, *size), 2, width=2)
    sides = []
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_hook(lambda layer, args, out: sides.append(min(out.shape[2:])))
    model(torch.rand(1, 1, *size))
    assert min(sides) >= 2


@pytest.mark.parametrize("size", [(28, 28), (9, 13), (31, 45)])
def test_resnet8_pools_as_adaptive_pooling_to_two_by_two(size):
    model = build("resnet8", (1, *size), 2, width=2).eval()
    maps = model.body[:-1](torch.rand(3, 1, *size))
    torch.testing.assert_close(
        model.body[-1](maps), nn.functional.adaptive_avg_pool2d(maps, 2).flatten(1)
    )


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_initial_weights_depend_on_the_random_stream_alone(name):
    before = torch.get_rng_state()

    def build_state(seed):
        return copy_model_state(
            build(name, (3, 16, 16), 5, width=8, generator=make_generator(seed))
        )

    state = build_state(1)
    same_seed = build_state(1)
    other_seed = build_state(2)
    without_stream, also_without_stream = (build(name, (3, 16, 16), 5, width=8) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(state[key], same_seed[key]) for key in state)
    assert not torch.equal(state["classifier.weight"], other_seed["classifier.weight"])
    assert torch.equal(without_stream.classifier.weight, also_without_stream.classifier.weight)


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_initial_weights_have_pytorchs_distribution(name):
    ours = build(name, (3, 32, 32), 10, generator=make_generator())
    for layer in ours.modules():
        if isinstance(layer, nn.BatchNorm2d):
            fresh = nn.BatchNorm2d(layer.num_features).state_dict()
            assert all(torch.equal(value, fresh[key]) for key, value in layer.state_dict().items())
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            assert layer.weight.abs().max() <= bound * 1.0001
            if layer.weight.numel() > 2000:
                # Uniform between -bound and bound: standard deviation bound / sqrt(3).
                assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
            if layer.bias is not None:
                assert 0 < layer.bias.abs().max() <= bound * 1.0001


def test_double_precision_starts_from_the_same_weights():
    single = copy_model_state(build("cnn", (1, 28, 28), 10, generator=make_generator()))
    double = copy_model_state(
        build("cnn", (1, 28, 28), 10, generator=make_generator(), dtype=torch.float64)
    )
    assert all(
        double[key].dtype == torch.float64 and torch.equal(double[key].float(), single[key])
        for key in single
    )


def test_models_of_equal_architecture_exchange_states():
    model = build("cnn", [1, 28, 28], 10)
    twin = build("cnn", (1, 28, 28), 10, width=6, generator=make_generator())
    wider = build("cnn", (1, 28, 28), 10, width=7)
    assert model.architecture == twin.architecture == ("cnn", (1, 28, 28), 10, 6)
    assert wider.architecture != model.architecture
    load_state(model, copy_model_state(twin))
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(model(x), twin(x))


def test_model_state_and_load_state_copy():
    model = build("resnet8", (1, 8, 8), 3, width=2)
    state = copy_model_state(model)
    assert all(not t.requires_grad for t in state.values())
    assert {"body.0.1.running_mean", "body.0.1.running_var"} <= state.keys()
    state["classifier.weight"].fill_(7.0)
    assert model.classifier.weight.abs().max() < 7
    load_state(model, state)
    state["classifier.weight"].fill_(8.0)
    assert model.classifier.weight.eq(7.0).all() and model.classifier.weight.requires_grad


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    model = build("mlp", (8,), 3)
    wider = build("mlp", (9,), 3, generator=make_generator(5))
    before = copy_model_state(model)
    with pytest.raises(
        UsageError, match=r"'body.0.1.weight' is \(64, 9\), but the model's is \(64, 8\)"
    ):
        load_state(model, copy_model_state(wider))
    with pytest.raises(UsageError, match="'classifier.bias' is in the model only"):
        load_state(model, {key: t for key, t in before.items() if key != "classifier.bias"})
    assert all(torch.equal(t, before[key]) for key, t in copy_model_state(model).items())


def test_the_default_model_depends_on_the_input_shape():
    assert {
        choose_default_model_name(shape)
        for shape in ((30,), (256,), (1, 15, 16), (3, 40, 7), (4, 28, 28))
    } == {"mlp"}
    assert {choose_default_model_name(shape) for shape in ((1, 16, 16), (3, 32, 32))} == {"cnn"}


@pytest.mark.parametrize(
    "name, input_shape, options, message",
    [
        ("resnet9", (3, 32, 32), {}, "Unknown model 'resnet9': did you mean 'resnet8'"),
        ("cnn", (64,), {}, "needs images, not feature rows of 64"),
        ("lenet5", (1, 7, 28), {}, "at least 8x8, not 7x28"),
        ("resnet8", (4, 32, 32), {}, "1 or 3 channels, not 4"),
        ("mlp", (8, 8, 8, 8), {}, r"input_shape is \(8, 8, 8, 8\)"),
        ("mlp", (0,), {}, "a side of input_shape is 0"),
        ("mlp", (8,), {"width": 3}, "width of mlp is 3, .* from 4 to 4096"),
        ("cnn", (1, 28, 28), {"width": 1.5}, "width of cnn is 1.5"),
        ("mlp", (8,), {"classes": 1}, "classes is 1"),
        ("mlp", (8,), {"dtype": torch.int64}, "dtype is torch.int64"),
    ],
)
def test_wrong_requests_are_refused_in_one_sentence(name, input_shape, options, message):
    with pytest.raises(UsageError, match=message):
        build(name, input_shape, **{"classes": 10, **options})


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_widths_at_both_ends_of_the_range_are_built(name):
    low = MODELS[name].widths[0]
    assert build(name, (1, 8, 8), 2, width=low)(torch.rand(2, 1, 8, 8)).shape == (2, 2)
    assert (
        MODELS[name].default_width is None
        or low <= MODELS[name].default_width <= MODELS[name].widths[1]
    )


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_a_copy_is_a_deep_copy(name):
    model = build(name, (1, 8, 8), 3, width=SLIM.get(name)).eval()
    next(model.parameters()).requires_grad_(False)
    twin = copy_model(model)
    assert repr(twin) == repr(model) and twin.architecture == model.architecture
    assert [m.training for m in twin.modules()] == [m.training for m in model.modules()]
    assert [p.requires_grad for p in twin.parameters()] == [
        p.requires_grad for p in model.parameters()
    ]
    state = model.state_dict()
    copied = twin.state_dict()
    assert copied.keys() == state.keys()
    assert all(torch.equal(copied[name], state[name]) for name in state)
    addresses = {tensor.data_ptr() for tensor in state.values()}
    assert not addresses & {tensor.data_ptr() for tensor in copied.values()}
    twin.body[0].register_forward_hook(lambda *_: None)
    twin.train()
    assert not model.body[0]._forward_hooks and not model.training


def test_a_copy_of_a_layer_that_the_package_does_not_know():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.counts = []

    model = nn.Sequential(Counter(), nn.Linear(2, 2))
    twin = copy_model(model)
    twin[0].counts.append(1)
    assert model[0].counts == [] and torch.equal(twin[1].weight, model[1].weight)


def test_making_layers_does_not_import_torch_fx(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("to_empty imports torch.fx, which takes half a second")

    monkeypatch.setattr(nn.Module, "to_empty", refuse)
    stream = torch.Generator().manual_seed(0)
    layer = make_initialised_layer(
        nn.Conv2d,
        3,
        4,
        1,
        generator=stream,
        dtype_device_template=torch.zeros(1, dtype=torch.float64),
    )
    assert layer.weight.dtype == torch.float64 and 0 < layer.weight.abs().max() <= 1 / 3**0.5
    body = build("mlp", (1, 8, 8), 10, generator=stream)
    assert CommonHeadNetwork(body, 16, generator=stream)(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


class Gate(torch.nn.Module):
    """A user's layer, whose initial values follow none of the package's rules."""

    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((width,), 0.5))
        self.drawn = torch.nn.Parameter(torch.randn(width))
        self.register_buffer("shift", torch.arange(width) / 8)

    def forward(self, x):
        return x * self.scale * self.drawn + self.shift


def test_a_users_layers_keep_their_initial_values():
    add_model("gate", lambda shape, width: ([torch.nn.Flatten(), Gate(64)], 64))
    try:
        before = torch.get_rng_state()
        model, same_seed, other_seed = (
            build("gate", (1, 8, 8), 3, generator=make_generator(seed)) for seed in (1, 1, 2)
        )
        assert torch.equal(torch.get_rng_state(), before)
        for built in (model, same_seed, other_seed):
            gate = built.body[1]
            assert (gate.scale == 0.5).all() and torch.equal(gate.shift, torch.arange(64) / 8)
        assert torch.equal(model.body[1].drawn, same_seed.body[1].drawn)
        assert not torch.equal(model.body[1].drawn, other_seed.body[1].drawn)
        assert torch.equal(model.classifier.weight, same_seed.classifier.weight)
        assert build("gate", (1, 8, 8), 3, dtype=torch.float64).body[1].scale.dtype == torch.float64
    finally:
        MODELS.pop("gate")
