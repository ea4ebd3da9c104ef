"""Lesson 07: exercises in three states, worked numbers against another derivation, statements against real runs."""

import pytest
from toy_outcomes import toy

from fedlab_nb.course.fedlpa import exercises, lesson


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


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, "unattempted", "No answer"),
        (3, "right", "Yes"),
        (3.0, "right", "Yes"),
        (3.5, "wrong", "plain average"),
        (4, "wrong", "less precise"),
        (27, "wrong", "divide"),
        (9, "wrong", "too large"),
        ("three", "wrong", "a number"),
    ],
)
def test_exercise_1(answer, state, words):
    verdict = lesson.q1.problem.check(answer)
    assert verdict.state == state and words in verdict.message


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (None, "unattempted", "No answer"),
        (496, "right", "Yes"),
        (210, "wrong", "Θ alone"),
        (751, "wrong", "one triangle"),
        (465, "wrong", "biases"),
        (500, "wrong", "too large"),
    ],
)
def test_exercise_2(answer, state, words):
    verdict = lesson.q2.problem.check(answer)
    assert verdict.state == state and words in verdict.message


def test_exercise_2_is_what_a_client_sends():
    import torch

    from fedlab_nb.comm import size
    from fedlab_nb.methods.fedlpa.client import LocalPosterior

    network = torch.nn.Sequential(torch.nn.Linear(20, 10))
    sent = LocalPosterior.measure(network, torch.rand(3, 20), torch.tensor([0, 1, 2])).upload(1e-3, "one")
    assert lesson.q2.problem.check(size(sent) / 4).state == "right"


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        ([], "unattempted", "No runs"),
        (CLEAR, "wrong", "within the noise"),
        (NOISE, "wrong", "clearly better"),
        (CLEAR + NOISE, "right", "Clear at λ_damp = 1e-06: +50, +60, +40 points, mean +50 ± 25."),
        (CLEAR[:4] + NOISE, "wrong", "λ_damp = 1e-06 has 2 seeds"),
        (pairs(1e-6, [-50, -60, -40]) + NOISE, "wrong", "clearly better"),
        ([run("fedavg", 0, 0.5)], "wrong", "no run of fedlpa"),
        ([r for r in CLEAR + NOISE if r.options["solver"] == "cg"], "wrong", "0 seeds with both"),
        # runs that differ in something else too are not pairs
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
        ([], "unattempted", "No runs"),
        (starts(0.15, 0.85, 0.86), "right", "FedLPA − FedAvg with different starts: +70, +70, +70 points"),
        (starts(0.15, 0.85, 0.86, seeds=2), "wrong", "2 seeds with different starts"),
        (starts(0.15, 0.50, 0.86), "wrong", "different − same start: -36"),
        (starts(0.80, 0.85, 0.86), "wrong", "different starts: +5"),
        ([r for r in starts(0.15, 0.85, 0.86) if r.settings.init == "same"], "wrong", "0 seeds with different"),
        ([r for r in starts(0.15, 0.85, 0.86) if r.method == "fedlpa"], "wrong", "0 seeds with different"),
        ([run("fens", 0, 0.9)], "wrong", "no run of fedlpa or fedavg"),
    ],
)
def test_exercise_4(record, state, words):
    verdict = lesson.q4.problem.check(record)
    assert verdict.state == state
    assert words in verdict.message


@pytest.mark.slow
def test_solutions_support_their_claims():
    assert lesson.q3.problem.check(exercises.dampings()).state == "right"
    assert lesson.q4.problem.check(exercises.both_starts()).state == "right"
    assert "Supported by your runs" in repr(lesson.q3.solution()) and "Supported" in repr(lesson.q4.solution())


def test_two_weights_by_hand():
    text = repr(lesson.by_hand())
    assert "weight 1: (9 · 1 + 1 · 3) / (9 + 1) = 1.2;" in text and "The plain average is (2, 2)." in text
    assert "(4 · 1 + 1 · 3) / (4 + 1) = 1.4" in repr(lesson.by_hand(ratio=4))
    assert lesson.PLACES[1].startswith("(1.2, 1.2)") and lesson.place() == lesson.PLACES[1]
    sheet = repr(lesson.angles())
    assert "45 degrees: Both clients' data together give (1.29, 2.47). FedLPA lies at (1.29, 2.47)" in sheet
    assert "Circles: no direction is surer: Both clients' data together give (2.00, 2.00)" in sheet


def test_the_upload_is_what_the_ledger_counts():
    assert "14084 numbers of 4 bytes = 56.3 kB" in repr(lesson.upload()) and "2.14 times" in repr(lesson.upload())
    outcome = lesson.runs("fedlpa", seeds=1, epochs=1)[0]
    assert outcome.bytes_up == 10 * 4 * 14084


def test_one_layer_shows_the_mean_image():
    text = repr(lesson.one_layer())
    assert "Θ is 64 × 65" in text and "4160 × 4160" in text and "largest difference of a pixel 0.0000" in text


def test_shares_are_judged_by_accuracy():
    def made(regmean):
        return [run("fedavg", 0, 0.3), run("fedlpa", 0, 0.9), run("regmean", 0, regmean)]

    assert [lesson.share_of_a(made(a)) for a in (0.6, 0.88, 0.32)] == list(lesson.SHARES)


@pytest.mark.slow
def test_what_the_lesson_says_holds():
    """The sentences of the notebook that name a direction; margins far inside what was measured over three seeds."""
    outcomes, score = lesson.runs(tuple(lesson.LADDER)), lesson.percent
    assert 20 < score(outcomes, "fedavg") < 45 and score(outcomes, "fedlpa") > score(outcomes, "fedavg") + 30
    assert lesson.share_of_a(outcomes) == lesson.SHARES[1]
    assert "within the noise" in repr(lesson.ladder(outcomes)).splitlines()[-1]
    exact, shortcut = (score(lesson.runs("fedlpa", damping=1e-6, solver=name), "fedlpa") for name in ("cg", "ea"))
    assert exact > shortcut + 25
    reports = [o.report for o in outcomes if o.method == "fedlpa"]
    assert all((report.b_diagonal < report.b_damping).mean() > 0.9 for report in reports)  # λ_damp has taken over in B


@pytest.mark.slow
def test_reality_holds():
    text = repr(lesson.reality()).splitlines()
    exact, shortcut = (int(text[0].split(name)[1].split(" %")[0]) for name in ("exact ", "shortcut "))
    assert abs(exact - shortcut) <= 3 and "clear)" in text[1]  # level at the paper's λ_damp
    by_noise = [float(part.split(": ")[1].split(" ")[0]) for part in text[2].split(", ")[2:]]
    assert by_noise[0] > by_noise[3] + 25 and abs(by_noise[0] - by_noise[1]) < 15
    for line in repr(lesson.leak()).splitlines()[:3]:
        assert float(line.split(": ")[-1].split(" %")[0]) >= 90
    assert lesson.steps_needed(damping=1e-6) == lesson.STEPS[0]
    sentence = lesson.solvers(damping=1e-6).sentence
    assert "onjugate gradients after" in sentence and "gradient descent after 1000 steps: residual 0." in sentence
