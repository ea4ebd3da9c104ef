"""FENS: keep all client models and learn how to combine them.

Allouah et al., *Revisiting Ensembling in One-Shot Federated Learning*, NeurIPS 2024, Algorithm 1.

Phase 1, one shot. Client k trains alone and sends θ_k up once ("local models"). The server quantises every model to
`bits` bits, ŵ = s clip(round(w/s)) with s = max|w| / (2^(bits-1) - 1), and sends all M down to every client
("ensemble"). From here on the *quantised* models answer, in phase 2 and in predictions.
Phase 2, T tiny rounds ("aggregator"). On samples that they held out, the clients train f(x) = f_λ(f_1(x), …, f_M(x)): λ
down, J steps of SGD with η_l at each client, λ up, one server step (FedAdam in the experiments). Rules f that are not
trained need no rounds.

Bytes of one client, q numbers in λ: 4d (initial model) + 4d (own model) + M d bits/8 (ensemble; numbers that are not
quantised, and scales, 4 each) + 2·4q·T (with `per_round` the rounds that it takes part in); quantised activations: 8 a
layer, with its own model and with each of the ensemble. Averaging and weighted averaging need no ensemble at the
clients and no rounds; weighted averaging sends C counts up (int32), voting M·C·C.

Beside this file: `aggregators.py` has the trained rules f_λ, `training.py` the samples that λ is trained on, a step of
SGD and the rules that are counted, `model.py` what predicts, what is left behind and one client's bytes.

Departures from the paper, and why:
- J local steps (the paper's K): the pseudo-code's loop from 0 to K makes K+1, but the table of settings says 1.
- Clients count by the samples they used, as in the public code; the pseudo-code's 1/|S_t| is client_weights=uniform.
- The network has biases; per-class weights start at 1/M, plain averaging (public code: start=xavier).
- FedAdam's β₁ = 0.9, β₂ = 0.99 and κ = 0.001 (knobs) are the public code's; the paper gives none. m and v start at 0.
- `per_round` clients take part in a round of phase 2, all of them by default, as in the paper's experiments.
- Weights are quantised, a scale a tensor; activations only with `activation_bits`, by ranges that each client measures
  on what it held out (the public code: on test data).
- Rules that leave the ensemble at the server use the quantised models as well, so that rules differ in the rule alone.
- Classroom preset: per-class weights, T = 50, η_s = 0.01. Beside a toy model 500 rounds of a network are not tiny.
- A client that held nothing out is in no S_t and gets no aggregator, though the ensemble. As in the paper's count, the
  last λ does not go down again. The loss and the tables that are shown are ours to watch and are not sent.

The paper's extensions: `distil` teaches one network on public images, at the server (KL at temperature 3, Adam 1e-3;
the paper gives no numbers, so these, and the 800 steps, are ours). The student has 86 %, FENS 88 (digits, M = 10,
alpha = 0.1, seeds 0-9: 2 ± 1 points less, clear). `without` forgets a client: phase 1 as it was, then ensemble and
phase 2 without its model and samples. proxy="server" is the labelled set at the server: λ is trained there, nothing
goes down. It stands for data that the server has anyway; here the held-out parts are sent for it (phase "labelled
set").
answers="probabilities" takes the softmax of each answer first: logits have no limit, so that a liar's may be as large
as the rule accepts. With `assumed` = f the rule is trained on each sample once more, with f lying clients
(`parts/byzantine.py`), and aggregator="deepset" trims f answers at each end (Dhasade et al., ICLR 2026; sizes, rates:
validation images). Downsized
clients are a narrower `model`: 20 of resnet8:28 weigh one resnet8:128.

Findings (digits, M = 10, alpha = 0.1, seeds 0-9, percent; `course/fens/figures.toml`): held-out samples 88, as
many training samples used again 89; FedAdam with 20 rounds 95; class counts 51. At alpha = 1 class counts have 93,
per-class weights 92.
With M = 50 the network's units die on most seeds at the classroom's rates (17 ± 8 %). T = 500 and η_s = 0.001
repair it (89 ± 2 %).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Literal, cast

import torch
from torch import Tensor

from ...comm import Link
from ...errors import UsageError
from ...methods.run_outputs import SentenceOnPrivacy
from ...tensor_types import ScalarLoss
from ..base import ClientWeighting, Context, GlobalModel, Method, Steps, knob, register
from ..parts import averages
from ..parts.byzantine import choose_lie_logit
from ..traffic import FLOAT, FederationSizes, RunBytesUpPlusDown
from . import training
from .aggregators import (
    AGGREGATORS,
    ANSWERS,
    PHASE,
    TRAINED,
    Aggregation,
    Aggregator,
    AnswerKind,
    ProbabilityAggregator,
    TrainableAggregatorName,
    make_trainable_aggregator,
)
from .model import (
    FensByteArguments,
    FensModel,
    FensReport,
    NetworkSize,
    compare_busiest_client_bytes_with_formula,
    count_fens_bytes_of_one_client,
    distil_fens_into_student,
    measure_layer_input_ranges_on_client_samples,
    quantise_experts,
    upload_layer_input_ranges,
)
from .training import ProxyOwner, ProxySamples


@register(
    "fens",
    title="FENS",
    group="Keep an ensemble",
    paper="Allouah et al., NeurIPS 2024",
    rounds="one-shot, then T tiny rounds",
    traffic="2 S_θ + M S_θ bits/32 + 2 S_λ T",
    extra="labelled samples that each client held out",
    back="all networks, then weights in T tiny rounds",
    leaks="each client's model, to every other client (proxy=server: its held-out samples, to the server)",
)
class Fens(Method):
    """Keep all client models. The clients together train a small function that combines their logits."""

    aggregator: Aggregation = knob("per_class", "Aggregator", symbol="f_λ", options=AGGREGATORS)
    k: int = knob(40, "Hidden units", symbol="r", low=1, high=1000)
    rounds: int = knob(50, "Rounds", symbol="T", low=1, high=10_000, log=True)
    local_steps: int = knob(1, "Local steps", symbol="J", low=1, high=100)
    batch: int = knob(128, "Batch", low=1, high=100_000, log=True)
    eta_l: float = knob(1.0, "Client rate", symbol="η_l", low=1e-4, high=100, log=True)
    eta_s: float = knob(0.01, "Server rate", symbol="η_s", low=1e-5, high=10, log=True)
    server: averages.FedAvgFedAdamOrFedYogi = knob(
        "fedadam", "Server step", options=averages.SERVER_OPTIMIZERS
    )
    beta1: float = knob(0.9, "β₁", low=0, high=0.9999)
    beta2: float = knob(0.99, "β₂", low=0, high=0.99999)
    tau: float = knob(1e-3, "Floor", symbol="κ", low=1e-8, high=1, log=True)
    per_round: int = knob(0, "Clients per round", symbol="m", low=0, high=10_000)
    client_weights: ClientWeighting = knob(
        "samples", "Client weights", symbol="w_k", options=training.CLIENT_WEIGHTS
    )
    start: Literal["average", "xavier"] = knob("average", "Start", options=("average", "xavier"))
    bits: int = knob(8, "Bits", low=2, high=32)
    activation_bits: int = knob(32, "Activation bits", low=2, high=32)
    proxy: training.ProxySource = knob("held-out", "Trained on", options=training.PROXIES)
    without: int = knob(-1, "Forget client", low=-1)
    answers: AnswerKind = knob("logits", "Answers", options=ANSWERS)
    assumed: int = knob(0, "Liars assumed", symbol="f", low=0, high=1000)
    distil: bool = knob(False, "Distil")
    distil_steps: int = knob(800, "Distillation steps", low=1, high=1_000_000, log=True)

    report = FensReport
    holds_out = True
    asks_clients = True

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        terms = self.make_byte_formula_arguments(sizes.clients, sizes.classes, sizes.input_shape)
        d = sizes.state_bytes // FLOAT
        size = NetworkSize(d, plain=d - sizes.coded_numbers, tensors=sizes.coded_tensors)
        one_client = count_fens_bytes_of_one_client(size, **terms)
        both_ways = sizes.models_down + sizes.models_up
        total = both_ways + sizes.clients * (one_client - 2 * sizes.state_bytes)
        is_exact = (
            self.aggregator == "per_class"
            and self.bits <= 8
            and self.activation_bits > 31
            and self.proxy == "held-out"
            and self.without < 0
            and not self.per_round
            and not self.distil
        )
        return RunBytesUpPlusDown(total, is_exact)

    def refuse(self, ctx: Context) -> None:
        for name in ("bits", "activation_bits"):
            bits = getattr(self, name)
            if 8 < bits < 32:
                raise UsageError(
                    f"fens.{name} is {bits}, but it must be 2 to 8, or 32 for no quantisation."
                )
        needs_held_out = self.uses_proxy and self.proxy != "reused"
        if needs_held_out and not any(ctx.private.sizes("held_out")):
            raise UsageError(
                "FENS needs held-out samples, but no client has any; hold out more, or set"
                " proxy=reused."
            )
        members = ctx.clients_count
        if self.without >= 0:
            members -= 1
        if self.aggregator == "deepset":
            averages.check_average_is_possible("trimmed", self.assumed, members, self.info.title)
        if self.assumed >= members:
            raise UsageError(
                f"fens.assumed is {self.assumed}, but at least one of the {members} clients must be"
                " honest."
            )
        last = ctx.clients_count - 1
        if self.without > last or (self.without >= 0 and last == 0):
            raise UsageError(
                f"fens.without is {self.without}, but must be a client, 0 to {last}, with others"
                " left, or -1."
            )
        if self.distil and not ctx.has("public"):
            raise UsageError(
                f"FENS with distil=true needs public {ctx.kind}, but there are none; set public=0.1."
            )
        if self.distil and ctx.poison.changes_answers:
            raise UsageError(
                "FENS with distil=true asks no client for predictions, so none can lie; set"
                " distil=false."
            )

    @property
    def uses_proxy(self) -> bool:
        """True if λ comes from samples: it is trained, or counted from votes."""
        return self.aggregator in (*TRAINED, "voting")

    @property
    def is_federated(self) -> bool:
        """True if the clients train or count λ, for which they need the ensemble."""
        return self.uses_proxy and self.proxy != "server"

    @property
    def leaks(self) -> SentenceOnPrivacy:
        if self.is_federated:
            return "each client's model, to every other client"
        if self.uses_proxy:
            return "each client's model and its held-out samples, to the server"
        if self.aggregator == "weighted":
            return "each client's model and label counts"
        return "each client's model"

    def make_byte_formula_arguments(
        self, client_count: int, class_count: int, input_shape: Sequence[int]
    ) -> FensByteArguments:
        """The arguments of `count_fens_bytes_of_one_client` besides the size of the client's network."""
        members = client_count
        if 0 <= self.without < client_count:
            members -= 1
        aggregator_parameters = 0
        rounds = 0
        if self.aggregator in TRAINED:
            aggregator = self.make_initial_aggregator(members, class_count, input_shape)
            aggregator_parameters = aggregator.trained_parameter_count
            if self.is_federated:
                taking_part = min(self.per_round or members, members) / members
                rounds = round(self.rounds * taking_part)
        receivers = members if self.is_federated else 0
        return FensByteArguments(
            client_count=receivers,
            aggregator_parameters=aggregator_parameters,
            rounds=rounds,
            bits=self.bits,
        )

    def make_initial_aggregator(
        self,
        client_count: int,
        class_count: int,
        input_shape: Sequence[int],
        stream: torch.Generator | None = None,
    ) -> Aggregator:
        """The f_λ that will be trained, at its initial values."""
        shape = tuple(input_shape)
        rule = make_trainable_aggregator(
            cast(TrainableAggregatorName, self.aggregator),
            client_count,
            class_count,
            self.k,
            shape,
            self.start,
            stream,
            self.assumed,
        )
        return self.wrap_aggregator_with_softmax_if_chosen(rule)

    def wrap_aggregator_with_softmax_if_chosen(self, aggregator: Aggregator) -> Aggregator:
        """The rule itself, or, with answers="probabilities", one that first takes the softmax of each answer."""
        if self.answers == "probabilities" and not aggregator.reads_probabilities:
            return ProbabilityAggregator(aggregator)
        return aggregator

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        """Algorithm 1; its phase 2 is `train_aggregator_in_place`."""
        self.validate(ctx)
        members = [k for k in range(ctx.clients_count) if k != self.without]
        # Phase 1. Clients: train alone. Link: each model up, once. Server: quantise. Link: all of them down.
        uploaded = yield from ctx.one_upload()
        ranges: list[Tensor] = []
        if self.activation_bits <= 8:
            client_ranges = [
                measure_layer_input_ranges_on_client_samples(ctx, uploaded.module(k), k)
                for k in members
            ]
            ranges = upload_layer_input_ranges(ctx, client_ranges, members)
        with ctx.server():
            packed, experts = quantise_experts(
                uploaded, self.bits, members, ranges, self.activation_bits
            )
        if self.is_federated:
            ctx.link.broadcast(packed, phase="ensemble", clients=members)
        # Phase 2. Clients: all models' logits on own samples, once and for all; then T tiny rounds.
        name = self.aggregator
        if name == "averaging" or name == "weighted" or name == "voting":
            rule = training.make_untrained_aggregator(ctx, name, experts, self.proxy)
            fens = FensModel(experts, self.wrap_aggregator_with_softmax_if_chosen(rule))
        else:
            rule = self.make_initial_aggregator(
                len(members), ctx.classes, ctx.input_shape, ctx.generator("fens", "aggregator")
            )
            lie = choose_lie_logit(ctx.poison.logit, rule.reads_probabilities)
            proxies = training.compute_proxy_samples_by_owner(
                ctx, experts, self.proxy, self.aggregator == "moe", self.assumed, lie
            )
            rule = rule.to(ctx.device, ctx.dtype)
            link = ctx.link if self.is_federated else None
            stream = partial(ctx.generator, "fens", "batches")
            rounds = self.train_aggregator_in_place(rule, proxies, stream, link, ctx.server)
            rates = f"eta_l={self.eta_l:g}, eta_s={self.eta_s:g}"
            fens = yield from training.run_rounds_and_yield_snapshots(
                experts, rule, proxies, rounds, self.rounds, rates
            )
        terms = self.make_byte_formula_arguments(ctx.clients_count, ctx.classes, ctx.input_shape)
        fens.report = replace(
            fens.report,
            bytes=compare_busiest_client_bytes_with_formula(
                ctx, experts.clients.module(0), terms, bool(ranges)
            ),
        )
        if not self.distil:
            if ctx.poison.changes_answers:  # they were honest until now
                experts.liars = [i for i, k in enumerate(members) if k in ctx.poisoned]
            experts.lie = ctx.poison.logit
            return fens
        with ctx.server():
            return (yield from distil_fens_into_student(ctx, fens, self.distil_steps))

    def train_aggregator_in_place(
        self,
        aggregator: Aggregator,
        proxies: training.ProxySamplesByOwner,
        make_named_stream: Callable[[training.StreamName], torch.Generator],
        link: Link | None = None,
        make_server_block: Callable[[], AbstractContextManager] = nullcontext,
        should_pool_gradients: bool = True,
    ) -> Iterator[training.LossBeforeRound]:
        """T rounds that change `aggregator` in place; yields after each the loss before it.

        proxies: by client, or the "server"'s own (link None); an owner without a sample takes no part
        make_named_stream: called with an owner, the stream that draws its mini-batches; with "participants", the
            one that draws who takes part
        make_server_block: opens the `with` block around the server's part
        should_pool_gradients: whether to take the shortcut for J = 1 and all clients

        The loss is ours to watch: Σ_k w_k (mean loss of client k's first mini-batch), with `per_round` over S_t.
        """
        weights = training.compute_shares_of_proxy_owners(proxies, self.batch, self.client_weights)
        lam = training.move_parameters_into_shared_vector(aggregator)
        batches = {
            i: training.draw_batch_indices(
                proxies[i], self.batch, self.rounds * self.local_steps, make_named_stream(i)
            )
            for i in weights
        }
        is_partial = 0 < self.per_round < len(weights)
        pooled_gradient = None
        if should_pool_gradients and self.local_steps == 1 and not is_partial:
            pooled_gradient = training.make_round_gradient_function(
                aggregator, proxies, batches, weights
            )
        state = averages.make_zero_optimizer_moments(lam)
        rate = 1.0 if self.server == "fedavg" else self.eta_s
        moments = {"beta1": self.beta1, "beta2": self.beta2, "tau": self.tau}
        owners = list(weights)
        taking_part = training.draw_participants_of_rounds(
            owners, self.per_round, self.rounds, make_named_stream
        )
        for t, chosen in enumerate(taking_part):
            start = lam.clone()
            if pooled_gradient:
                loss, slope = pooled_gradient(t)
                delta = -self.eta_l * slope
                if link:
                    training.record_bytes_of_round_without_sending(link.ledger, weights, lam)
            else:
                share = weights
                if is_partial:
                    total = sum(weights[i] for i in chosen)
                    share = {i: weights[i] / total for i in chosen}
                loss = torch.zeros_like(lam[0])
                returned = []
                for i in chosen:
                    # Link: λ down. Client i: J steps of SGD. Link: its λ up.
                    lam.copy_(link.down(i, start, phase=PHASE) if link else start)
                    first_batch = t * self.local_steps
                    for j in range(self.local_steps):
                        samples = proxies[i].select(batches[i][first_batch + j])
                        value, slope = training.compute_loss_and_flat_gradient(aggregator, samples)
                        lam -= self.eta_l * slope
                        if j == 0:
                            loss = loss + share[i] * value
                    returned.append(link.up(i, lam, phase=PHASE) if link else lam.clone())
                with make_server_block():
                    delta = averages.compute_mean_parameter_change(
                        list(share.values()), returned, start
                    )
            # Server: one step of its own, along the mean change.
            with make_server_block():
                moved, state = averages.compute_server_optimizer_step(
                    self.server, start, delta, state, lr=rate, **moments
                )
                lam.copy_(moved)
            yield loss
