"""FedPFT, parametric feature transfer: send Gaussian mixtures of features, train a head on what they draw
(Beitollahi et al., 2024, arXiv 2402.01862).

Clients: client k fits, for each class that it holds, a mixture of K Gaussians to the frozen features of its samples, by
EM, and sends weights, means and spreads with its class counts n_kc.
Link, up only: 4 C bytes of counts and, for each class held, 4 K (1 + d + v), where v is 0, 1, d or d(d + 1)/2 numbers
of spread (`none`, `spherical`, `diagonal`, `full`); K is the number of samples where that is less.
Server: draws n_kc features from every mixture and trains a linear head on them by cross-entropy, with Adam.

Departures: frozen random features, or pixels, instead of a network that was trained on images. The paper fits the
mixtures of all sizes; a public code of FedCGS, which compares with FedPFT, leaves out every class of 10 samples or
fewer, under label skew most of them (`smallest` = 11 does that). `none` sends means alone, which is our addition.
10^-6 is added to every variance, as scikit-learn does. EM makes 20 steps. The head's 30 epochs were chosen for speed:
no study has compared other numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from ..errors import demand
from ..models import parameter_count
from ..training import Recipe
from ..training.distill import distil, distillation_loss
from .base import GlobalModel, Progress, Report, Steps, knob, register, reported
from .context import Context
from .parts.class_statistics import by_class
from .parts.frozen import (
    Frozen,
    FrozenMethod,
    HeadModel,
    features_knob,
    features_seed_knob,
    frozen_features,
    size_knob,
)
from .parts.mixtures import COVARIANCES, Mixture, fitted

DRAWN = 500  # drawn features that the report keeps, about


@dataclass(frozen=True, eq=False)
class FedPftReport(Report):
    """What the server got and made of it; d numbers a feature.

    counts [M, C]: of the mixtures sent;   means [S, d], spreads [S, d]: of every component sent, its mean and standard
    deviations;   owners [S], labels [S], shares [S]: whose it is, of which class, and its weight;   drawn [n, d],
    drawn_labels [n]: some of the drawn features
    """

    counts: np.ndarray | None = None
    means: np.ndarray | None = None
    spreads: np.ndarray | None = None
    owners: np.ndarray | None = None
    labels: np.ndarray | None = None
    shares: np.ndarray | None = None
    drawn: np.ndarray | None = None
    drawn_labels: np.ndarray | None = None


@register(
    "fedpft",
    title="FedPFT",
    paper="Beitollahi et al., 2024",
    traffic="4 C + 4 h (1 + 2 d), up only",
    extra="frozen features, the same at every client",
    leaks="each client's class counts, and a mixture of Gaussians of each of its classes: means of few samples, "
    "and of one sample its features",
)
class FedPFT(FrozenMethod):
    """Send a mixture of Gaussians for each class. The server draws features from all of them and trains a head."""

    report = FedPftReport

    components: int = knob(1, "Components", low=1, high=50)
    covariance: str = knob("diagonal", "Spread", options=COVARIANCES)
    smallest: int = knob(1, "Smallest class", low=1, high=10_000)
    epochs: int = knob(30, "Head's epochs", low=1, high=1000)
    lr: float = knob(0.01, "Head's rate", low=1e-6, high=1.0, log=True)

    features: str = features_knob()
    size: int = size_knob()
    features_seed: int = features_seed_knob()

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        frozen = yield from frozen_features(ctx, self.features, self.size, self.features_seed)
        # Clients: a mixture of each class; up.
        arrived = []
        for k in range(ctx.clients_count):
            sent = self.mixtures(ctx, k, frozen)
            arrived.append(ctx.link.up(k, sent, phase="mixtures"))
            yield Progress("mixtures", k + 1, ctx.clients_count)
        # Server: as many features as the clients have, drawn; a head trained on them.
        with ctx.server():
            drawn, labels = self.draw(ctx, arrived)
            head = skip_init(nn.Linear, drawn.shape[1], ctx.classes, device=ctx.device, dtype=ctx.dtype)
            for part in head.parameters():
                nn.init.zeros_(part)
            recipe = Recipe(self.epochs, 64, "adam", self.lr, weight_decay=0)
            ticks = distil(head, drawn, labels, recipe, distillation_loss("ce"), ctx.generator("fedpft", "head"))
            numbers = parameter_count(head)
            yield from reported("head training", ticks, lambda: HeadModel(frozen, head, numbers))
            return HeadModel(frozen, head, numbers, report_of(arrived, self.covariance, drawn, labels))

    def mixtures(self, ctx: Context, k: int, frozen: Frozen) -> dict:
        """What client k sends: the counts `[C]` of its classes (int32; 0 of one that is too small), and their
        mixtures."""
        x, y = ctx.private.train(k)
        groups = {c: rows for c, rows in by_class(frozen(x).double(), y).items() if len(rows) >= self.smallest}
        counts = [len(groups.get(c, ())) for c in range(ctx.classes)]
        made = {}
        for c, rows in groups.items():
            stream = ctx.generator("fedpft", "mixture", k, c)
            made[c] = fitted(rows, self.components, self.covariance, stream).message(ctx.dtype)
        return {"counts": torch.tensor(counts, dtype=torch.int32), "mixtures": made}

    def draw(self, ctx: Context, arrived: Sequence[dict]) -> tuple[Tensor, Tensor]:
        """n_kc features `[n, d]` from every mixture, with their labels `[n]`. UsageError if there is no mixture."""
        features, labels = [], []
        for k, sent in enumerate(arrived):
            for c, parts in sent["mixtures"].items():
                count, stream = int(sent["counts"][c]), ctx.generator("fedpft", "features", k, c)
                features.append(Mixture.received(parts, self.covariance).draw(count, stream).to(ctx.dtype))
                labels.append(torch.full((count,), c))
        demand(
            features,
            f"No client has a class of {self.smallest} samples or more, so nothing was sent; use a smaller smallest.",
        )
        return torch.cat(features), torch.cat(labels).to(ctx.device)


def report_of(arrived: Sequence[dict], kind: str, drawn: Tensor, labels: Tensor) -> FedPftReport:
    """What the server got, for pictures; of the drawn features at most DRAWN."""
    rows = [
        (k, c, Mixture.received(parts, kind)) for k, sent in enumerate(arrived) for c, parts in sent["mixtures"].items()
    ]
    step = -(-len(drawn) // DRAWN)
    made = {
        "counts": torch.stack([sent["counts"] for sent in arrived]),
        "means": torch.cat([mixture.means for *_, mixture in rows]).float(),
        "spreads": torch.cat([mixture.deviations() for *_, mixture in rows]).float(),
        "shares": torch.cat([mixture.weights for *_, mixture in rows]).float(),
        "drawn": drawn[::step].float(),
        "drawn_labels": labels[::step],
    }
    sizes = [len(mixture.weights) for *_, mixture in rows]
    for name, place in (("owners", 0), ("labels", 1)):
        made[name] = torch.tensor([row[place] for row, size in zip(rows, sizes, strict=True) for _ in range(size)])
    return FedPftReport(**{name: part.cpu().numpy() for name, part in made.items()})
