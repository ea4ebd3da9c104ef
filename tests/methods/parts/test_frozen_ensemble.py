"""The frozen ensemble against plain loops: logits, gradients to x, batch-norm loss; and that it changes no client."""

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
    make_client_weights,
)
from fedlab_nb.models import Network, build, model_state, prepend_input_normalisation_in_place
from fedlab_nb.rng import generator
from fedlab_nb.training import ClientModels

C = 4
KINDS = {
    "one architecture": [("mlp", 6), ("mlp", 6), ("mlp", 6)],
    "batch norm": [("resnet8", 2), ("resnet8", 2), ("resnet8", 2)],
    "mixed": [("mlp", 6), ("resnet8", 2), ("cnn", 2), ("resnet8", 2), ("mlp", 8)],
}


def clients(kinds, dtype=torch.float64):
    """Models whose batch-norm statistics are no longer those of a fresh model."""
    modules = []
    for k, (name, width) in enumerate(kinds):
        stream = torch.Generator().manual_seed(k)
        module = build(name, (1, 8, 8), C, width=width, generator=stream, dtype=dtype)
        module.train()
        with torch.no_grad():
            module(torch.rand(9, 1, 8, 8, generator=stream, dtype=dtype))
        modules.append(module)
    return ClientModels(modules)


def images(n=7, dtype=torch.float64):
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(99), dtype=dtype)


def test_combining():
    logits = torch.tensor(
        [[[1.0, 2.0]], [[3.0, -2.0]]], dtype=torch.float64
    )  # two clients, one sample
    assert combine_client_logits(logits).tolist() == [[2.0, 0.0]]
    w = torch.tensor([0.5, 1.5], dtype=torch.float64)
    assert combine_client_logits(logits, w).tolist() == [[2.5, -1.0]]
    assert combine_client_logits(logits, w, normalise=False).tolist() == [[5.0, -2.0]]
    torch.testing.assert_close(
        combine_client_logits(logits, 7 * w), combine_client_logits(logits, w)
    )  # a constant changes nothing
    torch.testing.assert_close(
        combine_client_logits(logits, torch.ones(2).double()), combine_client_logits(logits)
    )
    by_class = torch.tensor([[1.0, 0.25], [0.0, 0.75]], dtype=torch.float64)
    assert combine_client_logits(logits, by_class).tolist() == [[1.0, -1.0]]
    assert make_client_weights("samples", [1, 3], logits).tolist() == [0.25, 0.75]
    assert make_client_weights("uniform", [1, 3], logits).tolist() == [0.5, 0.5]


def by_hand(models, x):
    """L_BN, layer by layer, from activations collected in the plain models."""
    total = 0.0
    for module in models.modules:
        inputs = {}
        norms = {
            name: layer
            for name, layer in module.named_modules()
            if isinstance(layer, nn.BatchNorm2d)
        }
        hooks = [
            layer.register_forward_hook(
                lambda _l, args, _o, name=name, inputs=inputs: inputs.update({name: args[0]})
            )
            for name, layer in norms.items()
        ]
        module(x)
        for hook in hooks:
            hook.remove()
        for name, layer in norms.items():
            values = inputs[name].transpose(0, 1).flatten(1)  # [channels, batch and space]
            mean = values.sum(1) / values.shape[1]
            var = ((values - mean[:, None]) ** 2).sum(1) / values.shape[1]
            total = total + ((mean - layer.running_mean) ** 2).sum().sqrt()
            total = total + ((var - layer.running_var) ** 2).sum().sqrt()
    return total / len(models)


@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize(
    "kinds", [KINDS["batch norm"], KINDS["mixed"]], ids=["batch norm", "mixed"]
)
def test_batch_norm_loss_and_its_gradient_against_hand_computed_statistics(kinds, backend):
    models, x = clients(kinds), images().requires_grad_()
    ensemble = FrozenEnsemble(models, backend=backend)
    mine, theirs = (
        ensemble.compute_outputs(x, with_batch_norm_loss=True).batch_norm,
        by_hand(models, x),
    )
    torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        torch.autograd.grad(mine, x), torch.autograd.grad(theirs, x), rtol=0, atol=1e-12
    )


def test_without_batch_norm_the_loss_is_zero():
    ensemble = FrozenEnsemble(clients(KINDS["one architecture"]))
    assert float(ensemble.compute_outputs(images(), with_batch_norm_loss=True).batch_norm) == 0


@pytest.mark.parametrize(("backend", "side"), [("loop", 8), ("stacked", 8), ("stacked", 20)])
def test_clients_are_bit_identical_afterwards_and_carry_no_hooks_or_gradients(backend, side):
    models = clients(KINDS["mixed"], torch.float32)
    if side == 20:  # large images go through several clients at once
        models = ClientModels([client(k, "cnn2", (1, 20, 20), 3, torch.float32) for k in range(2)])
    before = copy.deepcopy([model_state(module) for module in models.modules])
    x = torch.rand(7, 1, side, side).requires_grad_()
    seen = FrozenEnsemble(models, backend=backend).compute_outputs(x, with_batch_norm_loss=True)
    (seen.batch_norm + seen.logits.sum()).backward()
    for module, old in zip(models.modules, before, strict=True):
        assert not module.training
        assert all(torch.equal(t, old[name]) for name, t in model_state(module).items())
        assert all(p.grad is None and p.requires_grad for p in module.parameters())
        assert not any(layer._forward_pre_hooks for layer in module.modules())
    assert x.grad is not None


# ------------------------------------------------------------------------------------------------------ side by side
# Clients side by side, against each by itself: logits, features, gradients of images, L_BN.


def client(k, name, shape, width=None, dtype=torch.float64):
    """A model whose batch norm has statistics, scale and shift of its own."""
    stream = generator(k, name)
    model = build(name, shape, C, width=width, generator=stream, dtype=dtype)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_(generator=stream)
                layer.running_var.uniform_(0.5, 2, generator=stream)
                layer.weight.normal_(generator=stream)  # some are negative
                layer.bias.normal_(generator=stream)
    return model.eval()


def agree(models, x, kinds=None, backend="auto"):
    """FrozenEnsemble's groups are of `kinds`, and it says what each model says."""
    x = x.requires_grad_()
    ensemble = FrozenEnsemble(ClientModels(models), backend=backend)
    loop = FrozenEnsemble(ClientModels(models), backend="loop")
    assert kinds is None or [type(group) for _, group in ensemble.groups] == kinds
    results = []
    for one in (ensemble, loop):
        seen = one.compute_outputs(x, with_batch_norm_loss=True)
        slope = torch.rand(seen.logits.shape, generator=generator(1, "slope"), dtype=x.dtype)
        by_logits = torch.autograd.grad(seen.logits, x, slope, retain_graph=True)
        by_all = torch.autograd.grad((seen.logits * slope).sum() + seen.batch_norm, x)
        results.append(
            (
                seen.logits,
                *seen.features,
                seen.batch_norm,
                *by_logits,
                *by_all,
                one.logits_in_chunks(x.detach()),
            )
        )
        results[-1] += torch.autograd.grad(
            one.logits(x), x, slope
        )  # in pieces, where L_BN takes the whole batch
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
    plain = torch.stack([model(x) for model in models])
    torch.testing.assert_close(results[0][0], plain, rtol=1e-9, atol=1e-9)
    (gradient,) = torch.autograd.grad(plain, x, slope)
    torch.testing.assert_close(results[0][-1], gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
def test_small_images(kinds, backend):
    agree(clients(kinds).modules, images(), backend=backend)


@pytest.mark.parametrize("shape", [(1, 20, 20), (3, 21, 18)], ids=["1x20x20", "3x21x18"])
@pytest.mark.parametrize("name,width", [("cnn", 2), ("lenet5", 2), ("cnn2", 3), ("cnn3", 4)])
def test_each_architecture(name, width, shape, monkeypatch):
    monkeypatch.setattr(frozen_ensemble, "PIECE", 1)  # pieces of eight images, and one
    x = torch.rand(9, *shape, generator=generator(0, "images"), dtype=torch.float64)
    agree([client(k, name, shape, width) for k in range(3)], x, [SideBySideGroup])


@pytest.mark.parametrize(
    "name,width,kind", [("cnn2", 3, SideBySideGroup), ("resnet8", 2, LoopGroup)]
)
def test_as_a_run_scales_its_images(name, width, kind):
    shape, mean, std = (3, 20, 20), torch.tensor([0.3, 0.4, 0.5]), torch.tensor([0.5, 0.2, 0.1])
    models = [
        prepend_input_normalisation_in_place(client(k, name, shape, width), mean, std)
        for k in range(3)
    ]
    x = torch.rand(4, *shape, generator=generator(0, "images"), dtype=torch.float64)
    agree(models, x, [kind])


def test_mixed_architectures():
    shape = (1, 18, 19)
    models = [client(k, *kind[:1], shape, kind[1]) for k, kind in enumerate(
        [("cnn", 2), ("resnet8", 2), ("cnn2", 3), ("cnn", 2), ("cnn2", 3), ("resnet8", 2), ("cnn", 3)]
    )]  # fmt: skip
    x = torch.rand(4, *shape, generator=generator(0, "images"), dtype=torch.float64)
    agree(models, x, [SideBySideGroup, LoopGroup, SideBySideGroup, LoopGroup])


def own(k, *, first=None, rest=(), flat=None):
    """A network of somebody else's layers."""
    layers = [
        first or nn.Conv2d(1, 4, 4, stride=2, padding=(1, 2), bias=False),
        nn.MaxPool2d(3, 2, ceil_mode=True),
    ]
    body = [
        nn.Sequential(nn.Sequential(*layers), nn.Identity(), *rest),
        nn.AdaptiveAvgPool2d(2),
        flat or nn.Flatten(1),
    ]
    torch.manual_seed(k)
    network = Network(
        [*body, nn.Sequential(nn.Linear(16, 7, bias=False), nn.ReLU())],
        7,
        ("own", (1, 20, 20), C, None),
    )
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.reset_parameters()
    return network.double().eval()


def test_layers_of_somebody_else():
    x = torch.rand(4, 1, 20, 20, generator=generator(0, "images"), dtype=torch.float64)
    agree([own(k) for k in range(3)], x, [SideBySideGroup])
    agree(
        [
            own(k, rest=[nn.Conv2d(4, 4, 3, dilation=2, padding="same"), nn.ReLU()])
            for k in range(3)
        ],
        x,
        [SideBySideGroup],
    )


def test_everything_else_goes_one_after_the_other():
    faster, shape = frozen_ensemble.should_run_side_by_side, (1, 20, 20)
    assert faster([client(k, "cnn", shape) for k in range(2)])
    assert not faster([client(0, "cnn", shape)])
    assert not faster([client(k, "cnn", (1, 16, 16)) for k in range(2)])
    assert not faster([client(k, "vgg9", shape, 2) for k in range(2)])  # six convolutions
    assert not faster([client(k, "cnn3", shape, 129) for k in range(2)])
    assert not faster([client(k, "resnet8", shape, 2) for k in range(2)])
    apart = [
        prepend_input_normalisation_in_place(
            client(k, "cnn", shape), torch.tensor([0.3 + k]), torch.tensor([0.5])
        )
        for k in range(2)
    ]
    assert not faster(apart)
    assert not faster([client(0, "cnn", shape), apart[1]]) and not faster(
        [apart[0], client(1, "cnn", shape)]
    )
    assert faster([own(k) for k in range(2)])
    for changed in (
        {"rest": [nn.GELU()]},
        {"rest": [nn.Conv2d(4, 4, 1, groups=2)]},
        {"rest": [nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect")]},
        {"rest": [nn.BatchNorm2d(4, affine=False)]},
        {"first": nn.AvgPool2d(1)},
        {"flat": nn.Flatten(2)},
    ):
        assert not faster([own(k, **changed) for k in range(2)]), changed
