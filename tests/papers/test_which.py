"""Which method to use: frontier, ties, regret and questions by numbers worked out by hand."""

import html
import os
import re
from itertools import product
from pathlib import Path

import pytest

from fedlab_nb.cli import main
from fedlab_nb.data import DATASETS, load
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.papers.which import (
    Answers,
    Candidate,
    StudiedFederation,
    choose_candidate_with_least_mean_regret,
    choose_cheapest_candidate_near_best,
    choose_for_each_federation_by_rule_of_other_datasets,
    choose_seed_count_of_rehearsal,
    choose_shortlist_greedily,
    compute_accuracy_regret_of_shortlist_from_other_datasets,
    compute_mean_regret_of_best_two_on_shortlist,
    describe_frontier_ties_and_answer,
    describe_largest_gap_of_answer_to_best,
    describe_rule_and_its_regret,
    describe_stored_study,
    find_candidates_tied_for_best,
    find_candidates_unbeaten_in_accuracy_and_bytes,
    hold_out_fifth_as_test_samples,
    list_cases_of_answers_with_names,
    load_stored_federations,
    make_candidate_of_stored_row_or_none,
    make_frontier_or_none_if_nothing_fits,
    make_regret_tables,
    make_shortlist_with_closed_forms,
    which,
)
from fedlab_nb.plots.frontier import draw_frontiers
from fedlab_nb.plots.style import make_standalone_svg_of_picture

TESTS = Path(__file__).parents[1]
GUIDE = TESTS.parent / "notebooks" / "guide" / "which.md"
PICTURE = GUIDE.parents[1] / "images" / "which.svg"


def candidate(method: str, accuracies: list[float], size: float) -> Candidate:
    return Candidate(method, "", dict(enumerate(accuracies)), size)


def names(candidates: list[Candidate]) -> list[str]:
    return [c.name for c in candidates]


def test_equally_cheap_ties_begin_with_the_most_accurate():
    pair = [candidate("afl", [0.8, 0.9], 10), candidate("gauss", [0.82, 0.9], 10)]
    assert names(find_candidates_tied_for_best(pair)) == ["gauss", "afl"]


def test_the_frontier_leaves_out_who_is_beaten_in_accuracy_or_bytes():
    afl = candidate("afl", [0.8], 10)
    gauss = candidate("gauss", [0.9], 20)
    fens = candidate("fens", [0.85], 30)  # dearer and worse than gauss
    fedavg = candidate("fedavg", [0.8], 12)  # as good as afl, and dearer
    moon = candidate("moon", [0.95], 40)
    assert names(
        find_candidates_unbeaten_in_accuracy_and_bytes([moon, fens, gauss, fedavg, afl])
    ) == [
        "afl",
        "gauss",
        "moon",
    ]


def test_a_cheap_answer_says_how_far_it_may_be_behind():
    """Behind by 2, 4 and 6 points: 4 ± t(2) · 2 / √3 = 4 ± 4.97. Within the noise, and 8.97 at most."""
    cheap = candidate("fedpft", [0.90, 0.90, 0.90], 10)
    best = candidate("gauss", [0.92, 0.94, 0.96], 20)
    assert names(find_candidates_tied_for_best([cheap, best])) == ["fedpft", "gauss"]
    (line,) = describe_largest_gap_of_answer_to_best(cheap, [cheap, best])
    assert line.strip().startswith("the most accurate on average: gauss;")
    assert "fedpft may be up to 9.0 points behind it" in line
    assert describe_largest_gap_of_answer_to_best(best, [cheap, best]) == []


@pytest.mark.slow
def test_there_is_no_rule_for_images_that_the_study_does_not_have():
    text = describe_stored_study()
    assert "other images: no fixed answer." in text
    assert "for images use" not in text


def test_one_seed_that_had_to_wait_makes_no_method_slow():
    row = {
        "method": "afl",
        "made": {"afl.features": "pixels"},
        "seeds": [0, 1, 2],
        "accuracy": [0.9, 0.9, 0.9],
        "bytes_up": [10, 10, 10],
        "bytes_down": [0, 0, 0],
        "seconds_local": [0.0, 0.0, 0.0],
        "seconds_method": [0.02, 2.27, 0.03],
    }
    assert make_candidate_of_stored_row_or_none(row, 10).seconds == 0.03


def test_of_two_with_the_same_bytes_the_better_one_stays():
    pair = [candidate("afl", [0.7], 10), candidate("gauss", [0.8], 10)]
    assert names(find_candidates_unbeaten_in_accuracy_and_bytes(pair)) == ["gauss"]


def test_ties_are_within_the_band_of_paired_differences_the_cheapest_first():
    best = candidate("moon", [0.90, 0.92, 0.94], 40)
    # Differences .00, .02, .01: mean .01, half width 4.30 x .01 / sqrt(3) = .0248. Within the noise.
    level = candidate("afl", [0.90, 0.90, 0.93], 10)
    # Differences .03, .04, .05: mean .04, the same half width. Clear.
    worse = candidate("gauss", [0.87, 0.88, 0.89], 5)
    assert names(find_candidates_tied_for_best([best, level, worse])) == ["afl", "moon"]


def test_one_seed_makes_no_ties():
    assert names(
        find_candidates_tied_for_best([candidate("moon", [0.9], 2), candidate("afl", [0.89], 1)])
    ) == ["moon"]


def three_data_sets() -> list[StudiedFederation]:
    """Means: afl .9, .8, .7; gauss .8, .9, .9."""
    table = {"a": (0.9, 0.8), "b": (0.8, 0.9), "c": (0.7, 0.9)}
    return [
        StudiedFederation(data, data, [candidate("afl", [afl], 1), candidate("gauss", [gauss], 2)])
        for data, (afl, gauss) in table.items()
    ]


def test_the_rule_has_the_least_mean_regret():
    # Regrets of gauss: .1, 0, 0. Of afl: 0, .1, .2.
    name, regret = choose_candidate_with_least_mean_regret(three_data_sets(), Answers())
    assert name == "gauss"
    assert regret == pytest.approx(0.1 / 3)


def test_what_is_left_out_is_judged_by_the_others():
    found = choose_for_each_federation_by_rule_of_other_datasets(three_data_sets(), Answers())
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
    again = StudiedFederation("a, another alpha", "a", one.candidates)
    found = choose_for_each_federation_by_rule_of_other_datasets([one, again, two], Answers())
    assert found["a"][0] == "gauss"  # of b alone; with the twin it would be afl


def test_data_sets_count_once_however_many_alphas_they_have():
    one, two, three = three_data_sets()
    copies = [StudiedFederation(f"a{i}", "a", one.candidates) for i in range(9)]
    assert choose_candidate_with_least_mean_regret([*copies, two, three], Answers())[0] == "gauss"


def test_a_shortlist_is_scored_by_its_best_member_and_by_its_spare():
    # Best .9 in each data set. Regrets of afl: 0, .1, .2; of gauss: .1, 0, 0.
    tables = make_regret_tables(three_data_sets(), Answers(), allows_image_options=True)
    # Both: best 0, 0, 0; spare .1, .1, .2. Afl alone has no spare: accuracy 0, so a regret of .9.
    assert compute_mean_regret_of_best_two_on_shortlist(tables, ["afl", "gauss"]) == pytest.approx(
        0.4 / 3 / 2
    )
    assert compute_mean_regret_of_best_two_on_shortlist(tables, ["afl"]) == pytest.approx(
        (0.3 + 3 * 0.9) / 3 / 2
    )


def test_a_shortlist_begins_with_the_generalist_and_ends_where_nothing_is_gained():
    federations = []
    for federation in three_data_sets():
        third = candidate("moon", [0.5], 3)  # worst everywhere: neither best nor spare
        federations.append(
            StudiedFederation(federation.name, federation.data, [*federation.candidates, third])
        )
    assert choose_shortlist_greedily(federations, Answers()) == ["gauss", "afl"]


def test_image_options_are_not_on_the_list_for_tables(federations):
    images = make_shortlist_with_closed_forms(federations, Answers())
    tables = make_shortlist_with_closed_forms(federations, Answers(), allows_image_options=False)
    assert any(name.endswith("(lite0)") for name in images)
    assert not any(name.endswith(("(lite0)", "(conv)")) for name in tables)


def test_all_candidates_in_closed_form_that_the_answers_allow_are_rehearsed():
    federations = three_data_sets()
    wanted = ["gauss", "afl", "afl (relu)", "afl (conv)", "afl (lite0)", "deepafl"]
    wanted += ["gauss (lite0)", "fedpft"]
    assert (
        make_shortlist_with_closed_forms(federations, Answers()) == wanted
    )  # of the study's list: gauss and afl
    once = make_shortlist_with_closed_forms(federations, Answers(once=True))
    assert once == [name for name in wanted if name != "deepafl"]
    forget = make_shortlist_with_closed_forms(federations, Answers(forget=True))
    assert forget == [name for name in once if name != "fedpft"]
    tables = make_shortlist_with_closed_forms(
        federations, Answers(once=True), allows_image_options=False
    )
    assert tables == ["gauss", "afl", "afl (relu)", "fedpft"]


def test_the_list_for_a_data_set_is_made_without_it():
    one, two, three = three_data_sets()
    # The best of a; without a it ran on one data set alone, which is too few for a list.
    first = StudiedFederation("a", "a", [*one.candidates, candidate("moon", [0.99], 3)])
    second = StudiedFederation("b", "b", [*two.candidates, candidate("moon", [0.1], 3)])
    regrets = compute_accuracy_regret_of_shortlist_from_other_datasets(
        [first, second, three], Answers()
    )
    assert regrets == pytest.approx({"a": 0.09, "b": 0, "c": 0})


def test_a_rehearsal_takes_the_cheapest_that_is_surely_within_a_point():
    best = candidate("moon", [0.900, 0.910, 0.920], 40)
    # Behind by .2, .3 and .4 points: .3 ± 4.30 · .1 / √3 = .3 ± .25, at most .55.
    close = candidate("afl", [0.898, 0.907, 0.916], 20)
    # Behind by 0, .5 and 1 points: .5 ± 1.24. Within the noise, and maybe 1.74 points behind.
    unsure = candidate("fedpft", [0.900, 0.905, 0.910], 10)
    assert choose_cheapest_candidate_near_best([best, close, unsure]).name == "afl"
    assert choose_cheapest_candidate_near_best([best, unsure]).name == "moon"


def test_five_folds_hold_each_training_sample_out_once_and_leave_the_test_samples_alone():
    digits = load("digits")
    images = {image.numpy().tobytes() for image in digits.x_test}
    held_out = []
    for seed in range(5):
        fold = hold_out_fifth_as_test_samples(digits, seed)
        assert len(fold.y_train) + len(fold.y_test) == len(digits.y_train)
        held_out += [image.numpy().tobytes() for image in fold.x_test]
        assert not images & {image.numpy().tobytes() for image in fold.x_train}
    assert sorted(held_out) == sorted(image.numpy().tobytes() for image in digits.x_train)
    first = hold_out_fifth_as_test_samples(digits, 0)
    again = hold_out_fifth_as_test_samples(digits, 5)  # another order
    assert not (len(first.y_test) == len(again.y_test) and first.x_test.equal(again.x_test))


def test_a_fold_keeps_whose_each_sample_is():
    heart = load("heart")
    fold = hold_out_fifth_as_test_samples(heart, 3)
    assert fold.client_train is not None
    assert fold.client_train.bincount().shape == heart.client_train.bincount().shape
    owners = {
        row.numpy().tobytes(): client
        for row, client in zip(heart.x_train, heart.client_train.tolist(), strict=True)
    }
    for row, client in zip(fold.x_train, fold.client_train.tolist(), strict=True):
        assert owners[row.numpy().tobytes()] == client


@pytest.mark.slow
def test_a_rehearsal_runs_the_shortlist_and_leaves_no_data_set_behind():
    before = set(DATASETS)
    answers = Answers(forget=True)
    result = which("heart", answers=answers, seconds=60, seeds=3, epochs=1)
    (federation,) = result.federations
    shortlist = make_shortlist_with_closed_forms(
        load_stored_federations(), answers, allows_image_options=False
    )
    assert set(names(federation.candidates)) == set(shortlist)
    assert all(len(c.accuracy) == 3 for c in federation.candidates)
    assert f"answer: {choose_cheapest_candidate_near_best(federation.candidates).name}," in str(
        result
    )
    assert "on the test samples:" in str(result)
    assert set(DATASETS) == before


def test_the_picture_of_a_rehearsal_has_the_answer_of_its_text_in_bold():
    moon = candidate("moon", [0.900, 0.910, 0.920], 40)
    cheapest_tie = candidate("fedpft", [0.900, 0.905, 0.910], 10)
    answer = choose_cheapest_candidate_near_best([moon, cheapest_tie])
    rehearsed = StudiedFederation("mine", "mine", [moon, cheapest_tie], answer.name)
    frontier = make_frontier_or_none_if_nothing_fits(rehearsed, Answers())
    assert frontier.ties[0] == cheapest_tie.title
    assert frontier.recommended_name == moon.title
    picture = draw_frontiers([frontier], setting="3 seeds")
    bold = [text.get_text() for text in picture.figure.axes[0].texts if text.get_weight() == "bold"]
    assert bold == [moon.title]
    assert f"the answer is {moon.title}" in picture.alt
    studied = make_frontier_or_none_if_nothing_fits(
        StudiedFederation("a", "a", [moon, cheapest_tie]), Answers()
    )
    assert studied.recommended_name == cheapest_tie.title


@pytest.mark.parametrize(("samples", "seeds"), [(10_000, 5), (1000, 5), (500, 10), (142, 20)])
def test_small_data_are_rehearsed_with_more_seeds(samples, seeds):
    assert choose_seed_count_of_rehearsal(samples) == seeds


@pytest.fixture(scope="module")
def federations():
    return load_stored_federations()


@pytest.mark.parametrize("said", list(product((None, False, True), repeat=4)))
def test_every_combination_of_answers_is_answered_or_says_why_not(said, federations):
    answers = Answers(*said)
    sentence = describe_rule_and_its_regret(federations, answers)
    found = re.match(r"(?:for images of letters and digits )?use ([^,]+),", sentence)
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
    assert not Answers(once=True).is_method_allowed("fens")
    assert Answers().is_method_allowed("fens")
    assert not Answers().is_method_allowed("centralized")


def test_stored_federations_have_ten_seeds_where_claims_are_made(federations):
    assert {f.data for f in federations} >= {"digits", "glyphs:16g", "mnist:5k", "heart"}
    for federation in federations:
        if federation.data in ("digits", "heart"):
            assert all(len(c.accuracy) == 10 for c in federation.candidates if c.method == "afl")
    assert len(list_cases_of_answers_with_names()) == 6


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"seeds": 1}])
def test_a_wrong_budget_is_one_sentence(wrong):
    with pytest.raises(UsageError, match=r"such as \d+\."):
        which("digits", **wrong)


@pytest.mark.slow
def test_the_guide_shows_what_the_command_prints():
    """`FEDLAB_NB_WRITE_GUIDE=1` puts the present text into the page."""
    page = GUIDE.read_text(encoding="utf-8")
    assert "(../images/which.svg)" in page
    head, rest = page.split("```text\n", 1)
    tail = rest[rest.index("```\n") :]
    expected = f"{head}```text\n{describe_stored_study()}\n{tail}"
    if os.environ.get("FEDLAB_NB_WRITE_GUIDE"):
        GUIDE.write_text(expected, encoding="utf-8")
        page = expected
    assert page == expected


def test_the_guide_says_what_the_runs_on_other_data_printed():
    """How often the rule was right on data that it had not seen, with both shortlists."""
    results = (TESTS / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    block = results.split("<!-- fresh: ")[1].split("<!-- end of fresh -->")[0]
    page = GUIDE.read_text(encoding="utf-8")
    summaries = re.findall(r": (among the ties in .* at most [\d.]+)\.$", block, re.MULTILINE)
    assert len(summaries) == 2
    for summary in summaries:
        assert summary in page
    rows = [line.split(" | ") for line in block.splitlines() if line.endswith(" |")]
    verdicts = [cells[4] for cells in rows if cells[4] in ("yes", "no")]
    assert f"in {verdicts.count('yes')} of {len(verdicts)} cases" in summaries[0]


@pytest.mark.slow
def test_the_picture_of_the_guide_has_the_present_numbers():
    """`FEDLAB_NB_WRITE_GUIDE=1` draws it anew. The file has the picture's text, with each number."""
    picture = which().plot()
    if os.environ.get("FEDLAB_NB_WRITE_GUIDE"):
        PICTURE.write_text(make_standalone_svg_of_picture(picture), encoding="utf-8")
    said = re.search(r"<desc>(.*?)</desc>", PICTURE.read_text(encoding="utf-8"), re.DOTALL)
    assert html.unescape(said[1]) == picture.alt


@pytest.mark.slow
def test_picture_and_text_name_the_same_methods_for_every_federation():
    """The picture's table against the text, which is made another way."""
    answers = Answers(once=True)
    result = which(answers=answers)
    table = result.plot().table
    for federation in load_stored_federations():
        rows = [row for row in table if row["federation"] == federation.name]
        lines = describe_frontier_ties_and_answer(federation, answers)
        not_beaten = [line.strip().split(": ")[0] for line in lines if line.startswith("    ")]
        titles = {c.name: c.title for c in federation.candidates}
        drawn = [row["method"] for row in rows if "not beaten" in row["place"]]
        assert drawn == [titles[name] for name in not_beaten]
        cheapest = [row["method"] for row in rows if "cheapest" in row["place"]]
        answer = lines[-1].removeprefix("  answer: ").partition(", the cheapest")[0]
        assert cheapest == [titles[answer]]


@pytest.mark.slow
def test_a_notebook_shows_picture_and_text_and_answers_narrow_both():
    data, metadata = which(answers=Answers(once=True))._repr_mimebundle_()
    assert data["text/html"].count("data:image/svg+xml") == 1
    assert data["image/png"].startswith(b"\x89PNG")
    assert "FENS" not in metadata["image/png"]["alt"]
    assert "FENS" in which()._repr_mimebundle_()[1]["image/png"]["alt"]
    assert "digits, α = 0.3" in data["text/plain"]


@pytest.mark.slow
def test_one_federation_can_be_drawn_and_an_unknown_one_is_refused():
    one = which().plot("heart, four hospitals")
    assert {row["federation"] for row in one.table} == {"heart, four hospitals"}
    with pytest.raises(UsageError, match="heart, four hospitals"):
        which().plot("heart, four hospital")
    with pytest.raises(UsageError, match="without a data set nothing is run"):
        which(alpha=0.1)


@pytest.mark.slow
def test_the_command_writes_the_picture(tmp_path, capsys):
    file = tmp_path / "which.svg"
    assert main(["which", "--once", "yes", "--picture", str(file)]) == 0
    assert file.read_text(encoding="utf-8").count("<svg") == 1
    file.write_text("mine", encoding="utf-8")
    assert main(["which", "--picture", str(file)]) == 2
    assert file.read_text(encoding="utf-8") == "mine"
