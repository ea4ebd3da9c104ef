"""Co-Boosting: its worked numbers, from one run or from ten stored seeds, and its exercises."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from ...labs.coboosting.votes import compute_accuracy_by_class, get_client_logits_on_test_images
from ...plots.words import format_client_letters
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import LOGITS, MANY, runs
from ..kit import (
    Build,
    Card,
    GuessOption,
    Verdict,
    exercises,
    load_lesson_text_or_list,
    make_worked_card,
)
from ..kit.array_types import ClassLabels, ClientLogits, ClientWeightGradient, ClientWeights
from ..kit.claims import (
    BELOW,
    NOISE,
    ClaimText,
    GroupAndVariant,
    find_accuracy_gaps_between_variants,
    judge_one_gap_clear_and_one_not,
    make_card_of_finding,
    make_mean_and_bars_functions,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

STUDENTS = load_lesson_text_or_list(__name__, "students")
mean_of, ten_seeds = make_mean_and_bars_functions(__name__, "ten_seeds")
found = partial(make_card_of_finding, __name__)


# --------------------------------------------------------------------------------- ten stored seeds
def find_right_option_on_student_accuracy() -> GuessOption:
    """Choose the option of STUDENTS that is true of the student's mean over ten seeds."""
    student = mean_of("server")
    teacher = mean_of("weighted")
    equal = mean_of("equal")
    if student > teacher:
        return STUDENTS[0]
    if student > (teacher + equal) / 2:
        return STUDENTS[1]
    return STUDENTS[2]


# ---------------------------------------------------------------------------------- worked numbers
class ClassAndAccuracy0To1(NamedTuple):
    """A class and how many of its test images are recognised."""

    class_index: int
    accuracy: float  # 0–1


def find_worst_recognised_class(outcome: Outcome) -> ClassAndAccuracy0To1:
    """Find the class that the ensemble recognises worst, and its accuracy, 0–1."""
    is_right = outcome.test_predictions == outcome.test_labels
    classes = outcome.label_counts.shape[1]
    accuracies = compute_accuracy_by_class(is_right, outcome.test_labels, classes)
    return ClassAndAccuracy0To1(int(np.nanargmin(accuracies)), float(np.nanmin(accuracies)))


def compute_worst_class_accuracy_percent(outcome: Outcome) -> int:
    """Return the accuracy, in whole per cent, on the class that `show_worst_class` is about."""
    _, accuracy = find_worst_recognised_class(outcome)
    return round(100 * accuracy)


def show_worst_class(outcome: Outcome) -> Card:
    """Show the class that equal weights recognise worst: which clients hold it, and how well they
    recognise it alone.

    Clients with more than a tenth of the class's training samples count as holding it.
    """
    c, accuracy = find_worst_recognised_class(outcome)
    counts = outcome.label_counts[:, c]
    logits = get_client_logits_on_test_images(outcome)[outcome.test_labels == c]  # [n, M, C]
    holder_accuracies = {}
    for k in np.argsort(-counts):
        if counts[k] > 0.1 * counts.sum():
            is_right = logits[:, k].argmax(1) == c
            holder_accuracies[int(k)] = float(is_right.mean())
    texts = []
    for k, holder_accuracy in holder_accuracies.items():
        texts.append(f"client {format_client_letters(k)} {100 * holder_accuracy:.0f} %")
    alone = ", ".join(texts)
    if all(holder_accuracy > accuracy for holder_accuracy in holder_accuracies.values()):
        holders = f"Those who hold most of them do better alone ({alone})."
    else:
        holders = f"Alone, those who hold most of them recognise: {alone}."
    clients_without = int((counts == 0).sum())
    return make_worked_card(
        f"With equal weights the ensemble recognises {100 * accuracy:.0f} % of the "
        f"“{c}”s. {holders} {clients_without} of {len(counts)} clients never saw a “{c}”, "
        "and they are sure of something else."
    )


# ------------------------------------------------------------------------------ the records of runs
def group_run_by_ensemble_weight_rule_or_none(outcome: Outcome) -> GroupAndVariant | None:
    """Group runs that differ in nothing but the weights, "equal" or "learnt"; None for others."""
    if outcome.method == "ensemble" and outcome.options.get("rule", "logits") == "logits":
        return GroupAndVariant(outcome.conditions, "equal")
    if outcome.method == "coboosting" and outcome.options.get("answer") == "ensemble":
        uses_all_ideas = all(outcome.options[idea] for idea in ("ghs", "dhs", "ee"))
        if uses_all_ideas:
            return GroupAndVariant(outcome.conditions, "learnt")
    return None


# The lesson prints the results at these two α, so only settings between them count.
LOWEST_ALPHA = 0.1
HIGHEST_ALPHA = 10.0
# A gain, as a share. Co-Boosting amplifies rounding: on another processor the gain of one seed changes
# by some points, and the mean of ten seeds by one or two. With this threshold the settings of the
# solution are found, and those without a gain rejected, by a margin on either side.
GAIN = 0.05


def check_learnt_weights_gain_in_one_setting_only(
    outcomes: Sequence[Outcome], **texts: ClaimText
) -> Verdict:
    """Judge the claim of exercise 2: in one setting re-weighting gains clearly more than GAIN, in
    another it does not.

    The settings are found on validation images; only for these two are the test images used.
    """

    def describe(conditions: tuple) -> str:
        return f"α = {conditions[0].alpha:g}"

    counted_outcomes = []
    for outcome in outcomes:
        if LOWEST_ALPHA < outcome.settings.alpha < HIGHEST_ALPHA:
            counted_outcomes.append(outcome)
    gaps = find_accuracy_gaps_between_variants(
        counted_outcomes,
        group_run_by_ensemble_weight_rule_or_none,
        "learnt",
        "equal",
        describe,
        MANY,
    )
    large_gaps = [replace(gap, least_gain=GAIN) for gap in gaps]
    return judge_one_gap_clear_and_one_not(
        large_gaps, kinds_of_other_gap=(NOISE, BELOW), least_seeds=MANY, **texts
    )


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 2."""
    answer = {**LOGITS, "coboosting.answer": "ensemble"}
    outcomes = []
    for alpha in (0.15, 3):
        outcomes += runs(["coboosting", "ensemble"], alpha, seeds=MANY, **answer)
    return Outcomes(outcomes)


# ---------------------------------------------------------------------------- the function to build
def step_and_clip_weights(
    logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float
) -> np.ndarray:
    ensemble = np.einsum("m,mnc->nc", w, logits) / w.sum()
    p = np.exp(ensemble - ensemble.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    # The gradient of the loss in the ensemble's logits.
    error = (p - np.eye(p.shape[1])[labels]) / len(labels)
    gradient = np.einsum("nc,mnc->m", error, (logits - ensemble) / w.sum())
    return np.clip(w - eta * np.sign(gradient), 0, 1)


def compute_loss_gradient_in_weights(
    logits: ClientLogits, labels: ClassLabels, weights: ClientWeights
) -> ClientWeightGradient:
    """Compute the gradient `[M]` of the loss in the weights `[M]`."""
    ensemble = np.einsum("m,mnc->nc", weights, logits) / weights.sum()
    error = softmax(ensemble, 1) - np.eye(logits.shape[2])[labels]
    return np.einsum("nc,mnc->m", error / len(labels), logits - ensemble) / weights.sum()


def step_against_gradient_sign_and_clip(
    weights: ClientWeights, gradient: ClientWeightGradient, step_size: float
) -> ClientWeights:
    """Take one step against the sign of the gradient, and clip the weights to 0–1."""
    return np.clip(weights - step_size * np.sign(gradient), 0, 1)


def step_uphill_by_mistake(
    logits: ClientLogits, labels: ClassLabels, weights: ClientWeights, step_size: float
) -> ClientWeights:
    gradient = compute_loss_gradient_in_weights(logits, labels, weights)
    return step_against_gradient_sign_and_clip(weights, -gradient, step_size)


def step_without_sign_by_mistake(
    logits: ClientLogits, labels: ClassLabels, weights: ClientWeights, step_size: float
) -> ClientWeights:
    gradient = compute_loss_gradient_in_weights(logits, labels, weights)
    return np.clip(weights - step_size * gradient, 0, 1)


def step_without_clipping_by_mistake(
    logits: ClientLogits, labels: ClassLabels, weights: ClientWeights, step_size: float
) -> ClientWeights:
    gradient = compute_loss_gradient_in_weights(logits, labels, weights)
    return weights - step_size * np.sign(gradient)


def step_with_undivided_logit_sum_by_mistake(
    logits: ClientLogits, labels: ClassLabels, weights: ClientWeights, step_size: float
) -> ClientWeights:
    """Make the mistake of not dividing the ensemble by the sum of the weights."""
    ensemble = np.einsum("m,mnc->nc", weights, logits)
    error = softmax(ensemble, 1) - np.eye(logits.shape[2])[labels]
    gradient = np.einsum("nc,mnc->m", error, logits)
    return step_against_gradient_sign_and_clip(weights, gradient, step_size)


def step_with_gradient_at_equal_weights_by_mistake(
    logits: ClientLogits, labels: ClassLabels, weights: ClientWeights, step_size: float
) -> ClientWeights:
    equal_weights = np.ones(len(weights))
    gradient = compute_loss_gradient_in_weights(logits, labels, equal_weights)
    return step_against_gradient_sign_and_clip(weights, gradient, step_size)


SLIPS = {
    "uphill": step_uphill_by_mistake,
    "no_sign": step_without_sign_by_mistake,
    "not_clipped": step_without_clipping_by_mistake,
    "sum_of_logits": step_with_undivided_logit_sum_by_mistake,
    "equal_weights": step_with_gradient_at_equal_weights_by_mistake,
}
SIZES = ((3, 4, 4), (4, 6, 3), (5, 3, 3), (3, 7, 2), (6, 8, 5))  # M, N, C


class WeightStepArguments(NamedTuple):
    """The arguments of a call of `step_and_clip_weights`."""

    logits: ClientLogits  # [M, N, C]
    labels: ClassLabels  # [N]
    w: ClientWeights  # [M], 0–1
    eta: float


def draw_random_weight_step_arguments_or_none(
    random_stream: np.random.Generator, client_count: int, image_count: int, class_count: int
) -> WeightStepArguments | None:
    """Draw the arguments of a hidden call of `step_and_clip_weights`: logits `[M, N, C]`, labels `[N]`, weights
    `[M]` and a step size.

    One weight is near 0 and one near 1, so that clipping matters. None if a component of the gradient
    is near 0: its sign could not be found by small changes of the weights.
    """
    logits = 2 * random_stream.normal(size=(client_count, image_count, class_count))
    labels = random_stream.integers(0, class_count, image_count)
    inner_weights = random_stream.uniform(0.2, 0.8, client_count - 2)
    w = random_stream.permutation(np.concatenate([[0.03, 0.97], inner_weights]))
    gradient = compute_loss_gradient_in_weights(logits, labels, w)
    if np.abs(gradient).min() <= 0.02:
        return None
    return WeightStepArguments(logits, labels, w, 0.1)


BUILD = Build(step_and_clip_weights, SIZES * 4, draw_random_weight_step_arguments_or_none, SLIPS)

q1, q2, q3 = exercises(
    __name__, q2=(check_learnt_weights_gain_in_one_setting_only, run_solution), q3=BUILD
)
