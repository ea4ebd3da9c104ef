"""Distilled data: each client sends a few images a class, and the server learns from their union.

After FedD3 (Song et al., 2022, arXiv 2208.11311) and FedSD2C (Zhang, Liu, Wang, NeurIPS 2024, arXiv 2412.05186).

Clients: for each class that client k has, m images (fewer if it has fewer): `random` samples; centres of `kmeans`;
kernel inducing points, `kip` (Nguyen et al., ICLR 2021, FedD3's method), images X_s that make

    ½ mean ‖K(X, X_s) (K(X_s, X_s) + λ_damp tr(K)/|s| I)⁻¹ Y_s - Y‖²,      Y = one-hot - 1/C,

small, K the tangent kernel of a ReLU perceptron; or `crops`, FedSD2C as far as possible without its autoencoder.
Link: the images and their labels go up, 4 (p + 1) bytes each with p pixels. Nothing comes down, except that clients
that train a network for `crops` get the initial model first, as in the other methods.
Server: trains a network on the union of the images, or solves one kernel regression on it.

Departures: FedD3 has a kernel of depth 4, a rate of 0.004, up to 3,000 steps until 99.9 % of a client's samples are
right, λ_damp = 1e-6 and 10 images a client; here steps, depth and λ_damp are knobs, m counts images a class, and
pixels stay in [0, 1]. Its `herding` is the means of a Gaussian mixture, near to `kmeans`. FedSD2C's images are latent
vectors of SDXL's autoencoder (see `images.py`).

KIP's images are often worse than random ones for a network: they are fitted to the kernel, and a client with three
classes does not keep what distinguishes them from the other seven.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

import numpy as np
import torch
from torch import Tensor

from ...errors import UsageError
from ...methods.run_outputs import SentenceOnPrivacy
from ...tensor_types import Features, Logits, Samples, ScalarLoss
from ...training import ClientModels, Recipe, iterate_training_of_clients_in_place, run_in_chunks
from ...training.loop import LabelledSamples
from ...value_types import MeanPassesPerClient
from ..base import (
    GlobalModel,
    Method,
    NetworkModel,
    Progress,
    Steps,
    knob,
    make_server_model_knob,
    register,
    report_progress,
)
from ..context import ClientIndex, Context, check_training_is_finite
from ..run_outputs import Report
from ..traffic import FederationSizes, RunBytesUpPlusDown
from . import images as making
from .images import KernelMatrix

# ---------------------------------------------------------------------------------------------------------------- model
# What a run of `distilled` returns: kernel regression as a global model, and a report with the images.

SHOWN = 600  # images in a report, over all clients


@dataclass(frozen=True, eq=False)
class DistilledReport(Report):
    """The images that the server received.

    images [S, ...], labels [S], client [S]: the first of each client, at most SHOWN in all
    counts [M, C]: of all of them
    loss [T]: of each step that made them, the clients' mean
    """

    images: np.ndarray | None = None
    labels: np.ndarray | None = None
    client: np.ndarray | None = None
    counts: np.ndarray | None = None
    loss: np.ndarray | None = None


class KernelModel(GlobalModel):
    """Kernel ridge regression on the images `x [S, ...]`.

    The `coefficients [S, C]` are (K + λ_damp tr(K)/S I)⁻¹ (one-hot - 1/C). Scores `[N, C]` are K(·, x) times these;
    features are the kernel values `[N, S]`.
    """

    score_kind = "regression"
    parts = ("x", "coefficients", "depth")

    def __init__(
        self, x: Tensor, coefficients: Tensor, depth: int, report: Report = DistilledReport()
    ) -> None:  # noqa: B008
        self.x = x
        self.coefficients = coefficients
        self.depth = depth
        self.report = report
        self.parameters = x.numel() + self.coefficients.numel()

    def logits(self, samples: Samples) -> Logits:
        return run_in_chunks(
            lambda chunk: (
                self._compute_kernel_with_distilled_images(chunk) @ self.coefficients
            ).to(samples),
            samples,
        )

    def features(self, samples: Samples) -> Features:
        return run_in_chunks(
            lambda chunk: self._compute_kernel_with_distilled_images(chunk).to(samples), samples
        )

    def _compute_kernel_with_distilled_images(self, samples: Samples) -> KernelMatrix:
        return making.compute_tangent_kernel(samples, self.x, self.depth)


ImageChoice = Literal["random", "kmeans", "kip", "crops"]
WAYS: tuple[ImageChoice, ...] = get_args(ImageChoice)


class ImageMessage(TypedDict):
    """A client's upload: images `[S, ...]`, and their labels `[S]`, int32."""

    images: Tensor
    labels: Tensor


@register(
    "distilled",
    title="Distilled data",
    group="Distil, data-free",
    paper="after FedD3 (Song et al., 2022)",
    traffic="4 (p + 1) an image, up only",
    sends="a few images a class",
    leaks="images, which may be a client's own, with their labels",
    forgets="its images are dropped, and the kernel's coefficients are solved again (server=kernel)",
)
class Distilled(Method):
    """Send a few images of each class, and no model. The server learns from the images of all clients."""

    trains_locally = False  # except with `crops`
    sends_models = False

    images: ImageChoice = knob("kmeans", "Images", options=WAYS)
    per_class: int = knob(3, "Per class", symbol="m_c", low=1, high=1000)
    server: str = knob("kernel", "Server", options=("network", "kernel"))
    depth: int = knob(4, "Kernel depth", low=0, high=10)
    ridge: float = knob(1e-3, "Ridge", symbol="λ_damp", low=1e-9, high=10, log=True)
    steps: int = knob(60, "Image steps", low=0, high=5000)
    image_lr: float = knob(0.02, "Image rate", low=1e-6, high=1.0, log=True)
    mix: float = knob(0.9, "Amplitude mix", symbol="λ_mix", low=0, high=1)
    server_epochs: int = knob(100, "Server epochs", low=1, high=5000, log=True)
    server_lr: float = knob(3e-3, "Server rate", low=1e-6, high=1.0, log=True)
    server_model: str = make_server_model_knob()

    report = DistilledReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        classes_held = 0.4 * sizes.classes  # a guess: it depends on the skew
        images = self.per_class * classes_held
        return RunBytesUpPlusDown(
            sizes.count_bytes_from_all_clients((sizes.numbers + 1) * images), is_exact=False
        )

    @property
    def leaks(self) -> SentenceOnPrivacy:
        if self.images == "random":
            return "some of each client's own images, as they are, with their labels"
        if self.images == "kmeans":
            return "means of each client's images of a class; of a class with at most m images, the images"
        return "images made from each client's own, with their labels"

    def refuse(self, ctx: Context) -> None:
        if self.images == "crops" and not ctx.has("images"):
            raise UsageError(
                f"images=crops needs images, but the samples are {ctx.kind}; choose random, kmeans or kip."
            )

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        if self.images == "kip":
            return float(self.steps)  # each reads the client's samples
        if self.images == "crops":
            return float(recipe.epochs)
        return 0.0

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: a few images of each class. Link: they go up with their labels.
        networks = None
        if self.images == "crops":
            networks = yield from ctx.local_training()
        received: list[ImageMessage] = []
        losses: list[list[Tensor]] = [[] for _ in range(ctx.clients_count)]
        for k in range(ctx.clients_count):
            images, labels = yield from self.distil_client_images(ctx, k, networks, losses[k])
            message = ImageMessage(images=images, labels=labels.int())
            received.append(ctx.link.up(k, message, phase="images"))
        # Server: learn from the union.
        with ctx.server():
            x = torch.cat([message["images"] for message in received])
            y = torch.cat([message["labels"] for message in received]).long()
            report = self.make_report(received, losses, ctx.classes)
            if self.server == "kernel":
                targets = making.make_centred_targets(y, ctx.classes)
                coefficients = making.solve_tangent_kernel_regression(
                    x, targets, self.depth, self.ridge
                )
                return KernelModel(x, coefficients, self.depth, report)
            student = ctx.initial_model(0, ctx.server_architecture(self.server_model))
            recipe = Recipe(self.server_epochs, 32, "adam", self.server_lr, weight_decay=0)
            ticks = iterate_training_of_clients_in_place(
                [student], [(x, y)], recipe, seed=ctx.seed, stream="distilled"
            )
            yield from report_progress(
                "server training", ticks, lambda: NetworkModel(student, report)
            )
            rate = f"server_lr={self.server_lr:g}"
            check_training_is_finite(student.parameters(), "The server's training", rate)
            return NetworkModel(student, report)

    def distil_client_images(
        self,
        ctx: Context,
        client: ClientIndex,
        client_networks_for_crops: ClientModels | None,
        losses_list_to_fill: list[ScalarLoss],
    ) -> Steps[LabelledSamples]:
        """A client's images `[S, ...]` and their labels `[S]`.

        client_networks_for_crops: the clients' trained networks; None if `images` is not "crops"
        losses_list_to_fill: gets one value for each step
        """
        x, y = ctx.private.train(client)
        class_rows = making.group_sample_indices_by_occurring_class(y, ctx.classes)
        stream = ctx.generator("distilled", self.images, client)
        steps: Iterable[tuple[Tensor, Tensor]] = ()
        if client_networks_for_crops is not None:  # crops
            network = client_networks_for_crops.module(client)
            crops, crop_losses = making.draw_crops_and_select_least_loss(network, x, y, stream)
            rows = making.choose_least_loss_indices_per_class(
                class_rows, crop_losses, self.per_class
            ).to(x.device)
            others = x[torch.randint(len(x), (len(rows),), generator=stream).to(x.device)]
            images = making.mix_fourier_amplitudes(crops[rows], others, self.mix)
            steps = making.move_images_towards_features_of_crops(
                network, images, crops[rows], y[rows], steps=self.steps, lr=self.image_lr
            )
        elif self.images == "kmeans":
            centres = []
            for rows in class_rows:
                centres.append(
                    making.compute_k_means_centres(x[rows.to(x.device)], self.per_class, stream)
                )
            images = torch.cat(centres)
            # As many rows of each class as it has centres: their labels are read.
            rows = torch.cat([rows[: self.per_class] for rows in class_rows]).to(x.device)
        else:
            rows = making.draw_sample_indices_per_class(class_rows, self.per_class, stream).to(
                x.device
            )
            images = x[rows]
        if self.images == "kip":
            steps = making.optimise_inducing_points(
                images,
                y[rows],
                x,
                y,
                class_count=ctx.classes,
                hidden_layer_count=self.depth,
                relative_ridge=self.ridge,
                steps=self.steps,
                lr=self.image_lr,
                clip_to_unit=ctx.has("images"),
                sample_stream=stream,
            )
        for new_images, loss in steps:
            images = new_images
            losses_list_to_fill.append(loss)
            yield Progress(
                "images",
                client * self.steps + len(losses_list_to_fill),
                ctx.clients_count * self.steps,
            )
        if not losses_list_to_fill:
            yield Progress("images", client + 1, ctx.clients_count)
        return LabelledSamples(images, y[rows])

    def make_report(
        self,
        received_images: list[ImageMessage],
        losses_of_clients: list[list[ScalarLoss]],
        class_count: int,
    ) -> DistilledReport:
        """The images that the server received, for pictures."""
        images_per_client = max(1, SHOWN // len(received_images))
        images = torch.cat([message["images"][:images_per_client] for message in received_images])
        labels = torch.cat([message["labels"][:images_per_client] for message in received_images])
        client: list[int] = []
        counts = []
        for k, message in enumerate(received_images):
            client += [k] * len(message["labels"][:images_per_client])
            counts.append(torch.bincount(message["labels"].long(), minlength=class_count))
        loss = None
        if losses_of_clients[0]:
            by_client = torch.stack(
                [torch.stack(client_losses) for client_losses in losses_of_clients]
            )
            loss = by_client.mean(0).cpu().numpy()
        return DistilledReport(
            images.cpu().numpy(),
            labels.cpu().numpy(),
            np.array(client),
            torch.stack(counts).cpu().numpy(),
            loss,
        )
