"""Lesson 03, FENS: its worked numbers, from the reader's own panel, and its exercises."""

from collections.abc import Sequence

import numpy as np
import torch

from ...comm import formulas
from ...labs.fens.cost import ENSEMBLE, OWN, PAPER_RATIO, ROUNDS, bytes_by_part
from ...methods.fens import Fens
from ...methods.fens.aggregators import TRAINED
from ...methods.fens.model import PAPER, PAPER_D
from ...panels import Panel
from ...plots.words import letter
from ...studies import Outcome
from ...studies.lesson_runs import MANY, runs
from ..kit import Build, Card, Verdict, exercises, lesson_words, worked
from ..kit.claims import BELOW, NOISE, chosen_gaps, group_by_options, two_kinds

TRUST = lesson_words(__name__, "trust")


# ---------------------------------------------------------------------------------- phase 2
def first(panel: Panel) -> Outcome:
    """FENS' outcome of the first seed in the panel's last run."""
    return panel.state("trust").outcome


def trust_in_shouters(panel: Panel) -> str:
    """Which of TRUST the clients get that hold one digit alone: their weights for it beside equal ones."""
    counts, weights = first(panel).label_counts, first(panel).report.weights
    alone = (counts > 0).sum(1) == 1
    ratio = (weights[alone, counts[alone].argmax(1)] * len(weights)).mean()
    return TRUST[0] if ratio > 1.2 else TRUST[2] if ratio < 0.8 else TRUST[1]


# ---------------------------------------------------------------------------------- the bill
def ratio(panel: Panel, clients: int) -> float:
    """What one client pays with so many `clients`, as a multiple of one-shot learning. The ledger counted its own
    model, the ensemble and the rounds; the last two grow with the clients (λ has a number for each of them)."""
    outcome = first(panel)
    counted = bytes_by_part(outcome.ledger, 0)
    grows = (counted[ENSEMBLE] + counted[ROUNDS]) / outcome.settings.clients
    return round(1 + clients * grows / counted[OWN], 2)


def bill(panel: Panel) -> Card:
    """What one client pays, term by term: as the ledger counted, with twice as many clients, and in the paper."""
    outcome, lines = first(panel), []
    counted, (clients, classes) = bytes_by_part(outcome.ledger, 0), outcome.label_counts.shape
    for many, counted_by in ((clients, ", as the ledger counted"), (2 * clients, "")):
        own, models, rounds = (
            counted[OWN],
            *(counted[part] * many // clients for part in (ENSEMBLE, ROUNDS)),
        )
        lines.append(
            f"{many} clients{counted_by}: {own:,} bytes for the client's own model, down and up, + {models:,} for "
            f"{many} models of 8 bits + {rounds:,} for the rounds = {own + models + rounds:,}, which is "
            f"{ratio(panel, many)} times one-shot learning."
        )
    d, q = (
        counted[OWN] // formulas.one_shot_bytes(1),
        Fens(aggregator="nn").terms(clients, classes, ())["q"],
    )
    paper = "1 + M/8 + q T / d = 1 + {clients}/8 + {q} · {rounds} / ".format(**PAPER)
    return worked(
        *lines,
        f"The paper's setting: {paper}{PAPER_D:,} = {PAPER_RATIO:.4f}.",
        f"The paper's aggregator is a small network, trained for {PAPER['rounds']} rounds. Beside our {d:,} numbers it "
        f"would make a client pay {formulas.fens_ratio(d, clients, q, PAPER['rounds']):.0f} times one-shot learning.",
    )


def sum_for_one(panel: Panel) -> Card:
    """The two sums for the first test sample that the average gets wrong and FENS right, term by term."""
    outcome = first(panel)
    if outcome.report.weights is None:
        return worked(
            "This sum has one weight a client and class: take the aggregator “per_class”, and Run."
        )
    data = outcome.federation().dataset
    z = outcome.model.experts(data.x_test.to(outcome.settings.device)).double().cpu()
    table = torch.from_numpy(outcome.report.weights).double()
    average, fens, y = z.mean(1), (z * table).sum(1), data.y_test
    samples = ((average.argmax(1) != y) & (fens.argmax(1) == y)).nonzero().flatten()
    if not len(samples):
        return worked(
            "With this run there is no test sample that FENS gets right and the average wrong."
        )
    i, names = int(samples[0]), data.class_names
    right, wrong = int(y[i]), int(average[i].argmax())
    lines = [f"Test sample {i} is a {names[right]}. Two of the ten sums:"]
    for c in (wrong, right):
        terms = " ".join(f"{float(v):+.1f}" for v in z[i, :, c])
        lines.append(f"average, class {names[c]}: ({terms}) / {len(table)} = {average[i, c]:.1f}")
    for c in (wrong, right):
        big = int((table[:, c] * z[i, :, c]).abs().argmax())
        lines.append(
            f"FENS, class {names[c]}: {fens[i, c]:.1f}; its largest term is client {letter(big)}'s, "
            f"λ · f = {table[big, c]:.2f} · {z[i, big, c]:.1f} = {table[big, c] * z[i, big, c]:.1f}"
        )
    return worked(*lines, f"The average says {names[wrong]}, FENS says {names[right]}.")


# ---------------------------------------------------------------------------------- the records of runs


def two_skews(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 2: under skew the trained rule is clearly better than class counts, elsewhere it is not.
    The settings are found on validation images; the test images are looked at for these two alone."""
    gaps = []
    for rule in TRAINED:
        name = f"α = {{0[0][0].alpha:g}}, {rule} − weighted".format  # of what they share
        gaps += chosen_gaps(
            outcomes, group_by_options("fens", "aggregator"), rule, "weighted", name, MANY
        )
    return two_kinds([gap for gap in gaps if gap.differences], others=(NOISE, BELOW), **words)


def solution_runs() -> list[Outcome]:
    """Runs that support the claim of exercise 2."""
    rules = [{"fens.aggregator": rule} for rule in ("weighted", "per_class")]
    return [
        o
        for alpha in (0.05, 1)
        for rule in rules
        for o in runs(["fens"], alpha, seeds=MANY, **rule)
    ]


# ---------------------------------------------------------------------------------- the function to build
SIZES = (
    (3, 3, 3),
    (2, 4, 3),
    (4, 2, 3),
    (3, 5, 3),
    (1, 2, 2),
)  # M, N, C; wrong axes run for the first, and stop later


def weighted_sum(logits, weights):
    return (weights[:, None, :] * logits).sum(axis=0)


def hidden(
    stream: np.random.Generator, clients: int, images: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Logits of both signs, and weights of which some are below zero and some above one."""
    return 3 * stream.normal(size=(clients, images, classes)), stream.normal(
        0.4, 0.6, (clients, classes)
    )


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

q1, q2, q3 = exercises(
    __name__, q2=(two_skews, solution_runs), q3=Build(weighted_sum, SIZES, hidden, SLIPS)
)
