"""Distillation: losses against hand-made values and closed-form gradients, the loop against one written by hand."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedlab_nb.errors import UsageError
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.training import Recipe
from fedlab_nb.training.distill import (
    StudentTrainer,
    choose_distillation_loss,
    compute_cross_entropy_losses,
    compute_distillation_losses,
    compute_logit_distance_losses,
    distil_student_in_place,
)

N, C = 12, 4


def make_generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw_numbers(*shape, seed=0):
    return torch.randn(*shape, generator=make_generator(seed), dtype=torch.float64)


@pytest.fixture
def student():
    return build("mlp", (5,), C, width=6, generator=make_generator(1), dtype=torch.float64)


# ------------------------------------------------------------------------------------------------ losses
def test_kl_divergence_by_hand():
    teacher = torch.tensor([[0.5, 0.5], [0.75, 0.25]], dtype=torch.float64).log()
    student = torch.tensor([[0.25, 0.75], [0.75, 0.25]], dtype=torch.float64).log()
    by_hand = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert compute_distillation_losses(teacher, student).tolist() == pytest.approx(
        [by_hand, 0.0], abs=1e-15
    )
    # KL is not symmetric: the teacher comes first.
    exchanged = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    assert float(compute_distillation_losses(student, teacher)[0]) == pytest.approx(
        exchanged, abs=1e-15
    )


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0, 20.0])
def test_gradient_of_kl_is_tau_times_the_difference_of_the_softened_answers(temperature):
    """d/ds τ² KL(p‖q) = τ (q - p), p = softmax(t/τ), q = softmax(s/τ); and d/dt = τ p (log(p/q) - KL(p‖q))."""
    teacher = draw_numbers(N, C).requires_grad_()
    student = draw_numbers(N, C, seed=1).requires_grad_()
    divergence = compute_distillation_losses(teacher, student, temperature).sum()
    to_teacher, to_student = torch.autograd.grad(divergence, (teacher, student))
    p = (teacher / temperature).softmax(1)
    q = (student / temperature).softmax(1)
    torch.testing.assert_close(to_student, temperature * (q - p), rtol=0, atol=1e-12)
    gap = (p / q).log()
    kl = (p * gap).sum(1, keepdim=True)
    torch.testing.assert_close(to_teacher, temperature * p * (gap - kl), rtol=0, atol=1e-12)


def test_l1_and_pseudo_label_losses_by_hand():
    t = torch.tensor([[1.0, -1.0], [0.0, 2.0]], dtype=torch.float64)
    s = torch.tensor([[0.5, 1.0], [0.0, 2.0]], dtype=torch.float64)
    assert compute_logit_distance_losses(t, s).tolist() == [1.25, 0.0]
    expected = F.cross_entropy(s, torch.tensor([0, 1]), reduction="none")
    assert torch.equal(compute_cross_entropy_losses(t, s), expected)  # from logits
    assert torch.equal(
        compute_cross_entropy_losses(torch.tensor([0, 1]), s), expected
    )  # from labels
    with pytest.raises(UsageError, match="did you mean 'l1'"):
        choose_distillation_loss("L1")


# ------------------------------------------------------------------------------------------------ loop
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["kl", "l1", "ce"])
def test_the_loop_equals_one_written_by_hand(student, optimizer, name):
    x = draw_numbers(N, 5)
    targets = draw_numbers(N, C, seed=2)
    recipe = Recipe(3, 5, optimizer, lr=0.1, weight_decay=1e-3, schedule="cosine")
    trained = copy.deepcopy(student)
    loss = choose_distillation_loss(name, 2.0)
    ticks = list(
        distil_student_in_place(
            trained, x, targets, recipe, loss, make_generator(5), largest_gradient_norm=0.5
        )
    )
    assert [tick.done for tick in ticks] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3]
    assert ticks[-1].has_current_models

    stream = make_generator(5)
    options = {"lr": 0.1, "weight_decay": 1e-3}
    if optimizer == "sgd":
        torch_optimizer = torch.optim.SGD(student.parameters(), momentum=0.9, **options)
    else:
        torch_optimizer = torch.optim.Adam(student.parameters(), **options)
    for epoch in range(3):
        torch_optimizer.param_groups[0]["lr"] = 0.05 * (1 + math.cos(math.pi * epoch / 3))
        for rows in torch.randperm(N, generator=stream).split(5):
            torch_optimizer.zero_grad()
            compute_loss_by_torch(name, student(x[rows]), targets[rows]).backward()
            nn.utils.clip_grad_norm_(student.parameters(), 0.5)
            torch_optimizer.step()
    for trained_parameter, parameter in zip(
        trained.parameters(), student.parameters(), strict=True
    ):
        torch.testing.assert_close(trained_parameter, parameter, rtol=0, atol=1e-12)


def compute_loss_by_torch(name, logits, target):
    """The mean loss of a batch, at temperature 2."""
    if name == "kl":
        softened = (target / 2).softmax(1)
        return 4 * F.kl_div((logits / 2).log_softmax(1), softened, reduction="batchmean")
    if name == "l1":
        return F.l1_loss(logits, target)
    return F.cross_entropy(logits, target.argmax(1))


def test_a_teacher_may_be_a_function_and_a_batch_may_be_prepared(student):
    x = draw_numbers(N, 5)
    weights = draw_numbers(5, C, seed=3)
    recipe = Recipe(2, 4, lr=0.1)
    loss = choose_distillation_loss("kl")
    twin = copy.deepcopy(student)

    def teach(batch):
        return batch @ weights

    list(distil_student_in_place(student, x, teach(x), recipe, loss, make_generator()))
    list(distil_student_in_place(twin, x, teach, recipe, loss, make_generator()))
    for parameter, twin_parameter in zip(student.parameters(), twin.parameters(), strict=True):
        assert torch.equal(parameter, twin_parameter)

    targets = []

    def record_targets(target, logits):
        targets.append(target)
        return compute_distillation_losses(target, logits)

    learner = StudentTrainer(twin, recipe, record_targets)
    list(
        learner.train_one_pass(
            x, teach, make_generator(), epoch_from_0=0, prepare_batch=lambda batch: 2 * batch
        )
    )
    order = torch.randperm(N, generator=make_generator())
    torch.testing.assert_close(torch.cat(targets), 2 * teach(x)[order])


def test_a_pass_can_be_cut_short_and_always_ends_in_eval_mode():
    student = build("resnet8", (1, 8, 8), C, width=2, generator=make_generator(1))
    x = torch.rand(20, 1, 8, 8)
    targets = torch.randn(20, C)
    learner = StudentTrainer(student, Recipe(1, 4), choose_distillation_loss("kl"))
    stream = make_generator()
    assert (
        len(list(learner.train_one_pass(x, targets, stream, epoch_from_0=0, most_steps_or_all=3)))
        == 3
    )
    steps = learner.train_one_pass(x, targets, stream, epoch_from_0=0)
    next(steps)
    assert student.training
    steps.close()
    assert not student.training


def test_zero_epochs_change_nothing_and_the_global_generator_is_not_used(student):
    state = torch.get_rng_state()
    before = copy_model_state(student)
    loss = choose_distillation_loss("kl")
    ticks = distil_student_in_place(
        student, draw_numbers(N, 5), draw_numbers(N, C), Recipe(0, 4), loss, torch.Generator()
    )
    assert list(ticks) == []
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(t, before[name]) for name, t in copy_model_state(student).items())
