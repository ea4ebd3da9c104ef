"""Lesson 3: the exercises by another way, worked numbers against another derivation, statements against real runs."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from lessons import read_teachers_page

from fedlab_nb.comm import formulas
from fedlab_nb.course.fens import lesson
from fedlab_nb.data import load
from fedlab_nb.labs import lab
from fedlab_nb.labs.fens.cost import PAPER_RATIO


def test_exercise_1_is_where_the_weighted_sum_turns():
    logits = np.array([[4.0, 0.0], [1.0, 2.0]])
    weights = np.full((2, 2), 0.5)
    for weight, prediction in ((1.24, 0), (1.26, 1)):
        weights[1, 1] = weight
        assert (logits * weights).sum(0).argmax() == prediction


@pytest.fixture(scope="module")
def panel():
    made = lab("fens", epochs=10, rounds=20, seeds=1, methods=[])
    made.run(wait=True)
    yield made
    made.close()


@pytest.mark.slow
def test_the_sum_of_one_sample_is_the_model_s(panel):
    outcome = lesson.get_fens_outcome_of_first_seed(panel)
    text = repr(lesson.show_weighted_sum_of_one_image(panel))
    row = int(re.search(r"Test sample (\d+)", text)[1])
    digits = load("digits")
    x = digits.x_test[row : row + 1].to(outcome.settings.device)
    label = int(digits.y_test[row])
    logits = outcome.model.logits(x)[0]
    assert f"FENS, class {label}: {logits[label]:.1f};" in text
    assert int(logits.argmax()) == label
    assert f"FENS says {label}." in text
    client_logits = outcome.model.experts.compute_logits(x)[0].cpu().numpy()
    wrong = int(client_logits.mean(0).argmax())
    assert wrong != label
    assert f"class {wrong}: (" in text
    assert f"/ 10 = {client_logits[:, wrong].mean():.1f}" in text


# Takes its time as the first test of its file: it waits for the lesson's run.
def test_the_bill_is_the_ledger_s_and_the_paper_s(panel):
    """One-shot: a network of 6,570 numbers of 4 bytes goes up, and one comes down."""
    text = repr(lesson.show_client_bytes(panel))
    one_shot = 2 * 4 * 6570
    by_client = lesson.get_fens_outcome_of_first_seed(panel).ledger.by_client()
    (paid,) = {up + down for up, down in by_client.values()}
    assert lesson.compute_multiple_of_one_shot_bytes(panel, 10) == round(paid / one_shot, 2)
    assert f"= {paid:,}, which is" in text

    # with 20 clients: the formula leaves out the scales of quantised tensors, some per cent
    multiple = formulas.compute_fens_bytes_relative_to_one_shot(6570, 20, 10 * 20, 20)
    assert multiple < lesson.compute_multiple_of_one_shot_bytes(panel, 20) < multiple + 0.2
    ten_models = paid - one_shot - 2 * 4 * 100 * 20  # without the 20 rounds with 100 weights
    twenty_models = 2 * ten_models
    whole = one_shot + twenty_models + 2 * 4 * 200 * 20
    assert f"+ {twenty_models:,} for 20 models" in text
    assert f"= {whole:,}, which is {whole / one_shot:.2f} times" in text
    whole_of_50_rounds = one_shot + twenty_models + 2 * 4 * 200 * 50  # as many as the lesson has
    sentence = f"= {whole_of_50_rounds:,} bytes, {whole_of_50_rounds / one_shot:.2f} times"
    assert sentence in read_teachers_page("3_fens")

    # the paper's aggregator and rounds, with our network
    paper_multiple = formulas.count_fens_bytes_per_client(6570, 10, 4450, 500) / one_shot
    assert f"= {PAPER_RATIO:.4f}." in text
    assert f"= {paper_multiple:.0f} times" in text


def test_the_answer_on_the_weight_of_a_digit_never_seen(monkeypatch):
    report = SimpleNamespace(weights=np.full((4, 5), 0.25))
    outcome = SimpleNamespace(report=report)
    monkeypatch.setattr(lesson, "get_fens_outcome_of_first_seed", lambda panel: outcome)
    report.weights[0, 3] = 0.3
    answers = {0.1: "nearly none", 0.2: "about an equal share", 0.4: "the largest"}
    for weight, answer in answers.items():
        report.weights[1, 3] = weight
        assert lesson.find_right_option_on_client_weight_for_digit(None).startswith(answer)


def test_the_answer_on_a_client_with_a_single_digit(panel, monkeypatch):
    """Client 2 has digit 1 alone, and is trusted more or less than others that have it, too."""
    report = SimpleNamespace(weights=np.full((3, 2), 1 / 3))
    outcome = SimpleNamespace(label_counts=np.array([[5, 5], [5, 4], [0, 9]]), report=report)
    monkeypatch.setattr(lesson, "get_fens_outcome_of_first_seed", lambda panel: outcome)
    for weight, answer in ((0.5, "more"), (0.3, "about as much"), (0.1, "less")):
        report.weights[2, 1] = weight
        assert lesson.find_right_option_on_single_digit_trust(panel) == answer
