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
from fedlab_nb.plots.series import MethodResults
from fedlab_nb.plots.style import drawing

PANELS = ("playground", "lab", "comparison", "race")
CODE_BLOCK = re.compile(r"^```python.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def guess():
    return predict("How accurate is FENS?", unit="%")


@pytest.fixture
def bars():
    rows = [MethodResults("FENS", accuracies={0: 0.8, 1: 0.9, 2: 0.85, 3: 0.8, 4: 0.9})]
    with drawing() as (figure, ax):
        AccuracyBars(ax, rows).update(rows)
    return Picture(figure, alt='Bars: "FENS" 85 %', sentence="FENS is best with 85 %.")


def get_html(snapshot):
    data, _ = snapshot._repr_mimebundle_()
    return data.get("text/html", "")


def list_dashed_lines(picture):
    """Where the dashed vertical lines of a picture with one axis stand."""
    (ax,) = picture.figure.axes
    return [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"]


# ------------------------------------------------------------------------------------------------------ what is folded
@pytest.mark.parametrize("settle", [lambda guess: guess.commit(40), lambda guess: guess.skip()])
def test_it_is_folded_until_the_guess_is_made_or_skipped(bars, guess, settle):
    card = Snapshot(Card("worked", "FENS 85 %"), after=guess)
    snapshot = Snapshot(bars, after=guess)
    data, metadata = snapshot._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")  # for slides: what shows HTML shows the fold
    assert metadata == {"image/png": {"alt": bars.alt}}
    for html in (data["text/html"], get_html(card)):
        assert html.startswith("<details><summary>")
        assert html.endswith("</details>")
        assert "85 %" in html
    image = '<img alt="Bars: &quot;FENS&quot; 85 %"'
    assert image in data["text/html"]
    assert "data:image/svg+xml," in data["text/html"]
    assert ">FENS is best with 85 %.</p>" in data["text/html"]  # the sentence is in the fold, too
    assert data["text/plain"].startswith("Guess first")
    settle(guess)
    assert get_html(snapshot).startswith(image)
    assert "<details" not in get_html(card)
    assert repr(snapshot) == "FENS is best with 85 %."


@pytest.mark.slow
def test_a_panel_covers_its_results_until_the_guess_or_run(closing, guess):
    panel = closing(playground(methods=["fedavg"]))
    other = predict("Which?", ["a", "b"])
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
    """Stands in for the notebook's page.

    outputs: what was published, (html, display id, whether it changes an output that is there)
    """

    def __init__(self):
        self.outputs = []

    def publish(self, data, metadata=None, *, transient=None, update=False, **kwargs):
        display_id = (transient or {}).get("display_id")
        self.outputs.append((data.get("text/html"), display_id, update))


@pytest.fixture
def page(monkeypatch):
    shell = get_ipython() or InteractiveShell.instance()
    page = Page()
    monkeypatch.setattr(shell, "display_pub", page)
    return page


def test_what_is_on_the_page_opens_by_itself(page, bars, guess):
    Snapshot(bars, after=guess)._ipython_display_()
    guess.reveal(85)._ipython_display_()
    (html_of_bars, id_of_bars, _), (html_of_guess, id_of_guess, _) = page.outputs
    assert "<details>" in html_of_bars
    assert "<details>" in html_of_guess
    assert id_of_bars != id_of_guess
    assert [update for *_, update in page.outputs] == [False, False]
    guess.commit(40)
    changes = page.outputs[2:]
    (html_of_bars, *_), (html_of_guess, *_) = changes
    assert [change[1:] for change in changes] == [(id_of_bars, True), (id_of_guess, True)]
    assert "data:image/svg+xml" in html_of_bars
    assert "You guessed 40 %" in html_of_guess
    guess.commit(50)
    assert len(page.outputs) == 6
    html_of_guess, *_ = page.outputs[-1]
    assert "You guessed 50 %" in html_of_guess


def test_a_lesson_s_first_cell_and_no_other_brings_the_reader_back(monkeypatch):
    """After Run All JupyterLab stands at the end of the lesson."""
    returns = []
    monkeypatch.setattr(lesson_page, "LessonPage", lambda: returns.append(1))
    first = "import fedlab_nb as fl\nfrom fedlab_nb.course import predict"
    for code in (first, "predict('How many?')", first):
        lesson_page.open_page_if_first_cell_of_lesson(
            ExecutionInfo(code, False, False, True, "cell")
        )
    assert len(returns) == 2


@pytest.mark.parametrize("name", SOURCES)
def test_the_first_cell_of_each_lesson_brings_the_reader_back(name):
    first_code = SOURCES[name].split("```python", 1)[1].split("```", 1)[0]
    assert lesson_page.LESSON_IMPORT in first_code


# ------------------------------------------------------------------------------------------------------ in the picture
def test_the_guess_is_drawn_beside_the_answer(bars, guess):
    Snapshot(bars, after=guess)._repr_mimebundle_()
    assert list_dashed_lines(bars) == []
    guess.commit(40)
    Snapshot(bars, after=guess)._repr_mimebundle_()
    assert list_dashed_lines(bars) == [0.4]
    (ax,) = bars.figure.axes
    assert ax.get_xlabel() == BARS
    assert ax.get_title(loc="left") == "Test accuracy (dashed: your guess)"


# ------------------------------------------------------------------------------------------------------ the score
@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(view, "PREDICTIONS", {})
    monkeypatch.setattr(view, "EXERCISES", {})


def test_score_half_way(fresh):
    number = predict("How many?", unit="%")
    choice = predict("Which?", ["a", "b"])
    predict("Another?").skip()
    number.commit(40)
    choice.commit("b")
    number.reveal(85)
    choice.reveal("a")
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


def list_marks(picture):
    """(guess, measured) of each row of the score's picture."""
    lines = picture.figure.axes[0].lines
    guesses = [line.get_xdata()[0] for line in lines if line.get_label() == "guess"]
    measured = [line.get_xdata()[0] for line in lines if line.get_label() == "measured"]
    return list(zip(guesses, measured, strict=True))


def test_the_picture_of_the_score_has_a_row_for_each_answered_guess(fresh, tmp_path):
    number = predict("How many?", low=20, high=120, unit="%")
    choice = predict("Which?", ["a", "b", "c"])
    number.commit(45)
    choice.commit("c")
    predict("Open?").commit(3)
    predict("Skipped?").skip()
    number.reveal(70)
    choice.reveal("b")
    picture = score().picture()
    assert list_marks(picture) == [(0.25, 0.5), (1, 0.5)]
    assert [(row["guess"], row["measured"], row["gap"]) for row in picture.table] == [
        ("45 %", "70 %", "25 points too low"),
        ("c", "b", "not it"),
    ]
    assert picture.save(tmp_path / "guesses.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_off_the_scale_stands_at_its_end_with_its_true_number(fresh):
    guess = predict("How many times?", low=1, high=20, unit="times")
    guess.commit(1)
    guess.reveal(33)
    picture = score().picture()
    assert list_marks(picture) == [(0, 1)]
    assert picture.table[0]["measured"] == "33 times"


def test_without_a_guess_the_picture_says_what_to_do(fresh):
    predict("How many?").reveal(3)
    picture = score().picture()
    assert picture.table == []
    assert "Guess first" in picture.sentence


def test_the_button_shows_the_score_and_a_picture_to_save(fresh, closing):
    guess = predict("How many?")
    guess.commit(3)
    guess.reveal(3)
    form = closing(score())
    form.children[0].click()
    assert "1 of 1 guess made" in form.note.value
    assert 'download="guesses.png" href="data:image/png' in form.note.value


def test_the_sentence_for_a_friend_waits_for_every_guess(fresh):
    first = predict("How many?")
    second = predict("Which?", ["a", "b"])
    sentence = score(tell="It is b.").tell
    first.commit(3)
    assert "<details" in get_html(sentence)
    assert "It is b." in get_html(sentence)
    second.skip()
    assert "<details" not in get_html(sentence)
    assert "It is b." in get_html(sentence)


# ------------------------------------------------------------------------------------------------------ the lessons
def iterate_calls(source):
    """(statement, call, name of what is called) in the order of a lesson's code."""
    for code in CODE_BLOCK.findall(source):
        for statement in ast.parse(code).body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    yield statement, node, get_called_name(node)


def get_called_name(call):
    """`f` of f(…) and of x.f(…)."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return getattr(call.func, "attr", "")


def list_gates(call):
    """The names of the predictions after which a Snapshot is open."""
    names = set()
    for keyword in call.keywords:
        if keyword.arg == "after":
            nodes = ast.walk(keyword.value)
            names.update(node.id for node in nodes if isinstance(node, ast.Name))
    return names


def get_first_argument_name(call):
    """The variable that a call has as its first argument, or None."""
    if call.args and isinstance(call.args[0], ast.Name):
        return call.args[0].id
    return None


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_nothing_is_shown_between_a_guess_and_its_reveal(source):
    guesses = set()
    open_guesses = set()  # those that are not revealed yet
    for statement, call, name in iterate_calls(source):
        if name == "predict":
            guess = statement.targets[0].id
            guesses.add(guess)
            open_guesses.add(guess)
        elif name == "reveal":
            assert isinstance(call.args[0], ast.Call), "a computed answer is not read in the code"
            open_guesses.remove(call.func.value.id)  # revealed once, and after the question
        elif name in PANELS and open_guesses:
            assert "'stored'" in ast.unparse(call), "stored results are shown before the reveal"
        elif name == "Snapshot":
            gates = list_gates(call)
            assert gates <= guesses
            if open_guesses:
                assert gates & open_guesses, f"a Snapshot before the reveal of {open_guesses}"
    assert guesses
    assert not open_guesses
    assert CODE_BLOCK.findall(source.split("## References")[0])[-1].startswith("score(")


@pytest.mark.parametrize("source", LESSONS.values(), ids=LESSONS)
def test_no_panel_stays_turned_to_what_a_guess_asks(source):
    """After “Run All” a panel shows the view that it was turned to last: free to see, or the panel is covered."""
    displayed = {code.strip().splitlines()[-1] for code in CODE_BLOCK.findall(source)}
    turned = {}  # {panel: the gates of the statement that turned it last}
    covered = {}  # {panel: the gates of its Snapshot}
    gates = set()  # of the Snapshot in the present statement
    present_statement = None
    for statement, call, name in iterate_calls(source):
        if statement is not present_statement:
            gates = set()
            present_statement = statement
        if name == "Snapshot":
            gates = list_gates(call)
            covered[get_first_argument_name(call)] = gates
        elif name in ("show", "set", "work") and isinstance(call.func, ast.Attribute):
            turned[getattr(call.func.value, "id", None)] = gates  # panel.show("view")
        elif isinstance(call.func, ast.Attribute):
            turned[get_first_argument_name(call)] = gates  # lesson.show_something(panel)
    for panel in displayed & set(turned):
        assert turned[panel] <= covered.get(panel, set()), panel


def test_the_first_page_shows_no_result_that_a_lesson_asks_for():
    first = SOURCES["1_start_here"]
    panels = [ast.unparse(call) for _, call, name in iterate_calls(first) if name in PANELS]
    assert panels
    assert all("'stored'" in panel for panel in panels)
    for methods in re.findall(r"playground\(methods=\[(.*?)\]", first):
        names = set(re.findall(r"\w+", methods))
        assert names <= {"local", "fedavg", "ensemble", "centralized"}


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
    names = read_toml("course/kit/reveals.toml")
    assert [name for name in names if f'"{name}")' not in text] == []
    assert set(re.findall(r', "(\w+ \w+)"\)', text)) == set(names)
