"""FENS: keep all client models and learn how to combine them.

Guha et al., *Revisiting Ensembling in One-Shot Federated Learning*, NeurIPS 2024, Algorithm 1.

Phase 1, one shot. Client i trains alone and sends θ_i up once ("local models"). The server quantises every model to
`bits` bits, ŵ = s clip(round(w/s)) with s = max|w| / (2^(bits-1) - 1), and sends all M down to every client
("ensemble"). From here on the *quantised* models answer, in phase 2 and in predictions.
Phase 2, T tiny rounds ("aggregator"). On samples that they held out, the clients train π(x) = f_λ(π_1(x), …, π_M(x)): λ
down, K steps of SGD with η_l at each client, λ_i up, one server step (FedAdam in the experiments). In `parts`:
`aggregators` are the rules f, `phase2` the rounds, `server_optimizers` the step, `fens_model` what predicts.

Bytes of one client, q numbers in λ: 4d (initial model) + 4d (own model) + M d bits/8 (ensemble; numbers that are not
quantised, and scales, 4 each) + 2·4q·T. Averaging and weighted averaging need no ensemble at the clients and no rounds;
weighted averaging sends C counts up (int32), voting M·C·C.

Departures from the paper, and why:
- K local steps: the pseudo-code's loop from 0 to K makes K+1, but the table of settings says 1.
- Clients count by the samples they used, as in the public code; the pseudo-code's 1/|S_t| is client_weights=uniform.
- The network has biases; per-class weights start at 1/M, plain averaging (public code: start=xavier).
- Weights alone are quantised, a scale a tensor; the public code quantises activations too, calibrated on test data.
  Rules that leave the ensemble at the server use the quantised models as well, so that rules differ in the rule alone.
- Classroom preset: per-class weights, T = 50, η_s = 0.01. Beside a toy model 500 rounds of a network are not tiny.
- A client that held nothing out is in no S_t and gets no aggregator, though the ensemble. As in the paper's count, the
  last λ does not go down again. The loss and the tables that are shown are ours to watch and are not sent.

The paper's extensions: `distil` teaches one network on public images, at the server (KL at temperature 3, Adam 1e-3;
the paper gives no numbers): 85.7 where the ensemble has 87.4 (digits, M = 10, alpha = 0.1, seeds 0-2). `without`
forgets a client: phase 1 as it was, then ensemble and phase 2 without its model and samples. proxy="server" is the
labelled set at the server: λ is trained there, nothing goes down. It stands for data that the server has anyway; here
the held-out parts are sent for it (phase "labelled set"). Downsized clients are a narrower `model`: 20 of resnet8:28
weigh one resnet8:128.

Findings (digits, M = 10, alpha = 0.1, seeds 0-2, test accuracy): as many training samples, reused, beat the held-out
ones (90.8 against 87.4); FedAdam with 20 rounds has 93.9; at alpha = 1 class counts have 92.5, per-class weights 91.9.
With M = 50 the network's units die at the classroom's rates (10.3); T = 500, η_s = 0.001 repairs it (89-94, seeds 0-1).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import torch

from ..errors import RunError, UsageError
from ..training import Recipe
from .base import GlobalModel, Method, Progress, knob, register
from .context import Context
from .parts import aggregators, fens_phases, phase2
from .parts.aggregators import AGGREGATORS, TRAINED
from .parts.fens_model import Experts, FensModel
from .parts.fens_phases import PROXIES
from .parts.influence import contribution, influence
from .parts.server_optimizers import SERVER_OPTIMIZERS

FRAMES = 20  # about so many snapshots over the rounds


@register(
    "fens",
    title="FENS",
    paper="Guha et al., NeurIPS 2024",
    rounds="one-shot, then T tiny rounds",
    traffic="2 S_θ + M S_θ bits/32 + 2 S_λ T",
    extra="labelled samples that each client held out",
    leaks="each client's model, to every other client",
)
@dataclass(frozen=True)
class Fens(Method):
    """Keep all client models and train, federatedly, a small function that combines their logits."""

    aggregator: str = knob(
        "per_class", "Aggregator", "How logits are combined.", symbol="f_λ", options=AGGREGATORS, paper="nn"
    )
    k: int = knob(40, "Hidden units", "Width of the network aggregator (nn).", symbol="k", low=1, high=1000)
    rounds: int = knob(
        50, "Rounds", "How often λ travels down and up.", symbol="T", low=1, high=10_000, log=True, paper=500
    )
    local_steps: int = knob(1, "Local steps", "SGD steps of a client in a round.", symbol="K", low=1, high=100)
    batch: int = knob(128, "Batch", "Held-out samples in one local step.", low=1, high=100_000, log=True)
    eta_l: float = knob(1.0, "Client rate", "Rate of the local steps.", symbol="η_l", low=1e-4, high=100, log=True)
    eta_s: float = knob(
        0.01, "Server rate", "Not used by FedAvg.", symbol="η_s", low=1e-5, high=10, log=True, paper=0.001
    )
    server: str = knob("fedadam", "Server step", "How the server moves λ.", options=SERVER_OPTIMIZERS)
    client_weights: str = knob(
        "samples", "Client weights", "By samples used, or all alike.", symbol="w_i", options=phase2.CLIENT_WEIGHTS
    )
    start: str = knob("average", "Start", "Per-class weights begin at 1/M, or drawn.", options=("average", "xavier"))
    bits: int = knob(8, "Bits", "Bits a weight of the ensemble, 2 to 8; 32: not quantised.", low=2, high=32)
    proxy: str = knob(
        "held-out", "Trained on", "Held-out or training samples (all, or as many); or the server's.", options=PROXIES
    )
    skip_own: bool = knob(False, "Leave out own model", "Send a client only the models of the others.")
    without: int = knob(-1, "Forget client", "Leave its model and samples out of phase 2; -1: nobody.", low=-1)
    distil: bool = knob(False, "Distil", "Teach one network to answer as the ensemble does, on public images.")
    distil_steps: int = knob(800, "Distillation steps", "Batches of 64.", low=1, high=1_000_000, log=True, paper=80_000)

    paper_recipe = Recipe(
        epochs=500, batch_size=16, lr=0.0025, momentum=0, weight_decay=0, schedule="cosine", lr_min=0.001
    )
    paper_model = "resnet8:128"

    @property
    def uses_proxy(self) -> bool:
        """Whether the clients need the ensemble, to try it on samples of their own."""
        return self.aggregator in (*TRAINED, "voting")

    def validate(self, ctx: Context) -> None:
        super().validate(ctx)
        if 8 < self.bits < 32:
            raise UsageError(f"fens.bits is {self.bits}, but it must be 2 to 8, or 32 for no quantisation.")
        if self.uses_proxy and self.proxy != "reused" and not sum(ctx.private.sizes("held_out")):
            raise UsageError(
                f"FENS needs held-out samples for its aggregator {self.aggregator!r}, but no client has any; hold out "
                "a larger part, use fewer clients, or set proxy=reused."
            )
        if self.without >= ctx.clients_count or (self.without >= 0 and ctx.clients_count == 1):
            raise UsageError(
                f"fens.without is {self.without}, but it must be a client from 0 to {ctx.clients_count - 1} "
                "with others left, or -1 to forget nobody."
            )
        if self.distil and not ctx.has("public"):
            raise UsageError("FENS with distil=true needs unlabelled public images, which this data set does not have.")

    def run(self, ctx: Context) -> Generator[Progress, None, GlobalModel]:
        self.validate(ctx)
        everyone = range(ctx.clients_count)
        # Phase 1. Clients: train alone, upload once. Server: quantise.
        clients = yield from ctx.local_training()
        received = [ctx.link.up(k, clients.state(k), phase="local models") for k in everyone]
        members = [k for k in everyone if k != self.without]
        with ctx.server():
            packed, experts = fens_phases.quantised_experts(clients, received, self.bits, members)
        # Phase 2, where the rule has one.
        federated = self.uses_proxy and self.proxy != "server"
        if federated:
            fens_phases.send_ensemble(ctx, members, packed, self.skip_own)
        fens = yield from self._combined(ctx, experts, members)
        down = len(members) - self.skip_own if federated else 0
        rounds = self.rounds if federated and self.aggregator in TRAINED else 0
        fens.numbers["bytes"] = fens_phases.byte_numbers(ctx, fens, bits=self.bits, ensembles=down, rounds=rounds)
        if not self.distil:
            return fens
        with ctx.server():
            return (yield from fens_phases.distilled(ctx, fens, self.distil_steps))

    def _combined(self, ctx: Context, experts: Experts, members: list[int]) -> Generator:
        """The ensemble with its rule: fixed, counted or trained."""
        if not self.uses_proxy:
            return FensModel(experts, fens_phases.fixed_rule(ctx, self.aggregator, members))
        # Clients (or, from what they send, the server): all models' logits on the proxy samples, once and for all.
        sets = [fens_phases.proxy_samples(ctx, k, self.proxy) for k in members]
        central = self.proxy == "server"
        if central:
            sent = [ctx.link.up(k, own, phase="labelled set") for k, own in zip(members, sets, strict=True)]
            sets = [tuple(torch.cat(part) for part in zip(*sent, strict=True))]
        gated = self.aggregator == "moe"
        proxies = [fens_phases.as_proxy(experts, x, y, gated) for x, y in sets]
        if self.aggregator == "voting":
            return FensModel(experts, fens_phases.voting(ctx, proxies, None if central else members))
        return (yield from self._phase_2(ctx, experts, proxies, None if central else members))

    def _phase_2(
        self, ctx: Context, experts: Experts, proxies: list[phase2.Proxy], members: list[int] | None
    ) -> Generator:
        """T rounds of the aggregator, between `members`, or (None) at the server alone."""
        shape = {"k": self.k, "input_shape": ctx.input_shape, "start": self.start}
        stream = ctx.generator("fens", "aggregator")
        rule = aggregators.trained_aggregator(
            self.aggregator, len(experts.clients), ctx.classes, **shape, generator=stream
        ).to(ctx.device, ctx.dtype)
        losses, frames = [], {0: influence(rule, proxies)}
        yield Progress("aggregator", 0, self.rounds, model=FensModel.of_copy(experts, rule, frames=frames))
        plan = phase2.Plan(
            self.rounds, self.local_steps, self.batch, self.eta_l, self.eta_s, self.server, self.client_weights
        )
        owners = ["server"] if members is None else members
        rounds = phase2.train(
            rule,
            proxies,
            plan,
            lambda i: ctx.generator("fens", "batches", owners[i]),
            link=None if members is None else ctx.link,
            server=ctx.server,
            ids=members,
        )
        for done, loss in enumerate(rounds, 1):
            losses.append(loss)
            if done % max(1, self.rounds // FRAMES) and done < self.rounds:
                yield Progress("aggregator", done, self.rounds)
                continue
            if not all(bool(values.isfinite().all()) for values in (loss, *rule.parameters())):
                raise RunError(
                    f"Training the aggregator diverged with eta_l={self.eta_l:g}, eta_s={self.eta_s:g}: its numbers "
                    "are no longer finite; use smaller rates."
                )
            frames[done] = influence(rule, proxies)
            now = FensModel.of_copy(experts, rule, frames={done: frames[done]})
            yield Progress("aggregator", done, self.rounds, {"loss": float(loss)}, model=now)
        told = {"proxy_samples": sum(len(proxy.labels) for proxy in proxies)}
        added = contribution(rule, proxies)
        return FensModel(experts, rule, losses=losses, frames=frames, contribution=added, numbers=told)
