"""Networks with one hidden layer as lists of neurons, which `pfnm.py` matches, and back."""

import numpy as np
import torch
from torch import Tensor, nn

from ...models import Network
from ...models.state import copied
from ...training import ClientModels
from .pfnm import grow
from .report import MatchingReport
from .wiring import wiring_of


def grown(
    uploaded: ClientModels, shares: Tensor, sigma: float, sigma0: float, mass: float, sweeps: int
) -> tuple[Network, MatchingReport]:
    """PFNM's network of the global neurons; `shares [M, C]`: of the classes that each client has; σ, σ0 and γ."""
    networks = [neurons_of(module) for module in uploaded.modules]
    width = networks[0][0].shape[1] - shares.shape[1]
    scale = torch.cat([torch.ones(len(shares), width), shares.cpu()], 1).double() / sigma**2
    result = grow([v for v, _ in networks], list(scale), spread=sigma0, mass=mass, sweeps=sweeps)
    biases = torch.stack([bias for _, bias in networks]) * scale[:, width:]
    bias = biases.sum(0) / (1 / sigma0**2 + scale[:, width:].sum(0))
    module = with_neurons(uploaded.module(0), result.neurons, bias)
    name, count = wiring_of(module).layers[0], len(result.neurons)
    members = np.stack([own.numpy() for own in result.members])
    moved = [float((own != np.arange(len(own))).mean()) for own in members]
    report = MatchingReport("pfnm", [name], [members.shape[1]], members, moved=moved, neurons=count)
    return module, report


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def one_hidden_layer(network: nn.Module) -> bool:
    """Whether all that `network` has learnt is in two linear layers."""
    layers = linear_layers(network)
    parts = {parameter for layer in layers for parameter in layer.parameters()}
    return len(layers) == 2 and set(network.parameters()) == parts and layers[0].bias is not None


def neurons_of(network: nn.Module) -> tuple[Tensor, Tensor]:
    """`[L, i + 1 + C]`: each neuron's incoming weights, bias, outgoing weights; and the biases of the classes `[C]`."""
    hidden, last = linear_layers(network)
    together = torch.cat([hidden.weight, hidden.bias[:, None], last.weight.T], 1).detach().cpu().double()
    return together, last.bias.detach().cpu().double()


def with_neurons(network: Network, neurons: Tensor, bias: Tensor) -> Network:
    """A network like `network` with these `neurons [J, i + 1 + C]` and biases of the classes `[C]`."""
    twin = copied(network)
    hidden, last = linear_layers(twin)
    inputs = hidden.in_features
    parts = neurons.to(hidden.weight).split([inputs, 1, neurons.shape[1] - inputs - 1], 1)
    hidden.weight, hidden.bias = nn.Parameter(parts[0].contiguous()), nn.Parameter(parts[1][:, 0].contiguous())
    last.weight, last.bias = nn.Parameter(parts[2].T.contiguous()), nn.Parameter(bias.to(hidden.weight))
    hidden.out_features = last.in_features = len(neurons)
    name, shape, classes, _ = twin.architecture
    twin.architecture = (name, shape, classes, len(neurons))
    return twin
