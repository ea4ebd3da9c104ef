"""Lesson 11, names of neurons: its worked numbers and its exercises.

Every number that the lesson shows is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset); nothing is written into the text by hand.
"""

import math
from collections.abc import Sequence
from statistics import mean

import torch

from ...data import load
from ...declared import declared
from ...labs.matching.barrier import barrier
from ...labs.matching.game import UNITS, game, puzzle
from ...labs.matching.pairs import pair_of
from ...methods.base import weighted_mean
from ...methods.matching.wiring import permuted, wiring_of
from ...models import build, load_state, model_state
from ...plots import Picture
from ...plots.words import apart, mean_percent, percent
from ...study import Outcome
from ...study.lesson_runs import DATASET, MANY, SEEDS, accuracies, by_seed, runs
from ...study.lesson_runs import percent as percent_of
from ..kit.runs import versus
from ..kit.view import Card, worked
from .exercises import STARTS, q1, q2, q3, q4

__all__ = ["q1", "q2", "q3", "q4"]  # used by the notebook, made elsewhere

# A way to average the same uploads, its method, and the method's own settings.
WAYS = (
    ("plain average", "fedavg", {}),
    ("task arithmetic, scale 0.5", "ties", {"ties.rule": "task", "ties.scale": 0.5}),
    ("TIES, 20 % kept", "ties", {"ties.rule": "ties", "ties.keep": 0.2}),
    ("DARE, 50 % dropped", "ties", {"ties.rule": "task", "ties.drop": 0.5}),
    ("matched, OT-Fusion", "matching", {"matching.rule": "greedy"}),
    ("matched, Git Re-Basin", "matching", {"matching.rule": "rebasin"}),
    ("average of predictions", "ensemble", {"ensemble.rule": "probabilities"}),
)
WORDS = declared("course/matching/words.toml")
MIDDLES, SKEWED, CONFLICTS = (tuple(WORDS[name]) for name in ("middles", "skewed", "conflicts"))


# ------------------------------------------------------------------------------------------------ units have no names
def by_hand(number: int = 0) -> Picture:
    """A puzzle as the tab shows it at the start, the units of B in their own order."""
    return game(puzzle(number), range(UNITS), number)


def middle(number: int = 0) -> str:
    """Which of MIDDLES the loss half-way is, B's units in their own order."""
    loss = puzzle(number).loss(range(UNITS))
    return MIDDLES[1] if loss[len(loss) // 2] > 2 * max(loss[0], loss[-1]) else MIDDLES[0]


def same_function() -> Card:
    """A network with its units in another order: what changes, and what does not; and the average of both."""
    data, stream = load(DATASET), torch.Generator().manual_seed(0)
    network = runs("matching", 100, seeds=1)[0].model.clients.module(0)
    network = network.double().eval()
    wiring, state = wiring_of(network), model_state(network)
    other = permuted(state, wiring, [torch.randperm(n, generator=stream) for n in wiring.units])
    x, y = data.x_test.double(), data.y_test
    answers, rights = [], []
    for weights in (state, other, weighted_mean([state, other], [1, 1])):
        twin = build("mlp", data.input_shape, data.classes, dtype=torch.float64).eval()
        load_state(twin, weights)
        answers.append(twin(x).detach())
        rights.append(float((answers[-1].argmax(1) == y).double().mean()))
    moved = mean(float((state[name] != other[name]).double().mean()) for name in wiring.axes)
    apart = float((answers[0] - answers[1]).abs().max())
    near = "less than 10⁻¹⁰" if apart < 1e-10 else f"{apart:.1g}"
    orders = sum(math.lgamma(n + 1) for n in wiring.units) / math.log(10)
    return worked(
        f"One client's network has {' and '.join(map(str, wiring.units))} hidden units: about 10^{orders:.0f} orders.",
        f"In another order {percent(moved)} of the numbers in its hidden layers differ. Over {len(y)} test images "
        f"the largest difference of a logit is {near}. Both are right for {percent(rights[0])}.",
        f"The average of the network and of itself in the other order is right for {percent(rights[2])}.",
    )


# ------------------------------------------------------------------------------------------------ matching
def assignment() -> Card:
    """Three units matched with three: all six sums."""
    return worked(
        "A 1 fits B's units with 9, 6, 1; A 2 with 8, 2, 1; A 3 with 3, 4, 2.",
        "In the order in which they stand: 9 + 2 + 2 = 13.",
        "A 1 takes the unit that fits it best: 9. Then A 2 and A 3 get 2 + 2 or 1 + 4: at most 9 + 1 + 4 = 14.",
        "A 1 takes its second choice: 6 + 8 + 2 = 16. This sum is the largest of all six.",
    )


def pair(client: int = 0, other: int = 1, seed: int = 0, measure: str = "loss") -> Picture:
    """The barrier between two clients with different starts at α = 100."""
    outcome = runs("matching", 100, init="different", seeds=1, seed=seed)[0]
    return barrier(pair_of(outcome, client, other, "rebasin"), measure, 0.1)


def after_matching(outcomes: Sequence[Outcome]) -> float:
    """Mean accuracy of the matched average, in percent."""
    return round(percent_of(outcomes, "matching"))


def rules() -> Card:
    """The three rules beside each other, α = 100, different starts."""
    lines = []
    for rule, words in (("greedy", "greedy (OT-Fusion)"), ("rebasin", "Git Re-Basin"), ("activations", "activations")):
        outcomes = runs("matching", 100, init="different", rule=rule)
        lines.append(f"{words}: {percent_of(outcomes, 'matching'):.0f} %")
    plain = mean(o.report.average_accuracy for o in outcomes)
    return worked(*lines, f"the plain average: {percent(plain)} (α = 100, different starts, means of {SEEDS} seeds)")


# ------------------------------------------------------------------------------------------------ what it cannot do
def under_skew() -> str:
    """Which of SKEWED matching is at α = 0.1 with a common start."""
    outcomes = runs("matching", 0.1)
    gap = mean(o.accuracy - o.report.average_accuracy for o in outcomes)
    return SKEWED[0] if gap > 0.05 else SKEWED[2] if gap < -0.05 else SKEWED[1]


def starts() -> Card:
    """Matched and plain average at three α, for both kinds of start."""
    lines = []
    for start, words in STARTS.items():
        by_alpha = {f"α = {alpha:g}": runs("matching", alpha, init=start) for alpha in (0.1, 1, 100)}
        matched = {at: mean(o.accuracy for o in outcomes) for at, outcomes in by_alpha.items()}
        plain = {at: mean(o.report.average_accuracy for o in outcomes) for at, outcomes in by_alpha.items()}
        for kind, shares in (("matched", matched), ("plain", plain)):
            lines.append(f"{kind}, {words}: " + ", ".join(f"{percent(v)} at {at}" for at, v in shares.items()))
    return worked(*lines, f"({DATASET}, ten clients, means of {SEEDS} seeds; guessing: 10 %)")


def grown() -> Card:
    """PFNM at α = 0.1: from everything matched to nothing matched."""
    lines = []
    for words, own in (
        ("noise 1, mass 1", {"sigma": 1.0, "gamma": 1.0}),
        ("noise 0.3, mass 1", {"sigma": 0.3, "gamma": 1.0}),
        ("noise 1, mass 1 000 000 000", {"sigma": 1.0, "gamma": 1e9}),
    ):
        outcomes = runs("matching", 0.1, model="mlp1", rule="pfnm", **own)
        units = mean(o.report.neurons for o in outcomes)
        lines.append(f"{words}: {units:.0f} units, {mean_percent(accuracies(outcomes, 'matching'))}")
    plain = mean(o.report.average_accuracy for o in outcomes)
    return worked(*lines, f"plain average: 32 units, {percent(plain)} (α = 0.1, common start, means of {SEEDS} seeds)")


# ------------------------------------------------------------------------------------------------ ways to average
def conflicts() -> str:
    """Which of CONFLICTS the share of parameters is whose changes have both signs, at α = 0.1."""
    share = mean(o.report.conflicts for o in runs("ties", 0.1))
    return CONFLICTS[0] if share < 1 / 3 else CONFLICTS[2] if share > 3 / 4 else CONFLICTS[1]


def ways(alpha: float = 0.1) -> Card:
    """Seven ways to use the same uploads, of clients with a common start."""
    lines = []
    for name, method, own in WAYS:
        outcomes = runs(method, alpha, **own)
        lines.append(f"{name}: {mean_percent(accuracies(outcomes, method))}")
    return worked(*lines, f"(α = {alpha:g}, common start, means of {SEEDS} seeds)")


def reality() -> Card:
    """TIES against the plain average on two sets of seeds, and matching against the average and the ensemble."""
    lines = []
    for first in (0, 100):
        both = runs(["ties", "fedavg"], 0.1, seed=first, seeds=MANY)
        gap = versus(both, "ties", "fedavg")
        lines.append(f"α = 0.1, common start, TIES − plain average, seeds {first}–{first + MANY - 1}: {gap}")
    matched = runs(["matching", "ensemble"], 100, init="different", seeds=MANY)
    plain = {seed: o.report.average_accuracy for seed, o in by_seed(matched, "matching").items()}
    return worked(
        *lines,
        f"α = 100, different starts, matched − plain average: {apart(accuracies(matched, 'matching'), plain)}",
        f"α = 100, different starts, matched − average of predictions: {versus(matched, 'matching', 'ensemble')}",
        f"({MANY} seeds each)",
    )
