"""Low-rank changes of a network (LoRA) that are sent once, and a bound of how far the results of
one and of many rounds are apart (Wang et al., *Revisiting Federated Fine-Tuning: A Single
Communication Round is Enough for Foundation Models*, arXiv 2412.04650).

Every linear layer but the last is W = W_0 + B A. A `[r, inputs]` has orthonormal rows, is drawn
from a seed, the same at all clients, and is not trained (FFA-LoRA, Sun et al., ICLR 2024); B
`[outputs, r]` starts at 0. A step of SGD on B moves W by -η G AᵀA. So the plain network can be
trained with its gradient G projected. The last layer is trained as a whole, all others stay as they
were. With the same A for all clients, the mean of the B_k A is the mean of the B_k times A, so
averaging loses nothing; it would if each client had an A of its own.

One round or T rounds: from the same w_0, T rounds of k steps and one round of T k steps see the same batches. The
distance of their results is

    ‖ε‖ ≤ 2 η L τ T k ‖w_0‖

if gradients are L-Lipschitz and no client is ever farther than τ ‖w_0‖ from w_0, since the two
gradients of each step are taken at points at most 2 τ ‖w_0‖ apart. (The paper's bound, LτTkm ‖w_0‖
for m clients, as we know it from a summary, has another constant.) The bound is very loose, since
it adds up the worst case of every step: in the tests the distance is a small part of it. Large
pretrained networks have a small τ, a classroom's network has not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ...models import Network
from ...models.state import ModelState
from ..context import ClientIndex

State = Mapping[str, Tensor]
LoraMessage = Mapping[
    str, Tensor
]  # B of each adapted layer and the whole last layer, by parameter name


class LoraAdapters:
    """Low-rank changes of the linear layers of a model.

    `maps`: A of every linear layer of `model` except the last, by the name of its weight.

    `last`: the names of the last layer's parameters, which are trained as a whole.
    """

    def __init__(self, model: Network, rank: int, stream: torch.Generator) -> None:
        self.last = tuple(f"classifier.{name}" for name, _ in model.classifier.named_parameters())
        self.maps: dict[str, Tensor] = {}
        for name, layer in model.named_modules():
            if isinstance(layer, nn.Linear) and layer is not model.classifier:
                size = (layer.in_features, min(rank, layer.in_features))
                columns = torch.randn(size, generator=stream, dtype=torch.float64)
                self.maps[f"{name}.weight"] = torch.linalg.qr(columns).Q.T.to(layer.weight)

    def limit_weight_gradients_to_trained_numbers_in_place(
        self,
        clients: Sequence[ClientIndex],
        parameters_by_name: State,
        gradients_stacked_over_clients: Sequence[Tensor],
    ) -> None:
        """Project the gradients of a clients `[a, ...]`, one tensor a parameter, to the numbers that are trained.

        G becomes G AᵀA for an adapted weight, 0 for a parameter that is not trained. This is a
        `training.loop.InPlaceGradientAdjustment`; the adapters are the same for all `clients`.
        """
        for name, gradient in zip(parameters_by_name, gradients_stacked_over_clients, strict=True):
            if name in self.maps:
                a = self.maps[name]
                gradient.copy_(gradient @ a.T @ a)
            elif name not in self.last:
                gradient.zero_()

    def make_message(self, start_state: State, end_state: State) -> LoraMessage:
        """A client's message: B of each layer, and the last layer."""
        message = {
            name: (end_state[name] - start_state[name]) @ a.T for name, a in self.maps.items()
        }
        for name in self.last:
            message[name] = end_state[name]
        return message

    def merge_message_or_mean_message(
        self, start_state: State, message_or_mean: LoraMessage
    ) -> ModelState:
        """The network `start_state` with a `make_message`, or with the mean of messages, put in."""
        state = {**start_state, **message_or_mean}
        for name, a in self.maps.items():
            state[name] = start_state[name] + message_or_mean[name] @ a
        return state
