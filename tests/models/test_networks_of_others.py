"""Networks of other papers and packages: torchvision's against ours, wide ResNets, networks without batch norm."""

import pytest
import torch
from torch import nn

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fisher_merge import compute_diagonal_fisher
from fedlab_nb.methods.parts.kronecker import find_layers_with_kronecker_factors
from fedlab_nb.models import MENU, MODELS, build, count_parameters, parse_models, plain
from fedlab_nb.models.resnet import _build_wide_resnet
from fedlab_nb.studies import run
from fedlab_nb.training import Recipe, train_clients_in_place
from fedlab_nb.training.stack import can_stack_model


def make_image(*shape):
    return torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))


# ------------------------------------------------------------------------------------------------ torchvision's
@pytest.mark.parametrize(
    ("name", "torchvision_name", "width"),
    [("mobilenet", "mobilenet_v3_small", 16), ("shufflenet", "shufflenet_v2_x1_0", 58),
     ("shufflenet", "shufflenet_v2_x0_5", 24)],
)  # fmt: skip
def test_on_large_images_a_network_equals_torchvisions(name, torchvision_name, width):
    """The same weights in the same order give the same answers, where no stride has to change."""
    from torchvision import models

    theirs = getattr(models, torchvision_name)(num_classes=10).eval()
    ours = build(name, (3, 64, 64), 10, width=width).eval()
    values = list(ours.state_dict().values())
    theirs.load_state_dict(dict(zip(theirs.state_dict(), values, strict=True)))
    x = make_image(3, 64, 64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["mobilenet", "shufflenet"])
@pytest.mark.parametrize(("side", "changed"), [(8, 3), (16, 2), (28, 1), (32, 1), (33, 0)])
def test_small_images_replace_the_first_strides_by_1(name, side, changed):
    """At most five strides of 2, the last of them kept: the map in front of the last convolution is 2x2."""
    net = build(name, (1, side, side), 10, width=4).eval()
    sides = [side]
    for block in net.body[:-1]:
        block.register_forward_hook(lambda layer, args, out: sides.append(out.shape[-1]))
    net(make_image(1, side, side))
    assert sides[-1] == 2 and side / 2 ** (5 - changed) <= 2 < 2 * side / 2 ** (5 - changed)


def test_vgg11_has_torchvisions_convolutions():
    from torchvision.models import vgg11_bn

    with torch.device("meta"):  # shapes alone
        blocks, theirs = (
            plain.build_vgg11_blocks((3, 32, 32), 64)[0],
            vgg11_bn(num_classes=10).features,
        )
    assert [p.shape for p in nn.Sequential(*blocks).parameters()] == [
        p.shape for p in theirs.parameters()
    ]


def test_networks_that_cannot_be_stacked_are_refused_there_and_train_in_the_loop():
    models = [build("shufflenet", (1, 8, 8), 3, width=2) for _ in range(2)]
    shards = [(torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0]))] * 2
    assert not can_stack_model(models[0]) and not can_stack_model(
        build("mobilenet", (1, 8, 8), 3, width=2)
    )
    with pytest.raises(UsageError, match="backend='loop'"):
        train_clients_in_place(models, shards, Recipe(epochs=1), seed=0, backend="stacked")
    before = models[1].classifier.weight.clone()
    train_clients_in_place(models, shards, Recipe(epochs=1), seed=0)
    assert not torch.equal(before, models[1].classifier.weight)


# ------------------------------------------------------------------------------------------------ wide ResNets
@pytest.mark.parametrize(
    ("depth", "width", "parameters"), [(28, 160, 36_479_194), (16, 128, 10_961_370)]
)
def test_wide_resnets_have_the_published_sizes(depth, width, parameters):
    """WRN-28-10 and WRN-16-8 (36.5 and 11.0 million in the paper), without their weights."""
    with torch.device("meta"):
        blocks, features = _build_wide_resnet((3, 32, 32), width, depth)
    assert count_parameters(nn.Sequential(*blocks)) + 10 * features + 10 == parameters


def test_a_block_of_a_wide_resnet_is_pre_activated():
    """The shortcut is the block's input unchanged or, where the shape changes, a projection of the activated input."""
    net = build("wrn16", (1, 8, 8), 3, width=16).eval()
    same, wider = net.body[1], net.body[3]
    x = torch.randn(2, 16, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(same(x) - same.main(same.before(x)), x)
    active = wider.before(x)
    torch.testing.assert_close(wider(x) - wider.main(active), wider.shortcut(active))
    assert float(active.detach().min()) == 0


# ------------------------------------------------------------------------------------------------ without batch norm
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, info in MODELS.items() if info.batch_norm])
def test_networks_without_batch_norm_keep_their_maps_and_features(name):
    """No batch norm, the same maps and features; the answer to an image is the same in training and in any batch."""
    with_batch_norm = build(name, (1, 8, 8), 4, width=4)
    for kind, layer in (("nobn", nn.Identity), ("gn", nn.GroupNorm)):
        net = build(f"{name}-{kind}", (1, 8, 8), 4, width=4).train()
        assert not any(isinstance(module, nn.BatchNorm2d) for module in net.modules())
        assert sum(isinstance(module, layer) for module in net.modules()) >= sum(
            isinstance(module, nn.BatchNorm2d) for module in with_batch_norm.modules()
        )
        convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
        assert kind != "nobn" or all(module.bias is not None for module in convolutions)
        x = make_image(1, 8, 8)
        torch.testing.assert_close(net(x)[:1], net.eval()(x[:1]))
        assert net.classifier.in_features == with_batch_norm.classifier.in_features and not list(
            net.buffers()
        )
        assert net.architecture[0] == f"{name}-{kind}"


def test_names_without_batch_norm_are_known_but_not_listed():
    assert not any("-" in name for name in MODELS) and set(MENU) <= set(MODELS)
    assert parse_models("resnet8-gn:4,cnn", (1, 8, 8)) == [("resnet8-gn", 4), ("cnn", None)]
    for wrong in ("cnn-gn", "resnet8-bn", "resnet8-gn-gn"):
        with pytest.raises(UsageError, match=f"Unknown model '{wrong}'"):
            build(wrong, (1, 8, 8), 3)


@pytest.mark.slow
def test_networks_of_others_run_from_the_settings():
    """Heterogeneous clients, as in Co-Boosting's and DENSE's tables. Without batch norm only parameters are sent."""
    setting = {"clients": 5, "epochs": 1, "alpha": 1.0}
    models = "wrn16:4,mobilenet:2,shufflenet:2,vgg11:2,resnet8-gn:4"
    out = run("ensemble", model=models, batch_size=256, **setting)
    assert out.plan.client_model == models and 0 <= out.accuracy <= 1
    without_batch_norm = run("fedavg", model="resnet8-nobn:2", **setting)
    assert without_batch_norm.bytes_up == 4 * 5 * without_batch_norm.parameters


def test_factors_need_convolutions_without_groups():
    model = build("shufflenet", (1, 8, 8), 3, width=2)
    x = make_image(1, 8, 8)
    y = torch.tensor([0, 1])
    for factors in (
        lambda: find_layers_with_kronecker_factors(model),
        lambda: compute_diagonal_fisher(model, x, y),
    ):
        with pytest.raises(UsageError, match="has groups"):
            factors()
