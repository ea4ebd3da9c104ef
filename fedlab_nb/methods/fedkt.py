"""FedKT: knowledge passes twice through votes on public samples. So only labels pass, and noise can
protect them.

Li, He, Song, *Practical One-Shot Federated Learning for Cross-Silo Setting*, IJCAI 2021 (arXiv
2010.01017), their Algorithm 1:

1. Client k partitions its samples s times into t parts, and trains a teacher on each part. For each of the s partitions
   the t teachers vote on the label of every public sample, and a student learns these labels. The s students go up.
2. The server counts votes: client k gives s votes to class c if all its s students say c, else none ("consistent
   voting"). One network learns the labels argmax_c Σ_k v_kc.

Privacy: `server` adds Lap(1/γ) to the server's counts. One client moves at most s votes from one class to another, so a
query costs 2 s γ, and the guarantee holds for each *client* as a whole (the paper's L1). `client` adds the noise to the
teachers' counts. One sample moves one vote in each of the s partitions, at a cost of 2 γ each, and the guarantee holds
for each *sample* (L2). In both cases the labels are all that is released of the private data, and training on them
releases no more. But under `server` the students themselves go up without noise: the guarantee is against those who see
the final model, not against the server. `compute_worst_case_epsilon` adds up the costs. Fewer `queries` cost less.

Departures: with t = 1 the one teacher is the student (except under `client`). Without noise, ties go to the higher mean
probability, which counts less than one vote; with noise they have probability zero. A client with fewer than t samples
has one teacher for each sample. In the released code consistent voting has an effect only with noise, and then compares
the total count; here it works as the paper says. Clients draw the initial weights of teachers and students, so nothing
goes down. All train by the clients' recipe; students and the final network make `epochs` passes. The paper also has
decision trees, as any classifier can vote; here every classifier is a network.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import UsageError
from ..methods.run_outputs import SentenceOnPrivacy
from ..models import Network, copy_model_state
from ..models.state import copy_model
from ..rng import draw_laplace_noise_of_scale_1
from ..tensor_types import Labels, Samples
from ..training import (
    ClientModels,
    EpochProgress,
    Recipe,
    iterate_training_of_clients_in_place,
    run_in_chunks,
)
from ..training.loop import Shard
from ..value_types import ClientIndex, MeanPassesPerClient
from .base import (
    Context,
    Method,
    NetworkModel,
    Report,
    Steps,
    knob,
    make_server_model_knob,
    register,
    report_progress,
)
from .traffic import FederationSizes, RunBytesUpPlusDown

TeacherLogits = Tensor  # [t, T, C] of a client's t teachers for T queries
StudentLogits = Tensor  # [M, s, T, C] of each client's s students for T queries
VoteCounts = Tensor  # [T, C], votes for each class without noise
ProbabilityPerQuery = Tensor  # [T]
MomentOrders = Tensor  # [L], the orders l of the moments
LogMoments = Tensor  # [L] of one query or of all, or [T, L] of each query

# -------------------------------------------------------------------------------------------------------- votes privacy
# Noisy votes and their privacy guarantee: Laplace noise on counts, and the ε that T noisy votes spend (PATE).
#
# Papernot et al., *Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data*, ICLR 2017; for
# students of a federation Li, He, Song, *Practical One-Shot Federated Learning for Cross-Silo Setting* (FedKT), 2021.
#
# A query counts votes n_c and answers argmax_c n_c + Lap(1/γ). If neighbouring data (another client, or another sample)
# move at most v votes from one class to another, a query is ε_0-differentially private with ε_0 = 2 v γ. After T
# queries:
#
#     simple composition   ε = T ε_0, with δ = 0
#     moments              ε = min over l = 1, 2, … of (Σ_queries α(l) + ln(1/δ)) / l
#
# where α(l) bounds the logarithm of the l-th moment of the privacy loss of one query: ε_0² l (l+1) / 2 for any votes
# (Bun and Steinke 2016; for v = 1 it is PATE's 2 γ² l (l+1)), never more than l ε_0. If the votes agree, the noise
# hardly ever changes the answer, and α is far smaller (PATE, theorem 3). That bound depends on the votes, so this ε is
# itself not private: it is a measurement, not a guarantee.
#
# Neighbouring data here *replace* one client's samples (`server`) or one sample (`client`), since an additional sample
# would change a client's whole partition. So this ε and that of afl (`parts/privacy.py`) cannot be compared.

# The orders l of the moments that are tried.
ORDERS = torch.cat([torch.arange(1.0, 257), 2.0 ** torch.arange(9, 21)]).double()


def compute_worst_case_epsilon(epsilon_per_query: float, query_count: int, delta: float) -> float:
    """Compute ε at `delta` of `query_count` answers of ε_0 = `epsilon_per_query` each, for any
    votes. It is at most that of simple composition.
    """
    moments = query_count * compute_worst_case_log_moments(epsilon_per_query)
    return _convert_log_moments_to_epsilon(moments, delta, epsilon_per_query * query_count)


def compute_data_dependent_epsilon(
    vote_counts: VoteCounts, inverse_noise_scale: float, epsilon_per_query: float, delta: float
) -> float:
    """Compute ε at `delta` of these particular `vote_counts [T, C]`, which have no noise. It is
    small if the votes agree. This ε is not private itself.
    """
    moments = compute_data_dependent_log_moments(
        bound_probability_of_changed_winner(vote_counts, inverse_noise_scale), epsilon_per_query
    ).sum(0)
    return _convert_log_moments_to_epsilon(moments, delta, epsilon_per_query * len(vote_counts))


def compute_worst_case_log_moments(
    epsilon_per_query: float, orders: MomentOrders = ORDERS
) -> LogMoments:
    """Compute α(l) of one query for any votes, `[L]`."""
    return torch.minimum(
        epsilon_per_query**2 * orders * (orders + 1) / 2, epsilon_per_query * orders
    )


def bound_probability_of_changed_winner(
    vote_counts: VoteCounts, inverse_noise_scale: float
) -> ProbabilityPerQuery:
    """Compute q `[T]`, an upper bound of the probability that noise changes the winning class
    (PATE, lemma 4).
    """
    vote_counts = vote_counts.double().cpu()
    most_votes, winner = vote_counts.max(1, keepdim=True)
    gap = inverse_noise_scale * (most_votes - vote_counts)
    terms = (2 + gap) / (4 * gap.exp())
    return (terms.sum(1) - terms.gather(1, winner)[:, 0]).clamp(max=1.0)


def compute_data_dependent_log_moments(
    bound_on_changed_winner: ProbabilityPerQuery,
    epsilon_per_query: float,
    orders: MomentOrders = ORDERS,
) -> LogMoments:
    """Compute α(l) `[T, L]` of queries whose answer changes with probability q `[T]` at most (PATE,
    theorem 3).
    """
    bound_on_changed_winner = bound_on_changed_winner[:, None]
    e = math.exp(min(epsilon_per_query, 700.0))  # e^ε_0, which must not overflow
    if e > 1:
        applies = bound_on_changed_winner < (e - 1) / (e * e - 1)
    else:
        applies = torch.zeros_like(bound_on_changed_winner, dtype=torch.bool)
    small = torch.where(applies, bound_on_changed_winner, 0.0)
    log_stays = (1 - small).log() + orders * ((1 - small).log() - (1 - e * small).log())
    alpha = torch.logaddexp(log_stays, small.log() + epsilon_per_query * orders)
    worst_case = compute_worst_case_log_moments(epsilon_per_query, orders)
    return torch.where(applies, torch.minimum(alpha, worst_case), worst_case)


def _convert_log_moments_to_epsilon(
    log_moments: LogMoments, delta: float, epsilon_of_simple_composition: float
) -> float:
    """Compute the smallest ε that these moments `[L]` give over all l, at most that of simple
    composition.
    """
    epsilons = (log_moments + math.log(1 / delta)) / ORDERS
    return min(float(epsilons.min()), epsilon_of_simple_composition)


PrivacyPlace = Literal["none", "server", "client"]
PRIVACY: tuple[PrivacyPlace, ...] = get_args(PrivacyPlace)
MOST_STUDENTS = 10_000  # of all clients


@dataclass(frozen=True, eq=False)
class FedKTReport(Report):
    """The agreement of the votes, and their cost in privacy.

    queries: public samples that were labelled
    consistent: share of (client, query) whose students agree

    With noise:

    epsilon_simple: ε by simple composition
    epsilon: ε by the moments, at `delta`
    epsilon_measured: ε of these particular votes, for privacy=server; this number is not private itself
    changed: share of the server's labels that its noise has changed
    """

    queries: int | None = None
    consistent: float | None = None
    delta: float | None = None
    epsilon_simple: float | None = None
    epsilon: float | None = None
    epsilon_measured: float | None = None
    changed: float | None = None


class SamplesOfTeachers(NamedTuple):
    """One partition of a `client`'s samples, for its `student` (0 … s - 1). Each of the `parts` is
    for one teacher.
    """

    client: ClientIndex
    student: int
    parts: list[Shard]


class VotedLabels(NamedTuple):
    """Labels `[T]` of the queries, and what the votes cost in privacy."""

    labels: Tensor
    report: FedKTReport


@register(
    "fedkt",
    title="FedKT",
    group="Distil, with public data",
    paper="Li et al., IJCAI 2021",
    traffic="s S_θ, up only",
    needs=["public"],
    extra="unlabelled public samples at the server and at every client",
    sends="its students",
    leaks="s students of each client, which learnt from labels of public samples alone",
)
class FedKT(Method):
    """Each client's teachers vote on labels for its students. The students vote on labels for the final network."""

    trains_locally = False

    students: int = knob(2, "Students", low=1, high=100)
    teachers: int = knob(2, "Teachers per student", low=1, high=100)
    consistent: bool = knob(True, "Consistent voting")
    epochs: int = knob(40, "Epochs", low=1, high=5000)
    privacy: PrivacyPlace = knob("none", "Noise", options=PRIVACY)
    gamma: float = knob(0.5, "Inverse noise", low=1e-4, high=1e6, log=True)
    delta: float = knob(1e-5, "Failure δ", low=1e-12, high=0.1, log=True)
    queries: int = knob(0, "Queries", low=0)
    server_model: str = make_server_model_knob()

    report = FedKTReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return RunBytesUpPlusDown(self.students * sizes.models_up)

    def refuse(self, ctx: Context) -> None:
        most_partitions = MOST_STUDENTS // ctx.clients_count
        if self.students > most_partitions:
            raise UsageError(
                f"fedkt.students is {self.students}, but 10,000 in all allow {most_partitions} "
                "here."
            )

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        return float(recipe.epochs * self.students)

    @property
    def leaks(self) -> SentenceOnPrivacy:
        if self.privacy == "none":
            return self.info.leaks
        if self.privacy == "server":
            return f"{self.info.leaks}; ε for each client, to who sees the final network"
        return f"{self.info.leaks}; ε for each sample"

    def run(self, ctx: Context) -> Steps[NetworkModel]:
        x = self._choose_query_samples(ctx)
        # Clients: teachers on parts of their samples.
        partitions: list[SamplesOfTeachers] = []
        for k in range(ctx.clients_count):
            partitions += self._split_client_samples_among_teachers(ctx, k)
        teachers = []
        shards: list[Shard] = []
        for partition in partitions:
            for j, part in enumerate(partition.parts):
                teachers.append(
                    self._make_untrained_network(
                        ctx, "teacher", partition.student, partition.client, j
                    )
                )
                shards.append(part)
        starts = self._copy_models_if_clients_poison(ctx, teachers)
        yield from report_progress(
            "teachers", self._train_networks_in_place(ctx, "teachers", teachers, shards)
        )
        # Clients: the teachers' votes, and the students that learn these.
        labels = []
        position = 0
        for partition in partitions:
            members = teachers[position : position + len(partition.parts)]
            position += len(members)
            logits = torch.stack([run_in_chunks(teacher, x) for teacher in members])
            stream = ctx.generator("fedkt", "client", partition.client, partition.student)
            labels.append(self.label_queries_by_teacher_votes(logits, stream))
        students = teachers
        if self.teachers > 1 or self.privacy == "client":  # else the one teacher is the student
            students = []
            for partition in partitions:
                students.append(
                    self._make_untrained_network(
                        ctx, "student", partition.student, partition.client
                    )
                )
            starts = self._copy_models_if_clients_poison(ctx, students)
            shards = [(x, y) for y in labels]
            ticks = self._train_networks_in_place(ctx, "students", students, shards, self.epochs)
            yield from report_progress("students", ticks)
        ctx.check_finite(ClientModels(students))
        # Link: s students of each client.
        received = []
        for partition, start, student in zip(partitions, starts, students, strict=True):
            state = ctx.make_upload(partition.client, copy_model_state(start), student)
            received.append(ctx.link.up(partition.client, state, phase="students"))
        # Server: count the students' votes, label, learn.
        with ctx.server():
            uploaded = ClientModels(students).with_states(received)
            logits = uploaded.logits(x).unflatten(0, (ctx.clients_count, self.students))
            y, report = self.label_queries_by_noisy_student_votes(ctx, logits)
            architecture = ctx.server_architecture(self.server_model)
            final = ctx.build(architecture, ctx.generator("fedkt", "server"))
            ticks = self._train_networks_in_place(ctx, "final", [final], [(x, y)], self.epochs)
            return (
                yield from report_progress(
                    "distillation", ticks, lambda: NetworkModel(final, report)
                )
            )

    # ------------------------------------------------------------------ client part
    def _choose_query_samples(self, ctx: Context) -> Samples:
        """Choose the public samples to label, `[T, ...]`. They are drawn once, and the same at
        clients and server.
        """
        if not 0 < self.queries < len(ctx.public):
            return ctx.public
        order = torch.randperm(len(ctx.public), generator=ctx.generator("fedkt", "queries"))
        rows = order[: self.queries]
        return ctx.public[rows.to(ctx.device)]

    def _split_client_samples_among_teachers(
        self, ctx: Context, client: ClientIndex
    ) -> list[SamplesOfTeachers]:
        """Partition the client's samples into t parts, or into fewer if it has fewer, once for each
        of its students.
        """
        x, y = ctx.private.train(client)
        partitions = []
        for i in range(self.students):
            stream = ctx.generator("fedkt", "parts", client, i)
            order = torch.randperm(len(x), generator=stream).to(x.device)
            if self.teachers == 1:
                order = order.sort().values
            parts: list[Shard] = []
            for rows in order.tensor_split(min(self.teachers, len(x))):
                parts.append((x[rows], y[rows]))
            partitions.append(SamplesOfTeachers(client, i, parts))
        return partitions

    def label_queries_by_teacher_votes(
        self, teacher_logits: TeacherLogits, stream: torch.Generator
    ) -> Labels:
        """Let the teachers vote on labels `[T]` by their logits `[t, T, C]`; privacy=client adds
        Lap(1/γ) to the counts.
        """
        votes = F.one_hot(teacher_logits.argmax(-1), teacher_logits.shape[-1]).sum(0)
        if self.privacy == "client":
            noise = (draw_laplace_noise_of_scale_1(votes.shape, stream) / self.gamma).to(
                teacher_logits
            )
            return (votes + noise).argmax(1)
        # Ties go to the higher mean probability.
        return (votes + teacher_logits.softmax(-1).mean(0)).argmax(1)

    def _make_untrained_network(
        self,
        ctx: Context,
        role: Literal["teacher", "student"],
        student_index: int,
        client: ClientIndex,
        *further_stream_names: int,
    ) -> Network:
        """Make a network of the client's architecture, with initial weights of its own, for its
        student `index`.
        """
        return ctx.build(
            ctx.architectures[client],
            ctx.generator("fedkt", role, student_index, client, *further_stream_names),
        )

    def _copy_models_if_clients_poison(self, ctx: Context, models: list[Network]) -> list[Network]:
        """Return copies of the untrained models if clients poison theirs, since this needs them
        after the training; else the models themselves.
        """
        if ctx.poison.changes_models:
            return [copy_model(model) for model in models]
        return models

    def _train_networks_in_place(
        self,
        ctx: Context,
        role: Literal["teachers", "students", "final"],
        models: list[Network],
        shards: list[Shard],
        public_epochs_or_0_for_recipe: int = 0,
    ) -> Iterator[EpochProgress]:
        """Train all networks together, as a stack if that is faster.

        public_epochs_or_0_for_recipe: number of epochs on public samples; 0 for that of the recipe, on private samples
        """
        recipe = ctx.recipe
        if public_epochs_or_0_for_recipe:  # the votes are on the samples as they are
            recipe = replace(recipe, epochs=public_epochs_or_0_for_recipe, augmentation="none")
        return iterate_training_of_clients_in_place(
            models, shards, recipe, seed=ctx.seed, backend=ctx.backend, stream=f"fedkt {role}"
        )

    # ------------------------------------------------------------------ server part
    def label_queries_by_noisy_student_votes(
        self, ctx: Context, student_logits: StudentLogits
    ) -> VotedLabels:
        """Vote on labels `[T]` by the students' logits `[M, s, T, C]`, and compute the ε that all
        votes cost.
        """
        answers = student_logits.argmax(-1)
        agree = (answers == answers[:, :1]).all(1)  # [M, T]
        student_votes = F.one_hot(answers, student_logits.shape[-1])
        if self.consistent:
            student_votes = student_votes * agree[:, None, :, None]
        votes = student_votes.sum((0, 1))  # [T, C]
        report = FedKTReport(len(votes), float(agree.double().mean()))
        # Ties go to the higher mean probability.
        labels = (votes + student_logits.softmax(-1).mean((0, 1))).argmax(1)
        if self.privacy == "none":
            return VotedLabels(labels, report)
        students = student_logits.shape[1]
        queries = len(votes)
        per_query = 2 * self.gamma
        if self.privacy == "server":
            per_query = per_query * students
            stream = ctx.generator("fedkt", "server noise")
            noise = draw_laplace_noise_of_scale_1(votes.shape, stream) / self.gamma
            noisy_labels = (votes + noise.to(votes.device)).argmax(1)
            changed = float((noisy_labels != labels).double().mean())
            labels = noisy_labels
            measured = compute_data_dependent_epsilon(votes, self.gamma, per_query, self.delta)
            report = replace(report, epsilon_measured=measured, changed=changed)
        else:
            queries *= students
        report = replace(
            report,
            epsilon=compute_worst_case_epsilon(per_query, queries, self.delta),
            epsilon_simple=per_query * queries,
            delta=self.delta,
        )
        return VotedLabels(labels, report)
