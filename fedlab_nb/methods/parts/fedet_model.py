"""What Fed-ET returns: the server's network, and beside it what the rounds looked like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import RunError
from ...models import parameter_count
from ...training import ClientModels
from ..base import NetworkModel
from .consensus import Consensus

SHOWN = 200  # public samples whose votes are kept for the pictures


class LargeModel(NetworkModel):
    """The server's network. `small_before` and `small`: one averaged model an architecture, before and after the
    server's head is copied into it; `small` is what the next round would start from."""

    def __init__(
        self, module: nn.Module, small_before: ClientModels, small: ClientModels, diary: Diary, public: Tensor
    ) -> None:
        super().__init__(module, artefacts=diary.artefacts(public), numbers=diary.numbers(public))
        self.small_before, self.small = small_before, small
        self.numbers["small_parameters"] = small.parameters


class Diary:
    """Kept for the lesson, round by round."""

    def __init__(self, kinds: Sequence[tuple]) -> None:
        self.kinds = kinds
        self.rounds: list[dict] = []
        self.said: Consensus | None = None
        self.numbers_sent = 0

    def add(self, chosen: Sequence[int], clients: ClientModels, said: Consensus, losses: Sequence[Tensor]) -> None:
        """One round: who took part with which models, what they said together, the server's loss at each step."""
        self.said = said
        self.numbers_sent += 2 * sum(parameter_count(module) for module in clients.modules)
        self.rounds.append(
            {
                "chosen": list(chosen),
                "dissent": said.dissent_fraction,
                "effective_clients": float(said.effective_clients.mean()),
                "loss": torch.stack(list(losses)).cpu().numpy(),
            }
        )

    def artefacts(self, public: Tensor) -> dict[str, np.ndarray]:
        """Arrays of the T rounds and of the last one's first B <= 200 public samples.

        `chosen` [T, m] client ids; `dissent`, `effective_clients` [T]; `loss` [T, τ_s]. Of the last round: `votes`
        [m, B, N] (softmax outputs), `weights` [m, B] (α), `consensus` [B] (y_s), `dissenters` [m, B], `mass` [B] (ρ),
        `diversity` [B, N] (s_div), and `samples` [B, ...].
        """
        arrays = {name: np.array([of[name] for of in self.rounds]) for name in self.rounds[0]}
        said = self.said
        last = {
            "votes": said.outputs[:, :SHOWN],
            "weights": said.weights[:, :SHOWN],
            "consensus": said.labels[:SHOWN],
            "dissenters": said.dissent[:, :SHOWN],
            "mass": said.mass[:SHOWN],
            "diversity": said.diversity[:SHOWN],
            "samples": public[:SHOWN],
        }
        return arrays | {name: tensor.cpu().numpy() for name, tensor in last.items()}

    def numbers(self, public: Tensor) -> dict:
        """`numbers_sent` is the paper's cost: model parameters, down and up, all chosen clients and rounds."""
        return {
            "architectures": [kind[0] if kind[3] is None else f"{kind[0]}:{kind[3]}" for kind in self.kinds],
            "public_samples": len(public),
            "numbers_sent": self.numbers_sent,
            "dissent": self.rounds[-1]["dissent"],
            "effective_clients": self.rounds[-1]["effective_clients"],
        }


def check_finite(model: nn.Module, what: str, rate: str) -> None:
    """RunError, saying `what` diverged with which `rate`, if the weights of `model` are not finite."""
    if not all(bool(p.isfinite().all()) for p in model.parameters()):
        raise RunError(f"{what} diverged with {rate}: its weights are no longer finite; use a smaller learning rate.")
