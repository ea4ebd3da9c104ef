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
    return (values * weights[:, None]).sum(0) / weights.sum()


def plain(values, weights):
    return values.mean(0)


def not_divided(values, weights):
    return (values * weights[:, None]).sum(0)


def draw(stream, m):
    return stream.normal(size=(m, 4)), stream.uniform(1, 3, m)


BUILD = Build(mean, ((1,), (2,), (5,)), draw, {"plain": plain, "not_divided": not_divided})
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
def made():
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
def test_wrong_answers_get_their_sentence(made, wrong, text):
    verdict = made.check(wrong)
    assert verdict.state == "wrong" and verdict.message.startswith(text)


def test_a_mistake_that_shows_on_some_inputs_only_is_named(made):
    """With one client all three agree; the plain mean is told from the sum by the others."""
    sometimes = lambda v, w: plain(v, w) if len(v) > 1 else v[0]  # noqa: E731
    assert made.check(sometimes).message == "Each client counts the same."


def test_a_wrong_axis_that_stops_for_other_shapes_is_named():
    """The weights meet the columns: that runs where rows and columns are as many, and stops elsewhere."""
    slips = {
        **BUILD.slips,
        "columns": lambda values, weights: (values * weights).sum(0) / weights.sum(),
    }
    words = TABLE["slips"] | {"columns": "The weights belong to the rows."}
    made = make_problem_from_table(
        "q4", TABLE | {"slips": words}, "mine.toml", Build(mean, ((4,), *BUILD.sizes), draw, slips)
    )
    assert (
        made.check(lambda v, w: np.einsum("ij,j->j", v, w) / w.sum()).message
        == "The weights belong to the rows."
    )
    assert made.check(lambda v, w: v @ u).message.startswith("mean stopped with NameError")  # noqa: F821
    assert made.check(mean).state == "right"


def test_dicts_of_arrays_are_judged_entry_by_entry():
    def both(values, weights):
        return {"sum": values.sum(0), "mean": mean(values, weights)}

    made = make_problem_from_table(
        "q4", TABLE | {"slips": {}}, "mine.toml", Build(both, BUILD.sizes, draw)
    )
    assert made.check(both).state == "right"
    assert made.check(lambda v, w: {"mean": ..., "sum": v.sum(0)}).state == "unattempted"
    whole = "both does not return a dict with the keys 'sum', 'mean'."
    lost = made.check(lambda v, w: {"mean": v.sum(0)}).message
    assert lost == f"{whole} It lacks 'sum': is return inside a loop?"
    assert made.check(lambda v, w: {"total": v.sum(0)}).message == whole
    assert made.check(mean).message == "both does not return a dict with the keys 'sum', 'mean'."
    wrong = lambda v, w: {"sum": v.sum(0), "mean": v.mean(0)[:2]}  # noqa: E731
    assert "both, in the entry 'mean', returns the shape (2,)" in made.check(wrong).message


def test_the_form_takes_the_notebooks_function(made, monkeypatch):
    names = {}
    monkeypatch.setattr("fedlab_nb.course.kit.view.get_notebook_variable_or_none", names.get)
    form = ProblemView(made).form()
    row, message, _ = form.children
    check = row.children[0]
    assert isinstance(check, widgets.Button) and check.description == "Check"
    for function, label in ((None, "Your turn"), (plain, "Not yet"), (mean, "Right")):
        names["mean"] = function
        check.click()
        assert label in message.value


def test_a_loop_without_an_end_is_stopped_and_the_old_verdict_goes(made, monkeypatch):
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
    row, message, _ = ProblemView(made).form().children
    row.children[0].click()
    assert "Right" in message.value
    shown = []
    message.observe(lambda change: shown.append(change["new"]), "value")
    names["mean"] = endless
    row.children[0].click()
    assert shown[0] == "Checking …" and "Right" not in message.value
    assert "mean is still running after 0.3 s, so it was stopped" in message.value
    assert is_stopped.wait(5)
