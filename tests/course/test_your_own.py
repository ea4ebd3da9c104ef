"""The lesson “your own”: the exercises by another way; a method and a network of one's own,
through store, panels and errors."""

import linecache
import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from records import record_pairs
from torch import nn

import fedlab_nb as fl
from fedlab_nb.course.your_own import lesson
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS, EnsembleModel, Method, knob, register
from fedlab_nb.models import MODELS, build
from fedlab_nb.studies.settings import Settings, make_plans

ATTRIBUTES = ("accuracy", "accuracy_validation", "settings", "conditions")  # that a claim reads
QUICK = {"clients": 3, "epochs": 1, "alpha": 0.5}


def register_mine():
    """A method as a learner writes it."""

    @register("mine", title="Mine", paper="a lesson", rounds="one-shot", traffic="S_θ", leaks="all")
    @dataclass(frozen=True)
    class Mine(Method):
        """One line."""

        scale: float = knob(1.0, "Scale", "Of the logits.", low=0, high=2)

        def run(self, ctx):
            clients = yield from ctx.local_training()
            states = [
                ctx.link.up(k, clients.state(k), phase="local models")
                for k in range(ctx.clients_count)
            ]
            with ctx.server():
                return EnsembleModel(clients.with_states(states))

    return Mine


@pytest.fixture
def mine():
    yield register_mine()
    METHODS.pop("mine", None)


@pytest.mark.slow
def test_a_method_of_one_s_own_runs_and_has_a_lab(mine):
    out = fl.run("mine", scale=2, cache=False, **QUICK)
    assert out.options == {"scale": 2}
    assert out.bytes_up > 0
    panel = fl.lab("mine", scale=0.5, methods=["ensemble"])
    assert panel.controls.knobs["scale"].value == 0.5
    assert panel.methods == ("mine", "ensemble")
    panel.close()


def test_names_of_the_package_are_not_taken_over():
    with pytest.raises(UsageError, match="'fens' is taken by FENS"):
        taken = register("fens", title="x", paper="x", rounds="x", traffic="x")
        taken(type("Other", (Method,), {"__module__": "mine"}))
    with pytest.raises(UsageError, match="'mlp' is taken"):
        fl.add_model("mlp", lambda shape, width: ([nn.Flatten()], 1))
    assert METHODS["fens"].info.title == "FENS"


def test_a_network_of_one_s_own_is_chosen_like_any_other_and_is_in_the_key():
    def layout(shape, width):
        inputs = math.prod(shape)
        return [nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.ReLU())], width

    def deeper_layout(shape, width):
        blocks, features = layout(shape, width)
        return [*blocks, nn.ReLU()], features

    try:
        fl.add_model("wide", layout, width=40)
        assert build("wide", (1, 8, 8), 10).features(torch.zeros(2, 1, 8, 8)).shape == (2, 40)
        out = fl.run("fedavg", model="wide:24", cache=False, **QUICK)
        assert out.parameters == 64 * 24 + 24 + 24 * 10 + 10
        assert out.plan.client_model == "wide:24"

        def compute_key():
            (plan,) = make_plans(Settings.make(model="wide"), ["fedavg"])
            return plan.hash_settings_of_local_training()

        key = compute_key()
        fl.add_model("wide", deeper_layout, width=40)
        assert compute_key() != key
    finally:
        MODELS.pop("wide", None)


def test_exercise_1_by_the_lesson_s_formula():
    raised = np.array([[30, 0], [10, 20]]) ** 2.0
    assert lesson.q1.problem.check(float((raised / raised.sum(0))[0, 0])).state == "right"


@pytest.mark.slow
def test_exercise_2_solution_supports_the_claim():
    source = (Path(__file__).parents[2] / "fedlab_nb/course/your_own/lesson.md").read_text("utf-8")
    (cell,) = (code for code in source.split("```python\n") if "class CountedModel" in code)
    code = cell.split("```")[0]
    # in a notebook, too, Python finds the source of a cell in this cache
    name = f"<{len(linecache.cache)}: Counted>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        exec(compile(code, name, "exec"), {"__name__": "__main__", "torch": torch})
        text = lesson.q2.solution().text
        assert "Supported by your runs: rooted at α = 1: +" in text
    finally:
        METHODS.pop("counted", None)
    assert "No run of a method of your own" in lesson.q2.solution().text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "state", "words"),
    [
        (
            record_pairs(("ensemble",), ("counted",), [17, 12, 20], alpha=1),
            "wrong",
            "under a new name ('counted' is the lesson's)",
        ),
        (
            record_pairs(("ensemble",), ("mine",), [17, 12, 20], alpha=0.1),
            "right",
            "mine at α = 0.1: +16",
        ),
        (
            record_pairs(("ensemble",), ("mine",), [17, -12, 2], alpha=0.1),
            "wrong",
            "Not clear yet",
        ),
    ],
)
def test_exercise_2_wants_a_clear_gain_of_a_method_of_one_s_own(mine, runs, state, words):
    verdict = lesson.q2.problem.check(runs)
    assert verdict.state == state
    assert words in verdict.message


@pytest.mark.slow
def test_the_lesson_s_method_under_another_name_is_no_answer(mine):
    """`class_counts` is what the lesson's `counted` computes with ζ = 1."""
    counted = fl.compare("ensemble", alpha=1, seeds=10, **{"ensemble.rule": "class_counts"})
    plain = fl.compare("ensemble", alpha=1, seeds=10, **{"ensemble.rule": "logits"})
    renamed = []
    for outcome in counted:
        attributes = {name: getattr(outcome, name) for name in ATTRIBUTES}
        renamed.append(SimpleNamespace(**attributes, method="mine"))
    verdict = lesson.q2.problem.check([*plain, *renamed])
    assert verdict.state == "wrong"
    assert "just as 'counted' does" in verdict.message
