"""Robust averages of M models, which a few poisoned ones cannot move far. `assumed` (f): how many may be poisoned.

- `median`: the median of every number (Yin et al., ICML 2018);
- `trimmed`: the mean of every number without its f largest and f smallest values (Yin et al., ICML 2018);
- `krum`: the one model whose M - f - 2 nearest others are nearest in all (Blanchard et al., NeurIPS 2017). It
  can be computed from M = f + 3 on; what they prove of it needs M > 2 f + 2.

They assume that the models of honest clients are alike. Those of clients with different classes are not.
None weights clients by their samples: a poisoned one could claim that it has many.

Below them: servers that use the clients' mean change as a gradient (FedAdam and its kin).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ...errors import UsageError, choose
from ..base import NetworkModel, Report, knob, weighted_mean

RULES = ("mean", "median", "trimmed", "krum")
State = Mapping[str, Tensor]


def average_knob() -> Any:
    """The field `average` of the methods that average models."""
    return knob("mean", "Average", options=RULES)


def assumed_knob() -> Any:
    """The field `assumed`, which belongs to `average`."""
    return knob(2, "Poisoned clients assumed", symbol="f", low=0, high=1000)


def check_average(rule: str, assumed: int, clients: int, title: str) -> None:
    """UsageError if so few clients cannot be averaged by `rule`."""
    least = {"trimmed": 2 * assumed + 1, "krum": assumed + 3}.get(rule, 1)
    if clients < least:
        raise UsageError(
            f"{title}: {rule}, assumed={assumed} needs {least} clients or more,"
            f" but there are {clients}."
        )


def average_states(
    states: Sequence[State], weights: Sequence[float], rule: str, assumed: int
) -> dict[str, Tensor]:
    """One model from `states` by `rule` (one of RULES); only the mean uses the `weights`."""
    if rule == "mean":
        return weighted_mean(states, weights)
    if rule == "krum":
        return dict(states[choose_krum_state(states, assumed)])
    cut = (len(states) - 1) // 2 if rule == "median" else assumed
    average = {}
    for name in states[0]:
        average[name] = compute_trimmed_mean(torch.stack([state[name] for state in states]), cut)
    return average


def compute_trimmed_mean(values: Tensor, cut: int) -> Tensor:
    """Means over the first axis of `values [M, ...]` without the `cut` largest and smallest."""
    return values.sort(0).values[cut : len(values) - cut].mean(0)


def flatten_state(state: State, names: Sequence[str]) -> Tensor:
    """`[d]`: the tensors `names` of a state one after the other."""
    return torch.cat([state[name].flatten() for name in names])


def split_vector(values: Tensor, like: State, names: Sequence[str]) -> dict[str, Tensor]:
    """The tensors that `flatten_state` made the vector `values [d]` from; shapes are those of the state `like`."""
    pieces = values.split([like[name].numel() for name in names])
    return {name: piece.view(like[name].shape) for name, piece in zip(names, pieces, strict=True)}


def choose_krum_state(states: Sequence[State], assumed: int) -> int:
    """The index of the model with the smallest sum of squared distances to its M - f - 2 nearest others."""
    rows = []
    for state in states:
        rows.append(torch.cat([tensor.flatten().double() for tensor in state.values()]))
    vectors = torch.stack(rows)
    squares = torch.stack([(vectors - row).square().sum(1) for row in vectors])
    nearest = squares.sort(1).values
    nearest = nearest[:, 1 : len(states) - assumed - 1]  # the first is the model itself
    return int(nearest.sum(1).argmin())


# --------------------------------------------------------------------------------------------------------------- merged
@dataclass(frozen=True, eq=False)
class MergeReport(Report):
    """average_accuracy: test accuracy, 0–1, of the plain average of the same networks, where the server has it."""

    average_accuracy: float | None = None

    def others(self) -> dict[str, float]:
        if self.average_accuracy is None:
            return {}
        return {"plain average": self.average_accuracy}


class MergedModel(NetworkModel):
    """The merged network; the plain `average` of the same clients, where the server has it, is measured, too."""

    def __init__(self, module: nn.Module, report: MergeReport, average: nn.Module | None) -> None:
        super().__init__(module, report)
        self.average = None if average is None else NetworkModel(average)

    def measured(self, x: Tensor, y: Tensor) -> Any:
        report: Any = self.report
        if self.average is None:
            return report
        return replace(report, average_accuracy=self.average.accuracy(x, y))


# ---------------------------------------------------------------------------------------------------- server optimizers
# Server steps of federated optimisation: FedAvg, FedAdam, FedYogi (Reddi et al., ICLR 2021).
#
# The clients' weighted mean change `delta_t = sum_i w_i (theta_t^(i) - theta_t)` is used as a negative gradient:
#
#     FedAvg    theta_{t+1} = theta_t + lr * delta_t                                       (lr = 1: the plain average)
#     both      m_{t+1} = beta1 m_t + (1 - beta1) delta_t
#     FedAdam   v_{t+1} = beta2 v_t + (1 - beta2) delta_t^2
#     FedYogi   v_{t+1} = v_t - (1 - beta2) delta_t^2 sign(v_t - delta_t^2)
#     both      theta_{t+1} = theta_t + lr * m_{t+1} / (sqrt(v_{t+1}) + kappa)
#
# element-wise, with m_0 = v_0 = 0 and no bias correction. (Reddi et al. start v at kappa^2 or more. From 0 the first
# step is lr (1 - beta1) / sqrt(1 - beta2) = lr in every number whose change is much larger than kappa.) `kappa = 1e-3`
# (their tau, and the argument here) bounds how much a tiny change is magnified. The functions are pure: they return new
# values and leave their arguments alone. Parameters and changes are one tensor or a dict of tensors.

Values = TypeVar("Values", Tensor, dict[str, Tensor])

# Adam on the mean change; the same with a step size that shrinks more slowly; the plain mean of the parameters.
SERVER_OPTIMIZERS = ("fedadam", "fedyogi", "fedavg")
BETA1 = 0.9
BETA2 = 0.99

Moments = tuple[Any, Any]  # m and v, shaped as the parameters


def make_initial_moments(parameters: Values) -> Moments:
    """m_0 = v_0 = 0."""
    m = _map_tensors(torch.zeros_like, parameters)
    v = _map_tensors(torch.zeros_like, parameters)
    return m, v


def compute_mean_change(
    weights: Tensor | list[float], received: list[Values], parameters: Values
) -> Values:
    """`delta = sum_i w_i (received_i - parameters)`; the weights are expected to sum to 1."""

    def change(start: Tensor, *ends: Tensor) -> Any:
        return sum(float(w) * (end - start) for w, end in zip(weights, ends, strict=True))

    return _map_tensors(change, parameters, *received)


def take_server_step(
    name: str,
    parameters: Values,
    delta: Values,
    state: Moments,
    *,
    lr: float = 1.0,
    tau: float = 1e-3,
    beta1: float = BETA1,
    beta2: float = BETA2,
) -> tuple[Values, Moments]:
    """One server step: the new parameters and the new state. UsageError for an unknown name.

    >>> state = make_initial_moments(torch.zeros(1))
    >>> take_server_step("fedadam", torch.zeros(1), torch.ones(1), state, lr=0.1)[0]
    tensor([0.0990])

    That is 0.1 * 0.1 / (sqrt(0.01) + 0.001).
    """
    choose("server optimizer", name, SERVER_OPTIMIZERS)
    if name == "fedavg":
        return _map_tensors(lambda p, d: p + lr * d, parameters, delta), state
    m, v = state
    m = _map_tensors(lambda m, d: beta1 * m + (1 - beta1) * d, m, delta)
    if name == "fedadam":
        v = _map_tensors(lambda v, d: beta2 * v + (1 - beta2) * d * d, v, delta)
    else:
        v = _map_tensors(lambda v, d: v - (1 - beta2) * d * d * torch.sign(v - d * d), v, delta)
    new = _map_tensors(lambda p, m, v: p + lr * m / (v.sqrt() + tau), parameters, m, v)
    return new, (m, v)


def _map_tensors(function: Callable[..., Tensor], *values: Values) -> Values:
    """`function` of tensors, or name by name of dicts of tensors."""
    first = values[0]
    if not isinstance(first, dict):
        return function(*values)
    result = {}
    for name in first:
        result[name] = function(*(value[name] for value in values))
    return result
