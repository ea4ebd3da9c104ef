"""Lesson 06, exercise 4: right solutions of several kinds, each known mistake with its hint, stubs and errors."""

import numpy as np
import pytest
import torch
from torch import nn

from fedlab_nb.course.fusefl import build, lesson
from fedlab_nb.methods.fusefl.blocks import join
from fedlab_nb.methods.fusefl.network import Stage

check = lesson.q4.problem.check


def by_loops(h, adaptors, shifts, blocks, biases):
    clients, images = len(h), len(h[0])
    outputs = []
    for k in range(clients):
        outputs.append([])
        for n in range(images):
            joined = [value for j in range(clients) for value in h[j][n]]
            adapted = [sum(a * x for a, x in zip(row, joined)) + s for row, s in zip(adaptors[k], shifts[k])]  # noqa: B905
            answer = [sum(a * x for a, x in zip(row, adapted)) + b for row, b in zip(blocks[k], biases[k])]  # noqa: B905
            outputs[k].append([max(0.0, value) for value in answer])
    return outputs


def by_torch(h, adaptors, shifts, blocks, biases):
    h, adaptors, shifts, blocks, biases = map(torch.as_tensor, (h, adaptors, shifts, blocks, biases))
    joined = torch.cat(list(h), dim=1)
    adapted = torch.einsum("krj,nj->knr", adaptors, joined) + shifts[:, None]
    return (torch.einsum("kor,knr->kno", blocks, adapted) + biases[:, None]).relu()


def by_the_method(h, adaptors, shifts, blocks, biases):
    """FuseFL's own stage, filled with these weights."""

    def layer(weight, bias):
        made = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], dtype=torch.float64)
        made.weight.data, made.bias.data = torch.as_tensor(weight), torch.as_tensor(bias)
        return made

    branches = zip(adaptors, shifts, blocks, biases, strict=True)
    stage = Stage([nn.Sequential(layer(a, s), layer(b, c), nn.ReLU()) for a, s, b, c in branches])
    return torch.stack(stage(join("conv", list(torch.as_tensor(h)))))


@pytest.mark.parametrize("answer", [build.right, by_loops, by_torch, by_the_method])
def test_right_however_it_is_written(answer):
    assert check(answer).state == "right"


def written(h, adaptors, shifts, blocks, biases, *, joined=None, between=lambda x: x, end=lambda x: np.maximum(x, 0)):
    """As learners write it, with one thing changed."""
    side = np.concatenate(list(h), axis=1) if joined is None else joined(h)
    adapted = between(np.array([side @ a.T + s for a, s in zip(adaptors, shifts, strict=True)]))
    return end(np.array([x @ b.T + c for x, b, c in zip(adapted, blocks, biases, strict=True)]))


@pytest.mark.parametrize(("wrong", "words"), [
    (lambda *a: written(*a, joined=lambda h: h.reshape(h.shape[1], -1)), "numbers of different images"),
    (lambda *a: written(*a, joined=lambda h: np.stack(list(h), axis=2).reshape(h.shape[1], -1)), "unit 0 of all"),
    (lambda *a: written(*a, joined=lambda h: np.concatenate(list(h[::-1]), axis=1)), "Client 0 comes first"),
    (build.own_first, "begins with its own outputs"),
    (lambda *a: written(*a).swapaxes(1, 2), "returns the shape (3, 2, 5), but (3, 5, 2)"),
    (lambda *a: written(*a, between=lambda x: np.maximum(x, 0)), "ReLU behind the adaptor"),
    (lambda *a: written(*a, end=lambda x: x), "ReLU at the end of the block is missing"),
    (lambda *a: written(*a).mean(0), "mean over the clients"),
    (lambda *a: written(*a).swapaxes(0, 1), "images first"),
    (lambda h, a, s, b, c: written(h, a[:1].repeat(len(a), 0), s[:1].repeat(len(s), 0), b, c), "client 0. Each"),
    (lambda h, a, s, b, c: written(h, a, 0 * s, b, c), "adaptors' biases are missing"),
    (lambda h, a, s, b, c: written(h, a, s, b, 0 * c), "blocks' biases are missing"),
    (lambda h, a, s, b, c: np.maximum(h.mean(0) @ b.swapaxes(1, 2) + c[:, None], 0), "mean of the clients' outputs"),
    (lambda h, a, s, b, c: np.maximum(h @ b.swapaxes(1, 2) + c[:, None], 0), "Nothing is fused"),
    # a wrong axis, and the wrong order of layers, stop where the lengths differ; they are named all the same
    (lambda h, a, s, b, c: written(h, a, s, b.swapaxes(1, 2), c), "Transpose them"),
    (build.adapted_last, "It has to stand in front"),
    (lambda h, a, s, b, c: h @ s[0][:2], "stopped with"),
    ("joined", "not str"),
])  # fmt: skip
def test_a_mistake_is_named(wrong, words):
    verdict = check(wrong)
    assert verdict.state == "wrong" and words in verdict.message


@pytest.mark.parametrize("answer", [None, ..., "", lambda h, a, s, b, c: ..., lambda *a: None])
def test_empty_and_untouched_are_no_answers(answer):
    assert check(answer).state == "unattempted"


def test_hidden_inputs_tell_all_mistakes_apart(told_apart):
    assert len(build.WRONG) >= 5
    told_apart(build.FUSED)
