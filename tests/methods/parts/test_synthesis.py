"""Shared parts of the data-free methods: the search for images, random crops, the trace of training, the student."""

import copy

import pytest
import torch
from collected_steps import run_and_collect_steps
from method_runs import make_torch_generator

from fedlab_nb.methods.base import Progress
from fedlab_nb.methods.parts.images import optimise_images, shift_and_mirror_randomly
from fedlab_nb.methods.parts.synthesis import (
    FRAMES,
    GeneratorKnobs,
    SynthesisReport,
    TrainingTrace,
    should_trace_images_of_epoch,
)
from fedlab_nb.models import build

STEP = Progress("synthesis", 0, 1)


def test_search_returns_the_best_batch_not_the_last():
    """With so large a rate Adam overshoots the minimum at 0, so neither the first nor the last batch is the best."""
    u = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    batches = []

    def loss(x):
        batches.append(x.detach().clone())
        return (x**2).sum()

    best, passes = run_and_collect_steps(
        optimise_images(lambda: u, [u], loss, steps=7, lr=0.4, progress_of_each_step=STEP)
    )
    values = [float(x**2) for x in batches]
    best_step = values.index(min(values))
    assert len(passes) == 7 and 0 < best_step < 6
    assert torch.equal(best, batches[best_step]) and not torch.equal(best, u.detach())
    assert not best.requires_grad


@pytest.mark.parametrize("clipped", [None, -1])
def test_search_is_adam_with_clipping_and_projection(clipped):
    """Three steps against torch's Adam; its first one is rate · sign(g) whatever the clip."""
    u = [torch.full((2,), v, dtype=torch.float64, requires_grad=True) for v in (3.0, -2.0)]
    options = {
        "maximum_gradient_norm": 1.0,
        "clipped_parameter_count": clipped,
        "project_parameters": lambda: u[0].clamp_(-2.7, 2.7),
        "progress_of_each_step": STEP,
    }
    run_and_collect_steps(
        optimise_images(lambda: u[0] * u[1], u, lambda x: (x**3).sum(), steps=3, lr=0.5, **options)
    )
    first, second = (
        torch.full((2,), v, dtype=torch.float64, requires_grad=True) for v in (3.0, -2.0)
    )
    adam = torch.optim.Adam([first, second], lr=0.5, betas=(0.5, 0.999))
    for _ in range(3):
        adam.zero_grad()
        ((first * second) ** 3).sum().backward()
        torch.nn.utils.clip_grad_norm_([first] if clipped else [first, second], 1.0)
        adam.step()
        with torch.no_grad():
            first.clamp_(-2.7, 2.7)
    for mine, theirs in zip(u, (first, second), strict=True):
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=0, atol=1e-9)


def test_search_does_not_change_networks_in_the_loss():
    student = build("mlp", (1, 8, 8), 4, generator=make_torch_generator())
    before = copy.deepcopy(student.state_dict())
    u = torch.rand(3, 1, 8, 8, generator=make_torch_generator()).requires_grad_()
    run_and_collect_steps(
        optimise_images(
            lambda: u,
            [u],
            lambda x: student(x).square().sum(),
            steps=2,
            lr=0.1,
            progress_of_each_step=STEP,
        )
    )
    assert all(p.grad is None for p in student.parameters())
    assert all(torch.equal(t, before[name]) for name, t in student.state_dict().items())


@pytest.mark.parametrize("flip", [False, True])
def test_random_crops_equal_a_plain_loop(flip):
    x = torch.rand(
        9, 3, 6, 5, generator=make_torch_generator(), dtype=torch.float64
    ).requires_grad_()
    crops = shift_and_mirror_randomly(
        x, make_torch_generator(4), maximum_shift_pixels=2, should_mirror_half=flip
    )
    draws = make_torch_generator(4)
    top, left = torch.randint(5, (2, 9, 1), generator=draws)
    mirrored = (
        torch.rand(9, 1, generator=draws) < 0.5 if flip else torch.zeros(9, 1, dtype=torch.bool)
    )
    assert not flip or mirrored.any() and not mirrored.all()
    expected = []
    for i in range(9):
        padded = torch.zeros(3, 10, 9, dtype=torch.float64)
        padded[:, 2:8, 2:7] = x[i]
        cut = padded[:, int(top[i]) : int(top[i]) + 6, int(left[i]) : int(left[i]) + 5]
        expected.append(cut.flip(2) if mirrored[i] else cut)
    assert torch.equal(crops, torch.stack(expected))
    (gradient,) = torch.autograd.grad(crops.sum(), x)
    # Each pixel is in the crop once or not at all.
    assert set(gradient.unique().tolist()) == {0.0, 1.0}


def test_the_trace_keeps_images_losses_and_disagreement():
    student = build("mlp", (1, 8, 8), 3, generator=make_torch_generator())
    trace = TrainingTrace(2)
    assert trace.make_arrays() == {}
    x = torch.rand(30, 1, 8, 8, generator=make_torch_generator())
    with torch.no_grad():
        student_logits = student(x)
    y = student_logits.argmax(1)
    trace.add_batch(1, x, y, student_logits, student)
    trace.add_batch(2, x, y, -student_logits, student)
    trace.add_value("distillation_loss", torch.tensor(0.5))
    report = SynthesisReport(**trace.make_arrays())
    assert (
        report.synthetic_images.shape == (2, 20, 1, 8, 8)
        and report.synthetic_images.dtype == "uint8"
    )
    assert report.synthetic_labels.shape == (2, 20) and report.synthetic_epochs.tolist() == [1, 2]
    assert report.disagreement.tolist() == [0.0, 1.0]
    expected = [
        1 - float(logits.softmax(1)[range(30), y].mean())
        for logits in (student_logits, -student_logits)
    ]
    assert report.difficulty.tolist() == pytest.approx(expected, abs=1e-6)
    assert report.distillation_loss.tolist() == [0.5]


@pytest.mark.parametrize("total", [1, 2, 12, 30, 200, 500])
def test_at_most_so_many_epochs_are_traced_and_the_last_one_is(total):
    traced = [epoch for epoch in range(1, total + 1) if should_trace_images_of_epoch(epoch, total)]
    assert traced[-1] == total and len(traced) <= 2 * FRAMES and len(traced) >= min(total, 10)


def test_the_student_trainer_has_the_papers_settings():
    learner = GeneratorKnobs(epochs=4, batch=8, server_lr=0.01).make_student_trainer(
        build("mlp", (1, 8, 8), 3)
    )
    optimizer = learner.optimizer
    assert (optimizer.momentum, optimizer.weight_decay, learner.clip) == (0.9, 1e-4, 10.0)
    learner.set_learning_rate_of_epoch(2)
    assert optimizer.lr == pytest.approx(0.005)
