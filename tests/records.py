"""Hand-made records of runs for the exercises that the learner's own runs answer, and one that is right for each."""

from toy_outcomes import toy


def runs(method, percents, options=None, **settings):
    """A run for each seed."""
    return [
        toy(method, right / 100, options=options or {}, settings={**settings, "seed": seed})
        for seed, right in enumerate(percents)
    ]


def pairs(one, other, gaps, **settings):
    """Runs of two variants, each a method and its options; the `other` one is better by `gaps`, in points."""
    return runs(one[0], [50] * len(gaps), *one[1:], **settings) + runs(
        other[0], [50 + gap for gap in gaps], *other[1:], **settings
    )


def averages(alpha, gaps, **more):  # lesson 2
    return pairs(["fedavg"], ["ensemble"], gaps, alpha=alpha, **more)


def rules(alpha, gaps, **more):  # lesson 3
    return pairs(
        *(("fens", {"aggregator": rule}) for rule in ("weighted", "per_class")),
        gaps,
        alpha=alpha,
        **more,
    )


def sources(losses, rounds=(1, 1), **more):  # the lesson on Fed-ET
    of = zip(("held-out", "noise"), rounds, strict=True)
    both = [("fedet", {"public": source, "public_size": 0, "rounds": n}) for source, n in of]
    return pairs(*both, [-loss for loss in losses], **{"alpha": 1, **more})


def weights(alpha, gaps, answer="ensemble", **off):  # the lesson on Co-Boosting
    learnt = {"answer": answer, "ghs": True, "dhs": True, "ee": True, **off}
    return pairs(["ensemble"], ("coboosting", learnt), gaps, alpha=alpha)


def fused(percents, blocks=2, head="ccvr", alpha=0.5):  # the lesson on FuseFL
    return runs(
        "fusefl",
        percents,
        {"blocks": blocks, "head": head, "adaptor": "conv"},
        clients=5,
        alpha=alpha,
    )


def without_b(alpha, gaps, **options):  # the lesson on FedLPA
    return pairs(("fedlpa", options), ["regmean"], gaps, alpha=alpha)


def uploads(dataset, alpha, gaps):  # the lesson “all together”
    return pairs(["ensemble"], ["fedlpa"], gaps, dataset=dataset, alpha=alpha)


def matched(
    alpha, *percents, seeds=10
):  # the lesson on names of neurons; the last one has so many seeds
    counts = zip(("fedavg", "matching", "ensemble"), percents, (10, 10, seeds), strict=True)
    return [
        run
        for method, right, n in counts
        for run in runs(method, [right] * n, alpha=alpha, init="different")
    ]


def images(per_class, gaps, server="kernel"):  # lesson 5
    ways = [
        ("distilled", {"images": way, "per_class": per_class, "server": server})
        for way in ("random", "kmeans")
    ]
    return pairs(*ways, gaps)


SKEWED, MILD = averages(0.1, [27, 21, 24, 25, 22, 20, 26, 28, 23, 24]), averages(0.03, [-4, 4] * 5)
TRAINED, COUNTED = rules(0.1, [18, 24, 15] * 4), rules(1, [-4, 0, 2] * 4)
LEARNT, IDLE = weights(0.3, [8, 7, 13] * 4), weights(3.0, [0, -2, -3] * 4)
CALIBRATED, AVERAGED = fused([90, 91, 92]), fused([40, 30, 35], head="average")
EARLY, LATE = without_b(0.1, [5, 6, 4] * 4), without_b(1, [-1, 1, 0] * 4)
AHEAD, BEHIND = uploads("digits", 0.1, [30] * 3), uploads("glyphs:16g", 1, [-28] * 3)
FEW, TEN = images(1, [5, 6, 4] * 4), images(10, [-1, 1, 0] * 4, "network")
RIGHT = {
    "heterogeneity q2": SKEWED + MILD,
    "fens q2": TRAINED + COUNTED,
    "fedet q2": sources([30, 40, 35]),
    "coboosting q2": LEARNT + IDLE,
    "fusefl q1": CALIBRATED + AVERAGED,
    "fedlpa q3": EARLY + LATE,
    "all_together q2": AHEAD + BEHIND,
    "your_own q2": pairs(["ensemble"], ["mine"], [17, 12, 20], alpha=0.1),
    "matching q3": matched(1, 20, 60, 93),
    "distilled q2": FEW + TEN,
}
