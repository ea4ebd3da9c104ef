"""Fed-ET: its worked numbers, from the reader's own panel or from ten stored seeds, and its exercises."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import softmax

from ...labs.fedet import SIZES
from ...labs.fedet.votes import compute_consensus_on_test_samples
from ...methods.fedet.consensus import compute_consensus as fedet_consensus
from ...panels import Panel
from ...plots.words import format_client_letters, format_percent
from ...studies import Outcome, Outcomes, lesson_runs
from ...studies.lesson_runs import MANY
from ...value_types import SettingValue
from ..kit import (
    Build,
    Card,
    GuessOption,
    Verdict,
    exercises,
    load_lesson_text_or_list,
    make_worked_card,
)
from ..kit.array_types import ClassScores, ClientImageWeights, ClientProbabilities
from ..kit.claims import (
    CLEAR,
    SHORT,
    GroupAndVariant,
    find_accuracy_gaps_between_variants,
    make_mean_and_bars_functions,
    make_verdict_on_missing_runs,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

LOUD = load_lesson_text_or_list(__name__, "loud")
mean_of, ten_seeds, thirds, sources = make_mean_and_bars_functions(
    __name__, "ten_seeds", "thirds", "sources"
)


# ---------------------------------------------------------------- sums that can be followed by hand
def show_client_weights_of_one_image(
    panel: Panel, sample_index: int = 20, clients: Sequence[int] = (0, 1, 3)
) -> Card:
    """Show how σ² and ω of a few clients are computed for one test sample, with τ = 1 as in the paper."""
    outcome = panel.state("expert").outcome
    vote, labels = compute_consensus_on_test_samples(outcome)
    p = vote.outputs[:, sample_index].double()  # [M, C]
    weights = vote.weights[:, sample_index]  # [M]
    variances = p.var(1, correction=0)  # [M]
    total = float(variances.sum())
    lines = []
    for k in clients:
        squares = float(p[k].square().sum())
        lines.append(
            f"client {format_client_letters(k)} says “{int(p[k].argmax())}” "
            f"({format_percent(float(p[k].max()))}): σ² = ({squares:.3f} − 0.1) / 10 = "
            f"{float(variances[k]):.4f}, ω = {float(variances[k]):.4f} / {total:.3f} = "
            f"{float(weights[k]):.3f}"
        )
    predicted = int(vote.labels[sample_index])
    share = format_percent(float(vote.distribution[sample_index, predicted]))
    agreeing = int((~vote.dissent[:, sample_index]).sum())
    lines.append(
        f"all {len(p)} together say “{predicted}” with {share}; {agreeing} of them say so "
        f"themselves; the picture is a “{int(labels[sample_index])}”"
    )
    return make_worked_card(f"Test sample {sample_index}, seed {outcome.settings.seed}:", *lines)


def find_right_option_on_equal_confidence() -> GuessOption:
    """Choose which of LOUD is true of two outputs that are equally peaked, one of them at the wrong class.

    Both get the same weight, since σ² does not depend on what a client has seen.
    """
    outputs = torch.full((2, 1, 10), 0.01 / 9, dtype=torch.float64)
    outputs[0, 0, 3] = 0.99  # the client that knows
    outputs[1, 0, 7] = 0.99  # the one that does not
    knows, guesses = fedet_consensus(outputs.log()).weights[:, 0].tolist()
    return LOUD[0] if abs(knows - guesses) < 1e-12 else LOUD[1]


def show_weights_on_unseen_digits(outcomes: Sequence[Outcome]) -> Card:
    """Show a client's mean weight for pictures whose digit it has never seen, and for all others.

    The numbers are means over Fed-ET's runs.
    """
    rows = []
    clients = 0
    for outcome in outcomes:
        if outcome.method != "fedet":
            continue
        vote, labels = compute_consensus_on_test_samples(outcome)
        counts = torch.as_tensor(outcome.label_counts)[outcome.report.members]  # [M, C]
        clients = len(counts)
        has_never_seen = counts[:, labels] == 0  # [M, N]
        is_sure = vote.outputs.max(-1).values > 0.99  # [M, N]
        averaged = (
            has_never_seen,
            is_sure[has_never_seen],
            vote.weights[~has_never_seen],
            vote.weights[has_never_seen],
        )
        rows.append([float(values.double().mean()) for values in averaged])
    share, sure, knowing_weight, ignorant_weight = np.mean(rows, 0)
    return make_worked_card(
        f"In {format_percent(share)} of all pairs of a client and a picture the client "
        f"has never seen the digit. There its weight is {ignorant_weight:.3f} on average. "
        f"In the other pairs it is {knowing_weight:.3f}. If all clients counted the same, "
        f"it would be {1 / clients:.3f}.",
        (
            f"In {format_percent(sure)} of the pairs where it has never seen the digit, it is "
            "over 99 % sure of another digit."
        ),
    )


# ------------------------------------------------------------------------------ the records of runs
GOOD = 1.0  # the smallest α at which clients teach well
COST = 0.2  # of accuracy, as a share; no run that the lesson prints loses as much


def run_with_three_sizes(
    methods: Sequence[str] = ("fedet",), alpha: float = 0.1, **settings: SettingValue
) -> Outcomes:
    """Run methods as the lesson does: digits, ten clients of three sizes, three seeds."""
    return lesson_runs.runs(list(methods), alpha, **{"model": SIZES, **settings})


def check_other_public_data_cost_accuracy(outcomes: Sequence[Outcome]) -> Verdict:
    """Judge the claim of exercise 2: even with good clients, other public data cost clearly more than COST.

    The public data are found on validation images; only for them are the test images used.
    """
    good = [o for o in outcomes if o.method == "fedet" and o.settings.alpha >= GOOD]
    found = []
    for source in sorted({o.options["public"] for o in good} - {"held-out"}):

        def describe(_: object, source: str = source) -> str:
            return f"held-out − {source}"

        for gap in find_accuracy_gaps_between_variants(
            good, group_run_by_public_data, "held-out", source, describe
        ):
            if gap.kind == CLEAR and gap.difference_band.low > COST:
                return Verdict(
                    "right",
                    (
                        f"Supported by your runs: {gap.describe()}. On the test images: "
                        f"{gap.test_gap.mean_with_band_in_points} points. Only P has changed."
                    ),
                )
            if gap.kind == SHORT:
                gap = replace(gap, name=source)
            if gap.accuracy_differences:
                found.append(gap.describe("both"))
    return make_verdict_on_missing_runs(
        [f"a source that is worse by clearly more than {100 * COST:g} points"],
        found,
        f"no setting with α = {GOOD:g} or more has Fed-ET with held-out and with another source",
    )


def group_run_by_public_data(outcome: Outcome) -> GroupAndVariant:
    """Group runs that differ in nothing but the public data: the variant is where these come from."""
    shared = []
    for name, value in sorted(outcome.options.items()):
        if name not in ("public", "public_size"):
            shared.append((name, value))
    return GroupAndVariant((outcome.conditions, *shared), outcome.options["public"])


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 2."""
    held_out = run_with_three_sizes(alpha=GOOD, seeds=MANY)
    glyphs = run_with_three_sizes(alpha=GOOD, seeds=MANY, **{"fedet.public": "glyphs"})
    return Outcomes([*held_out, *glyphs])


# ---------------------------------------------------------------------------- the function to build


def consensus(s: np.ndarray) -> np.ndarray:
    variances = s.var(axis=2)  # [M, N]: of each output, over its C probabilities
    weights = variances / variances.sum(axis=0)  # [M, N]: shares of the clients, image by image
    return (weights[:, :, None] * s).sum(axis=0)  # [N, C]


def compute_weighted_sum_of_clients(
    weights: ClientImageWeights, client_probabilities: ClientProbabilities
) -> ClassScores:
    """Compute Σ_k ω_k s_k for weights [M, N]."""
    return np.einsum("mn,mnc->nc", weights, client_probabilities)


def average_clients_equally_by_mistake(client_probabilities: ClientProbabilities) -> ClassScores:
    return client_probabilities.mean(0)


def weight_by_variance_over_clients_by_mistake(
    client_probabilities: ClientProbabilities,
) -> ClassScores:
    """Make the mistake of the variance over clients, for each image and class."""
    variances = client_probabilities.var(0)
    weights = variances / variances.sum(0)
    return (weights * client_probabilities).sum(0)


def normalise_weights_over_images_by_mistake(
    client_probabilities: ClientProbabilities,
) -> ClassScores:
    """Make the mistake of weights that add up to 1 over the images of each client."""
    variances = client_probabilities.var(2)
    weights = variances / variances.sum(1, keepdims=True)
    return compute_weighted_sum_of_clients(weights, client_probabilities)


def weight_without_normalising_by_mistake(client_probabilities: ClientProbabilities) -> ClassScores:
    return compute_weighted_sum_of_clients(client_probabilities.var(2), client_probabilities)


def weight_by_standard_deviation_by_mistake(
    client_probabilities: ClientProbabilities,
) -> ClassScores:
    deviations = client_probabilities.std(2)
    weights = deviations / deviations.sum(0)
    return compute_weighted_sum_of_clients(weights, client_probabilities)


SLIPS = {
    "equal": average_clients_equally_by_mistake,
    "over_clients": weight_by_variance_over_clients_by_mistake,
    "shares_of_images": normalise_weights_over_images_by_mistake,
    "not_divided": weight_without_normalising_by_mistake,
    "deviations": weight_by_standard_deviation_by_mistake,
}
# M, N, C. In the first case all are equal, so that a wrong axis gives numbers; in the others it fails.
SHAPES = ((4, 4, 4), (3, 5, 4), (2, 6, 3))


class ConsensusArguments(NamedTuple):
    """The argument of a call of `consensus`."""

    s: ClientProbabilities  # [M, N, C] softmax outputs


def draw_random_consensus_arguments(
    random_stream: np.random.Generator, client_count: int, image_count: int, class_count: int
) -> ConsensusArguments:
    """Draw softmax outputs of clients, some of them sure and some not."""
    logits = random_stream.normal(size=(client_count, image_count, class_count))
    scales = random_stream.uniform(0.5, 4, (client_count, image_count))[..., None]
    return ConsensusArguments(softmax(logits * scales, 2))


BUILD = Build(consensus, SHAPES, draw_random_consensus_arguments, SLIPS)

q1, q2, q3 = exercises(__name__, q2=(check_other_public_data_cost_accuracy, run_solution), q3=BUILD)
