"""SGD and Adam against torch.optim, to the last digits of float64, for single models and for stacks."""

import pytest
import torch

from fedlab_nb.training import Recipe
from fedlab_nb.training.optim import Adam, Sgd, make_optimizer

SHAPES = [(5, 3, 4), (5, 3), (5, 2, 3, 2, 2)]


def draw_numbers(seed, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype) for shape in SHAPES]


def are_close(tensors, expected, tolerance=1e-14):
    pairs = zip(tensors, expected, strict=True)
    return all(float((a - b).abs().max()) <= tolerance for a, b in pairs)


def agree_with_torch(optimizer, torch_optimizer, parameters, steps=6):
    """Whether our optimizer on copies and torch's on `parameters` end at the same numbers after the same steps."""
    for t in range(steps):
        gradients = draw_numbers(100 + t)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        lr = 0.1 / (t + 1)
        optimizer.lr = lr
        torch_optimizer.param_groups[0]["lr"] = lr
        optimizer.step([gradient.clone() for gradient in gradients])
        torch_optimizer.step()
    return are_close(optimizer.parameters, parameters)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_equals_torchs(momentum, decay):
    parameters = draw_numbers(0)
    options = {"momentum": momentum, "weight_decay": decay}
    theirs = torch.optim.SGD(parameters, 0.1, **options)
    assert agree_with_torch(Sgd(draw_numbers(0), 0.1, **options), theirs, parameters)


@pytest.mark.parametrize("options", [{}, {"rows": 5}])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)])
def test_adam_equals_torchs(betas, decay, options):
    parameters = draw_numbers(0)
    mine = Adam(draw_numbers(0), 0.1, betas=betas, weight_decay=decay, **options)
    theirs = torch.optim.Adam(parameters, 0.1, betas=betas, weight_decay=decay)
    assert agree_with_torch(mine, theirs, parameters)


@pytest.mark.parametrize(
    "recipe", [Recipe(lr=0.1), Recipe(lr=0.1, optimizer="adam", weight_decay=0.1)]
)
def test_steps_of_the_first_models_alone_leave_the_others_unchanged(recipe):
    """Rows 0 and 1 take three steps, rows 2 to 4 only the first: both groups end as if optimised separately."""
    all_rows = draw_numbers(0)
    first_rows = [parameter[:2].clone() for parameter in draw_numbers(0)]
    last_rows = [parameter[2:].clone() for parameter in draw_numbers(0)]
    optimizer = make_optimizer(all_rows, recipe, stacked_model_count_or_none=5)
    optimizer.step(draw_numbers(10))
    for t in (1, 2):
        gradients = [gradient[:2] for gradient in draw_numbers(10 + t)]
        optimizer.view_first_models(2).step(gradients)
    first_optimizer = make_optimizer(first_rows, recipe, stacked_model_count_or_none=2)
    for t in range(3):
        first_optimizer.step([gradient[:2] for gradient in draw_numbers(10 + t)])
    make_optimizer(last_rows, recipe, stacked_model_count_or_none=3).step(
        [gradient[2:] for gradient in draw_numbers(10)]
    )
    assert are_close([parameter[:2] for parameter in all_rows], first_rows)
    assert are_close([parameter[2:] for parameter in all_rows], last_rows)


@pytest.mark.parametrize(
    "make", [lambda p: Sgd(p, 0.1, momentum=0.9), lambda p: Adam(p, 0.1)], ids=["sgd", "adam"]
)
def test_the_memory_layout_of_a_gradient_does_not_matter(make):
    gradients = draw_numbers(1)
    transposed = [g.transpose(0, 1).contiguous().transpose(0, 1) for g in gradients]
    assert transposed[0].stride() != gradients[0].stride()
    optimizer = make(draw_numbers(0))
    other_optimizer = make(draw_numbers(0))
    optimizer.step(transposed)
    other_optimizer.step(gradients)
    assert are_close(optimizer.parameters, other_optimizer.parameters, 0)
    assert not are_close(optimizer.parameters, draw_numbers(0))
