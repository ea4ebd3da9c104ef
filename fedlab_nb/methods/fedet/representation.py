"""One representation for many architectures: networks of any body that end in a head of the same shape (Fed-ET).

    logits = classifier(hidden(adapter(body(x))))

`body` is any architecture of this package without its own classifier. `adapter`, Linear(F, r) and ReLU, brings its F
features to the common width r and stays its own. The head, which Fed-ET carries from client to server and back, is all
that follows: "mlp" is hidden = Linear(r, r) and ReLU, and the classifier; "last-linear" the classifier alone. There are
only leaf layers, so that these networks stack like any other.

Finding: in one shot a common head costs accuracy (Fed-ET's classroom preset on validation images, seeds 100-103: .72
without, .52 with transfer=both or down, so it is the deeper clients, not the mean of heads).
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ...errors import choose
from ...models import Network
from ...models.build import initialise
from ..base import weighted_mean

HEADS = ("mlp", "last-linear")
HEAD = ("hidden.", "classifier.")  # beginnings of the names of what is transferred

State = dict[str, Tensor]


class Represented(Network):
    """`base` with an adapter and a head of width `width`; `base`'s classifier is dropped, its body moves in."""

    def __init__(self, base: Network, width: int, head: str = "mlp", *, generator: torch.Generator) -> None:
        name, input_shape, classes, own = base.architecture
        like = base.classifier.weight
        with torch.device("meta"):  # no draw from the global random state
            super().__init__([], width, (name, input_shape, classes, own, width, head))
            adapter = nn.Sequential(nn.Linear(base.classifier.in_features, width), nn.ReLU())
            wide = choose("head", head, HEADS) == "mlp"
            hidden = nn.Sequential(nn.Linear(width, width), nn.ReLU()) if wide else nn.Identity()
        self.body, self.adapter, self.hidden = base.body, adapter, hidden
        for part in (self.adapter, self.hidden, self.classifier):
            initialise(part.to_empty(device=like.device).to(like.dtype), generator)

    def features(self, x: Tensor) -> Tensor:
        return self.hidden(self.adapter(self.body(x)))


def head_of(state: Mapping[str, Tensor]) -> State:
    """The transferred part of a state, h: the same names and shapes whatever the body."""
    return {name: tensor for name, tensor in state.items() if name.startswith(HEAD)}


def mean_head(states: Iterable[Mapping[str, Tensor]]) -> State:
    """h̄ = (1/m) Σ_k h_k over clients of any architectures, all counting alike."""
    heads = [head_of(state) for state in states]
    return weighted_mean(heads, [1] * len(heads))


def with_head(state: Mapping[str, Tensor], head: Mapping[str, Tensor]) -> State:
    """`state` with its head overwritten by `head`, body and adapter as they were."""
    return {**state, **head}


def group_means(
    table: Mapping[tuple, State], states: Sequence[Mapping[str, Tensor]], kinds: Sequence[tuple]
) -> dict[tuple, State]:
    """θ^i <- (1/|S_i|) Σ_{k in S_i} θ_k for every architecture i; what nobody brought stays as it is in `table`.

    `states[j]` is that of the j-th client of the round, `kinds[j]` its architecture.
    """
    means = {}
    for kind, before in table.items():
        own = [state for state, its in zip(states, kinds, strict=True) if its == kind]
        means[kind] = weighted_mean(own, [1] * len(own)) if own else before
    return means
