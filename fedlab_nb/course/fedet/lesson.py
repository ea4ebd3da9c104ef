"""Fed-ET: its worked numbers, from the reader's own panel or from ten stored seeds, and
its exercises.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.special import softmax

from ...labs.fedet import SIZES
from ...labs.fedet.votes import vote_on_test_samples
from ...methods.fedet.consensus import compute_consensus as fedet_consensus
from ...plots.words import format_letters, percent
from ...studies import Outcomes, lesson_runs
from ...studies.lesson_runs import MANY
from ..kit import Build, Card, Verdict, exercises, lesson_words, worked
from ..kit.claims import CLEAR, SHORT, figures_of, find_gaps, report_missing

LOUD = lesson_words(__name__, "loud")
mean_of, ten_seeds, thirds, sources = figures_of(__name__, "ten_seeds", "thirds", "sources")


# ---------------------------------------------------------------- sums that can be followed by hand
def weights_for_one(panel: Any, sample: int = 20, clients: Sequence[int] = (0, 1, 3)) -> Card:
    """σ² and ω of a few clients for one test sample, with the numbers filled in, with τ = 1 as in
    the paper.
    """
    outcome = panel.state("expert").outcome
    vote, truth = vote_on_test_samples(outcome)
    p = vote.outputs[:, sample].double()  # [M, C]
    weights = vote.weights[:, sample]
    spread = p.var(1, correction=0)
    total = float(spread.sum())
    lines = []
    for k in clients:
        squares = float(p[k].square().sum())
        lines.append(
            f"client {format_letters(k)} says “{int(p[k].argmax())}” ({percent(float(p[k].max()))}): σ² = "
            f"({squares:.3f} − 0.1) / 10 = {float(spread[k]):.4f}, "
            f"ω = {float(spread[k]):.4f} / {total:.3f} = {float(weights[k]):.3f}"
        )
    label = int(vote.labels[sample])
    share = percent(float(vote.distribution[sample, label]))
    agreeing = int((~vote.dissent[:, sample]).sum())
    lines.append(
        f"all {len(p)} together say “{label}” with {share}; {agreeing} of them say so themselves; "
        f"the picture is a “{int(truth[sample])}”"
    )
    return worked(f"Test sample {sample}, seed {outcome.settings.seed}:", *lines)


def loud() -> str:
    """Which of LOUD is true of two equally peaked outputs: σ² knows nothing of what a client has
    seen.
    """
    outputs = torch.full((2, 1, 10), 0.01 / 9, dtype=torch.float64)
    outputs[0, 0, 3] = 0.99  # the client that knows
    outputs[1, 0, 7] = 0.99  # the one that does not
    knows, guesses = fedet_consensus(outputs.log()).weights[:, 0].tolist()
    return LOUD[0] if abs(knows - guesses) < 1e-12 else LOUD[1]


def ignorance(outcomes: Sequence[Any]) -> Card:
    """How much a client counts for a picture whose digit it has never seen, and for others: mean of
    Fed-ET's runs.
    """
    rows = []
    clients = 0
    for outcome in outcomes:
        if outcome.method != "fedet":
            continue
        vote, truth = vote_on_test_samples(outcome)
        counts = torch.as_tensor(outcome.label_counts)[outcome.report.members]
        clients = len(counts)
        has_never_seen = counts[:, truth] == 0  # [m, B]
        is_sure = vote.outputs.max(-1).values > 0.99
        parts = (
            has_never_seen,
            is_sure[has_never_seen],
            vote.weights[~has_never_seen],
            vote.weights[has_never_seen],
        )
        rows.append([float(part.double().mean()) for part in parts])
    share, sure, knowing_weight, ignorant_weight = np.mean(rows, 0)
    return worked(
        f"In {percent(share)} of all pairs of a client and a picture the client has never seen the "
        f"digit. There its weight is {ignorant_weight:.3f} on average. In the other pairs it is "
        f"{knowing_weight:.3f}. If all clients counted the same, it would be {1 / clients:.3f}.",
        f"In {percent(sure)} of the pairs where it has never seen the digit, it is over 99 % sure of "
        "another digit.",
    )


# ------------------------------------------------------------------------------ the records of runs
GOOD = 1.0  # from this α on clients teach well
COST = 0.2  # in accuracy; the lesson prints nothing as bad


def runs(methods: Sequence[str] = ("fedet",), alpha: float = 0.1, **settings: Any) -> Outcomes:
    """The lesson's own runs: digits, ten clients of three sizes, three seeds."""
    return lesson_runs.runs(list(methods), alpha, **{"model": SIZES, **settings})


def public_data_decide(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 2: with good clients, too, other public data cost clearly more than
    COST. They are found on validation images; the test images are looked at for them alone."""
    good = [o for o in outcomes if o.method == "fedet" and o.settings.alpha >= GOOD]
    found = []
    for source in sorted({o.options["public"] for o in good} - {"held-out"}):

        def describe(_: object, source: str = source) -> str:
            return f"held-out − {source}"

        for gap in find_gaps(good, find_setting_and_source, "held-out", source, describe):
            if gap.kind == CLEAR and gap.band.low > COST:
                return Verdict(
                    "right",
                    f"Supported by your runs: {gap.words()}. "
                    f"On the test images: {gap.test_gap.mean} points. Only P has changed.",
                )
            if gap.kind == SHORT:
                gap = replace(gap, name=source)
            if gap.differences:
                found.append(gap.words("both"))
    return report_missing(
        [f"a source that is worse by clearly more than {100 * COST:g} points"],
        found,
        f"no setting with α = {GOOD:g} or more has Fed-ET with held-out and with another source",
    )


def find_setting_and_source(outcome: Any) -> tuple[Any, str]:
    """All that was set but the public data and the seed; and where the public data come from."""
    shared = []
    for name, value in sorted(outcome.options.items()):
        if name not in ("public", "public_size"):
            shared.append((name, value))
    return (outcome.conditions, *shared), outcome.options["public"]


def solution_runs() -> list[Any]:
    """Runs that support the claim of exercise 2."""
    return [
        *runs(alpha=GOOD, seeds=MANY),
        *runs(alpha=GOOD, seeds=MANY, **{"fedet.public": "glyphs"}),
    ]


# ---------------------------------------------------------------------------- the function to build


def consensus(s):
    variances = s.var(axis=2)  # [M, N]: of each output, over its C probabilities
    weights = variances / variances.sum(axis=0)  # [M, N]: shares of the clients, image by image
    return (weights[:, :, None] * s).sum(axis=0)  # [N, C]


def apply_weights(weights, s):
    """Σ_k ω_k s_k for weights [M, N]."""
    return np.einsum("mn,mnc->nc", weights, s)


def equal(s):
    return s.mean(0)


def over_clients(s):
    """The variance of the clients' answers, for each image and class."""
    variances = s.var(0)
    return (variances / variances.sum(0) * s).sum(0)


def shares_of_images(s):
    """Weights that add up to 1 over the images of one client."""
    variances = s.var(2)
    return apply_weights(variances / variances.sum(1, keepdims=True), s)


def not_divided(s):
    return apply_weights(s.var(2), s)


def deviations(s):
    return apply_weights(s.std(2) / s.std(2).sum(0), s)


SLIPS = {
    "equal": equal,
    "over_clients": over_clients,
    "shares_of_images": shares_of_images,
    "not_divided": not_divided,
    "deviations": deviations,
}
SHAPES = (
    (4, 4, 4),
    (3, 5, 4),
    (2, 6, 3),
)  # M, N, C: first all alike, where a wrong axis gives numbers


def draw_hidden_case(stream: np.random.Generator, *shape: int) -> tuple[np.ndarray]:
    """Softmax outputs [M, N, C]."""
    logits = stream.normal(size=shape)
    scales = stream.uniform(0.5, 4, shape[:2])[..., None]
    return (softmax(logits * scales, 2),)


BUILD = Build(consensus, SHAPES, draw_hidden_case, SLIPS)

q1, q2, q3 = exercises(__name__, q2=(public_data_decide, solution_runs), q3=BUILD)
