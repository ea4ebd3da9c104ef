"""Lesson 03, FENS: its worked numbers, made from the reader's own panel or from runs of three seeds.

The sums that can be followed by hand are in `by_hand`, the exercises (`lesson.q1` …) in `exercises`.
"""

from statistics import mean

import numpy as np

from ...comm import formulas
from ...declared import declared
from ...labs.fens.cost import ENSEMBLE, OWN, PAPER_RATIO, ROUNDS, bytes_by_part
from ...labs.fens.forget import Forgotten
from ...labs.fens.trust import likeness
from ...methods.fens.model import PAPER, PAPER_D
from ...panels import Panel
from ...plots import Picture
from ...plots.words import apart, data_size, mean_percent
from ...study.lesson_runs import MANY, SEEDS, runs
from ...study.lesson_runs import percent as accuracy
from ..kit.view import Card, worked
from .by_hand import first, identity, sum_for_one
from .exercises import q1, q2, q3, q4

__all__ = ["accuracy", "identity", "q1", "q2", "q3", "q4", "sum_for_one"]  # used by the notebook, made elsewhere

FATES = tuple(declared("course/fens/words.toml")["fates"])


# ------------------------------------------------------------------------------------------------------ phase 2
def owners(panel: Panel) -> int:
    """For how many classes the client with the largest weight is the one with most samples; the panel's first seed."""
    outcome = first(panel)
    return likeness(outcome.label_counts, outcome.report.frames[-1]).owners


def likenesses() -> Card:
    """How far the learnt weights, and what they add to the scores, resemble the partition, over the seeds."""
    outcomes = runs(["fens"])
    weights = [likeness(o.label_counts, o.report.weights) for o in outcomes]
    products = [likeness(o.label_counts, o.report.contribution) for o in outcomes]
    lines = []
    for name, likes in (("weight", weights), ("weight × logit", products)):
        correlation, most = mean(like.correlation for like in likes), ", ".join(str(like.owners) for like in likes)
        lines.append(
            f"{name.capitalize()} and share of samples have a correlation of {correlation:.1f}. The client with the "
            f"largest {name} holds most samples for {most} of 10 digits."
        )
    below = mean_percent([like.negative for like in weights])
    return worked(*lines, f"{below} of the weights are below zero. (α = 0.1, seeds 0 to {SEEDS - 1}.)")


# ------------------------------------------------------------------------------------------------------ the bill
def ratio(panel: Panel, clients: int | None = None) -> float:
    """One client's bytes as a multiple of one-shot learning: as the ledger counted them, or with so many `clients`."""
    parts = with_clients(panel, clients)
    return round(sum(parts) / parts[0], 1)


def with_clients(panel: Panel, clients: int | None = None) -> tuple[int, int, int]:
    """One client's bytes for its own model, the ensemble and the rounds. The ledger counted them; the last two grow
    with the number of clients (λ has a number for each client and class)."""
    counted, here = bytes_by_part(first(panel).ledger, 0), first(panel).settings.clients
    clients = clients or here
    return counted[OWN], counted.get(ENSEMBLE, 0) * clients // here, counted.get(ROUNDS, 0) * clients // here


def price(panel: Panel) -> Card:
    """The formula with this run's numbers, and with the paper's."""
    outcome = first(panel)
    options, report, clients = outcome.options, outcome.report, outcome.settings.clients
    parts, measured = bytes_by_part(outcome.ledger, 0), report.bytes["measured"]
    own, q, rounds = parts[OWN], report.aggregator_parameters, options["rounds"]
    nn = 10 * clients * 40 + 40 + 40 * 10 + 10
    here = formulas.fens_bytes(own // 8, clients, nn, 500) / own
    twice = with_clients(panel, 2 * clients)
    return worked(
        f"Here, counted by the ledger: model down and up {own:,} bytes, {clients} models of {options['bits']} bits "
        f"down {parts.get(ENSEMBLE, 0):,}, the aggregator 2 · 4 · {q} · {rounds} = {parts.get(ROUNDS, 0):,}. Together "
        f"{measured:,} = {measured / own:.2f} × one-shot.",
        f"With {2 * clients} clients: {' + '.join(f'{part:,}' for part in twice)} = {sum(twice):,} = "
        f"{sum(twice) / own:.2f} × one-shot.",
        f"The paper's CIFAR-10 setting: 1 + M/8 + q T / d = 1 + {PAPER['clients']}/8 + {PAPER['q']} · "
        f"{PAPER['rounds']} / {PAPER_D:,} = {PAPER_RATIO:.4f}.",
        f"Our small network with {clients} clients, and the paper's aggregator (q = {nn}) and rounds (T = 500): "
        f"{here:.0f} × one-shot.",
    )


# ------------------------------------------------------------------------------------------------------ panel's work
def try_all(panel: Panel, what: str) -> Picture:
    """The panel's view “Try all values” with `what` chosen: bits, rounds, holdout, proxy, aggregator, …"""
    panel.set("vary", what=what)
    return panel.work("vary")


def forget(panel: Panel) -> Picture:
    """The panel's view “Forget a client”, each client in turn."""
    return panel.work("forget")


def after_forgetting(panel: Panel) -> str:
    """Which of FATES befalls the classes when the client with the largest share of a class is forgotten."""
    if panel.state("forget").worked is None:
        forget(panel)
    forgotten: Forgotten = panel.state("forget").worked
    owner, lost = np.unravel_index(forgotten.shares.argmax(), forgotten.shares.shape)
    fall = forgotten.per_class() - forgotten.per_class(int(owner))
    if fall[lost] > 0.4 and np.delete(fall, lost).mean() < 0.1:
        return FATES[1]
    return FATES[2] if fall[lost] < 0.1 else FATES[0]


# ------------------------------------------------------------------------------------------------------ reality
def reality() -> Card:
    """Three findings of the paper (sections 3.1, 3.3 and 3.6) beside the same comparison at this size."""
    changes = {
        "held": (["fens"], 0.1, {}),
        "equal": (["fens"], 0.1, {"fens.proxy": "reused-equal"}),
        "reused": (["fens"], 0.1, {"fens.proxy": "reused"}),
        "adam": (["fedadam"], 0.1, {}),
        "few": (["fens"], 0.1, {"fens.aggregator": "weighted"}),
        "level": (["fens"], 1, {}),
        "counts": (["fens"], 1, {"fens.aggregator": "weighted"}),
    }
    outcomes = {name: runs(method, alpha, seeds=MANY, **knobs) for name, (method, alpha, knobs) in changes.items()}
    score = {name: {o.settings.seed: o.accuracy for o in each} for name, each in outcomes.items()}
    held, equal, reused, adam, few, level, counts = (mean_percent(values) for values in score.values())
    sent, spent = (data_size(max(map(sum, outcomes[n][0].ledger.by_client().values()))) for n in ("held", "adam"))
    return worked(
        "Samples of phase 2 (in the paper, samples that are held out are better than training samples used again). "
        f"Held out: {held}. As many, used again: {equal}. All, used again: {reused}. As many used again − held out: "
        f"{apart(score['equal'], score['held'])}.",
        "Many rounds (the paper has FedAdam 79 % and FENS 76 %, on CIFAR-10 at α = 0.1). "
        f"FENS: {held}, with {sent} for each client. FedAdam with 20 rounds: {adam}, with {spent}. FedAdam − FENS: "
        f"{apart(score['adam'], score['held'])}.",
        "Fixed rules (the paper compares at α ≤ 0.1, and trained weights are better there). "
        f"At α = 0.1: trained weights {held}, class counts {few}, difference {apart(score['held'], score['few'])}. "
        f"At α = 1: {level} and {counts}, difference {apart(score['level'], score['counts'])}.",
        f"(Digits, 10 clients, α = 0.1 where no other α is named, means of seeds 0 to {MANY - 1}.)",
    )
