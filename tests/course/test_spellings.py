"""Every exercise of every lesson: right answers as people write them, wrong ones of all kinds, and empty ones."""

import copy
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lessons import problems
from records import RIGHT, runs
from scipy import optimize, special, stats
from torch import nn

from fedlab_nb.course import COURSE
from fedlab_nb.course.distilled.lesson import kernel
from fedlab_nb.course.kit.problem import BuildProblem, NumberProblem, Problem
from fedlab_nb.data.tables import compute_pooled_moments
from fedlab_nb.methods.afl import RidgeSums, solve_classifier_weights
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.coboosting.boosting import (
    compute_weight_gradient,
    step_down_gradient_sign_within_unit_interval,
)
from fedlab_nb.methods.fedet.consensus import compute_consensus
from fedlab_nb.methods.fens.aggregators import make_per_class_aggregator
from fedlab_nb.methods.fusefl.blocks import join_client_outputs
from fedlab_nb.methods.fusefl.network import Stage
from fedlab_nb.studies.statistics import difference

TYPES = [True, {3}, object(), lambda: 3, np.arange(3)]  # of no answer
EMPTY = [None, ..., "", " ", "\n"]


# ------------------------------------------------------------------------------------------------------ numbers
def numbers(problem):
    v, text = float(problem.right_answer), f"{problem.right_answer:g}"
    spelled = [
        v,
        np.float32(v),
        torch.tensor(v),
        text,
        f" {text}\n",
        text.replace(".", ","),
        text.lstrip("0"),
    ]
    spelled += [
        f"{v:.3f}",
        f"“{text}”",
        f"{text}.",
        f"≈ {text}",
        f"x = {text}",
        f"The answer is {text}.",
    ]
    spelled += [f"{text} {unit}" for unit in problem.units] + [f"{100 * v:g} %"] * (
        "%" not in problem.units
    )
    wrong = [
        v + 3 * problem.tolerance,
        v - 3 * problem.tolerance,
        f"{1000 * v:g}",
        -v,
        *(v for v, _ in problem.slips),
    ]
    wrong += [
        "no idea",
        f"{text} furlongs",
        f"{text} or so, or {text}",
        f"not {text}",
        f"{text}/0",
        "nan",
        [v],
        "?",
    ]
    return spelled, wrong, []


# ------------------------------------------------------------------------------------------------------ runs
def changed(record, **values):
    record = [copy.copy(outcome) for outcome in record]
    for outcome in record:
        vars(outcome).update(values)
    return record


def records(right):
    spelled = [
        right,
        right[::-1],
        tuple(right),
        iter(right),
        SimpleNamespace(outcomes=right),
        right * 2,
    ]
    wrong = [
        right[: len(right) // 2],
        [o for o in right if o.settings.seed < 2],
    ]  # one setting or side; two seeds
    wrong += [
        changed(right, accuracy=0.5, accuracy_validation=0.5),
        changed(right, accuracy_validation=None),
    ]
    wrong += [changed(right, method="local"), [o.accuracy for o in right], right[0], "FENS 84 %"]
    wrong += [np.array(3.0), torch.tensor(3.0)]  # which call themselves iterable, and are not
    return (
        [*spelled, runs("local", [50] * 3) + right],
        wrong,
        [[], (), SimpleNamespace(outcomes=[])],
    )


# ------------------------------------------------------------------------------------------------------ functions
def by_autograd(logits, labels, w, eta):
    w = torch.tensor(w, requires_grad=True)
    answers = (w[:, None, None] * torch.tensor(logits)).sum(0) / w.sum()
    torch.nn.functional.cross_entropy(answers, torch.tensor(labels)).backward()
    return (w - eta * w.grad.sign()).clip(0, 1)


def by_sign_step(logits, labels, w, eta):
    logits, labels, w = map(torch.as_tensor, (logits, labels, w))
    return step_down_gradient_sign_within_unit_interval(
        w, compute_weight_gradient(logits, labels, w), eta
    )


def by_inverse(sent, labels, images, classes, ridge):
    among = kernel(sent, sent)
    damped = among + ridge * np.trace(among) / len(among) * np.eye(len(among))
    return kernel(images, sent) @ np.linalg.inv(damped) @ (np.eye(classes)[labels] - 1 / classes)


def by_weighted_mean(networks, counts):
    states = [
        {layer: torch.from_numpy(values) for layer, values in network.items()}
        for network in networks
    ]
    return weighted_mean(states, counts.tolist())


def by_per_class(logits, weights):
    rule = make_per_class_aggregator(*weights.shape).double()
    rule.table.data = torch.from_numpy(weights)
    return rule(torch.from_numpy(logits).transpose(0, 1)).detach()


def by_stage(h, adaptors, shifts, blocks, biases):
    """FuseFL's own stage, filled with these weights."""

    def layer(weight, bias):
        made = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], dtype=torch.float64)
        made.weight.data, made.bias.data = torch.as_tensor(weight), torch.as_tensor(bias)
        return made

    branches = zip(adaptors, shifts, blocks, biases, strict=True)
    stage = Stage([nn.Sequential(layer(a, s), layer(b, c), nn.ReLU()) for a, s, b, c in branches])
    return torch.stack(stage(join_client_outputs("conv", list(torch.as_tensor(h)))))


def by_pairs(moments, class_sums, gamma, rho):
    """The paper's way, client by client, with explicit inverses."""
    total, weights = moments[0], np.linalg.inv(moments[0]) @ class_sums[0]
    for g, s in zip(moments[1:], class_sums[1:], strict=True):
        weights = np.linalg.inv(total + g) @ (total @ weights + s)
        total = total + g
    cleaned = total - (len(moments) * gamma - rho) * np.eye(len(total))
    return np.linalg.inv(cleaned) @ total @ weights


def by_head(moments, class_sums, gamma, rho):
    parts = [
        RidgeSums(*map(torch.from_numpy, part)) for part in zip(moments, class_sums, strict=True)
    ]
    return solve_classifier_weights(sum(parts[1:], parts[0]), len(parts), gamma, rho)


def by_difference(a, b):
    band = difference(dict(enumerate(a)), dict(enumerate(b)))
    return band.mean, band.half_width


def by_rows(counts, sums, squares):
    """Rows that have these sums, two of each hospital's and its mean for the rest."""
    rows, owner = [], []
    for k, (n, total, square) in enumerate(zip(counts, sums, squares, strict=True)):
        far = np.sqrt((square - total**2 / n) / 2)
        rows += [total / n + far, total / n - far, *[total / n] * (n - 2)]
        owner += [k] * n
    return compute_pooled_moments(np.array(rows), np.array(owner))


def by_all_orders(a, b):
    return min(
        itertools.permutations(range(len(a))),
        key=lambda p: np.linalg.norm(a - b[list(p)], axis=1).sum(),
    )


def by_density(images, counts, sums, products):
    """Bayes' rule with SciPy's normal density."""
    densities = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        normal = stats.multivariate_normal(mean, squares / n - np.outer(mean, mean))
        densities.append(normal.logpdf(images) + np.log(n))
    return np.argmax(densities, axis=0)


OTHERS = {  # other ways to write each function; some are the package's own
    "fedavg": [
        lambda of, n: {
            layer: np.average([each[layer] for each in of], axis=0, weights=n) for layer in of[0]
        },
        by_weighted_mean,
    ],
    "soft_labels": [
        lambda z, tau: special.softmax(z.mean(0) / tau, axis=-1),
        lambda z, tau: (torch.tensor(z, dtype=torch.float32).mean(0) / tau).softmax(-1),
    ],
    "weighted_sum": [lambda z, w: np.einsum("mc,mnc->nc", w, z), by_per_class],
    "consensus": [
        lambda s: np.average(
            s, axis=0, weights=np.repeat(s.std(2)[..., None] ** 2, s.shape[2], axis=2)
        ),
        lambda s: compute_consensus(torch.as_tensor(s).log()).distribution,
    ],
    "step_and_clip_weights": [by_autograd, by_sign_step],
    "fused_block": [
        lambda h, a, s, b, c: [
            ((np.hstack(h) @ a[k].T + s[k]) @ b[k].T + c[k]).clip(0) for k in range(len(h))
        ],
        by_stage,
    ],
    "product_mean": [lambda m, p: np.linalg.inv(p.sum(0)) @ np.einsum("kij,kj->i", p, m)],
    "paired_band": [
        lambda a, b: [
            np.mean(a) - np.mean(b),
            np.ptp(stats.ttest_rel(a, b).confidence_interval()) / 2,
        ],
        by_difference,
    ],
    "mean_and_spread": [
        lambda n, s, q: [sum(s) / sum(n), (sum(q) / sum(n) - (sum(s) / sum(n)) ** 2) ** 0.5],
        by_rows,
    ],
    "classify": [by_density],
    "fit": [by_pairs, by_head],
    "match_units": [
        by_all_orders,
        lambda a, b: optimize.linear_sum_assignment(((a[:, None] - b[None]) ** 2).sum(2))[1],
        lambda a, b: optimize.linear_sum_assignment(a @ b.T, maximize=True)[1],
    ],
    "scores": [by_inverse],
}


def after(function, change):
    """The function, with `change` done to each array that it returns."""

    def changed(*given):
        value = function(*given)
        return (
            {k: change(v) for k, v in value.items()}
            if isinstance(value, dict)
            else change(np.asarray(value))
        )

    return changed


def functions(problem):
    right = problem.right_answer
    kinds = [np.ndarray.tolist, torch.from_numpy, np.float32, list]
    wrong = [after(right, change) for change in (lambda v: v + 0.01, lambda v: 100 * v, str)]
    wrong += [
        *problem.build.slips.values(),
        lambda: 3,
        lambda *given: 1 / 0,
        lambda *given: given,
        right.__name__,
        3,
    ]
    return (
        [right, *OTHERS[right.__name__], *(after(right, kind) for kind in kinds)],
        wrong,
        [lambda *given: None, lambda *given: ...],
    )


# ------------------------------------------------------------------------------------------------------ all of them
@pytest.mark.parametrize(("lesson", "problem"), problems(Problem))
def test_an_exercise_takes_what_is_right_and_nothing_else(lesson, problem):
    if isinstance(problem, NumberProblem | BuildProblem):
        right, wrong, empty = (numbers if isinstance(problem, NumberProblem) else functions)(
            problem
        )
    else:
        right, wrong, empty = records(RIGHT[f"{COURSE[lesson]} q{problem.title[9:]}"])
    assert len(right) >= 5 <= len(wrong)
    for state, answers in {
        "right": right,
        "wrong": wrong + TYPES,
        "unattempted": empty + EMPTY,
    }.items():
        for answer in answers:
            verdict = problem.check(answer)
            assert verdict.state == state and len(verdict.message.split()) >= 2, (answer, verdict)
