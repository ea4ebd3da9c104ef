"""Lesson 01: the exercises by another way, worked numbers against another derivation, statements against real runs."""

import io

import pytest
import torch
from lessons import LESSONS
from PIL import Image
from toy_outcomes import toy

from fedlab_nb.course.heterogeneity import lesson
from fedlab_nb.data import federate
from fedlab_nb.data.partition import skew_of
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.plots import png


def run(method, alpha, seed, accuracy, **other):
    return toy(method, accuracy, options={"of": method}, settings={"alpha": alpha, "seed": seed, **other})


def pairs(alpha, gaps, **other):
    """Runs of both methods, one pair a seed; `gaps` in points."""
    outcomes = []
    for seed, gap in enumerate(gaps):
        outcomes += [run("fedavg", alpha, seed, 0.3, **other), run("ensemble", alpha, seed, 0.3 + gap / 100, **other)]
    return outcomes


CLEAR, NOISE = pairs(0.1, [27, 21, 24]), pairs(0.03, [-4, 4, -4])


def test_exercise_1_is_what_the_skew_number_says():
    answer = skew_of([[20, 10, 10] + [0] * 7]).effective_classes
    assert lesson.q1.problem.check(answer).state == "right"


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        (CLEAR, "wrong", "within the noise"),
        (CLEAR + NOISE, "right", "α = 0.1: +27, +21, +24 points, mean +24 ± 7"),
        (CLEAR[:4] + NOISE, "wrong", "α = 0.1 has 2 seeds"),
        (
            pairs(0.1, [20], clients=5) + pairs(0.1, [20], clients=10) + pairs(0.1, [20], clients=20),
            "wrong",
            "1 seed with",
        ),
    ],
)
def test_exercise_2(record, state, words):
    verdict = lesson.q2.problem.check(record)
    assert verdict.state == state
    assert words in verdict.message


def test_exercise_2_says_which_setting_it_is():
    message = lesson.q2.problem.check(CLEAR + pairs(0.1, [-4, 4, -4], clients=20)).message
    assert "Clear at α = 0.1: +27" in message and "noise at α = 0.1, 20 clients: -4" in message


@pytest.mark.slow
def test_exercise_2_solution_supports_the_claim():
    assert "Supported by your runs" in repr(lesson.q2.solution())


def test_two_units_by_hand():
    # f_A(3) = 1·max(0, 3) = 3 and f_B(3) = −max(0, −3) = 0; the mean weights are 0
    text = LESSONS["01_heterogeneity"]
    assert "x = 3: A says 3, B says 0; mean of the predictions 1.5;" in text
    assert "x = -3: A says 0, B says -3; mean of the predictions -1.5;" in text
    assert text.count("θ = 0, v = 0, which says 0") == 2


def test_one_client_shows_the_federation():
    text = LESSONS["01_heterogeneity"]
    counts = federate("digits", alpha=0.1, clients=10, seed=0).label_counts[0].tolist()
    assert all(f"{n} × “{digit}”" in text for digit, n in enumerate(counts) if n)
    assert f"{sum(n > 0 for n in counts)} of 10 classes occur" in text


def test_sheet_of_partitions():
    sheet = lesson.partitions(alphas=(100, 1, 0.1))
    image = Image.open(io.BytesIO(sheet.png()))
    single = Image.open(io.BytesIO(png(next(iter(sheet.pictures.values())))))
    assert image.size == (2 * single.width, 2 * single.height)
    data, metadata = sheet._repr_mimebundle_()
    assert data["text/plain"].count("\n") == 2
    assert all(
        f"α = {alpha}" in data["text/plain"] and f"α = {alpha}" in metadata["image/png"]["alt"]
        for alpha in (100, 1, 0.1)
    )


def by_the_method(networks, counts):
    states = [{layer: torch.from_numpy(values) for layer, values in network.items()} for network in networks]
    return weighted_mean(states, counts.tolist())


def test_right_however_it_is_written():
    assert lesson.q3.problem.check(by_the_method).state == "right"
