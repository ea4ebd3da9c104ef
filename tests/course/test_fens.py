"""Lesson 3: the exercises by another way, worked numbers against another derivation, statements against real runs."""

from types import SimpleNamespace

import numpy as np
import pytest
from lessons import teachers_page

from fedlab_nb.comm import formulas
from fedlab_nb.course.fens import lesson
from fedlab_nb.data import load
from fedlab_nb.labs import lab
from fedlab_nb.labs.fens.cost import PAPER_RATIO


def test_exercise_1_by_trying_it():
    z, table = np.array([[4.0, 0.0], [1.0, 2.0]]), np.full((2, 2), 0.5)
    for weight, says in ((1.24, 0), (1.26, 1)):
        table[1, 1] = weight
        assert (z * table).sum(0).argmax() == says


@pytest.fixture(scope="module")
def panel():
    made = lab("fens", epochs=10, rounds=20, seeds=1, methods=[])
    made.run(wait=True)
    yield made
    made.close()


def test_the_sum_for_one_sample_is_the_models(panel):
    outcome, text = (
        lesson.get_fens_outcome_of_first_seed(panel),
        repr(lesson.show_weighted_sum_of_one_image(panel)),
    )
    number = int(text.split("Test sample ")[1].split()[0])
    data = load("digits")
    x, truth = (
        data.x_test[number : number + 1].to(outcome.settings.device),
        int(data.y_test[number]),
    )
    scores = outcome.model.logits(x)[0]
    assert f"FENS, class {truth}: {scores[truth]:.1f};" in text and int(scores.argmax()) == truth
    assert f"FENS says {truth}." in text
    z = outcome.model.experts.compute_logits(x)[0].cpu().numpy()
    wrong = int(z.mean(0).argmax())
    assert (
        wrong != truth
        and f"class {wrong}: (" in text
        and f"/ 10 = {z[:, wrong].mean():.1f}" in text
    )


def test_the_bill_is_the_ledgers_and_the_papers(panel):
    text, page, one_shot = (
        repr(lesson.show_client_bytes(panel)),
        teachers_page("3_fens"),
        2 * 4 * 6570,
    )
    for_20 = formulas.compute_fens_bytes_relative_to_one_shot(
        6570, 20, 10 * 20, 20
    )  # without the scales of quantised tensors, some per cent
    assert for_20 < lesson.compute_multiple_of_one_shot_bytes(panel, 20) < for_20 + 0.2
    (paid,) = {
        sum(both)
        for both in lesson.get_fens_outcome_of_first_seed(panel).ledger.by_client().values()
    }
    assert (
        lesson.compute_multiple_of_one_shot_bytes(panel, 10) == round(paid / one_shot, 2)
        and f"= {paid:,}, which is" in text
    )
    ensemble = paid - one_shot - 2 * 4 * 100 * 20
    whole = one_shot + 2 * ensemble + 2 * 4 * 10 * 20 * 20
    assert (
        f"+ {2 * ensemble:,} for 20 models" in text
        and f"= {whole:,}, which is {whole / one_shot:.2f} times" in text
    )
    whole = one_shot + 2 * ensemble + 2 * 4 * 10 * 20 * 50  # the page has the lesson's 50 rounds
    assert f"= {whole:,} bytes, {whole / one_shot:.2f} times" in page
    papers = (
        formulas.count_fens_bytes_per_client(6570, 10, 4450, 500) / one_shot
    )  # its aggregator and rounds, with our network
    assert f"= {PAPER_RATIO:.4f}." in text and f"= {papers:.0f} times" in text


def test_a_weight_for_a_digit_never_seen(monkeypatch):
    report = SimpleNamespace(weights=np.full((4, 5), 0.25))
    made = SimpleNamespace(report=report)
    monkeypatch.setattr(lesson, "get_fens_outcome_of_first_seed", lambda panel: made)
    report.weights[0, 3] = 0.3
    for weight, words in (
        (0.1, "nearly none"),
        (0.2, "about an equal share"),
        (0.4, "the largest"),
    ):
        report.weights[1, 3] = weight
        assert lesson.choose_answer_on_client_weight_for_digit(None).startswith(words)


def test_who_shouts_is_turned_down(panel, monkeypatch):
    report = SimpleNamespace(weights=np.full((3, 2), 1 / 3))
    made = SimpleNamespace(label_counts=np.array([[5, 5], [5, 4], [0, 9]]), report=report)
    monkeypatch.setattr(lesson, "get_fens_outcome_of_first_seed", lambda panel: made)
    for weight, word in ((0.5, "more"), (0.3, "about as much"), (0.1, "less")):
        report.weights[2, 1] = weight  # of the digit that client 2 alone has nothing but
        assert lesson.choose_answer_on_single_digit_trust(panel) == word
