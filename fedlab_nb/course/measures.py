"""What the declared studies of the texts measure beyond a run's own numbers.

A function of an outcome returns {name: number}; a figure reads it as `runs/method:function.name`. A function of plain
numbers is a constant of a figure: `tables = "= tables_where_large_gaps_agree_more('tables')"`.
"""

from functools import cache
from statistics import fmean, median

import numpy as np


def probes(outcome) -> dict[str, float]:
    """FuseFL: linear probes on the top features, trained on all training samples: of one client (mean over them), of
    the mean over the clients, and the gain of the mean; `first`: of one client's first layer or block."""
    from ..labs.fusefl.probes import blocks_of, layers_of, probe

    data, network = outcome.settings.data(), outcome.model.module
    outputs = blocks_of if outcome.options["blocks"] > 1 else layers_of
    train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)
    points = [*probe(outputs(network, train[0]), outputs(network, test[0]), train, test)]
    first, each = (fmean(own.accuracy for own in clients) for clients, _ in (points[0], points[-1]))
    return {"each": each, "mean": points[-1][1].accuracy, "first": first}


def confused(outcome) -> dict[str, float]:
    """FuseFL: accuracy on test images with a cue that is drawn at random."""
    from ..labs.fusefl.cue import with_and_without_cue

    data, s = outcome.settings.data(), outcome.settings
    x = with_and_without_cue(data, s.tint, s.seed, s.cue)["untied"]
    return {"accuracy": float((outcome.predict(x) == data.y_test.numpy()).mean())}


def shouting(outcome) -> dict[str, float]:
    """Ensemble: the `loudest` client's largest logit (mean over the test images), how many clients hold one class alone
    (`lonely`), and the share of the images that get the same answer from the mean of logits (`same`)."""
    counts = np.asarray(outcome.label_counts)
    z = outcome.test_features.reshape(len(outcome.test_labels), *counts.shape)  # [N, M, C]
    return {
        "loudest": float(z.max(2).mean(0).max()),
        "lonely": float(((counts > 0).sum(1) == 1).sum()),
        "same": float(np.bincount(z.mean(1).argmax(1)).max() / len(z)),
    }


def trusted(outcome) -> dict[str, float]:
    """FENS: the share of weights `below` zero; for how many classes the client with the largest weight holds most
    samples (`owners`); which share of the commonest single digit the clients hold that have it `alone`, and the weight
    that they get for it (`theirs`), 0 where there are none."""
    from ..labs.fens.trust import likeness

    counts = np.asarray(outcome.label_counts)
    like, alone = likeness(counts, outcome.report.weights), counts[(counts > 0).sum(1) == 1].sum(0)
    digit = int(alone.argmax())
    theirs = outcome.report.weights[(counts > 0).sum(1) == 1, digit]
    held = {
        "alone": float(alone[digit] / counts[:, digit].sum()),
        "theirs": float(theirs.sum() / max(len(theirs), 1)),
    }
    return {"below": like.negative, "owners": like.owners, **held}


def best(outcome) -> dict[str, float]:
    """FENS: test accuracy of the best `member` alone."""
    return {"member": max(outcome.report.member_accuracy)}


def members(outcome) -> dict[str, float]:
    """Fed-ET: shares of test samples that are right: a client `alone`, mean of the last round; the consensus in
    the thirds with the `least` and the `most` dissent; the `small` averaged models, before a head is copied, mean of
    the last four rounds."""
    from ..labs.fedet.dissent import by_dissent, thirds

    report = outcome.report
    least, _, most = thirds(*by_dissent(outcome)[:2])
    alone = float((report.test_logits.argmax(-1) == report.test_truth).mean())
    return {"alone": alone, "least": least, "most": most, "small": fmean(report.small_before[-4:])}


def voted(outcome) -> dict[str, float]:
    """Fed-ET: for how many test samples the consensus is right: with the `paper`'s weights, the run's `own` and `equal`
    ones; with the run's own in the thirds of the samples with the `least`, `middle` and `most` dissent."""
    from ..labs.fedet.dissent import by_dissent, thirds
    from ..labs.fedet.votes import rule_of, share_right, votes_on_test

    rules = {"paper": ("softmax", 1.0), "own": rule_of(outcome.options), "equal": ("uniform", 1.0)}
    parts = thirds(*by_dissent(outcome)[:2])
    shares = {name: share_right(*votes_on_test(outcome, *rule)) for name, rule in rules.items()}
    return {**shares, **dict(zip(("least", "middle", "most"), parts, strict=True))}


def shown(outcome) -> dict[str, float]:
    """Distilled data: which share of the images that clients send are `own` ones, pixel by pixel, and which share is
    `near`: nearer to one of the client's images than these are to each other."""
    from ..labs.distilled.sent import attack

    attacks = attack(outcome)
    sent = sum(len(of.labels) for of in attacks)
    return {
        "own": sum(int(of.copies.sum()) for of in attacks) / sent,
        "near": sum(of.closer for of in attacks) / sent,
    }


def by_heart(outcome) -> dict[str, float]:
    """Any model: the share of all clients' training samples that are right (`own`), which beside the test accuracy says
    how much was learnt by heart."""
    data = outcome.settings.data()
    return {"own": float((outcome.predict(data.x_train) == data.y_train.numpy()).mean())}


@cache
def tables_where_large_gaps_agree_more(among: str) -> float:
    """Of the papers' tables with ten orderings or more that were tried (`among`: "tables" gives their number): in how
    many the half of the orderings with the larger published gaps agrees more often than the other half."""
    from ..studies.papers import TABLES, reproduce
    from ..studies.papers.published import TRIED

    more, tried = 0, 0
    for name in TABLES:
        pairs = [pair for pair in reproduce(name, stored=True).orderings if pair.verdict in TRIED]
        if len(pairs) < 10:
            continue
        border = median(pair.gap for pair in pairs)
        halves = (
            [p.verdict == "agrees" for p in pairs if (p.gap > border) is large]
            for large in (True, False)
        )
        large, small = (fmean(half) for half in halves)
        tried, more = tried + 1, more + (large > small)
    return {"tables": tried, "more": more}[among]
