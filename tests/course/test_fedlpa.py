"""Lesson 07: the exercises by another way, worked numbers against another derivation, statements against real runs."""

import numpy as np
import pytest
import torch
from lessons import LESSONS
from toy_outcomes import toy

from fedlab_nb.course.fedlpa import lesson
from fedlab_nb.labs.fedlpa.two_weights import two_weights


def run(method, seed, accuracy, init="same", **options):
    return toy(method, accuracy, options=options, settings={"seed": seed, "init": init})


def pairs(damping, gaps):
    """Runs of both solvers, one pair a seed; `gaps` in points."""
    outcomes = []
    for seed, gap in enumerate(gaps):
        outcomes.append(run("fedlpa", seed, 0.3, damping=damping, solver="ea", iterations=1000))
        outcomes.append(run("fedlpa", seed, 0.3 + gap / 100, damping=damping, solver="cg", iterations=7))
    return outcomes


CLEAR, NOISE = pairs(1e-6, [50, 60, 40]), pairs(1e-2, [-1, 1, 0])


def test_exercise_2_is_what_a_client_sends():

    from fedlab_nb.comm import size
    from fedlab_nb.methods.fedlpa.client import LocalPosterior

    network = torch.nn.Sequential(torch.nn.Linear(20, 10))
    sent = LocalPosterior.measure(network, torch.rand(3, 20), torch.tensor([0, 1, 2])).upload(1e-3, "one")
    assert lesson.q2.problem.check(size(sent) / 4).state == "right"


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (CLEAR, "wrong", "within the noise"),
        (CLEAR + NOISE, "right", "Clear at λ_damp = 1e-06: +50, +60, +40 points, mean +50 ± 25."),
        (CLEAR[:4] + NOISE, "wrong", "λ_damp = 1e-06 has 2 seeds"),
        (
            [run("fedlpa", s, 0.9, damping=1e-6, solver="cg", pi="one") for s in range(3)]
            + [run("fedlpa", s, 0.2, damping=1e-6, solver="ea", pi="trace") for s in range(3)]
            + NOISE,
            "wrong",
            "clearly better",
        ),
    ],
)
def test_exercise_3(record, state, words):
    verdict = lesson.q3.problem.check(record)
    assert verdict.state == state
    assert words in verdict.message


def starts(fedavg, fedlpa, common, seeds=3):
    outcomes = []
    for seed in range(seeds):
        outcomes += [run("fedavg", seed, fedavg, "different"), run("fedlpa", seed, fedlpa, "different")]
        outcomes.append(run("fedlpa", seed, common))
    return outcomes


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (starts(0.15, 0.85, 0.86), "right", "FedLPA − FedAvg with different starts: +70, +70, +70 points"),
        (starts(0.15, 0.85, 0.86, seeds=2), "wrong", "2 seeds with different starts"),
        (starts(0.15, 0.50, 0.86), "wrong", "different − same start: -36"),
        (starts(0.80, 0.85, 0.86), "wrong", "different starts: +5"),
    ],
)
def test_exercise_4(record, state, words):
    verdict = lesson.q4.problem.check(record)
    assert verdict.state == state
    assert words in verdict.message


@pytest.mark.slow
def test_solutions_support_their_claims():
    assert "Supported by your runs" in repr(lesson.q3.solution()) and "Supported" in repr(lesson.q4.solution())


def test_the_upload_is_what_the_ledger_counts():
    text = LESSONS["07_fedlpa"]
    assert "14084 numbers of 4 bytes = 56.3 kB" in text and "2.14 times" in text
    outcome = lesson.runs("fedlpa", seeds=1, epochs=1)[0]
    assert outcome.bytes_up == 10 * 4 * 14084


def test_shares_are_judged_by_accuracy():
    def made(regmean):
        return [run("fedavg", 0, 0.3), run("fedlpa", 0, 0.9), run("regmean", 0, regmean)]

    assert [lesson.share_of_a(made(a)) for a in (0.6, 0.88, 0.32)] == list(lesson.SHARES)


def test_the_place_of_two_weights():
    assert "(9 · 1 + 1 · 3) / (9 + 1) = 1.2;" in LESSONS["07_fedlpa"]
    assert lesson.PLACES[1].startswith("(1.2, 1.2)") and lesson.place() == lesson.PLACES[1]


@pytest.mark.parametrize("angle", [90, 45])
def test_it_is_what_the_picture_of_two_weights_shows(angle):
    shown = two_weights(angle, 9)
    np.testing.assert_allclose(lesson.product_mean(np.array(shown.means), np.array(shown.precisions)), shown.aggregate)


def by_means(means, precisions):
    """Means in place of both sums: M cancels."""
    weighted = np.einsum("kij,kj->ki", precisions, means)
    return np.linalg.lstsq(precisions.mean(0), weighted.mean(0), rcond=None)[0]


def test_right_however_it_is_written():
    assert lesson.q5.problem.check(by_means).state == "right"
