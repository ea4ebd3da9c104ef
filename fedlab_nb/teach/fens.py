"""Lesson 03, FENS: its worked numbers, made from the reader's own panel or from runs of three seeds.

The sums that can be followed by hand are in `fens_by_hand`, the exercises (`lesson.q1` …) in `fens_exercises`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np

from fedlab_nb import formulas
from fedlab_nb.draw import Picture
from fedlab_nb.draw.fens_trust import likeness
from fedlab_nb.draw.words import data_size, half_width, is_noise, percent
from fedlab_nb.methods.parts.fens_phases import PAPER_D, PAPER_M, PAPER_Q, PAPER_T
from fedlab_nb.study import Outcomes, compare

from .fens_by_hand import first, identity, sum_for_one
from .fens_exercises import q1, q2, q3
from .view import Card

__all__ = [
    "accuracy", "after_forgetting", "first", "forget", "identity", "likenesses", "owners", "price", "q1", "q2", "q3",
    "ratio", "reality", "runs", "sum_for_one", "try_all",
]  # fmt: skip

SEEDS = 3
SETTING = {"dataset": "digits", "clients": 10}
FATES = (
    "every class loses a little",
    "the class that it held is lost, the others hardly change",
    "nothing: the others stand in for it",
)


def runs(methods: Sequence[str], alpha: float = 0.1, **settings: Any) -> Outcomes:
    """The lesson's own runs: digits, ten clients, three seeds."""
    return compare(list(methods), alpha=alpha, seeds=SEEDS, **SETTING, **settings)


def accuracy(outcomes: Sequence[Any], method: str) -> float:
    """Mean test accuracy of `method` in percent."""
    return 100 * mean(o.accuracy for o in outcomes if o.method == method)


# ------------------------------------------------------------------------------------------------------ phase 2
def owners(panel: Any) -> int:
    """For how many classes the client with the largest weight is the one with most samples; the panel's first seed."""
    outcome = first(panel)
    return likeness(outcome.label_counts, outcome.artefacts["aggregator_frames"][-1])["owners"]


def likenesses() -> Card:
    """How far the learnt weights, and what they add to the scores, resemble the partition, over the seeds."""
    lines, found = [], runs(["fens"])
    for name, key in (("weight", "aggregator_weights"), ("weight × logit", "aggregator_contribution")):
        told = [likeness(o.label_counts, o.artefacts[key]) for o in found]
        owned = ", ".join(str(like["owners"]) for like in told)
        lines.append(
            f"{name}: correlation with the shares of samples {mean(like['correlation'] for like in told):.1f}; the "
            f"client with the largest one holds most samples for {owned} of 10 digits"
        )
    below = percent(mean(likeness(o.label_counts, o.artefacts["aggregator_weights"])["negative"] for o in found))
    lines.append(f"{below} of the weights are below zero (α = 0.1, seeds 0 to {SEEDS - 1}, in this order)")
    return Card("worked", "\n".join(lines))


# ------------------------------------------------------------------------------------------------------ the bill
def ratio(panel: Any) -> float:
    """One client's bytes as a multiple of one-shot learning, as the ledger counted them."""
    return round(first(panel).extras["bytes"]["ratio"], 1)


def price(panel: Any) -> Card:
    """The formula with this run's numbers, and with the paper's."""
    outcome = first(panel)
    told, options, clients = outcome.extras["bytes"], outcome.setting["options"], outcome.setting["clients"]
    rows = [r for r in outcome.ledger.rows() if r["client"] == 0]
    own, ensemble, small = (
        sum(r["bytes"] for r in rows if r["phase"] in phases)
        for phases in (("initial model", "local models"), ("ensemble",), ("aggregator",))
    )
    q, rounds = outcome.extras["aggregator_parameters"], options["rounds"]
    paper = formulas.fens_ratio(PAPER_D, PAPER_M, PAPER_Q, PAPER_T)
    nn = 10 * clients * 40 + 40 + 40 * 10 + 10
    here = formulas.fens_bytes(own // 8, clients, nn, 500) / own
    return Card(
        "worked",
        f"Here, counted by the ledger: model down and up {own:,} bytes, {clients} models of {options['bits']} bits "
        f"down {ensemble:,}, the aggregator 2 · 4 · {q} · {rounds} = {small:,}. Together {told['measured']:,} = "
        f"{told['measured'] / own:.2f} × one-shot.\n"
        f"The paper's CIFAR-10 setting: 1 + M/8 + q T / d = 1 + {PAPER_M}/8 + {PAPER_Q} · {PAPER_T} / {PAPER_D:,} "
        f"= {paper:.4f}.\n"
        f"The paper's aggregator and rounds beside our small network: q = {nn}, T = 500 give {here:.0f} × one-shot.",
    )


# ------------------------------------------------------------------------------------------------------ panel's work
def try_all(panel: Any, what: str) -> Picture:
    """The panel's view “Try all values” with `what` chosen: bits, rounds, holdout, proxy, aggregator, …"""
    panel.own.views["vary"].what.value = what
    return panel.work("vary")


def forget(panel: Any) -> Picture:
    """The panel's view “Forget a client”, each client in turn."""
    return panel.work("forget")


def after_forgetting(panel: Any) -> str:
    """Which of FATES befalls the classes when the client with the largest share of a class is forgotten."""
    found = panel.own.look("forget").worked
    if found is None:
        forget(panel)
        found = panel.own.look("forget").worked
    whole = found["whole"]
    share = whole.label_counts / np.maximum(whole.label_counts.sum(0), 1)
    owner, lost = np.unravel_index(share.argmax(), share.shape)
    fall = np.array(whole.per_class, dtype=float) - np.array(found["without"][int(owner)].per_class, dtype=float)
    others = np.delete(fall, lost).mean()
    if fall[lost] > 0.4 and others < 0.1:
        return FATES[1]
    return FATES[2] if fall[lost] < 0.1 else FATES[0]


# ------------------------------------------------------------------------------------------------------ reality
def reality() -> Card:
    """Three statements of the paper at this size, with their numbers."""
    found = {
        name: runs([method], alpha, **options)
        for name, method, alpha, options in (
            ("held-out", "fens", 0.1, {}),
            ("reused-equal", "fens", 0.1, {"fens.proxy": "reused-equal"}),
            ("reused", "fens", 0.1, {"fens.proxy": "reused"}),
            ("FedAdam", "fedadam", 0.1, {}),
            ("FENS, α = 1", "fens", 1, {}),
            ("weighted, α = 1", "fens", 1, {"fens.aggregator": "weighted"}),
        )
    }
    score = {name: [o.accuracy for o in each] for name, each in found.items()}
    text = {name: percent(mean(values)) for name, values in score.items()}
    sent = {
        name: data_size(max(map(sum, found[name][0].ledger.by_client().values()))) for name in ("held-out", "FedAdam")
    }
    return Card(
        "worked",
        "“Samples that were held out are better than training samples used again”: "
        f"held out {text['held-out']}, as many used again {text['reused-equal']}, all used again {text['reused']} "
        f"(used again, as many, minus held out: {_gap(score['reused-equal'], score['held-out'])}).\n"
        f"“Accuracy comes near iterative learning”: FENS {text['held-out']} for {sent['held-out']} a client, FedAdam "
        f"with 20 rounds {text['FedAdam']} for {sent['FedAdam']} ({_gap(score['FedAdam'], score['held-out'])}).\n"
        f"“Every trained rule beats the fixed ones”, at α = 1: trained per-class weights {text['FENS, α = 1']}, class "
        f"counts {text['weighted, α = 1']} ({_gap(score['weighted, α = 1'], score['FENS, α = 1'])}).\n"
        f"(Digits, 10 clients, α = 0.1 unless said, means of seeds 0 to {SEEDS - 1}.)",
    )


def _gap(a: Sequence[float], b: Sequence[float]) -> str:
    """a − b seed by seed, in points, and whether that is noise."""
    differences = [100 * (x - y) for x, y in zip(a, b, strict=True)]
    band = half_width(differences)
    verdict = "within the noise" if is_noise(mean(differences), band) else "clear"
    return f"{mean(differences):+.0f} ± {band:.0f} points, {verdict}"
