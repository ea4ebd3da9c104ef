"""The gradient with respect to images, against PyTorch's own convolution."""

import pytest
import torch
from torch import nn

from fedlab_nb.methods.parts.frozen_ensemble import FrozenEnsemble
from fedlab_nb.methods.parts.frozen_groups import joined_first
from fedlab_nb.models import build
from fedlab_nb.models.image_conv import ImageConv2d, suits
from fedlab_nb.rng import generator
from fedlab_nb.training import ClientModels


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_are_those_of_pytorch(padding, channels, bias):
    stream = generator(0, "images")
    own = ImageConv2d(channels, 4, (3, 5), padding=padding, bias=bias).double()
    plain = nn.Conv2d(channels, 4, (3, 5), padding=padding, bias=bias).double()
    plain.load_state_dict(own.state_dict())
    x = torch.rand(3, channels, 17, 18, generator=stream, dtype=torch.float64).requires_grad_()
    assert suits(own, x)
    y, expected = own(x), plain(x)
    assert torch.equal(y, expected)
    slope = torch.rand(y.shape, generator=stream, dtype=torch.float64)
    made = torch.autograd.grad(y, [x, *own.parameters()], slope)
    for one, other in zip(made, torch.autograd.grad(expected, [x, *plain.parameters()], slope), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_only_large_images_that_are_searched_for():
    layer, x = ImageConv2d(1, 2, 3), torch.zeros(2, 1, 17, 17)
    assert not suits(layer, x)  # training: nobody asks for their gradient
    x.requires_grad_()
    assert suits(layer, x)
    with torch.no_grad():
        assert not suits(layer, x)
    assert not suits(layer, x.to("meta"))
    assert not suits(layer, torch.zeros(2, 1, 16, 16, requires_grad=True))
    assert not suits(ImageConv2d(4, 2, 3), torch.zeros(2, 4, 17, 17, requires_grad=True))
    assert not suits(ImageConv2d(1, 2, 3, stride=2), x)


@pytest.mark.parametrize("name", ["cnn", "cnn2", "resnet8:4", "wrn16:16"])
@pytest.mark.parametrize("normalised", [False, True])
def test_one_first_convolution_for_all_clients_says_what_each_one_says(name, normalised):
    from fedlab_nb.models import normalise_inputs

    shape, (name, _, width) = (1, 20, 20), name.partition(":")
    models = [
        build(name, shape, 5, width=int(width or 0) or None, generator=generator(k, "init"), dtype=torch.float64).eval()
        for k in range(3)
    ]
    if normalised:
        models = [normalise_inputs(m, torch.tensor([0.3]), torch.tensor([0.5])) for m in models]
    clients = ClientModels(models)
    x = torch.rand(4, *shape, generator=generator(0, "images"), dtype=torch.float64).requires_grad_()
    ensemble = FrozenEnsemble(clients, backend="loop")
    y, expected = ensemble.logits(x), torch.stack([model(x) for model in models])
    torch.testing.assert_close(y, expected, rtol=1e-9, atol=1e-9)
    slope = torch.rand(y.shape, generator=generator(1, "slope"), dtype=torch.float64)
    made, plain = (torch.autograd.grad(out, x, slope)[0] for out in (y, expected))
    torch.testing.assert_close(made, plain, rtol=1e-9, atol=1e-9)
    joined = joined_first(models)[0] is not None
    assert joined == (name != "wrn16")


def test_small_images_and_single_clients_are_left_alone():
    small = [build("cnn", (1, 16, 16), 5) for _ in range(2)]
    assert joined_first(small)[0] is None
    assert joined_first([build("cnn", (1, 20, 20), 5)])[0] is None
    assert all(type(own) is nn.Sequential for own in joined_first([build("cnn", (1, 20, 20), 5)] * 2)[1])
