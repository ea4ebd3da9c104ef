"""Lesson 02: exercises in three states, worked numbers against another derivation."""

import numpy as np
import pytest
import torch
from toy_outcomes import toy

from fedlab_nb.course.averaging import lesson, soft_labels


def record(alpha, gaps, method="feddf", first=0, **other):
    """Runs of the ensemble and one student, a pair a seed; `gaps` in points."""
    outcomes = []
    for seed, gap in enumerate(gaps, first):
        settings = {"alpha": alpha, "seed": seed, **other}
        outcomes += [toy("ensemble", 0.6, settings=settings), toy(method, 0.6 + gap / 100, settings=settings)]
    return outcomes


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (None, "unattempted"),
        (0.193, "right"),
        (0.1927, "right"),
        ("0.19", "right"),  # the lesson prints two decimals
        ("0,193 nats", "right"),
        (0.223, "wrong"),
        (0.376, "wrong"),
        (0.278, "wrong"),
    ],
)
def test_exercise_1(answer, state):
    assert lesson.q1.problem.check(answer).state == state


def test_exercise_1_is_torch_s_divergence():
    p, q = torch.tensor([0.8, 0.2]), torch.tensor([0.5, 0.5])
    answer = torch.nn.functional.kl_div(q.log(), p, reduction="sum").item()
    assert lesson.q1.problem.check(answer).state == "right"
    reverse = torch.nn.functional.kl_div(p.log(), q, reduction="sum").item()
    assert "KL(student" in lesson.q1.problem.check(reverse).message


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (None, "unattempted"),
        (0.731, "right"),
        ("0.73", "right"),
        ("73 %", "right"),
        ("73.1 percent", "right"),
        (0.98, "wrong"),
        (0.245, "wrong"),
        (0.269, "wrong"),
    ],
)
def test_exercise_2(answer, state):
    assert lesson.q2.problem.check(answer).state == state


def test_exercise_2_is_torch_s_softmax():
    answer = (torch.tensor([4.0, 0.0]) / 4).softmax(0)[0].item()
    assert lesson.q2.problem.check(answer).state == "right"


@pytest.mark.parametrize(
    ("runs", "state", "words"),
    [
        ([], "unattempted", "No runs"),
        (record(0.1, [-2, 0, -1]), "wrong", "two α or more"),
        (record(0.1, [-2, 0, -1]) + record(1, [0, -3]), "wrong", "two α or more"),
        (record(0.1, [-2, 0, -1]) + record(1, [0, -3, 0]), "right", "FedDF, one shot at α = 0.1: -1 ± 2 points"),
        (record(0.1, [-2, 0, -1]) + record(1, [5, 4, 6]), "wrong", "contradict the claim"),
        (record(0.1, [-9, -8, -9], "dense") + record(1, [0, 1, 0]), "right", "DENSE at α = 0.1: -9 ± 1 points"),
        # a noisy +3 speaks neither for nor against it; a clear +1 does
        (record(0.1, [-2, 0, -1]) + record(1, [12, -4, 1]), "right", "at α = 1: +3 ± 20 points"),
        (record(0.1, [-2, 0, -1]) + record(1, [1.1, 1, 0.9]), "wrong", "contradict the claim"),
        # other conditions are another setting
        (
            record(0.1, [1, 0]) + record(0.1, [1], first=2, classes_per_client=3),
            "wrong",
            "has 2 seeds with the ensemble",
        ),
        (record(0.1, [1, 0], "fens"), "wrong", "no setting has runs of a student"),
    ],
)
def test_exercise_3(runs, state, words):
    verdict = lesson.q3.problem.check(runs)
    assert verdict.state == state and words in verdict.message


# ------------------------------------------------------------------------------------------------ to build
def by_loop(logits, temperature):
    clients, images, classes = logits.shape
    rows = []
    for i in range(images):
        mean = [sum(logits[k, i, c] for k in range(clients)) / clients for c in range(classes)]
        powers = [np.e ** (value / temperature) for value in mean]
        rows.append([power / sum(powers) for power in powers])
    return rows


def by_torch(logits, temperature):
    return (torch.tensor(logits, dtype=torch.float32).mean(0) / temperature).softmax(-1)


def without_keepdims(logits, temperature):
    powers = np.exp(logits.mean(0) / temperature)
    return powers / powers.sum(axis=1)


def of(z):
    return torch.as_tensor(z).softmax(-1).numpy()


@pytest.mark.parametrize(("answer", "state", "words"), [
    (by_loop, "right", "hidden inputs"),
    (by_torch, "right", "hidden inputs"),
    (None, "unattempted", ""),
    (lambda logits, temperature: ..., "unattempted", ""),
    (lambda logits, temperature: None, "unattempted", ""),
    (lambda z, t: torch.as_tensor(z.mean(0) / t).softmax(0), "wrong", "Your columns add up to one"),
    (lambda z, t: of(z / t).mean(0), "wrong", "Take the mean of the logits first"),
    (without_keepdims, "wrong", "Keep the axis"),
    (lambda z, t: of(z.mean(1) / t), "wrong", "mean over the clients: axis 0"),
    (lambda z, t: of(z.sum(0) / t), "wrong", "their mean: divide"),
    (lambda z, t: of(t * z.mean(0)), "wrong", "You multiply by τ"),
    (lambda z, t: of(z.mean(0)) / t, "wrong", "You divide the probabilities"),
    (lambda z, t: by_torch(z, t).T, "wrong", "one row for each image"),
    (lambda z, t: np.exp(z) / T, "wrong", "soft_labels stopped with NameError"),  # noqa: F821
])  # fmt: skip
def test_exercise_4(answer, state, words):
    verdict = lesson.q4.problem.check(answer)
    assert verdict.state == state and words in verdict.message


def test_exercise_4_gives_the_student_what_the_methods_loss_compares_with():
    """Where the student says what `soft_labels` returns, the loss of distillation is zero."""
    from fedlab_nb.training.distill import kl_each

    for logits, tau in soft_labels.hidden_inputs():
        student = tau * torch.from_numpy(np.log(soft_labels.right(logits, tau)))
        assert kl_each(torch.from_numpy(logits).mean(0), student, tau).abs().max() < 1e-9


def test_hints_and_solutions_speak():
    for problem in (lesson.q1, lesson.q2):
        assert str(problem.problem.right_answer) in problem.solution().text
        assert "Hint 2 of 2" in problem.problem.hint(2)


@pytest.mark.slow
def test_worked_numbers_are_those_of_the_runs():
    outcomes = lesson.runs(("ensemble", "feddf"), 1)
    assert lesson.q3.problem.check([*outcomes, *lesson.runs(("ensemble", "feddf"), 0.3)]).state == "right"
    card = lesson.three_ways(1).text
    by_logits = lesson.runs(("ensemble",), 1, **lesson.LOGITS)
    assert f"{lesson.percent(by_logits, 'ensemble'):.0f} % correct" in card and "263 kB of weights to keep" in card
    assert "τ² KL(teacher ‖ student) = " in lesson.one_image(1).text
