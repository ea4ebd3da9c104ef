"""FuseFL's parts: adaptors, CCVR's statistics and calibration."""

import copy

import pytest
import torch
from byte_formulas import count_ccvr_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import make_torch_generator

from fedlab_nb.comm import count_payload_bytes
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fusefl import blocks, ccvr
from fedlab_nb.methods.fusefl.blocks import ClientBlocks
from fedlab_nb.methods.fusefl.network import FusedNetwork, Stage
from fedlab_nb.models import build
from fedlab_nb.training import Recipe
from fedlab_nb.training.loop import iterate_training_of_clients_in_turn

EXACT = torch.float64


def draw_feature_maps(clients=3, channels=4, seed=0):
    return list(
        torch.randn(clients, 5, channels, 6, 6, generator=make_torch_generator(seed), dtype=EXACT)
    )


# ------------------------------------------------------------------------------------------------------------- adaptors
def test_averaging_identical_clients_changes_nothing():
    feature_maps = draw_feature_maps(1)[0]
    torch.testing.assert_close(
        blocks.join_client_outputs("average", [feature_maps] * 7), feature_maps
    )
    network = build("cnn", (1, 8, 8), 10, dtype=EXACT)
    client = ClientBlocks(network, 3)
    stages = [Stage([client.get_block_with_adaptor(k)] * 4) for k in range(3)]
    fused = FusedNetwork(stages, [network.classifier], "average", "mean")
    x = torch.rand(6, 1, 8, 8, generator=make_torch_generator(), dtype=EXACT)
    torch.testing.assert_close(fused(x), network(x))


def test_the_conv_adaptor_reads_clients_in_order_and_keeps_the_clients_width():
    shapes, outputs = [(2, 6, 6), (5, 6, 6)], [*draw_feature_maps(1, 2), *draw_feature_maps(1, 5)]
    (layer,) = blocks.make_adaptor_layers("conv", shapes, 1, make_torch_generator(), outputs[0])
    weight = layer.weight[:, :, 0, 0]
    by_hand = torch.einsum("oc,nchw->nohw", weight[:, :2], outputs[0])
    by_hand = (
        by_hand
        + torch.einsum("oc,nchw->nohw", weight[:, 2:], outputs[1])
        + layer.bias.view(1, -1, 1, 1)
    )
    torch.testing.assert_close(layer(blocks.join_client_outputs("conv", outputs)), by_hand)
    assert by_hand.shape[1] == 5
    assert blocks.compute_joined_shape("conv", shapes) == (7, 6, 6)
    assert layer.weight.abs().max() <= 7**-0.5  # PyTorch's default, 1 / sqrt(fan-in)


def test_outputs_that_cannot_be_joined_are_refused():
    blocks.check_outputs_can_be_joined("conv", [(2, 6, 6), (5, 6, 6)], 1)
    for kind, shapes in [
        ("average", [(2, 6, 6), (5, 6, 6)]),
        ("conv", [(2, 6, 6), (2, 5, 5)]),
        ("conv", [(2, 6, 6), (2,)]),
    ]:
        with pytest.raises(UsageError, match="After block 1"):
            blocks.check_outputs_can_be_joined(kind, shapes, 1)


# ----------------------------------------------------------------------------------------------------------------- CCVR
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_pooled_statistics_equal_those_of_the_pooled_features(seed):
    """Against torch.cov of all features, also for classes with one sample, of one client, or without samples."""
    stream = make_torch_generator(seed)
    labels = [torch.randint(0, 4, (n,), generator=stream) for n in (1, 2, 9, 30)]
    features = [
        torch.randn(len(y), 3, generator=stream, dtype=EXACT) * (k + 1) + 50 * k + y[:, None]
        for k, y in enumerate(labels)
    ]
    pooled = ccvr.pool_class_statistics(
        [ccvr.make_class_statistics_message(z, y, 6) for z, y in zip(features, labels, strict=True)]
    )
    z, y = torch.cat(features), torch.cat(labels)
    assert pooled.counts.tolist() == torch.bincount(y, minlength=6).tolist()
    for c in range(6):
        class_features = z[y == c]
        if len(class_features):
            torch.testing.assert_close(pooled.means[c], class_features.mean(0))
        expected = torch.zeros(3, 3, dtype=EXACT)
        if len(class_features) > 1:
            expected = torch.cov(class_features.T)
        torch.testing.assert_close(pooled.covariances[c], expected, rtol=1e-9, atol=1e-9)


def test_bytes_of_statistics_count_the_clients_classes_alone():
    labels = torch.tensor([7, 2, 7, 7, 2, 0])
    message = ccvr.make_class_statistics_message(torch.rand(6, 5), labels, 10)
    assert count_payload_bytes(message) == 4 * 10 + count_ccvr_bytes(5, 3, symmetric=True)
    assert message["counts"].tolist() == [1, 0, 2, 0, 0, 0, 0, 3, 0, 0]


def test_virtual_features_follow_the_statistics():
    stream = make_torch_generator()
    root = torch.randn(2, 3, 3, generator=stream, dtype=EXACT)
    root[1, :, 2] = 0  # a singular covariance
    pooled = ccvr.PooledStatistics(
        torch.tensor([5, 0, 9]),
        torch.randn(3, 3, generator=stream, dtype=EXACT),
        torch.stack([root[0] @ root[0].T, torch.zeros(3, 3, dtype=EXACT), root[1] @ root[1].T]),
    )
    z, y = ccvr.draw_virtual_features(pooled, 40_000, stream)
    assert y.bincount(minlength=3).tolist() == [40_000, 0, 40_000]
    for c in (0, 2):
        torch.testing.assert_close(z[y == c].mean(0), pooled.means[c], rtol=0, atol=0.05)
        torch.testing.assert_close(
            torch.cov(z[y == c].T), pooled.covariances[c], rtol=0.05, atol=0.1
        )


def calibrate(head, z, y, recipe, **options):
    """The calibrated heads that the training yields."""
    steps = ccvr.train_copy_of_head(head, z, y, recipe, make_torch_generator(), **options)
    return [head for _, head in steps if head is not None]


@pytest.mark.parametrize("samples, batch_size", [(40, 10), (37, 16)])
def test_calibration_equals_the_training_of_a_network(samples, batch_size):
    z, y = (
        torch.randn(samples, 6, generator=make_torch_generator(), dtype=EXACT),
        torch.arange(samples) % 4,
    )
    recipe = Recipe(epochs=4, batch_size=batch_size, lr=0.2, momentum=0.9, weight_decay=0.01)
    network = build("mlp", (6,), 4, dtype=EXACT)
    network.body, network.classifier = torch.nn.Identity(), torch.nn.Linear(6, 4, dtype=EXACT)
    head = copy.deepcopy(network.classifier)
    plain = calibrate(head, z, y, recipe, should_standardise_features=False)[-1]
    assert torch.equal(head.weight, network.classifier.weight)  # the original is not changed
    assert set(
        iterate_training_of_clients_in_turn([network], [(z, y)], recipe, [make_torch_generator()])
    ) == set(range(5))
    torch.testing.assert_close(plain.weight, network.classifier.weight)
    torch.testing.assert_close(plain.bias, network.classifier.bias)


def test_rescaled_calibration_starts_from_the_head_and_ignores_units():
    z, y = torch.randn(40, 3, generator=make_torch_generator(), dtype=EXACT), torch.arange(40) % 4
    z[:, 2] = 0  # a feature that is always 0
    head = torch.nn.Linear(3, 4, dtype=EXACT)
    (hardly_trained,) = calibrate(
        head, z, y, Recipe(epochs=1, lr=1e-30, momentum=0, weight_decay=0)
    )
    torch.testing.assert_close(hardly_trained.weight, head.weight)
    torch.testing.assert_close(hardly_trained.bias, head.bias)
    recipe = Recipe(epochs=5, batch_size=10, lr=0.5, momentum=0, weight_decay=0)
    tenth = torch.nn.Linear(3, 4, dtype=EXACT)
    with torch.no_grad():
        tenth.weight.copy_(head.weight / 10)
        tenth.bias.copy_(head.bias)
    calibrated = calibrate(head, z, y, recipe)[-1]
    calibrated_tenth = calibrate(tenth, 10 * z, y, recipe)[-1]
    torch.testing.assert_close(calibrated(z), calibrated_tenth(10 * z))
    assert len(calibrate(head, z, y, recipe)) == 5
