"""Lesson 04, exercise 4: right solutions of several kinds, each known mistake with its hint, stubs and errors."""

import numpy as np
import pytest
import torch

from fedlab_nb.course.fedet import build, lesson
from fedlab_nb.methods.fedet.consensus import consensus

check = lesson.q4.problem.check


def by_loops(s):
    clients, images, classes = len(s), len(s[0]), len(s[0][0])
    answers = []
    for n in range(images):
        variances = [sum((p - 1 / classes) ** 2 for p in s[k][n]) / classes for k in range(clients)]
        weights = [v / sum(variances) for v in variances]
        answers.append([sum(weights[k] * s[k][n][c] for k in range(clients)) for c in range(classes)])
    return answers


def by_torch(s):
    s = torch.as_tensor(s)
    weights = s.var(-1)  # N − 1 below the line: the same weights
    return (weights / weights.sum(0))[..., None].mul(s).sum(0)


def by_the_method(s):
    return consensus(torch.as_tensor(s).log()).distribution


@pytest.mark.parametrize("answer", [build.right, by_loops, by_torch, by_the_method])
def test_right_however_it_is_written(answer):
    assert check(answer).state == "right"


def written(s, axis=2, shares=0):
    """As learners write it, with other axes."""
    v = s.var(axis)
    w = v / v.sum(shares, keepdims=True)
    return (w[:, :, None] * s).sum(0)


@pytest.mark.parametrize(("wrong", "words"), [
    (lambda s: s.mean(0), "plain mean"),
    (lambda s: written(s, shares=1), "over the images of one client"),
    (lambda s: (s.var(2)[:, :, None] * s).sum(0), "do not add up to 1"),
    (lambda s: (s.var(2)[:, :, None] / s.var(2).sum(0)[:, None] * s).mean(0), "do not divide by the number of clients"),
    (lambda s: np.einsum("mn,mnc->nc", s.std(2) / s.std(2).sum(0), s), "standard deviation"),
    (lambda s: by_torch(torch.as_tensor(s).softmax(-1)), "a second time"),
    # a wrong axis stops where the lengths differ; it is named all the same
    (lambda s: (s.var(0) / s.var(0).sum(0) * s).sum(0), "over the clients. It has to go over the classes"),
    (lambda s: ((s.var(1) / s.var(1).sum(0))[:, None] * s).sum(0), "over the images. It has to go over the classes"),
    (lambda s: (s.var(2) / s.var(2).sum(0) * s).sum(0), "a third axis"),
    (lambda s: np.einsum("nm,mnc->nc", s.var(2) / s.var(2).sum(0), s), "images first"),
    (lambda s: by_torch(s).T, "classes first"),
    (lambda s: written(s[1:]), "first client is missing"),
    (lambda s: np.einsum("mn,mnc->nc", torch.as_tensor(s.var(2)).softmax(0), s), "takes a softmax of the variances"),
    (lambda s: s.var(2), "returns the shape (3, 5), but (5, 4)"),  # where all lengths are alike it looks right
    (lambda s: by_torch(s).argmax(1), "labels, the most probable"),
    (lambda s: s, "returns the shape"),
    (lambda s: s @ s, "stopped with"),
    (lambda s: "all of them", "returns str"),
    ([0.5, 0.5], "not list"),
])  # fmt: skip
def test_a_mistake_is_named(wrong, words):
    verdict = check(wrong)
    assert verdict.state == "wrong" and words in verdict.message


@pytest.mark.parametrize("answer", [None, ..., "", lambda s: ..., lambda s: None])
def test_empty_and_untouched_are_no_answers(answer):
    assert check(answer).state == "unattempted"


def test_hidden_inputs_tell_all_mistakes_apart(told_apart):
    assert len(build.WRONG) >= 5
    told_apart(build.CONSENSUS)
