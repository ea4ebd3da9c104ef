"""M clients' blocks fused side by side (FuseFL, Eqs. 1, 4 and 6); how a network is cut into blocks is in `blocks`.

    H_fus^k(x) = [H_1^k(A_1^k(x)), ..., H_M^k(A_M^k(x))]   a `Stage`: M branches that read the same joined input x
    F_fus = classifier . merge_m . H_fus^K ... H_fus^1     a `FusedNetwork`

Fused stages are frozen: no gradient, batch norm by its owner's running statistics, and nothing here ever writes to
them. How long anyone trains is the matter of `FuseFL.run`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor, nn

from ...comm.link import UpDown
from ...models import Network, count_parameters, load_state
from ...tensor_types import (
    ClientFeatures,
    FeatureMaps,
    Features,
    Labels,
    Logits,
    Predictions,
    Samples,
)
from ...training import ClientModels, compute_accuracy, run_in_chunks
from ...training.evaluate import CachedFunction, choose_samples_per_chunk
from ...value_types import SampleShape
from ..base import NetworkModel, Report
from ..context import ClientIndex
from .blocks import ConvOrAverage, join_client_outputs, sum_tensors

Module = TypeVar("Module", bound=nn.Module)
FeatureMapsByStageAndClient = list[list[FeatureMaps]]
CACHE_BYTES = 2**30
# of the clients' last features
SumOrMean = Literal["sum", "mean"]
MERGES: tuple[SumOrMean, ...] = get_args(SumOrMean)


class Stage(nn.Module):
    """M frozen branches: `forward(x)` is the list of their M outputs."""

    def __init__(self, branches: Sequence[nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches).requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Stage:
        """Frozen: stays in eval mode, whatever the model around it does."""
        return super().train(False)

    def forward(self, samples: Samples) -> list[FeatureMaps]:
        return [branch(samples) for branch in self.branches]


def copy_module_with_state(module: Module, state: Mapping[str, Tensor]) -> Module:
    """A copy of `module` with the weights and running statistics `state`."""
    twin = copy.deepcopy(module)
    load_state(twin, state)
    return twin


def run_stages_and_join_outputs(
    stages: Sequence[Stage], adaptor_kind: ConvOrAverage, samples: Samples
) -> FeatureMaps:
    """The input `[N, ...]` of the block behind `stages`: run one after the other, each stage's outputs joined."""
    for stage in stages:
        samples = join_client_outputs(adaptor_kind, stage(samples))
    return samples


class FrozenStages(nn.Module):
    """The fused stages below a block that trains, as one layer without parameters or gradient.

    The model around it neither trains nor moves them. `batch_statistics`: a private copy whose batch norm takes the
    statistics of the batch while the model trains, as in the authors' code.
    """

    def __init__(
        self, stages: Sequence[Stage], kind: ConvOrAverage, batch_statistics: bool = False
    ) -> None:
        super().__init__()
        self.kind = kind
        self.batch_statistics = batch_statistics
        stages = list(stages)
        if batch_statistics:
            stages = copy.deepcopy(stages)
        self._unregistered = (stages,)  # in a tuple, so that torch does not register them

    def train(self, mode: bool = True) -> FrozenStages:
        super().train(mode)
        if self.batch_statistics:
            for norm in list_batch_norms(self._unregistered[0]):
                norm.training = mode
        return self

    def forward(self, x: Samples) -> FeatureMaps:
        with torch.no_grad():
            return run_stages_and_join_outputs(self._unregistered[0], self.kind, x)


class ClientInputs:
    """The inputs of the blocks that train: the clients' samples, passed through the fused stages.

    Frozen features never change, so each client computes them once, as long as those of all clients together fit into
    CACHE_BYTES. Otherwise, with `batch_statistics`, and where images are augmented in every epoch (`augments`), the
    stages stay in front of the model (`layers_in_front`) and are run for every batch.

    `shards[m]` is client m's `(x [n, ...], y [n])`, passed through `passed_stages`; `pass_stages(x)` does that with
    any samples; `stages_in_front` are those that the shards have still to pass.
    """

    def __init__(
        self,
        kind: ConvOrAverage,
        batch_statistics: bool,
        shards: Sequence[tuple[Tensor, Tensor]],
        augments: bool = False,
    ) -> None:
        self.kind = kind
        self.batch_statistics = batch_statistics
        self.shards = list(shards)
        self.augments = augments
        self.passed_stages: list[Stage] = []
        self.pass_stages = CachedFunction(lambda x: x)
        self.stages_in_front: list[Stage] = []

    def make_frozen_layers_before_trained_block(self) -> list[nn.Module]:
        """The layers, one or none, to put in front of a client's model."""
        if not self.stages_in_front:
            return []
        return [FrozenStages(self.stages_in_front, self.kind, self.batch_statistics)]

    def add_stage(self, stage: Stage, joined_output_shape: SampleShape) -> None:
        """Add a stage, and pass the clients' samples through it if all their outputs fit into CACHE_BYTES.

        joined_output_shape: the shape of one sample behind the stage, after the clients' outputs are joined
        """
        self.stages_in_front.append(stage)
        if self.augments or (self.batch_statistics and list_batch_norms(self.stages_in_front)):
            return
        samples = sum(len(y) for _, y in self.shards)
        number_bytes = self.shards[0][0].element_size()
        if samples * math.prod(joined_output_shape) * number_bytes > CACHE_BYTES:
            return
        stages = self.stages_in_front
        pass_before = self.pass_stages
        self.shards = [(self._run_stages_in_chunks(stages, x), y) for x, y in self.shards]
        self.pass_stages = CachedFunction(
            lambda x: self._run_stages_in_chunks(stages, pass_before(x))
        )
        self.passed_stages = [*self.passed_stages, *stages]
        self.stages_in_front = []

    def _run_stages_in_chunks(self, stages: Sequence[Stage], samples: Samples) -> FeatureMaps:
        chunk = choose_samples_per_chunk(stages[0], samples)
        return run_in_chunks(
            lambda rows: run_stages_and_join_outputs(stages, self.kind, rows),
            samples,
            samples_per_chunk=chunk,
        )

    def apply_to_stage_outputs_of_client(
        self, client: ClientIndex, function: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """`function` of client m's samples, passed through all stages."""
        x, _ = self.shards[client]
        return run_in_chunks(
            lambda rows: function(
                run_stages_and_join_outputs(self.stages_in_front, self.kind, rows)
            ),
            x,
        )


class RoundModels(ClientModels):
    """The clients' models during a round, or after it: the stages that `inputs` passed, then each model."""

    def __init__(self, modules: Sequence[Network], inputs: ClientInputs) -> None:
        super().__init__(modules)
        self.pass_stages = inputs.pass_stages

    def logits(self, samples: Samples) -> Logits:
        return super().logits(self.pass_stages(samples))

    def predict_each_sample_by_one_client(self, samples: Samples) -> Predictions:
        return super().predict_each_sample_by_one_client(self.pass_stages(samples))

    def features(self, samples: Samples) -> Features:
        return super().features(self.pass_stages(samples))


def list_batch_norms(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """All batch-norm layers in `modules`."""
    layers: list[nn.Module] = []
    for module in modules:
        layers += [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    return layers


class FusedNetwork(nn.Module):
    """F_fus: K stages, the M last features merged, and a classifier. Features are the merged ones, `[N, D]`.

    With one head, logits = head(features). With M heads, they are the mean of head_m(h_m) over the clients.
    `client_features(x)`: the M clients' last features `[M, N, D]`, the same under any classifier; cached for the last
    x.
    """

    parts = ("stages", "heads", "kind", "merge")

    def __init__(
        self,
        stages: Sequence[nn.Module],
        heads: Sequence[nn.Module],
        kind: ConvOrAverage,
        merge: SumOrMean,
    ) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.heads = nn.ModuleList(heads)
        self.kind = kind
        self.merge = merge
        self.client_features = CachedFunction(self._compute_client_features)

    def copy_with_heads(self, heads: Sequence[nn.Linear]) -> FusedNetwork:
        """The same frozen stages under other classifiers."""
        other = FusedNetwork(list(self.stages), heads, self.kind, self.merge)
        other.client_features = self.client_features
        return other

    def _compute_client_features(self, samples: Samples) -> ClientFeatures:
        chunk = choose_samples_per_chunk(self, samples)
        return run_in_chunks(
            lambda rows: torch.stack(self.compute_outputs_of_all_stages(rows)[-1]),
            samples,
            1,
            chunk,
        )

    def compute_outputs_of_all_stages(self, samples: Samples) -> FeatureMapsByStageAndClient:
        """The M outputs of every stage, bottom to top."""
        outputs: list[list[Tensor]] = []
        for stage in self.stages:
            if outputs:
                samples = join_client_outputs(self.kind, outputs[-1])
            outputs.append(stage(samples))
        return outputs

    def merge_features(self, features_of_each_client: Sequence[Features]) -> Features:
        """The M clients' last features `[N, D]` as one."""
        total = sum_tensors(features_of_each_client)
        if self.merge == "sum":
            return total
        return total / len(features_of_each_client)

    def features(self, samples: Samples) -> Features:
        return self.merge_features(self.compute_outputs_of_all_stages(samples)[-1])

    def classify_features(self, features_of_each_client: Sequence[Features]) -> Logits:
        """Logits `[N, C]` of the M clients' last features `[N, D]`."""
        if len(self.heads) == 1:
            return self.heads[0](self.merge_features(features_of_each_client))
        logits = [head(h) for head, h in zip(self.heads, features_of_each_client, strict=True)]
        return sum_tensors(logits) / len(features_of_each_client)

    def forward(self, samples: Samples) -> Logits:
        return self.classify_features(self.compute_outputs_of_all_stages(samples)[-1])


# --------------------------------------------------------------------------------------------------------------- report
# What a run of FuseFL leaves behind for pictures and lessons.


@dataclass(frozen=True, eq=False)
class FuseFLReport(Report):
    """K rounds with one block in each, M clients. Accuracies are 0-1.

    widths: [M] of the clients' networks
    shapes: [K] of the output of client 0's blocks
    home, outside: [K, M] accuracy of each client's model after each round, on its own training
        samples and on test samples; kept of small networks alone
    heads: {"own", "average" and perhaps "ccvr": accuracy of the same blocks under each classifier}
    block, sent: of a snapshot alone: the round, from 1 (K + 1: the classifier), and the bytes (up,
        down) so far
    """

    widths: list[int] | None = None
    shapes: list[list[int]] | None = None
    heads: dict[str, float] | None = None
    outside: list[list[float]] | None = None
    home: np.ndarray | None = None
    block: int | None = None
    sent: tuple[int, int] | None = None


# ---------------------------------------------------------------------------------------------------------------- model
# FuseFL's global model, and the copies of the clients' models that show how good each was after every round.

MOST_NUMBERS = 2**24  # in the copies of the clients' models; larger networks are not copied


class RoundCopies:
    """Copies of the M clients' models after each of the K rounds, for small networks alone.

    `models [K]`, and `home [K][M]`: accuracy of each on its own training samples. Both stay empty for large networks.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.is_small = True
        self.models: list[RoundModels] = []
        self.home: list[list[float]] = []

    def add_copies_and_accuracies_if_small(
        self, models: Sequence[Network], inputs: ClientInputs
    ) -> None:
        """Client part, at the end of a round: add copies of the models, and their accuracies on training samples."""
        if not self.models:  # each model may carry a copy of the blocks of all clients below
            numbers = sum(count_parameters(model) for model in models)
            self.is_small = numbers * len(models) * self.blocks <= MOST_NUMBERS
        if not self.is_small:
            return
        copies = RoundModels(copy.deepcopy(list(models)), inputs)
        self.models.append(copies)
        accuracies = []
        for model, (x, y) in zip(copies.modules, inputs.shards, strict=True):
            accuracies.append(compute_accuracy(run_in_chunks(model, x).argmax(1), y))
        self.home.append(accuracies)


class FusedModel(NetworkModel):
    """The fused network. `heads`: all classifiers that its blocks can have, each a list of one or M layers.

    `rounds [K]`: the clients' models after each round, of small networks alone.
    """

    parts = ("module",)
    report: FuseFLReport

    def __init__(
        self,
        module: FusedNetwork,
        heads: Mapping[str, list[nn.Linear]] | None = None,
        rounds: Sequence[RoundModels] = (),
        report: FuseFLReport = FuseFLReport(),  # noqa: B008  (frozen)
    ) -> None:
        super().__init__(module, report)
        self.heads = heads or {}
        self.rounds = rounds

    def copy_with_calibrated_head(self, head: nn.Linear, bytes_up_and_down: UpDown) -> FusedModel:
        """This model under a calibrated classifier; `bytes_up_and_down`: (up, down), for the report."""
        network = self.module.copy_with_heads([head])
        heads = {**self.heads, "ccvr": [head]}
        return FusedModel(network, heads, self.rounds, replace(self.report, sent=bytes_up_and_down))

    @torch.no_grad()
    def logits(self, samples: Samples) -> Logits:
        return self.module.classify_features(self.module.client_features(samples))

    def features(self, samples: Samples) -> Features:
        return self.module.merge_features(self.module.client_features(samples))

    @torch.no_grad()
    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> FuseFLReport:
        features = self.module.client_features(samples)
        heads = {}
        for name, layers in self.heads.items():
            logits = self.module.copy_with_heads(layers).classify_features(features)
            heads[name] = compute_accuracy(logits.argmax(1), labels)
        outside = []
        for models in self.rounds:
            outside.append(
                [compute_accuracy(logits.argmax(1), labels) for logits in models.logits(samples)]
            )
        return replace(self.report, heads=heads, outside=outside or None, block=None, sent=None)
