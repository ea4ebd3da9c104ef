"""Lesson 01: exercises in three states, worked numbers against another derivation, statements against real runs."""

import numpy as np
import pytest
import torch
from toy_outcomes import toy

from fedlab_nb.course.heterogeneity import lesson, weighted_mean
from fedlab_nb.data import federate


def run(method, alpha, seed, accuracy, **other):
    return toy(method, accuracy, options={"of": method}, settings={"alpha": alpha, "seed": seed, **other})


def pairs(alpha, gaps, **other):
    """Runs of both methods, one pair a seed; `gaps` in points."""
    outcomes = []
    for seed, gap in enumerate(gaps):
        outcomes += [run("fedavg", alpha, seed, 0.3, **other), run("ensemble", alpha, seed, 0.3 + gap / 100, **other)]
    return outcomes


CLEAR, NOISE = pairs(0.1, [27, 21, 24]), pairs(0.03, [-4, 4, -4])


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (None, "unattempted"),
        (2.83, "right"),
        (8**0.5, "right"),
        ("2.8", "right"),  # as the lesson rounds such numbers
        ("2,83 classes", "right"),
        ("≈ 2.83 effective classes.", "right"),
        ("", "unattempted"),
        (3, "wrong"),
        (1.04, "wrong"),
        (1.5, "wrong"),
        (9, "wrong"),
    ],
)
def test_exercise_1(answer, state):
    assert lesson.q1.problem.check(answer).state == state


def test_exercise_1_is_what_the_skew_number_says():
    from fedlab_nb.data.partition import skew_of

    answer = skew_of([[20, 10, 10] + [0] * 7]).effective_classes
    assert lesson.q1.problem.check(answer).state == "right"


@pytest.mark.parametrize(
    ("record", "state", "words"),
    [
        ([], "unattempted", "No runs"),
        (CLEAR, "wrong", "within the noise"),
        (NOISE, "wrong", "clearly better"),
        (CLEAR + NOISE, "right", "α = 0.1: +27, +21, +24 points, mean +24 ± 7"),
        (CLEAR[:4] + NOISE, "wrong", "α = 0.1 has 2 seeds"),
        ([r for r in CLEAR + NOISE if r.method == "fedavg"], "wrong", "0 seeds"),
        (pairs(0.1, [-27, -21, -24]) + NOISE, "wrong", "clearly better"),
        ([run("fens", 0.1, 0, 0.9)], "wrong", "no setting has runs of both"),
        # two settings with the same α are not thrown together
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


def test_exercise_2_counts_a_repeated_seed_once():
    assert "has 1 seed with" in lesson.q2.problem.check(pairs(0.1, [20]) * 3).message


@pytest.mark.slow
def test_exercise_2_solution_supports_the_claim():
    assert lesson.q2.problem.check(lesson.solution_runs()).state == "right"
    assert "Supported by your runs" in repr(lesson.q2.solution())


# ------------------------------------------------------------------------------------------------ to build
def by_loop(networks, counts):
    """Adds into arrays of the input, with plain loops."""
    for network, n in zip(networks, counts, strict=True):
        for values in network.values():
            values *= n
    for network in networks[1:]:
        for layer in network:
            networks[0][layer] += network[layer]
    return {layer: (values / sum(counts)).tolist() for layer, values in networks[0].items()}


def by_numpy(networks, counts):
    return {layer: np.average([n[layer] for n in networks], axis=0, weights=counts) for layer in networks[0]}


def by_torch(networks, counts):
    shares = torch.tensor(counts / counts.sum(), dtype=torch.float32)
    stacks = {layer: torch.stack([torch.tensor(n[layer]).float() for n in networks]) for layer in networks[0]}
    return {layer: torch.tensordot(shares, values, 1) for layer, values in stacks.items()}


def stub(networks, counts):
    average = {}
    for layer in networks[0]:
        average[layer] = ...
    return average


def overwritten(networks, counts):
    average = {}
    for network, n in zip(networks, counts, strict=True):
        for layer in network:
            average[layer] = n / sum(counts) * network[layer]
    return average


def whole_numbers(networks, counts):
    return {layer: sum(n // sum(counts) * w[layer] for w, n in zip(networks, counts)) for layer in networks[0]}  # noqa: B905


def stops_after_a_layer(networks, counts):
    average = {}
    for layer in networks[0]:
        average[layer] = sum(n / sum(counts) * network[layer] for network, n in zip(networks, counts, strict=True))
        return average


def begins_with_a_network(networks, counts):
    average = dict(networks[0])
    for layer in average:
        for k in range(1, len(networks)):
            average[layer] = average[layer] + counts[k] / sum(counts) * networks[k][layer]
    return average


def begins_at_1(networks, counts):
    ours = range(1, len(networks))
    return {layer: sum(counts[k] / sum(counts) * networks[k][layer] for k in ours) for layer in networks[0]}


@pytest.mark.parametrize(("answer", "state", "words"), [
    (by_loop, "right", "hidden inputs"),
    (by_numpy, "right", "hidden inputs"),
    (by_torch, "right", "hidden inputs"),
    (None, "unattempted", ""),
    (stub, "unattempted", ""),
    (lambda networks, counts: None, "unattempted", ""),
    (lambda w, n: {layer: np.mean([k[layer] for k in w], axis=0) for layer in w[0]}, "wrong", "counts the same"),
    (overwritten, "wrong", "Only the last client is left"),
    (begins_at_1, "wrong", "The first client is missing"),
    (lambda w, n: by_numpy(w, n[::-1].copy()), "wrong", ""),
    (lambda w, n: by_numpy(w, np.sort(n)), "wrong", "order of size"),
    (lambda w, n: {layer: by_numpy(w, n)[layer].T for layer in w[0]}, "wrong", "rows and columns"),
    (lambda w, n: list(by_numpy(w, n).values()), "wrong", "dict with the keys 'hidden', 'bias', 'output'"),
    (stops_after_a_layer, "wrong", "It lacks 'bias', 'output': is return inside a loop?"),
    (begins_with_a_network, "wrong", "begins with the whole first network. Begin with 0"),
    (lambda w, n: {**by_numpy(w, n), "bias": w[0]["bias"]}, "wrong", "fedavg, in the entry 'bias', has the right"),
    (lambda w, n: w[0]["input"], "wrong", "fedavg stopped with KeyError"),
])  # fmt: skip
def test_exercise_3(answer, state, words):
    verdict = lesson.q3.problem.check(answer)
    assert verdict.state == state and words in verdict.message


def test_exercise_3_names_a_division_of_whole_numbers():
    assert "n // N is a whole number" in lesson.q3.problem.check(whole_numbers).message


def test_exercise_3_is_what_the_method_does():
    from fedlab_nb.methods.base import weighted_mean as of_the_method

    for networks, counts in weighted_mean.hidden_inputs():
        states = [{layer: torch.from_numpy(values) for layer, values in network.items()} for network in networks]
        average, wanted = of_the_method(states, counts.tolist()), weighted_mean.right(networks, counts)
        assert lesson.q3.problem.accepts({layer: average[layer] for layer in wanted}, wanted, ())


def test_two_units_by_hand():
    # f_A(3) = 1·max(0, 3) = 3 and f_B(3) = −max(0, −3) = 0; the mean weights are 0
    text = repr(lesson.two_units())
    assert "x = 3: A says 3, B says 0; mean of the predictions 1.5;" in text
    assert "x = -3: A says 0, B says -3; mean of the predictions -1.5;" in text
    assert text.count("θ = 0, v = 0, which says 0") == 2


def test_one_client_shows_the_federation():
    text = repr(lesson.one_client())
    counts = federate("digits", alpha=0.1, clients=10, seed=0).label_counts[0].tolist()
    assert all(f"{n} × “{digit}”" in text for digit, n in enumerate(counts) if n)
    assert f"{sum(n > 0 for n in counts)} of 10 classes occur" in text


@pytest.mark.slow
def test_what_the_lesson_says_holds():
    """The sentences of the notebook that name a direction; margins far inside what was measured over three seeds."""
    skewed, even, restarted = (
        lesson.runs(list(lesson.NAMES), alpha, init=init)
        for alpha, init in ((0.1, "same"), (100, "same"), (100, "different"))
    )
    score = lesson.percent
    assert score(skewed, "ensemble") > score(skewed, "fedavg") + 10
    assert score(skewed, "fedavg") < score(skewed, "local") + 10
    assert score(even, "fedavg") > score(skewed, "fedavg") + 40
    assert lesson.after_restarting() == lesson.RESTARTS[2]
    assert score(restarted, "ensemble") > 80
    assert 10 < lesson.largest_share(100) < 14 < 20 < lesson.largest_share(1) < 50 < lesson.largest_share(0.1)
    uploads = {o.bytes_up for o in skewed if o.method != "local"}
    assert len(uploads) == 1


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.032, 0.1])
def test_reality_check_holds(alpha):
    """FENS and FedLPA close more than half of the gap between the ensemble and all data in one place, not all of it."""
    outcomes = lesson.runs(("ensemble", "fens", "fedlpa", "centralized"), alpha)
    ensemble, fens, fedlpa, bound = (lesson.percent(outcomes, m) for m in ("ensemble", "fens", "fedlpa", "centralized"))
    for method in (fens, fedlpa):
        assert (ensemble + bound) / 2 < method < bound
    by_logits = lesson.runs(("ensemble",), alpha, rule="logits")
    assert ensemble > lesson.percent(by_logits, "ensemble")
