"""FENS' numbers for its pictures and its lesson, from outcomes, their reports and the formula of its bytes.

Whom the aggregator trusts (`likeness`), what forgetting changes, one knob's values (`Point`), one client's bytes
(`Bill`). No picture and no widget here.
"""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from ...comm import Ledger, formulas
from ...methods.fens.model import PAPER, PAPER_D, FensReport, Size, client_bytes
from ...models import build_specified, model_state
from ...plots.words import plural
from ...study import Outcome

FENS, AVERAGE, ALONE, STUDENT = "FENS", "plain average", "mean client alone", "one student"
OWN, ENSEMBLE, ROUNDS, OTHER = "own model", "ensemble", "aggregator rounds", "other"
PARTS = {"initial model": OWN, "local models": OWN, "ensemble": ENSEMBLE, "aggregator": ROUNDS}  # of the ledger
PAPER_RATIO = formulas.fens_ratio(PAPER_D, **PAPER)


# ------------------------------------------------------------------------------------------------------ who is trusted
class Likeness(NamedTuple):
    """How far weights resemble the partition: `correlation` with each client's share of a class, `owners` (classes
    whose heaviest client holds most of their samples) of `classes`, and the share of `negative` weights.
    """

    correlation: float
    owners: int
    classes: int
    negative: float


def likeness(counts: np.ndarray, weights: np.ndarray) -> Likeness:
    """Of `weights [M, C]` (a row of nan: forgotten) and label `counts [M, C]`."""
    members = np.isfinite(weights).all(1)
    counts, weights = np.asarray(counts, dtype=float)[members], weights[members]
    share = shares(counts)
    flat = np.ptp(share) < 1e-6 or np.ptp(weights) < 1e-6
    judged = (counts.sum(0) > 0) & (np.ptp(weights, axis=0) > 1e-6)
    return Likeness(
        correlation=0.0 if flat else float(np.corrcoef(share.ravel(), weights.ravel())[0, 1]),
        owners=int((weights.argmax(0) == counts.argmax(0))[judged].sum()),
        classes=int(judged.sum()),
        negative=float((weights < 0).mean()) if weights.size else 0.0,
    )


def shares(counts: np.ndarray) -> np.ndarray:
    """Each client's share of a class's samples, `[M, C]`."""
    return counts / np.maximum(counts.sum(0), 1)


def for_everybody(table: np.ndarray, members: np.ndarray, clients: int) -> np.ndarray:
    """`table [members, C]` with a row for each of `clients`; nan for those who take no part."""
    whole = np.full((clients, table.shape[1]), np.nan)
    inside = members < clients  # the sliders may have moved on while the method runs
    whole[members[inside]] = table[inside]
    return whole


# ------------------------------------------------------------------------------------------------------ accuracies
@dataclass(frozen=True, eq=False)
class Forgotten:
    """FENS with everybody, and without each of some clients, {client: outcome}, under the panel's `settings`."""

    settings: Mapping[str, Any]
    whole: Outcome
    without: Mapping[int, Outcome]

    @property
    def shares(self) -> np.ndarray:
        return shares(self.whole.label_counts)

    @property
    def change(self) -> np.ndarray:
        """`[M, C]`: accuracy of class c without client k minus with all; nan: not known."""
        change = np.full(self.whole.label_counts.shape, np.nan)
        for k in self.without:
            change[k] = self.per_class(k) - self.per_class()
        return change

    def per_class(self, gone: int | None = None) -> np.ndarray:
        """Accuracy `[C]` without a client, or with everybody; nan for a class without test samples."""
        return np.array((self.whole if gone is None else self.without[gone]).per_class, dtype=float)


def start(report: FensReport) -> dict[str, float]:
    """Accuracy of what the rule starts from: a client alone, on average, and the plain average of all."""
    return {ALONE: mean(report.member_accuracy), AVERAGE: report.average_accuracy}


@dataclass(frozen=True)
class Point:
    """One value of a knob. `lines`: {name: {seed: test accuracy}}; `parts`: bytes of one client by OWN, ENSEMBLE,
    ROUNDS, OTHER; `ratio`: to one-shot learning. `validation`: {seed: FENS' accuracy on validation images}, by which
    values are compared, and `judged_on`: which images these are ("public", "held-out"); empty where there are none.
    """

    label: str
    lines: Mapping[str, Mapping[int, float]]
    parts: Mapping[str, float]
    ratio: float
    validation: Mapping[int, float] = field(default_factory=dict)
    judged_on: str = ""

    @property
    def bytes(self) -> float:
        return sum(self.parts.values())


def point(
    label: str, outcomes: Mapping[int, Outcome], names: Sequence[str], client: int | None, klass: int | None
) -> Point:
    """One value's outcomes, {seed: outcome}; a class (of `names`) and a client have lines of their own."""
    lines = {FENS: {s: o.accuracy for s, o in outcomes.items()}}
    lines |= {name: {s: start(o.report)[name] for s, o in outcomes.items()} for name in (AVERAGE, ALONE)}
    if klass is not None and klass < len(names):
        own = {s: o.per_class[klass] for s, o in outcomes.items() if klass < len(o.per_class)}
        lines[f"class {names[klass]}"] = {s: a for s, a in own.items() if a is not None}
    if client is not None:
        home = {s: o.per_client[client] for s, o in outcomes.items() if client < len(o.per_client)}
        lines[f"client {client}'s mix"] = home
    first = next(iter(outcomes.values()))
    traffic = first.ledger.by_client()
    busiest = max(traffic, key=lambda k: sum(traffic[k]))
    validation = {s: o.accuracy_validation for s, o in outcomes.items() if o.accuracy_validation is not None}
    parts, ratio = bytes_by_part(first.ledger, busiest), first.report.bytes["ratio"]
    return Point(label, lines, parts, ratio, validation, first.validation_on)


# ------------------------------------------------------------------------------------------------------ bytes
def bytes_by_part(ledger: Ledger, client: int) -> dict[str, int]:
    """One client's bytes, down and up, by OWN, ENSEMBLE, ROUNDS, OTHER."""
    parts: Counter[str] = Counter()
    for row in ledger.rows():
        if row["client"] == client:
            parts[PARTS.get(row["phase"], OTHER)] += row["bytes"]
    return parts


@dataclass(frozen=True)
class Bill:
    """One size of the network. `bars`: {name: {part: bytes of one client}}; the first bar is one-shot learning, to
    which the others are compared, then FENS, then FedAvg's rounds;   what: the size in words.
    """

    what: str
    bars: Mapping[str, Mapping[str, float]]

    def total(self, name: str) -> float:
        return sum(self.bars[name].values())

    def ratio(self, name: str) -> float:
        return self.total(name) / self.total(next(iter(self.bars)))


@functools.lru_cache(maxsize=32)
def network(model: str, input_shape: tuple[int, ...], classes: int) -> Size:
    """The clients' (first) network."""
    return Size.of(model_state(build_specified(model, input_shape, classes)))


def bill(what: str, size: Size, terms: Mapping[str, int], rounds: int) -> Bill:
    """The three bars for a network; `terms`: `Fens.terms`; `rounds`: of FedAvg."""
    own = formulas.one_shot_bytes(size.d)
    small = 2 * formulas.state_bytes(terms["q"]) * terms["rounds"]
    fens = {OWN: own, ENSEMBLE: client_bytes(size, **terms) - own - small, ROUNDS: small}
    fedavg = {f"{plural(rounds, 'round')} of FedAvg": {"rounds": formulas.iterative_bytes(size.d, rounds)}}
    return Bill(what, {"one-shot": {OWN: own}, FENS: fens, **fedavg})


def distillation(outcome: Outcome) -> tuple[dict[str, float], dict[str, int]]:
    """Accuracy, and how many numbers predict, of ALONE, AVERAGE, FENS and its STUDENT, who is the outcome's model."""
    report, d, members = outcome.report, outcome.parameters, len(outcome.report.members)
    accuracies: dict[str, Any] = {**start(report), FENS: report.teacher_accuracy, STUDENT: outcome.accuracy}
    return accuracies, {ALONE: d, AVERAGE: members * d, FENS: members * d + report.aggregator_parameters, STUDENT: d}
