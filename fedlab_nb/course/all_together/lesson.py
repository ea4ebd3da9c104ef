"""Lesson 08, all together: accuracy against bytes, features and leaks; its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (digits, ten clients,
the classroom preset); nothing is written into the text by hand.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np

from ...data import title_of
from ...plots.study import pareto
from ...plots.words import data_size, listed, number, seeds_of
from ...studies import Outcome, Outcomes, stored
from ...studies.lesson_runs import ALPHA, MANY, accuracies, by_seed, runs, title
from ...studies.statistics import band
from ..kit import CLEAR, ENOUGH, SHORT, Build, Card, Gap, Verdict, exercises, versus, worked

METHODS_HERE = ("fedavg", "ensemble", "feddf", "fens", "fedlpa", "fusefl", "fedet", "coboosting")
MANY_ROUNDS = ("fedavg_multi", "fedadam")
OTHERS = ("afl", "gauss", "regmean", "fedcvae", *MANY_ROUNDS, "centralized")  # not what lesson 12 asks for


# ---------------------------------------------------------------------------------- worked numbers
def by_method(outcomes: Sequence[Outcome]) -> dict[str, tuple[float, float]]:
    """{method: (mean accuracy, mean bytes of all clients, both ways)}."""
    groups = {o.method: [each for each in outcomes if each.method == o.method] for o in outcomes}
    return {m: (mean(o.accuracy for o in os), mean(o.bytes_up + o.bytes_down for o in os)) for m, os in groups.items()}


def other_rules(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], float]:
    """{(method, rule in words): mean accuracy} under the rules by which a run does not predict but could."""
    shares = defaultdict(list)
    for o in outcomes:
        for words, share in o.report.others().items():
            shares[o.method, words].append(share)
    return {key: mean(values) for key, values in shares.items()}


def front(points: Mapping[Any, tuple[float, float]]) -> list[Any]:
    """Methods that no other one beats: none is at least as accurate for no more bytes, and better in one of the two."""
    return pareto({name: (sent, accuracy) for name, (accuracy, sent) in points.items()})


def price_list(outcomes: Sequence[Outcome]) -> Card:
    """The front, cheapest first, and the gap between the two most accurate methods with its band."""
    outcomes = [o for o in outcomes if o.method not in ("local", "centralized")]
    points = by_method(outcomes)
    best = front(points)
    work = {o.method: f"{o.local_passes:.0f} passes over its own data" for o in outcomes}
    lines = [f"{title(m)}: {data_size(points[m][1])}, {100 * points[m][0]:.0f} %, {work[m]}" for m in best]
    if len(points) > 1:
        one, other = sorted(points, key=lambda m: -points[m][0])[:2]
        lines.append(f"{title(one)} − {title(other)}: {versus(outcomes, one, other)}.")
    beaten = listed([title(m) for m in points if m not in best])
    seeds = seeds_of(by_seed(outcomes, outcomes[0].method))
    head = f"Not beaten, cheapest first (bytes of all clients, both ways; means of {seeds}):"
    others = [f"The same runs as {words}: {100 * share:.0f} %." for (m, words), share in other_rules(outcomes).items()]
    return worked(head, *lines, f"Beaten: {beaten}.", *others)


def stored_percent(method: str, dataset: str, alpha: float = ALPHA, clients: int = 10) -> float:
    """Mean stored accuracy, in per cent."""
    return 100 * mean(stored.load(dataset).accuracies(method, alpha, clients).values())


def both_sets(methods: Sequence[str] = (*METHODS_HERE, *OTHERS), alpha: float = ALPHA, clients: int = 10) -> Card:
    """The stored results of the classroom's data sets side by side, best on the first one first: mean and 95 % band."""
    tables = [stored.load(name) for name in stored.sets()]
    there = [m for m in methods if all(table.accuracies(m, alpha, clients) for table in tables)]
    of = {m: [band(table.accuracies(m, alpha, clients)) for table in tables] for m in there}
    lines = [
        f"{title(m)}: " + ", ".join(f"{title_of(t.dataset)} {number(b)} %" for t, b in zip(tables, of[m], strict=True))
        for m in sorted(there, key=lambda m: -of[m][0].mean)
    ]
    seeds = min(len(table.grid.seeds) for table in tables)
    return worked(*lines, f"α = {alpha:g}, {clients} clients, stored results of {seeds} seeds.")


def overtaking(outcome: Outcome, goal: float) -> tuple[int, float] | None:
    """In which round (from 1) a run first passes an accuracy, and the bytes spent by then; None if it never does."""
    points = [p for p in outcome.history if p["phase"] == "rounds"]
    first = next((i for i, p in enumerate(points) if p["accuracy"] > goal), None)
    return None if first is None else (first + 1, points[first]["bytes"])


def overtaken_in(target: str, method: str) -> int:
    """The round in which `method` passes the final accuracy of `target`; first seed's curves. 0: never."""
    goal, other = runs([target, method], seeds=1)
    return (overtaking(other, goal.accuracy) or (0, 0))[0]


def rounds_needed(target: str = "fedlpa") -> Card:
    """How many rounds, and bytes, the multi-round methods need to overtake a one-shot one; first seed's curves."""
    goal, *others = runs([target, *MANY_ROUNDS], seeds=1)
    lines = [f"{title(target)}: {100 * goal.accuracy:.0f} % for {data_size(goal.bytes_up + goal.bytes_down)}"]
    for o in others:
        passed = overtaking(o, goal.accuracy)
        when = f"overtakes it in round {passed[0]}, after {data_size(passed[1])}" if passed else "not within its rounds"
        lines.append(f"{title(o.method)}: {when}")
    return worked(*lines, f"α = {ALPHA:g}, seed 0.")


def confidence(outcomes: Sequence[Outcome], method: str = "ensemble") -> float:
    """How sure `method` is: the mean probability of the class that it names, in percent, over its outcomes."""
    return 100 * mean(o.calibration.mean_confidence for o in outcomes if o.method == method)


# ---------------------------------------------------------------------------------- exercises
def worth_their_bytes(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 3: in one setting three methods are each clearly more accurate than every method of the
    record that costs no more bytes. Clear: the 95 % band of the differences, seed by seed, lies above zero."""
    groups: dict[Any, dict[Any, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for o in outcomes:
        if o.method not in ("local", "centralized"):
            groups[o.conditions][(o.method, *sorted(o.options.items()))].append(o)
    seen = []
    for (settings, recipe), variants in groups.items():
        once = {variant: by_seed(group, variant[0]) for variant, group in variants.items()}
        points = {v: by_method([*by.values()])[v[0]] for v, by in once.items() if len(by) >= ENOUGH}
        shares = {v: accuracies(once[v].values(), v[0]) for v in points}
        worth, open_ = [], []
        for v in sorted(points, key=lambda v: points[v][1]):
            rivals = [r for r in points if r != v and points[r][1] <= points[v][1]]
            gaps = [Gap(f"{title(v[0])} − {title(r[0])}", shares[v], shares[r]) for r in rivals]
            unclear = [gap for gap in gaps if gap.kind != CLEAR]
            worth += [] if unclear else [v]
            open_ += [gap.words() if gap.kind == SHORT else f"{gap.name} {gap.mean} points" for gap in unclear[:1]]
        words = ", ".join(f"{title(v[0])} ({data_size(points[v][1])}, {100 * points[v][0]:.0f} %)" for v in worth)
        at = f"α = {settings.alpha:g}, {settings.clients} clients, {recipe.epochs} local epochs"
        if len({method for method, *_ in worth}) >= 3:
            return Verdict("right", f"Supported by your runs at {at}. Worth their bytes: {words}.")
        not_clear = f" (not clear: {'; '.join(open_)})" if open_ else ""
        none = "none so far" if points else f"no method with {ENOUGH} seeds"
        seen.append(f"{at}: {words or none}{not_clear}")
    fewer = "Still fewer than three methods in one setting that are worth their bytes."
    return Verdict("wrong", f"{fewer} Your record: {'; '.join(seen)}.")


def solution_runs() -> Outcomes:
    """Runs that support the claim of exercise 3."""
    return runs(("ensemble", "fedlpa", "fens", "fedadam"), seeds=MANY)


# ---------------------------------------------------------------------------------- the function to build


def paired_band(a, b):
    """Mean of the differences a - b, seed by seed, and half the width of its 95 % band."""
    from scipy import stats

    gaps = a - b
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean(), stats.t.ppf(0.975, len(gaps) - 1) * error


def student(degrees, upper=0.975):
    """The point of Student's t below which the share `upper` lies."""
    from scipy import stats

    return stats.t.ppf(upper, degrees)


def variant(gaps, ddof=1, factor=None, root=0.5):
    """Mean and half width with one part changed: `ddof` of the spread, the `factor` instead of t, the `root` of n."""
    n = len(gaps)
    return gaps.mean(), (student(n - 1) if factor is None else factor) * gaps.std(ddof=ddof) / n**root


def ddof_0(a, b):
    return variant(a - b, ddof=0)


def normal(a, b):
    return variant(a - b, factor=1.959963984540054)


def n_degrees(a, b):
    return variant(a - b, factor=student(len(a)))


def no_root(a, b):
    return variant(a - b, root=0)


def unpaired(a, b):
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    return np.mean(a) - np.mean(b), student(2 * len(a) - 2) * error


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    """Accuracies of two methods on 3 to 10 seeds, in per cent: a seed is easy or hard for both, as in a federation."""
    stream, made = np.random.default_rng(8), []
    for n in (3, 5, 10, 4):
        seed = stream.normal(60, 12, size=n)
        made.append((seed + stream.normal(0, 4, size=n), seed + stream.normal(1, 4, size=n)))
    return made


BAND = Build(paired_band, hidden_inputs, (ddof_0, normal, n_degrees, no_root, unpaired))


q1, q2, q3, q4 = exercises(__name__, q3=(worth_their_bytes, solution_runs), q4=BAND)
