"""Lesson 01, label skew: its worked numbers and its two exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset); nothing is written into the text by hand.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from fedlab_nb.data import federate
from fedlab_nb.draw import Picture, partition
from fedlab_nb.draw.against_alpha import against_alpha
from fedlab_nb.draw.words import half_width, is_noise
from fedlab_nb.study import Outcomes, compare

from .problem import NumberProblem, RecordProblem, Verdict
from .view import Card, ProblemView, Sheet

SEEDS = 3
DATASET = "digits"


# ------------------------------------------------------------------------------------------------------ worked numbers
def effective_classes(alpha: float, clients: int = 10) -> float:
    """Mean effective number of classes of a client, over the lesson's seeds."""
    skews = [federate(DATASET, alpha=alpha, clients=clients, seed=seed).skew for seed in range(SEEDS)]
    return mean(skew.effective_classes for skew in skews)


def partitions(alphas: Sequence[float] = (100, 1, 0.1, 0.01), clients: int = 10, seed: int = 0) -> Sheet:
    """Who holds what for each α, side by side."""
    pictures = {}
    for alpha in alphas:
        federation = federate(DATASET, alpha=alpha, clients=clients, seed=seed)
        pictures[f"α = {alpha:g}"] = partition(
            federation.label_counts.numpy(),
            federation.dataset.class_names,
            setting=f"{DATASET}, α = {alpha:g}, {clients} clients",
            jensen_shannon=federation.skew.jensen_shannon,
            effective_classes=federation.skew.effective_classes,
        )
    return Sheet(pictures)


def one_client(alpha: float = 0.1, client: int = 0, seed: int = 0) -> Card:
    """exp(entropy) of one client's shares, term by term."""
    counts = federate(DATASET, alpha=alpha, clients=10, seed=seed).label_counts[client].tolist()
    shares = [(digit, n / sum(counts)) for digit, n in enumerate(counts) if n]
    entropy = -sum(p * math.log(p) for _, p in shares)
    holds = ", ".join(f"{counts[digit]} × “{digit}”" for digit, _ in shares)
    terms = " ".join(f"− {p:.2f}·ln {p:.2f}" for _, p in shares)
    return Card(
        "worked",
        f"Client {client} at α = {alpha:g} (seed {seed}) holds {holds}.\n"
        f"H = {terms} = {entropy:.2f}; effective classes = exp(H) = exp({entropy:.2f}) = {math.exp(entropy):.1f}, "
        f"although {len(shares)} of 10 classes occur.",
    )


def two_units() -> Card:
    """Two clients, one hidden unit each, f(x) = v · max(0, w·x): both averages, by hand."""

    def f(x: float, w: float, v: float) -> float:
        return v * max(0.0, w * x) + 0.0  # + 0.0: no minus zero

    (w_a, v_a), (w_b, v_b) = (1.0, 1.0), (-1.0, -1.0)
    w, v = (w_a + w_b) / 2, (v_a + v_b) / 2
    rows = []
    for x in (3.0, -3.0):
        a, b = f(x, w_a, v_a), f(x, w_b, v_b)
        rows.append(
            f"x = {x:g}: A says {a:g}, B says {b:g}; mean of the predictions {(a + b) / 2:g}; "
            f"mean of the weights is w = {w:g}, v = {v:g}, which says {f(x, w, v):g}"
        )
    return Card("worked", "\n".join(rows))


def percent(outcomes: Sequence[Any], method: str, **setting: Any) -> float:
    """Mean test accuracy of `method` in percent, over the seeds in `outcomes` whose setting has these values."""
    chosen = [o.accuracy for o in outcomes if o.method == method and all(o.setting[k] == v for k, v in setting.items())]
    return 100 * mean(chosen)


def runs(alpha: float, methods: Sequence[str] = ("local", "fedavg", "ensemble"), **settings: Any) -> Outcomes:
    """The lesson's runs at one α."""
    return compare(list(methods), dataset=DATASET, alpha=alpha, clients=10, seeds=SEEDS, **settings)


def averages(alpha: float, **settings: Any) -> Card:
    """Local, FedAvg and ensemble at one α, as a sentence."""
    found = runs(alpha, **settings)
    names = {"local": "one client alone", "fedavg": "average of weights", "ensemble": "average of predictions"}
    parts = [f"{text} {percent(found, method):.0f} %" for method, text in names.items()]
    start = ", every client from its own random start" if settings.get("init") == "different" else ""
    return Card("worked", f"α = {alpha:g}{start}: {', '.join(parts)} (means of {SEEDS} seeds).")


def sweep(alphas: Sequence[float] = (0.01, 0.032, 0.1, 0.32, 1, 10, 100)) -> Picture:
    """Local, FedAvg and ensemble over the range of α."""
    names = {"ensemble": "average of predictions", "fedavg": "average of weights", "local": "one client alone"}
    accuracies: dict[str, dict[float, dict[int, float]]] = {text: {} for text in names.values()}
    for alpha in alphas:
        found = runs(alpha)
        for method, text in names.items():
            accuracies[text][alpha] = {o.setting["seed"]: o.accuracy for o in found if o.method == method}
    setting = f"{DATASET}, 10 clients, mean of {SEEDS} seeds and band of 2 standard errors"
    return against_alpha(accuracies, setting=setting, chance=0.1)


RESTARTS = ("as good as with a common start", "clearly worse", "no better than guessing")


def after_restarting() -> str:
    """Which of RESTARTS happens to FedAvg at α = 100 when every client has a start of its own (guessing: 10 %)."""
    common, own = (percent(runs(100, ("fedavg",), init=init), "fedavg") for init in ("same", "different"))
    return RESTARTS[2] if own < 15 else RESTARTS[1] if own < common - 5 else RESTARTS[0]


def reality() -> Card:
    """Where the lesson's slogan ends: what averaging predictions still loses, and what two one-shot methods reach."""
    lines = []
    for alpha in (0.032, 0.1):
        found = runs(alpha, ("ensemble", "fens", "fedlpa"))
        by_probability = runs(alpha, ("ensemble",), rule="probabilities")
        lines.append(
            f"α = {alpha:g}: mean of logits {percent(found, 'ensemble'):.0f} %, mean of probabilities "
            f"{percent(by_probability, 'ensemble'):.0f} %, FENS {percent(found, 'fens'):.0f} %, "
            f"FedLPA {percent(found, 'fedlpa'):.0f} %"
        )
    everything = percent(runs(0.1, ("centralized",)), "centralized")
    lines.append(f"all data in one place, which nobody may do: {everything:.0f} % (means of {SEEDS} seeds)")
    return Card("worked", "\n".join(lines))


# ------------------------------------------------------------------------------------------------------ exercises
q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
        question="A client holds 40 images: 20 zeros, 10 ones, 10 twos. What is its effective number of classes?",
        right_answer=round(2**1.5, 2),
        tolerance=0.02,
        hints=(
            "The shares are 1/2, 1/4 and 1/4. The formula stands above, with the numbers of another client.",
            "H = −½ ln ½ − ¼ ln ¼ − ¼ ln ¼ = 1.5 · ln 2. Then take exp(H).",
        ),
        explanation="exp(1.5 · ln 2) = 2^1.5 = {answer}: fewer than 3 classes, because half of the images are zeros.",
        slips=(
            (3, "that counts the classes that occur; a class with few images counts for less."),
            (round(1.5 * math.log(2), 2), "that is the entropy H itself; the number of classes is exp(H)."),
            (1.5, "that is the entropy in bits; take 2 to that power."),
        ),
    )
)


def gaps(outcomes: Sequence[Any]) -> dict[str, tuple[float, list[float]]]:
    """For every setting: its α, and ensemble − fedavg, seed by seed (same federation and clients), in points."""
    pairs: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for o in outcomes:
        if o.method in ("fedavg", "ensemble"):
            setting = {k: v for k, v in o.setting.items() if k not in ("seed", "options")}
            pairs[json.dumps(setting, sort_keys=True, default=str)][o.setting["seed"]][o.method] = 100 * o.accuracy
    found = {}
    for key, seeds in pairs.items():
        both = [pair["ensemble"] - pair["fedavg"] for _, pair in sorted(seeds.items()) if len(pair) == 2]
        found[key] = (json.loads(key)["alpha"], both)
    return found


def two_settings(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 2: somewhere the gap is clear, elsewhere it is within the noise."""
    clear, noise, short = [], [], []
    for alpha, gap in gaps(outcomes).values():
        if len(gap) < 3:
            short.append(f"α = {alpha:g} has {len(gap)} seed{'s' * (len(gap) != 1)} with both methods")
            continue
        band = half_width(gap)
        text = f"α = {alpha:g}: {', '.join(f'{g:+.0f}' for g in gap)} points, mean {mean(gap):+.0f} ± {band:.0f}"
        if is_noise(mean(gap), band):
            noise.append(text)
        elif mean(gap) > 0:
            clear.append(text)
    if clear and noise:
        return Verdict("right", f"Supported by your runs. Clear at {clear[0]}. Within the noise at {noise[0]}.")
    missing = []
    if not clear:
        missing.append("a setting where the average of predictions is clearly better")
    if not noise:
        missing.append("a setting where the difference is within the noise")
    seen = "; ".join([*clear, *noise, *short]) or "no setting has runs of both fedavg and ensemble"
    return Verdict("wrong", f"Still to find, with 3 seeds or more: {' and '.join(missing)}. Your record: {seen}.")


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 2."""
    return Outcomes([*runs(0.1, ("fedavg", "ensemble")), *runs(0.032, ("fedavg", "ensemble"))])


q2 = ProblemView(
    RecordProblem(
        title="Exercise 2",
        question=(
            "Use the panel above. Find one setting where averaging predictions is clearly better than averaging "
            "weights, and one where the difference is within the noise. Your runs are the answer: take at least 3 "
            "seeds for each."
        ),
        right_answer=solution_runs,
        hints=(
            "Change one thing only, α. You have seen one of the two settings already.",
            "Go to the ends of the slider: with hardly any skew both averages do well, with the strongest both badly.",
        ),
        explanation=(
            "Run fedavg and ensemble at α = 0.1 and at α = 0.032. {verdict} At the stronger skew even the average of "
            "predictions fails: most models have never seen the right class and are sure of a wrong one."
        ),
        claim=two_settings,
    )
)
