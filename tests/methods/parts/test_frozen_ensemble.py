"""The frozen ensemble against plain loops: logits, gradients to x, batch-norm loss; and that it changes no client."""

import copy
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from fedlab_nb.methods.parts.frozen_ensemble import FrozenEnsemble, class_count_weights, client_weights, combine
from fedlab_nb.models import build, model_state
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


@pytest.mark.parametrize("backend", ["loop", "stacked"])
@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
def test_logits_features_and_gradient_are_the_plain_loops(kinds, backend):
    models, x = clients(kinds), images().requires_grad_()
    w = torch.linspace(0.2, 1.4, len(kinds), dtype=torch.float64)
    ensemble = FrozenEnsemble(models, backend=backend)
    seen = ensemble.look(x)
    plain = [module(x) for module in models.modules]
    torch.testing.assert_close(seen.logits, torch.stack(plain), rtol=0, atol=1e-12)
    for own, module in zip(seen.features, models.modules, strict=True):
        torch.testing.assert_close(own, module.features(x), rtol=0, atol=1e-12)
    u = torch.randn(len(x), C, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (mine,) = torch.autograd.grad((u * combine(ensemble.logits(x), w)).sum(), x)
    mixed = sum(share * answer for share, answer in zip(w, plain, strict=True)) / w.sum()
    (theirs,) = torch.autograd.grad((u * mixed).sum(), x)
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)
    torch.testing.assert_close(ensemble.remembered(x.detach()), models.logits(x.detach()), rtol=0, atol=1e-12)


def test_combining():
    logits = torch.tensor([[[1.0, 2.0]], [[3.0, -2.0]]], dtype=torch.float64)  # two clients, one sample
    assert combine(logits).tolist() == [[2.0, 0.0]]
    w = torch.tensor([0.5, 1.5], dtype=torch.float64)
    assert combine(logits, w).tolist() == [[2.5, -1.0]]
    assert combine(logits, w, normalise=False).tolist() == [[5.0, -2.0]]
    torch.testing.assert_close(combine(logits, 7 * w), combine(logits, w))  # a constant changes nothing
    torch.testing.assert_close(combine(logits, torch.ones(2).double()), combine(logits))
    by_class = torch.tensor([[1.0, 0.25], [0.0, 0.75]], dtype=torch.float64)
    assert combine(logits, by_class).tolist() == [[1.0, -1.0]]
    assert client_weights("samples", [1, 3], logits).tolist() == [0.25, 0.75]
    assert client_weights("uniform", [1, 3], logits).tolist() == [0.5, 0.5]


def test_shares_of_each_classs_samples():
    """Clients send C counts each; a class that nobody has is shared alike."""
    labels = [torch.tensor([0, 0, 0, 2]), torch.tensor([0, 2])]
    sent = []

    class Link:
        def up(self, k, payload, phase):
            sent.append((k, payload.dtype, phase))
            return payload

    private = SimpleNamespace(train=lambda k: (None, labels[k]))
    ctx = SimpleNamespace(
        private=private, classes=3, clients_count=2, link=Link(), server=nullcontext, device="cpu", dtype=torch.float64
    )
    shares = class_count_weights(ctx)
    assert shares.tolist() == [[0.75, 0.5, 0.5], [0.25, 0.5, 0.5]] and shares.dtype == torch.float64
    assert sent == [(k, torch.int32, "class counts") for k in range(2)]


def by_hand(models, x):
    """L_BN, layer by layer, from activations collected in the plain models."""
    total = 0.0
    for module in models.modules:
        inputs = {}
        norms = {name: layer for name, layer in module.named_modules() if isinstance(layer, nn.BatchNorm2d)}
        hooks = [
            layer.register_forward_hook(lambda _l, args, _o, name=name, inputs=inputs: inputs.update({name: args[0]}))
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
@pytest.mark.parametrize("kinds", [KINDS["batch norm"], KINDS["mixed"]], ids=["batch norm", "mixed"])
def test_batch_norm_loss_and_its_gradient_against_hand_computed_statistics(kinds, backend):
    models, x = clients(kinds), images().requires_grad_()
    ensemble = FrozenEnsemble(models, backend=backend)
    mine, theirs = ensemble.look(x, statistics=True).batch_norm, by_hand(models, x)
    torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=0)
    torch.testing.assert_close(torch.autograd.grad(mine, x), torch.autograd.grad(theirs, x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_batch_norm_loss_is_zero_iff_the_statistics_agree(backend):
    models, x = clients(KINDS["batch norm"]), images()
    for module in models.modules:  # make the running statistics those of this batch, biased variance, layer after layer
        for layer in module.modules():
            if isinstance(layer, nn.BatchNorm2d):

                def settle(layer, args):
                    var, mean = torch.var_mean(args[0], dim=(0, 2, 3), correction=0)
                    layer.running_mean.copy_(mean)
                    layer.running_var.copy_(var)

                hook = layer.register_forward_pre_hook(settle)
                with torch.no_grad():
                    module(x)
                hook.remove()
    ensemble = FrozenEnsemble(models, backend=backend)
    assert float(ensemble.look(x, statistics=True).batch_norm) < 1e-12
    assert float(ensemble.look(x + 0.1, statistics=True).batch_norm) > 0.01


def test_without_batch_norm_the_loss_is_zero():
    ensemble = FrozenEnsemble(clients(KINDS["one architecture"]))
    assert float(ensemble.look(images(), statistics=True).batch_norm) == 0


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_clients_are_bit_identical_afterwards_and_carry_no_hooks_or_gradients(backend):
    models = clients(KINDS["mixed"], torch.float32)
    before = copy.deepcopy([model_state(module) for module in models.modules])
    x = images(dtype=torch.float32).requires_grad_()
    seen = FrozenEnsemble(models, backend=backend).look(x, statistics=True)
    (seen.batch_norm + seen.logits.sum()).backward()
    for module, old in zip(models.modules, before, strict=True):
        assert not module.training
        assert all(torch.equal(t, old[name]) for name, t in model_state(module).items())
        assert all(p.grad is None and p.requires_grad for p in module.parameters())
        assert not any(layer._forward_pre_hooks for layer in module.modules())
    assert x.grad is not None
