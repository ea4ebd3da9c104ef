"""Lesson 3, FENS: its worked numbers, from the reader's own panel, and its exercises."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np
import torch

from ...comm import formulas
from ...labs.fens.cost import ENSEMBLE, OWN, PAPER_RATIO, ROUNDS, count_bytes_by_part
from ...methods.fens import Fens
from ...methods.fens.aggregators import TRAINED
from ...methods.fens.model import PAPER, PAPER_D
from ...panels import Panel
from ...plots.words import format_letters
from ...studies import Outcome
from ...studies.lesson_runs import MANY, runs
from ..kit import Build, Card, Verdict, exercises, lesson_words, worked
from ..kit.claims import BELOW, NOISE, find_gaps, group_by_options, judge_two_kinds

TRUST = lesson_words(__name__, "trust")
STRANGER = lesson_words(__name__, "stranger")


# ---------------------------------------------------------------------------------- phase 2
def first(panel: Panel) -> Outcome:
    """FENS' outcome of the first seed in the panel's last run."""
    return panel.state("trust").outcome


def trust_in_shouters(panel: Panel) -> str:
    """Which of TRUST the clients get that hold one digit alone: their weights for it beside equal
    ones.
    """
    outcome = first(panel)
    counts = outcome.label_counts
    weights = outcome.report.weights
    has_one_digit = (counts > 0).sum(1) == 1
    digits = counts[has_one_digit].argmax(1)
    equal_weight = 1 / len(weights)
    ratio = (weights[has_one_digit, digits] / equal_weight).mean()
    if ratio > 1.2:
        return TRUST[0]
    if ratio < 0.8:
        return TRUST[2]
    return TRUST[1]


def trust_in_stranger(panel: Panel, client: int = 1, digit: int = 3) -> str:
    """Which of STRANGER a client's weight for a digit is; B and the threes, unless given."""
    weights = first(panel).report.weights[:, digit]
    if weights[client] == weights.max():
        return STRANGER[2]
    return STRANGER[0] if weights[client] < 0.5 / len(weights) else STRANGER[1]


# ---------------------------------------------------------------------------------- the bill
def ratio(panel: Panel, clients: int) -> float:
    """What one client pays with so many `clients`, as a multiple of one-shot learning. The ledger
    counted its own model, the ensemble and the rounds; the last two grow with the clients (λ has a
    number for each of them).
    """
    outcome = first(panel)
    counted = count_bytes_by_part(outcome.ledger, 0)
    grows = (counted[ENSEMBLE] + counted[ROUNDS]) / outcome.settings.clients
    return round(1 + clients * grows / counted[OWN], 2)


def bill(panel: Panel) -> Card:
    """What one client pays, term by term: as the ledger counted, with twice as many clients, and in
    the paper.
    """
    outcome = first(panel)
    counted = count_bytes_by_part(outcome.ledger, 0)
    clients, classes = outcome.label_counts.shape
    lines = []
    for many, remark in ((clients, ", as the ledger counted"), (2 * clients, "")):
        own = counted[OWN]
        models = counted[ENSEMBLE] * many // clients
        rounds = counted[ROUNDS] * many // clients
        lines.append(
            f"{many} clients{remark}: {own:,} bytes for the client's own model, down and up, + "
            f"{models:,} for {many} models of 8 bits + {rounds:,} for the rounds = "
            f"{own + models + rounds:,}, which is {ratio(panel, many)} times one-shot learning."
        )
    d = counted[OWN] // formulas.count_one_shot_bytes(1)
    q = Fens(aggregator="nn").count_byte_terms(clients, classes, ())["q"]
    paper_rounds = PAPER["rounds"]
    multiple = formulas.compute_fens_ratio(d, clients, q, paper_rounds)
    return worked(
        *lines,
        f"The paper's setting: 1 + M/8 + q T / d = 1 + {PAPER['clients']}/8 + {PAPER['q']} · "
        f"{paper_rounds} / {PAPER_D:,} = {PAPER_RATIO:.4f}.",
        f"The paper's aggregator is a small network, trained for {paper_rounds} rounds. Here, with "
        f"{clients} clients, it would have {q:,} numbers, and beside our {d:,} a client would pay "
        f"1 + {clients}/8 + {q} · {paper_rounds} / {d:,} = {multiple:.0f} times one-shot learning.",
    )


def sum_for_one(panel: Panel) -> Card:
    """The two sums for the first test sample that the average gets wrong and FENS right, term by
    term.
    """
    outcome = first(panel)
    if outcome.report.weights is None:
        return worked(
            "This sum has one weight a client and class: take the aggregator “per_class”, and Run."
        )
    data = outcome.federation().dataset
    x = data.x_test.to(outcome.settings.device)
    logits = outcome.model.experts(x).double().cpu()  # [N, M, C]
    weights = torch.from_numpy(outcome.report.weights).double()
    average = logits.mean(1)
    fens = (logits * weights).sum(1)
    average_is_wrong = average.argmax(1) != data.y_test
    fens_is_right = fens.argmax(1) == data.y_test
    samples = (average_is_wrong & fens_is_right).nonzero().flatten()
    if not len(samples):
        return worked(
            "With this run there is no test sample that FENS gets right and the average wrong."
        )
    i = int(samples[0])
    names = data.class_names
    right = int(data.y_test[i])
    wrong = int(average[i].argmax())
    lines = [f"Test sample {i} is a {names[right]}. Two of the ten sums:"]
    for c in (wrong, right):
        # As many digits as the mean needs: a reader who adds up the terms gets what is printed.
        terms = [round(float(value), 2) for value in logits[i, :, c]]
        written = " ".join(f"{term:+.2f}" for term in terms)
        lines.append(
            f"average, class {names[c]}: ({written}) / {len(weights)} = {fmean(terms):.2f}"
        )
    for c in (wrong, right):
        terms = weights[:, c] * logits[i, :, c]
        k = int(terms.abs().argmax())
        lines.append(
            f"FENS, class {names[c]}: {fens[i, c]:.1f}; its largest term is client {format_letters(k)}'s, "
            f"λ · f = {weights[k, c]:.2f} · {logits[i, k, c]:.1f} = {terms[k]:.1f}"
        )
    return worked(*lines, f"The average says {names[wrong]}, FENS says {names[right]}.")


# ------------------------------------------------------------------------------ the records of runs


def two_skews(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 2: under skew the trained rule is clearly better than class counts,
    elsewhere it is not. The settings are found on validation images; the test images are looked at
    for these two alone.
    """
    gaps = []
    for rule in TRAINED:

        def describe(shared: tuple, rule: str = rule) -> str:
            settings = shared[0][0]
            return f"α = {settings.alpha:g}, {rule} − weighted"

        place = group_by_options("fens", "aggregator")
        gaps += find_gaps(outcomes, place, rule, "weighted", describe, MANY)
    known_gaps = [gap for gap in gaps if gap.differences]
    return judge_two_kinds(known_gaps, others=(NOISE, BELOW), least_seeds=MANY, **words)


def solution_runs() -> list[Outcome]:
    """Runs that support the claim of exercise 2."""
    outcomes = []
    for alpha in (0.05, 1):
        for rule in ("weighted", "per_class"):
            outcomes += runs(["fens"], alpha, seeds=MANY, **{"fens.aggregator": rule})
    return outcomes


# ---------------------------------------------------------------------------- the function to build
# M, N, C: wrong axes run for the first, and stop later.
SIZES = ((3, 3, 3), (2, 4, 3), (4, 2, 3), (3, 5, 3), (1, 2, 2))


def weighted_sum(logits, weights):
    return (weights[:, None, :] * logits).sum(axis=0)


def draw_hidden_case(
    stream: np.random.Generator, clients: int, images: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Logits of both signs, and weights of which some are below zero and some above one."""
    logits = 3 * stream.normal(size=(clients, images, classes))
    weights = stream.normal(0.4, 0.6, (clients, classes))
    return logits, weights


SLIPS = {
    "not_used": lambda logits, weights: logits.mean(0),
    "divided_by_weights": lambda logits, weights: weighted_sum(logits, weights) / weights.sum(0),
    # weights * logits without a new axis: row k of λ goes to image k.
    "by_image": lambda logits, weights: (weights * logits).sum(0),
    # [N, M]: one number for each image and client.
    "over_classes": lambda logits, weights: (weights[:, None, :] * logits).sum(2).T,
    # The loop writes over what it has: = in the place of +=.
    "last_alone": lambda logits, weights: weighted_sum(logits[-1:], weights[-1:]),
}

BUILD = Build(weighted_sum, SIZES, draw_hidden_case, SLIPS)

q1, q2, q3 = exercises(__name__, q2=(two_skews, solution_runs), q3=BUILD)
