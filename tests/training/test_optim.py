"""SGD and Adam against torch.optim, to the last digits of float64, one tensor and stacked."""

import pytest
import torch

from fedlab_nb.training import Recipe
from fedlab_nb.training.optim import Adam, Sgd, make_optimizer

SHAPES = [(5, 3, 4), (5, 3), (5, 2, 3, 2, 2)]


def draw(seed, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype) for shape in SHAPES]


def close(these, those, tolerance=1e-14):
    return all(float((a - b).abs().max()) <= tolerance for a, b in zip(these, those, strict=True))


def both(mine, theirs, parameters, steps=6):
    """Take the same steps with ours on copies and with torch's on `parameters`; both lists."""
    for t in range(steps):
        gradients = draw(100 + t)
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = g.clone()
        mine.lr = theirs.param_groups[0]["lr"] = 0.1 / (t + 1)
        mine.step([g.clone() for g in gradients])
        theirs.step()
    return mine.parameters, parameters


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_is_torchs(momentum, decay):
    parameters = draw(0)
    mine = Sgd(draw(0), 0.1, momentum=momentum, weight_decay=decay)
    assert close(
        *both(
            mine,
            torch.optim.SGD(parameters, 0.1, momentum=momentum, weight_decay=decay),
            parameters,
        )
    )


@pytest.mark.parametrize("options", [{}, {"rows": 5}])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)])
def test_adam_is_torchs(betas, decay, options):
    parameters = draw(0)
    mine = Adam(draw(0), 0.1, betas=betas, weight_decay=decay, **options)
    assert close(
        *both(mine, torch.optim.Adam(parameters, 0.1, betas=betas, weight_decay=decay), parameters)
    )


@pytest.mark.parametrize(
    "recipe", [Recipe(lr=0.1), Recipe(lr=0.1, optimizer="adam", weight_decay=0.1)]
)
def test_the_first_rows_alone_are_as_if_the_others_were_not_there(recipe):
    """Rows 0 and 1 take three steps, rows 2 to 4 the first only: each is what it would be by itself."""
    whole, few, once = draw(0), [p[:2].clone() for p in draw(0)], [p[2:].clone() for p in draw(0)]
    optimizer = make_optimizer(whole, recipe, rows=5)
    alone = make_optimizer(few, recipe, rows=2)
    for t in range(3):
        gradients = draw(10 + t)
        (optimizer.for_first_rows(2) if t else optimizer).step(
            [g[:2] if t else g for g in gradients]
        )
        alone.step([g[:2] for g in gradients])
    make_optimizer(once, recipe, rows=3).step([g[2:] for g in draw(10)])
    assert close([p[:2] for p in whole], few) and close([p[2:] for p in whole], once)


@pytest.mark.parametrize("made", [lambda p: Sgd(p, 0.1, momentum=0.9), lambda p: Adam(p, 0.1)])
def test_a_gradient_may_lie_otherwise_in_memory(made):
    parameters, gradients = draw(0), draw(1)
    turned = [g.transpose(0, 1).contiguous().transpose(0, 1) for g in gradients]
    assert turned[0].stride() != gradients[0].stride()
    one, other = made(draw(0)), made(draw(0))
    one.step(turned), other.step(gradients)
    assert close(one.parameters, other.parameters, 0) and not close(one.parameters, parameters)
