"""What FENS predicts with: the frozen client models and the rule that combines their logits; or one student."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from ...comm import dequantise_state, formulas, quantise_state
from ...models import Network, copy_model_state
from ...models.state import copy_model
from ...tensor_types import (
    ClassScores,
    ClientLogitsBySample,
    FeatureMaps,
    Features,
    Images,
    Labels,
    Samples,
    ScalarTensor,
)
from ...training import ClientModels, Recipe
from ...training.distill import choose_distillation_loss, distil_student_in_place
from ...training.evaluate import CachedFunction, compute_accuracy, run_in_chunks
from ..base import Context, GlobalModel, NetworkModel, Report, Steps, report_progress
from ..context import ClientIndex
from ..parts.byzantine import choose_lie_logit, replace_answers_of_liars
from .aggregators import PHASE, Aggregator

LowestAndHighestInputPerLayer = Tensor  # [L, 2], of each of a network's L layers
RuleOnClientLogits = Callable[[ClientLogitsBySample], ClassScores]

# --------------------------------------------------------------------------------------------------------------- report
# What a run of FENS leaves behind for pictures and lessons.


@dataclass(frozen=True, eq=False)
class FensReport(Report):
    """The aggregator, how it was trained, and what it costs.

    M: the clients that take part, `members [M]`; q, T: numbers of the aggregator, and rounds; C classes.

    weights `[M, C]`: the rule's table of weights, where it has one
    competency `[M, C, C]`: voting's share of class r's samples for which client i votes c
    frames `[F, M, C]`: the rule's `influence` (of a weighted sum: the same weights) after rounds
        `frame_rounds [F]`
    contribution `[M, C]`: what each client adds on average to the score of the true class
    proxy_samples: on which λ was trained, with liars `assumed` each of them twice
    losses `[T]`: before each round
    bytes: of one client, see `compare_busiest_client_bytes_with_formula`
    average_accuracy, member_accuracy `[M]`: on test samples, of what the rule starts from: the
        plain average, and each member alone
    teacher_accuracy: of FENS, where one student was taught on `public_images` images, on
        `agreement` (a share) of which it answers as FENS does
    """

    aggregator_parameters: int | None = None  # q
    proxy_samples: int | None = None
    bytes: MeasuredAndFormulaBytes | None = None
    public_images: int | None = None
    agreement: float | None = None
    average_accuracy: float | None = None
    member_accuracy: list[float] | None = None
    teacher_accuracy: float | None = None
    members: np.ndarray | None = None
    weights: np.ndarray | None = None
    competency: np.ndarray | None = None
    frames: np.ndarray | None = None
    frame_rounds: np.ndarray | None = None
    contribution: np.ndarray | None = None
    losses: np.ndarray | None = None


# ---------------------------------------------------------------------------------------------------------- activations
# Quantised activations of the ensemble: what every linear and convolutional layer reads, at `bits` bits a number.
#
# As in FENS' public code (PyTorch's static quantisation: one range a layer, its least and largest value), but for the
# samples that the ranges come from: a client's own held-out ones (its training ones where it held nothing out), there a
# part of the test set. The client measures its trained model and sends the ranges beside it, `[L, 2]` for L layers. The
# arithmetic is simulated: a layer gets x̂ = s (clip(round(x/s) + z, 0, 2^bits - 1) - z), s = (high - low) / (2^bits -
# 1), z = round(-low/s), and computes in floating point.

RANGES = "activation ranges"


def list_layers_to_quantise(module: nn.Module) -> list[nn.Module]:
    """The L layers whose inputs are rounded, in the order of `module.modules()`."""
    return [layer for layer in module.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]


@torch.no_grad()
def measure_layer_input_ranges(module: Network, samples: Samples) -> LowestAndHighestInputPerLayer:
    """Least and largest input of every layer over the `samples [n, ...]`, `[L, 2]`; 0 is always within the range."""
    twin = copy_model(module)
    layers = list_layers_to_quantise(twin)
    ranges = samples.new_zeros(len(layers), 2)

    def note(row: Tensor, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        low, high = inputs[0].aminmax()
        row.copy_(torch.stack([torch.minimum(row[0], low), torch.maximum(row[1], high)]))

    for layer, row in zip(layers, ranges, strict=True):
        layer.register_forward_pre_hook(functools.partial(note, row))
    run_in_chunks(twin, samples)
    return ranges


def round_to_quantised_values(
    layer_inputs: FeatureMaps, low: ScalarTensor, high: ScalarTensor, bits: int
) -> FeatureMaps:
    """x̂ as in the comment above. A range without width leaves next to nothing."""
    top = 2**bits - 1
    step = ((high - low) / top).clamp_min(torch.finfo(layer_inputs.dtype).tiny)
    zero = (-low / step).round()
    return step * ((layer_inputs / step).round() + zero).clamp(0, top).sub(zero)


def quantise_layer_inputs_in_place(
    module: Network, input_ranges: LowestAndHighestInputPerLayer, bits: int
) -> Network:
    """The same module, changed in place: every layer reads its input at `bits` bits within its row
    of `input_ranges`."""

    def read(
        low: Tensor, high: Tensor, layer: nn.Module, inputs: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        return (round_to_quantised_values(inputs[0], low, high, bits), *inputs[1:])

    for layer, (low, high) in zip(list_layers_to_quantise(module), input_ranges, strict=True):
        layer.register_forward_pre_hook(functools.partial(read, low, high))
    return module


def measure_layer_input_ranges_on_client_samples(
    ctx: Context, model: Network, client: ClientIndex
) -> LowestAndHighestInputPerLayer:
    """Client side: the input ranges of its model's layers on its held-out samples.

    On its training samples if it holds none out.
    """
    samples, _ = ctx.private.held_out(client)
    if not len(samples):
        samples, _ = ctx.private.train(client)
    return measure_layer_input_ranges(model, samples)


def upload_layer_input_ranges(
    ctx: Context,
    ranges_of_members: Sequence[LowestAndHighestInputPerLayer],
    members: Sequence[ClientIndex],
) -> list[LowestAndHighestInputPerLayer]:
    """Link: the input ranges of every member's layers up; returns what the server receives, in the members' order."""
    received = []
    for client, ranges in zip(members, ranges_of_members, strict=True):
        message = ctx.link.up(client, {"ranges": ranges}, phase=RANGES)
        received.append(message["ranges"])
    return received


CHUNK = 2048  # samples that a rule sees at once
TEMPERATURE, DISTIL_BATCH = 3.0, 64


class Experts:
    """The frozen ensemble: `experts(x)` gives the logits `[N, M, C]` of `x [N, ...]`.

    members: the clients whose models these are
    ranges: a member's activation ranges `[L, 2]`, or none; with them the layers read their inputs at `bits`
    liars: places among the members of those that answer falsely, with the logit `lie`

    The logits of the last `x` are cached: the snapshots of a run differ in the rule alone, so all of them together
    cost one pass through the M models.
    """

    parts = ("clients", "members", "ranges", "bits", "liars", "lie")

    def __init__(
        self, clients: ClientModels, members: Sequence[ClientIndex], ranges: Sequence[Tensor] = (), bits: int = 32,
        liars: Sequence[int] = (), lie: float = 0.0,
    ) -> None:  # fmt: skip
        self.clients = clients
        self.members = list(members)
        self.parameters = sum(clients.parameters)
        self.ranges = list(ranges)
        self.bits = bits
        self.liars = list(liars)
        self.lie = lie
        for module, module_ranges in zip(clients.modules, self.ranges, strict=False):
            quantise_layer_inputs_in_place(module, module_ranges, bits)
        self._remembered = CachedFunction(self.compute_logits)

    def compute_logits(self, samples: Samples) -> ClientLogitsBySample:
        """The logits `[N, M, C]`, without the cache."""
        return self.clients.logits(samples).transpose(0, 1).contiguous()

    def replace_answers_of_byzantine_clients(
        self,
        combine_logits: RuleOnClientLogits,
        client_logits: ClientLogitsBySample,
        rule_reads_probabilities: bool = False,
    ) -> ClientLogitsBySample:
        """`client_logits [N, M, C]` with the answers of the byzantine members replaced by lies.

        combine_logits: the rule that they try to mislead
        """
        answers = replace_answers_of_liars(
            lambda told: combine_logits(told.transpose(0, 1)),
            client_logits.transpose(0, 1),
            self.liars,
            choose_lie_logit(self.lie, rule_reads_probabilities),
        )
        return answers.transpose(0, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return self._remembered(x)


class MessagesAndExperts(NamedTuple):
    """The members' models as they go down to the clients, and the experts that answer from then on."""

    messages: list[dict[str, Any]]
    experts: Experts


def quantise_experts(
    uploaded_models: ClientModels,
    weight_bits: int,
    member_clients: Sequence[ClientIndex],
    activation_ranges: Sequence[LowestAndHighestInputPerLayer] = (),
    activation_bits: int = 32,
) -> MessagesAndExperts:
    """The members' models as they go down, and what answers from here on.

    weight_bits: 2 to 8; 32 leaves the weights as they are
    activation_ranges: one a member, in their order; with them layers read their inputs at `activation_bits`
    """
    states = [uploaded_models.state(k) for k in member_clients]
    packed: list[dict[str, Any]] = states
    if weight_bits <= 8:
        packed = [quantise_state(state, weight_bits) for state in states]
    architectures = ClientModels([uploaded_models.module(k) for k in member_clients])
    answering = architectures.with_states([dequantise_state(state) for state in packed])
    for member_ranges, state in zip(activation_ranges, packed, strict=False):
        state[RANGES] = member_ranges
    return MessagesAndExperts(
        packed, Experts(answering, member_clients, activation_ranges, activation_bits)
    )


class FensModel(GlobalModel):
    """M experts and an aggregator; `parameters` is all that predicts, M*d + q.

    report_fields: further fields of the report, tensors or plain values

    `features` gives the hidden layer `[N, k]` of the network aggregator; for every other rule the concatenated logits
    `[N, M*C]`, client after client.
    """

    report: FensReport
    parts = ("experts", "rule")

    def __init__(self, experts: Experts, rule: Aggregator, **report_fields: Any) -> None:
        self.experts = experts
        self.rule = rule.eval()
        self.parameters = experts.parameters + rule.trained_parameter_count
        report_fields |= {
            "members": torch.tensor(experts.members),
            "weights": rule.get_client_weights(),
            "competency": rule.get_vote_shares_by_true_class(),
        }
        arrays = {}
        for name, value in report_fields.items():
            if isinstance(value, Tensor):
                tensor = value.detach().cpu()
                if tensor.is_floating_point():
                    tensor = tensor.float()
                arrays[name] = tensor.numpy().copy()
        self.report = FensReport(
            aggregator_parameters=rule.trained_parameter_count, **{**report_fields, **arrays}
        )

    def logits(self, samples: Samples) -> ClassScores:
        return self._compute_in_chunks_from_expert_logits(self.rule, samples)

    def features(self, samples: Samples) -> Features:
        return self._compute_in_chunks_from_expert_logits(self.rule.features, samples)

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> FensReport:
        """The report with the accuracy of what the rule starts from: the members' plain average, and each of them."""
        z = self.experts.replace_answers_of_byzantine_clients(
            lambda z: z.mean(1), self.experts(samples)
        )
        alone = (z.argmax(2) == labels[:, None]).double().mean(0)
        return replace(
            self.report,
            average_accuracy=compute_accuracy(z.mean(1).argmax(1), labels),
            member_accuracy=alone.tolist(),
        )

    @torch.no_grad()
    def _compute_in_chunks_from_expert_logits(
        self, compute_from_logits: Callable[..., Tensor], samples: Samples
    ) -> Tensor:
        z = self.experts(samples)
        answers = []
        for logits, inputs in zip(z.split(CHUNK), samples.split(CHUNK), strict=True):
            rule = functools.partial(self.rule, images=inputs)
            received = self.experts.replace_answers_of_byzantine_clients(
                rule, logits, self.rule.reads_probabilities
            )
            answers.append(compute_from_logits(received, inputs))
        return torch.cat(answers)


class Student(NetworkModel):
    """One network that has learnt to answer as `teacher` does, on `images`."""

    report: FensReport

    def __init__(self, module: Network, teacher: FensModel, images: Images) -> None:
        super().__init__(module)
        self.teacher = teacher
        agreement = compute_accuracy(self.predict(images), teacher.predict(images))
        self.report = teacher.report = replace(
            teacher.report, public_images=len(images), agreement=agreement
        )

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> FensReport:
        """The teacher's report, with the teacher's accuracy."""
        return replace(
            self.teacher.complete_report_on_test_samples(samples, labels),
            teacher_accuracy=self.teacher.accuracy(samples, labels),
        )


def distil_fens_into_student(ctx: Context, teacher: FensModel, steps: int) -> Steps[Student]:
    """One network of the (first) architecture that answers as FENS does, learnt at the server on public images."""
    x = ctx.public
    assert x is not None  # `Fens.validate` has seen to it
    student = ctx.build(ctx.architectures[0], ctx.generator("fens", "student"))
    a_pass = -(-len(x) // DISTIL_BATCH)
    recipe = Recipe(-(-steps // a_pass), DISTIL_BATCH, "adam", 1e-3, weight_decay=0)
    loss, stream = (
        choose_distillation_loss("kl", TEMPERATURE),
        ctx.generator("fens", "distillation"),
    )
    ticks = distil_student_in_place(student, x, teacher.logits(x), recipe, loss, stream)
    yield from report_progress("distillation", ticks, lambda: NetworkModel(student))
    return Student(student, teacher, x)


# ----------------------------------------------------------------------------------------------------------------- cost
# What one client of FENS sends and receives, by the formula, beside what the ledger counted.

# CIFAR-10 in the paper: ResNet-8, and the network aggregator with k = 40 between 20 clients
PAPER_D = 4_932_344
PAPER = {"client_count": 20, "aggregator_parameters": 8450, "rounds": 500, "bits": 8}
BESIDES = ("class counts", "confusion matrices", "labelled set")


class NetworkSize(NamedTuple):
    """A client's model of `d` numbers, `plain` of which are never quantised; the others lie in `tensors` tensors."""

    d: int
    plain: int = 0
    tensors: int = 0

    @classmethod
    def measure(cls, state: Mapping[str, Tensor]) -> NetworkSize:
        coded = [t.numel() for t in state.values() if t.ndim >= 2]
        d = sum(t.numel() for t in state.values())
        return cls(d, d - sum(coded), len(coded))


class FensByteArguments(TypedDict):
    """What `count_fens_bytes_of_one_client` reads besides the size of a network; see there."""

    client_count: int
    aggregator_parameters: int
    rounds: int
    bits: int


def count_fens_bytes_of_one_client(
    network_size: NetworkSize,
    client_count: int,
    aggregator_parameters: int,
    rounds: int,
    bits: int,
    range_numbers: int = 0,
) -> int:
    """`formulas.count_fens_bytes_per_client`, with what is not quantised.

    client_count: models that go down
    rounds: federated ones
    range_numbers: numbers of a model's activation ranges
    """
    if bits > 8:
        return formulas.count_fens_bytes_per_client(
            network_size.d,
            client_count,
            aggregator_parameters,
            rounds,
            32,
            range_numbers=range_numbers,
        )
    return formulas.count_fens_bytes_per_client(
        network_size.d,
        client_count,
        aggregator_parameters,
        rounds,
        bits,
        network_size.plain,
        network_size.tensors,
        range_numbers,
    )


class MeasuredAndFormulaBytes(TypedDict):
    """The bytes of the client with the most of them, down and up.

    measured: by the ledger
    formula: by `count_fens_bytes_of_one_client`, with the counts, matrices or labelled samples that the rule
        needs besides; None if the clients' architectures differ
    ratio: measured bytes to those of one-shot learning (2 S)
    """

    measured: int
    formula: int | None
    ratio: float


def compare_busiest_client_bytes_with_formula(
    ctx: Context,
    client_model: nn.Module,
    formula_arguments: FensByteArguments,
    has_activation_ranges: bool = False,
) -> MeasuredAndFormulaBytes:
    """The bytes of the client that sends and receives most, measured and by the formula.

    `client_model`: the (first) member's model
    `formula_arguments`: `Fens.make_byte_formula_arguments` of this run, whose rounds are those that a client is
        expected to take part in
    `has_activation_ranges`: whether activations are quantised
    """
    size, ledger = NetworkSize.measure(copy_model_state(client_model)), ctx.link.ledger
    traffic = {k: up + down for k, (up, down) in ledger.by_client().items()}
    busiest = max(traffic, key=traffic.__getitem__)
    formula = None
    if len(set(ctx.architectures)) == 1:
        start = 0
        if ctx.init != "same":  # clients that draw their first weights themselves get none
            start = formulas.count_model_bytes_one_way(size.d)
        rounds = 0
        besides = 0
        for row in ledger.rows():
            if row["client"] != busiest:
                continue
            if row["phase"] == PHASE:
                rounds = max(rounds, int(row["messages"]))
            if row["phase"] in BESIDES:
                besides += int(row["bytes"])
        ranges = 2 * len(list_layers_to_quantise(client_model)) if has_activation_ranges else 0
        expected = count_fens_bytes_of_one_client(
            size,
            client_count=formula_arguments["client_count"],
            aggregator_parameters=formula_arguments["aggregator_parameters"],
            rounds=rounds,
            bits=formula_arguments["bits"],
            range_numbers=ranges,
        )
        formula = expected - start + besides
    measured = traffic[busiest]
    ratio = measured / formulas.count_one_shot_bytes_per_client(size.d)
    return MeasuredAndFormulaBytes(measured=measured, formula=formula, ratio=ratio)
