"""Fisher merging: an average of the models in which each parameter of a client counts by how
certain the client is of it (Matena & Raffel, NeurIPS 2022).

A client's posterior is approximated by a Gaussian around its trained weights θ_k. Its precision is
the diagonal of the Fisher matrix, F_k = E_x E_y (∂ log p(y|x, θ_k)/∂θ)². The product of these
Gaussians has its mean at

    θ̄ = Σ_k w_k (F_k + λ_damp) θ_k / Σ_k w_k (F_k + λ_damp),          element by element.

labels="model", as in Matena & Raffel: y ~ p(y|x, θ_k), the model's own prediction. With up to MOST
classes the expectation over y is exact and takes one pass for each class; with more classes, one
label is drawn for each sample. labels="true": the samples' own labels, which gives the "empirical"
Fisher of FedLPA and the "DiagonalFisher" baseline of its paper. λ_damp acts as a prior: for a
weight that no client's data determine, and for all weights as λ_damp → ∞, the result is the plain
weighted average. Traffic of one client: 4d down, 2·4d up. FedLPA's *factor diagonals*
(`solve_layer_with_part_of_precision` in `fedlpa/server.py`) are something else: the damped diagonals of A
and B.

Departures: λ_damp is ours; Matena & Raffel instead replace a Fisher value of 0 by a small number, and FedLPA's paper
gives no λ_damp. w_k = n_k/N, as everywhere here; in the paper these weights are free. Batch norm's running statistics
have no Fisher value and are averaged with w_k.

A diagonal cannot know that two networks order their units differently, so the clients must start from the same weights.
Test accuracies on the digits, beside averaging and FedLPA: course/fedlpa/figures.toml.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import check_allowed_name
from ..models.state import ModelState, copy_model
from ..tensor_types import FeatureMaps, Labels, LayerMatrix, Samples, TensorsByName
from ..training.evaluate import run_in_chunks
from .base import (
    Context,
    GlobalModel,
    Method,
    NetworkModel,
    Steps,
    knob,
    register,
    weighted_mean,
)
from .parts.kronecker import (
    append_bias_column,
    copy_state_with_layers,
    find_layers_with_kronecker_factors,
    flatten_layer_inputs_with_bias_one,
    flatten_output_gradients,
    iterate_layer_inputs_and_gradients,
)
from .traffic import FederationSizes, RunBytesUpPlusDown

NORMS = (nn.BatchNorm2d, nn.GroupNorm)
LabelSource = Literal["model", "true"]
LABELS: tuple[LabelSource, ...] = get_args(LabelSource)
MOST = 32  # classes up to which the expectation over the model's labels is a sum


@register(
    "fisher_merge",
    title="Fisher merging",
    group="Average weights",
    paper="Matena & Raffel, NeurIPS 2022",
    traffic="3 S_θ",
    needs=["one architecture"],
    extra="one more pass over the training data",
    sends="its network + squared gradients",
    leaks="each client's model, its mean squared gradients and sample count",
    forgets="its model and its squared gradients leave the weighted average",
)
class FisherMerge(Method):
    """Average the weights. Each number counts by how sure its client is of it."""

    damping: float = knob(1e-6, "Damping", symbol="λ_damp", low=1e-12, high=1e3, log=True)

    labels: LabelSource = knob("model", "Labels", options=LABELS)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        fisher = sizes.clients * sizes.parameter_bytes
        return RunBytesUpPlusDown(sizes.one_shot_bytes.bytes + fisher)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone; one more pass for the Fisher diagonal; upload both.
        clients = yield from ctx.local_training()

        def measure_fisher(k: int) -> dict[str, Any]:
            x, y = ctx.private.train(k)
            stream = ctx.generator("fisher_merge", "labels", k)
            fisher = compute_diagonal_fisher(
                clients.module(k), x, y, label_source=self.labels, stream=stream
            )
            return {"state": clients.state(k), "fisher": fisher}

        phase = "models and Fisher diagonals"
        received = yield from ctx.collect("Fisher pass", measure_fisher, phase=phase)
        # Server: the weighted average, number by number.
        with ctx.server():
            states = [upload["state"] for upload in received]
            fishers = [upload["fisher"] for upload in received]
            return NetworkModel(
                ctx.new_model(average_states_by_fisher(states, fishers, ctx.sizes, self.damping))
            )


NamedTensors = Mapping[str, Tensor]


def average_states_by_fisher(
    client_states: Sequence[NamedTensors],
    client_fishers: Sequence[NamedTensors],
    client_weights: Sequence[float],
    damping: float,
) -> ModelState:
    """θ̄ from the clients' states and Fisher diagonals; a tensor without a diagonal is averaged
    with the weights.
    """
    merged = weighted_mean(client_states, client_weights)
    total_weight = sum(client_weights)
    for name in client_fishers[0]:
        precisions = []
        for weight, fisher in zip(client_weights, client_fishers, strict=True):
            precisions.append(weight / total_weight * (fisher[name] + damping))
        total = torch.zeros_like(merged[name])
        for precision, state in zip(precisions, client_states, strict=True):
            total = total + precision * state[name]
        merged[name] = total / sum(precisions)
    return merged


def compute_diagonal_fisher(
    module: nn.Module,
    samples: Samples,
    true_labels: Labels,
    *,
    label_source: LabelSource = "true",
    stream: torch.Generator | None = None,
    batch_size: int = 32,
) -> TensorsByName:
    """`F = 1/n Σ_s E_y (∂ℓ_s/∂θ)²` by parameter, ℓ the cross-entropy of one sample with label y, at
    θ as it is.

    samples, true_labels: `[n, ...]` and `[n]`
    label_source: one of LABELS (UsageError for another); with more than MOST classes, "model" draws
        the labels from `stream`, a CPU generator
    batch_size: only bounds the memory

    Only parameters of Linear, Conv2d, BatchNorm2d and GroupNorm layers are included. The module
    runs in eval mode and is left as it was.

    This is the mean of the squared gradients, not the square of the mean gradient, so each sample's
    own gradient is needed. It is computed from what passes through each layer: a sample's gradient
    of a layer's weights is the sum, over the layer's positions, of output gradient times input.
    """
    check_allowed_name("labels of the Fisher", label_source, LABELS)
    kinds = (nn.Linear, nn.Conv2d, *NORMS)
    find_layers_with_kronecker_factors(
        module
    )  # called for its UsageError: it refuses convolutions with groups
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, kinds)}
    # Linear and Conv2d: [o, i], the bias being the last column. Normalisations: [C, 2], scale and shift.
    total = {}
    for name, layer in layers.items():
        total[name] = torch.zeros_like(append_bias_column(layer.weight, layer.bias).detach())
    passes: Iterable[tuple[Tensor, Tensor | None]] = [(true_labels, None)]
    if label_source == "model":
        passes = _iterate_labels_and_model_probabilities(module, samples, stream, batch_size)
    for target, probability in passes:
        # Squared gradients are to be weighted by p, so the gradients are multiplied by √p.
        roots = None
        if probability is not None:
            roots = probability.sqrt().split(batch_size)
        batches = iterate_layer_inputs_and_gradients(module, layers, samples, target, batch_size)
        for i, batch in enumerate(batches):
            for name, (inputs, gradient) in batch.items():
                if roots is not None:
                    other_axes = [1] * (gradient.dim() - 1)
                    gradient = gradient * roots[i].view(-1, *other_axes)
                total[name] += _sum_squared_sample_gradients(layers[name], inputs, gradient)
    means = {name: squares / len(samples) for name, squares in total.items()}
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}
    fisher = copy_state_with_layers(parameters, means)
    return {name: fisher[name] for name in parameters if name.rpartition(".")[0] in layers}


class LabelsAndProbabilities(NamedTuple):
    """Labels `[n]`, and the probabilities `[n]` that the model gives them; None if the labels were
    drawn.
    """

    labels: Tensor
    probabilities: Tensor | None


@torch.no_grad()
def _iterate_labels_and_model_probabilities(
    module: nn.Module, samples: Samples, stream: torch.Generator | None, batch_size: int
) -> Iterator[LabelsAndProbabilities]:
    """Labels `[n]` and their probabilities `[n]` under the model's own prediction of `samples [n,
    ...]`.

    Yields one pair for each class; with more than MOST classes a single pair of drawn labels and
    None.
    """
    frozen = copy_model(module).eval()
    probabilities = run_in_chunks(
        lambda chunk: frozen(chunk).softmax(1), samples, samples_per_chunk=batch_size
    )
    classes = probabilities.shape[1]
    if classes > MOST:
        # A label is where a uniform number falls in the cumulative distribution.
        u = torch.rand(len(samples), 1, generator=stream, dtype=torch.float64)
        is_below = probabilities.double().cumsum(1) < u.to(probabilities.device)
        drawn_labels = is_below.sum(1).clamp(max=classes - 1)
        yield LabelsAndProbabilities(drawn_labels, None)
    else:
        for c in range(classes):
            labels = torch.full((len(samples),), c, device=samples.device)
            yield LabelsAndProbabilities(labels, probabilities[:, c])


def _sum_squared_sample_gradients(
    layer: nn.Module, layer_inputs: FeatureMaps, output_gradient: FeatureMaps
) -> LayerMatrix:
    """Σ over the batch of the squared gradient of each sample's loss, as a matrix `[o, i]`."""
    if isinstance(layer, NORMS):
        normalised_inputs = _normalise_inputs_without_scale(layer, layer_inputs)
        scale_gradient = (output_gradient * normalised_inputs).sum((2, 3))
        shift_gradient = output_gradient.sum((2, 3))
        return torch.stack([scale_gradient, shift_gradient], -1).square().sum(0)
    rows = flatten_layer_inputs_with_bias_one(layer, layer_inputs)  # [b, T, i]
    slopes = flatten_output_gradients(layer, output_gradient).unflatten(
        0, rows.shape[:2]
    )  # [b, T, o]
    if rows.shape[1] == 1:  # one position: the square of a product is the product of the squares
        return slopes[:, 0].square().T @ rows[:, 0].square()
    return (slopes.transpose(1, 2) @ rows).square().sum(0)


def _normalise_inputs_without_scale(
    normalisation_layer: nn.Module, layer_inputs: FeatureMaps
) -> FeatureMaps:
    """The normalised input, in eval mode, before it is multiplied by the layer's scale."""
    if isinstance(normalisation_layer, nn.GroupNorm):
        return F.group_norm(
            layer_inputs, normalisation_layer.num_groups, eps=normalisation_layer.eps
        )
    mean = normalisation_layer.get_buffer("running_mean")[:, None, None]
    variance = normalisation_layer.get_buffer("running_var")[:, None, None]
    deviation = (variance + float(normalisation_layer.eps)).sqrt()  # type: ignore[arg-type]
    return (layer_inputs - mean) / deviation
