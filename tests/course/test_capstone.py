"""The capstone: what a code word draws, tries without test images, the budget, submissions, the form, the exercises."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from lessons import SOURCES
from scipy import stats

from fedlab_nb.comm import Ledger
from fedlab_nb.course import capstone, predict
from fedlab_nb.course.capstone import desk
from fedlab_nb.course.capstone.form import OPEN, estimate_luck_of_best_try
from fedlab_nb.course.kit import view
from fedlab_nb.course.kit.guess_book import get_guess_book_path, load_guesses
from fedlab_nb.declared import read_toml
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS

WHY = "It is the best one within the budget."
# {method: bytes of client 1, up and down}
COSTS = {
    "fedavg": 50_000,
    "ensemble": 60_000,
    "afl": 9_000,
    "fens": 10_000_000,
}
VALIDATION_ACCURACY = 0.4321
TEST_ACCURACY = 0.9876


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(view, "EXERCISES", {})


@pytest.fixture
def runs(store, monkeypatch):
    """The calls that would run methods; nothing is run. The accuracies say which images were judged."""
    calls = []
    test_images = desk.draw_random_federation_of_code_word("OAK").final.x_test

    def compare_without_running(methods, *, dataset, seed, seeds, **knobs):
        (method,) = methods
        calls.append((method, dataset, seed, seeds, knobs))
        has_test_images = bool((dataset.x_test[:9] == test_images[:9]).all())
        accuracy = TEST_ACCURACY if has_test_images else VALIDATION_ACCURACY
        outcomes = []
        for run_seed in range(seed, seed + seeds):
            ledger = Ledger(2)
            ledger.add(0, "up", "models", 10)
            ledger.add(1, "up", "models", COSTS[method] - 7)
            ledger.add(1, "down", "models", 7)
            outcome = SimpleNamespace(
                accuracy=accuracy + (run_seed % 3) / 1000,
                ledger=ledger,
                plan=SimpleNamespace(method=SimpleNamespace(leaks=f"what {method} leaks")),
                settings=SimpleNamespace(seed=run_seed),
            )
            outcomes.append(outcome)
        return outcomes

    monkeypatch.setattr(desk, "compare", compare_without_running)
    return calls


@pytest.fixture
def case(runs):
    return capstone.case("oak", name="Ada")


# --------------------------------------------------------------------------------------------------- the code word
def assert_same_dataset(a, b):
    for name in ("x_train", "y_train", "x_test", "y_test", "client_train"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert a.digest == b.digest


def test_a_code_word_gives_one_federation():
    first = desk.draw_random_federation_of_code_word("OAK")
    desk.draw_random_federation_of_code_word.cache_clear()
    again = desk.draw_random_federation_of_code_word("OAK")
    assert again is not first
    assert again.list_facts_for_server() == first.list_facts_for_server()
    assert (again.noisy == first.noisy).all()
    assert_same_dataset(again.trial, first.trial)
    assert_same_dataset(again.final, first.final)
    others = [desk.draw_random_federation_of_code_word(f"WORD {i}") for i in range(6)]
    assert len({tuple(hidden.samples_per_client) for hidden in others}) == 6
    assert len({hidden.source for hidden in others}) == 2
    with pytest.raises(UsageError, match="The code word is empty"):
        capstone.case(" ")
    assert desk.normalise_code_word("  oak ") == "OAK"
    assert capstone.behind("oak").text == capstone.behind("OAK ").text


@pytest.mark.parametrize("word", ["OAK", "HARBOUR"])  # digits, letters
def test_no_test_image_is_in_the_data_set_of_the_tries(word):
    hidden = desk.draw_random_federation_of_code_word(word)
    trial = hidden.trial
    final = hidden.final

    def collect_images(x):
        return {image.numpy().tobytes() for image in x}

    test = collect_images(final.x_test)
    validation = collect_images(trial.x_test)
    training = collect_images(trial.x_train)
    public = collect_images(trial.x_public)
    assert len(test) > 300
    assert len(validation) > 200
    assert not test & (validation | training | public)
    assert not validation & training
    assert (trial.client_train == final.client_train).all()
    assert (trial.x_train == final.x_train).all()
    assert trial.y_public is None
    assert trial.client_train.max() + 1 == hidden.clients == len(hidden.samples_per_client)
    assert sum(hidden.samples_per_client) == round(hidden.share * len(trial.x_train))


def test_the_server_sees_neither_the_name_nor_the_true_counts():
    hidden = desk.draw_random_federation_of_code_word("HARBOUR")
    trial = hidden.trial
    texts = [*hidden.list_facts_for_server(), trial.name, *trial.class_names]
    assert "glyph" not in " ".join(texts)
    assert "α" not in " ".join(texts)
    true_counts = np.zeros_like(hidden.noisy)
    np.add.at(true_counts, (trial.client_train.numpy(), trial.y_train.numpy()), 1)
    errors = np.abs(hidden.noisy - true_counts)[true_counts > 20]
    assert errors.max() > 0
    assert errors.mean() < 3 * desk.NOISE
    picture = capstone.case("HARBOUR").seen()
    assert f"has {max(hidden.samples_per_client)} samples" in picture.sentence
    assert len(picture.table) == hidden.clients
    assert str(hidden.samples_per_client[0]) in str(capstone.case("HARBOUR").facts())


# --------------------------------------------------------------------------------------------------------- the tries
def test_the_choices_of_the_first_guess_are_called_as_the_tries_are(case):
    case.trial("ensemble")
    case.trial("fens")
    assert [result.method_title for result in case.record.tries] == capstone.TITLES[:2]
    assert capstone.get_best_first_try_title(case) in capstone.TITLES


def test_the_best_way_of_the_hospitals_has_the_highest_mean():
    shares = {"local": 0.7, "fedavg": 0.8, "afl": 0.9, "centralized": 0.6}
    assert (
        capstone.get_most_accurate_hospital_way(SimpleNamespace(mean=shares.get))
        == capstone.WAYS["afl"]
    )


def test_tries_are_judged_on_validation_images_and_listed(case, runs):
    card = case.trial("ensemble", epochs=20, **{"ensemble.rule": "logits"})
    assert card.text.startswith(
        "Try 1: FedENS: mean of logits (ensemble.rule = logits, epochs = 20)."
    )
    assert "Validation accuracy 43.3 ± 0.1 % (5 seeds)." in card.text
    assert "60 kB" in card.text
    same_again = case.trial("ensemble", **{"ensemble.rule": "logits"}, epochs="20")
    assert "You had tried it before." in same_again.text
    case.trial("ensemble")
    assert len(runs) == 2 == len(case.record.tries)
    method, dataset, seed, seeds, knobs = runs[0]
    assert (method, seed, seeds) == ("ensemble", 0, 5)
    assert knobs == {"ensemble.rule": "logits", "epochs": "20"}
    assert dataset is desk.draw_random_federation_of_code_word("OAK").trial
    assert case.record.tries[0].bytes == COSTS["ensemble"]
    assert "Within the budget of 315 kB" in case.tries().sentence


def test_test_accuracy_is_nowhere_before_a_submission(case):
    shown = [case.trial(method).text for method in COSTS]
    form = case.form()
    picture = case.tries()
    shown += [picture.alt, picture.sentence, str(picture.table)]
    shown += [str(case.facts()), repr(case.seen())]
    shown += [str(getattr(child, "value", "")) for child in form.children]
    shown += [str(vars(case.record)), case.record.file.read_text()]
    text = " ".join(shown)
    assert "43.2" in text or "0.432" in text
    for test_accuracy in ("98.8", "98.9", "99 ±", "0.987", "0.988", "0.989"):
        assert test_accuracy not in text
    assert "98.9 ± 0.1 %" in case.submit(1, WHY).build_markdown()


def test_what_a_capstone_does_not_allow(case, runs):
    for method, knobs, words in (
        ("fenz", {}, "Unknown method 'fenz'"),
        ("centralized", {}, "needs the clients' samples in one place"),
        ("fedavg", {"alpha": 1}, "'alpha' cannot be set for fedavg"),
        ("fedavg", {"dataset": "digits"}, "'dataset' cannot be set"),
        ("fedavg", {"seed": 3}, "'seed' cannot be set"),
        ("fedavg", {"fens.rounds": 3}, "'fens.rounds' cannot be set"),
    ):
        with pytest.raises(UsageError, match=words):
            case.trial(method, **knobs)
    assert runs == []
    assert case.record.tries == []


# --------------------------------------------------------------------------------------------------- the submission
def test_what_is_refused_opens_nothing(case, runs):
    # a method that is tried before, the choice, its argument, and what the refusal says
    for method, choice, why, words in (
        ("", 1, WHY, "There is no try yet"),
        (
            "fens",
            1,
            WHY,
            r"31\.7 times the budget of 315 kB.*or try a method that sends less",
        ),
        ("afl", 1, WHY, "FENS costs a client 10 MB, .* so it cannot be submitted"),
        ("", None, WHY, "No try is chosen yet; choose one from 1 to 2"),
        ("", 4, WHY, "There is no try"),
        ("", "2", WHY, "There is no try"),
        ("", 2, " good ", "Your argument has 4 characters"),
    ):
        if method:
            case.trial(method)
        with pytest.raises(UsageError, match=words):
            case.submit(choice, why)
    trial = desk.draw_random_federation_of_code_word("OAK").trial
    for _, dataset, *_ in runs:
        assert dataset is trial
    assert case.record.submissions == []


def test_a_second_submission_is_marked_also_after_a_new_start(case, runs):
    case.trial("fedavg")
    case.trial("afl")
    first = case.submit(2, WHY)
    assert first.number == 1
    assert first.submission_order_in_words.startswith(
        "First submission: the test images were opened once"
    )
    _, dataset, seed, seeds, _ = runs[-1]
    assert dataset is desk.draw_random_federation_of_code_word("OAK").final
    assert (seed, seeds) == desk.TEST_SEEDS == (100, 10)
    again = capstone.case(" OAK", name=" Ada ")
    assert [result.method for result in again.record.tries] == ["fedavg", "afl"]
    assert again.record.tries == case.record.tries
    second = again.submit(1, WHY)
    assert second.submission_order_in_words.startswith(
        "Second submission: the test images had been opened before, with 98.9 %."
    )
    assert second.submission_order_in_words in second.build_markdown()
    assert json.loads(second.build_leaderboard_json_line())["submission"] == 2
    assert capstone.case("OAK", name="Bo").record.tries == []
    case.record.file.write_text("{half\n[]\n" + case.record.file.read_text())
    assert len(capstone.case("OAK", name="Ada").record.tries) == 2  # damaged lines are left out


# ---------------------------------------------------------------------------------------------------------- the form
def press(form, label):
    form.buttons[label].click()
    assert not form.buttons[label].disabled


@pytest.mark.slow
def test_the_form_tries_submits_and_saves(case, tmp_path):
    form = case.form()
    assert {name for _, name in form.method.options} == {*METHODS} - {"centralized"}
    form.method.value = "afl"
    form.knobs.value = "epochs=20"
    press(form, "Try")
    assert "Try 1: AFL (epochs = 20)." in form.notes["settings"].value
    assert "AFL (epochs = 20)" in form.tries.value
    form.method.value = "fens"
    form.knobs.value = ""
    form.choice.value = 1
    press(form, "Try")
    assert form.choice.value == 1
    assert "over the budget" in form.tries.value
    form.argument.value = WHY
    form.folder.value = str(tmp_path / "out")
    press(form, "Submit")
    press(form, OPEN)
    assert "First submission" in form.reveal.value
    assert form.page.value == form.report.build_body_html()
    press(form, "Save the report")
    assert (tmp_path / "out" / "capstone_OAK_Ada_1.jsonl").is_file()


def test_a_try_has_the_name_that_its_method_had_in_the_list(case):
    form = case.form()
    names = {name: label for label, name in form.method.options}
    assert names["ensemble"] == "mean of probabilities"
    case.trial("ensemble")
    assert case.record.tries[-1].method_title == names["ensemble"]


def test_the_plane_is_no_white_slab_on_a_dark_page(case):
    form = case.form()
    form.method.value = "afl"
    press(form, "Try")
    assert form.plane.value.count("data:image/svg+xml") == 1


def test_each_refusal_stands_at_its_field(case):
    def assert_only_note(form, field, words):
        notes = {name: note.value for name, note in form.notes.items() if note.value}
        assert list(notes) == [field]
        assert words in notes[field]

    form = case.form()
    press(form, "Submit")
    assert_only_note(form, "choice", "There is no try yet")
    press(form, "Save the report")
    assert_only_note(form, "folder", "There is no report yet")
    form.knobs.value = "epochs 20"
    press(form, "Try")
    assert_only_note(form, "settings", "is not a setting; write NAME=VALUE")
    case.trial("afl")
    case.trial("fens")
    form = case.form()
    form.choice.value = 2
    form.argument.value = WHY
    press(form, "Submit")
    assert_only_note(form, "choice", "31.7 times the budget")
    form.choice.value = 1
    form.argument.value = "short"
    press(form, "Submit")
    assert_only_note(form, "argument", "5 characters")
    assert form.report is None
    assert case.record.submissions == []


def test_before_the_test_images_are_opened_luck_is_named_and_the_question_asked(case):
    case.trial("afl")
    case.trial("fens")
    form = case.form()
    form.choice.value = 1
    form.argument.value = WHY
    assert form.confirm.layout.display == "none"
    press(form, "Submit")
    assert form.confirm.layout.display == ""
    assert case.record.submissions == []
    accuracy = case.record.tries[0].validation_band.mean
    gain, spread = estimate_luck_of_best_try(2, case.validation_images, accuracy)
    assert f"by about {spread:.1f} points by luck alone" in form.question.value
    assert f"would still look {gain:.1f} points better" in form.question.value
    press(form, "Not yet")
    assert form.confirm.layout.display == "none"
    assert case.record.submissions == []
    press(form, "Submit")
    form.expected.value = 40
    press(form, OPEN)
    assert len(case.record.submissions) == 1
    assert form.confirm.layout.display == "none"
    assert "You expected 40 %." in form.reveal.value
    assert "points too low" in form.reveal.value
    assert "On the test images" in case.tries(form.report).sentence


def test_another_choice_closes_the_question(case):
    case.trial("afl")
    case.trial("ensemble")
    form = case.form()
    form.choice.value = 1
    form.argument.value = WHY
    press(form, "Submit")
    form.choice.value = 2
    assert form.confirm.layout.display == "none"


def test_the_plane_waits_for_the_reader_s_own_first_try_and_has_a_point_for_each(case):
    case.trial("ensemble")  # the lesson's
    form = case.form()
    assert "<img" not in form.plane.value
    assert "Tries so far: 1, behind the guess above" in form.plane.value
    form.method.value = "afl"
    press(form, "Try")
    assert "<img" in form.plane.value
    assert len(case.tries().table) == 2


def test_without_any_try_the_form_speaks_of_none(case):
    assert "so far" not in case.form().plane.value


def test_luck_by_exact_enumeration():
    """The mean of the better of two binomial counts, by all pairs of counts."""
    counts = np.arange(21)
    probabilities = stats.binom(20, 0.7).pmf(counts)
    better = np.maximum.outer(counts, counts)
    mean_of_better = (np.outer(probabilities, probabilities) * better).sum()
    gain, spread = estimate_luck_of_best_try(2, 20, 0.7)
    assert gain == pytest.approx(100 * (mean_of_better / 20 - 0.7), abs=0.5)
    assert spread == pytest.approx(100 * stats.binom(20, 0.7).std() / 20)


# --------------------------------------------------------------------------------------- the page
def test_the_closing_page_has_guesses_plane_and_both_sentences(case, tmp_path):
    guess = predict("How many for the closing page?", unit="%")
    guess.commit(40)
    guess.reveal(85)
    case.trial("afl")
    closing = capstone.closing(case)
    closing.friend.value = "Add <up>, do not shout."
    closing.doubt.value = "Is 180 enough?"
    closing.folder.value = str(tmp_path / "pages")
    closing.button.click()
    text = closing.file.read_text(encoding="utf-8")
    assert "Add &lt;up&gt;, do not shout." in text
    assert "Is 180 enough?" in text
    assert text.count("data:image/svg+xml") == 2
    assert ":root{color-scheme:light}" in text
    assert "Nothing has been submitted yet." in text
    assert any(kept.question == "How many for the closing page?" for kept in load_guesses())
    body = text.split("</head>")[1]
    # A picture in an address of its own can load nothing, and names the namespace of SVG.
    assert "http" not in re.sub(r'src="data:[^"]*"', "", body)


def test_a_damaged_book_of_guesses_is_an_empty_one(store):
    guess = predict("Kept?", unit="%")
    guess.commit(40)
    guess.reveal(85)
    assert len(load_guesses()) >= 1
    get_guess_book_path().write_text('[{"question": 3}', encoding="utf-8")
    assert load_guesses() == []
    guess.commit(85)
    assert [(kept.question, kept.gap) for kept in load_guesses()] == [("Kept?", "very near")]


def test_a_guess_under_old_words_counts_for_the_new_ones(store):
    """A guess that was kept under a question's old words is read under its present ones."""
    new_words = read_toml("course/kit/reworded.toml")
    for old, new in new_words.items():
        guess = predict(old, unit="%")
        guess.commit(40)
        guess.reveal(85)
        assert [kept.question for kept in load_guesses()][-1] == new
    again = predict(new, unit="%")
    again.commit(85)
    again.reveal(85)
    assert [kept.question for kept in load_guesses()] == list(new_words.values())
    assert load_guesses()[-1].gap == "very near"
    all_sources = "".join(SOURCES.values())
    for new in new_words.values():
        assert f'predict("{new}"' in all_sources


def test_the_form_says_what_can_be_set(case):
    form = case.form()
    form.method.value = "fens"
    assert "rounds = 50: " in form.help.value
    assert "bits = 8: " in form.help.value
    assert "model=mlp:32" in form.help.value
    methods = [name for name in METHODS if name != "centralized"]
    for name in methods:
        for line in case.list_knob_description_lines(name)[:-1]:
            knob = line.split(" = ")[0]
            assert case._format_knob_values_or_raise(name, {knob: 1})


def test_a_real_try_and_a_real_submission(store):
    case = capstone.case("OAK", name="real")
    assert "Validation accuracy" in case.trial("afl").text
    report = case.submit(1, WHY)
    assert sorted(report.test) == list(range(100, 110))
    assert report.bytes == report.tries[0].bytes < case.budget_in_bytes
    assert abs(report.test_band.mean - report.tries[0].validation_band.mean) < 0.1
    assert "second moments" in report.leaks
    assert report.test_band.half_width < 0.05
