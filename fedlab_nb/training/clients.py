"""M trained client models behind one interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..models import Network, copy_model_state, count_parameters, load_state
from ..models.network import Architecture
from ..models.state import ModelState, copy_model
from ..tensor_types import ClientFeatures, ClientLogits, Predictions, Samples
from ..value_types import ClientIndex
from .evaluate import run_in_chunks, run_in_chunks_with_cache

ClientsByArchitecture = dict[Architecture, list[int]]  # numbers of the clients, from 0


def group_clients_by_architecture(models: Sequence[Network]) -> ClientsByArchitecture:
    """Architecture -> the positions in `models` of those that have it."""
    groups: dict[Architecture, list[int]] = {}
    for k, model in enumerate(models):
        groups.setdefault(model.architecture, []).append(k)
    return groups


class ClientModels:
    """The clients' plain models, in eval mode, client k at index k.

    `logits(x) -> [M, N, C]` and `features(x) -> [M, N, D]` (one feature width only) run every model on the same
    samples.
    """

    parts = ("modules",)

    def __init__(self, modules: Sequence[Network]) -> None:
        self.modules = [module.eval() if module.training else module for module in modules]

    def __len__(self) -> int:
        return len(self.modules)

    def module(self, client: ClientIndex) -> Network:
        """A client's model; treat it as read-only, every method shares it."""
        return self.modules[client]

    def state(self, client: ClientIndex) -> ModelState:
        """Parameters and batch-norm statistics of a client, copied."""
        return copy_model_state(self.modules[client])

    def states(self) -> list[ModelState]:
        """`state(k)` of every client."""
        return [copy_model_state(module) for module in self.modules]

    @property
    def parameters(self) -> list[int]:
        """Trainable numbers of each client's model."""
        return [count_parameters(module) for module in self.modules]

    @property
    def clients_by_architecture(self) -> ClientsByArchitecture:
        """Architecture -> the clients that use it."""
        return group_clients_by_architecture(self.modules)

    def logits(self, samples: Samples) -> ClientLogits:
        """Pre-softmax outputs of every client, `[M, N, C]`, without gradients."""
        return torch.stack([run_in_chunks_with_cache(module, samples) for module in self.modules])

    def predict_each_sample_by_one_client(self, samples: Samples) -> Predictions:
        """Classes `[N]`: client k answers for x_k, x_(k+M), x_(k+2M), ..., so that all M together read each sample
        once."""
        classes = torch.empty(len(samples), dtype=torch.long, device=samples.device)
        for k, module in enumerate(self.modules[: len(samples)]):
            logits = run_in_chunks(module, samples[k :: len(self)])
            classes[k :: len(self)] = logits.argmax(1)
        return classes

    def features(self, samples: Samples) -> ClientFeatures:
        """Penultimate features of every client, `[M, N, D]`, without gradients."""
        return torch.stack(
            [run_in_chunks_with_cache(module.features, samples) for module in self.modules]
        )

    def with_states(self, states: Sequence[Mapping[str, Tensor]]) -> ClientModels:
        """The same architectures with other weights (e.g. as they were received)."""
        modules = []
        for module, state in zip(self.modules, states, strict=True):
            copied = copy_model(module)
            load_state(copied, state)
            modules.append(copied)
        return ClientModels(modules)
