"""Lesson 11, names of neurons: its worked numbers and its exercises.

Every number that the lesson shows is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, the classroom preset); nothing is written into the text by hand.
"""

import itertools
import math
from collections.abc import Sequence
from statistics import mean

import numpy as np
import torch

from ...data import load
from ...labs.matching.barrier import barrier
from ...labs.matching.game import UNITS, game, puzzle
from ...labs.matching.pairs import pair_of
from ...methods.base import weighted_mean
from ...methods.matching.wiring import permuted, wiring_of
from ...models import load_state, model_state
from ...plots import Picture
from ...plots.words import percent
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import DATASET, alike, runs
from ...studies.lesson_runs import percent as percent_of
from ..kit import Build, Card, Gap, Verdict, exercises, lesson_words, two_kinds, worked
from ..kit import numbers as as_array

STARTS = {"same": "common start", "different": "different starts"}
MIDDLES, SKEWED, CONFLICTS = (lesson_words(__name__, name) for name in ("middles", "skewed", "conflicts"))


# ---------------------------------------------------------------------------------- units have no names
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
    network = runs("matching", 100, seeds=1)[0].model.clients.module(0).double().eval()
    wiring, state = wiring_of(network), model_state(network)
    other = permuted(state, wiring, [torch.randperm(n, generator=stream) for n in wiring.units])
    answers = []
    for weights in (state, other, weighted_mean([state, other], [1, 1])):
        load_state(network, weights)
        answers.append(network(data.x_test.double()).detach())
    rights = [float((answer.argmax(1) == data.y_test).double().mean()) for answer in answers]
    moved = mean(float((state[name] != other[name]).double().mean()) for name in wiring.axes)
    apart = float((answers[0] - answers[1]).abs().max())
    near = "less than 10⁻¹⁰" if apart < 1e-10 else f"{apart:.1g}"
    orders = sum(math.lgamma(n + 1) for n in wiring.units) / math.log(10)
    return worked(
        f"One client's network has {' and '.join(map(str, wiring.units))} hidden units: about 10^{orders:.0f} orders.",
        f"In another order {percent(moved)} of the numbers in its hidden layers differ. Over {len(data.y_test)} test "
        f"images the largest difference of a logit is {near}. Both are right for {percent(rights[0])}.",
        f"The average of the network and of itself in the other order is right for {percent(rights[2])}.",
    )


# ---------------------------------------------------------------------------------- matching


def pair(client: int = 0, other: int = 1, seed: int = 0, measure: str = "loss") -> Picture:
    """The barrier between two clients with different starts at α = 100."""
    outcome = runs("matching", 100, init="different", seeds=1, seed=seed)[0]
    return barrier(pair_of(outcome, client, other, "rebasin"), measure, 0.1)


def after_matching(outcomes: Sequence[Outcome]) -> float:
    """Mean accuracy of the matched average, in percent."""
    return round(percent_of(outcomes, "matching"))


# ---------------------------------------------------------------------------------- what it cannot do
def under_skew() -> str:
    """Which of SKEWED matching is at α = 0.1 with a common start."""
    outcomes = runs("matching", 0.1)
    gap = mean(o.accuracy - o.report.average_accuracy for o in outcomes)
    return SKEWED[0] if gap > 0.05 else SKEWED[2] if gap < -0.05 else SKEWED[1]


# ---------------------------------------------------------------------------------- ways to average
def conflicts() -> str:
    """Which of CONFLICTS the share of parameters is whose changes have both signs, at α = 0.1."""
    share = mean(o.report.conflicts for o in runs("ties", 0.1))
    return CONFLICTS[0] if share < 1 / 3 else CONFLICTS[2] if share > 3 / 4 else CONFLICTS[1]


# ---------------------------------------------------------------------------------- the records of runs


def two_starts(outcomes: Sequence[Outcome], **words: str) -> Verdict:
    """The claim of exercise 3: at one α matching is clearly better than FedAvg, or not, by the setting."""
    by_alpha: dict[float, list[Gap]] = {}
    for (settings, _), methods in alike(outcomes).items():
        if methods.keys() & {"matching", "fedavg"}:
            name = f"α = {settings.alpha:g}, {STARTS[settings.init]}"
            by_alpha.setdefault(settings.alpha, []).append(Gap(name, methods["matching"], methods["fedavg"]))
    verdicts = [two_kinds(gaps, **words) for gaps in by_alpha.values()] or [two_kinds([], **words)]
    return next((verdict for verdict in verdicts if verdict.state == "right"), verdicts[0])


def both_starts() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    return Outcomes(o for init in STARTS for o in runs(["fedavg", "matching"], 100, init=init))


# ---------------------------------------------------------------------------------- the function to build
SIZES = ((3, 4), (4, 3), (5, 2), (5, 6), (4, 1))  # units and incoming numbers of the hidden inputs


def match_units(a: np.ndarray, b: np.ndarray) -> list[int]:
    from scipy.optimize import linear_sum_assignment

    distances = [[np.linalg.norm(one - other) for other in b] for one in a]
    ours, theirs = linear_sum_assignment(distances)
    return theirs.tolist()


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of networks for which every wrong function below goes wrong somewhere, and the best order is clear."""
    stream, pairs = np.random.default_rng(7), []
    for units, width in SIZES * 4:
        a = stream.normal(size=(units, width))
        b = a[stream.permutation(units)] + 0.7 * stream.normal(size=(units, width))
        costs = sorted(total(a, b, order) for order in itertools.permutations(range(units)))
        if costs[1] - costs[0] > 0.05:
            pairs.append((a, b))
    return pairs


def total(a: np.ndarray, b: np.ndarray, order: Sequence[int]) -> float:
    """Σ_i ‖a_i - b_order[i]‖."""
    return float(np.linalg.norm(a - b[list(order)], axis=1).sum())


def accepted(returned: object, wanted: object, arguments: tuple) -> bool:
    """Whether what is `returned` is an order whose sum of distances is the least."""
    order = as_array(returned)
    if order is None or sorted(order.ravel().tolist()) != list(range(len(arguments[0]))):
        return False
    return total(*arguments, order.astype(int).ravel()) <= total(*arguments, match_units(*arguments)) + 1e-9


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a[:, None] - b[None], axis=2)


def nearest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Each unit takes its nearest one, whoever else has it."""
    return _distances(a, b).argmin(1)


def first_come(a: np.ndarray, b: np.ndarray) -> list[int]:
    """Unit after unit takes the nearest one that is still free."""
    free, order = list(range(len(b))), []
    for row in _distances(a, b):
        order.append(min(free, key=lambda j, row=row: row[j]))
        free.remove(order[-1])
    return order


def inverse(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The right order from the other side: where each unit of b goes."""
    return np.argsort(match_units(a, b))


def as_they_stand(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """0, 1, 2, …"""
    return np.arange(len(a))


def from_one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The right order, counted from 1."""
    return np.array(match_units(a, b)) + 1


MATCH = Build(match_units, hidden_inputs, (as_they_stand, nearest, inverse, first_come, from_one), accepts=accepted)


q1, q2, q3, q4 = exercises(__name__, q3=(two_starts, both_starts), q4=MATCH)
