"""Which method to use: frontier, ties, regret and questions by numbers worked out by hand."""

import html
import os
import re
from itertools import product
from pathlib import Path

import pytest

from fedlab_nb.cli import main
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.papers.which import (
    Answers,
    Candidate,
    Federation,
    choose_by_rule,
    describe_federation,
    describe_rule,
    describe_study,
    find_frontier,
    find_ties,
    leave_one_out,
    list_cases,
    load_stored_federations,
    which,
)
from fedlab_nb.plots.themed import write_themed_svg

GUIDE = Path(__file__).parents[2] / "notebooks" / "guide" / "which.md"
PICTURE = GUIDE.parents[1] / "images" / "which.svg"


def candidate(method: str, accuracies: list[float], size: float) -> Candidate:
    return Candidate(method, "", dict(enumerate(accuracies)), size)


def names(candidates: list[Candidate]) -> list[str]:
    return [c.name for c in candidates]


def test_equally_cheap_ties_begin_with_the_most_accurate():
    pair = [candidate("afl", [0.8, 0.9], 10), candidate("gauss", [0.82, 0.9], 10)]
    assert names(find_ties(pair)) == ["gauss", "afl"]


def test_the_frontier_leaves_out_who_is_beaten_in_accuracy_or_bytes():
    afl = candidate("afl", [0.8], 10)
    gauss = candidate("gauss", [0.9], 20)
    fens = candidate("fens", [0.85], 30)  # dearer and worse than gauss
    fedavg = candidate("fedavg", [0.8], 12)  # as good as afl, and dearer
    moon = candidate("moon", [0.95], 40)
    assert names(find_frontier([moon, fens, gauss, fedavg, afl])) == ["afl", "gauss", "moon"]


def test_of_two_with_the_same_bytes_the_better_one_stays():
    pair = [candidate("afl", [0.7], 10), candidate("gauss", [0.8], 10)]
    assert names(find_frontier(pair)) == ["gauss"]


def test_ties_are_within_the_band_of_paired_differences_the_cheapest_first():
    best = candidate("moon", [0.90, 0.92, 0.94], 40)
    # Differences .00, .02, .01: mean .01, half width 4.30 x .01 / sqrt(3) = .0248. Within the noise.
    level = candidate("afl", [0.90, 0.90, 0.93], 10)
    # Differences .03, .04, .05: mean .04, the same half width. Clear.
    worse = candidate("gauss", [0.87, 0.88, 0.89], 5)
    assert names(find_ties([best, level, worse])) == ["afl", "moon"]


def test_one_seed_makes_no_ties():
    assert names(find_ties([candidate("moon", [0.9], 2), candidate("afl", [0.89], 1)])) == ["moon"]


def three_data_sets() -> list[Federation]:
    """Means: afl .9, .8, .7; gauss .8, .9, .9."""
    table = {"a": (0.9, 0.8), "b": (0.8, 0.9), "c": (0.7, 0.9)}
    return [
        Federation(data, data, [candidate("afl", [afl], 1), candidate("gauss", [gauss], 2)])
        for data, (afl, gauss) in table.items()
    ]


def test_the_rule_has_the_least_mean_regret():
    # Regrets of gauss: .1, 0, 0. Of afl: 0, .1, .2.
    name, regret = choose_by_rule(three_data_sets(), Answers())
    assert name == "gauss"
    assert regret == pytest.approx(0.1 / 3)


def test_what_is_left_out_is_judged_by_the_others():
    found = leave_one_out(three_data_sets(), Answers())
    # Without a: afl .15, gauss 0. Without b: afl .1, gauss .05. Without c: both .05, afl by name.
    assert {data: name for data, (name, _) in found.items()} == {
        "a": "gauss",
        "b": "gauss",
        "c": "afl",
    }
    assert found["a"][1] == pytest.approx(0.1)
    assert found["b"][1] == pytest.approx(0)
    assert found["c"][1] == pytest.approx(0.2)


def test_the_same_data_at_another_alpha_are_left_out_too():
    one, two, _ = three_data_sets()
    again = Federation("a, another alpha", "a", one.candidates)
    found = leave_one_out([one, again, two], Answers())
    assert found["a"][0] == "gauss"  # of b alone; with the twin it would be afl


def test_data_sets_count_once_however_many_alphas_they_have():
    one, two, three = three_data_sets()
    copies = [Federation(f"a{i}", "a", one.candidates) for i in range(9)]
    assert choose_by_rule([*copies, two, three], Answers())[0] == "gauss"


@pytest.fixture(scope="module")
def federations():
    return load_stored_federations()


@pytest.mark.parametrize("said", list(product((None, False, True), repeat=4)))
def test_every_combination_of_answers_is_answered_or_says_why_not(said, federations):
    answers = Answers(*said)
    sentence = describe_rule(federations, answers)
    found = re.match(r"(?:for images )?use ([^,]+),", sentence)
    assert found or sentence.startswith("No method")
    if found:
        method = found[1].split(" ")[0]
        info = METHODS[method].info
        assert answers.public is not False or "public" not in info.needs
        assert not answers.once or info.rounds.startswith("one-shot")
        assert not answers.unlike or "one architecture" not in info.needs


def test_federations_of_a_data_set_stand_together_the_most_skewed_first():
    names_in_order = [federation.name for federation in load_stored_federations()]
    letters = [name for name in names_in_order if name.startswith("glyphs:16g")]
    assert letters == [
        "glyphs:16g, α = 0.1",
        "glyphs:16g, α = 1",
        "glyphs:16g, α = 100",
        "glyphs:16g, a font a client",
    ]
    first = names_in_order.index(letters[0])
    assert names_in_order[first : first + 4] == letters


def test_one_message_rules_out_fens():
    assert not Answers(once=True).is_allowed("fens")
    assert Answers().is_allowed("fens")
    assert not Answers().is_allowed("centralized")


def test_stored_federations_have_ten_seeds_where_claims_are_made(federations):
    assert {f.data for f in federations} >= {"digits", "glyphs:16g", "mnist:5k", "heart"}
    for federation in federations:
        if federation.data in ("digits", "heart"):
            assert all(len(c.accuracy) == 10 for c in federation.candidates if c.method == "afl")
    assert len(list_cases()) == 6


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"seeds": 1}])
def test_a_wrong_budget_is_one_sentence(wrong):
    with pytest.raises(UsageError, match=r"such as \d+\."):
        which("digits", **wrong)


def test_the_guide_shows_what_the_command_prints():
    """`FEDLAB_NB_WRITE_GUIDE=1` puts the present text into the page."""
    page = GUIDE.read_text(encoding="utf-8")
    assert "(../images/which.svg)" in page
    head, rest = page.split("```text\n", 1)
    tail = rest[rest.index("```\n") :]
    expected = f"{head}```text\n{describe_study()}\n{tail}"
    if os.environ.get("FEDLAB_NB_WRITE_GUIDE"):
        GUIDE.write_text(expected, encoding="utf-8")
        page = expected
    assert page == expected


def test_the_picture_of_the_guide_has_the_present_numbers():
    """`FEDLAB_NB_WRITE_GUIDE=1` draws it anew. The file has the picture's text, with each number."""
    picture = which().plot()
    if os.environ.get("FEDLAB_NB_WRITE_GUIDE"):
        write_themed_svg(picture, PICTURE, force=True)
    said = re.search(r"<desc>(.*?)</desc>", PICTURE.read_text(encoding="utf-8"), re.DOTALL)
    assert html.unescape(said[1]) == picture.alt


def test_picture_and_text_name_the_same_methods_for_every_federation():
    """The picture's table against the text, which is made another way."""
    answers = Answers(once=True)
    result = which(answers=answers)
    table = result.plot().table
    for federation in load_stored_federations():
        rows = [row for row in table if row["federation"] == federation.name]
        lines = describe_federation(federation, answers)
        not_beaten = [line.strip().split(": ")[0] for line in lines if line.startswith("    ")]
        titles = {c.name: c.title for c in federation.candidates}
        drawn = [row["method"] for row in rows if "not beaten" in row["place"]]
        assert drawn == [titles[name] for name in not_beaten]
        cheapest = [row["method"] for row in rows if "cheapest" in row["place"]]
        answer = lines[-1].removeprefix("  answer: ").partition(", the cheapest")[0]
        assert cheapest == [titles[answer]]


def test_a_notebook_shows_picture_and_text_and_answers_narrow_both():
    data, metadata = which(answers=Answers(once=True))._repr_mimebundle_()
    assert data["text/html"].count("<svg") == 1 and "light-dark(" in data["text/html"]
    assert data["image/png"].startswith(b"\x89PNG")
    assert "FENS" not in metadata["image/png"]["alt"]
    assert "FENS" in which()._repr_mimebundle_()[1]["image/png"]["alt"]
    assert "digits, α = 0.3" in data["text/plain"]


def test_one_federation_can_be_drawn_and_an_unknown_one_is_refused():
    one = which().plot("heart, four hospitals")
    assert {row["federation"] for row in one.table} == {"heart, four hospitals"}
    with pytest.raises(UsageError, match="heart, four hospitals"):
        which().plot("heart, four hospital")
    with pytest.raises(UsageError, match="without a data set nothing is run"):
        which(alpha=0.1)


def test_the_command_writes_the_picture(tmp_path, capsys):
    file = tmp_path / "which.svg"
    assert main(["which", "--once", "yes", "--picture", str(file)]) == 0
    assert file.read_text(encoding="utf-8").count("<svg") == 1
    file.write_text("mine", encoding="utf-8")
    assert main(["which", "--picture", str(file)]) == 2
    assert file.read_text(encoding="utf-8") == "mine"
