"""What a guess asks stays folded until the guess is made or skipped, then it opens; the score is the reader's own."""

import ast
import re

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.testing.globalipapp import get_ipython
from lessons import LESSONS, SOURCES

from fedlab_nb.course import Snapshot, predict, score
from fedlab_nb.course.heterogeneity import lesson as heterogeneity
from fedlab_nb.course.kit import view
from fedlab_nb.course.kit.view import Card
from fedlab_nb.declared import declared
from fedlab_nb.panels import playground
from fedlab_nb.plots import Picture
from fedlab_nb.plots.kit import BARS, Bars
from fedlab_nb.plots.series import Series
from fedlab_nb.plots.style import drawing

FENCE = re.compile(r"^```python.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def guess():
    return predict("How accurate is FENS?", unit="%")


@pytest.fixture
def bars():
    rows = [Series("FENS", accuracies={0: 0.8, 1: 0.9})]
    with drawing() as (figure, ax):
        Bars(ax, rows).update(rows)
    return Picture(figure, alt='Bars: "FENS" 85 %', sentence="FENS is best with 85 %.")


def html_of(snapshot):
    return snapshot._repr_mimebundle_()[0].get("text/html", "")


def dashed(picture):
    return [line.get_xdata()[0] for ax in picture.figure.axes for line in ax.lines if line.get_linestyle() == "--"]


# ------------------------------------------------------------------------------------------------------ what is folded
@pytest.mark.parametrize("settle", [lambda guess: guess.commit(40), lambda guess: guess.skip()])
def test_it_is_folded_until_the_guess_is_made_or_skipped(bars, guess, settle):
    card, snapshot = Snapshot(Card("worked", "FENS 85 %"), after=guess), Snapshot(bars, after=guess)
    data, metadata = snapshot._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"} and metadata == {}  # no picture beside the fold
    picture = '<img alt="Bars: &quot;FENS&quot; 85 %"'
    for html in (data["text/html"], html_of(card)):
        assert html.startswith("<details><summary>") and html.endswith("</details>") and "85 %" in html
    assert picture in data["text/html"] and "data:image/png;base64,iVBOR" in data["text/html"]
    assert ">FENS is best with 85 %.</p>" in data["text/html"]  # the sentence can be read, too
    assert data["text/plain"].startswith("Guess first")
    settle(guess)
    assert html_of(snapshot).startswith(picture) and "<details" not in html_of(card)
    assert repr(snapshot) == "FENS is best with 85 %."


def test_a_panel_covers_its_results_until_the_guess_or_run(closing, guess):
    panel, other = closing(playground(methods=["fedavg"])), predict("Which?", ["a", "b"])
    Snapshot(panel, after=[guess, other])
    assert "fl-covered" in panel._dom_classes
    guess.commit(40)
    assert "fl-covered" in panel._dom_classes
    other.skip()
    assert "fl-covered" not in panel._dom_classes
    Snapshot(panel, after=guess)
    assert "fl-covered" not in panel._dom_classes

    Snapshot(panel, after=predict("And then?"))
    assert "fl-covered" in panel._dom_classes
    panel.controls.run.click()
    assert "fl-covered" not in panel._dom_classes


# ------------------------------------------------------------------------------------------------------ on the page
class Page:
    """What was published: a list of (data, display id, whether it changes an output)."""

    def __init__(self):
        self.outputs = []

    def publish(self, data, metadata=None, *, transient=None, update=False, **kwargs):
        self.outputs.append((data, (transient or {}).get("display_id"), update))


@pytest.fixture
def page(monkeypatch):
    shell = get_ipython() or InteractiveShell.instance()
    page = Page()
    monkeypatch.setattr(shell, "display_pub", page)
    return page


def test_what_is_on_the_page_opens_by_itself(page, bars, guess):
    Snapshot(bars, after=guess)._ipython_display_()
    guess.reveal(85)._ipython_display_()
    assert [("<details>" in data["text/html"], update) for data, _, update in page.outputs] == [(True, False)] * 2
    guess.commit(40)
    (_, first, _), (_, second, _), *changed = page.outputs
    assert [(place, update) for _, place, update in changed] == [(first, True), (second, True)] and first != second
    assert "data:image/png" in changed[0][0]["text/html"] and "You guessed 40 %" in changed[1][0]["text/html"]
    guess.commit(50)
    assert len(page.outputs) == 6 and "You guessed 50 %" in page.outputs[-1][0]["text/html"]


# ------------------------------------------------------------------------------------------------------ in the picture
def test_the_guess_is_drawn_beside_the_answer(bars, guess):
    Snapshot(bars, after=guess)._repr_mimebundle_()
    assert dashed(bars) == []
    guess.commit(40)
    Snapshot(bars, after=guess)._repr_mimebundle_()
    assert dashed(bars) == [0.4]
    (ax,) = bars.figure.axes
    assert ax.get_xlabel() == BARS and ax.get_title(loc="left") == "Test accuracy (dashed: your guess)"


# ------------------------------------------------------------------------------------------------------ the score
@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(view, "ASKED", {})
    monkeypatch.setattr(view, "TRIED", {})


def test_score_half_way(fresh):
    number, choice = predict("How many?", unit="%"), predict("Which?", ["a", "b"])
    predict("Another?").skip()
    number.commit(40), choice.commit("b")
    number.reveal(85), choice.reveal("a")
    heterogeneity.q1.check(3)
    heterogeneity.q2.form()
    words = "2 of 3 guesses made (45 points too low; not it). 0 of 2 exercises right."
    assert repr(score()) == words


def test_score_at_the_end(fresh):
    for value in (10, 84):  # the cell was run again: one question
        guess = predict("How many?", unit="%")
        guess.commit(value)
    guess.reveal(85)
    heterogeneity.q1.check(heterogeneity.q1.problem.right_answer)
    heterogeneity.q1.check(99)  # once right stays right
    assert repr(score()) == "1 of 1 guess made (very near). 1 of 1 exercise right."


# ------------------------------------------------------------------------------------------------------ the lessons
def steps(source):
    """("predict" | "reveal" | "snapshot" | "panel", names of the predictions, or "stored" where a panel hides stored
    results) in the order of a lesson's code."""
    for code in FENCE.findall(source):
        for statement in ast.parse(code).body:
            for node in ast.walk(statement):
                name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
                if name == "predict":
                    yield "predict", {statement.targets[0].id}
                elif name == "reveal":
                    yield "reveal", {node.func.value.id}
                elif name in ("playground", "lab", "comparison", "race"):
                    hidden = [keyword.value for keyword in node.keywords if keyword.arg == "hide"]
                    yield "panel", {part.value for of in hidden for part in of.elts}
                elif name == "Snapshot":
                    after = [keyword.value for keyword in node.keywords if keyword.arg == "after"]
                    yield "snapshot", {part.id for of in after for part in ast.walk(of) if isinstance(part, ast.Name)}


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_nothing_is_shown_between_a_guess_and_its_reveal(source):
    open_guesses, asked = set(), set()
    for step, names in steps(source):
        if step == "predict":
            open_guesses |= names
            asked |= names
        elif step == "reveal":
            assert names <= open_guesses, f"{names} is revealed before it is asked, or twice"
            open_guesses -= names
        elif step == "panel":
            assert "stored" in names or not open_guesses, "a panel that shows stored results before the guess"
        else:
            assert names <= asked
            assert names & open_guesses or not open_guesses, f"a Snapshot before the reveal of {open_guesses}"
    assert asked and not open_guesses


def turnings(source):
    """(panel, predictions that gate the view that it is turned to, whether the panel itself is covered till then)."""
    for code in FENCE.findall(source):
        for statement in ast.parse(code).body:
            call, after = getattr(statement, "value", None), set()
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Snapshot":
                gates = [ast.walk(keyword.value) for keyword in call.keywords if keyword.arg == "after"]
                after, call = {part.id for gate in gates for part in gate if isinstance(part, ast.Name)}, call.args[0]
                if isinstance(call, ast.Name):
                    yield call.id, after, True
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                panel = call.func.value if call.func.attr in ("show", "set", "work") else next(iter(call.args), None)
                if isinstance(panel, ast.Name):
                    yield panel.id, after, False


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_no_panel_stays_turned_to_what_a_guess_asks(source):
    """After “Run All” a panel shows the view that it was turned to last: free to see, or the panel is covered."""
    shown = {code.strip().splitlines()[-1] for code in FENCE.findall(source)}  # panels that are displayed
    turned, covered = {}, {}
    for panel, after, covers in turnings(source):
        (covered if covers else turned)[panel] = after
    for panel in shown & set(turned):
        assert turned[panel] <= covered.get(panel, set()), panel


def test_the_first_page_shows_no_result_that_a_lesson_asks_for():
    panels = [hidden for step, hidden in steps(SOURCES["00_start_here"]) if step == "panel"]
    assert panels and all("stored" in hidden for hidden in panels)
    (methods,) = re.findall(r"playground\(methods=\[(.*?)\]", SOURCES["00_start_here"])
    assert not set(re.findall(r"\w+", methods)) - {"local", "fedavg", "ensemble", "centralized"}


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_code_does_not_give_the_answer_away(source):
    for code in FENCE.findall(source):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "reveal":
                assert isinstance(node.args[0], ast.Call), "the answer is computed"


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_a_lesson_ends_with_the_score(source):
    lesson, _ = source.split("## References")  # an appendix may follow
    assert FENCE.findall(lesson)[-1] == "score()\n"


def test_each_named_sentence_is_used():
    text = "".join(SOURCES.values())
    assert [name for name in declared("course/kit/reveals.toml") if f'"{name}")' not in text] == []
    assert set(re.findall(r', "(\d\d \w+)"\)', text)) == set(declared("course/kit/reveals.toml"))
