"""Every exercise of every lesson: right answers as people write them, wrong ones of all kinds, and empty ones."""

import copy
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lessons import problems
from records import RIGHT, runs
from scipy import special, stats

from fedlab_nb.course.distilled.lesson import kernel
from fedlab_nb.course.kit.problem import BuildProblem, NumberProblem, Problem

TYPES = [True, {3}, object(), lambda: 3, np.arange(3)]  # of no answer
EMPTY = [None, ..., "", " ", "\n"]


# ------------------------------------------------------------------------------------------------------ numbers
def numbers(problem):
    v, text = float(problem.right_answer), f"{problem.right_answer:g}"
    spelled = [v, np.float32(v), torch.tensor(v), text, f" {text}\n", text.replace(".", ","), text.lstrip("0")]
    spelled += [f"{v:.3f}", f"“{text}”", f"{text}.", f"≈ {text}", f"x = {text}", f"The answer is {text}."]
    spelled += [f"{text} {unit}" for unit in problem.units] + [f"{100 * v:g} %"] * ("%" not in problem.units)
    wrong = [v + 3 * problem.tolerance, v - 3 * problem.tolerance, f"{1000 * v:g}", -v, *(v for v, _ in problem.slips)]
    wrong += ["no idea", f"{text} furlongs", f"{text} or so, or {text}", f"not {text}", f"{text}/0", "nan", [v], "?"]
    return spelled, wrong, []


# ------------------------------------------------------------------------------------------------------ runs
def changed(record, **values):
    record = [copy.copy(outcome) for outcome in record]
    for outcome in record:
        vars(outcome).update(values)
    return record


def records(right):
    spelled = [right, right[::-1], tuple(right), iter(right), SimpleNamespace(outcomes=right), right * 2]
    wrong = [right[: len(right) // 2], [o for o in right if o.settings.seed < 2]]  # one setting or side; two seeds
    wrong += [changed(right, accuracy=0.5, accuracy_validation=0.5), changed(right, accuracy_validation=None)]
    wrong += [changed(right, method="local"), [o.accuracy for o in right], right[0], "FENS 84 %"]
    return [*spelled, runs("local", [50] * 3) + right], wrong, [[], (), SimpleNamespace(outcomes=[])]


# ------------------------------------------------------------------------------------------------------ functions
def by_autograd(logits, labels, w, eta):
    w = torch.tensor(w, requires_grad=True)
    answers = (w[:, None, None] * torch.tensor(logits)).sum(0) / w.sum()
    torch.nn.functional.cross_entropy(answers, torch.tensor(labels)).backward()
    return (w - eta * w.grad.sign()).clip(0, 1)


def by_inverse(sent, labels, images, classes, ridge):
    among = kernel(sent, sent)
    damped = among + ridge * np.trace(among) / len(among) * np.eye(len(among))
    return kernel(images, sent) @ np.linalg.inv(damped) @ (np.eye(classes)[labels] - 1 / classes)


ANOTHER = {  # way to write each function
    "fedavg": lambda of, n: {layer: np.average([each[layer] for each in of], axis=0, weights=n) for layer in of[0]},
    "soft_labels": lambda z, tau: special.softmax(z.mean(0) / tau, axis=-1),
    "weighted_sum": lambda z, w: np.einsum("mc,mnc->nc", w, z),
    "consensus": lambda s: np.average(s, axis=0, weights=np.repeat(s.std(2)[..., None] ** 2, s.shape[2], axis=2)),
    "ee_step": by_autograd,
    "fused_block": lambda h, a, s, b, c: [
        ((np.hstack(h) @ a[k].T + s[k]) @ b[k].T + c[k]).clip(0) for k in range(len(h))
    ],
    "product_mean": lambda m, p: np.linalg.inv(p.sum(0)) @ np.einsum("kij,kj->i", p, m),
    "paired_band": lambda a, b: [np.mean(a) - np.mean(b), np.ptp(stats.ttest_rel(a, b).confidence_interval()) / 2],
    "mean_and_spread": lambda n, s, q: [sum(s) / sum(n), (sum(q) / sum(n) - (sum(s) / sum(n)) ** 2) ** 0.5],
    "fit": lambda g, s, gamma, rho: np.linalg.pinv(sum(g) + (rho - len(g) * gamma) * np.eye(len(g[0]))) @ sum(s),
    "match_units": lambda a, b: min(
        itertools.permutations(range(len(a))), key=lambda p: np.linalg.norm(a - b[list(p)], axis=1).sum()
    ),
    "scores": by_inverse,
}


def after(function, change):
    """The function, with `change` done to each array that it returns."""

    def changed(*given):
        value = function(*given)
        return {k: change(v) for k, v in value.items()} if isinstance(value, dict) else change(np.asarray(value))

    return changed


def functions(problem):
    right = problem.right_answer
    kinds = [np.ndarray.tolist, torch.from_numpy, np.float32, list]
    wrong = [
        after(right, lambda v: v + 0.01),
        after(right, lambda v: 100 * v),
        after(right, str),
        *problem.build.slips.values(),
    ]
    wrong += [lambda: 3, lambda *given: 1 / 0, lambda *given: given, right.__name__, 3]
    return [right, ANOTHER[right.__name__], *(after(right, kind) for kind in kinds)], wrong, [lambda *given: None]


# ------------------------------------------------------------------------------------------------------ all of them
@pytest.mark.parametrize(("lesson", "problem"), problems(Problem))
def test_an_exercise_takes_what_is_right_and_nothing_else(lesson, problem):
    if isinstance(problem, NumberProblem | BuildProblem):
        right, wrong, empty = (numbers if isinstance(problem, NumberProblem) else functions)(problem)
    else:
        right, wrong, empty = records(RIGHT[f"{lesson[:2]} q{problem.title[9:]}"])
    assert len(right) >= 5 <= len(wrong)
    for state, answers in {"right": right, "wrong": wrong + TYPES, "unattempted": empty + EMPTY}.items():
        for answer in answers:
            verdict = problem.check(answer)
            assert verdict.state == state and len(verdict.message.split()) >= 2, (answer, verdict)
