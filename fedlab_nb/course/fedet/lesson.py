"""Lesson 04, Fed-ET: its worked numbers, made from the reader's own panel or from runs of three seeds.

The terms of the theorem are in `bound`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ...labs.fedet import SIZES
from ...labs.fedet.dissent import by_dissent
from ...labs.fedet.dissent import thirds as thirds_of
from ...labs.fedet.traffic import first_reached, traffic_lines
from ...labs.fedet.votes import rule_of, votes, votes_on_test
from ...methods.fedet.consensus import consensus as fedet_consensus
from ...plots import Picture
from ...plots.words import percent
from ...studies import Outcomes, lesson_runs
from ...studies.lesson_runs import MANY, alike
from ...studies.lesson_runs import percent as mean_accuracy
from ..kit import CLEAR, SHORT, Build, Card, Gap, Verdict, exercises, lesson_words, still, worked

LOUD, SAVINGS = (lesson_words(__name__, name) for name in ("loud", "savings"))


def first(panel: Any) -> Any:
    """The panel's Fed-ET outcome of the first seed in its last run."""
    return panel.state("expert").outcome


def accuracy(outcomes: Sequence[Any], method: str = "fedet") -> float:
    """Mean test accuracy of `method` in percent."""
    return mean_accuracy(outcomes, method)


# ---------------------------------------------------------------------------------- sums that can be followed by hand
def weights_for_one(panel: Any, sample: int = 20, clients: Sequence[int] = (0, 1, 3)) -> Card:
    """σ² and ω of a few clients for one test sample, with the numbers filled in, at the run's temperature τ."""
    weighting, heat = rule_of(first(panel).options)
    vote, truth = votes_on_test(first(panel), weighting, heat)
    p, weights = vote.outputs[:, sample].double(), vote.weights[:, sample]
    softer = (torch.as_tensor(first(panel).report.test_logits)[:, sample].double() / heat).softmax(-1)
    spread = softer.var(1, correction=0)
    total, lines = float(spread.sum()), []
    for k in clients:
        squares = float(softer[k].square().sum())
        lines.append(
            f"client {k} says “{int(p[k].argmax())}” ({percent(float(p[k].max()))}): σ² = ({squares:.3f} − 0.1) / 10 = "
            f"{float(spread[k]):.4f}, ω = {float(spread[k]):.4f} / {total:.3f} = {float(weights[k]):.3f}"
        )
    label, agree = int(vote.labels[sample]), int((~vote.dissent[:, sample]).sum())
    lines.append(
        f"all {len(p)} together say “{label}” with {percent(float(vote.distribution[sample, label]))}; {agree} of them "
        f"say so themselves, ω_div = {float(vote.mass[sample]):.2f}; the picture is a “{int(truth[sample])}”"
    )
    return worked(f"Test sample {sample}, seed {first(panel).settings.seed}, σ² with τ = {heat:g}:", *lines)


def loud() -> str:
    """Which of LOUD is true of a client that is 99 % sure: σ² knows nothing of what the client has seen."""
    sure = torch.full((2, 1, 10), 0.01 / 9, dtype=torch.float64)  # one client that knows, one that does not
    sure[0, 0, 3] = sure[1, 0, 7] = 0.99
    knows, guesses = fedet_consensus(sure.log()).weights[:, 0].tolist()
    return LOUD[0] if abs(knows - guesses) < 1e-12 else LOUD[1]


def ignorance(panel: Any) -> Card:
    """How much a client counts for a picture whose digit it has trained on, hardly, or never; the panel's seeds."""
    rows = []
    for outcome in panel.state("expert").outcomes.values():
        vote, truth = votes_on_test(outcome, *rule_of(outcome.options))
        never = torch.as_tensor(outcome.label_counts)[outcome.report.members][:, truth] == 0  # [m, B]
        certain = (vote.outputs.max(-1).values > 0.99)[never]
        parts = (never, certain, vote.weights[~never], vote.weights[never])
        rows.append([float(part.double().mean()) for part in parts])
    share, sure, knows, ignorant = np.mean(rows, 0)
    return worked(
        f"In {percent(share)} of all pairs of a client and a picture the client has never seen the digit. There "
        f"its weight is {ignorant:.3f} on average. In the other pairs it is {knows:.3f}. If all clients counted the "
        f"same, it would be {1 / len(first(panel).report.members):.3f}.",
        f"In {percent(sure)} of the pairs where it has never seen the digit, it is over 99 % sure of another digit.",
    )


def target_for_one(panel: Any, sample: int = 0, strength: float | None = None) -> Card:
    """The soft label of one public sample, with the numbers filled in; `strength`: λ_div, unless given the run's."""
    strength = first(panel).options["diversity"] if strength is None else strength
    vote = votes(first(panel).report.logits, *rule_of(first(panel).options))
    dissent, y = float(vote.mass[sample]), int(vote.labels[sample])
    scale, against = 1 + strength * dissent, vote.diversity[sample]
    other = int(against.argmax())
    return worked(
        f"Public sample {sample}, λ_div = {strength:g}: y = “{y}”, ω_div = {dissent:.2f}, so "
        f"1 + λ_div ω_div = {scale:.3f}.",
        f"“{y}” gets (1 + {strength:g} · {float(against[y]):.3f}) / {scale:.3f} = "
        f"{percent((1 + strength * float(against[y])) / scale)}; “{other}”, which the dissenters like best, "
        f"{strength:g} · {float(against[other]):.3f} / {scale:.3f} = "
        f"{percent(strength * float(against[other]) / scale)}; "
        f"all dissenters together λ_div ω_div / (1 + λ_div ω_div) = {percent(strength * dissent / scale)}.",
    )


def thirds(panel: Any) -> list[float]:
    """Right answers of the consensus in percent, in the thirds with the least, middle and most dissent; all seeds."""
    outcomes = panel.state("dissent").outcomes.values()
    return np.mean([100 * np.array(thirds_of(*by_dissent(outcome)[:2])) for outcome in outcomes], 0).tolist()


# ---------------------------------------------------------------------------------- the panel's work
def sources(panel: Any, vary: str = "source") -> Picture:
    """The panel's view “Public data”: one student for each source, or for each size."""
    panel.set("public", vary=vary)
    return panel.work("public")


def saving(panel: Any, goal: float = 0.5) -> str:
    """Which of SAVINGS is true of Fed-ET against FedAvg of the large model, up to the accuracy `goal`."""
    own, large, _ = reached(panel, goal).values()
    if own is None or large is None:
        return f"not every seed got to {percent(goal)}"
    return SAVINGS[2 * (own[1] >= large[1]) + (own[0] >= large[0])]


def reached(panel: Any, goal: float) -> dict[str, tuple[float, float] | None]:
    """{method: (rounds, numbers sent) until `goal` is first reached, means over the seeds} in the view “Traffic”."""
    if panel.state("traffic").worked is None:
        panel.work("traffic")
    return {name: first_reached(of, goal) for name, of in traffic_lines(panel.state("traffic")).items()}


# ---------------------------------------------------------------------------------- theory and reality
# ---------------------------------------------------------------------------------- the records of runs
GOOD, COST = 1.0, 20.0  # from this α on clients teach well, and the lesson prints nothing; points


def runs(methods: Sequence[str] = ("fedet",), alpha: float = 0.1, **settings: Any) -> Outcomes:
    """The lesson's own runs: digits, ten clients of three sizes, three seeds."""
    return lesson_runs.runs(list(methods), alpha, **{"model": SIZES, **settings})


def public_data_decide(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: with good clients, too, other public data cost clearly more than COST points."""
    clear, others = [], []
    good = (o for o in outcomes if o.method == "fedet" and o.settings.alpha >= GOOD)
    for by_source in alike(good, _setting_and_source).values():
        own = by_source.pop("held-out", {})
        for source, shares in by_source.items():
            gap = Gap(f"held-out − {source}", own, shares)
            if gap.kind == SHORT:
                others += [replace(gap, name=source).words("both")] * bool(gap.points)
            else:
                (clear if gap.kind == CLEAR and gap.band.low > COST else others).append(gap.words())
    if clear:
        return Verdict("right", f"Supported by your runs: {clear[0]}. The clients were the same; only P has changed.")
    return still(
        [f"a source that is worse by clearly more than {COST:g} points"],
        others,
        f"no setting with α = {GOOD:g} or more has Fed-ET with held-out and with another source",
    )


def _setting_and_source(outcome: Any) -> tuple[Any, str]:
    """All that was set but the public data and the seed; and where the public data come from."""
    options = {k: v for k, v in outcome.options.items() if k not in ("public", "public_size")}
    return (outcome.conditions, *sorted(options.items())), outcome.options["public"]


def solution_runs() -> list[Any]:
    """Runs that support the claim of exercise 3."""
    return [*runs(alpha=GOOD, seeds=MANY), *runs(alpha=GOOD, seeds=MANY, **{"fedet.public": "glyphs"})]


# ---------------------------------------------------------------------------------- the function to build


def consensus(s):
    variances = s.var(axis=2)  # [M, N]: of each output, over its C probabilities
    weights = variances / variances.sum(axis=0)  # [M, N]: shares of the clients, image by image
    return (weights[:, :, None] * s).sum(axis=0)  # [N, C]


def weighted(s: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The sum of outputs `[M, N, C]` whose weights are the clients' shares of `values [M, N]`."""
    return np.einsum("mn,mnc->nc", values / values.sum(0), s)


def equal(s: np.ndarray) -> np.ndarray:
    return s.mean(0)


def over_clients(s: np.ndarray) -> np.ndarray:
    """The variance of the clients' answers, for each image and class."""
    variances = s.var(0)
    return (variances / variances.sum(0) * s).sum(0)


def shares_of_images(s: np.ndarray) -> np.ndarray:
    """Weights that add up to 1 over the images of one client."""
    variances = s.var(2)
    return np.einsum("mn,mnc->nc", variances / variances.sum(1, keepdims=True), s)


def not_divided(s: np.ndarray) -> np.ndarray:
    return np.einsum("mn,mnc->nc", s.var(2), s)


def deviations(s: np.ndarray) -> np.ndarray:
    return weighted(s, s.std(2))


def hidden_inputs() -> list[tuple[np.ndarray]]:
    """Softmax outputs [M, N, C]: first with M = N = C, where a wrong axis gives numbers; then with three lengths."""
    stream, made = np.random.default_rng(4), []
    for shape in ((4, 4, 4), (3, 5, 4), (2, 6, 3)):
        e = np.exp(stream.normal(size=shape) * stream.uniform(0.5, 4, shape[:2])[..., None])
        made.append((e / e.sum(2, keepdims=True),))
    return made


CONSENSUS = Build(consensus, hidden_inputs, (equal, over_clients, shares_of_images, not_divided, deviations))


q1, q2, q3, q4 = exercises(__name__, q3=(public_data_decide, solution_runs), q4=CONSENSUS)
