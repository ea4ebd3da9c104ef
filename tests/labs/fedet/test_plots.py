"""Fed-ET's pictures: what they say is true on hand-made data, and they hold at the extremes."""

import numpy as np
import pytest

from fedlab_nb.labs.fedet.numbers import answered, first_reached, ranked, thirds
from fedlab_nb.labs.fedet.plots.bound import bound
from fedlab_nb.labs.fedet.plots.dissent import dissent
from fedlab_nb.labs.fedet.plots.expert import Sample, expert
from fedlab_nb.labs.fedet.plots.public import Choice, public
from fedlab_nb.labs.fedet.plots.rounds import one_shot, rounds
from fedlab_nb.labs.fedet.plots.target import target
from fedlab_nb.labs.fedet.plots.temperature import temperature
from fedlab_nb.labs.fedet.plots.traffic import amount, traffic
from fedlab_nb.methods.fedet.model import FedETReport
from fedlab_nb.plots import png

PNG = b"\x89PNG"
SETTING = "digits, α = 0.1, 3 clients, seed 0"
NAMES = ["zero", "one", "two"]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    monkeypatch.setattr("fedlab_nb.plots.style.DPI", 50)


def check(picture, *words):
    assert png(picture).startswith(PNG)
    assert "digits, α = 0.1" in picture.alt
    for word in words:
        assert word in picture.sentence, picture.sentence
    assert picture.table and "nan" not in (picture.sentence + picture.alt).lower()
    return picture


def of(outputs, **options):
    """The picture of one sample with the paper's weights."""
    outputs = np.asarray(outputs, dtype=float)
    variance = outputs.var(1)
    weights = variance / variance.sum() if variance.sum() else np.full(len(outputs), 1 / len(outputs))
    names = [f"c{i}" for i in range(outputs.shape[1])]
    given = {"setting": SETTING, "name": "public sample 17", "names": names, "members": range(len(outputs)), **options}
    return expert(Sample(outputs, weights, variance, weights @ outputs, **given))


# ------------------------------------------------------------------------------------------------------ one sample
def test_expert_says_who_counts_and_who_dissents():
    outputs = [[0.8, 0.1, 0.1], [0.6, 0.2, 0.2], [0.02, 0.02, 0.96]]
    picture = check(of(outputs, names=NAMES), "Public sample 17: the consensus is “two”", "1 of 3 clients follows it")
    assert "Client 2, which counts most, says “two” (96 %)" in picture.sentence
    assert [row["dissents"] for row in picture.table] == ["yes", "yes", "no"]
    marked = check(
        of(outputs, names=NAMES, client=0, klass=1, truth=0, held=np.array([0, 4, 9]), student=np.array([0.9, 0.1, 0])),
        "and it is wrong, it is “zero”", "Client 0 says “zero” (80 %)", "though it has never seen “two”",
        "The server says “zero”",
    )  # fmt: skip
    assert marked.table[0]["own samples of the consensus' class"] == 0
    assert "and it is right" in of(outputs, names=NAMES, truth=2).sentence


def test_expert_uses_the_clients_ids():
    picture = of([[0.9, 0.1], [0.4, 0.6]], members=[7, 3], client=3)
    assert "Client 3 says “c1”" in picture.sentence and [row["client"] for row in picture.table] == [7, 3]


@pytest.mark.parametrize("shape", [(1, 2), (50, 2), (50, 100), (12, 26)])
@pytest.mark.parametrize("image", [None, np.zeros((8, 8)), np.zeros((9, 9, 3))])
def test_expert_at_the_extremes(shape, image):
    outputs = np.random.default_rng(0).dirichlet([0.3] * shape[1], shape[0])
    check(of(outputs, image=image, client=shape[0] - 1, klass=shape[1] - 1, held=np.zeros(shape[0])))
    check(of(np.full(shape, 1 / shape[1]), student=np.full(shape[1], 1 / shape[1])))


# --------------------------------------------------------------------------------------------------- temperature
def test_temperature_names_the_best_and_the_chosen():
    own = {"setting": SETTING, "heats": [0.1, 1, 10]}
    runs = {
        0: ([0.5, 0.6, 0.9], [3, 2, 1], {"equal weights": 0.4}),
        1: ([0.5, 0.6, 0.7], [3, 2, 1], {"equal weights": 0.6}),
    }
    picture = temperature(runs, clients=3, chosen=1.0, **own)
    check(picture, "At τ = 1 the consensus is right for 60 %", "in effect 2.0 of 3 clients", "Best is τ = 10 with 80 %")
    assert "Equal weights 50 %" in picture.sentence and len(picture.table) == 4
    for chosen in (0.1, 10):
        check(temperature({3: runs[0]}, clients=1, chosen=chosen, **own), f"τ = {chosen:g}")


# ------------------------------------------------------------------------------------------------------- dissent
def test_ranked_is_the_area_under_the_curve():
    mass = np.array([0.1, 0.2, 0.3, 0.4])
    assert ranked(mass, np.array([1, 1, 0, 0])) == 1 and ranked(mass, np.array([0, 0, 1, 1])) == 0
    assert ranked(mass, np.array([1, 0, 1, 0])) == 0.75 and ranked(np.ones(4), np.array([1, 0, 1, 0])) == 0.5
    assert np.isnan(ranked(mass, np.ones(4)))


def test_answered_counts_the_samples_up_to_each_threshold():
    share, right = answered(np.array([0.3, 0.1, 0.1, 0.2]), np.array([0, 1, 1, 0]))
    assert share.tolist() == [0.5, 0.75, 1] and right.tolist() == pytest.approx([1, 2 / 3, 0.5])


def test_dissent_says_whether_disagreement_predicts_error():
    mass, right = np.linspace(0, 1, 9), np.arange(9) < 5
    picture = dissent({s: (mass, right, np.arange(9) < 3) for s in (0, 1)}, setting=SETTING, threshold=0.5)
    answers = "dissent ≤ 0.50, it answers 56 % of the samples, and is right for 100 % of these."
    check(picture, "right for 100 %", "and 0 % of the third with the most", answers)
    assert picture.table[0]["consensus right"] == "100 %" and "AUC 1.00" in picture.sentence
    assert [row.get("server right") for row in picture.table] == ["100 %", "0 %", "0 %", None]
    silent = dissent({0: (mass + 0.1, right, right)}, setting=SETTING, threshold=0.0)
    assert "No sample has a dissent ≤" in silent.sentence


@pytest.mark.parametrize("count", [1, 2, 4])
def test_dissent_of_hardly_any_samples(count):
    right = np.ones(count, dtype=bool)
    picture = dissent({0: (np.zeros(count), right, right)}, setting=SETTING, threshold=1.0)
    assert "AUC" not in check(picture, "right for 100 %").sentence


def test_thirds_are_cut_by_dissent():
    assert thirds(np.array([0.9, 0.1, 0.5, 0.2, 0.6, 0.8]), np.array([0, 1, 1, 0, 0, 0])) == [0.5, 0.5, 0]
    assert thirds(np.zeros(2), np.array([1, 0])) == [1, 0, 0]  # an empty third is as its neighbour


# -------------------------------------------------------------------------------------------------------- target
def voices(*dissenters):
    """Of one client and sample each: what it adds to the dissenters' target."""
    return np.array(dissenters, dtype=float)[:, None]


def test_target_is_the_soft_label():
    picture = target(
        np.array([0]),
        voices([0, 0.3, 0.1], [0, 0, 0]),
        NAMES,
        strength=0.5,
        sample=0,
        setting=SETTING,
        members=[0],
        client=0,
        klass=1,
    )
    words = "on sample 0 (“zero”) the dissenters get 17 %", "mostly for “one” and “two”", "as it must for λ_div < 1"
    check(picture, *words)
    assert [row["target"] for row in picture.table] == ["83 %", "12 %", "4 %"]
    own = {"sample": 0, "setting": SETTING, "members": [0]}
    over = target(np.array([0]), voices([0, 0.9, 0.1]), NAMES, strength=3, **own)
    check(over, "they overrule the consensus on 1")
    agreed = target(np.array([2]), voices([0, 0, 0]), NAMES, strength=1, **own)
    check(agreed, "nobody dissents on sample 0, its target is “two” alone")
    check(target(np.array([0]), voices([0, 0.5, 0]), NAMES, strength=0, **own), "get 0 %")


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (50, 2), (50, 100)])
def test_target_at_the_extremes(clients, classes):
    rng = np.random.default_rng(0)
    spoken = rng.dirichlet([0.3] * classes, (clients, 4)) / clients
    names = [f"class number {c}" for c in range(classes)]
    own = {"setting": SETTING, "members": range(clients), "client": clients - 1, "klass": 1}
    check(target(np.zeros(4, dtype=int), spoken, names, strength=4, sample=3, **own))


# -------------------------------------------------------------------------------------------------- public, rounds
def choice(name, values, images=True):
    return Choice(name, dict(enumerate(values)), 0.5, 20, np.zeros((5, 8, 8)) if images else None)


def test_public_compares_over_seeds():
    options = {"setting": SETTING, "title": "By source", "chance": 0.1}
    picture = public([choice("held-out", [0.7, 0.8, 0.75]), choice("noise", [0.3, 0.2, 0.25])], **options)
    check(picture, "Best student: held-out, 75 %; worst: noise, 25 %", "50 ± ")
    near = public([choice("a", [0.7, 0.5, 0.6]), choice("b", [0.5, 0.7, 0.55])], **options)
    check(near, "which is within the noise")
    check(public([choice("a", [0.7], False), choice("b", [0.5], False)], **options, present="a"), "one seed")
    check(public([choice("only one", [0.02])], **options), "Best student: only one, 2 %")


def test_rounds_tells_of_the_marked_one():
    curves = {
        "consensus": {1: 0.4, 2: 0.6},
        "server_before": {1: 0.1, 2: 0.2},
        "server_after": {1: 0.3, 2: 0.5},
        "clients": {1: 0.2, 2: 0.3},
        "small_before": {1: 0.1, 2: 0.4},
        "small_after": {1: 0.1, 2: 0.45},
        "dissent": {1: 0.7, 2: 0.4},
    }
    picture = rounds(curves, setting=SETTING, marked=2, total=2)
    check(picture, "Round 2 of 2: new heads take the server from 30 % to 20 %, distillation to 50 %")
    assert "small models from 40 % to 45 %" in picture.sentence and "went from 70 % to 40 %" in picture.sentence
    assert "distillation to 30 %" in rounds(curves, setting=SETTING, marked=1, total=2).sentence
    running = {"dissent": {1: 0.7}, "server_after": {1: 0.3}}
    check(rounds(running, setting=SETTING, marked=1, total=100), "distillation takes the server to 30 %")
    assert "has not been measured" in rounds(running, setting=SETTING, marked=9, total=100).sentence
    assert png(rounds({}, setting=SETTING, marked=1, total=1)).startswith(PNG)


def test_one_shot_against_its_teachers():
    reports = {
        seed: FedETReport(consensus_accuracy=[top], clients_accuracy=[low])
        for seed, top, low in ((0, 0.7, 0.2), (1, 0.8, 0.4))
    }
    student = {0: [(30, 0.2), (60, 0.6)], 1: [(30, 0.2), (60, 0.7)]}
    picture = one_shot(student, reports, setting=SETTING)
    check(picture, "After 60 steps the student is right for 65 %", "consensus for 75 %, one client alone for 30 %")
    assert check(one_shot({0: [(30, 0.2)]}, {}, setting=SETTING)).sentence.endswith("20 % (seed 0).")


# ------------------------------------------------------------------------------------------------- traffic, bound
def test_traffic_finds_where_the_target_is_first_reached():
    small = {0: [(1, 100.0, 0.3), (2, 200.0, 0.7), (3, 300.0, 0.5)], 1: [(1, 100.0, 0.65), (2, 200.0, 0.7)]}
    large = {0: [(1, 1000.0, 0.9)], 1: [(1, 1000.0, 0.9)]}
    assert first_reached(small, 0.6) == (1.5, 150) and first_reached(small, 0.8) is None
    picture = traffic({"Fed-ET": small, "FedAvg": large}, setting=SETTING, target=0.6)
    check(picture, "Fed-ET 150 numbers in 1.5 rounds; FedAvg 1 k numbers in 1 round.")
    assert "0.15 times the numbers and 1.5 times the rounds of FedAvg" in picture.sentence
    check(traffic({"Fed-ET": small}, setting=SETTING, target=0.68), "2 rounds")
    check(traffic({"Fed-ET": small}, setting=SETTING, target=0.69), "Fed-ET")
    check(traffic({"Fed-ET": small}, setting=SETTING, target=0.98), "does not get there")
    one = {0: small[0], 1: [(1, 100.0, 0.1)]}
    check(traffic({"Fed-ET": one}, setting=SETTING, target=0.6), "gets there in 1 of 2 seeds")
    assert [amount(v) for v in (7, 1500, 2_370_000, 4e9)] == ["7", "1.5 k", "2.37 M", "4 G"]


def test_bound_is_far_above_the_loss():
    terms = {
        0.1: {"local_loss": 0.1, "small_data": 0.2, "skew": 0.7},
        10.0: {"local_loss": 0.1, "small_data": 0.2, "skew": 0.1},
    }
    picture = bound(terms, {0.1: 0.3, 10.0: 0.05}, {0.1: 0.5, 10.0: 0.1}, setting=SETTING)
    check(picture, "terms (i) and (ii) add up to 0.30, and the loss is 0.30", "dashed part, 0.70, is an upper")
    assert len(picture.table) == 2
