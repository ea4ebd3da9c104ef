"""FedENS: every client uploads its model once; the server predicts with all of them together.

Allouah et al., NeurIPS 2024, call the mean of the logits FedENS: f̄(x) = (1/M) Σ_k f_k(x), `rule=logits`. Other rules;
the default is the one that validation images chose (`papers/tuning`):
- probabilities: the mean of softmax outputs. Under label skew a client may be sure of samples whose class it has never
  seen; its logits have no bound, its probabilities do;
- weighted: Σ_k (n_k/N) f_k(x), by sample counts (DW-FedENS in Co-Boosting); n_k travels in the message's header;
- class_counts: Σ_k (n_kc / Σ_j n_jc) f_kc(x), by C counts of each client (FedKD's teacher, FENS' weighted
  averaging);
- votes: the class that most models predict; ties go to the higher mean probability. FENS' `voting` also weighs how
  often each client is right about each class;
- trimmed, median: the mean of each class's probabilities without the `assumed` largest and smallest ones, or their
  median; ties go to the higher mean probability. Both bound the influence of a few liars (`poison=lie:f`,
  `parts/byzantine.py`). If clients differ, they cut away honest experts, too (the guide has figures);
- beta: β-predictive Bayes, between the mean of the probabilities (β = 0) and their product (β = 1), which names the
  class that the mean of the logits names (`ensemble.py`). β is chosen on the clients' held-out samples. The
  models must go down for that, M S_θ to each client; else the server needs labelled samples, as in the paper. The paper
  also has a whole posterior of each client; here a client has one network. β is chosen by likelihood, so it need not
  be the one with the highest accuracy.

Only `keep` of the clients, chosen `by` a score, may upload; the other models stay at their clients.
This is ensemble selection, by Guha, Talwalkar, Smith (2019) and DeDES (see "selection" below). In
neither paper does the choice come before the upload.

With any rule a run also reports the accuracies of the two plain means, from the same outputs.
Comparisons show both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import UsageError
from ..methods.run_outputs import SentenceOnPrivacy
from ..tensor_types import ClassScores, ClientLogits, Labels, Logits, Samples
from ..training import ClientModels, run_in_chunks
from ..training.calibration import ScoreKind
from ..training.evaluate import CachedFunction, compute_accuracy
from ..value_types import ClientIndex
from .base import Context, EnsembleModel, GlobalModel, Method, Report, Steps, knob, register
from .parts import averages
from .parts.byzantine import (
    are_predictions_safe_from_liars,
    choose_lie_logit,
    replace_answers_of_liars,
)
from .parts.frozen_ensemble import (
    combine_client_logits,
    compute_client_shares,
    send_class_counts_and_compute_class_shares,
)
from .run_outputs import AccuracyByRule, EnsembleRule, average_logits_or_log_mean_probabilities
from .traffic import FederationSizes, RunBytesUpPlusDown

AccuracyAndSampleCount = Tensor  # [2]
VectorPerClient = Tensor  # [M, D]
ClusterIndexPerClient = Tensor  # int64 [M], the number of a client's cluster

# ----------------------------------------------------------------------------------------------------------- predictive
# β-predictive Bayes: from a mixture of the clients' predictions (β = 0) to their product (β = 1).
#
# Hasan, Zhang, Guo, Chen, Poupart, *Calibrated One Round Federated Learning with Bayesian Inference in the Predictive
# Space*, AAAI 2024 (arXiv 2312.09817):
#
#     p_mix = (1/M) Σ_k p_k,   p_prod ∝ Π_k p_k,   log p_β = β log p_prod + (1 - β) log p_mix - log Z.
#
# A product of experts is overconfident, a mixture underconfident; one number between them corrects both. At β = 1 the
# class with the highest probability is that of the mean of the logits, for every x: Σ_k log p_kc = Σ_k f_kc - Σ_k log
# Z_k, and the last sum does not depend on c.

GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def blend_mean_and_product_of_probabilities(
    client_logits: ClientLogits, share_of_product: float
) -> Logits:
    """Compute log p_β `[N, C]` from the clients' logits `[M, N, C]`. Its exponentials sum to 1."""
    log_p = client_logits.log_softmax(-1)
    product = log_p.sum(0)
    mixture = log_p.logsumexp(0)
    return (share_of_product * product + (1 - share_of_product) * mixture).log_softmax(-1)


class ChosenBeta(NamedTuple):
    """The chosen β, and the loss of each value of the grid."""

    beta: float
    scores: list[float]


class HeldOutLosses(TypedDict):
    """One client's upload: the NLL of every β, summed over its held-out samples, and their number."""

    nll: Tensor
    samples: int


def exchange_models_and_held_out_losses(
    ctx: Context, uploaded_models: ClientModels, beta_grid: tuple[float, ...] = GRID
) -> list[HeldOutLosses]:
    """Run one more round: the uploaded models go down to every client, and its sums of NLL go up, 4 bytes
    for each β.

    Call it outside `ctx.server()`.
    """
    # Server, link: the models down, since the samples may not go up.
    received = uploaded_models.with_states(
        ctx.link.broadcast(uploaded_models.states(), phase="ensemble")
    )
    # Clients: the NLL of every β, summed over their own held-out samples.
    uploads = []
    for k in range(ctx.clients_count):
        x, y = ctx.private.held_out(k)
        nll = x.new_zeros(len(beta_grid))
        if len(x):
            logits = received.logits(x)
            sums = [
                F.nll_loss(
                    blend_mean_and_product_of_probabilities(logits, beta), y, reduction="sum"
                )
                for beta in beta_grid
            ]
            nll = torch.stack(sums)
        uploads.append(ctx.link.up(k, {"nll": nll, "samples": len(x)}, phase="likelihoods"))
    return uploads


def choose_beta_of_lowest_loss(
    losses_of_clients: Sequence[HeldOutLosses], beta_grid: tuple[float, ...] = GRID
) -> ChosenBeta:
    """Server side: choose the β of `beta_grid` with the lowest mean NLL. All means are returned, in
    nats a sample.
    """
    samples = sum(upload["samples"] for upload in losses_of_clients)
    total = torch.stack([upload["nll"] for upload in losses_of_clients]).sum(0)
    means = (total / samples).tolist()
    return ChosenBeta(beta_grid[means.index(min(means))], means)


# ------------------------------------------------------------------------------------------------------------ selection
# The selection of clients: which k of M upload their model for an ensemble.
#
# Guha, Talwalkar, Smith, *One-Shot Federated Learning*, 2019 (arXiv 1902.11175), the first paper on the subject: keep
# those that are best on their own held-out samples ("validation", the paper's CV), those with the most samples
# ("size"), or any ("random"). Under label skew the first rule fails: a client with one class is always right about its
# own samples. "diversity" is DeDES (Wang et al., TMLR 2023): cluster the models by their weights, and take the best of
# each cluster.
#
# Clients send their score and n_k, 8 bytes; under "diversity" also their last layer, which is clustered; under "random"
# nothing. The server answers with yes or no, and only the chosen clients upload. In both papers the server sets the
# thresholds, or has all models; here a model that is not chosen never leaves its client. A client without held-out
# samples scores 0. Ties go to the client with more samples, then to the lower number.

# What a client sends for a choice among them: accuracy and n_k `[2]`; for "diversity" also its last layer.
CriterionUpload = TypedDict(
    "CriterionUpload", {"scores": Tensor, "last layer": list[Tensor]}, total=False
)
ClientCriterion = Literal["validation", "size", "random", "diversity"]
BY: tuple[ClientCriterion, ...] = get_args(ClientCriterion)
PASSES = 50  # of k-means, at most


def select_uploading_clients(
    ctx: Context,
    clients: ClientModels,
    client_count_or_0_for_all: int,
    criterion: ClientCriterion,
    stream_name: str,
) -> list[ClientIndex]:
    """Let clients send what `criterion` needs, and return the numbers of those that may upload, in
    ascending order.

    client_count_or_0_for_all: how many clients may upload; 0 for all
    stream_name: name of the random stream

    Call it outside `ctx.server()`.
    """
    count = ctx.clients_count
    if not 0 < client_count_or_0_for_all < count:
        return list(range(count))
    if criterion == "random":
        with ctx.server():
            order = torch.randperm(count, generator=ctx.generator(stream_name, "selection"))
            chosen = order[:client_count_or_0_for_all].tolist()
    else:
        # Clients: accuracy and sample count; also the last layer, if it is clustered.
        received = []
        for k in range(count):
            upload: CriterionUpload = {
                "scores": measure_held_out_accuracy_and_sample_count(ctx, clients, k)
            }
            if criterion == "diversity":
                upload["last layer"] = list(clients.module(k).classifier.state_dict().values())
            received.append(ctx.link.up(k, upload, phase="scores"))
        # Server: the choice.
        with ctx.server():
            chosen = choose_clients_by_criterion(received, client_count_or_0_for_all, criterion)
    for k in range(count):
        ctx.link.down(k, k in chosen, phase="scores")
    return sorted(chosen)


def measure_held_out_accuracy_and_sample_count(
    ctx: Context, clients: ClientModels, client: ClientIndex
) -> AccuracyAndSampleCount:
    """Client side: measure the model's accuracy on the client's held-out samples, 0–1, and n_k;
    `[2]`, float32.
    """
    x, y = ctx.private.held_out(client)
    if len(x):
        right = (run_in_chunks(clients.module(client), x).argmax(1) == y).float().mean()
    else:
        right = x.new_zeros(())
    return torch.stack([right.float(), right.new_tensor(ctx.sizes[client]).float()])


def choose_clients_by_criterion(
    received_scores: Sequence[CriterionUpload], client_count: int, criterion: ClientCriterion
) -> list[ClientIndex]:
    """Server side: choose `client_count` clients by the uploads of `select_uploading_clients`."""
    scores = torch.stack([upload["scores"] for upload in received_scores]).double()
    accuracies, sizes = scores.T.tolist()
    ranking_scores = sizes if criterion == "size" else accuracies
    ranked = sorted(range(len(received_scores)), key=lambda k: (-ranking_scores[k], -sizes[k], k))
    if criterion != "diversity":
        return ranked[:client_count]
    vectors = []
    for upload in received_scores:
        vectors.append(torch.cat([tensor.flatten() for tensor in upload["last layer"]]))
    clusters = assign_to_k_means_clusters(torch.stack(vectors), client_count, ranked[0])
    return choose_best_of_clusters_then_next_best(clusters, ranked, client_count)


def assign_to_k_means_clusters(
    vectors: VectorPerClient, cluster_count: int, first_centre_row: int
) -> ClusterIndexPerClient:
    """Run k-means on `vectors [M, D]`, and return the cluster of each, `[M]`, 0 … cluster_count -
    1. Some clusters may be empty.

    The first centre is row `first_centre_row`; each further one is the row farthest from all centres so
    far. So nothing is drawn at random.
    """
    vectors = vectors.double()
    starts = vectors[[first_centre_row]]
    while len(starts) < cluster_count:
        farthest = torch.cdist(vectors, starts).min(1).values.argmax()
        starts = torch.cat([starts, vectors[farthest][None]])
    centres = starts
    clusters = torch.cdist(vectors, centres).argmin(1)
    for _ in range(PASSES):
        membership = F.one_hot(clusters, cluster_count).double()  # [M, count]
        sizes = membership.sum(0)[:, None]
        means = membership.T @ vectors / sizes.clamp_min(1)
        centres = torch.where(sizes > 0, means, centres)
        new_clusters = torch.cdist(vectors, centres).argmin(1)
        if torch.equal(new_clusters, clusters):
            break
        clusters = new_clusters
    return clusters


def choose_best_of_clusters_then_next_best(
    cluster_of_each_client: ClusterIndexPerClient,
    clients_best_first: Sequence[int],
    client_count: int,
) -> list[ClientIndex]:
    """Choose the best client of each cluster, then the next best ones until there are
    `client_count`.
    """
    cluster_of = cluster_of_each_client.tolist()
    best: list[int] = []
    for k in clients_best_first:
        if cluster_of[k] not in [cluster_of[j] for j in best]:
            best.append(k)
    others = [k for k in clients_best_first if k not in best]
    return (best + others)[:client_count]


# Rules that average probabilities. The others add up logits, or (`beta`) logarithms of probabilities, without a bound.
READS_PROBABILITIES = ("probabilities", "votes", "trimmed", "median")
ROBUST = ("trimmed", "median")
TIE = 1e-6  # the weight of the mean that is added to a robust rule, to decide ties
# The means of logits and of probabilities.
PLAIN: tuple[EnsembleRule, ...] = get_args(EnsembleRule)
TITLES = {"logits": "FedENS: mean of logits", "probabilities": "mean of probabilities"}
CHOSEN = -1.0  # the knob's value for a β that is chosen on held-out samples


@dataclass(frozen=True, eq=False)
class EnsembleReport(Report):
    """The accuracies of the ensemble under several rules.

    rule: the rule by which the run predicts
    accuracy_by_rule: test accuracy, 0–1, of each of PLAIN
    beta: of the rule "beta"
    grid, held_out_nll: the β that were tried and their NLL, nats, on held-out samples
    members: the clients that uploaded, if not all did
    certified: in a run with f liars, the share of test images on which the mean of the honest clients' probabilities is
        right and f liars could not change its class
    """

    rule: str | None = None
    accuracy_by_rule: dict[str, float] | None = None
    beta: float | None = None
    grid: list[float] | None = None
    held_out_nll: list[float] | None = None
    members: list[int] | None = None
    certified: float | None = None

    def get_accuracies_under_other_rules(self) -> AccuracyByRule:
        accuracies = self.accuracy_by_rule or {}
        return {TITLES[rule]: share for rule, share in accuracies.items() if rule != self.rule}


class RuledEnsemble(EnsembleModel):
    """All client models under one of eight rules.

    weights: `[M]` or `[M, C]`, columns summing to 1, if the rule needs them
    beta: if the rule needs it
    cut: number of answers that the trimmed mean leaves out at each end
    liars: positions of the clients that lie
    lie: the logit of a lie; 0 for the largest logit of the honest clients
    report_fields: further fields of the report
    """

    report: EnsembleReport
    parts = ("clients", "rule", "weights", "beta", "cut", "liars", "lie")
    RULES = (*PLAIN, "weighted", "class_counts", "votes", "beta", *ROBUST)
    SCORE_KINDS: ClassVar[Mapping[str, ScoreKind]] = {
        "votes": "votes",
        "probabilities": "log-probabilities",
        "beta": "log-probabilities",
        "trimmed": "log-probabilities",
        "median": "log-probabilities",
    }

    def __init__(
        self,
        clients: ClientModels,
        rule: str,
        weights: Tensor | None = None,
        beta: float | None = None,
        cut: int = 0,
        liars: Sequence[int] = (),
        lie: float = 0.0,
        **report_fields: Any,
    ) -> None:
        super().__init__(clients, cast(EnsembleRule, rule))
        self.weights = weights
        self.beta = beta
        self.cut = cut
        self.liars = list(liars)
        self.lie = lie
        self.report = EnsembleReport(rule, beta=beta, **report_fields)
        self.score_kind = self.SCORE_KINDS.get(rule, "logits")
        size = choose_lie_logit(lie, rule in READS_PROBABILITIES)
        self.client_logits = CachedFunction(
            lambda x: replace_answers_of_liars(
                self.apply_rule_to_client_logits, clients.logits(x), liars, size
            )
        )

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> EnsembleReport:
        shares: dict[str, float] = {
            rule: compute_accuracy(
                self.compute_scores_of_plain_mean_with_liars(samples, rule).argmax(1), labels
            )
            for rule in PLAIN
        }
        report = replace(self.report, accuracy_by_rule=shares)
        if not self.liars:
            return report
        honest = self.clients.logits(samples).softmax(-1)
        is_right = honest.mean(0).argmax(-1) == labels
        is_certified = are_predictions_safe_from_liars(honest, len(self.liars)) & is_right
        return replace(report, certified=float(is_certified.double().mean()))

    def logits(self, samples: Samples) -> Logits:
        return self.apply_rule_to_client_logits(self.client_logits(samples))

    def compute_scores_of_plain_mean_with_liars(
        self, samples: Samples, rule: EnsembleRule
    ) -> ClassScores:
        """Compute the scores `[N, C]` of a plain mean. Liars give the answers that harm this mean
        most.
        """
        if not self.liars:
            return average_logits_or_log_mean_probabilities(self.client_logits(samples), rule)
        size = choose_lie_logit(self.lie, rule in READS_PROBABILITIES)
        mean = partial(average_logits_or_log_mean_probabilities, rule=rule)
        return mean(replace_answers_of_liars(mean, self.clients.logits(samples), self.liars, size))

    def apply_rule_to_client_logits(self, client_logits: ClientLogits) -> ClassScores:
        """Compute the rule's scores `[N, C]` from the clients' logits `[M, N, C]`."""
        if self.rule in PLAIN:
            return average_logits_or_log_mean_probabilities(client_logits, self.rule)
        if self.rule in ROBUST:
            p = client_logits.softmax(-1)
            mean = averages.compute_trimmed_mean(p, self.cut) + TIE * p.mean(0)
            return (mean / mean.sum(-1, keepdim=True)).log()
        if self.rule == "beta":
            return blend_mean_and_product_of_probabilities(client_logits, self.beta or 0.0)
        if self.rule == "votes":
            votes = F.one_hot(client_logits.argmax(-1), client_logits.shape[-1]).sum(0)
            return votes + client_logits.softmax(-1).mean(0)  # which is less than one vote
        return combine_client_logits(client_logits, self.weights, divide_by_weight_sum=False)


@register(
    "ensemble",
    title="Ensemble",
    titles={f"rule={rule}": title for rule, title in TITLES.items()},
    group="Keep an ensemble",
    paper="Allouah et al., NeurIPS 2024",
    leaks="each client's model",
    forgets="its model leaves the ensemble",
)
class Ensemble(Method):
    """Upload once, keep all M models, and average their outputs."""

    rule: str = knob("probabilities", "Rule", options=RuledEnsemble.RULES)
    beta: float = knob(CHOSEN, "Product's share", symbol="β_p", low=CHOSEN, high=1)
    keep: int = knob(0, "Clients kept", low=0, high=10_000)
    by: ClientCriterion = knob("validation", "Kept by", options=BY)
    assumed: int = averages.make_assumed_liars_knob()

    report = EnsembleReport
    asks_clients = True

    def __post_init__(self) -> None:
        scores_clients = self.keep > 0 and self.by in ("validation", "diversity")
        # The class is frozen; only some values of the knobs need held-out samples.
        object.__setattr__(
            self, "holds_out", self.is_beta_chosen_on_held_out_samples or scores_clients
        )

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        sends_models_alone = self.rule in ("probabilities", "logits", "votes") and not self.keep
        return sizes.one_shot_bytes if sends_models_alone else sizes.one_shot_bytes.as_estimate

    @property
    def is_beta_chosen_on_held_out_samples(self) -> bool:
        return self.rule == "beta" and self.beta == CHOSEN

    def refuse(self, ctx: Context) -> None:
        if self.keep and self.by == "diversity" and not ctx.has("one architecture"):
            raise UsageError(
                "by=diversity needs one architecture at all clients; choose by=validation, size or "
                "random."
            )
        averages.check_average_is_possible(
            cast(averages.MeanMedianTrimmedOrKrum, self.rule),
            self.assumed,
            self.count_clients_that_upload(ctx),
            self.info.title,
        )
        if self.beta != CHOSEN and self.beta < 0:
            raise UsageError(
                f"ensemble.beta is {self.beta:g}, but must be 0 to 1, or -1: chosen on held-out "
                "samples."
            )
        if self.holds_out and not any(ctx.private.sizes("held_out")):
            raise UsageError(
                "No client has held-out samples; hold out more, give beta a value, or use by=size."
            )

    def count_clients_that_upload(self, ctx: Context) -> int:
        """Count the models in the ensemble."""
        return min(self.keep or ctx.clients_count, ctx.clients_count)

    @property
    def leaks(self) -> SentenceOnPrivacy:
        text = "the chosen clients' models" if self.keep else self.info.leaks
        if self.is_beta_chosen_on_held_out_samples:
            text += ", to every other client"
        if self.keep and self.by != "random":
            text += "; everybody's held-out accuracy and sample count"
        if self.keep and self.by == "diversity":
            text += ", and last layer"
        return text

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients train alone; the chosen ones upload.
        clients = yield from ctx.local_training()
        members = select_uploading_clients(ctx, clients, self.keep, self.by, "ensemble")
        uploaded = ctx.upload(clients, members)
        weights = None
        if self.rule == "class_counts":
            weights = send_class_counts_and_compute_class_shares(ctx, members)
        report_fields: dict[str, Any] = {}
        if len(members) < ctx.clients_count:
            report_fields["members"] = members
        beta = self.beta if self.rule == "beta" else None
        if self.is_beta_chosen_on_held_out_samples:
            held_out_losses = exchange_models_and_held_out_losses(ctx, uploaded)
            with ctx.server():
                beta, nll = choose_beta_of_lowest_loss(held_out_losses)
            report_fields |= {"grid": list(GRID), "held_out_nll": nll}
        liars = []
        if ctx.poison.changes_answers:
            liars = [i for i, k in enumerate(members) if k in ctx.poisoned]
        # Server: keep the models, and combine their outputs by the rule.
        with ctx.server():
            if self.rule == "weighted":
                sizes = [ctx.sizes[k] for k in members]
                like = next(uploaded.module(0).parameters())
                weights = compute_client_shares("samples", sizes, like)
            cut = (len(members) - 1) // 2 if self.rule == "median" else self.assumed
            return RuledEnsemble(
                uploaded, self.rule, weights, beta, cut, liars, ctx.poison.logit, **report_fields
            )
