"""The gradient of one sample reveals its image and label exactly; that of two samples reveals a mixture."""

import pytest
import torch
from torch.nn import functional as F

from fedlab_nb.data import load
from fedlab_nb.methods.fedlpa.client import (
    compute_mean_loss_gradients,
    recover_flat_image_from_gradients,
    recover_label_of_single_sample,
)
from fedlab_nb.methods.parts.kronecker import compute_mean_kronecker_factors
from fedlab_nb.models import build


def test_label_and_image_of_one_sample_are_recovered_exactly():
    data = load("digits")
    module = build("mlp", data.input_shape, data.classes)
    for k in range(20):
        x = data.x_train[k : k + 1]
        y = data.y_train[k : k + 1]
        gradient = compute_mean_loss_gradients(module, x, y)
        first_layer, *_, last_layer = [name for name in gradient if gradient[name].ndim == 2]
        bias = first_layer.replace("weight", "bias")
        image = recover_flat_image_from_gradients(gradient[first_layer], gradient[bias])
        assert torch.allclose(image, x.flatten(), atol=1e-5)
        assert recover_label_of_single_sample(gradient[last_layer]) == int(y)
        factors = list(compute_mean_kronecker_factors(module, x, y).values())
        assert torch.allclose(factors[0].a[:-1, -1], x.flatten(), atol=1e-6)
        assert int(factors[-1].b.diagonal().argmax()) == int(y)


def test_two_samples_give_a_mixture_by_hand():
    """One linear layer: the gradient of row c is sum_s (p_sc - y_sc) x_s / n, so the quotient is a weighted mean."""
    torch.manual_seed(0)  # with some weights p is nearly 1, and p - 1 has few digits
    layer = torch.nn.Linear(3, 2)
    x, y = torch.tensor([[1.0, 2.0, 0.0], [0.0, 4.0, 2.0]]), torch.tensor([0, 0])
    gradient = compute_mean_loss_gradients(layer, x, y)
    slope = (layer(x).softmax(1) - F.one_hot(y, 2))[:, 0].detach()
    assert recover_flat_image_from_gradients(
        gradient["weight"], gradient["bias"]
    ).tolist() == pytest.approx((slope @ x / slope.sum()).tolist())
    assert recover_label_of_single_sample(torch.tensor([[0.3, 0.2], [-0.4, -0.1], [0.1, 0.2]])) == 1
