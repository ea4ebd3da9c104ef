"""What a guess asks stays folded until the guess is made or skipped, then it opens; the score is the reader's own."""

import ast
import re

import pytest
from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell
from IPython.testing.globalipapp import get_ipython
from lessons import LESSONS, SOURCES

from fedlab_nb.course import Snapshot, lesson_page, predict, score
from fedlab_nb.course.heterogeneity import lesson as heterogeneity
from fedlab_nb.course.kit import view
from fedlab_nb.course.kit.view import Card
from fedlab_nb.declared import read_toml
from fedlab_nb.panels import playground
from fedlab_nb.plots import Picture
from fedlab_nb.plots.kit import BARS, AccuracyBars
from fedlab_nb.plots.series import Series
from fedlab_nb.plots.style import drawing

PANELS = ("playground", "lab", "comparison", "race")
FENCE = re.compile(r"^```python.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def guess():
    return predict("How accurate is FENS?", unit="%")


@pytest.fixture
def bars():
    rows = [Series("FENS", accuracies={0: 0.8, 1: 0.9, 2: 0.85, 3: 0.8, 4: 0.9})]
    with drawing() as (figure, ax):
        AccuracyBars(ax, rows).update(rows)
    return Picture(figure, alt='Bars: "FENS" 85 %', sentence="FENS is best with 85 %.")


def html_of(snapshot):
    return snapshot._repr_mimebundle_()[0].get("text/html", "")


def dashed(picture):
    return [
        line.get_xdata()[0]
        for ax in picture.figure.axes
        for line in ax.lines
        if line.get_linestyle() == "--"
    ]


# ------------------------------------------------------------------------------------------------------ what is folded
@pytest.mark.parametrize("settle", [lambda guess: guess.commit(40), lambda guess: guess.skip()])
def test_it_is_folded_until_the_guess_is_made_or_skipped(bars, guess, settle):
    card, snapshot = Snapshot(Card("worked", "FENS 85 %"), after=guess), Snapshot(bars, after=guess)
    data, metadata = snapshot._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"} and metadata == {}  # no picture beside the fold
    picture = '<img alt="Bars: &quot;FENS&quot; 85 %"'
    for html in (data["text/html"], html_of(card)):
        assert (
            html.startswith("<details><summary>") and html.endswith("</details>") and "85 %" in html
        )
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
    assert [("<details>" in data["text/html"], update) for data, _, update in page.outputs] == [
        (True, False)
    ] * 2
    guess.commit(40)
    (_, first, _), (_, second, _), *changed = page.outputs
    assert [(place, update) for _, place, update in changed] == [
        (first, True),
        (second, True),
    ] and first != second
    assert (
        "data:image/png" in changed[0][0]["text/html"]
        and "You guessed 40 %" in changed[1][0]["text/html"]
    )
    guess.commit(50)
    assert len(page.outputs) == 6 and "You guessed 50 %" in page.outputs[-1][0]["text/html"]


def test_a_lesson_s_first_cell_and_no_other_brings_the_reader_back(monkeypatch):
    """After Run All JupyterLab stands at the end of the lesson."""
    returns = []
    monkeypatch.setattr(lesson_page, "LessonPage", lambda: returns.append(1))
    first = "import fedlab_nb as fl\nfrom fedlab_nb.course import predict"
    for code in (first, "predict('How many?')", first):
        lesson_page.open_page_if_first_cell(ExecutionInfo(code, False, False, True, "cell"))
    assert len(returns) == 2


@pytest.mark.parametrize("name", SOURCES)
def test_the_first_cell_of_each_lesson_brings_the_reader_back(name):
    first_code = SOURCES[name].split("```python", 1)[1].split("```", 1)[0]
    assert lesson_page.LESSON_IMPORT in first_code


# ------------------------------------------------------------------------------------------------------ in the picture
def test_the_guess_is_drawn_beside_the_answer(bars, guess):
    Snapshot(bars, after=guess)._repr_mimebundle_()
    assert dashed(bars) == []
    guess.commit(40)
    Snapshot(bars, after=guess)._repr_mimebundle_()
    assert dashed(bars) == [0.4]
    (ax,) = bars.figure.axes
    assert (
        ax.get_xlabel() == BARS and ax.get_title(loc="left") == "Test accuracy (dashed: your guess)"
    )


# ------------------------------------------------------------------------------------------------------ the score
@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(view, "PREDICTIONS", {})
    monkeypatch.setattr(view, "EXERCISES", {})


def test_score_half_way(fresh):
    number, choice = predict("How many?", unit="%"), predict("Which?", ["a", "b"])
    predict("Another?").skip()
    number.commit(40), choice.commit("b")
    number.reveal(85), choice.reveal("a")
    heterogeneity.q1.check(3)
    heterogeneity.q2.form()
    assert (
        repr(score()) == "2 of 3 guesses made (45 points too low; not it). 0 of 2 exercises right."
    )


def test_score_at_the_end(fresh):
    for value in (10, 84):  # the cell was run again: one question
        guess = predict("How many?", unit="%")
        guess.commit(value)
    guess.reveal(85)
    heterogeneity.q1.check(heterogeneity.q1.problem.right_answer)
    heterogeneity.q1.check(99)  # once right stays right
    assert repr(score()) == "1 of 1 guess made (very near). 1 of 1 exercise right."


def marks(picture):
    """(guess, measured) of each row of the score's picture."""
    lines = picture.figure.axes[0].lines
    found = [
        [line.get_xdata()[0] for line in lines if line.get_label() == name]
        for name in ("guess", "measured")
    ]
    return list(zip(*found, strict=True))


def test_the_picture_of_the_score_has_a_row_for_each_answered_guess(fresh, tmp_path):
    number, choice = (
        predict("How many?", low=20, high=120, unit="%"),
        predict("Which?", ["a", "b", "c"]),
    )
    number.commit(45), choice.commit("c"), predict("Open?").commit(3), predict("Skipped?").skip()
    number.reveal(70), choice.reveal("b")
    picture = score().picture()
    assert marks(picture) == [(0.25, 0.5), (1, 0.5)]
    assert [(row["guess"], row["measured"], row["gap"]) for row in picture.table] == [
        ("45 %", "70 %", "25 points too low"),
        ("c", "b", "not it"),
    ]
    assert picture.save(tmp_path / "guesses.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_off_the_scale_stands_at_its_end_with_its_true_number(fresh):
    guess = predict("How many times?", low=1, high=20, unit="times")
    guess.commit(1), guess.reveal(33)
    picture = score().picture()
    assert marks(picture) == [(0, 1)] and picture.table[0]["measured"] == "33 times"


def test_without_a_guess_the_picture_says_what_to_do(fresh):
    predict("How many?").reveal(3)
    assert score().picture().table == [] and "Guess first" in score().picture().sentence


def test_the_button_shows_the_score_and_a_picture_to_save(fresh, closing):
    guess = predict("How many?")
    guess.commit(3), guess.reveal(3)
    form = closing(score())
    form.children[0].click()
    assert (
        "1 of 1 guess made" in form.note.value
        and 'download="guesses.png" href="data:image/png' in form.note.value
    )


def test_the_sentence_for_a_friend_waits_for_every_guess(fresh):
    first, second = predict("How many?"), predict("Which?", ["a", "b"])
    tell = score(tell="It is b.").tell
    first.commit(3)
    assert "<details" in html_of(tell) and "It is b." in html_of(tell)
    second.skip()
    assert "<details" not in html_of(tell) and "It is b." in html_of(tell)


# ------------------------------------------------------------------------------------------------------ the lessons
def calls(source):
    """(statement, call, name of what is called) in the order of a lesson's code."""
    for code in FENCE.findall(source):
        for statement in ast.parse(code).body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    yield statement, node, getattr(node.func, "id", getattr(node.func, "attr", ""))


def gates(call):
    """The predictions after which a Snapshot is open."""
    after = [keyword.value for keyword in call.keywords if keyword.arg == "after"]
    return {part.id for of in after for part in ast.walk(of) if isinstance(part, ast.Name)}


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_nothing_is_shown_between_a_guess_and_its_reveal(source):
    open_guesses, asked = set(), set()
    for statement, call, name in calls(source):
        if name == "predict":
            open_guesses.add(statement.targets[0].id)
            asked |= open_guesses
        elif name == "reveal":
            assert isinstance(call.args[0], ast.Call), (
                "the answer is computed: code does not give it away"
            )
            open_guesses.remove(call.func.value.id)  # revealed once, and after it is asked
        elif name in PANELS:
            assert "'stored'" in ast.unparse(call) or not open_guesses, (
                "stored results before the guess"
            )
        elif name == "Snapshot":
            assert gates(call) <= asked
            assert gates(call) & open_guesses or not open_guesses, (
                f"a Snapshot before the reveal of {open_guesses}"
            )
    assert asked and not open_guesses
    assert FENCE.findall(source.split("## References")[0])[-1].startswith("score(")


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_no_panel_stays_turned_to_what_a_guess_asks(source):
    """After “Run All” a panel shows the view that it was turned to last: free to see, or the panel is covered."""
    shown = {
        code.strip().splitlines()[-1] for code in FENCE.findall(source)
    }  # panels that are displayed
    turned, covered, after, last = {}, {}, set(), None
    for statement, call, name in calls(source):
        after, last = after if statement is last else set(), statement
        first = getattr(next(iter(call.args), None), "id", None)
        if name == "Snapshot":
            after = gates(call)
            covered |= {first: after}
        elif isinstance(
            call.func, ast.Attribute
        ):  # panel.show("view"), or a lesson's function that turns the panel
            turned[
                getattr(call.func.value, "id", None) if name in ("show", "set", "work") else first
            ] = after
    for panel in shown & set(turned):
        assert turned[panel] <= covered.get(panel, set()), panel


def test_the_first_page_shows_no_result_that_a_lesson_asks_for():
    first = SOURCES["1_start_here"]
    panels = [ast.unparse(call) for _, call, name in calls(first) if name in PANELS]
    assert panels and all("'stored'" in panel for panel in panels)
    for methods in re.findall(r"playground\(methods=\[(.*?)\]", first):
        assert not set(re.findall(r"\w+", methods)) - {
            "local",
            "fedavg",
            "ensemble",
            "centralized",
        }


def test_run_all_leaves_the_first_playground_to_the_reader():
    """The panel that is shown is the reader's: another one makes the picture below it."""
    shown = []
    for cell in re.findall(r"```python.*?\n(.*?)```", SOURCES["1_start_here"], re.DOTALL):
        last = cell.strip().splitlines()[-1]
        if last.isidentifier():
            shown.append(last)
    assert "playground" in shown
    for name in shown:
        assert f"{name}.run(" not in SOURCES["1_start_here"], name


def test_each_named_sentence_is_used():
    text = "".join(SOURCES.values())
    assert [name for name in read_toml("course/kit/reveals.toml") if f'"{name}")' not in text] == []
    assert set(re.findall(r', "(\w+ \w+)"\)', text)) == set(read_toml("course/kit/reveals.toml"))
