"""Lesson 07, exercise 5: right functions of several kinds, typical wrong ones with their own words, no answer yet."""

import numpy as np
import pytest
import torch

from fedlab_nb.course.fedlpa import build, lesson
from fedlab_nb.labs.fedlpa.two_weights import two_weights


def by_loop(means, precisions):
    total, weighted = np.zeros(precisions.shape[1:]), np.zeros(means.shape[1])
    for mean, precision in zip(means, precisions, strict=True):
        total += precision
        weighted += precision @ mean
    return (np.linalg.inv(total) @ weighted).tolist()


def by_means(means, precisions):
    """Means in place of both sums: M cancels."""
    weighted = np.einsum("kij,kj->ki", precisions, means)
    return np.linalg.lstsq(precisions.mean(0), weighted.mean(0), rcond=None)[0]


def in_torch(means, precisions):
    p, m = torch.as_tensor(precisions), torch.as_tensor(means)
    return torch.linalg.solve(p.sum(0), (p @ m[..., None]).sum(0))[:, 0]


@pytest.mark.parametrize("answer", [build.product_mean, by_loop, by_means, in_torch])
def test_right_functions(answer):
    assert lesson.q5.problem.check(answer).state == "right"


def some(clients):
    """A loop that does not count all clients."""

    def answer(means, precisions):
        total, weighted = 0, 0
        for k in clients(len(means)):
            total, weighted = total + precisions[k], weighted + precisions[k] @ means[k]
        return np.linalg.inv(total) @ weighted

    return answer


def weighted_by_diagonals(means, precisions):
    """Another way to write a known mistake."""
    parts = [np.diag(p) for p in precisions]
    return sum(w * m for w, m in zip(parts, means, strict=True)) / sum(parts)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (build.plain_mean, "plain average"),
        (build.not_divided, "inverse of the sum"),
        (build.diagonals, "diagonals alone"),
        (weighted_by_diagonals, "diagonals alone"),
        (build.covariances, "less sure counts more"),
        (build.inverses_summed, "inverted each precision"),
        (build.mean_and_sum, "divided by M"),
        (build.one_number, "one weight for all directions"),
        (build.not_multiplied, "the product of matrix and vector"),
        (some(lambda clients: range(1, clients)), "first client is missing"),
        (some(lambda clients: range(clients - 1)), "last client is missing"),
        (lambda m, p: 2 * build.product_mean(m, p), "other numbers are wanted"),
        (lambda m, p: p @ m, "stopped with ValueError"),
        (3, "is the function product_mean"),
    ],
)
def test_mistakes_are_named(wrong, words):
    verdict = lesson.q5.problem.check(wrong)
    assert verdict.state == "wrong" and words in verdict.message


@pytest.mark.parametrize("answer", [None, ..., "", lambda m, p: ..., lambda m, p: None])
def test_no_answer_yet(answer):
    assert lesson.q5.problem.check(answer).state == "unattempted"


def test_each_mistake_has_its_own_text():
    texts = [text for _, text in lesson.q5.problem.slips]
    assert len(texts) == len(set(texts)) == len(build.WRONG) >= 5
    assert "return np.linalg.solve" in lesson.q5.problem.solution()


@pytest.mark.parametrize("angle", [90, 45])
def test_it_is_what_the_picture_of_two_weights_shows(angle):
    shown = two_weights(angle, 9)
    np.testing.assert_allclose(build.product_mean(np.array(shown.means), np.array(shown.precisions)), shown.aggregate)
