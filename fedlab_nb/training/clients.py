"""M trained client models behind one interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..models import Network, load_state, model_state, parameter_count
from ..models.state import copy_model
from .evaluate import run_cached, run_in_chunks


def group_by_architecture(models: Sequence[Network]) -> dict[tuple, list[int]]:
    """Architecture -> the positions in `models` of those that have it."""
    groups: dict[tuple, list[int]] = {}
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

    def module(self, client: int) -> Network:
        """A client's model; treat it as read-only, every method shares it."""
        return self.modules[client]

    def state(self, client: int) -> dict[str, Tensor]:
        """Parameters and batch-norm statistics of a client, copied."""
        return model_state(self.modules[client])

    def states(self) -> list[dict[str, Tensor]]:
        """`state(k)` of every client."""
        return [model_state(module) for module in self.modules]

    @property
    def parameters(self) -> list[int]:
        """Trainable numbers of each client's model."""
        return [parameter_count(module) for module in self.modules]

    @property
    def groups(self) -> dict[tuple, list[int]]:
        """Architecture -> the clients that use it."""
        return group_by_architecture(self.modules)

    def logits(self, x: Tensor) -> Tensor:
        """Pre-softmax outputs of every client, `[M, N, C]`, without gradients."""
        return torch.stack([run_cached(module, x) for module in self.modules])

    def predict_in_turn(self, x: Tensor) -> Tensor:
        """Classes `[N]`: client k answers for x_k, x_(k+M), x_(k+2M), ..., so that all M together read each sample
        once."""
        classes = torch.empty(len(x), dtype=torch.long, device=x.device)
        for k, module in enumerate(self.modules[: len(x)]):
            logits = run_in_chunks(module, x[k :: len(self)])
            classes[k :: len(self)] = logits.argmax(1)
        return classes

    def features(self, x: Tensor) -> Tensor:
        """Penultimate features of every client, `[M, N, D]`, without gradients."""
        return torch.stack([run_cached(module.features, x) for module in self.modules])

    def with_states(self, states: Sequence[Mapping[str, Tensor]]) -> ClientModels:
        """The same architectures with other weights (e.g. as they were received)."""
        modules = []
        for module, state in zip(self.modules, states, strict=True):
            copied = copy_model(module)
            load_state(copied, state)
            modules.append(copied)
        return ClientModels(modules)
