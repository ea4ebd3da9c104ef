"""Lesson 05, exercise 4: right solutions of several kinds, each known mistake with its hint, stubs and errors."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fedlab_nb.course.coboosting import build, lesson
from fedlab_nb.methods.coboosting.boosting import sign_step, weight_gradient

check = lesson.q4.problem.check


def by_autograd(logits, labels, w, eta):
    logits, labels, w = torch.as_tensor(logits), torch.as_tensor(labels), torch.tensor(w, requires_grad=True)
    ensemble = torch.einsum("m,mnc->nc", w, logits) / w.sum()
    F.cross_entropy(ensemble, labels).backward()
    return (w - eta * w.grad.sign()).clamp(0, 1)


def loss(logits, labels, w):
    total = 0.0
    for n, y in enumerate(labels):
        f = sum(w[k] * logits[k][n] for k in range(len(w))) / sum(w)
        total += np.log(np.exp(f).sum()) - f[y]
    return total / len(labels)


def by_small_changes(logits, labels, w, eta):
    answer = []
    for k in range(len(w)):
        up, down = w.copy(), w.copy()
        up[k], down[k] = w[k] + 1e-5, w[k] - 1e-5
        rises = loss(logits, labels, up) > loss(logits, labels, down)
        answer.append(min(1.0, max(0.0, w[k] - eta if rises else w[k] + eta)))
    return answer


def by_the_method(logits, labels, w, eta):
    logits, labels, w = map(torch.as_tensor, (logits, labels, w))
    return sign_step(w, weight_gradient(logits, labels, w), eta)


@pytest.mark.parametrize("answer", [build.right, by_autograd, by_small_changes, by_the_method])
def test_right_however_it_is_written(answer):
    assert check(answer).state == "right"


def written(logits, labels, w, eta, *, mean=True, axis=1, sign=-1, clip=(0, 1), shift=0, start=None, labelled=True):
    """As learners write it: autograd, with one thing changed."""
    logits, labels = torch.as_tensor(logits), torch.as_tensor(labels) + shift
    v = torch.tensor(w if start is None else start(w), requires_grad=True)
    ensemble = torch.einsum("m,mnc->nc", v, logits) / (v.sum() if mean else 1)
    own = ensemble.log_softmax(axis)[torch.arange(len(labels)), labels]
    own = own if labelled else -ensemble.logsumexp(1)
    (g,) = torch.autograd.grad(-own.mean(), v)
    return (torch.as_tensor(w) + sign * eta * g.sign()).clamp(*clip)


@pytest.mark.parametrize(("wrong", "words"), [
    (lambda *a: written(*a, sign=1), "uphill"),
    (lambda *a: written(*a, clip=(-9, 9)), "leaves the range"),
    (lambda *a: written(*a, clip=(0, 9)), "larger than 1"),
    (lambda *a: written(*a, mean=False), "Divide it by the sum"),
    (lambda *a: written(*a, shift=-1), "counted from 0"),
    (lambda *a: written(*a, start=np.ones_like), "equal weights"),
    (lambda *a: by_autograd(*a) / by_autograd(*a).sum(), "only clips"),
    (lambda logits, labels, w, eta: by_autograd(logits, labels, w / w.sum(), eta), "from w itself"),
    (lambda *a: written(*a, labelled=False), "labels are missing"),
    (build.no_sign, "only its sign"),
    (build.over_images, "over the images"),
    (build.constant_sum, "depends on w, too"),
    (build.probabilities, "one softmax follows"),
    (build.other_order, "belongs to another one"),
    (lambda logits, labels, w, eta: w, "other numbers are wanted"),
    (lambda logits, labels, w, eta: by_autograd(logits, labels, w, eta)[:, None], "returns the shape"),
    (lambda *a: written(*a, shift=1), "stopped with IndexError"),
    (0.5, "not float"),
])  # fmt: skip
def test_a_mistake_is_named(wrong, words):
    verdict = check(wrong)
    assert verdict.state == "wrong" and words in verdict.message


@pytest.mark.parametrize("answer", [None, ..., "", lambda logits, labels, w, eta: ..., lambda *a: None])
def test_empty_and_untouched_are_no_answers(answer):
    assert check(answer).state == "unattempted"


def test_hidden_inputs_tell_all_mistakes_apart(told_apart):
    assert len(build.WRONG) >= 5 and len(build.hidden_inputs()) >= 8
    told_apart(build.STEP)
