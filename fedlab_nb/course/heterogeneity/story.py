"""The course's story: ten post offices, one upload, and two offices that know only eights (digits, α = 0.1, seed 4).

story.draw_logits_and_answer_counts(weights, logits, probabilities)
    how loud each office is, and what three averages of them answer
story.draw_patients_by_hospital()
    a real case: four hospitals, and how many of their patients are ill
"""

import numpy as np

from ...data import load
from ...plots import Picture
from ...plots.kit import describe_picture, draw_heat_map, draw_stacked_bars_and_get_ends
from ...plots.style import ACCENT, FAINT, INK, add_legend, drawing, dress
from ...plots.words import (
    FEDERATION,
    build_table,
    format_client_letters,
    format_percent,
    join_with_and,
    make_setting_caption,
)
from ...studies import Outcome
from ...studies.lesson_runs import CLIENTS
from ..kit.array_types import CountPerClass
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

SEED = 4  # the draw in which two clients hold only eights


def draw_logits_and_answer_counts(
    outcome_of_weights: Outcome, outcome_of_logits: Outcome, outcome_of_probabilities: Outcome
) -> Picture:
    """Draw how loud each client is, and what three rules answer.

    Left: each client's largest logit, as a mean over the test images. Right: how often each rule
    answers each digit.
    """
    image_count = len(outcome_of_logits.test_labels)
    client_logits = outcome_of_logits.test_features.reshape(image_count, CLIENTS, -1)  # [N, M, C]
    largest = client_logits.max(2).mean(0)
    offices = {}
    for k, counts in enumerate(outcome_of_logits.label_counts):
        offices[describe_office_and_its_only_digit(k, counts)] = {"logit": float(largest[k])}
    rows = {"true digits": np.bincount(outcome_of_logits.test_labels, minlength=10)}
    descriptions = []
    for rule, outcome in (
        ("FedAvg", outcome_of_weights),
        ("mean of logits", outcome_of_logits),
        ("mean of probabilities", outcome_of_probabilities),
    ):
        answers = np.bincount(outcome.test_predictions, minlength=10)
        accuracy = format_percent(outcome.accuracy)
        rows[f"{rule}: {accuracy}"] = answers
        descriptions.append(
            f"{rule} {accuracy}, most often “{answers.argmax()}” ({answers.max()} images)"
        )
    with drawing(1, 2, width_ratios=[1, 1.7]) as (figure, (left, right)):
        dress(left, title="Largest logit", x="mean over the test images", grid="x")
        draw_stacked_bars_and_get_ends(left, offices, {"logit": ACCENT})
        draw_heat_map(
            right,
            np.array(list(rows.values()), float),
            largest_value=360,
            format_cell="{:.0f}".format,
        )
        dress(right, title="How many of the 360 images are called …", x="digit")
        right.set_xticks(range(10))
        labels = [row.replace(" of ", " of\n").replace(": ", "\n") for row in rows]
        right.set_yticks(range(len(rows)), labels)
    table = []
    for rule, answers in rows.items():
        table.append({"rule": rule, **{str(c): int(n) for c, n in enumerate(answers)}})
    return describe_picture(
        figure,
        "How loud each client is, and what averages answer",
        make_setting_caption({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        f"Largest logit {largest.max():.1f}, smallest {largest.min():.1f}. Right: {join_with_and(descriptions)}.",
        table,
    )


def describe_office_and_its_only_digit(client_index: int, counts_by_digit: CountPerClass) -> str:
    """Describe an office: 'office E: only “8”' where a client has images of one digit, else 'office D'."""
    name = f"office {format_client_letters(client_index)}"
    held = np.flatnonzero(counts_by_digit)
    if len(held) == 1:
        name += f": only “{held[0]}”"
    return name


def draw_patients_by_hospital() -> Picture:
    """Draw how many patients each hospital of `heart` has for training, and how many of them are ill."""
    data = load("heart")
    counts = np.zeros((len(data.client_names), 2), int)
    np.add.at(counts, (data.client_train.numpy(), data.y_train.numpy()), 1)
    rows = []
    parts = {}
    descriptions = []
    for name, (well, ill) in zip(data.client_names, counts.tolist(), strict=True):
        rows.append((name, ill, well))
        parts[name] = {"ill": ill, "not ill": well}
        descriptions.append(f"{name} {ill} of {well + ill}")
    with drawing(size=(7.5, 2.3)) as (figure, ax):
        dress(ax, title="Patients of four hospitals, for training", grid="x")
        ends = draw_stacked_bars_and_get_ends(ax, parts, {"ill": ACCENT, "not ill": FAINT})
        for i, ((_, ill, well), end) in enumerate(zip(rows, ends, strict=True)):
            text = f"{format_percent(ill / (ill + well))} ill"
            ax.text(end + 3, i, text, va="center", fontsize=9.5, color=INK)
        ax.set_xlim(0, max(ends) * 1.14)
        add_legend(ax, loc="lower right", ncols=2, bbox_to_anchor=(1, 1))
    return describe_picture(
        figure,
        "Patients of four hospitals",
        "heart",
        f"Of the patients for training, these are ill: {join_with_and(descriptions)}.",
        build_table("hospital | ill | not ill", rows),
    )
