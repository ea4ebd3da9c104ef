"""Every exercise of every lesson: right answers as people write them, wrong ones of all kinds, and empty ones."""

import copy
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lessons import list_problems
from records import RIGHT, record_runs
from scipy import optimize, special, stats
from torch import nn

from fedlab_nb.course import COURSE
from fedlab_nb.course.distilled.lesson import kernel
from fedlab_nb.course.kit.problem import BuildProblem, NumberProblem, Problem
from fedlab_nb.data.tables import compute_pooled_mean_and_deviation
from fedlab_nb.methods.afl import RidgeSums, solve_classifier_weights
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.coboosting.boosting import (
    compute_loss_gradient_of_client_weights,
    step_down_gradient_sign_within_unit_interval,
)
from fedlab_nb.methods.fedet.consensus import compute_consensus
from fedlab_nb.methods.fens.aggregators import make_per_class_aggregator
from fedlab_nb.methods.fusefl.blocks import join_client_outputs
from fedlab_nb.methods.fusefl.network import Stage
from fedlab_nb.studies.statistics import difference

# Wrong for every exercise, and no answer yet to every exercise. Each kind of exercise has more of them: a function
# below returns its answers that are right, wrong and empty.
WRONG = [True, {3}, object(), lambda: 3, np.arange(3)]
EMPTY = [None, ..., "", " ", "\n"]


# ------------------------------------------------------------------------------------------------------ numbers
def list_number_answers(problem):
    value = float(problem.right_answer)
    text = f"{problem.right_answer:g}"
    right = [value, np.float32(value), torch.tensor(value)]
    right += [text, f" {text}\n", text.replace(".", ","), text.lstrip("0"), f"{value:.3f}"]
    right += [f"“{text}”", f"{text}.", f"≈ {text}", f"x = {text}", f"The answer is {text}."]
    right += [f"{text} {unit}" for unit in problem.units]
    if "%" not in problem.units:
        right.append(f"{100 * value:g} %")
    wrong = [value + 3 * problem.tolerance, value - 3 * problem.tolerance, -value, [value]]
    wrong += [slip for slip, _ in problem.slips]
    wrong += [f"{1000 * value:g}", f"{text} furlongs", f"{text} or so, or {text}", f"not {text}"]
    wrong += [f"{text}/0", "no idea", "nan", "?"]
    return right, wrong, []


# ------------------------------------------------------------------------------------------------------ runs
def copy_with(record, **attributes):
    """A copy of the record whose outcomes have these attributes."""
    copies = [copy.copy(outcome) for outcome in record]
    for outcome in copies:
        vars(outcome).update(attributes)
    return copies


def list_record_answers(record):
    """record: one that is right"""
    right = [record, record[::-1], tuple(record), iter(record), record * 2]
    right += [SimpleNamespace(outcomes=record), record_runs("local", [50] * 3) + record]
    one_setting_or_side = record[: len(record) // 2]
    two_seeds = [outcome for outcome in record if outcome.settings.seed < 2]
    wrong = [one_setting_or_side, two_seeds]
    wrong.append(copy_with(record, accuracy=0.5, accuracy_validation=0.5))
    wrong.append(copy_with(record, accuracy_validation=None))
    wrong.append(copy_with(record, method="local"))
    wrong += [[outcome.accuracy for outcome in record], record[0], "FENS 84 %"]
    wrong += [np.array(3.0), torch.tensor(3.0)]  # they say that they can be iterated, and cannot
    empty = [[], (), SimpleNamespace(outcomes=[])]
    return right, wrong, empty


# ------------------------------------------------------------------------------------------------------ functions
def ee_step_by_autograd(logits, labels, w, eta):
    w = torch.tensor(w, requires_grad=True)
    answers = (w[:, None, None] * torch.tensor(logits)).sum(0) / w.sum()
    torch.nn.functional.cross_entropy(answers, torch.tensor(labels)).backward()
    return (w - eta * w.grad.sign()).clip(0, 1)


def ee_step_by_package(logits, labels, w, eta):
    logits, labels, w = map(torch.as_tensor, (logits, labels, w))
    return step_down_gradient_sign_within_unit_interval(
        w, compute_loss_gradient_of_client_weights(logits, labels, w), eta
    )


def scores_by_inverse(sent, labels, images, classes, ridge):
    among = kernel(sent, sent)
    damped = among + ridge * np.trace(among) / len(among) * np.eye(len(among))
    return kernel(images, sent) @ np.linalg.inv(damped) @ (np.eye(classes)[labels] - 1 / classes)


def fedavg_by_numpy(networks, counts):
    means = {}
    for layer in networks[0]:
        values = [network[layer] for network in networks]
        means[layer] = np.average(values, axis=0, weights=counts)
    return means


def mean_and_spread_by_moments(counts, sums, squares):
    mean = sum(sums) / sum(counts)
    mean_square = sum(squares) / sum(counts)
    return [mean, (mean_square - mean**2) ** 0.5]


def fedavg_by_package(networks, counts):
    states = [
        {layer: torch.from_numpy(values) for layer, values in network.items()}
        for network in networks
    ]
    return weighted_mean(states, counts.tolist())


def weighted_sum_by_package(logits, weights):
    rule = make_per_class_aggregator(*weights.shape).double()
    rule.table.data = torch.from_numpy(weights)
    return rule(torch.from_numpy(logits).transpose(0, 1)).detach()


def compute_fused_block_outputs_by_stage(h, adaptors, shifts, blocks, biases):
    """FuseFL's own stage, filled with these weights."""

    def layer(weight, bias):
        made = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], dtype=torch.float64)
        made.weight.data, made.bias.data = torch.as_tensor(weight), torch.as_tensor(bias)
        return made

    branches = zip(adaptors, shifts, blocks, biases, strict=True)
    stage = Stage([nn.Sequential(layer(a, s), layer(b, c), nn.ReLU()) for a, s, b, c in branches])
    return torch.stack(stage(join_client_outputs("conv", list(torch.as_tensor(h)))))


def fit_by_pairs(moments, class_sums, gamma, rho):
    """The paper's way, client by client, with explicit inverses."""
    total, weights = moments[0], np.linalg.inv(moments[0]) @ class_sums[0]
    for g, s in zip(moments[1:], class_sums[1:], strict=True):
        weights = np.linalg.inv(total + g) @ (total @ weights + s)
        total = total + g
    cleaned = total - (len(moments) * gamma - rho) * np.eye(len(total))
    return np.linalg.inv(cleaned) @ total @ weights


def fit_by_package(moments, class_sums, gamma, rho):
    parts = [
        RidgeSums(*map(torch.from_numpy, part)) for part in zip(moments, class_sums, strict=True)
    ]
    return solve_classifier_weights(sum(parts[1:], parts[0]), len(parts), gamma, rho)


def paired_band_by_package(a, b):
    band = difference(dict(enumerate(a)), dict(enumerate(b)))
    return band.mean, band.half_width


def mean_and_spread_by_rows(counts, sums, squares):
    """From rows that have these sums: of each hospital two rows apart from its mean, the rest at it."""
    rows = []
    owner = []
    for k, (n, total, square) in enumerate(zip(counts, sums, squares, strict=True)):
        mean = total / n
        distance = np.sqrt((square - total**2 / n) / 2)
        rows += [mean + distance, mean - distance, *[mean] * (n - 2)]
        owner += [k] * n
    return compute_pooled_mean_and_deviation(np.array(rows), np.array(owner))


def match_units_by_all_orders(a, b):
    def measure_distance(order):
        return np.linalg.norm(a - b[list(order)], axis=1).sum()

    return min(itertools.permutations(range(len(a))), key=measure_distance)


def classify_by_density(images, counts, sums, products):
    """Bayes' rule with SciPy's normal density."""
    densities = []
    for n, total, squares in zip(counts, sums, products, strict=True):
        mean = total / n
        normal = stats.multivariate_normal(mean, squares / n - np.outer(mean, mean))
        densities.append(normal.logpdf(images) + np.log(n))
    return np.argmax(densities, axis=0)


# {function of an exercise: other ways to write it}; some are the package's own
OTHERS = {
    "fedavg": [fedavg_by_numpy, fedavg_by_package],
    "soft_labels": [
        lambda z, tau: special.softmax(z.mean(0) / tau, axis=-1),
        lambda z, tau: (torch.tensor(z, dtype=torch.float32).mean(0) / tau).softmax(-1),
    ],
    "weighted_sum": [lambda z, w: np.einsum("mc,mnc->nc", w, z), weighted_sum_by_package],
    "consensus": [
        lambda s: np.average(
            s, axis=0, weights=np.repeat(s.std(2)[..., None] ** 2, s.shape[2], axis=2)
        ),
        lambda s: compute_consensus(torch.as_tensor(s).log()).distribution,
    ],
    "step_and_clip_weights": [ee_step_by_autograd, ee_step_by_package],
    "compute_fused_block_outputs": [
        lambda h, a, s, b, c: [
            ((np.hstack(h) @ a[k].T + s[k]) @ b[k].T + c[k]).clip(0) for k in range(len(h))
        ],
        compute_fused_block_outputs_by_stage,
    ],
    "product_mean": [lambda m, p: np.linalg.inv(p.sum(0)) @ np.einsum("kij,kj->i", p, m)],
    "paired_band": [
        lambda a, b: [
            np.mean(a) - np.mean(b),
            np.ptp(stats.ttest_rel(a, b).confidence_interval()) / 2,
        ],
        paired_band_by_package,
    ],
    "mean_and_spread": [mean_and_spread_by_moments, mean_and_spread_by_rows],
    "classify": [classify_by_density],
    "fit": [fit_by_pairs, fit_by_package],
    "match_units": [
        match_units_by_all_orders,
        lambda a, b: optimize.linear_sum_assignment(((a[:, None] - b[None]) ** 2).sum(2))[1],
        lambda a, b: optimize.linear_sum_assignment(a @ b.T, maximize=True)[1],
    ],
    "scores": [scores_by_inverse],
}


def change_results(function, change):
    """The function, with `change` done to each array that it returns."""

    def changed(*arguments):
        result = function(*arguments)
        if isinstance(result, dict):
            return {name: change(value) for name, value in result.items()}
        return change(np.asarray(result))

    return changed


def list_function_answers(problem):
    function = problem.right_answer
    right = [function, *OTHERS[function.__name__]]
    for convert in (np.ndarray.tolist, torch.from_numpy, np.float32, list):
        right.append(change_results(function, convert))
    wrong = list(problem.build.slips.values())
    for change in (lambda v: v + 0.01, lambda v: 100 * v, str):
        wrong.append(change_results(function, change))
    wrong += [lambda: 3, lambda *arguments: 1 / 0, lambda *arguments: arguments]
    wrong += [function.__name__, 3]
    empty = [lambda *arguments: None, lambda *arguments: ...]
    return right, wrong, empty


# ------------------------------------------------------------------------------------------------------ all of them
@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "problem"), list_problems(Problem))
def test_an_exercise_takes_what_is_right_and_nothing_else(lesson, problem):
    if isinstance(problem, NumberProblem):
        right, wrong, empty = list_number_answers(problem)
    elif isinstance(problem, BuildProblem):
        right, wrong, empty = list_function_answers(problem)
    else:
        number = problem.title.removeprefix("Exercise ")
        right, wrong, empty = list_record_answers(RIGHT[f"{COURSE[lesson]} q{number}"])
    assert len(right) >= 5
    assert len(wrong) >= 5
    answers = {"right": right, "wrong": wrong + WRONG, "unattempted": empty + EMPTY}
    for state, answers_of_state in answers.items():
        for answer in answers_of_state:
            verdict = problem.check(answer)
            assert verdict.state == state, (answer, verdict)
            assert len(verdict.message.split()) >= 2, (answer, verdict)
