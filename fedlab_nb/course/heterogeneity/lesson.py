"""Lesson 2, label skew: its worked numbers, from ten stored seeds, and its three exercises."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from ...data import federate
from ...plots import Picture
from ...plots.kit import describe_picture, draw_heat_map
from ...plots.style import drawing, dress
from ...plots.words import build_table, format_letters
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import DATASET, LOGITS, MANY, SEEDS, runs
from ...studies.settings import Settings
from ..kit import Build, Verdict, exercises
from ..kit.claims import figures_of, find_gaps, judge_two_kinds

# ---------------------------------------------------------------------------------- worked numbers
mean_of, starts = figures_of(__name__, "starts")


def largest_share(alpha: float, clients: int = 10) -> float:
    """Percent of a class's images at the client with most of them: the mean over classes and the
    lesson's seeds.
    """
    shares = []
    for seed in range(SEEDS):
        counts = federate(DATASET, alpha=alpha, clients=clients, seed=seed).label_counts
        largest = counts.amax(0) / counts.sum(0)
        shares.append(float(largest.mean()))
    return 100 * mean(shares)


def loudest(outcome: Outcome) -> float:
    """The largest over the clients of their largest logit, mean over the test images."""
    logits = outcome.test_features.reshape(len(outcome.test_labels), -1, 10)  # [N, M, C]
    return round(float(logits.max(2).mean(0).max()), 1)


def partitions(
    alphas: Sequence[float] = (100, 1, 0.1, 0.01), clients: int = 10, seed: int = 4
) -> Picture:
    """Who holds what for each α, side by side; the titles give the skew as numbers."""
    sentences = []
    rows = []
    with drawing(1, len(alphas), size=(3.2 * len(alphas), 3.2)) as (figure, axes):
        for alpha, ax in zip(alphas, axes, strict=True):
            federation = federate(DATASET, alpha=alpha, clients=clients, seed=seed)
            counts = federation.label_counts.numpy()
            skew = federation.skew
            draw_heat_map(ax, (counts / counts.sum(0)).T)
            dress(ax, title=f"α = {alpha:g}, skew {skew.jensen_shannon:.2f}", x="client", y="class")
            ax.set_xticks(range(clients), [format_letters(k) for k in range(clients)])
            ax.set_yticks(range(federation.classes))
            sentences.append(
                f"α = {alpha:g}: a client effectively sees {skew.effective_classes:.1f} classes."
            )
            for k, row in enumerate(counts.tolist()):
                rows.append((alpha, format_letters(k), *row))
    columns = ["α", "client", *(f"class {c}" for c in range(federation.classes))]
    return describe_picture(
        figure,
        "Each client's share of each class",
        f"{DATASET}, {clients} clients, seed {seed}",
        " ".join(sentences),
        build_table(columns, rows),
    )


RESTARTS = ("as good as with a common start", "clearly worse", "no better than guessing")


def after_restarting() -> str:
    """Which of RESTARTS happens to FedAvg at α = 100 when every client has a start of its own
    (guessing: 10 %).
    """
    common_start = mean_of("common")
    own_starts = mean_of("own")
    if own_starts < 15:
        return RESTARTS[2]
    if own_starts < common_start - 5:
        return RESTARTS[1]
    return RESTARTS[0]


# ---------------------------------------------------------------------------------- exercises
def two_settings(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 2: somewhere the gap is clear, elsewhere it is within the noise, each
    on ten seeds. Both are found on validation images; the test images are looked at for these two
    alone.
    """
    rules = [o.options.get("rule") for o in outcomes if o.method == "ensemble"]
    # Ensembles with two rules are two questions: the last one counts.
    compared = [o for o in outcomes if o.method != "ensemble" or o.options.get("rule") == rules[-1]]
    gaps = find_gaps(compared, None, "ensemble", "fedavg", describe_conditions, MANY)
    return judge_two_kinds(gaps, least_seeds=MANY, **words)


def describe_conditions(conditions: tuple[Settings, Any]) -> str:
    """What tells the setting from the panel's: 'α = 0.3', or 'α = 0.3, 20 clients'."""
    settings, _ = conditions
    text = f"α = {settings.alpha:g}"
    if settings.clients != 10:
        text += f", {settings.clients} clients"
    return text


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 2."""
    outcomes = []
    for alpha in (0.3, 0.025):
        outcomes += runs(("fedavg", "ensemble"), alpha, seeds=MANY, **LOGITS)
    return Outcomes(outcomes)


# ---------------------------------------------------------------------------- the function to build
Network = Mapping[str, np.ndarray]
SHAPES = {"hidden": (4, 3), "bias": (4,), "output": (2, 4)}  # no layer is square


def fedavg(networks, counts):
    average = {}
    for layer in networks[0]:
        average[layer] = 0
        for k in range(len(networks)):
            average[layer] = average[layer] + counts[k] / sum(counts) * networks[k][layer]
    return average


def draw_hidden_case(stream: np.random.Generator, clients: int) -> tuple[list[Network], np.ndarray]:
    """Networks of three layers; clients hold between 5 and 60 images, each another number."""
    networks = []
    for _ in range(clients):
        networks.append({layer: stream.normal(size=shape) for layer, shape in SHAPES.items()})
    counts = stream.permutation(np.arange(5, 61))[:clients]
    return networks, counts


def weighted_sum(networks: Sequence[Network], weights: np.ndarray) -> Network:
    """Σ_k weights[k] · θ_k."""
    total = {}
    for layer in networks[0]:
        total[layer] = sum(w * n[layer] for w, n in zip(weights, networks, strict=True))
    return total


def plain_mean(networks: Sequence[Network], counts: np.ndarray) -> Network:
    return weighted_sum(networks, np.full(len(counts), 1 / len(counts)))


def last_alone(networks: Sequence[Network], counts: np.ndarray) -> Network:
    """The loop writes over what it has: = in the place of +=."""
    return weighted_sum(networks[-1:], (counts / counts.sum())[-1:])


def first_alone(networks: Sequence[Network], counts: np.ndarray) -> Network:
    """`return` stands inside the loop over the clients."""
    return weighted_sum(networks[:1], (counts / counts.sum())[:1])


SLIPS = {
    "plain": plain_mean,
    "not_divided": weighted_sum,
    "last_alone": last_alone,
    "first_alone": first_alone,
}


BUILD = Build(fedavg, ((2,), (3,), (5,)), draw_hidden_case, SLIPS)

q1, q2, q3 = exercises(__name__, q2=(two_settings, solution_runs), q3=BUILD)
