"""Hand-made records of runs for the exercises that a learner's own runs answer; RIGHT has a right one for each."""

from toy_outcomes import make_toy_outcome


def record_runs(method, percents, options=None, **settings):
    """A run for each seed: seed 0 has the first of the accuracies `percents`, and so on."""
    runs = []
    for seed, percent in enumerate(percents):
        seeded = {**settings, "seed": seed}
        runs.append(make_toy_outcome(method, percent / 100, options=options or {}, settings=seeded))
    return runs


def record_pairs(variant, better_variant, gaps, **settings):
    """Runs of two variants, each (method,) or (method, options).

    gaps: for each seed, by how many points the second is better than the first
    """
    runs = record_runs(variant[0], [50] * len(gaps), *variant[1:], **settings)
    better_percents = [50 + gap for gap in gaps]
    return runs + record_runs(better_variant[0], better_percents, *better_variant[1:], **settings)


def record_heterogeneity(alpha, gaps, **settings):
    return record_pairs(("fedavg",), ("ensemble",), gaps, alpha=alpha, **settings)


def record_fens(alpha, gaps, **settings):
    weighted = ("fens", {"aggregator": "weighted"})
    per_class = ("fens", {"aggregator": "per_class"})
    return record_pairs(weighted, per_class, gaps, alpha=alpha, **settings)


def record_fedet(losses, rounds=(1, 1), alpha=1):
    """losses: points that noise loses against held-out images; rounds: of held-out images, of noise"""
    held_out = ("fedet", {"public": "held-out", "public_size": 0, "rounds": rounds[0]})
    noise = ("fedet", {"public": "noise", "public_size": 0, "rounds": rounds[1]})
    return record_pairs(held_out, noise, [-loss for loss in losses], alpha=alpha)


def record_coboosting(alpha, gaps, answer="ensemble", **options):
    learnt = {"answer": answer, "ghs": True, "dhs": True, "ee": True, **options}
    return record_pairs(("ensemble",), ("coboosting", learnt), gaps, alpha=alpha)


def record_fusefl(percents, blocks=2, head="ccvr", alpha=0.5):
    options = {"blocks": blocks, "head": head, "adaptor": "conv"}
    return record_runs("fusefl", percents, options, clients=5, alpha=alpha)


def record_fedlpa(alpha, gaps, **options):
    return record_pairs(("fedlpa", options), ("regmean",), gaps, alpha=alpha)


def record_all_together(dataset, alpha, gaps):
    return record_pairs(("ensemble",), ("fedlpa",), gaps, dataset=dataset, alpha=alpha)


def record_matching(alpha, fedavg, matching, ensemble, ensemble_seeds=10):
    """Ten seeds of FedAvg and of matching, each with the same accuracy in per cent."""
    settings = {"alpha": alpha, "init": "different"}
    return [
        *record_runs("fedavg", [fedavg] * 10, **settings),
        *record_runs("matching", [matching] * 10, **settings),
        *record_runs("ensemble", [ensemble] * ensemble_seeds, **settings),
    ]


def record_distilled(per_class, gaps, server="kernel"):
    random = ("distilled", {"images": "random", "per_class": per_class, "server": server})
    kmeans = ("distilled", {"images": "kmeans", "per_class": per_class, "server": server})
    return record_pairs(random, kmeans, gaps)


# For each lesson a record with a clear gap, and one without a gap or with the opposite one.
SKEWED = record_heterogeneity(0.1, [27, 21, 24, 25, 22, 20, 26, 28, 23, 24])
MILD = record_heterogeneity(0.03, [-4, 4] * 5)
TRAINED = record_fens(0.1, [18, 24, 15] * 4)
COUNTED = record_fens(1, [-4, 0, 2] * 4)
LEARNT = record_coboosting(0.3, [8, 7, 13] * 4)
IDLE = record_coboosting(3.0, [0, -2, -3] * 4)
CALIBRATED = record_fusefl([90, 91, 92])
AVERAGED = record_fusefl([40, 30, 35], head="average")
EARLY = record_fedlpa(0.1, [5, 6, 4] * 4)
LATE = record_fedlpa(1, [-1, 1, 0] * 4)
AHEAD = record_all_together("digits", 0.1, [30] * 3)
BEHIND = record_all_together("glyphs:16g", 1, [-28] * 3)
FEW = record_distilled(1, [5, 6, 4] * 4)
TEN = record_distilled(10, [-1, 1, 0] * 4, "network")
RIGHT = {
    "heterogeneity q2": SKEWED + MILD,
    "fens q2": TRAINED + COUNTED,
    "fedet q2": record_fedet([30, 40, 35]),
    "coboosting q2": LEARNT + IDLE,
    "fusefl q1": CALIBRATED + AVERAGED,
    "fedlpa q3": EARLY + LATE,
    "all_together q2": AHEAD + BEHIND,
    "your_own q2": record_pairs(("ensemble",), ("mine",), [17, 12, 20], alpha=0.1),
    "matching q3": record_matching(1, 20, 60, 93),
    "distilled q2": FEW + TEN,
}
