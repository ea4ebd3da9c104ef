"""The frozen ensemble against plain loops: logits, gradients of images, batch-norm loss; no client is changed."""

import copy

import pytest
import torch
from torch import nn

from fedlab_nb.methods.parts import frozen_ensemble
from fedlab_nb.methods.parts.frozen_ensemble import (
    FrozenEnsemble,
    LoopGroup,
    SideBySideGroup,
    combine_client_logits,
    compute_client_shares,
)
from fedlab_nb.models import Network, build, copy_model_state, prepend_input_normalisation_in_place
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.training import ClientModels

CLASSES = 4
KINDS = {
    "one architecture": [("mlp", 6), ("mlp", 6), ("mlp", 6)],
    "batch norm": [("resnet8", 2), ("resnet8", 2), ("resnet8", 2)],
    "mixed": [("mlp", 6), ("resnet8", 2), ("cnn", 2), ("resnet8", 2), ("mlp", 8)],
}


def make_trained_clients(kinds, dtype=torch.float64):
    """Client models that have seen a batch, so that their batch-norm statistics are not the initial ones."""
    modules = []
    for k, (name, width) in enumerate(kinds):
        stream = torch.Generator().manual_seed(k)
        module = build(name, (1, 8, 8), CLASSES, width=width, generator=stream, dtype=dtype)
        module.train()
        with torch.no_grad():
            module(torch.rand(9, 1, 8, 8, generator=stream, dtype=dtype))
        modules.append(module)
    return ClientModels(modules)


def draw_images(n=7, dtype=torch.float64):
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(99), dtype=dtype)


def test_combining_client_logits_by_hand():
    # Two clients, one sample.
    logits = torch.tensor([[[1.0, 2.0]], [[3.0, -2.0]]], dtype=torch.float64)
    assert combine_client_logits(logits).tolist() == [[2.0, 0.0]]
    w = torch.tensor([0.5, 1.5], dtype=torch.float64)
    assert combine_client_logits(logits, w).tolist() == [[2.5, -1.0]]
    assert combine_client_logits(logits, w, divide_by_weight_sum=False).tolist() == [[5.0, -2.0]]
    # A common factor of the weights has no effect.
    torch.testing.assert_close(
        combine_client_logits(logits, 7 * w), combine_client_logits(logits, w)
    )
    torch.testing.assert_close(
        combine_client_logits(logits, torch.ones(2).double()), combine_client_logits(logits)
    )
    by_class = torch.tensor([[1.0, 0.25], [0.0, 0.75]], dtype=torch.float64)
    assert combine_client_logits(logits, by_class).tolist() == [[1.0, -1.0]]
    assert compute_client_shares("samples", [1, 3], logits).tolist() == [0.25, 0.75]
    assert compute_client_shares("uniform", [1, 3], logits).tolist() == [0.5, 0.5]


def compute_batch_norm_loss_by_hand(models, x):
    """L_BN, layer by layer, from the inputs of the plain models' batch-norm layers."""
    total = 0.0
    for module in models.modules:
        inputs = {}

        def record_input(layer, args, output, inputs=inputs):
            inputs[layer] = args[0]

        norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
        hooks = [layer.register_forward_hook(record_input) for layer in norms]
        module(x)
        for hook in hooks:
            hook.remove()
        for layer in norms:
            values = inputs[layer].transpose(0, 1).flatten(1)  # [channels, batch and space]
            mean = values.sum(1) / values.shape[1]
            var = ((values - mean[:, None]) ** 2).sum(1) / values.shape[1]
            total = total + ((mean - layer.running_mean) ** 2).sum().sqrt()
            total = total + ((var - layer.running_var) ** 2).sum().sqrt()
    return total / len(models)


@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize(
    "kinds", [KINDS["batch norm"], KINDS["mixed"]], ids=["batch norm", "mixed"]
)
def test_batch_norm_loss_and_its_gradient_equal_those_from_collected_activations(kinds, backend):
    models = make_trained_clients(kinds)
    x = draw_images().requires_grad_()
    ensemble = FrozenEnsemble(models, backend=backend)
    loss = ensemble.compute_outputs(x, with_batch_norm_loss=True).batch_norm
    expected = compute_batch_norm_loss_by_hand(models, x)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        torch.autograd.grad(loss, x), torch.autograd.grad(expected, x), rtol=0, atol=1e-12
    )


def test_without_batch_norm_the_loss_is_zero():
    ensemble = FrozenEnsemble(make_trained_clients(KINDS["one architecture"]))
    assert float(ensemble.compute_outputs(draw_images(), with_batch_norm_loss=True).batch_norm) == 0


@pytest.mark.parametrize(("backend", "side"), [("loop", 8), ("stacked", 8), ("stacked", 20)])
def test_clients_are_not_changed_and_keep_no_hooks_or_gradients(backend, side):
    models = make_trained_clients(KINDS["mixed"], torch.float32)
    if side == 20:  # large images run through several clients side by side
        models = ClientModels(
            [make_client(k, "cnn2", (1, 20, 20), 3, torch.float32) for k in range(2)]
        )
    before = copy.deepcopy([copy_model_state(module) for module in models.modules])
    x = torch.rand(7, 1, side, side).requires_grad_()
    outputs = FrozenEnsemble(models, backend=backend).compute_outputs(x, with_batch_norm_loss=True)
    (outputs.batch_norm + outputs.logits.sum()).backward()
    for module, state in zip(models.modules, before, strict=True):
        assert not module.training
        assert all(torch.equal(t, state[name]) for name, t in copy_model_state(module).items())
        assert all(p.grad is None and p.requires_grad for p in module.parameters())
        assert not any(layer._forward_pre_hooks for layer in module.modules())
    assert x.grad is not None


# ------------------------------------------------------------------------------------------------------ side by side
# Clients that run side by side against each client alone: logits, features, gradients of images, L_BN.


def make_client(k, name, shape, width=None, dtype=torch.float64):
    """A model with random statistics, scales and shifts in its batch norm."""
    stream = make_torch_generator(k, name)
    model = build(name, shape, CLASSES, width=width, generator=stream, dtype=dtype)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_(generator=stream)
                layer.running_var.uniform_(0.5, 2, generator=stream)
                layer.weight.normal_(generator=stream)  # some scales are negative
                layer.bias.normal_(generator=stream)
    return model.eval()


def compute_values_and_gradients(ensemble, x):
    """Everything that an ensemble computes for images: logits, features, L_BN, and gradients of the images."""
    outputs = ensemble.compute_outputs(x, with_batch_norm_loss=True)
    slope = torch.rand(
        outputs.logits.shape, generator=make_torch_generator(1, "slope"), dtype=x.dtype
    )
    by_logits = torch.autograd.grad(outputs.logits, x, slope, retain_graph=True)
    by_all = torch.autograd.grad((outputs.logits * slope).sum() + outputs.batch_norm, x)
    # `logits` works in pieces, where L_BN needs the whole batch.
    in_pieces = torch.autograd.grad(ensemble.logits(x), x, slope)
    return [
        outputs.logits,
        *outputs.features,
        outputs.batch_norm,
        *by_logits,
        *by_all,
        ensemble.compute_logits_without_gradients(x.detach()),
        *in_pieces,
    ]


def assert_equals_loop(models, x, kinds=None, backend="auto"):
    """The ensemble has groups of these `kinds` and computes what a loop over the models computes."""
    x = x.requires_grad_()
    ensemble = FrozenEnsemble(ClientModels(models), backend=backend)
    loop = FrozenEnsemble(ClientModels(models), backend="loop")
    assert kinds is None or [type(group) for _, group in ensemble.groups] == kinds
    results = compute_values_and_gradients(ensemble, x)
    for mine, theirs in zip(results, compute_values_and_gradients(loop, x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
    plain = torch.stack([model(x) for model in models])
    torch.testing.assert_close(results[0], plain, rtol=1e-9, atol=1e-9)
    slope = torch.rand(plain.shape, generator=make_torch_generator(1, "slope"), dtype=x.dtype)
    (gradient,) = torch.autograd.grad(plain, x, slope)
    torch.testing.assert_close(results[-1], gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
def test_small_images_equal_the_loop(kinds, backend):
    assert_equals_loop(make_trained_clients(kinds).modules, draw_images(), backend=backend)


@pytest.mark.parametrize("shape", [(1, 20, 20), (3, 21, 18)], ids=["1x20x20", "3x21x18"])
@pytest.mark.parametrize("name,width", [("cnn", 2), ("lenet5", 2), ("cnn2", 3), ("cnn3", 4)])
def test_each_architecture_side_by_side_equals_the_loop(name, width, shape, monkeypatch):
    monkeypatch.setattr(frozen_ensemble, "PIECE", 1)  # pieces of eight images, and one of the ninth
    x = torch.rand(9, *shape, generator=make_torch_generator(0, "images"), dtype=torch.float64)
    assert_equals_loop([make_client(k, name, shape, width) for k in range(3)], x, [SideBySideGroup])


@pytest.mark.parametrize(
    "name,width,kind", [("cnn2", 3, SideBySideGroup), ("resnet8", 2, LoopGroup)]
)
def test_networks_with_input_normalisation_equal_the_loop(name, width, kind):
    shape = (3, 20, 20)
    mean = torch.tensor([0.3, 0.4, 0.5])
    std = torch.tensor([0.5, 0.2, 0.1])
    models = [
        prepend_input_normalisation_in_place(make_client(k, name, shape, width), mean, std)
        for k in range(3)
    ]
    x = torch.rand(4, *shape, generator=make_torch_generator(0, "images"), dtype=torch.float64)
    assert_equals_loop(models, x, [kind])


def test_mixed_architectures_equal_the_loop():
    shape = (1, 18, 19)
    kinds = [
        ("cnn", 2),
        ("resnet8", 2),
        ("cnn2", 3),
        ("cnn", 2),
        ("cnn2", 3),
        ("resnet8", 2),
        ("cnn", 3),
    ]
    models = [make_client(k, name, shape, width) for k, (name, width) in enumerate(kinds)]
    x = torch.rand(4, *shape, generator=make_torch_generator(0, "images"), dtype=torch.float64)
    assert_equals_loop(models, x, [SideBySideGroup, LoopGroup, SideBySideGroup, LoopGroup])


def make_unknown_network(k, *, first_layer=None, further_layers=(), flatten=None):
    """A network that the package does not know, of layers of PyTorch."""
    layers = [
        first_layer or nn.Conv2d(1, 4, 4, stride=2, padding=(1, 2), bias=False),
        nn.MaxPool2d(3, 2, ceil_mode=True),
    ]
    body = [
        nn.Sequential(nn.Sequential(*layers), nn.Identity(), *further_layers),
        nn.AdaptiveAvgPool2d(2),
        flatten or nn.Flatten(1),
    ]
    torch.manual_seed(k)
    network = Network(
        [*body, nn.Sequential(nn.Linear(16, 7, bias=False), nn.ReLU())],
        7,
        ("own", (1, 20, 20), CLASSES, None),
    )
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.reset_parameters()
    return network.double().eval()


def test_unknown_networks_of_known_layers_equal_the_loop():
    x = torch.rand(4, 1, 20, 20, generator=make_torch_generator(0, "images"), dtype=torch.float64)
    assert_equals_loop([make_unknown_network(k) for k in range(3)], x, [SideBySideGroup])
    assert_equals_loop(
        [
            make_unknown_network(
                k, further_layers=[nn.Conv2d(4, 4, 3, dilation=2, padding="same"), nn.ReLU()]
            )
            for k in range(3)
        ],
        x,
        [SideBySideGroup],
    )


def test_other_networks_do_not_run_side_by_side():
    should_run_side_by_side = frozen_ensemble.should_run_side_by_side
    shape = (1, 20, 20)
    assert should_run_side_by_side([make_client(k, "cnn", shape) for k in range(2)])
    assert not should_run_side_by_side([make_client(0, "cnn", shape)])
    assert not should_run_side_by_side([make_client(k, "cnn", (1, 16, 16)) for k in range(2)])
    assert not should_run_side_by_side(
        [make_client(k, "vgg9", shape, 2) for k in range(2)]
    )  # six convolutions
    assert not should_run_side_by_side([make_client(k, "cnn3", shape, 129) for k in range(2)])
    assert not should_run_side_by_side([make_client(k, "resnet8", shape, 2) for k in range(2)])
    differently_normalised = [
        prepend_input_normalisation_in_place(
            make_client(k, "cnn", shape), torch.tensor([0.3 + k]), torch.tensor([0.5])
        )
        for k in range(2)
    ]
    assert not should_run_side_by_side(differently_normalised)
    assert not should_run_side_by_side(
        [make_client(0, "cnn", shape), differently_normalised[1]]
    ) and not should_run_side_by_side([differently_normalised[0], make_client(1, "cnn", shape)])
    assert should_run_side_by_side([make_unknown_network(k) for k in range(2)])
    for change in (
        {"further_layers": [nn.GELU()]},
        {"further_layers": [nn.Conv2d(4, 4, 1, groups=2)]},
        {"further_layers": [nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect")]},
        {"further_layers": [nn.BatchNorm2d(4, affine=False)]},
        {"first_layer": nn.AvgPool2d(1)},
        {"flatten": nn.Flatten(2)},
    ):
        assert not should_run_side_by_side([make_unknown_network(k, **change) for k in range(2)]), (
            change
        )
