"""Lesson 3, FENS: its worked numbers, from the reader's own panel, and its exercises."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch

from ...comm import formulas
from ...labs.fens.cost import ENSEMBLE, OWN, PAPER_RATIO, ROUNDS, count_client_bytes_by_part
from ...methods.fens import Fens
from ...methods.fens.aggregators import TRAINED
from ...methods.fens.model import PAPER, PAPER_D
from ...panels import Panel
from ...plots.words import format_client_letters
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, runs
from ..kit import (
    Build,
    Card,
    GuessOption,
    Verdict,
    exercises,
    load_lesson_text_or_list,
    make_worked_card,
)
from ..kit.array_types import ClientClassWeights, ClientLogits
from ..kit.claims import (
    BELOW,
    NOISE,
    ClaimText,
    find_accuracy_gaps_between_variants,
    judge_one_gap_clear_and_one_not,
    make_grouping_by_options,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

TRUST = load_lesson_text_or_list(__name__, "trust")
STRANGER = load_lesson_text_or_list(__name__, "stranger")


# ---------------------------------------------------------------------------------- phase 2
def get_fens_outcome_of_first_seed(panel: Panel) -> Outcome:
    """Return FENS' outcome of the first seed in the panel's last run."""
    return panel.state("trust").outcome


def find_right_option_on_single_digit_trust(panel: Panel) -> GuessOption:
    """Choose which of TRUST is true of the clients that hold a single digit.

    Their weights for that digit are compared with equal weights.
    """
    outcome = get_fens_outcome_of_first_seed(panel)
    counts = outcome.label_counts  # [M, C]
    weights = outcome.report.weights  # [M, C]
    has_one_digit = (counts > 0).sum(1) == 1
    digits = counts[has_one_digit].argmax(1)
    equal_weight = 1 / len(weights)
    ratio = (weights[has_one_digit, digits] / equal_weight).mean()
    if ratio > 1.2:
        return TRUST[0]
    if ratio < 0.8:
        return TRUST[2]
    return TRUST[1]


def find_right_option_on_client_weight_for_digit(
    panel: Panel, client: int = 1, digit: int = 3
) -> GuessOption:
    """Choose which of STRANGER is true of a client's weight for a digit; by default of B's for the threes."""
    weights = get_fens_outcome_of_first_seed(panel).report.weights[:, digit]
    equal_weight = 1 / len(weights)
    if weights[client] == weights.max():
        return STRANGER[2]
    if weights[client] < 0.5 * equal_weight:
        return STRANGER[0]
    return STRANGER[1]


# ---------------------------------------------------------------------------------- the bill
def compute_multiple_of_one_shot_bytes(panel: Panel, clients: int) -> float:
    """Compute the bytes of one client in a federation of `clients`, as a multiple of one-shot learning.

    The ledger counted the client's own model, the ensemble and the rounds. The last two grow with the
    number of clients, since λ has a weight for each of them.
    """
    outcome = get_fens_outcome_of_first_seed(panel)
    bytes_by_part = count_client_bytes_by_part(outcome.ledger, 0)
    growing_bytes = bytes_by_part[ENSEMBLE] + bytes_by_part[ROUNDS]
    growing_bytes_per_client = growing_bytes / outcome.settings.clients
    return round(1 + clients * growing_bytes_per_client / bytes_by_part[OWN], 2)


def show_client_bytes(panel: Panel) -> Card:
    """Show the bytes of one client, term by term: as the ledger counted them, with twice as many clients,
    and in the paper.
    """
    outcome = get_fens_outcome_of_first_seed(panel)
    bytes_by_part = count_client_bytes_by_part(outcome.ledger, 0)
    clients, classes = outcome.label_counts.shape
    lines = []
    for client_count, remark in ((clients, ", as the ledger counted"), (2 * clients, "")):
        own = bytes_by_part[OWN]
        models = bytes_by_part[ENSEMBLE] * client_count // clients
        rounds = bytes_by_part[ROUNDS] * client_count // clients
        multiple = compute_multiple_of_one_shot_bytes(panel, client_count)
        lines.append(
            f"{client_count} clients{remark}: {own:,} bytes for the client's own model, down and "
            f"up, + {models:,} for {client_count} models of 8 bits + {rounds:,} for the rounds = "
            f"{own + models + rounds:,}, which is {multiple} times one-shot learning."
        )
    d = bytes_by_part[OWN] // formulas.count_one_shot_bytes_per_client(1)  # parameters of a model
    arguments = Fens(aggregator="nn").make_byte_formula_arguments(clients, classes, ())
    q = arguments["aggregator_parameters"]
    paper_rounds = PAPER["rounds"]
    multiple = formulas.compute_fens_bytes_relative_to_one_shot(d, clients, q, paper_rounds)
    return make_worked_card(
        *lines,
        (
            f"The paper's setting: 1 + M/8 + q T / d = 1 + {PAPER['client_count']}/8 + "
            f"{PAPER['aggregator_parameters']} · {paper_rounds} / {PAPER_D:,} = {PAPER_RATIO:.4f}."
        ),
        (
            f"The paper's aggregator is a small network, trained for {paper_rounds} rounds. "
            f"Here, with {clients} clients, it would have {q:,} numbers, and beside our {d:,} "
            f"a client would pay 1 + {clients}/8 + {q} · {paper_rounds} / {d:,} = "
            f"{multiple:.0f} times one-shot learning."
        ),
    )


def show_weighted_sum_of_one_image(panel: Panel) -> Card:
    """Show, term by term, the sums of the average and of FENS for one test sample.

    It is the first sample that the average gets wrong and FENS right.
    """
    outcome = get_fens_outcome_of_first_seed(panel)
    if outcome.report.weights is None:
        return make_worked_card(
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
        return make_worked_card(
            "With this run there is no test sample that FENS gets right and the average wrong."
        )
    i = int(samples[0])
    names = data.class_names
    right = int(data.y_test[i])
    wrong = int(average[i].argmax())
    lines = [f"Test sample {i} is a {names[right]}. Two of the ten sums:"]
    for c in (wrong, right):
        # The mean is that of the rounded terms, so a reader who adds them up gets the number that is printed.
        terms = [round(float(value), 2) for value in logits[i, :, c]]
        written = " ".join(f"{term:+.2f}" for term in terms)
        lines.append(
            f"average, class {names[c]}: ({written}) / {len(weights)} = {fmean(terms):.2f}"
        )
    for c in (wrong, right):
        terms = weights[:, c] * logits[i, :, c]
        k = int(terms.abs().argmax())
        lines.append(
            f"FENS, class {names[c]}: {fens[i, c]:.1f}; its largest term is client "
            f"{format_client_letters(k)}'s, λ · f = {weights[k, c]:.3f} · "
            f"{logits[i, k, c]:.1f} = {terms[k]:.1f}"
        )
    return make_worked_card(*lines, f"The average says {names[wrong]}, FENS says {names[right]}.")


# ------------------------------------------------------------------------------ the records of runs


def check_trained_weights_beat_class_counts_in_one_setting_only(
    outcomes: Sequence[Outcome], **texts: ClaimText
) -> Verdict:
    """Judge the claim of exercise 2: under skew the trained rule is clearly better than class counts,
    elsewhere it is not.

    The settings are found on validation images; only for these two are the test images used.
    """
    gaps = []
    for rule in TRAINED:

        def describe(shared: tuple, rule: str = rule) -> str:
            settings = shared[0][0]
            return f"α = {settings.alpha:g}, {rule} − weighted"

        grouping = make_grouping_by_options("fens", "aggregator")
        gaps += find_accuracy_gaps_between_variants(
            outcomes, grouping, rule, "weighted", describe, MANY
        )
    known_gaps = [gap for gap in gaps if gap.accuracy_differences]
    return judge_one_gap_clear_and_one_not(
        known_gaps, kinds_of_other_gap=(NOISE, BELOW), least_seeds=MANY, **texts
    )


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 2."""
    outcomes = []
    for alpha in (0.05, 1):
        for rule in ("weighted", "per_class"):
            outcomes += runs(["fens"], alpha, seeds=MANY, **{"fens.aggregator": rule})
    return Outcomes(outcomes)


# ---------------------------------------------------------------------------- the function to build
# M, N, C. In the first case all are equal, so that a wrong axis gives numbers; in the others it fails.
SIZES = ((3, 3, 3), (2, 4, 3), (4, 2, 3), (3, 5, 3), (1, 2, 2))


def weighted_sum(logits: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (weights[:, None, :] * logits).sum(axis=0)


class WeightedSumArguments(NamedTuple):
    """The arguments of a call of `weighted_sum`."""

    logits: ClientLogits  # [M, N, C]
    weights: ClientClassWeights  # [M, C]


def draw_random_weighted_sum_arguments(
    random_stream: np.random.Generator, client_count: int, image_count: int, class_count: int
) -> WeightedSumArguments:
    """Draw logits `[M, N, C]` of both signs, and weights `[M, C]`, some below zero or above one."""
    logits = 3 * random_stream.normal(size=(client_count, image_count, class_count))
    weights = random_stream.normal(0.4, 0.6, (client_count, class_count))
    return WeightedSumArguments(logits, weights)


def compute_softmax(values: np.ndarray, axis: int) -> np.ndarray:
    """Turn values into shares along an axis: positive, and one in sum."""
    powers = np.exp(values - values.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


SLIPS = {
    "not_used": lambda logits, weights: logits.mean(0),
    "divided_by_clients": lambda logits, weights: weighted_sum(logits, weights) / len(logits),
    "divided_by_weights": lambda logits, weights: weighted_sum(logits, weights) / weights.sum(0),
    # weights * logits without a new axis: row k of λ goes to image k.
    "by_image": lambda logits, weights: (weights * logits).sum(0),
    # [N, M]: one number for each image and client.
    "over_classes": lambda logits, weights: (weights[:, None, :] * logits).sum(2).T,
    # = in the place of += in the loop over the clients.
    "last_alone": lambda logits, weights: weighted_sum(logits[-1:], weights[-1:]),
    "softmax_of_logits": lambda logits, weights: weighted_sum(compute_softmax(logits, 2), weights),
    "softmax_of_weights": lambda logits, weights: weighted_sum(logits, compute_softmax(weights, 0)),
    "softmax_of_sum": lambda logits, weights: compute_softmax(weighted_sum(logits, weights), 1),
}

BUILD = Build(weighted_sum, SIZES, draw_random_weighted_sum_arguments, SLIPS)

q1, q2, q3 = exercises(
    __name__,
    q2=(check_trained_weights_beat_class_counts_in_one_setting_only, run_solution),
    q3=BUILD,
)
