"""The clients side by side, against each client by itself: logits, features, gradients of images, L_BN."""

import pytest
import torch
from torch import nn

from fedlab_nb.methods.parts import frozen_groups
from fedlab_nb.methods.parts.frozen_ensemble import FrozenEnsemble
from fedlab_nb.methods.parts.frozen_groups import Loop, Wide
from fedlab_nb.models import Network, build, normalise_inputs
from fedlab_nb.rng import generator
from fedlab_nb.training import ClientModels

C = 5


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


def agree(models, x, kinds):
    """FrozenEnsemble's groups are of `kinds`, and it says what each model says."""
    x = x.requires_grad_()
    ensemble = FrozenEnsemble(ClientModels(models))
    loop = FrozenEnsemble(ClientModels(models), backend="loop")
    assert [type(group) for _, group in ensemble.groups] == kinds
    results = []
    for one in (ensemble, loop):
        seen = one.look(x, statistics=True)
        slope = torch.rand(seen.logits.shape, generator=generator(1, "slope"), dtype=x.dtype)
        by_logits = torch.autograd.grad(seen.logits, x, slope, retain_graph=True)
        by_all = torch.autograd.grad((seen.logits * slope).sum() + seen.batch_norm, x)
        results.append((seen.logits, *seen.features, seen.batch_norm, *by_logits, *by_all, one.remembered(x.detach())))
        results[-1] += torch.autograd.grad(one.logits(x), x, slope)  # in pieces, where L_BN takes the whole batch
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
    plain = torch.stack([model(x) for model in models])
    torch.testing.assert_close(results[0][0], plain, rtol=1e-9, atol=1e-9)
    (own,) = torch.autograd.grad(plain, x, slope)
    torch.testing.assert_close(results[0][-1], own, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 20, 20), (3, 21, 18)], ids=["1x20x20", "3x21x18"])
@pytest.mark.parametrize("name,width", [("cnn", 2), ("lenet5", 2), ("cnn2", 3), ("cnn3", 4)])
def test_each_architecture(name, width, shape, monkeypatch):
    monkeypatch.setattr(frozen_groups, "PIECE", 1)  # pieces of eight images, and one
    x = torch.rand(9, *shape, generator=generator(0, "images"), dtype=torch.float64)
    agree([client(k, name, shape, width) for k in range(3)], x, [Wide])


@pytest.mark.parametrize("name,width,kind", [("cnn2", 3, Wide), ("resnet8", 2, Loop)])
def test_as_a_run_scales_its_images(name, width, kind):
    shape, mean, std = (3, 20, 20), torch.tensor([0.3, 0.4, 0.5]), torch.tensor([0.5, 0.2, 0.1])
    models = [normalise_inputs(client(k, name, shape, width), mean, std) for k in range(3)]
    x = torch.rand(4, *shape, generator=generator(0, "images"), dtype=torch.float64)
    agree(models, x, [kind])


def test_mixed_architectures():
    shape = (1, 18, 19)
    models = [client(k, *kind[:1], shape, kind[1]) for k, kind in enumerate(
        [("cnn", 2), ("resnet8", 2), ("cnn2", 3), ("cnn", 2), ("cnn2", 3), ("resnet8", 2), ("cnn", 3)]
    )]  # fmt: skip
    x = torch.rand(4, *shape, generator=generator(0, "images"), dtype=torch.float64)
    agree(models, x, [Wide, Loop, Wide, Loop])


def own(k, *, first=None, rest=(), flat=None):
    """A network of somebody else's layers."""
    layers = [first or nn.Conv2d(1, 4, 4, stride=2, padding=(1, 2), bias=False), nn.MaxPool2d(3, 2, ceil_mode=True)]
    body = [nn.Sequential(nn.Sequential(*layers), nn.Identity(), *rest), nn.AdaptiveAvgPool2d(2), flat or nn.Flatten(1)]
    torch.manual_seed(k)
    network = Network([*body, nn.Sequential(nn.Linear(16, 7, bias=False), nn.ReLU())], 7, ("own", (1, 20, 20), C, None))
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.reset_parameters()
    return network.double().eval()


def test_layers_of_somebody_else():
    x = torch.rand(4, 1, 20, 20, generator=generator(0, "images"), dtype=torch.float64)
    agree([own(k) for k in range(3)], x, [Wide])
    agree([own(k, rest=[nn.Conv2d(4, 4, 3, dilation=2, padding="same"), nn.ReLU()]) for k in range(3)], x, [Wide])


def test_everything_else_goes_one_after_the_other():
    faster, shape = frozen_groups.faster_side_by_side, (1, 20, 20)
    assert faster([client(k, "cnn", shape) for k in range(2)])
    assert not faster([client(0, "cnn", shape)])
    assert not faster([client(k, "cnn", (1, 16, 16)) for k in range(2)])
    assert not faster([client(k, "vgg9", shape, 2) for k in range(2)])  # six convolutions
    assert not faster([client(k, "cnn3", shape, 129) for k in range(2)])
    assert not faster([client(k, "resnet8", shape, 2) for k in range(2)])
    apart = [normalise_inputs(client(k, "cnn", shape), torch.tensor([0.3 + k]), torch.tensor([0.5])) for k in range(2)]
    assert not faster(apart)
    assert not faster([client(0, "cnn", shape), apart[1]]) and not faster([apart[0], client(1, "cnn", shape)])
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


def test_clients_stay_as_they_are():
    models = [client(k, "cnn2", (1, 20, 20), 3, torch.float32) for k in range(2)]
    before = [{name: value.clone() for name, value in model.state_dict().items()} for model in models]
    ensemble = FrozenEnsemble(ClientModels(models))
    x = torch.rand(3, 1, 20, 20, generator=generator(0, "images")).requires_grad_()
    seen = ensemble.look(x, statistics=True)
    (seen.logits.sum() + seen.batch_norm).backward()
    for model, old in zip(models, before, strict=True):
        assert all(not layer.training and not layer._forward_pre_hooks for layer in model.modules())
        assert all(torch.equal(value, old[name]) for name, value in model.state_dict().items())
        assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
