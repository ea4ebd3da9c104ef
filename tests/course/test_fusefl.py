"""Lesson 06: the exercises by another way, worked numbers against another derivation, statements against real runs."""

import pytest
import torch
from lessons import LESSONS
from torch import nn
from toy_outcomes import toy

from fedlab_nb.comm.formulas import MIB
from fedlab_nb.course.fusefl import lesson
from fedlab_nb.labs.fusefl.storage import TABLE_4
from fedlab_nb.labs.fusefl.two_cues import two_cues
from fedlab_nb.methods.fusefl.blocks import join
from fedlab_nb.methods.fusefl.network import Stage


def run(seed, accuracy, method="fusefl", blocks=2, head="ccvr", **other):
    options = {"blocks": blocks, "head": head, "adaptor": "conv"} if method == "fusefl" else {"rule": "logits"}
    return toy(method, accuracy, options=options, settings={"clients": 5, "seed": seed, "alpha": 0.5, **other})


def several(values, **more):
    return [run(seed, value, **more) for seed, value in enumerate(values)]


CALIBRATED, AVERAGED = several([0.9, 0.91, 0.92]), several([0.4, 0.3, 0.35], head="average")

ALONE = several([0.91, 0.9, 0.92], blocks=1)


def at(alpha):
    """Both comparisons of exercise 2."""
    alone = several([0.91, 0.9, 0.92], blocks=1, alpha=alpha)
    averaged = several([0.4, 0.3, 0.35], head="average", alpha=alpha)
    return several([0.9, 0.91, 0.92], alpha=alpha) + averaged + alone


ENSEMBLE = several([0.89, 0.9, 0.83], method="ensemble")

HURT = several([0.6, 0.75, 0.62], method="ensemble", spurious="0,1")


def test_exercise_1_is_the_layer_itself():
    import torch

    layer = torch.nn.Conv2d(10 * 40, 40, 1)
    assert lesson.q1.problem.check(sum(p.numel() for p in layer.parameters())).state == "right"


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (CALIBRATED + AVERAGED, "wrong", "Blocks = 1 and Blocks = 2"),
        (
            CALIBRATED + AVERAGED + ALONE,
            "right",
            "adds 56 ± 14 points; fusing (K = 2 against 1) changes 0 ± 2 points, w",
        ),
        (CALIBRATED[:2] + AVERAGED + ALONE, "wrong", "cannot be told from 2 seeds"),
        (
            CALIBRATED + AVERAGED + several([0.9] * 3, alpha=1) + several([0.9] * 3, alpha=1, blocks=1),
            "wrong",
            "under the same setting",
        ),
        (at(0.1), "wrong", "nothing that can be compared at α = 0.3 or more"),
    ],
)
def test_exercise_2(record, state, words):
    verdict = lesson.q2.problem.check(record)
    assert verdict.state == state and words in verdict.message


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (ENSEMBLE + HURT, "right", "clients 0,1 the ensemble loses 22 ± 17 points."),
        (
            ENSEMBLE + HURT + CALIBRATED + several([0.8, 0.79, 0.82], spurious="0,1"),
            "right",
            "FuseFL 11 ± 3 points.",
        ),
        (ENSEMBLE[:2] + HURT, "wrong", "2 seeds"),
        (several([0.9] * 3, method="ensemble", alpha=5) + HURT, "wrong", "all else equal"),
    ],
)
def test_exercise_3(record, state, words):
    verdict = lesson.q3.problem.check(record)
    assert verdict.state == state and words in verdict.message


def test_all_of_table_4_is_as_printed():
    """Each cell of the paper's table, from the formula, stands in the lesson with Table 13's, M times as much."""
    for clients, row in TABLE_4.items():
        (line,) = (line for line in LESSONS["06_fusefl"].splitlines() if line.startswith(f"> M = {clients}: K = 2"))
        for blocks, printed in row.items():
            made = lesson.bill(lesson.PAPER, clients, blocks).storage / MIB
            assert f"K = {blocks}: {printed:.2f} (as printed), times M {clients * made:.0f}" in line
            assert f"{made:.2f}" == f"{printed:.2f}"


def test_sizes_and_directions():
    assert lesson.networks(50, 8) == 3.7 and lesson.networks(10, 2) == 1.0
    made = lesson.bill(lesson.PAPER, 5, 4)
    up, down, single = (5 * size / MIB for size in (made.client_up, made.client_down, made.single))
    text = f"FuseFL {up:.0f} up and {down:.0f} down, a one-shot method {single:.0f} up and {single:.0f} down"
    assert text in LESSONS["06_fusefl"]
    small = lesson.bill(("mlp", (1, 8, 8), 10, None), 5, 2)
    assert f"{small.storage / small.single:.1f} ordinary networks, more than an ensemble of 5" in LESSONS["06_fusefl"]


def test_the_bound_breaks_inside_and_holds_outside():
    for rho, broken in ((0.9, True), (0.0, False)):
        cue, short = two_cues(10, 0.6, rho)
        text = LESSONS["06_fusefl"]
        words = f"the shortcut has {short.label:.2f} bits about the label, the real cue {cue.label:.2f}."
        assert words in text and short.broken is broken
        words = f"− {short.label:.2f} = {short.bound:.2f}: the bound {'is broken' if broken else 'holds'}"
        assert words in text


def by_the_method(h, adaptors, shifts, blocks, biases):
    """FuseFL's own stage, filled with these weights."""

    def layer(weight, bias):
        made = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], dtype=torch.float64)
        made.weight.data, made.bias.data = torch.as_tensor(weight), torch.as_tensor(bias)
        return made

    branches = zip(adaptors, shifts, blocks, biases, strict=True)
    stage = Stage([nn.Sequential(layer(a, s), layer(b, c), nn.ReLU()) for a, s, b, c in branches])
    return torch.stack(stage(join("conv", list(torch.as_tensor(h)))))


def test_right_however_it_is_written():
    assert lesson.q4.problem.check(by_the_method).state == "right"
