"""Conditional variational auto-encoders, one a client, trained side by side; at the server, the decoders make samples.

Encoder q(z | x, y) and decoder p(x | z, y) are perceptrons with one hidden layer; the class enters both as a one-hot
vector. Loss of a sample, with x̂ decoded from one z drawn from q:

    -log p(x | z, y) + KL(q(z | x, y) ‖ N(0, I)),    -log p = Σ binary cross-entropy for images, ½ ‖x - x̂‖² for rows.

Clients are run as one stack (`training.stack`), each with its own random streams: nobody's numbers depend on who else
is there. No convolutions, no β, no learnt noise level.
"""

import itertools
from collections.abc import Iterator, Sequence
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...models.build import initialise
from ...training.kernels.stack import Stack
from ...training.loop import Shard
from ...training.optim import Adam

AHEAD = 64  # steps whose batches are drawn at once
TRUNCATED = 2.0  # latent coordinates beyond this many standard deviations are drawn anew (FedCVAE draws truncated, too)


class Cvae(nn.Module):
    """One client's pair of networks for samples of `input_shape` (images in [0, 1], or feature rows) and C classes."""

    def __init__(
        self, input_shape: tuple[int, ...], classes: int, latent: int, hidden: int, stream: torch.Generator
    ) -> None:
        super().__init__()
        self.input_shape, self.classes, self.latent = tuple(input_shape), classes, latent
        inputs = prod(input_shape)
        self.encoder = _perceptron(inputs + classes, hidden, 2 * latent, stream)
        self.decoder = _perceptron(latent + classes, hidden, inputs, stream)


@torch.no_grad()
def sample(
    decoder: nn.Module, labels: Tensor, latent: int, input_shape: tuple[int, ...], classes: int, stream: torch.Generator
) -> Tensor:
    """Samples `[n, *input_shape]` of the classes `labels [n]`: decoder means at z from a truncated standard normal."""
    z = torch.randn(len(labels), latent, generator=stream)
    while bool((far := z.abs() > TRUNCATED).any()):
        z[far] = torch.randn(int(far.sum()), generator=stream)
    one_hot = F.one_hot(labels, classes)
    reference = next(decoder.parameters())
    out = decoder(torch.cat([z.to(reference), one_hot.to(reference)], 1))
    return (out.sigmoid() if len(input_shape) == 3 else out).unflatten(1, input_shape)


def train_cvaes(
    cvaes: list[Cvae], shards: Sequence[Shard], streams: list[torch.Generator], *, steps: int, batch: int, lr: float
) -> Iterator[Tensor]:
    """`steps` steps of Adam for every client, in place; yields the mean loss `[M]` of each step's batches.

    `shards[k]` is `(x [n_k, ...], y [n_k])`. A batch is `batch` samples drawn with replacement, so that clients of
    every size take the same steps. Networks are up to date when the generator has ended.
    """
    first = cvaes[0]
    images = len(first.input_shape) == 3
    encoders, decoders = Stack([c.encoder for c in cvaes]), Stack([c.decoder for c in cvaes])
    leaves = [*encoders.use(len(cvaes)).values(), *decoders.use(len(cvaes)).values()]
    optimizer = Adam(leaves, lr)
    x, y = (torch.cat(part) for part in zip(*shards, strict=True))
    x, hot = x.flatten(1), F.one_hot(y, first.classes).to(x)
    sizes = [len(own) for own, _ in shards]
    starts = [0, *itertools.accumulate(sizes)]
    for step in range(steps):
        at = step % AHEAD
        if not at:
            ahead = min(AHEAD, steps - step)
            drawn = [torch.randint(n, (ahead, batch), generator=s) for n, s in zip(sizes, streams, strict=True)]
            rows = torch.stack([own + start for own, start in zip(drawn, starts, strict=False)], 1).to(x.device)
            noise = torch.stack([torch.randn(ahead, batch, first.latent, generator=s) for s in streams], 1).to(x)
        losses = elbo(encoders.forward, decoders.forward, x[rows[at]], hot[rows[at]], noise[at], images=images).mean(1)
        optimizer.step(torch.autograd.grad(losses.sum(), leaves))
        yield losses.detach()
    encoders.write_back()
    decoders.write_back()


def elbo(encoder, decoder, x: Tensor, one_hot: Tensor, noise: Tensor, *, images: bool) -> Tensor:
    """The loss above of flat samples `x [..., D]`, classes `[..., C]`, with z = mean + noise * deviation; `[...]`."""
    mean, log_variance = encoder(torch.cat([x, one_hot], -1)).chunk(2, -1)
    z = mean + noise * (log_variance / 2).exp()
    out = decoder(torch.cat([z, one_hot], -1))
    if images:
        fit = F.binary_cross_entropy_with_logits(out, x, reduction="none").sum(-1)
    else:
        fit = (x - out).square().sum(-1) / 2
    return fit + (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1) / 2


def _perceptron(inputs: int, hidden: int, outputs: int, stream: torch.Generator) -> nn.Sequential:
    with torch.device("meta"):
        network = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    network.load_state_dict({name: torch.empty(t.shape) for name, t in network.state_dict().items()}, assign=True)
    initialise(network, stream)
    return network
