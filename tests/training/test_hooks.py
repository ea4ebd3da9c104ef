"""The changes that a method may make to a local step, `adjust` and `loss`: the same in both backends."""

import copy

import pytest
import torch
import torch.nn.functional as F
from differences import compute_largest_difference_of_networks

from fedlab_nb.models import build
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.training import (
    Recipe,
    iterate_training_of_clients_in_place,
    train_clients_in_place,
)

EXACT = torch.float64
SIZES = (1, 70, 33, 32, 5, 64)
KINDS = [("mlp", (13,), None), ("cnn", (1, 8, 8), None), ("resnet8", (1, 8, 8), 4)]
RECIPES = [
    Recipe(epochs=2, batch_size=16, lr=0.05, momentum=0.9, weight_decay=1e-3),
    Recipe(epochs=2, batch_size=16, lr=1e-3, optimizer="adam"),
]


def make_clients(kinds, sizes=SIZES, classes=4):
    """Models and shards (x, y, two extra columns), client k of the kind `kinds[k % len(kinds)]`."""
    g = make_torch_generator(0, "hook data")
    models = []
    shards = []
    for k, n in enumerate(sizes):
        name, shape, width = kinds[k % len(kinds)]
        stream = make_torch_generator(1, k)
        models.append(build(name, shape, classes, width=width, generator=stream, dtype=EXACT))
        x = torch.rand(n, *shape, generator=g, dtype=EXACT)
        y = torch.randint(classes, (n,), generator=g)
        column = torch.rand(n, 2, 3, generator=g, dtype=EXACT)
        shards.append((x, y, column))
    return models, shards


def train_copies(models, shards, recipe, backend, *, seed=3, **change):
    """Copies of the models after training."""
    copies = copy.deepcopy(models)
    return train_clients_in_place(copies, shards, recipe, seed=seed, backend=backend, **change)


def train_on_both_backends(models, shards, recipe, **change):
    """The models after training by the loop, and by the stack."""
    return [
        train_copies(models, shards, recipe, backend, **change) for backend in ("loop", "stacked")
    ]


def align_by_hand(numbers, gradient):
    """`numbers [a]` as `[a, 1, ..., 1]`, to multiply the rows of `gradient [a, ...]`."""
    return numbers.view(-1, *[1] * (gradient.dim() - 1))


def adjust_by_client(clients, parameters, gradients):
    """A change that depends on the client, its parameters and its gradients."""
    rows = torch.tensor(clients, dtype=EXACT)
    for gradient, parameter in zip(gradients, parameters.values(), strict=True):
        assert gradient.shape == parameter.shape and len(gradient) == len(clients)
        gradient.mul_(0.5).add_((parameter - 0.1) * (align_by_hand(rows, gradient) + 1) * 0.05)


def compute_pulled_losses(features, logits, labels, column):
    """A loss that reads everything that it may read."""
    assert len(features) == len(logits) == len(labels) == len(column)
    pull = (column.sum(2) * features[:, :2]).sum(1)
    return F.cross_entropy(logits, labels, reduction="none") * column[:, 0, 0] + 0.1 * pull


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=["sgd", "adam"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[0])
def test_stacked_equals_loop_with_both_changes(kind, recipe):
    models, shards = make_clients([kind])
    loop, stack = train_on_both_backends(
        models, shards, recipe, loss=compute_pulled_losses, adjust=adjust_by_client
    )
    assert (
        compute_largest_difference_of_networks(loop, stack)
        < 1e-9
        < compute_largest_difference_of_networks(loop, models)
    )


@pytest.mark.slow
def test_several_architectures_keep_their_places():
    models, shards = make_clients([KINDS[1], KINDS[2]])
    loop, stack = train_on_both_backends(
        models, shards, RECIPES[0], loss=compute_pulled_losses, adjust=adjust_by_client
    )
    assert compute_largest_difference_of_networks(loop, stack) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [[KINDS[0]], [KINDS[1], KINDS[2]]], ids=["one", "mixed"])
def test_every_gradient_reaches_its_own_client(kinds):
    """Every gradient is replaced by the client's number k, so its parameters move by lr * steps * k."""
    models, shards = make_clients(kinds)

    def replace_by_client_number(clients, parameters, gradients):
        for gradient in gradients:
            numbers = torch.tensor(clients, dtype=EXACT)
            gradient.copy_(align_by_hand(numbers, gradient).expand_as(gradient))

    recipe = Recipe(epochs=2, batch_size=16, lr=0.01, momentum=0, weight_decay=0)
    for end_models in train_on_both_backends(
        models, shards, recipe, adjust=replace_by_client_number
    ):
        for k, (start_model, end_model) in enumerate(zip(models, end_models, strict=True)):
            distance = 0.01 * 2 * -(-SIZES[k] // 16) * k
            for before, after in zip(start_model.parameters(), end_model.parameters(), strict=True):
                torch.testing.assert_close(after, before - distance, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_the_cross_entropy_as_the_given_loss_changes_nothing(backend):
    models, shards = make_clients([KINDS[2]])
    labelled = [shard[:2] for shard in shards]
    plain = train_copies(models, labelled, RECIPES[0], backend, seed=0)

    def compute_cross_entropy(features, logits, labels, column):
        return F.cross_entropy(logits, labels, reduction="none")

    by_given_loss = train_copies(
        models, shards, RECIPES[0], backend, seed=0, loss=compute_cross_entropy
    )
    assert compute_largest_difference_of_networks(plain, by_given_loss) < 1e-12


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_one_hot_soft_labels_equal_labels(backend):
    models, shards = make_clients([KINDS[0]])
    hard_shards = [(x, y) for x, y, _ in shards]
    soft_shards = [(x, F.one_hot(y, 4).to(EXACT)) for x, y, _ in shards]
    hard = train_copies(models, hard_shards, RECIPES[0], backend, seed=0)
    soft = train_copies(models, soft_shards, RECIPES[0], backend, seed=0)
    assert compute_largest_difference_of_networks(hard, soft) < 1e-12


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_adjust_comes_before_decay_and_momentum(backend):
    """Two steps with all gradients set to 1, momentum 0.5, decay 0.1, lr 0.2, by hand."""
    (model,), (shard,) = make_clients([KINDS[0]], sizes=(8,))

    def set_to_one(clients, parameters, gradients):
        for gradient in gradients:
            gradient.fill_(1)

    recipe = Recipe(epochs=2, batch_size=8, lr=0.2, momentum=0.5, weight_decay=0.1)
    twin = copy.deepcopy(model)
    steps = iterate_training_of_clients_in_place(
        [twin], [shard[:2]], recipe, seed=0, backend=backend, adjust=set_to_one
    )
    assert list(steps)
    for p, end in zip(model.parameters(), twin.parameters(), strict=True):
        v1 = 1 + 0.1 * p
        p1 = p - 0.2 * v1
        v2 = 0.5 * v1 + 1 + 0.1 * p1
        torch.testing.assert_close(end, p1 - 0.2 * v2, rtol=0, atol=1e-12)
