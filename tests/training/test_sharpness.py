"""SAM, gradient clipping and augmentation in local training: by hand and against torch's clipping, the same in both
backends."""

import copy
import dataclasses

import pytest
import torch
import torch.nn.functional as F
from differences import compute_largest_difference_of_networks

from fedlab_nb.errors import UsageError
from fedlab_nb.models import copy_model_state, load_state
from fedlab_nb.training import Recipe, train_clients_in_place
from fedlab_nb.training.optim import clip_gradients_to_norm
from fedlab_nb.training.recipe import crop_and_flip
from tests.training.test_backends import make_clients

EXACT = torch.float64
SIZES = (1, 40, 33, 64)
CHANGES = {
    "sam": {"sam_rho": 0.1},
    "clip": {"clip_norm": 0.3},
    "crop+flip": {"augmentation": "crop+flip"},
}
CHANGES["all"] = CHANGES["sam"] | CHANGES["clip"] | CHANGES["crop+flip"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width", "change", "optimizer"),
    [
        *[("mlp", 8, change, "sgd") for change in CHANGES.values()],
        ("mlp", 8, CHANGES["all"], "adam"),
        ("cnn", 3, CHANGES["all"], "sgd"),
        ("resnet8", 4, CHANGES["all"], "sgd"),
    ],
)
def test_stacked_equals_loop(name, width, change, optimizer):
    models, shards = make_clients(name, (1, 8, 8), SIZES, width=width)
    plain = Recipe(epochs=2, batch_size=16, lr=0.01, optimizer=optimizer, weight_decay=1e-3)
    changed = dataclasses.replace(plain, **change)

    def train(recipe, backend):
        return train_clients_in_place(
            copy.deepcopy(models), shards, recipe, seed=3, backend=backend
        )

    loop = train(changed, "loop")
    stack = train(changed, "stacked")
    off = train(plain, "loop")
    assert (
        compute_largest_difference_of_networks(loop, stack)
        < 1e-9
        < 1e-6
        < compute_largest_difference_of_networks(loop, off)
    )


def take_one_step(model, x, y, **change):
    """The weights after one step of rate 1 on the whole shard, without decay and momentum."""
    recipe = Recipe(epochs=1, batch_size=len(x), lr=1.0, momentum=0, weight_decay=0, **change)
    train_clients_in_place([model], [(x, y)], recipe, seed=0, backend="loop")
    return copy_model_state(model)


def compute_gradients_by_torch(model, x, y):
    return torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))


def test_sam_takes_the_gradient_at_the_worst_point_nearby():
    """θ - ∇L(θ + ρ g/‖g‖), computed with autograd in two steps."""
    (model,), ((x, y),) = make_clients("mlp", (1, 8, 8), (30,), width=8)
    rho = 0.2
    start = copy_model_state(model)
    gradients = compute_gradients_by_torch(model, x, y)
    norm = sum(float((gradient**2).sum()) for gradient in gradients) ** 0.5
    names = [name for name, _ in model.named_parameters()]
    worst = {}
    for name, gradient in zip(names, gradients, strict=True):
        worst[name] = start[name] + rho / norm * gradient
    probe = copy.deepcopy(model)
    load_state(probe, worst)
    worst_gradients = compute_gradients_by_torch(probe, x, y)
    after = take_one_step(model, x, y, sam_rho=rho)
    for name, gradient in zip(names, worst_gradients, strict=True):
        assert float((after[name] - (start[name] - gradient)).abs().max()) < 1e-12
    assert compute_largest_gap(gradients, worst_gradients) > 1e-4


def compute_largest_gap(tensors, other_tensors):
    return max(float((a - b).abs().max()) for a, b in zip(tensors, other_tensors, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_sam_shows_a_batch_to_batch_norm_once(backend):
    """After one step the running statistics are those of a step without SAM."""
    models, shards = make_clients("resnet8", (1, 8, 8), SIZES, width=4)
    statistics = []
    for rho in (0.0, 0.5):
        recipe = Recipe(epochs=1, batch_size=64, sam_rho=rho)
        trained = train_clients_in_place(
            copy.deepcopy(models), shards, recipe, seed=0, backend=backend
        )
        statistics.append(list_running_statistics(trained))
    assert all(torch.equal(a, b) for a, b in zip(*statistics, strict=True))


def list_running_statistics(models):
    buffers = []
    for model in models:
        for name, buffer in model.named_buffers():
            if "running" in name:
                buffers.append(buffer.clone())
    return buffers


@pytest.mark.parametrize("largest", [0.05, 100.0])
def test_clipping_equals_torchs(largest):
    (model,), ((x, y),) = make_clients("cnn", (1, 8, 8), (30,), width=3)
    twin, start = copy.deepcopy(model), copy_model_state(model)
    F.cross_entropy(twin(x), y).backward()
    torch.nn.utils.clip_grad_norm_(twin.parameters(), largest)
    after = take_one_step(model, x, y, clip_norm=largest)
    for name, parameter in twin.named_parameters():
        assert float((after[name] - (start[name] - parameter.grad)).abs().max()) < 1e-12


def test_each_client_is_clipped_by_its_own_norm():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=EXACT)
    (together,) = clip_gradients_to_norm([rows], 1.0, True)
    assert torch.allclose(together, torch.tensor([[0.6, 0.8], [0.3, 0.4]], dtype=EXACT), atol=1e-6)


def test_crop_and_flip_by_hand():
    x = torch.arange(1.0, 17).view(1, 1, 4, 4)

    def change(top, left, is_mirrored):
        return crop_and_flip(x, torch.tensor([[top, left, is_mirrored]]), (1, 1))

    up_left = change(0, 0, 0)
    assert torch.equal(change(1, 1, 0), x) and torch.equal(change(1, 1, 1), x.flip(3))
    assert torch.equal(up_left[0, 0, 1:, 1:], x[0, 0, :3, :3]) and not up_left[0, 0, 0].any()


def test_a_clients_augmentation_does_not_depend_on_the_others():
    """A client trained alone equals the one trained with others."""
    models, shards = make_clients("mlp", (1, 8, 8), SIZES, width=8)
    recipe = Recipe(epochs=2, batch_size=16, augmentation="crop")
    together = train_clients_in_place(
        copy.deepcopy(models), shards, recipe, seed=3, backend="stacked"
    )
    alone = train_clients_in_place(
        [copy.deepcopy(models[2])], shards[2:3], recipe, seed=3, ids=[2], backend="loop"
    )
    assert compute_largest_difference_of_networks(together[2:3], alone) < 1e-9


@pytest.mark.parametrize(
    "wrong", [{"sam_rho": -1}, {"clip_norm": "much"}, {"augmentation": "rotate"}]
)
def test_wrong_values_are_refused(wrong):
    with pytest.raises(UsageError):
        Recipe(**wrong)


def test_rows_cannot_be_augmented():
    models, shards = make_clients("mlp", (13,), SIZES, width=8)
    with pytest.raises(UsageError, match="needs images"):
        train_clients_in_place(models, shards, Recipe(epochs=1, augmentation="flip"), seed=0)
