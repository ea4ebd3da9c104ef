"""The capstone: what a code word draws, tries without test images, the budget, submissions, the form, the exercises."""

import json
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
COSTS = {
    "fedavg": 50_000,
    "ensemble": 60_000,
    "afl": 9_000,
    "fens": 10_000_000,
}  # of client 1, up and down
VALIDATION, TEST = 0.4321, 0.9876


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(view, "EXERCISES", {})


@pytest.fixture
def runs(store, monkeypatch):
    """Runs that cost nothing: every one is written down, and its accuracy says on which images it was judged."""
    asked = []

    def compare(methods, *, dataset, seed, seeds, **knobs):
        (method,) = methods
        asked.append((method, dataset, seed, seeds, knobs))
        share = (
            TEST
            if bool(
                (
                    dataset.x_test[:9]
                    == desk.draw_random_federation_of_code_word("OAK").final.x_test[:9]
                ).all()
            )
            else VALIDATION
        )
        outcomes = []
        for k in range(seed, seed + seeds):
            ledger = Ledger(2)
            ledger.add(0, "up", "models", 10), ledger.add(1, "up", "models", COSTS[method] - 7)
            ledger.add(1, "down", "models", 7)
            plan = SimpleNamespace(method=SimpleNamespace(leaks=f"what {method} leaks"))
            accuracy, settings = share + (k % 3) / 1000, SimpleNamespace(seed=k)
            outcomes.append(
                SimpleNamespace(accuracy=accuracy, ledger=ledger, plan=plan, settings=settings)
            )
        return outcomes

    monkeypatch.setattr(desk, "compare", compare)
    return asked


@pytest.fixture
def case(runs):
    return capstone.case("oak", name="Ada")


# --------------------------------------------------------------------------------------------------- the code word
def same(a, b):
    parts = ("x_train", "y_train", "x_test", "y_test", "client_train")
    return all(bool((getattr(a, name) == getattr(b, name)).all()) for name in parts)


def test_a_code_word_gives_one_federation():
    first = desk.draw_random_federation_of_code_word("OAK")
    desk.draw_random_federation_of_code_word.cache_clear()
    again = desk.draw_random_federation_of_code_word("OAK")
    assert (
        again is not first
        and again.list_facts_for_server() == first.list_facts_for_server()
        and (again.noisy == first.noisy).all()
    )
    assert same(again.trial, first.trial) and same(again.final, first.final)
    assert (again.trial.digest, again.final.digest) == (first.trial.digest, first.final.digest)
    others = [desk.draw_random_federation_of_code_word(f"WORD {i}") for i in range(6)]
    assert (
        len({tuple(h.sample_counts) for h in others}) == 6 and len({h.source for h in others}) == 2
    )
    with pytest.raises(UsageError, match="The code word is empty"):
        capstone.case(" ")
    assert (
        desk.normalise_code_word("  oak ") == "OAK"
        and capstone.behind("oak").text == capstone.behind("OAK ").text
    )


@pytest.mark.parametrize("word", ["OAK", "HARBOUR"])  # digits, letters
def test_no_test_image_is_in_the_data_set_of_the_tries(word):
    h = desk.draw_random_federation_of_code_word(word)

    def images(*parts):
        return {row.numpy().tobytes() for part in parts for row in part}

    test, validation, trained = (
        images(h.final.x_test),
        images(h.trial.x_test),
        images(h.trial.x_train),
    )
    assert len(test) > 300 and len(validation) > 200
    assert (
        not test & images(h.trial.x_test, h.trial.x_train, h.trial.x_public)
        and not validation & trained
    )
    assert (h.trial.client_train == h.final.client_train).all() and bool(
        (h.trial.x_train == h.final.x_train).all()
    )
    assert h.trial.y_public is None and h.trial.client_train.max() + 1 == h.clients == len(
        h.sample_counts
    )
    assert sum(h.sample_counts) == round(h.share * len(h.trial.x_train))


def test_the_server_sees_neither_the_name_nor_the_true_counts():
    h = desk.draw_random_federation_of_code_word("HARBOUR")
    seen = " ".join(h.list_facts_for_server()) + h.trial.name + " ".join(h.trial.class_names)
    assert "glyph" not in seen and "α" not in seen
    true = np.zeros_like(h.noisy)
    np.add.at(true, (h.trial.client_train.numpy(), h.trial.y_train.numpy()), 1)
    off = np.abs(h.noisy - true)[true > 20]
    assert off.max() > 0 and off.mean() < 3 * desk.NOISE
    picture = capstone.case("HARBOUR").seen()
    assert (
        f"has {max(h.sample_counts)} samples" in picture.sentence
        and len(picture.table) == h.clients
    )
    assert str(h.sample_counts[0]) in str(capstone.case("HARBOUR").facts())


# --------------------------------------------------------------------------------------------------------- the tries
def test_the_choices_of_the_first_guess_are_called_as_the_tries_are(case):
    case.trial("ensemble"), case.trial("fens")
    assert [t.method_title for t in case.record.tries] == capstone.TITLES[
        :2
    ] and capstone.get_best_first_try_title(case) in capstone.TITLES


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
    assert "Validation accuracy 43.3 ± 0.1 % (5 seeds)." in card.text and "60 kB" in card.text
    assert (
        "You had tried it before."
        in case.trial("ensemble", **{"ensemble.rule": "logits"}, epochs="20").text
    )
    case.trial("ensemble")
    assert len(runs) == 2 == len(case.record.tries)
    method, dataset, seed, seeds, knobs = runs[0]
    assert (method, seed, seeds, knobs) == (
        "ensemble",
        0,
        5,
        {"ensemble.rule": "logits", "epochs": "20"},
    )
    assert dataset is desk.draw_random_federation_of_code_word("OAK").trial
    assert case.record.tries[0].bytes == COSTS["ensemble"]
    assert "Within the budget of 315 kB" in case.tries().sentence


def test_test_accuracy_is_nowhere_before_a_submission(case):
    shown = [case.trial(method).text for method in COSTS]
    form = case.form()
    picture = case.tries()
    shown += [
        picture.alt,
        picture.sentence,
        str(picture.table),
        str(case.facts()),
        repr(case.seen()),
    ]
    shown += [str(getattr(child, "value", "")) for child in form.children] + [
        str(vars(case.record))
    ]
    shown.append(case.record.file.read_text())
    assert "43.2" in " ".join(shown) or "0.432" in " ".join(shown)
    assert not any(
        words in " ".join(shown) for words in ("98.8", "98.9", "99 ±", "0.987", "0.988", "0.989")
    )
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
    assert runs == [] and case.record.tries == []


# --------------------------------------------------------------------------------------------------- the submission
def test_what_is_refused_opens_nothing(case, runs):
    for tried, choice, why, words in (
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
        if tried:
            case.trial(tried)
        with pytest.raises(UsageError, match=words):
            case.submit(choice, why)
    assert (
        all(
            dataset is desk.draw_random_federation_of_code_word("OAK").trial
            for _, dataset, *_ in runs
        )
        and case.record.submissions == []
    )


def test_a_second_submission_is_marked_also_after_a_new_start(case, runs):
    case.trial("fedavg"), case.trial("afl")
    first = case.submit(2, WHY)
    assert first.number == 1 and first.submission_order_in_words.startswith(
        "First submission: the test images were opened once"
    )
    assert runs[-1][1] is desk.draw_random_federation_of_code_word("OAK").final and runs[-1][
        2:4
    ] == desk.TEST_SEEDS == (100, 10)
    again = capstone.case(" OAK", name=" Ada ")
    assert [t.method for t in again.record.tries] == [
        "fedavg",
        "afl",
    ] and again.record.tries == case.record.tries
    second = again.submit(1, WHY)
    assert second.submission_order_in_words.startswith(
        "Second submission: the test images had been opened before, with 98.9 %."
    )
    assert (
        second.submission_order_in_words in second.build_markdown()
        and json.loads(second.build_leaderboard_line())["submission"] == 2
    )
    assert capstone.case("OAK", name="Bo").record.tries == []
    case.record.file.write_text("{half\n[]\n" + case.record.file.read_text())
    assert len(capstone.case("OAK", name="Ada").record.tries) == 2  # damaged lines are left out


# ---------------------------------------------------------------------------------------------------------- the form
def press(form, words):
    form.buttons[words].click()
    assert not form.buttons[words].disabled


def test_the_form_tries_submits_and_saves(case, tmp_path):
    form = case.form()
    assert {name for _, name in form.method.options} == {*METHODS} - {"centralized"}
    form.method.value, form.knobs.value = "afl", "epochs=20"
    press(form, "Try")
    assert "Try 1: AFL (epochs = 20)." in form.notes["settings"].value
    assert "AFL (epochs = 20)" in form.tries.value
    form.method.value, form.knobs.value, form.choice.value = "fens", "", 1
    press(form, "Try")
    assert form.choice.value == 1 and "over the budget" in form.tries.value
    form.argument.value, form.folder.value = WHY, str(tmp_path / "out")
    press(form, "Submit")
    press(form, OPEN)
    assert (
        "First submission" in form.reveal.value and form.page.value == form.report.build_body_html()
    )
    press(form, "Save the report")
    assert (tmp_path / "out" / "capstone_OAK_Ada_1.jsonl").is_file()


def test_a_try_has_the_name_that_its_method_had_in_the_list(case):
    form = case.form()
    names = {name: label for label, name in form.method.options}
    assert names["ensemble"] == "mean of probabilities"
    case.trial("ensemble")
    assert case.record.tries[-1].method_title == names["ensemble"]


def test_the_plane_is_no_white_slab_on_a_dark_page(case):
    """This lesson has no panel whose style sheet would turn the picture."""
    form = case.form()
    form.method.value = "afl"
    press(form, "Try")
    assert 'class="fl-still"' in form.plane.value
    assert "img.fl-still" in form.style_sheet.value and form.style_sheet in form.children


def test_each_refusal_stands_at_its_field(case):
    form = case.form()

    def said():
        return {field: note.value for field, note in form.notes.items() if note.value}

    press(form, "Submit")
    assert list(said()) == ["choice"] and "There is no try yet" in said()["choice"]
    press(form, "Save the report")
    assert list(said()) == ["folder"] and "There is no report yet" in said()["folder"]
    form.knobs.value = "epochs 20"
    press(form, "Try")
    assert list(said()) == ["settings"]
    assert "is not a setting; write NAME=VALUE" in said()["settings"]
    case.trial("afl"), case.trial("fens")
    form = case.form()
    form.choice.value, form.argument.value = 2, WHY
    press(form, "Submit")
    assert list(said()) == ["choice"] and "31.7 times the budget" in said()["choice"]
    form.choice.value, form.argument.value = 1, "short"
    press(form, "Submit")
    assert list(said()) == ["argument"] and "5 characters" in said()["argument"]
    assert form.report is None and case.record.submissions == []


def test_before_the_test_images_are_opened_luck_is_named_and_the_question_asked(case):
    case.trial("afl"), case.trial("fens")
    form = case.form()
    form.choice.value, form.argument.value = 1, WHY
    assert form.confirm.layout.display == "none"
    press(form, "Submit")
    assert form.confirm.layout.display == "" and case.record.submissions == []
    gain, spread = estimate_luck_of_best_try(
        2, case.validation_images, case.record.tries[0].validation_band.mean
    )
    assert f"by about {spread:.1f} points by luck alone" in form.question.value
    assert f"would still look {gain:.1f} points better" in form.question.value
    press(form, "Not yet")
    assert form.confirm.layout.display == "none" and case.record.submissions == []
    press(form, "Submit")
    form.expected.value = 40
    press(form, OPEN)
    assert len(case.record.submissions) == 1 and form.confirm.layout.display == "none"
    assert "You expected 40 %." in form.reveal.value and "points too low" in form.reveal.value
    assert "On the test images" in case.tries(form.report).sentence


def test_another_choice_closes_the_question(case):
    case.trial("afl"), case.trial("ensemble")
    form = case.form()
    form.choice.value, form.argument.value = 1, WHY
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
    assert "<img" in form.plane.value and len(case.tries().table) == 2


def test_without_any_try_the_form_speaks_of_none(case):
    assert "so far" not in case.form().plane.value


def test_luck_by_exact_enumeration():
    """The mean of the best of two binomials, by all pairs of outcomes."""
    chances = stats.binom(20, 0.7).pmf(np.arange(21))
    best = sum(chances[a] * chances[b] * max(a, b) for a in range(21) for b in range(21))
    gain, spread = estimate_luck_of_best_try(2, 20, 0.7)
    assert gain == pytest.approx(100 * (best / 20 - 0.7), abs=0.5)
    assert spread == pytest.approx(100 * stats.binom(20, 0.7).std() / 20)


# --------------------------------------------------------------------------------------- the page
def test_the_closing_page_has_guesses_plane_and_both_sentences(case, tmp_path):
    guess = predict("How many for the closing page?", unit="%")
    guess.commit(40), guess.reveal(85)
    case.trial("afl")
    closing = capstone.closing(case)
    closing.friend.value, closing.doubt.value = "Add <up>, do not shout.", "Is 180 enough?"
    closing.folder.value = str(tmp_path / "pages")
    closing.button.click()
    text = closing.file.read_text(encoding="utf-8")
    assert "Add &lt;up&gt;, do not shout." in text and "Is 180 enough?" in text
    assert text.count("data:image/png") == 2 and "Nothing has been submitted yet." in text
    assert any(kept.question == "How many for the closing page?" for kept in load_guesses())
    assert "http" not in text.split("</head>")[1]


def test_a_damaged_book_of_guesses_is_an_empty_one(store):
    guess = predict("Kept?", unit="%")
    guess.commit(40), guess.reveal(85)
    assert len(load_guesses()) >= 1
    get_guess_book_path().write_text('[{"question": 3}', encoding="utf-8")
    assert load_guesses() == []
    guess.commit(85)
    assert [(kept.question, kept.gap) for kept in load_guesses()] == [("Kept?", "very near")]


def test_a_guess_under_old_words_counts_for_the_new_ones(store):
    """Kept once as "Who is ill? Which approach wins …", it is there under the words of the lesson."""
    new_words = read_toml("course/kit/reworded.toml")
    for old, new in new_words.items():
        guess = predict(old, unit="%")
        guess.commit(40), guess.reveal(85)
        assert [kept.question for kept in load_guesses()][-1] == new
    again = predict(new, unit="%")
    again.commit(85), again.reveal(85)
    assert [kept.question for kept in load_guesses()] == list(new_words.values())
    assert load_guesses()[-1].gap == "very near"
    assert all(f'predict("{new}"' in "".join(SOURCES.values()) for new in new_words.values())


def test_the_form_says_what_can_be_set(case):
    form = case.form()
    form.method.value = "fens"
    assert (
        "rounds = 50: " in form.help.value
        and "bits = 8: " in form.help.value
        and "model=mlp:32" in form.help.value
    )
    methods = [name for name in METHODS if name != "centralized"]
    for name in methods:
        for line in case.list_knob_descriptions(name)[:-1]:
            assert case._check_knobs_and_format_values(name, {line.split(" = ")[0]: 1})


def test_a_real_try_and_a_real_submission(store):
    case = capstone.case("OAK", name="real")
    assert "Validation accuracy" in case.trial("afl").text
    made = case.submit(1, WHY)
    assert (
        sorted(made.test) == list(range(100, 110))
        and made.bytes == made.tries[0].bytes < case.budget_in_bytes
    )
    assert (
        abs(made.test_band.mean - made.tries[0].validation_band.mean) < 0.1
        and "second moments" in made.leaks
    )
    assert made.test_band.half_width < 0.05
