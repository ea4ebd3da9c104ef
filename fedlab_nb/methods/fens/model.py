"""What FENS predicts with: the frozen client models and the rule that combines their logits; or one student."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...comm import dequantise_state, quantise_state
from ...models import Network
from ...training import ClientModels, Recipe
from ...training.distill import distil, distillation_loss
from ...training.evaluate import Remembered, accuracy
from ..base import GlobalModel, NetworkModel, Steps, reported
from ..context import Context
from .activations import RANGES, with_rounded_inputs
from .aggregators import Aggregator
from .report import FensReport

CHUNK = 2048  # samples that a rule sees at once
TEMPERATURE, DISTIL_BATCH = 3.0, 64


class Experts:
    """The frozen ensemble: logits `[N, M, C]` of `x [N, ...]`; `members` are the clients whose models these are.

    Those of the last `x` are remembered: the snapshots of a run differ in the rule alone, and so cost one pass through
    the M models together.
    """

    def __init__(self, clients: ClientModels, members: Sequence[int]) -> None:
        self.clients, self.members, self.parameters = clients, list(members), sum(clients.parameters)
        self._remembered = Remembered(self.fresh)

    def fresh(self, x: Tensor) -> Tensor:
        """Without remembering."""
        return self.clients.logits(x).transpose(0, 1).contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        return self._remembered(x)


def quantised_experts(
    uploaded: ClientModels, bits: int, members: Sequence[int], ranges: Sequence[Tensor] = (), activation_bits: int = 32
) -> tuple[list[dict[str, Any]], Experts]:
    """The members' models as they go down, and what answers from here on; `bits` = 32 leaves them as they are.

    With activation `ranges`, a member's `[L, 2]`, they read their layers' inputs at `activation_bits`.
    """
    states = [uploaded.state(k) for k in members]
    packed: list[dict[str, Any]] = [quantise_state(own, bits) if bits <= 8 else own for own in states]
    architectures = ClientModels([uploaded.module(k) for k in members])
    answering = architectures.with_states([dequantise_state(state) for state in packed])
    for module, own, state in zip(answering.modules, ranges, packed, strict=False):
        with_rounded_inputs(module, own, activation_bits)
        state[RANGES] = own
    return packed, Experts(answering, members)


def send_ensemble(ctx: Context, members: Sequence[int], packed: Sequence[Mapping[str, Any]], skip_own: bool) -> None:
    """Every member gets all M models, or all but its own."""
    if not skip_own and len(members) == ctx.clients_count:
        ctx.link.broadcast(packed, phase="ensemble")
        return
    for at, k in enumerate(members):
        ctx.link.down(k, [*packed[:at], *packed[at + 1 :]] if skip_own else packed, phase="ensemble")


class FensModel(GlobalModel):
    """M experts and an aggregator; `parameters` is all that predicts, M*d + q.

    `features`: the hidden layer `[N, k]` of the network aggregator; for every other rule the concatenated logits
    `[N, M*C]`, client after client. `more`: further fields of the report, tensors or plain values.
    """

    report: FensReport

    def __init__(self, experts: Experts, rule: Aggregator, **more: Any) -> None:
        self.experts, self.rule = experts, rule.eval()
        self.parameters = experts.parameters + rule.q
        more |= {"members": torch.tensor(experts.members), "weights": rule.weights(), "competency": rule.competency()}
        arrays = {name: _array(value) for name, value in more.items() if isinstance(value, Tensor)}
        self.report = FensReport(aggregator_parameters=rule.q, **{**more, **arrays})

    def logits(self, x: Tensor) -> Tensor:
        return self._by_chunks(self.rule, x)

    def features(self, x: Tensor) -> Tensor:
        return self._by_chunks(self.rule.features, x)

    def measured(self, x: Tensor, y: Tensor) -> FensReport:
        """With what the rule starts from: accuracy on `x, y` of the members' plain average, and of each of them."""
        z = self.experts(x)
        alone = (z.argmax(2) == y[:, None]).double().mean(0)
        return replace(self.report, average_accuracy=accuracy(z.mean(1).argmax(1), y), member_accuracy=alone.tolist())

    @torch.no_grad()
    def _by_chunks(self, read, x: Tensor) -> Tensor:
        z = self.experts(x)
        return torch.cat([read(part, some) for part, some in zip(z.split(CHUNK), x.split(CHUNK), strict=True)])


class Student(NetworkModel):
    """One network that has learnt to answer as `teacher` does, on `images`."""

    report: FensReport

    def __init__(self, module: Network, teacher: FensModel, images: Tensor) -> None:
        super().__init__(module)
        self.teacher = teacher
        agreement = accuracy(self.predict(images), teacher.predict(images))
        self.report = teacher.report = replace(teacher.report, public_images=len(images), agreement=agreement)

    def measured(self, x: Tensor, y: Tensor) -> FensReport:
        """As of the teacher, with its accuracy."""
        return replace(self.teacher.measured(x, y), teacher_accuracy=self.teacher.accuracy(x, y))


def distilled(ctx: Context, fens: FensModel, steps: int) -> Steps[Student]:
    """One network of the (first) architecture that answers as FENS does, learnt at the server on public images."""
    x = ctx.public
    assert x is not None  # `Fens.validate` has seen to it
    student = ctx.build(ctx.architectures[0], ctx.generator("fens", "student"))
    a_pass = -(-len(x) // DISTIL_BATCH)
    recipe = Recipe(-(-steps // a_pass), DISTIL_BATCH, "adam", 1e-3, weight_decay=0)
    loss, stream = distillation_loss("kl", TEMPERATURE), ctx.generator("fens", "distillation")
    ticks = distil(student, x, fens.logits(x), recipe, loss, stream)
    yield from reported("distillation", ticks, lambda: NetworkModel(student))
    return Student(student, fens, x)


def _array(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach().float() if tensor.is_floating_point() else tensor
    return tensor.cpu().numpy().copy()
