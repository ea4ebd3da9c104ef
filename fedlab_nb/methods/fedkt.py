"""FedKT: knowledge passes twice through votes on public samples, so that only labels do, and noise can protect them.

Li, He, Song, *Practical One-Shot Federated Learning for Cross-Silo Setting*, IJCAI 2021 (arXiv 2010.01017), their
Algorithm 1:

1. Client k cuts its samples into t parts, s times over, and trains a teacher on each part. For each of the s cuttings
   the t teachers vote on the label of every public sample, and a student learns the labels. The s students go up.
2. The server counts votes: client k gives s to class c if all its s students say c, else nothing ("consistent voting").
   One network learns the labels argmax_c Σ_k v_kc.

Privacy: `server` adds Lap(1/γ) to the server's counts. One client moves at most s votes from one class to another, so
a query costs 2 s γ, and the promise is to each *client* as a whole (the paper's L1). `client` adds it to the teachers'
counts; one sample moves one vote in each of the s cuttings, 2 γ each, and the promise is to each *sample* (L2). Either
way the labels are all that the private data have told, and what is trained on them tells no more. But the students
themselves go up without noise under `server`: the promise is to whoever sees the final model, not to the server.
`moments_epsilon` adds the costs up. Fewer `queries` cost less.

Departures: with t = 1 the one teacher is the student (but under `client`). Without noise, ties go to the higher mean
probability, less than one vote; with noise they have probability zero. A client with fewer than t samples has a teacher
a sample. In the released code consistent voting only acts when there is noise, and then compares the total count; here
it acts as the paper says. Teachers and students are drawn by the clients, so nothing goes down. All of them train by
the clients' recipe; students and the final network make `epochs` passes. The paper also has decision trees, for which
any voter would do; here every classifier is a network.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import demand
from ..models import Network, model_state
from ..models.state import copy_model
from ..training import ClientModels, Recipe, Tick, in_chunks, train_clients
from ..training.loop import Shard
from .base import (
    Context,
    Method,
    NetworkModel,
    Report,
    Steps,
    knob,
    register,
    report_progress,
    server_model_knob,
)

# -------------------------------------------------------------------------------------------------------- votes privacy
# Noisy votes and what they promise: Laplace noise on counts, and the ε that T noisy votes have spent (PATE).
#
# Papernot et al., *Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data*, ICLR 2017; for
# students of a federation Li, He, Song, *Practical One-Shot Federated Learning for Cross-Silo Setting* (FedKT), 2021.
#
# A query counts votes n_c and answers argmax_c n_c + Lap(1/γ). Where one neighbour (a party, or a sample) moves at most
# v votes from a class to another, a query is ε_0-differentially private with ε_0 = 2 v γ. After T queries:
#
#     simple composition   ε = T ε_0, with δ = 0
#     moments              ε = min over l = 1, 2, … of (Σ_queries α(l) + ln(1/δ)) / l
#
# where α(l) bounds the logarithm of the l-th moment of the privacy loss of one query: ε_0² l (l+1) / 2 for any votes
# (Bun and Steinke 2016; for v = 1 it is PATE's 2 γ² l (l+1)), never more than l ε_0. Where the votes agree, the noise
# hardly ever changes the answer, and α is far smaller (PATE, theorem 3). That bound depends on the votes, so this ε is
# itself not private: it is a measurement, not a promise.
#
# The neighbours here *replace* one client's samples (`server`) or one sample (`client`), as one more sample would cut a
# client's data in other places. So this ε and that of afl (`parts/privacy.py`) cannot be compared.

ORDERS = torch.cat(
    [torch.arange(1.0, 257), 2.0 ** torch.arange(9, 21)]
).double()  # l that are tried


def laplace(shape: tuple[int, ...], gamma: float, stream: torch.Generator) -> Tensor:
    """Lap(1/γ) noise, float64 on the CPU: the difference of two exponential draws."""
    draws = torch.empty(2, *shape, dtype=torch.float64).exponential_(generator=stream)
    return (draws[0] - draws[1]) / gamma


def moments_epsilon(per_query: float, queries: int, delta: float) -> float:
    """ε at `delta` of `queries` answers of ε_0 = `per_query` each, whatever the votes were; at most the simple one."""
    return _least_epsilon(queries * any_votes(per_query), delta, per_query * queries)


def measured_epsilon(votes: Tensor, gamma: float, per_query: float, delta: float) -> float:
    """ε at `delta` of these very `votes [T, C]` (counts without noise): small where they agree. It is not private."""
    whole = these_votes(change_bound(votes, gamma), per_query).sum(0)
    return _least_epsilon(whole, delta, per_query * len(votes))


def any_votes(per_query: float, orders: Tensor = ORDERS) -> Tensor:
    """α(l) of one query for whatever votes, `[L]`."""
    return torch.minimum(per_query**2 * orders * (orders + 1) / 2, per_query * orders)


def change_bound(votes: Tensor, gamma: float) -> Tensor:
    """q `[T]`: at most so probable is it that noise gives another answer than the most voted class (PATE, lemma 4)."""
    votes = votes.double().cpu()
    top, first = votes.max(1, keepdim=True)
    behind = gamma * (top - votes)
    terms = (2 + behind) / (4 * behind.exp())
    return (terms.sum(1) - terms.gather(1, first)[:, 0]).clamp(max=1.0)


def these_votes(q: Tensor, per_query: float, orders: Tensor = ORDERS) -> Tensor:
    """α(l) `[T, L]` of queries whose answer changes with probability q `[T]` at most (PATE, theorem 3)."""
    q = q[:, None]
    grown = math.exp(min(per_query, 700.0))
    holds = (
        q < (grown - 1) / (grown * grown - 1)
        if grown > 1
        else torch.zeros_like(q, dtype=torch.bool)
    )
    small = torch.where(holds, q, 0.0)
    stays = (1 - small).log() + orders * ((1 - small).log() - (1 - grown * small).log())
    alpha = torch.logaddexp(stays, small.log() + per_query * orders)
    return torch.where(
        holds, torch.minimum(alpha, any_votes(per_query, orders)), any_votes(per_query, orders)
    )


def _least_epsilon(moments: Tensor, delta: float, simple: float) -> float:
    return min(float(((moments + math.log(1 / delta)) / ORDERS).min()), simple)


PRIVACY = ("none", "server", "client")


@dataclass(frozen=True, eq=False)
class FedKTReport(Report):
    """queries: public samples that were labelled;   consistent: share of (client, query) whose students agree

    With noise: epsilon_simple, epsilon (moments, at `delta`), and epsilon_measured, that of these very votes (not
    private itself; for privacy=server alone);   changed: share of the server's labels that its noise has changed
    """

    queries: int | None = None
    consistent: float | None = None
    delta: float | None = None
    epsilon_simple: float | None = None
    epsilon: float | None = None
    epsilon_measured: float | None = None
    changed: float | None = None


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
    privacy: str = knob("none", "Noise", options=PRIVACY)
    gamma: float = knob(0.5, "Inverse noise", low=1e-4, high=1e6, log=True)
    delta: float = knob(1e-5, "Failure δ", low=1e-12, high=0.1, log=True)
    queries: int = knob(0, "Queries", low=0)
    server_model: str = server_model_knob()

    report = FedKTReport

    def refuse(self, ctx: Context) -> None:
        most = 10_000 // ctx.clients_count
        demand(
            self.students <= most,
            f"fedkt.students is {self.students}, but 10,000 in all allow {most} here.",
        )

    def local_passes(self, recipe: Recipe, sizes: Sequence[float]) -> float:
        return float(recipe.epochs * self.students)

    @property
    def leaks(self) -> str:
        if self.privacy == "none":
            return self.info.leaks
        who = (
            "each client, to who sees the final network"
            if self.privacy == "server"
            else "each sample"
        )
        return f"{self.info.leaks}; ε for {who}"

    def run(self, ctx: Context) -> Steps[NetworkModel]:
        x = self._asked(ctx)
        # Clients: teachers on parts of their samples, their votes, and the students that learn these.
        cuttings = [own for k in range(ctx.clients_count) for own in self._parts(ctx, k)]
        teachers = [
            self._drawn(ctx, "teacher", i, k, j)
            for k, i, parts in cuttings
            for j in range(len(parts))
        ]
        starts = [copy_model(teacher) for teacher in teachers] if ctx.poison.of_models else teachers
        shards = [part for *_, parts in cuttings for part in parts]
        yield from report_progress("teachers", self._ticks(ctx, "teachers", teachers, shards))
        waiting, labels = iter(teachers), []
        for k, i, parts in cuttings:
            logits = torch.stack([in_chunks(next(waiting), x) for _ in parts])
            labels.append(self.label(logits, ctx.generator("fedkt", "client", k, i)))
        students = teachers
        if self.teachers > 1 or self.privacy == "client":  # else the one teacher is the student
            students = [self._drawn(ctx, "student", i, k) for k, i, _ in cuttings]
            starts = (
                [copy_model(student) for student in students] if ctx.poison.of_models else students
            )
            shards = [(x, y) for y in labels]
            yield from report_progress(
                "students", self._ticks(ctx, "students", students, shards, self.epochs)
            )
        ctx.check_finite(ClientModels(students))
        # Link: s students of each client.
        received = []
        for (k, _, _), start, student in zip(cuttings, starts, students, strict=True):
            received.append(
                ctx.link.up(k, ctx.state_to_send(k, model_state(start), student), phase="students")
            )
        with ctx.server():
            # Server: count, label, learn.
            uploaded = ClientModels(students).with_states(received)
            y, report = self.aggregate(
                ctx, uploaded.logits(x).unflatten(0, (ctx.clients_count, self.students))
            )
            final = ctx.build(
                ctx.server_architecture(self.server_model), ctx.generator("fedkt", "server")
            )
            ticks = self._ticks(ctx, "final", [final], [(x, y)], self.epochs)
            return (
                yield from report_progress(
                    "distillation", ticks, lambda: NetworkModel(final, report)
                )
            )

    # ------------------------------------------------------------------ client part
    def _asked(self, ctx: Context) -> Tensor:
        """The public samples that are labelled, `[T, ...]`: the same at clients and server, drawn once."""
        if not 0 < self.queries < len(ctx.public):
            return ctx.public
        rows = torch.randperm(len(ctx.public), generator=ctx.generator("fedkt", "queries"))[
            : self.queries
        ]
        return ctx.public[rows.to(ctx.device)]

    def _parts(self, ctx: Context, k: int) -> list[tuple[int, int, list[Shard]]]:
        """(k, i, parts) of each cutting i of client k's samples, into t parts (into fewer where it has fewer)."""
        x, y = ctx.private.train(k)
        cut = []
        for i in range(self.students):
            order = torch.randperm(len(x), generator=ctx.generator("fedkt", "parts", k, i)).to(
                x.device
            )
            if self.teachers == 1:
                order = order.sort().values
            parts: list[Shard] = [
                (x[rows], y[rows]) for rows in order.tensor_split(min(self.teachers, len(x)))
            ]
            cut.append((k, i, parts))
        return cut

    def label(self, logits: Tensor, stream: torch.Generator) -> Tensor:
        """What teachers' logits `[t, T, C]` vote for, `[T]`; with privacy=client, noise Lap(1/γ) is on the counts."""
        votes = F.one_hot(logits.argmax(-1), logits.shape[-1]).sum(0)
        if self.privacy == "client":
            return (votes + laplace(tuple(votes.shape), self.gamma, stream).to(logits)).argmax(1)
        return (votes + logits.softmax(-1).mean(0)).argmax(1)

    def _drawn(self, ctx: Context, what: str, *names: int) -> Network:
        """A network of the architecture of client `names[1]`, of its own draw."""
        return ctx.build(ctx.architectures[names[1]], ctx.generator("fedkt", what, *names))

    def _ticks(
        self, ctx: Context, what: str, models: list[Network], shards: list[Shard], epochs: int = 0
    ) -> Iterator[Tick]:
        """All of them at once, as a stack where that is faster; `epochs`: on public samples, 0: as the recipe says."""
        recipe = ctx.recipe
        if epochs:
            recipe = replace(
                recipe, epochs=epochs, augmentation="none"
            )  # the votes are on the samples as they are
        return train_clients(
            models, shards, recipe, seed=ctx.seed, backend=ctx.backend, stream=f"fedkt {what}"
        )

    # ------------------------------------------------------------------ server part
    def aggregate(self, ctx: Context, logits: Tensor) -> tuple[Tensor, FedKTReport]:
        """Labels `[T]` from the students' logits `[M, s, T, C]`, and what all votes cost."""
        named = logits.argmax(-1)
        agree = (named == named[:, :1]).all(1)  # [M, T]
        each = F.one_hot(named, logits.shape[-1])
        votes = (each * agree[:, None, :, None] if self.consistent else each).sum((0, 1))  # [T, C]
        report = FedKTReport(len(votes), float(agree.double().mean()))
        labels = plain = (votes + logits.softmax(-1).mean((0, 1))).argmax(1)
        if self.privacy == "none":
            return labels, report
        students, queries, cost = logits.shape[1], len(votes), 2 * self.gamma
        if self.privacy == "server":
            noise = laplace(tuple(votes.shape), self.gamma, ctx.generator("fedkt", "server noise"))
            labels, cost = (votes + noise.to(votes.device)).argmax(1), cost * students
            own = measured_epsilon(votes, self.gamma, cost, self.delta)
            report = replace(
                report, epsilon_measured=own, changed=float((labels != plain).double().mean())
            )
        else:
            queries *= students
        epsilon = moments_epsilon(cost, queries, self.delta)
        return labels, replace(
            report, epsilon=epsilon, epsilon_simple=cost * queries, delta=self.delta
        )
