"""Fed-ET: small models of several architectures teach a larger one at the server, on unlabelled public data.

Cho et al., *Heterogeneous Ensemble Knowledge Transfer for Training Large Models in Federated Learning*, IJCAI 2022.

Round t of T: the server draws m of the M clients in proportion to n_k; each gets its architecture's small model.
1. Clients take J SGD steps of batch b and send the small model back. The server overwrites the head of its large model
   by the mean of all m heads (`Represented`: every network ends in a head of one shape).
2. The m models label the public samples, each trusted sample by sample by the variance of its softmax output; those
   who disagree are a second, soft target of weight λ_div (`consensus.py`). The large model takes J_s steps on both.
3. Small models of one architecture are averaged, unweighted; each gets the head of the large model.
A chosen client's round costs twice the numbers of its model. The large model, public samples and labels never travel.

rounds=1 is the one-shot form (FENS compares with it; the classroom's): all clients train to the end and upload
once, then come all server steps. They are the clients that all methods share, and have no common head (transfer=auto).

What the paper leaves open and how this departs from it stand in the package's docstring.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import torch
from torch import Tensor, nn

from ...models import MODELS, Network, load_state, model_state, parameter_count
from ...models.build import default_width
from ...models.plain import MLP_SMALL_INPUT
from ...training import ClientModels, Recipe, Tick, train_clients
from ...training.distill import Learner
from ..base import ClientsAlone, Context, Method, Progress, Steps, knob, register
from ..context import check_finite
from ..parts.frozen_ensemble import FrozenEnsemble
from ..parts.images import SOURCES, check_source, half_the_classes, public_samples
from ..results import has_curve_point
from . import consensus
from .consensus import Consensus, State
from .model import FedETReport, LargeModel, PastRound, Student, with_room

# -------------------------------------------------------------------------------------------------------- participation
# Who holds which architecture, how large a network the server can afford, who takes part in a round and does what.


def chosen_clients(sizes: Sequence[int], m: int, stream: torch.Generator) -> list[int]:
    """m of the clients in ascending order, drawn without replacement in proportion to their `sizes`.

    All of them, without a draw, for m = 0 or m at least as many as there are.
    """
    if m == 0 or m >= len(sizes):
        return list(range(len(sizes)))
    weights = torch.tensor(sizes, dtype=torch.float64)
    return sorted(torch.multinomial(weights, m, generator=stream).tolist())


def cycled(x: Tensor, y: Tensor, count: int, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """`count` samples of a shard `(x [n, ...], y [n])`, in as many shuffled passes over it as that takes.

    With count = J b, one epoch in batches of b is J steps, however few samples a client has.
    """
    passes = [torch.randperm(len(y), generator=stream) for _ in range(-(-count // len(y)))]
    rows = torch.cat(passes)[:count].to(y.device)
    return x[rows], y[rows]


def local_training(
    ctx: Context, t: int, chosen: Sequence[int], models: Sequence[Network], steps: int
) -> Iterator[Tick]:
    """Round t at the `chosen` clients, in place: `steps` of SGD each, or all epochs of the recipe (0). RunError if the
    training of one diverges."""
    shards, recipe = [ctx.private.train(k) for k in chosen], ctx.recipe
    if steps:
        recipe, count = replace(recipe, epochs=1), steps * recipe.batch_size
        streams = [ctx.generator("fedet", "local", t, k) for k in chosen]
        shards = [cycled(*own, count, stream) for own, stream in zip(shards, streams, strict=True)]
    stream = f"fedet batches {t}"
    yield from train_clients(
        models, shards, recipe, seed=ctx.seed, backend=ctx.backend, ids=chosen, stream=stream
    )
    for k, model in zip(chosen, models, strict=True):
        check_finite(model.parameters(), f"Local training of client {k}", f"lr={recipe.lr:g}")


Architecture = tuple  # (name, input_shape, classes, width)

POOLS = ("dealt", "drawn")


def client_architectures(ctx: Context, pool: str) -> list[Architecture]:
    """One a client. "dealt": the run's, in turn; "drawn": for each client one of the run's, uniformly at random.

    Shards are drawn at random too, so dealing in turn is as random as drawing, but for the even numbers.
    """
    if pool == "dealt":
        return list(ctx.architectures)
    kinds = list(dict.fromkeys(ctx.architectures))
    drawn = torch.randint(len(kinds), (ctx.clients_count,), generator=ctx.generator("pool", pool))
    return [kinds[i] for i in drawn.tolist()]


def larger(
    ctx: Context, kinds: list[Architecture], name: str = "auto", width: int = 0
) -> Architecture:
    """The server's architecture: `name` with `width`, or what "auto" and 0 stand for.

    "auto": the kind of the clients' largest model. Width 0: the one in `name` ("cnn:12"), or else twice that model's
    (of another kind: twice the usual one), four times for the perceptron of small inputs.
    """
    own = list(dict.fromkeys(kinds))
    sizes = [parameter_count(ctx.build(kind, ctx.generator("pool", "sizes"))) for kind in own]
    largest = own[sizes.index(max(sizes))]
    name, _, own_width = (largest[0] if name == "auto" else name).partition(":")
    width = width or int(own_width or 0)
    if not width:
        usual = (
            largest[3]
            if largest[0] == name and largest[3]
            else default_width(name, ctx.input_shape)
        )
        times = 4 if name == "mlp" and prod(ctx.input_shape) <= MLP_SMALL_INPUT else 2
        width = min(MODELS[name].widths[1], times * usual)
    return name, tuple(ctx.input_shape), ctx.classes, width


def spelled(kind: Architecture) -> str:
    """An architecture as people write it: `mlp`, `mlp:16`."""
    return kind[0] if kind[3] is None else f"{kind[0]}:{kind[3]}"


VOTES = 256  # public samples that the teachers label before Stop can act
TRANSFERS = {
    "auto": None,
    "both": (True, True),
    "up": (True, False),
    "down": (False, True),
    "none": (False, False),
}


@register(
    "fedet",
    title="Fed-ET",
    group="Distil, with public data",
    paper="Cho et al., IJCAI 2022",
    rounds="one-shot, or T rounds with m clients",
    traffic="2 S_θk (T rounds: each time it is chosen)",
    needs=["public"],
    extra="unlabelled public samples, at the server alone",
    leaks="each chosen client's model, every round; where clients are drawn, all sample counts",
)
class FedET(Method):
    """Small client models label public data. Each counts by how sure it is. A larger model learns from the labels."""

    rounds: int = knob(1, "Rounds", symbol="T", low=1, high=10_000)
    per_round: int = knob(0, "Clients per round", symbol="m", low=0, high=10_000)
    local_steps: int = knob(60, "Local steps", symbol="J", low=1, high=10_000)
    diversity: float = knob(0.05, "Diversity", symbol="λ_div", low=0, high=10)
    weighting: str = knob("softmax", "Weights", symbol="ω_k", options=consensus.WEIGHTINGS)
    temperature: float = knob(3.0, "Temperature", low=0.01, high=1000, log=True)
    normalise: str = knob("all", "Dissent over", options=consensus.NORMALISERS)
    transfer: str = knob("auto", "Heads", options=TRANSFERS)
    head: str = knob("mlp", "Common head", options=consensus.HEADS)
    width: int = knob(32, "Head's width", symbol="r", low=1, high=4096)
    pool: str = knob("dealt", "Small models", options=POOLS)
    server: str = knob("auto", "Server's model", model=True)
    server_width: int = knob(0, "Server's width", low=0, high=4096)
    server_steps: int = knob(60, "Server steps", symbol="J_s", low=1, high=10**5)
    one_shot_steps: int = knob(600, "Steps in one shot", low=1, high=10**6, log=True)
    server_lr: float = knob(0.05, "Server rate", symbol="η_s", low=1e-5, high=10, log=True)
    server_momentum: float = knob(0.9, "Server momentum", low=0, high=0.999)
    server_batch: int = knob(32, "Public batch", symbol="b_s", low=1, high=10_000)
    public: str = knob("held-out", "Public data", symbol="P", options=SOURCES)
    public_size: int = knob(0, "Public samples", symbol="|P|", low=0, high=1_000_000)
    transform: bool = knob(False, "Transform")

    report = FedETReport

    def validate(self, ctx: Context) -> None:
        check_source(ctx, self.public, self.transform, self.info.title)

    @property
    def up_down(self) -> tuple[bool, bool]:
        """Whether heads go up to the large model, and down from it."""
        return TRANSFERS[self.transfer] or ((True, True) if self.rounds > 1 else (False, False))

    def local_passes(self, recipe: Recipe, sizes: Sequence[float]) -> float:
        if self.rounds == 1:
            return float(recipe.epochs)
        chosen = min(self.per_round or len(sizes), len(sizes))
        return self.rounds * chosen * self.local_steps * recipe.batch_size / sum(sizes)

    def run(self, ctx: Context) -> Steps[LargeModel]:
        self.validate(ctx)
        up, down = self.up_down
        kinds = client_architectures(ctx, self.pool)
        large = larger(ctx, kinds, self.server, self.server_width)
        server = self._network(ctx, large, "server")
        small = ClientModels([self._network(ctx, kind, "small") for kind in dict.fromkeys(kinds)])
        table = {kind: small.state(i) for i, kind in enumerate(dict.fromkeys(kinds))}
        x = public_samples(ctx, self.public, self.public_size, self.transform)
        report = FedETReport(
            [spelled(kind) for kind in kinds], spelled(large), small_parameters=small.parameters
        )
        losses, past = list[Tensor](), list[PastRound]()
        for t in range(self.rounds):
            # Clients: train, send the small model.
            chosen = chosen_clients(
                ctx.sizes, self.per_round * (self.rounds > 1), ctx.generator("fedet", "chosen", t)
            )
            clients = yield from self._clients(ctx, t, chosen, kinds, table)
            with ctx.server():
                # Step 1: heads up.
                states = [clients.state(j) for j in range(len(chosen))]
                if up:
                    load_state(server, model_state(server) | consensus.mean_head(states))
                    if has_curve_point(t + 1, self.rounds):
                        yield self._progress(
                            t, self.local_steps, Student(server, report), "heads averaged"
                        )
                # Step 2: the ensemble loss on the public samples.
                teachers, answers = FrozenEnsemble(clients, backend=ctx.backend), []
                for part in x.split(VOTES):
                    answers.append(teachers.logits_in_chunks(part))
                    yield self._progress(t, self.local_steps)
                logits = torch.cat(answers, 1)
                if self.public == "other-mix" and t == 0:
                    rows = half_the_classes(self.votes(logits).labels)
                    x, logits = x[rows], logits[:, rows]
                votes = self.votes(logits)
                ways = (
                    1 if self._is_shared(ctx, kinds) and ctx.init == "different" else 2
                )  # up; down and up
                report = report.with_votes(chosen, clients, votes, logits, x, ways=ways)
                losses.append((yield from self._distil(ctx, t, server, x, votes, report)))
                # Step 3: average by architecture, heads down.
                means = consensus.group_means(table, states, [kinds[k] for k in chosen])
                head = consensus.head_of(model_state(server)) if down else {}
                table = {kind: state | head for kind, state in means.items()}
            if has_curve_point(t + 1, self.rounds):
                last = PastRound(
                    t + 1, clients, *(small.with_states([*of.values()]) for of in (means, table))
                )
                past = with_room(past, last)
        return LargeModel(
            server, replace(report, loss=torch.stack(losses).cpu().numpy()), last, past, self.votes
        )

    def votes(self, logits: Tensor) -> Consensus:
        """What the server makes of clients' `logits [m, B, C]`."""
        return consensus.consensus(logits, self.weighting, self.temperature, self.normalise)

    def _is_shared(self, ctx: Context, kinds: list[tuple]) -> bool:
        """Whether clients train once and as they are, which they do for all one-shot methods together."""
        return self.rounds == 1 and not any(self.up_down) and kinds == ctx.architectures

    def _clients(
        self, ctx: Context, t: int, chosen: list[int], kinds: list[tuple], table: dict[tuple, State]
    ) -> Steps[ClientModels]:
        """The chosen clients' models after their local training, as the server receives them."""
        if self._is_shared(ctx, kinds):
            return (yield from ctx.one_upload())
        models = [self._network(ctx, kinds[k], "small") for k in chosen]
        for k, model in zip(chosen, models, strict=True):
            load_state(model, ctx.link.down(k, table[kinds[k]], phase="small models"))
        for tick in local_training(ctx, t, chosen, models, self.local_steps * (self.rounds > 1)):
            if self.rounds == 1:
                snapshot = ClientsAlone(ClientModels(models)) if tick.fresh else None
                yield Progress("local training", tick.done, tick.total, model=snapshot)
            else:
                yield self._progress(t, self.local_steps * tick.done // tick.total)
        sent = (
            ctx.state_to_send(k, table[kinds[k]], model)
            for k, model in zip(chosen, models, strict=True)
        )
        received = [
            ctx.link.up(k, state, phase="small models")
            for k, state in zip(chosen, sent, strict=True)
        ]
        return ClientModels(models).with_states(received)

    def _distil(
        self,
        ctx: Context,
        t: int,
        server: nn.Module,
        x: Tensor,
        votes: Consensus,
        report: FedETReport,
    ) -> Steps[Tensor]:
        """J_s steps on ℓ + λ_div KL, in shuffled passes over the public samples `x`; returns the losses `[J_s]`."""
        recipe = Recipe(
            batch_size=self.server_batch,
            lr=self.server_lr,
            momentum=self.server_momentum,
            weight_decay=0,
        )
        labels, against, losses = votes.labels, votes.diversity, list[Tensor]()
        learner = Learner(
            server,
            recipe,
            lambda at, z: consensus.ensemble_loss(z, labels[at], against[at], self.diversity),
        )
        rows, stream = (
            torch.arange(len(x), device=x.device),
            ctx.generator("fedet", "public batches", t),
        )
        steps = self.server_steps if self.rounds > 1 else self.one_shot_steps
        while len(losses) < steps:
            for value in learner.one_pass(x, rows, stream, epoch=0, steps=steps - len(losses)):
                losses.append(value)
                point = has_curve_point(t + 1, self.rounds) and has_curve_point(
                    len(losses), steps, 20 if self.rounds == 1 else 1
                )
                yield self._progress(
                    t, self.local_steps + len(losses), Student(server, report) if point else None
                )
        check_finite(
            server.parameters(), "Training the server's model", f"server_lr={self.server_lr:g}"
        )
        return torch.stack(losses)

    def _progress(
        self, t: int, step: int, model: Student | None = None, phase: str = "rounds"
    ) -> Progress:
        """Where the run stands after `step` of round t's J + J_s steps; in one shot, after those of the server."""
        metrics: dict[str, float] = {}
        if (
            model is not None and phase == "rounds"
        ):  # the last round in two numbers, for the live curve
            metrics = {
                name: getattr(model.report, name) for name in ("dissent", "effective_clients")
            }
        if self.rounds == 1:
            return Progress(
                "distillation", step - self.local_steps, self.one_shot_steps, metrics, model
            )
        each = self.local_steps + self.server_steps
        return Progress(
            phase, t * each + step, self.rounds * each, {"round": t + 1, **metrics}, model
        )

    def _network(self, ctx: Context, kind: tuple, role: str) -> Network:
        """A fresh network of that architecture, with a common head if heads could travel."""
        stream = ctx.generator("fedet", role, kind[0], kind[3])
        network = ctx.build(kind, stream)
        common = self.rounds > 1 or any(self.up_down)
        return (
            consensus.Represented(network, self.width, self.head, generator=stream)
            if common
            else network
        )
