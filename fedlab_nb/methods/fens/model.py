"""What FENS predicts with: the frozen client models and the rule that combines their logits; or one student."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...comm import dequantise_state, formulas, quantise_state
from ...models import Network, model_state
from ...models.state import copy_model
from ...training import ClientModels, Recipe
from ...training.distill import choose_distillation_loss, distil
from ...training.evaluate import CachedFunction, compute_accuracy, run_in_chunks
from ..base import Context, GlobalModel, NetworkModel, Report, Steps, report_progress
from ..parts.byzantine import choose_lie_logit, replace_answers
from .aggregators import PHASE, Aggregator

# --------------------------------------------------------------------------------------------------------------- report
# What a run of FENS leaves behind for pictures and lessons.


@dataclass(frozen=True, eq=False)
class FensReport(Report):
    """M: the clients that take part, `members [M]`; q, T: numbers of the aggregator, and rounds; C classes.

    weights `[M, C]`: the rule's table of weights, where it has one;   competency `[M, C, C]`: voting's share of class
    r's samples for which client i votes c
    frames `[F, M, C]`: the rule's `influence` (of a weighted sum: the same weights) after rounds `frame_rounds [F]`;
    contribution `[M, C]`: what each client adds on average to the score of the true class
    proxy_samples: on which λ was trained, with liars `assumed` each of them twice
    losses `[T]`: before each round;   bytes: of one client, see `compare_bytes`
    average_accuracy, member_accuracy `[M]`: on test samples, of what the rule starts from: the plain average, and each
    member alone;   teacher_accuracy: of FENS, where one student was taught on `public_images` images, on `agreement`
    (a share) of which it answers as FENS does
    """

    aggregator_parameters: int | None = None  # q
    proxy_samples: int | None = None
    bytes: dict[str, Any] | None = None
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


def find_layers_to_quantise(module: nn.Module) -> list[nn.Module]:
    """The L layers whose inputs are rounded, in the order of `module.modules()`."""
    return [layer for layer in module.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]


@torch.no_grad()
def measure_ranges(module: Network, samples: Tensor) -> Tensor:
    """Least and largest input of every layer over the `samples [n, ...]`, with 0 in between: `[L, 2]`."""
    twin = copy_model(module)
    layers = find_layers_to_quantise(twin)
    ranges = samples.new_zeros(len(layers), 2)

    def note(row: Tensor, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        low, high = inputs[0].aminmax()
        row.copy_(torch.stack([torch.minimum(row[0], low), torch.maximum(row[1], high)]))

    for layer, row in zip(layers, ranges, strict=True):
        layer.register_forward_pre_hook(functools.partial(note, row))
    run_in_chunks(twin, samples)
    return ranges


def round_to_bits(values: Tensor, low: Tensor, high: Tensor, bits: int) -> Tensor:
    """x̂ of the module docstring; a range of no width leaves next to nothing."""
    top = 2**bits - 1
    step = ((high - low) / top).clamp_min(torch.finfo(values.dtype).tiny)
    zero = (-low / step).round()
    return step * ((values / step).round() + zero).clamp(0, top).sub(zero)


def round_layer_inputs(module: Network, ranges: Tensor, bits: int) -> Network:
    """The same module, changed in place: every layer reads its input at `bits` bits within its row of `ranges`."""

    def read(
        low: Tensor, high: Tensor, layer: nn.Module, inputs: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        return (round_to_bits(inputs[0], low, high, bits), *inputs[1:])

    for layer, (low, high) in zip(find_layers_to_quantise(module), ranges, strict=True):
        layer.register_forward_pre_hook(functools.partial(read, low, high))
    return module


def measure_all_ranges(ctx: Context, trained: ClientModels, members: Sequence[int]) -> list[Tensor]:
    """Client part and link: every member measures its own model on what it held out, and sends the ranges up."""
    received = []
    for k in members:
        held_out, _ = ctx.private.held_out(k)
        x = held_out if len(held_out) else ctx.private.train(k)[0]
        received.append(
            ctx.link.up(k, {"ranges": measure_ranges(trained.module(k), x)}, phase=RANGES)["ranges"]
        )
    return received


CHUNK = 2048  # samples that a rule sees at once
TEMPERATURE, DISTIL_BATCH = 3.0, 64


class Experts:
    """The frozen ensemble: logits `[N, M, C]` of `x [N, ...]`; `members` are the clients whose models these are.

    Those of the last `x` are remembered: the snapshots of a run differ in the rule alone, and so cost one pass through
    the M models together. With activation `ranges`, a member's `[L, 2]`, they read their layers' inputs at `bits`.
    """

    parts = ("clients", "members", "ranges", "bits", "liars", "lie")

    def __init__(
        self, clients: ClientModels, members: Sequence[int], ranges: Sequence[Tensor] = (), bits: int = 32,
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
            round_layer_inputs(module, module_ranges, bits)
        self._remembered = CachedFunction(self.compute_logits)

    def compute_logits(self, x: Tensor) -> Tensor:
        """Without remembering."""
        return self.clients.logits(x).transpose(0, 1).contiguous()

    def falsify_logits(
        self, rule: Callable[[Tensor], Tensor], logits: Tensor, reads_probabilities: bool = False
    ) -> Tensor:
        """What a rule (`[N, M, C]` to `[N, C]`) hears where `logits [N, M, C]` is true."""
        told = replace_answers(
            lambda told: rule(told.transpose(0, 1)),
            logits.transpose(0, 1),
            self.liars,
            choose_lie_logit(self.lie, reads_probabilities),
        )
        return told.transpose(0, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return self._remembered(x)


def quantise_experts(
    uploaded: ClientModels,
    bits: int,
    members: Sequence[int],
    ranges: Sequence[Tensor] = (),
    activation_bits: int = 32,
) -> tuple[list[dict[str, Any]], Experts]:
    """The members' models as they go down, and what answers from here on; `bits` = 32 leaves them as they are.

    With activation `ranges`, a member's `[L, 2]`, they read their layers' inputs at `activation_bits`.
    """
    states = [uploaded.state(k) for k in members]
    packed: list[dict[str, Any]] = states
    if bits <= 8:
        packed = [quantise_state(state, bits) for state in states]
    architectures = ClientModels([uploaded.module(k) for k in members])
    answering = architectures.with_states([dequantise_state(state) for state in packed])
    for member_ranges, state in zip(ranges, packed, strict=False):
        state[RANGES] = member_ranges
    return packed, Experts(answering, members, ranges, activation_bits)


class FensModel(GlobalModel):
    """M experts and an aggregator; `parameters` is all that predicts, M*d + q.

    `features`: the hidden layer `[N, k]` of the network aggregator; for every other rule the concatenated logits
    `[N, M*C]`, client after client. `more`: further fields of the report, tensors or plain values.
    """

    report: FensReport
    parts = ("experts", "rule")

    def __init__(self, experts: Experts, rule: Aggregator, **more: Any) -> None:
        self.experts = experts
        self.rule = rule.eval()
        self.parameters = experts.parameters + rule.q
        more |= {
            "members": torch.tensor(experts.members),
            "weights": rule.get_weights(),
            "competency": rule.get_competency(),
        }
        arrays = {}
        for name, value in more.items():
            if isinstance(value, Tensor):
                tensor = value.detach().cpu()
                if tensor.is_floating_point():
                    tensor = tensor.float()
                arrays[name] = tensor.numpy().copy()
        self.report = FensReport(aggregator_parameters=rule.q, **{**more, **arrays})

    def logits(self, x: Tensor) -> Tensor:
        return self._run_in_chunks(self.rule, x)

    def features(self, x: Tensor) -> Tensor:
        return self._run_in_chunks(self.rule.features, x)

    def measured(self, x: Tensor, y: Tensor) -> FensReport:
        """With what the rule starts from: accuracy on `x, y` of the members' plain average, and of each of them."""
        z = self.experts.falsify_logits(lambda z: z.mean(1), self.experts(x))
        alone = (z.argmax(2) == y[:, None]).double().mean(0)
        return replace(
            self.report,
            average_accuracy=compute_accuracy(z.mean(1).argmax(1), y),
            member_accuracy=alone.tolist(),
        )

    @torch.no_grad()
    def _run_in_chunks(self, read: Callable[..., Tensor], x: Tensor) -> Tensor:
        z = self.experts(x)
        answers = []
        for logits, inputs in zip(z.split(CHUNK), x.split(CHUNK), strict=True):
            rule = functools.partial(self.rule, images=inputs)
            received = self.experts.falsify_logits(rule, logits, self.rule.reads_probabilities)
            answers.append(read(received, inputs))
        return torch.cat(answers)


class Student(NetworkModel):
    """One network that has learnt to answer as `teacher` does, on `images`."""

    report: FensReport

    def __init__(self, module: Network, teacher: FensModel, images: Tensor) -> None:
        super().__init__(module)
        self.teacher = teacher
        agreement = compute_accuracy(self.predict(images), teacher.predict(images))
        self.report = teacher.report = replace(
            teacher.report, public_images=len(images), agreement=agreement
        )

    def measured(self, x: Tensor, y: Tensor) -> FensReport:
        """As of the teacher, with its accuracy."""
        return replace(self.teacher.measured(x, y), teacher_accuracy=self.teacher.accuracy(x, y))


def distil_student(ctx: Context, fens: FensModel, steps: int) -> Steps[Student]:
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
    ticks = distil(student, x, fens.logits(x), recipe, loss, stream)
    yield from report_progress("distillation", ticks, lambda: NetworkModel(student))
    return Student(student, fens, x)


# ----------------------------------------------------------------------------------------------------------------- cost
# What one client of FENS sends and receives, by the formula, beside what the ledger counted.

# CIFAR-10 in the paper: ResNet-8, and the network aggregator with k = 40 between 20 clients
PAPER_D, PAPER = 4_932_344, {"clients": 20, "q": 8450, "rounds": 500, "bits": 8}
BESIDES = ("class counts", "confusion matrices", "labelled set")


class Size(NamedTuple):
    """A client's model of `d` numbers, `plain` of which are never quantised; the others lie in `tensors` tensors."""

    d: int
    plain: int = 0
    tensors: int = 0

    @classmethod
    def measure(cls, state: Mapping[str, Tensor]) -> Size:
        coded = [t.numel() for t in state.values() if t.ndim >= 2]
        d = sum(t.numel() for t in state.values())
        return cls(d, d - sum(coded), len(coded))


def count_client_bytes(
    size: Size, clients: int, q: int, rounds: int, bits: int, ranges: int = 0
) -> int:
    """`formulas.count_fens_bytes`, with what is not quantised. clients: models that go down;   rounds: federated ones;
    ranges: numbers of a model's activation ranges"""
    if bits > 8:
        return formulas.count_fens_bytes(size.d, clients, q, rounds, 32, ranges=ranges)
    return formulas.count_fens_bytes(
        size.d, clients, q, rounds, bits, size.plain, size.tensors, ranges
    )


def compare_bytes(
    ctx: Context, client: nn.Module, terms: Mapping[str, int], ranged: bool = False
) -> dict[str, Any]:
    """What one client's traffic came to, beside the formula.

    `client`: the (first) member's model;   `terms`: `Fens.count_byte_terms` of this run, whose rounds are those that a
    client is expected to take part in;   `ranged`: whether activations are quantised. "measured" is of the client with
    the most bytes, down and up; "ratio" is to one-shot learning (2 S). "formula" is `count_client_bytes`, with
    the counts, matrices or labelled samples that the rule needs besides; None where architectures differ.
    """
    size, ledger = Size.measure(model_state(client)), ctx.link.ledger
    traffic = {k: up + down for k, (up, down) in ledger.by_client().items()}
    busiest = max(traffic, key=traffic.__getitem__)
    formula = None
    if len(set(ctx.architectures)) == 1:
        start = 0
        if ctx.init != "same":  # clients that draw their first weights themselves get none
            start = formulas.count_state_bytes(size.d)
        rounds = 0
        besides = 0
        for row in ledger.rows():
            if row["client"] != busiest:
                continue
            if row["phase"] == PHASE:
                rounds = max(rounds, int(row["messages"]))
            if row["phase"] in BESIDES:
                besides += int(row["bytes"])
        ranges = 2 * len(find_layers_to_quantise(client)) if ranged else 0
        taken = {"rounds": rounds, "ranges": ranges}
        formula = count_client_bytes(size, **{**terms, **taken}) - start + besides
    measured = traffic[busiest]
    return {
        "measured": measured,
        "formula": formula,
        "ratio": measured / formulas.count_one_shot_bytes(size.d),
    }
