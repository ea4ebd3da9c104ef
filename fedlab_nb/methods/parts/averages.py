"""Robust averages of M models, which a few poisoned ones cannot move far. `assumed` (f) is how many
may be poisoned.

- `median`: the median of every number (Yin et al., ICML 2018);
- `trimmed`: the mean of every number without its f largest and f smallest values (Yin et al., ICML 2018);
- `krum`: the one model with the smallest total distance to its M - f - 2 nearest others (Blanchard et al., NeurIPS
  2017). It can be computed for M ≥ f + 3; their proof needs M > 2 f + 2.

They assume that the models of honest clients are similar, which is wrong for clients with different
classes. None weights clients by their sample counts, since a poisoned client could claim to have
many samples.

Below them are servers that use the clients' mean change as a gradient (FedAdam and similar ones).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor, nn

from ...errors import UsageError, check_allowed_name
from ...models.state import ModelState
from ...tensor_types import ClientShares, Labels, ParameterVector, Samples
from ...value_types import ClientIndex
from ..base import KnobField, NetworkModel, Report, knob, weighted_mean
from ..run_outputs import AccuracyByRule

MeanMedianTrimmedOrKrum = Literal["mean", "median", "trimmed", "krum"]
RULES: tuple[MeanMedianTrimmedOrKrum, ...] = get_args(MeanMedianTrimmedOrKrum)
State = Mapping[str, Tensor]


def make_average_rule_knob() -> KnobField:
    """The field `average` of the methods that average models."""
    return knob("mean", "Average", options=RULES)


def make_assumed_liars_knob() -> KnobField:
    """The field `assumed`, which belongs to `average`."""
    return knob(2, "Poisoned clients assumed", symbol="f", low=0, high=1000)


def check_average_is_possible(
    rule: MeanMedianTrimmedOrKrum, assumed_liars: int, client_count: int, method_title: str
) -> None:
    """UsageError if so few clients cannot be averaged by `rule`."""
    least = {"trimmed": 2 * assumed_liars + 1, "krum": assumed_liars + 3}.get(rule, 1)
    if client_count < least:
        raise UsageError(
            f"{method_title}: {rule}, assumed={assumed_liars} needs {least} clients or "
            f"more, but there are {client_count}."
        )


def average_states(
    client_states: Sequence[State],
    client_weights: Sequence[float],
    rule: MeanMedianTrimmedOrKrum,
    assumed_liars: int,
) -> ModelState:
    """One state from `client_states` by `rule` (one of RULES); only the mean uses the `client_weights`."""
    if rule == "mean":
        return weighted_mean(client_states, client_weights)
    if rule == "krum":
        return dict(client_states[choose_krum_client(client_states, assumed_liars)])
    cut = (len(client_states) - 1) // 2 if rule == "median" else assumed_liars
    average = {}
    for name in client_states[0]:
        average[name] = compute_trimmed_mean(
            torch.stack([state[name] for state in client_states]), cut
        )
    return average


def compute_trimmed_mean(client_values: Tensor, trimmed_per_side: int) -> Tensor:
    """Means over the first axis of `client_values [M, ...]`, without the largest and smallest so many at each place."""
    return (
        client_values.sort(0)
        .values[trimmed_per_side : len(client_values) - trimmed_per_side]
        .mean(0)
    )


def flatten_state_into_vector(state: State, tensor_names: Sequence[str]) -> ParameterVector:
    """`[d]`: the tensors `tensor_names` of a state one after the other."""
    return torch.cat([state[name].flatten() for name in tensor_names])


def split_vector_into_tensors(
    vector: ParameterVector, template_state: State, tensor_names: Sequence[str]
) -> ModelState:
    """The tensors that `flatten_state_into_vector` made `vector [d]` from, in the shapes of `template_state`."""
    pieces = vector.split([template_state[name].numel() for name in tensor_names])
    return {
        name: piece.view(template_state[name].shape)
        for name, piece in zip(tensor_names, pieces, strict=True)
    }


def choose_krum_client(client_states: Sequence[State], assumed_liars: int) -> ClientIndex:
    """The client whose model has the smallest sum of squared distances to its M - f - 2 nearest others."""
    rows = []
    for state in client_states:
        rows.append(torch.cat([tensor.flatten().double() for tensor in state.values()]))
    vectors = torch.stack(rows)
    squares = torch.stack([(vectors - row).square().sum(1) for row in vectors])
    nearest = squares.sort(1).values
    nearest = nearest[
        :, 1 : len(client_states) - assumed_liars - 1
    ]  # the first is the model itself
    return int(nearest.sum(1).argmin())


# --------------------------------------------------------------------------------------------------------------- merged
@dataclass(frozen=True, eq=False)
class MergeReport(Report):
    """The report of a merged network.

    average_accuracy: test accuracy, 0–1, of the plain average of the same networks, if the server has it
    """

    average_accuracy: float | None = None

    def get_accuracies_under_other_rules(self) -> AccuracyByRule:
        if self.average_accuracy is None:
            return {}
        return {"plain average": self.average_accuracy}


class MergedModel(NetworkModel):
    """The merged network. The plain `average` of the same clients is measured, too, if the server
    has it.
    """

    def __init__(self, module: nn.Module, report: MergeReport, average: nn.Module | None) -> None:
        super().__init__(module, report)
        self.average = None if average is None else NetworkModel(average)

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> MergeReport:
        report: Any = self.report
        if self.average is None:
            return report
        return replace(report, average_accuracy=self.average.accuracy(samples, labels))


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

ParameterTensors = TypeVar("ParameterTensors", Tensor, dict[str, Tensor])

# Adam on the mean change; the same with a step size that shrinks more slowly; the plain mean of the parameters.
FedAvgFedAdamOrFedYogi = Literal["fedadam", "fedyogi", "fedavg"]
SERVER_OPTIMIZERS: tuple[FedAvgFedAdamOrFedYogi, ...] = get_args(FedAvgFedAdamOrFedYogi)
BETA1 = 0.9
BETA2 = 0.99

OptimizerMoments = tuple[Any, Any]  # m and v, shaped as the parameters


def make_zero_optimizer_moments(parameters: ParameterTensors) -> OptimizerMoments:
    """m_0 = v_0 = 0."""
    m = _apply_to_each_tensor(torch.zeros_like, parameters)
    v = _apply_to_each_tensor(torch.zeros_like, parameters)
    return m, v


def compute_mean_parameter_change(
    client_shares: ClientShares | list[float],
    client_parameters: list[ParameterTensors],
    server_parameters: ParameterTensors,
) -> ParameterTensors:
    """`delta = sum_i w_i (received_i - server_parameters)`; the weights are expected to sum to 1."""

    def change(start: Tensor, *ends: Tensor) -> Any:
        return sum(float(w) * (end - start) for w, end in zip(client_shares, ends, strict=True))

    return _apply_to_each_tensor(change, server_parameters, *client_parameters)


class ParametersAndMoments(NamedTuple):
    """The parameters after a step, and the optimizer's moments."""

    parameters: Any
    moments: OptimizerMoments


def compute_server_optimizer_step(
    optimizer: FedAvgFedAdamOrFedYogi,
    parameters: ParameterTensors,
    mean_change: ParameterTensors,
    moments: OptimizerMoments,
    *,
    lr: float = 1.0,
    tau: float = 1e-3,
    beta1: float = BETA1,
    beta2: float = BETA2,
) -> ParametersAndMoments:
    """One server step: new parameters and new moments; nothing is changed in place. UsageError for an unknown name.

    >>> state = make_zero_optimizer_moments(torch.zeros(1))
    >>> compute_server_optimizer_step("fedadam", torch.zeros(1), torch.ones(1), state, lr=0.1)[0]
    tensor([0.0990])

    That is 0.1 * 0.1 / (sqrt(0.01) + 0.001).
    """
    check_allowed_name("server optimizer", optimizer, SERVER_OPTIMIZERS)
    if optimizer == "fedavg":
        return ParametersAndMoments(
            _apply_to_each_tensor(lambda p, d: p + lr * d, parameters, mean_change), moments
        )
    m, v = moments
    m = _apply_to_each_tensor(lambda m, d: beta1 * m + (1 - beta1) * d, m, mean_change)
    if optimizer == "fedadam":
        v = _apply_to_each_tensor(lambda v, d: beta2 * v + (1 - beta2) * d * d, v, mean_change)
    else:
        v = _apply_to_each_tensor(
            lambda v, d: v - (1 - beta2) * d * d * torch.sign(v - d * d), v, mean_change
        )
    new = _apply_to_each_tensor(lambda p, m, v: p + lr * m / (v.sqrt() + tau), parameters, m, v)
    return ParametersAndMoments(new, (m, v))


def _apply_to_each_tensor(
    function: Callable[..., Tensor], *values: ParameterTensors
) -> ParameterTensors:
    """`function` of tensors, or name by name of dicts of tensors."""
    first = values[0]
    if not isinstance(first, dict):
        return function(*values)
    result = {}
    for name in first:
        result[name] = function(*(value[name] for value in values))
    return result
