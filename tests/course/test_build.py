"""Build exercises: right however it is written, known mistakes named, nothing raised, untouched stubs no answers."""

import sys
import threading

import ipywidgets as widgets
import numpy as np
import pytest

from fedlab_nb.course.kit.exercises import make_problem_from_table
from fedlab_nb.course.kit.problem import Build
from fedlab_nb.course.kit.view import ProblemView


def mean(values, weights):
    """The function to be written: the weighted mean of the rows."""
    return (values * weights[:, None]).sum(0) / weights.sum()


# Two mistakes that the exercise knows.
def plain(values, weights):
    return values.mean(0)


def not_divided(values, weights):
    return (values * weights[:, None]).sum(0)


def draw_arguments(stream, m):
    return stream.normal(size=(m, 4)), stream.uniform(1, 3, m)


SIZES = ((1,), (2,), (5,))
BUILD = Build(mean, SIZES, draw_arguments, {"plain": plain, "not_divided": not_divided})
TABLE = {
    "question": "Complete mean.",
    "hints": ["Divide."],
    "explanation": "For example:",
    "slips": {
        "plain": "Each client counts the same.",
        "not_divided": "Divide by the sum of the weights.",
    },
}


@pytest.fixture
def problem():
    return make_problem_from_table("q4", TABLE, "mine.toml", BUILD)


@pytest.mark.parametrize(("wrong", "text"), [
    (plain, "Each client counts the same."),
    (not_divided, "Divide by the sum of the weights."),
    (lambda v, w: np.average(v, axis=0), "Each client counts the same."),  # another way to write it
    (lambda v, w: mean(v, w)[:2], "mean returns the shape (2,), but (4,) is wanted."),
    (lambda v, w: mean(v, w) + 1, "mean has the right shape, but for a hidden input other"),
    (lambda v, w: "text", "mean returns str; return numbers."),
    (lambda v, w: v @ w, "mean stopped with ValueError"),
    (lambda v: v, "mean stopped with TypeError"),
    (lambda v, w: sys.exit(), "mean stopped with RuntimeError: sys.exit() ends nothing here"),
    (3, "The answer is the function mean, not int."),
])  # fmt: skip
def test_wrong_answers_get_their_sentence(problem, wrong, text):
    verdict = problem.check(wrong)
    assert verdict.state == "wrong"
    assert verdict.message.startswith(text)


def test_a_mistake_that_shows_on_some_inputs_only_is_named(problem):
    """With one client the plain mean and the right one agree, so this answer is wrong elsewhere alone."""

    def plain_of_several(values, weights):
        return plain(values, weights) if len(values) > 1 else values[0]

    assert problem.check(plain_of_several).message == "Each client counts the same."


def test_a_wrong_axis_that_stops_for_other_shapes_is_named():
    """The weights are applied to the columns: that runs only where there are as many rows as columns."""

    def weigh_columns(values, weights):
        return (values * weights).sum(0) / weights.sum()

    sentence = "The weights belong to the rows."
    table = TABLE | {"slips": TABLE["slips"] | {"columns": sentence}}
    slips = {**BUILD.slips, "columns": weigh_columns}
    build = Build(mean, ((4,), *SIZES), draw_arguments, slips)
    problem = make_problem_from_table("q4", table, "mine.toml", build)
    by_einsum = lambda v, w: np.einsum("ij,j->j", v, w) / w.sum()  # noqa: E731
    assert problem.check(by_einsum).message == sentence
    stops = lambda v, w: v @ u  # noqa: E731, F821
    assert problem.check(stops).message.startswith("mean stopped with NameError")
    assert problem.check(mean).state == "right"


def test_dicts_of_arrays_are_judged_entry_by_entry():
    def both(values, weights):
        return {"sum": values.sum(0), "mean": mean(values, weights)}

    table = TABLE | {"slips": {}}
    problem = make_problem_from_table("q4", table, "mine.toml", Build(both, SIZES, draw_arguments))
    assert problem.check(both).state == "right"
    assert problem.check(lambda v, w: {"mean": ..., "sum": v.sum(0)}).state == "unattempted"
    wrong_keys = "both does not return a dict with the keys 'sum', 'mean'."
    one_key = problem.check(lambda v, w: {"mean": v.sum(0)}).message
    assert one_key == f"{wrong_keys} It lacks 'sum': is return inside a loop?"
    assert problem.check(lambda v, w: {"total": v.sum(0)}).message == wrong_keys
    assert problem.check(mean).message == wrong_keys
    wrong_shape = problem.check(lambda v, w: {"sum": v.sum(0), "mean": v.mean(0)[:2]}).message
    assert "both, in the entry 'mean', returns the shape (2,)" in wrong_shape


def test_the_form_takes_the_notebooks_function(problem, monkeypatch):
    names = {}
    monkeypatch.setattr("fedlab_nb.course.kit.view.get_notebook_variable_or_none", names.get)
    form = ProblemView(problem).form()
    row, message = form.children
    check = row.children[0]
    assert isinstance(check, widgets.Button)
    assert check.description == "Check"
    for function, label in ((None, "Your turn"), (plain, "Not yet"), (mean, "Right")):
        names["mean"] = function
        check.click()
        assert label in message.value


def test_a_loop_without_an_end_is_stopped_and_the_old_verdict_goes(problem, monkeypatch):
    monkeypatch.setattr("fedlab_nb.course.kit.problem.TIME_LIMIT", 0.3)
    is_stopped = threading.Event()

    def endless(values, weights):
        try:
            while True:
                pass
        finally:
            is_stopped.set()

    names = {"mean": mean}
    monkeypatch.setattr("fedlab_nb.course.kit.view.get_notebook_variable_or_none", names.get)
    row, message = ProblemView(problem).form().children
    check = row.children[0]
    check.click()
    assert "Right" in message.value
    shown = []
    message.observe(lambda change: shown.append(change["new"]), "value")
    names["mean"] = endless
    check.click()
    assert shown[0] == "Checking …"
    assert "Right" not in message.value
    assert "mean is still running after 0.3 s, so it was stopped" in message.value
    assert is_stopped.wait(5)
