"""Averaging, ensembling, distilling: its worked numbers, from ten stored seeds, and its exercises."""

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import softmax

from ...data import load
from ...studies import run
from ...studies.lesson_runs import DATASET, LOGITS
from ...training.distill import compute_distillation_losses
from ..kit import Build, Card, exercises, make_worked_card
from ..kit.array_types import ClientLogits
from ..kit.claims import make_mean_and_bars_functions
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

mean_of, three_ways, with_dense = make_mean_and_bars_functions(__name__, "three_ways", "with_dense")


# ---------------------------------------------------------------------------------- worked numbers
def show_soft_labels_of_one_image(
    alpha: float = 0.3, seed: int = 0, image_index: int = 3, temperature: float = 4.0
) -> Card:
    """Show the teacher's and the student's answer to one public image, and the loss between them.

    The teacher's answer is shown at temperature 1 and at `temperature`, the student's at `temperature`.
    """
    setting: dict[str, Any] = {"dataset": DATASET, "alpha": alpha, "seed": seed}
    teacher = run("ensemble", **setting, **LOGITS)
    student = run("feddf", **setting)
    x = load(DATASET).x_public[image_index : image_index + 1].to(teacher.settings.device)
    teacher_logits = teacher.model.logits(x)[0].cpu()
    student_logits = student.model.logits(x)[0].cpu()
    favourites = teacher_logits.argsort(descending=True)[:3].tolist()

    def describe(logits: torch.Tensor, tau: float) -> str:
        shares = (logits / tau).softmax(-1)
        return ", ".join(f"“{c}” {shares[c]:.2f}" for c in favourites)

    loss = float(
        compute_distillation_losses(teacher_logits[None], student_logits[None], temperature)
    )
    return make_worked_card(
        f"Public image {image_index}, the ensemble's three favourites (α = {alpha:g}, seed {seed}).",
        f"Teacher, τ = 1: {describe(teacher_logits, 1)}",
        f"Teacher, τ = {temperature:g}: {describe(teacher_logits, temperature)}",
        f"Student after distillation, τ = {temperature:g}: {describe(student_logits, temperature)}",
        f"Loss of this image: τ² KL(teacher ‖ student) = {loss:.2f}.",
    )


# ---------------------------------------------------------------------------- the function to build
# M, N, C. In the first case all are equal, so that a wrong axis gives numbers; in the others it fails.
SIZES = ((3, 3, 3), (2, 4, 3), (5, 2, 4), (1, 3, 2))


def soft_labels(logits: np.ndarray, temperature: float) -> np.ndarray:
    teacher = logits.mean(axis=0) / temperature
    powers = np.exp(teacher)
    return powers / powers.sum(axis=1, keepdims=True)


class SoftLabelsArguments(NamedTuple):
    """The arguments of a call of `soft_labels`."""

    logits: ClientLogits  # [M, N, C]
    temperature: float


def draw_random_soft_labels_arguments(
    random_stream: np.random.Generator, client_count: int, image_count: int, class_count: int
) -> SoftLabelsArguments:
    """Draw logits as large as those of real networks, and a temperature."""
    logits = 3 * random_stream.normal(size=(client_count, image_count, class_count))
    temperature = round(random_stream.uniform(1.5, 6), 1)
    return SoftLabelsArguments(logits, temperature)


SLIPS = {
    "over_images": lambda logits, temperature: softmax(logits.mean(0) / temperature, axis=0),
    "softmax_first": lambda logits, temperature: softmax(logits / temperature, axis=2).mean(0),
    "no_temperature": lambda logits, temperature: softmax(logits.mean(0), axis=1),
    # It is the loss that has τ², not the labels.
    "of_the_loss": lambda logits, temperature: temperature**2 * soft_labels(logits, temperature),
    "no_softmax": lambda logits, temperature: logits.mean(0) / temperature,
}


q1, q2, q3 = exercises(
    __name__, q3=Build(soft_labels, SIZES, draw_random_soft_labels_arguments, SLIPS)
)
