"""FedCVAE-Ens: clients send decoders, the server trains on the images that they make (Heinbaugh et
al., ICLR 2023).

Clients: client k trains a conditional VAE on its own samples and sends its decoder and its class counts n_k^c; no
classifier.
Link: upload only, 4 d_decoder + 4 C bytes a client. In FENS' figure 3 it is the cheapest of all one-shot methods.
Server: draws `samples` pairs in all, from client k with label c in proportion to n_k^c, x = decoder_k(z, c), and trains
a classifier of the federation's architecture on them with Adam.

Departures: the paper has convolutional VAEs, ours are perceptrons with one hidden layer; batches are drawn with
replacement, every client taking the same number of steps; the prior is centred at 0 (the paper shifts it for
security); the point at which z is truncated is our choice. The papers that we follow have the method as a baseline
only, and give no numbers except the server's ResNet-8. So those of the set-up `fens` are ours, too.

In FENS' table 1 this method hardly suffers from label skew (CIFAR-10: 30.0, 29.4, 32.1 at alpha =
0.01, 0.05, 0.1), since a decoder only makes samples of classes that its client has. Its limit is
the quality of the decoders' images.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TypedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data import apportion_total_by_counts
from ..models import copy_model_state, load_state
from ..models.build import make_initialised_layer
from ..tensor_types import Labels, LossPerClient, LossPerSample, Noise, OneHotLabels, Samples
from ..training import Recipe, iterate_training_of_clients_in_place
from ..training.loop import LabelledSamples, Shard
from ..training.optim import Adam
from ..training.stack import Stack
from ..value_types import MeanPassesPerClient, SampleShape
from .base import (
    Context,
    GlobalModel,
    Method,
    NetworkModel,
    Progress,
    Steps,
    knob,
    register,
    report_progress,
)
from .context import check_training_is_finite
from .traffic import FederationSizes, RunBytesUpPlusDown

FlatSamples = Tensor  # [..., D]

# ----------------------------------------------------------------------------------------------------------------- cvae
# Conditional variational auto-encoders, one per client, trained side by side; at the server, the decoders make samples.
#
# Encoder q(z | x, y) and decoder p(x | z, y) are perceptrons with one hidden layer; the class enters both as a one-hot
# vector. Loss of a sample, with x̂ decoded from one z drawn from q:
#
#     -log p(x | z, y) + KL(q(z | x, y) ‖ N(0, I)),    -log p = Σ binary cross-entropy for images, ½ ‖x - x̂‖² for rows.
#
# Clients are run as one stack (`training.stack`), each with its own random streams: a client's numbers do not depend on
# the other clients. No convolutions, no β, no learnt noise level.

BLOCK = 64  # steps whose batches are drawn together
TRUNCATION = 2.0  # latent numbers beyond this many standard deviations are drawn anew (FedCVAE truncates, too)


class Cvae(nn.Module):
    """One client's pair of networks for samples of `input_shape` (images in [0, 1], or feature
    rows) and C classes.
    """

    def __init__(
        self,
        input_shape: SampleShape,
        classes: int,
        latent: int,
        hidden: int,
        stream: torch.Generator,
    ) -> None:
        super().__init__()
        self.input_shape = tuple(input_shape)
        self.classes = classes
        self.latent = latent
        inputs = prod(input_shape)
        self.encoder = _make_perceptron(inputs + classes, hidden, 2 * latent, stream)
        self.decoder = _make_perceptron(latent + classes, hidden, inputs, stream)


@torch.no_grad()
def generate_samples_of_labels(
    decoder: nn.Module,
    labels: Labels,
    latent_size: int,
    input_shape: SampleShape,
    class_count: int,
    stream: torch.Generator,
) -> Samples:
    """Samples `[n, *input_shape]` of the classes `labels [n]`: decoder means at z from a truncated
    standard normal.
    """
    z = torch.randn(len(labels), latent_size, generator=stream)
    too_far = z.abs() > TRUNCATION
    while bool(too_far.any()):
        z[too_far] = torch.randn(int(too_far.sum()), generator=stream)
        too_far = z.abs() > TRUNCATION
    one_hot = F.one_hot(labels, class_count)
    like = next(decoder.parameters())
    samples = decoder(torch.cat([z.to(like), one_hot.to(like)], 1))
    if len(input_shape) == 3:
        samples = samples.sigmoid()
    return samples.unflatten(1, input_shape)


def train_cvaes_in_place(
    cvaes: list[Cvae],
    shards: Sequence[Shard],
    streams: list[torch.Generator],
    *,
    steps: int,
    batch_size: int,
    lr: float,
) -> Iterator[LossPerClient]:
    """Train every client's CVAE by `steps` steps of Adam; yield the mean losses `[M]` of each step's batches.

    `shards[k]` is `(x [n_k, ...], y [n_k])`. A batch is `batch_size` samples drawn with replacement, so
    that clients of every size take the same steps. The networks are changed only when the generator has ended.
    """
    input_shape = cvaes[0].input_shape
    are_images = len(input_shape) == 3
    encoders = Stack([cvae.encoder for cvae in cvaes])
    decoders = Stack([cvae.decoder for cvae in cvaes])
    leaves = [
        *encoders.activate_first_models(len(cvaes)).values(),
        *decoders.activate_first_models(len(cvaes)).values(),
    ]
    optimizer = Adam(leaves, lr)
    # All clients' samples one after the other; a client's rows begin at its start.
    x = torch.cat([x for x, _ in shards]).flatten(1)
    y = torch.cat([y for _, y in shards])
    one_hot = F.one_hot(y, cvaes[0].classes).to(x)
    sizes = [len(y) for _, y in shards]
    starts = [0, *itertools.accumulate(sizes[:-1])]
    for step in range(steps):
        i = step % BLOCK
        if i == 0:
            count = min(BLOCK, steps - step)
            client_rows = []
            client_noise = []
            for size, start, stream in zip(sizes, starts, streams, strict=True):
                client_rows.append(
                    start + torch.randint(size, (count, batch_size), generator=stream)
                )
            for stream in streams:
                shape = (count, batch_size, cvaes[0].latent)
                client_noise.append(torch.randn(shape, generator=stream))
            rows = torch.stack(client_rows, 1).to(x.device)  # [count, M, batch]
            noise = torch.stack(client_noise, 1).to(x)
        batch_x = x[rows[i]]
        batch_classes = one_hot[rows[i]]
        sample_losses = compute_negative_elbo_per_sample(
            encoders.forward,
            decoders.forward,
            batch_x,
            batch_classes,
            noise[i],
            are_pixels=are_images,
        )
        losses = sample_losses.mean(1)
        optimizer.step(torch.autograd.grad(losses.sum(), leaves))
        yield losses.detach()
    encoders.copy_weights_to_models()
    decoders.copy_weights_to_models()


def compute_negative_elbo_per_sample(
    encode_into_mean_and_log_variance: Callable[[Tensor], Tensor],
    decode_into_pixel_logits_or_features: Callable[[Tensor], Tensor],
    samples: FlatSamples,
    one_hot_labels: OneHotLabels,
    noise: Noise,
    *,
    are_pixels: bool,
) -> LossPerSample:
    """Compute the loss above, `[...]`, of flat `samples [..., D]` and one-hot labels `[..., C]`.

    z = mean + noise * deviation.
    """
    codes = encode_into_mean_and_log_variance(torch.cat([samples, one_hot_labels], -1))
    mean, log_variance = codes.chunk(2, -1)
    z = mean + noise * (log_variance / 2).exp()
    out = decode_into_pixel_logits_or_features(torch.cat([z, one_hot_labels], -1))
    if are_pixels:
        fit = F.binary_cross_entropy_with_logits(out, samples, reduction="none").sum(-1)
    else:
        fit = (samples - out).square().sum(-1) / 2
    return fit + (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1) / 2


def _make_perceptron(
    input_size: int, hidden_size: int, output_size: int, stream: torch.Generator
) -> nn.Sequential:
    first = make_initialised_layer(nn.Linear, input_size, hidden_size, generator=stream)
    last = make_initialised_layer(nn.Linear, hidden_size, output_size, generator=stream)
    return nn.Sequential(first, nn.ReLU(), last)


class DecoderMessage(TypedDict):
    """A client's upload: the state of its decoder, and its samples of each class `[C]`, int32."""

    decoder: dict[str, Tensor]
    counts: Tensor


@register(
    "fedcvae",
    title="FedCVAE-Ens",
    group="Distil, data-free",
    paper="Heinbaugh et al., ICLR 2023",
    traffic="S_decoder + 4 C, up only",
    sends="a generator + counts",
    leaks="a generator of each client's samples, and its class counts",
)
class FedCVAE(Method):
    """Each client uploads a decoder that makes samples. The server trains on these samples."""

    trains_locally = False
    sends_models = False

    latent: int = knob(8, "Latent numbers", symbol="z", low=1, high=512)
    hidden: int = knob(64, "Hidden units", low=4, high=4096, log=True)
    steps: int = knob(400, "VAE steps", low=1, high=100_000, log=True)
    batch: int = knob(32, "VAE batch", low=1, high=4096, log=True)
    vae_lr: float = knob(0.01, "VAE rate", low=1e-6, high=1.0, log=True)
    samples: int = knob(2000, "Synthetic samples", low=10, high=1_000_000, log=True)
    server_epochs: int = knob(15, "Server epochs", low=1, high=1000)
    server_lr: float = knob(3e-3, "Server rate", low=1e-6, high=1.0, log=True)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        first_layer = (self.latent + sizes.classes + 1) * self.hidden
        last_layer = (self.hidden + 1) * sizes.numbers
        return RunBytesUpPlusDown(
            sizes.count_bytes_from_all_clients(first_layer + last_layer + sizes.classes)
        )

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        return self.steps * self.batch * len(client_sample_counts) / sum(client_sample_counts)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        all_clients = range(ctx.clients_count)
        # Clients: a conditional VAE each, on the training part.
        shards = [ctx.private.train(k) for k in all_clients]
        cvaes = [self._make_cvae(ctx, ctx.generator("fedcvae", "init", k)) for k in all_clients]
        streams = [ctx.generator("fedcvae", "training", k) for k in all_clients]
        steps = train_cvaes_in_place(
            cvaes, shards, streams, steps=self.steps, batch_size=self.batch, lr=self.vae_lr
        )
        for done, _ in enumerate(steps, 1):
            yield Progress("VAE training", done, self.steps)
        # Link: decoders and class counts.
        received = []
        for k in all_clients:
            counts = torch.bincount(shards[k][1], minlength=ctx.classes).int()
            upload = DecoderMessage(decoder=copy_model_state(cvaes[k].decoder), counts=counts)
            received.append(ctx.link.up(k, upload, phase="decoders"))
        # Server: draw samples from the decoders, then train a classifier on them.
        with ctx.server():
            x, y = self._generate_labelled_samples(ctx, received)
            check_training_is_finite([x], "A client's VAE", f"vae_lr={self.vae_lr:g}")
            student = ctx.initial_model()
            recipe = Recipe(self.server_epochs, 32, "adam", self.server_lr, weight_decay=0)
            ticks = iterate_training_of_clients_in_place(
                [student], [(x, y)], recipe, seed=ctx.seed, stream="fedcvae"
            )
            return (
                yield from report_progress("server training", ticks, lambda: NetworkModel(student))
            )

    def _make_cvae(self, ctx: Context, stream: torch.Generator) -> Cvae:
        cvae = Cvae(ctx.input_shape, ctx.classes, self.latent, self.hidden, stream)
        return cvae.to(ctx.device, ctx.dtype)

    def _generate_labelled_samples(
        self, ctx: Context, received: list[DecoderMessage]
    ) -> LabelledSamples:
        """`self.samples` synthetic samples with labels, in proportion to the clients' class counts."""
        client_counts = torch.stack([upload["counts"] for upload in received]).cpu()
        allotted = apportion_total_by_counts(client_counts.flatten().numpy(), self.samples)
        sample_counts = torch.from_numpy(allotted).view_as(client_counts)
        decoder = self._make_cvae(ctx, ctx.generator("fedcvae", "init", 0)).decoder
        xs = []
        ys = []
        for k, upload in enumerate(received):
            load_state(decoder, upload["decoder"])
            y = torch.arange(ctx.classes).repeat_interleave(sample_counts[k]).to(ctx.device)
            stream = ctx.generator("fedcvae", "samples", k)
            xs.append(
                generate_samples_of_labels(
                    decoder, y, self.latent, ctx.input_shape, ctx.classes, stream
                )
            )
            ys.append(y)
        return LabelledSamples(torch.cat(xs), torch.cat(ys))
