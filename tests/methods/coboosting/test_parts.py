"""The formulas of Co-Boosting: difficulty and losses by hand, perturbations, ensemble weights; all in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from method_runs import make_torch_generator

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.base import EnsembleModel
from fedlab_nb.methods.coboosting import WeightedEnsemble, boosting
from fedlab_nb.methods.parts.frozen_ensemble import FrozenEnsemble
from fedlab_nb.models import build
from fedlab_nb.training import ClientModels

F64 = torch.float64
M, N, C = 4, 37, 5


def random(*shape, seed=0, scale=1.0):
    return torch.randn(*shape, generator=make_torch_generator(seed), dtype=F64) * scale


def labels(n=N, seed=1):
    return torch.randint(C, (n,), generator=make_torch_generator(seed))


def clients(count=M, dtype=F64, models=("mlp",)):
    models = [
        build(models[k % len(models)], (1, 8, 8), C, generator=make_torch_generator(k), dtype=dtype)
        for k in range(count)
    ]
    return ClientModels(models)


def images(n=N, seed=3, dtype=F64):
    return torch.rand(n, 1, 8, 8, generator=make_torch_generator(seed), dtype=dtype)


def uniform(models):
    """The mean of the clients' logits, with gradients."""
    ensemble = FrozenEnsemble(models)
    return lambda x: ensemble.logits(x).mean(0)


# ------------------------------------------------------------------------------------------------------------------ GHS
# Logits log 1, log 3 make probabilities 1/4, 3/4.
HAND = torch.tensor([[0, math.log(3)], [0, math.log(3)]], dtype=F64)


def test_difficulty_by_hand_and_within_0_and_1():
    by_hand = torch.tensor([0.25, 0.75], dtype=F64)
    torch.testing.assert_close(
        boosting.compute_sample_difficulties(HAND, torch.tensor([1, 0])), by_hand
    )
    d = boosting.compute_sample_difficulties(random(N, C, scale=30), labels())
    assert bool((d >= 0).all()) and bool((d <= 1).all())
    # The size of the cross-entropy's gradient on the label's logit.
    logits = random(N, C).requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(logits, labels(), reduction="sum"), logits)
    torch.testing.assert_close(
        boosting.compute_sample_difficulties(logits, labels()), -gradient[torch.arange(N), labels()]
    )


def test_hard_sample_loss_by_hand():
    y = torch.tensor([1, 0])
    by_hand = (0.25 * math.log(4 / 3) + 0.75 * math.log(4)) / 2
    assert math.isclose(boosting.compute_hard_sample_loss(HAND, y), by_hand, rel_tol=1e-12)
    squared = (0.25**2 * math.log(4 / 3) + 0.75**2 * math.log(4)) / 2
    assert math.isclose(
        boosting.compute_hard_sample_loss(HAND, y, difficulty_exponent=2), squared, rel_tol=1e-12
    )


def test_no_gradient_flows_through_the_difficulty():
    """With d constant, ∂L_H/∂logits = d (p - onehot) / N."""
    logits, y = random(N, C).requires_grad_(), labels()
    (gradient,) = torch.autograd.grad(boosting.compute_hard_sample_loss(logits, y), logits)
    p = logits.detach().softmax(1)
    d = 1 - p[torch.arange(N), y]
    torch.testing.assert_close(gradient, d[:, None] * (p - F.one_hot(y, C)) / N, rtol=0, atol=1e-15)


def test_the_adversarial_loss_is_kl_from_the_teacher_by_hand():
    """Teacher (1/2, 1/2), student (1/4, 3/4): KL = log 2 - log 3 / 2; the other way round it is another number."""
    teacher, student = torch.zeros(1, 2, dtype=F64), HAND[:1]
    forward = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    backward = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    assert not math.isclose(forward, backward, rel_tol=0.01)
    assert math.isclose(
        boosting.compute_adversarial_loss(teacher, student), -forward, rel_tol=1e-12
    )
    # Temperature 3 with logits three times as large: the same distributions, times 3².
    assert math.isclose(
        boosting.compute_adversarial_loss(teacher, 3 * student, 3.0), -9 * forward, rel_tol=1e-12
    )


def test_the_adversarial_gradient_reaches_images_through_both_networks():
    both = clients(2)
    x = images(3).requires_grad_()

    def gradient(freeze):
        teacher, student = (module(x) for module in both.modules)
        teacher = teacher.detach() if freeze == "teacher" else teacher
        student = student.detach() if freeze == "student" else student
        return torch.autograd.grad(boosting.compute_adversarial_loss(teacher, student), x)[0]

    torch.testing.assert_close(gradient(None), gradient("teacher") + gradient("student"))
    assert gradient("teacher").abs().max() > 0 and gradient("student").abs().max() > 0


# ------------------------------------------------------------------------------------------------------------------ DHS
@pytest.mark.parametrize("models", [("mlp",), ("lenet5", "mlp")])
def test_a_sign_step_moves_every_pixel_by_epsilon_where_there_is_a_gradient(models):
    ensemble, x, epsilon = uniform(clients(models=models)), images(), 8 / 255
    u = boosting.draw_uniform_output_directions(N, C, make_torch_generator(), x)
    before = x.clone()
    change = boosting.perturb_images_along_output_directions(x, ensemble, u, epsilon) - x
    probe = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((u * (ensemble(probe) / 4).softmax(1)).sum(), probe)
    torch.testing.assert_close(change, epsilon * gradient.sign(), rtol=0, atol=1e-15)
    assert change.abs().max() == pytest.approx(epsilon, abs=1e-15)
    assert (gradient != 0).double().mean() > 0.9
    assert torch.equal(x, before) and not x.requires_grad


def test_a_literal_step_moves_every_image_by_epsilon_in_l2():
    ensemble, x, epsilon = uniform(clients()), images(), 8 / 255
    u = boosting.draw_uniform_output_directions(N, C, make_torch_generator(), x)
    change = (
        boosting.perturb_images_along_output_directions(
            x, ensemble, u, epsilon, perturbation="literal"
        )
        - x
    )
    torch.testing.assert_close(change.flatten(1).norm(dim=1), torch.full((N,), epsilon, dtype=F64))
    # Along the gradient of the raw logits, with no temperature in it.
    probe = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((u * ensemble(probe)).sum(), probe)
    torch.testing.assert_close(
        F.cosine_similarity(change.flatten(1), gradient.flatten(1)), torch.ones(N, dtype=F64)
    )


def test_where_the_teacher_is_constant_no_image_changes():
    x = images(3)
    for kind in boosting.PERTURBATIONS:
        perturbed = boosting.perturb_images_along_output_directions(
            x,
            lambda x: x.flatten(1)[:, :C] * 0,
            torch.ones(3, C, dtype=F64),
            0.1,
            perturbation=kind,
        )
        assert torch.equal(perturbed, x)


def test_an_unknown_perturbation_is_refused():
    with pytest.raises(UsageError, match="Unknown perturbation 'sing'"):
        boosting.perturb_images_along_output_directions(
            images(1), lambda x: x.flatten(1), torch.ones(1, 64), 0.1, perturbation="sing"
        )


# ------------------------------------------------------------------------------------------------------------------- EE
def weighted_loss(z, y, w, normalise):
    total = torch.einsum("m,mnc->nc", w, z)
    return F.cross_entropy(total / w.sum() if normalise else total, y)


@pytest.mark.parametrize("normalise", [True, False])
def test_the_closed_form_of_the_gradient_equals_autograd(normalise):
    z, y = random(M, N, C, scale=3), labels()
    w = torch.rand(M, generator=make_torch_generator(5), dtype=F64).requires_grad_()
    (expected,) = torch.autograd.grad(weighted_loss(z, y, w, normalise), w)
    torch.testing.assert_close(
        boosting.compute_loss_gradient_of_client_weights(
            z, y, w.detach(), divide_by_weight_sum=normalise
        ),
        expected,
    )


def test_one_sign_step_by_hand():
    w = torch.tensor([0.5, 0.02, 0.98, 0.3], dtype=F64)
    gradient = torch.tensor([2.0, 1e-9, -3.0, 0.0], dtype=F64)
    torch.testing.assert_close(
        boosting.step_down_gradient_sign_within_unit_interval(w, gradient, 0.05),
        torch.tensor([0.45, 0, 1, 0.3], dtype=F64),
    )
    # A step that would set all weights to 0 is not taken.
    small_weights = torch.tensor([0.01, 0.02], dtype=F64)
    assert torch.equal(
        boosting.step_down_gradient_sign_within_unit_interval(
            small_weights, torch.ones(2, dtype=F64), 0.5
        ),
        small_weights,
    )


def test_a_pass_reads_every_sample_once_and_steps_limit_it(monkeypatch):
    batches = []

    def gradient(z, y, w, divide_by_weight_sum):
        batches.append(z[0, :, 0])
        return torch.zeros_like(w)

    monkeypatch.setattr(boosting, "compute_loss_gradient_of_client_weights", gradient)
    z = torch.arange(N, dtype=F64).expand(M, N).unsqueeze(2).expand(M, N, C)
    w = torch.full((M,), 1 / M, dtype=F64)
    list(
        boosting.iterate_sign_steps_of_one_pass(
            w, z, labels(), 0.1, batch_size=8, shuffle_stream=make_torch_generator()
        )
    )
    assert [len(part) for part in batches] == [8, 8, 8, 8, 5]
    assert torch.equal(torch.cat(batches).sort().values, torch.arange(N, dtype=F64))
    assert not torch.equal(torch.cat(batches), torch.arange(N, dtype=F64))
    batches.clear()
    list(
        boosting.iterate_sign_steps_of_one_pass(
            w,
            z,
            labels(),
            0.1,
            batch_size=8,
            shuffle_stream=make_torch_generator(),
            maximum_steps=2,
        )
    )
    assert [len(part) for part in batches] == [8, 8]


def test_cached_logits_give_the_same_weights_as_running_the_networks():
    models, x, y = clients(), images(), labels()
    w = torch.full((M,), 1 / M, dtype=F64)
    cached = FrozenEnsemble(models).compute_logits_without_gradients(x)
    *_, fast = boosting.iterate_sign_steps_of_one_pass(
        w, cached, y, 0.02, batch_size=8, shuffle_stream=make_torch_generator(9)
    )
    slow, order = w, torch.randperm(N, generator=make_torch_generator(9))
    for rows in order.split(8):
        slow = slow.clone().requires_grad_()
        total = sum(
            weight * module(x[rows]) for weight, module in zip(slow, models.modules, strict=True)
        )
        loss = F.cross_entropy(total / slow.sum(), y[rows])
        (gradient,) = torch.autograd.grad(loss, slow)
        slow = (slow - 0.02 * gradient.sign()).clamp(0, 1).detach()
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-14)


# ------------------------------------------------------------------------------------------------------------- ensemble
def test_equal_weights_are_fedens_and_a_single_weight_is_that_client():
    models, x = clients(models=("mlp", "lenet5")), images()
    fedens = EnsembleModel(models).logits(x)
    torch.testing.assert_close(WeightedEnsemble(models, [0.3] * M).logits(x), fedens)
    torch.testing.assert_close(
        WeightedEnsemble(models, [1] * M, normalise=False).logits(x), M * fedens
    )
    single_client = WeightedEnsemble(models, [0, 0, 0.2, 0])
    torch.testing.assert_close(single_client.logits(x), models.module(2)(x))
    assert single_client.features(x).shape == (N, M * C) and single_client.parameters == sum(
        models.parameters
    )


@pytest.mark.parametrize(
    "weights", [[1, 1], [1, 1, 1, -1], [0, 0, 0, 0], [1, 1, 1, float("nan")], [1, 1, 1, math.inf]]
)
def test_invalid_weights_are_refused(weights):
    with pytest.raises(UsageError, match="The ensemble's weights are"):
        WeightedEnsemble(clients(), weights)
