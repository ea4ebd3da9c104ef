"""Lesson 06: its exercises judged by runs and by the method's own stage, its sizes against a network's."""

import pytest
import torch
from fusefl_fixtures import TABLE_4
from lessons import LESSONS
from torch import nn
from toy_outcomes import toy

from fedlab_nb.comm.formulas import MIB
from fedlab_nb.course.fusefl import lesson
from fedlab_nb.methods.fusefl.blocks import join
from fedlab_nb.methods.fusefl.network import Stage
from fedlab_nb.models import build, parameter_count


def several(values, blocks=2, head="ccvr", alpha=0.5):
    options = {"blocks": blocks, "head": head, "adaptor": "conv"}
    settings = [{"clients": 5, "seed": seed, "alpha": alpha} for seed in range(len(values))]
    return [toy("fusefl", value, options=options, settings=of) for value, of in zip(values, settings, strict=True)]


def both(alpha=0.5):
    """Calibrated, averaged and alone: both comparisons of exercise 1."""
    averaged, alone = several([0.4, 0.3, 0.35], head="average", alpha=alpha), several([0.91, 0.9, 0.92], 1, alpha=alpha)
    return several([0.9, 0.91, 0.92], alpha=alpha), averaged, alone


CALIBRATED, AVERAGED, ALONE = both()


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (CALIBRATED + AVERAGED, "wrong", "Blocks = 1 and Blocks = 2"),
        (
            CALIBRATED + AVERAGED + ALONE,
            "right",
            "mean +56 ± 14; fused (K = 2) − not fused, both calibrated: -1, +1, 0",
        ),
        (CALIBRATED[:2] + AVERAGED + ALONE, "wrong", "has 2 seeds with both"),
        (CALIBRATED + AVERAGED + several([0.9] * 3, alpha=1) + several([0.9] * 3, 1, alpha=1), "wrong", "same setting"),
        (sum(both(alpha=0.1), []), "wrong", "nothing that can be compared at α = 0.3 or more"),
    ],
)
def test_exercise_1(record, state, words):
    verdict = lesson.q1.problem.check(record)
    assert verdict.state == state and words in verdict.message


def test_sizes_in_the_text():
    """3.7 networks from the paper's own table, which the method's tests compute; 5.9 from a run."""
    one = parameter_count(build("resnet18", (3, 32, 32), 10)) * 4 / MIB
    assert f"as large as {TABLE_4[50][8] / one:.1f} networks" in LESSONS["06_fusefl"]
    fused, alone = lesson.runs(["fusefl", "ensemble"], clients=5, seeds=1, epochs=1)
    ratio = 5 * fused.model.parameters / alone.model.parameters
    assert f"as large as {ratio:.1f}, more than an ensemble of five" in LESSONS["06_fusefl"]


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
    assert lesson.q2.problem.check(by_the_method).state == "right"
