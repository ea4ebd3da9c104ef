"""Frozen features: their formulas, the same numbers from the same seed, and their bytes."""

import pytest
import torch
import torch.nn.functional as F
from method_runs import make_context

from fedlab_nb.data import SEEN, order_transform_parts
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.afl import AFL
from fedlab_nb.methods.parts.frozen import (
    HeadModel,
    make_common_feature_map,
    make_frozen_feature_map,
)
from fedlab_nb.models import copy_model_state, lite0
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe

EXACT = torch.float64


def draw_images(n=7, shape=(1, 8, 8)):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(1), dtype=EXACT)


def test_pixels_are_the_sample_and_cost_nothing():
    ctx = make_context()
    frozen = exhaust_generator(make_common_feature_map(ctx, "pixels", 256, 0))
    x = draw_images().float()
    assert torch.equal(frozen(x), x.flatten(1)) and (frozen.size, frozen.parameters) == (64, 0)
    assert ctx.link.ledger.total == 0


@pytest.mark.parametrize("kind", ["relu", "conv"])
@pytest.mark.parametrize("size", [16, 50])
def test_random_features_cost_a_seed_and_depend_on_it_alone(kind, size):
    ctx = make_context(clients=4)
    frozen, x = (
        exhaust_generator(make_common_feature_map(ctx, kind, size, 3)),
        draw_images().float(),
    )
    assert frozen(x).shape == (7, size) and frozen.size == size and (frozen(x) >= 0).all()
    assert ctx.link.ledger.by_phase() == {"seed of the features": (0, 8 * 4)}
    assert torch.equal(frozen(x), make_frozen_feature_map(kind, (1, 8, 8), size, 3)(x))
    assert not torch.equal(frozen(x), make_frozen_feature_map(kind, (1, 8, 8), size, 4)(x))
    torch.testing.assert_close(
        make_frozen_feature_map(kind, (1, 8, 8), size, 3, dtype=EXACT)(x.double()).float(),
        frozen(x),
    )


def test_relu_features_by_the_formula():
    frozen, x = make_frozen_feature_map("relu", (1, 8, 8), 2000, 0, dtype=EXACT), draw_images()
    weight, bias = frozen.module[1].weight.T, frozen.module[1].bias
    centred = bias + 0.3 * weight.sum(0)  # b of the formula
    torch.testing.assert_close(frozen(x), ((x.flatten(1) - 0.3) @ weight + centred).clamp_min(0))
    assert weight.var().item() == pytest.approx(2 / 64, rel=0.02)
    assert centred.std().item() == pytest.approx(0.5, 0.05)
    # Feature rows are standardised, so there is nothing to centre.
    layer_of_rows = make_frozen_feature_map("relu", (5,), 2000, 0).module[1]
    assert layer_of_rows.bias.mean().abs() < 0.05
    assert layer_of_rows.weight.var().item() == pytest.approx(0.4, rel=0.05)


def test_filters_ignore_constants_and_average_over_cells():
    frozen, x = (
        make_frozen_feature_map("conv", (3, 8, 8), 32, 0, dtype=EXACT),
        draw_images(shape=(3, 8, 8)),
    )
    (filters,) = frozen.module[0].parameters()
    assert filters.shape == (2, 3, 5, 5) and filters.sum((1, 2, 3)).abs().max() < 1e-6
    maps = F.conv2d(x, filters, padding=2).clamp_min(0)
    cells = torch.stack([maps[:, 1, 2 * i : 2 * i + 2, 6:8].mean((1, 2)) for i in range(4)], 1)
    torch.testing.assert_close(frozen(x)[:, 16:].view(-1, 4, 4)[:, :, 3], cells)


@pytest.mark.parametrize("send_body", [False, True])
def test_the_public_body_costs_nothing_unless_it_is_sent(send_body):
    ctx = make_context(clients=4)
    frozen = exhaust_generator(make_common_feature_map(ctx, "lite0", 256, 0, send_body=send_body))
    x = draw_images().float()
    assert torch.equal(frozen(x), lite0.load_lite0()(x))
    assert (frozen.size, frozen.parameters) == (112, 692_688)
    # Four clients, 16 bits a number.
    expected = {"features": (0, 4 * 2 * 692_688)} if send_body else {}
    assert ctx.link.ledger.by_phase() == expected


def test_shapes_that_the_public_body_cannot_read_are_refused():
    for shape in ((13,), (50, 6), (2, 8, 8)):
        with pytest.raises(UsageError, match="lite0"):
            order_transform_parts(SEEN, shape)
    assert order_transform_parts(SEEN, (1, 8, 8)) == SEEN


@pytest.mark.parametrize("init", ["same", "different"])
def test_the_largest_client_uploads_its_network_and_the_others_receive_it(init):
    ctx = make_context(clients=3, init=init)
    largest = max(range(3), key=lambda k: ctx.sizes[k])
    frozen = exhaust_generator(make_common_feature_map(ctx, "client", 256, 0))
    clients = exhaust_generator(make_context(clients=3, init=init).local_training())
    x = draw_images().float()
    # The client trains its network as in every other method.
    torch.testing.assert_close(frozen(x), clients.module(largest).features(x))
    body = sum(t.numel() for t in copy_model_state(frozen.module).values())
    network = body + 32 * 10 + 10
    down = 4 * network if init == "same" else 0
    expected = {k: (4 * body, down) if k == largest else (0, 4 * body) for k in range(3)}
    assert ctx.link.ledger.by_client() == expected and frozen.size == 32
    assert AFL(features="client").local_passes(Recipe(epochs=2), [1, 1, 1]) == pytest.approx(2 / 3)
    assert AFL(features="relu").local_passes(Recipe(epochs=2), [1, 1, 1]) == 0


def test_a_single_client_uploads_its_network_alone():
    ctx = make_context(clients=1)
    frozen = exhaust_generator(make_common_feature_map(ctx, "client", 256, 0))
    body = sum(t.numel() for t in copy_model_state(frozen.module).values())
    assert ctx.link.ledger.by_phase()["features"] == (4 * body, 0)


def test_a_head_reads_the_features():
    frozen, x = make_frozen_feature_map("relu", (1, 8, 8), 20, 0), draw_images().float()
    model = HeadModel(frozen, lambda f: f[:, :10] * 2, 7)
    assert torch.equal(model.logits(x), 2 * model.features(x)[:, :10])
    assert model.parameters == 7 + 64 * 20 + 20
