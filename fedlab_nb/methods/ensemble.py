"""FedENS: every client uploads its model once; the server predicts with all of them together.

Allouah et al., NeurIPS 2024, call the mean of the logits FedENS: f̄(x) = (1/M) Σ_k f_k(x), `rule=logits`. Other rules;
the default is the one that validation images chose (`studies/tuning`):
- probabilities: the mean of softmax outputs, markedly better under label skew (a confident stranger's logits are
  unbounded, its probabilities are not);
- weighted: Σ_k (n_k/N) f_k(x), by sample counts (DW-FedENS in Co-Boosting); n_k travels in the message's header;
- class_counts: Σ_k (n_kc / Σ_j n_jc) f_kc(x), by C counts of each client (FedKD's teacher, FENS' weighted
  averaging);
- votes: the class that most models name; ties go to the higher mean probability. FENS' `voting` also weighs who is
  right when;
- trimmed, median: of each class's probabilities, without the `assumed` largest and smallest ones, or but the middle;
  ties go to the higher mean probability. Both bound what a few liars (`poison=lie:f`, `parts/lies.py`) can do; where
  clients differ, honest experts are cut away, too, and liars harm no less than the mean (the guide has figures);
- beta: β-predictive Bayes, between the mean of the probabilities (β = 0) and their product (β = 1), which names the
  class that the mean of the logits names (`ensemble.py`). β is chosen on the clients' held-out samples. The
  models must go down for that, M S_θ to each client; else the server needs labelled samples, as in the paper. The paper
  also has a whole posterior of each client; here a client has one network. β is chosen by likelihood, so no order of
  accuracies follows: on most seeds the mean of the probabilities is ahead of the product, on 102 and 104 it is not
  (digits, alpha = 0.1, M = 10).

`keep` of the clients, chosen `by` a score, may upload, the others' models stay at home: ensemble selection, by Guha,
Talwalkar, Smith (2019) and DeDES (`ensemble.py`). Neither paper has the choice before the upload.

Whatever the rule, a run reports the accuracy of the two plain means, from the same outputs: comparisons show both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import demand
from ..training import ClientModels, in_chunks
from ..training.evaluate import Remembered, accuracy
from .base import Context, EnsembleModel, GlobalModel, Method, Report, Steps, knob, register
from .parts import averages
from .parts.frozen_ensemble import class_count_weights, client_weights, combine
from .parts.lies import certified, with_lies
from .results import plain_mean

# ----------------------------------------------------------------------------------------------------------- predictive
# β-predictive Bayes: from a mixture of the clients' predictions (β = 0) to their product (β = 1).
#
# Hasan, Zhang, Guo, Chen, Poupart, *Calibrated One Round Federated Learning with Bayesian Inference in the Predictive
# Space*, AAAI 2024 (arXiv 2312.09817):
#
#     p_mix = (1/M) Σ_k p_k,   p_prod ∝ Π_k p_k,   log p_β = β log p_prod + (1 - β) log p_mix - log Z.
#
# A product of experts is too sure of itself, a mixture is not sure enough; one number between them repairs that. At β =
# 1 the class with the highest probability is that of the mean of the logits, for every x: Σ_k log p_kc = Σ_k f_kc - Σ_k
# log Z_k, and the last sum does not depend on c.

GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def between(logits: Tensor, beta: float) -> Tensor:
    """log p_β `[N, C]` from the clients' logits `[M, N, C]`; its exponentials sum to 1."""
    logs = logits.log_softmax(-1)
    mixture = logs.logsumexp(0)
    return (beta * logs.sum(0) + (1 - beta) * mixture).log_softmax(-1)


def choose_beta(
    ctx: Context, uploaded: ClientModels, grid: tuple[float, ...] = GRID
) -> tuple[float, list[float]]:
    """The β of `grid` with the lowest NLL on the clients' held-out samples, and all these NLLs, nats a sample.

    One round more: the uploaded models go down to every client, the NLL sums go up, 4 bytes a β. Call it outside
    `ctx.server()`.
    """
    # Server, link: the models down, since the samples may not go up.
    received = uploaded.with_states(ctx.link.broadcast(uploaded.states(), phase="ensemble"))
    # Clients: the NLL of every β, summed over their own held-out samples.
    sums, samples = [], 0
    for k in range(ctx.clients_count):
        x, y = ctx.private.held_out(k)
        nll = x.new_zeros(len(grid))
        if len(x):
            logits = received.logits(x)
            nll = torch.stack(
                [F.nll_loss(between(logits, beta), y, reduction="sum") for beta in grid]
            )
        sums.append(ctx.link.up(k, {"nll": nll, "samples": len(x)}, phase="likelihoods"))
    with ctx.server():
        samples = sum(one["samples"] for one in sums)
        means = (torch.stack([one["nll"] for one in sums]).sum(0) / samples).tolist()
        return grid[means.index(min(means))], means


# ------------------------------------------------------------------------------------------------------------ selection
# Whom to ask: which k of M clients upload their model for an ensemble.
#
# Guha, Talwalkar, Smith, *One-Shot Federated Learning*, 2019 (arXiv 1902.11175), the first paper on the subject: keep
# those who are best on their own held-out samples ("validation", the paper's CV), those with the most samples ("size"),
# or any ("random"). Under label skew the first rule fails: a client with one class is always right about its own
# samples. "diversity" is DeDES (Wang et al., TMLR 2023): cluster the models by their weights, and take the best of each
# cluster.
#
# Clients send their score and n_k, 8 bytes; under "diversity" their last layer too, which is what is clustered; under
# "random" nothing. The server answers with yes or no, and only the chosen upload. In both papers the server sets the
# thresholds, or has all models; here every model that is not chosen stays at home. A client without held-out samples
# scores 0. Ties go to more samples, then to the lower number.

BY = ("validation", "size", "random", "diversity")
PASSES = 50  # of k-means, at most


def chosen_clients(
    ctx: Context, clients: ClientModels, keep: int, by: str, stream: str
) -> list[int]:
    """The numbers of the `keep` clients (0: all; more than M: all) that may upload, ascending; `by` one of BY.

    `stream` names the random stream. Call it outside `ctx.server()`.
    """
    count = ctx.clients_count
    if not 0 < keep < count:
        return list(range(count))
    if by == "random":
        with ctx.server():
            chosen = torch.randperm(count, generator=ctx.generator(stream, "selection"))[
                :keep
            ].tolist()
    else:
        # Clients: how good and how many; the last layer, where it is looked at. Link, server: the choice.
        received = []
        for k in range(count):
            own: dict[str, Any] = {"scores": score(ctx, clients, k)}
            if by == "diversity":
                own["last layer"] = list(clients.module(k).classifier.state_dict().values())
            received.append(ctx.link.up(k, own, phase="scores"))
        with ctx.server():
            accuracy, sizes = torch.stack([one["scores"] for one in received]).double().T.tolist()
            first = sizes if by == "size" else accuracy
            ranked = sorted(range(count), key=lambda k: (-first[k], -sizes[k], k))
            chosen = ranked[:keep]
            if by == "diversity":
                vectors = torch.stack(
                    [torch.cat([t.flatten() for t in one["last layer"]]) for one in received]
                )
                chosen = best_of_clusters(clusters(vectors, keep, ranked[0]), ranked, keep)
    for k in range(count):
        ctx.link.down(k, k in chosen, phase="scores")
    return sorted(chosen)


def score(ctx: Context, clients: ClientModels, k: int) -> Tensor:
    """Client side: its model's accuracy on its own held-out samples, 0–1, and n_k; `[2]`, float32."""
    x, y = ctx.private.held_out(k)
    right = (
        (in_chunks(clients.module(k), x).argmax(1) == y).float().mean()
        if len(x)
        else x.new_zeros(())
    )
    return torch.stack([right.float(), right.new_tensor(ctx.sizes[k]).float()])


def clusters(vectors: Tensor, count: int, first: int) -> Tensor:
    """k-means on `vectors [M, D]`: the cluster of each, `[M]`, 0 … count - 1; some may be empty.

    The start is row `first`, then each time the row that is farthest from all centres so far, so that nothing is drawn.
    """
    vectors = vectors.double()
    starts = vectors[[first]]
    while len(starts) < count:
        farthest = torch.cdist(vectors, starts).min(1).values.argmax()
        starts = torch.cat([starts, vectors[farthest][None]])
    centres, member = starts, torch.cdist(vectors, starts).argmin(1)
    for _ in range(PASSES):
        members = torch.nn.functional.one_hot(member, count).double()  # [M, count]
        sizes = members.sum(0)[:, None]
        centres = torch.where(sizes > 0, members.T @ vectors / sizes.clamp_min(1), centres)
        before, member = member, torch.cdist(vectors, centres).argmin(1)
        if torch.equal(before, member):
            break
    return member


def best_of_clusters(member: Tensor, ranked: Sequence[int], keep: int) -> list[int]:
    """The first of each cluster in the order `ranked`; where clusters are empty, the next ones fill up to `keep`."""
    cluster = member.tolist()
    best = [k for at, k in enumerate(ranked) if cluster[k] not in {cluster[j] for j in ranked[:at]}]
    return (best + [k for k in ranked if k not in best])[:keep]


ROBUST, TIE = ("trimmed", "median"), 1e-6  # how much the mean counts beside them
PLAIN = EnsembleModel.RULES  # the means of logits and of probabilities
TITLES = dict(zip(PLAIN, ("FedENS: mean of logits", "mean of probabilities"), strict=True))
CHOSEN = -1.0  # β that is chosen on held-out samples


@dataclass(frozen=True, eq=False)
class EnsembleReport(Report):
    """`rule`: by which the run predicts;   accuracy_by_rule: test accuracy, 0–1, of each of PLAIN.

    beta:    of the rule "beta";   grid, held_out_nll: the β that were tried and their NLL, nats, on held-out samples
    members: the clients that uploaded, where not all did
    certified: of a run with f liars, the share of test images whose right class no f liars could change in the mean of
             the probabilities of honest clients
    """

    rule: str | None = None
    accuracy_by_rule: dict[str, float] | None = None
    beta: float | None = None
    grid: list[float] | None = None
    held_out_nll: list[float] | None = None
    members: list[int] | None = None
    certified: float | None = None

    def others(self) -> dict[str, float]:
        return {
            TITLES[r]: share for r, share in (self.accuracy_by_rule or {}).items() if r != self.rule
        }


class RuledEnsemble(EnsembleModel):
    """All client models under one of eight rules; `weights`: `[M]` or `[M, C]`, columns summing to 1.

    `beta`: where the rule needs it;   `cut`: how many answers the trimmed mean leaves out at each end;
    `liars`: the places of those that answer falsely;   `more`: further fields of the report.
    """

    report: EnsembleReport
    parts = ("clients", "rule", "weights", "beta", "cut", "liars")
    RULES = (*PLAIN, "weighted", "class_counts", "votes", "beta", *ROBUST)
    KINDS = {"votes": "votes"} | dict.fromkeys(
        ("probabilities", "beta", *ROBUST), "log-probabilities"
    )

    def __init__(
        self, clients: ClientModels, rule: str, weights: Tensor | None = None, beta: float | None = None,
        cut: int = 0, liars: Sequence[int] = (), **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(clients, rule)
        self.weights, self.beta, self.cut, self.liars = weights, beta, cut, list(liars)
        self.report = EnsembleReport(rule, beta=beta, **more)
        self.score_kind = self.KINDS.get(rule, "logits")
        self.client_logits = Remembered(
            lambda x: with_lies(self.combined, clients.logits(x), liars)
        )

    def measured(self, x: Tensor, y: Tensor) -> EnsembleReport:
        shares = {
            rule: accuracy(plain_mean(self.client_logits(x), rule).argmax(1), y) for rule in PLAIN
        }
        if not self.liars:
            return replace(self.report, accuracy_by_rule=shares)
        honest = self.clients.logits(x).softmax(-1)
        safe = certified(honest, len(self.liars)) & (honest.mean(0).argmax(-1) == y)
        return replace(self.report, accuracy_by_rule=shares, certified=float(safe.double().mean()))

    def logits(self, x: Tensor) -> Tensor:
        return self.combined(self.client_logits(x))

    def combined(self, logits: Tensor) -> Tensor:
        """What the rule makes of the clients' answers `[M, N, C]`: `[N, C]`."""
        if self.rule in PLAIN:
            return plain_mean(logits, self.rule)
        if self.rule in ROBUST:
            each = logits.softmax(-1)
            middle = averages.trimmed(each, self.cut) + TIE * each.mean(0)
            return (middle / middle.sum(-1, keepdim=True)).log()
        if self.rule == "beta":
            return between(logits, self.beta or 0.0)
        if self.rule == "votes":
            votes = F.one_hot(logits.argmax(-1), logits.shape[-1]).sum(0)
            return votes + logits.softmax(-1).mean(0)  # less than one vote
        return combine(logits, self.weights, normalise=False)


@register(
    "ensemble",
    title="Ensemble",
    titles={f"rule={rule}": title for rule, title in TITLES.items()},
    group="Keep an ensemble",
    paper="Allouah et al., NeurIPS 2024",
    leaks="each client's model",
)
class Ensemble(Method):
    """Upload once, keep all M models, and average their outputs."""

    rule: str = knob("probabilities", "Rule", options=RuledEnsemble.RULES)
    beta: float = knob(CHOSEN, "Product's share", symbol="β_p", low=CHOSEN, high=1)
    keep: int = knob(0, "Clients kept", low=0, high=10_000)
    by: str = knob("validation", "Kept by", options=BY)
    assumed: int = averages.assumed_knob()

    report = EnsembleReport
    asks_clients = True

    def __post_init__(self) -> None:
        tuned = self.rule == "beta" and self.beta == CHOSEN
        scored = self.keep and self.by in ("validation", "diversity")
        object.__setattr__(self, "holds_out", bool(tuned or scored))  # what these values need

    def refuse(self, ctx: Context) -> None:
        fits = ctx.has("one architecture") or not (self.keep and self.by == "diversity")
        demand(
            fits,
            "by=diversity needs one architecture at all clients; choose by=validation, size or random.",
        )
        averages.check_average(self.rule, self.assumed, self.members(ctx), self.info.title)
        given = self.beta == CHOSEN or self.beta >= 0
        demand(
            given,
            f"ensemble.beta is {self.beta:g}, but must be 0 to 1, or -1: chosen on held-out samples.",
        )
        measurable = not self.holds_out or any(ctx.private.sizes("held_out"))
        demand(
            measurable,
            "No client has held-out samples; hold out more, give beta a value, or use by=size.",
        )

    def members(self, ctx: Context) -> int:
        """How many models there will be."""
        return min(self.keep or ctx.clients_count, ctx.clients_count)

    @property
    def leaks(self) -> str:
        more = ", to every other client" if self.rule == "beta" and self.beta == CHOSEN else ""
        if not self.keep:
            return self.info.leaks + more
        scores = "" if self.by == "random" else "; everybody's held-out accuracy and sample count"
        scores += ", and last layer" if self.by == "diversity" else ""
        return f"the chosen clients' models{more}{scores}"

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients train alone; those that are chosen upload.
        clients = yield from ctx.local_training()
        members = chosen_clients(ctx, clients, self.keep, self.by, "ensemble")
        uploaded = ctx.upload(clients, members)
        shares = class_count_weights(ctx, members) if self.rule == "class_counts" else None
        more: dict[str, Any] = {} if len(members) == ctx.clients_count else {"members": members}
        more["liars"] = [
            i for i, k in enumerate(members) if ctx.poison.of_answers and k in ctx.poisoned
        ]
        more["cut"] = (len(members) - 1) // 2 if self.rule == "median" else self.assumed
        if self.rule == "beta" and self.beta != CHOSEN:
            more["beta"] = self.beta
        elif self.rule == "beta":
            beta, nll = choose_beta(ctx, uploaded)
            more |= {"beta": beta, "grid": list(GRID), "held_out_nll": nll}
        with ctx.server():
            if self.rule == "weighted":
                sizes = [ctx.sizes[k] for k in members]
                shares = client_weights("samples", sizes, next(uploaded.module(0).parameters()))
            return RuledEnsemble(uploaded, self.rule, shares, **more)
