"""Gaussian heads: classes as Gaussians of frozen features, their statistics summed over clients, no training.

Client k sends, for each class that it holds, its count n_kc, the sum of its features φ(x), and second moments. The
server adds up what it gets, so it has the statistics of all samples in one place, whoever holds which: skew changes
nothing. Bayes' rule then gives the classifier; `parts/gaussian_heads.py` has the formulas. One upload serves more than
one head: what `qda` sends is enough for all of them.

- `lda` is Fisher's linear discriminant (1936), `nb` naive Bayes, `qda` the quadratic discriminant;
- `fedcgs` is FedCGS (Guan, Zhou, Gu: Capture Global Feature Statistics for One-Shot Federated Learning, AAAI 2025,
  arXiv 2503.06962): LDA's formula with the covariance of all features, classes apart or not;
- `nb`, `lda` and `qda` on summed moments with shrinkage are the closed-form heads of GH-OFL (Turazza, Picone, Mamei:
  The Gaussian-Head OFL Family, ICLR 2026, arXiv 2602.01186);
- `means` is the nearest class mean (prototypes), from counts and sums alone.

Link, up only: 4 C bytes of counts and, with h classes held and d features, 4 h d of sums; on top nothing (`means`),
4 h d (`nb`), 4 d (d + 1)/2 (`lda`, `fedcgs`), 4 h d (d + 1)/2 (`qda`). What comes down is the seed of the features.

Departures: frozen random features, or pixels, instead of a network that was trained on ImageNet. FedCGS has no
shrinkage, and divides by zero where nobody holds a class; here such a class is never named. No variance is below a
millionth of the mean one. GH-OFL's heads that are trained on drawn features are left out.

On the digits (alpha = 0.1, M = 10) every head is far ahead of the ensemble by probabilities. How far depends on the
federation: on seed 103 `means` is 18 points ahead, on the test's other seeds more than 20.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from .base import Context, GlobalModel, Progress, Report, Steps, knob, register
from .parts.frozen import FrozenMethod, HeadModel, features_knob, features_seed_knob, frozen_features, size_knob
from .parts.gaussian_heads import HEADS, ClassSums, class_sums, message, received, scores

SHOWN = 2_000_000  # the report leaves out an array of more numbers


@dataclass(frozen=True, eq=False)
class GaussReport(Report):
    """Features as the server knows them, d numbers each.

    counts [M, C]: of each client, as it sent them;   client_means [M, C, d]: what its sums say; zeros for a class that
    it lacks;   means [C, d];   deviations [G, d]: standard deviations, of each class (G = C) or within all (G = 1);
    covariances [G, d, d]: after no shrinkage. None: not sent, or too large to keep.
    """

    counts: np.ndarray | None = None
    client_means: np.ndarray | None = None
    means: np.ndarray | None = None
    deviations: np.ndarray | None = None
    covariances: np.ndarray | None = None


@register(
    "gauss",
    title="Gaussian heads",
    group="Closed form",
    paper="Guan et al., AAAI 2025; Turazza et al., ICLR 2026",
    traffic="4 C + 4 h (d + d(d+1)/2), up only",
    extra="frozen features, the same at every client",
    leaks="each client's class counts and class means (a class of one sample: that sample's features), "
    "and second moments",
)
class Gauss(FrozenMethod):
    """Add up counts, sums and second moments of frozen features. Classify by Bayes' rule."""

    report = GaussReport

    head: str = knob("qda", "Classifier", options=HEADS)
    shrinkage: float = knob(0.4, "Shrinkage", symbol="s", low=0, high=1)
    features: str = features_knob()
    size: int = size_knob()
    features_seed: int = features_seed_knob()

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        kind = HEADS[self.head]
        frozen = yield from frozen_features(ctx, self.features, self.size, self.features_seed)
        # Clients: counts, sums and second moments of the features; up. No training.
        arrived = []
        for k in range(ctx.clients_count):
            x, y = ctx.private.train(k)
            own = class_sums(frozen(x), y, ctx.classes, kind)
            arrived.append(ctx.link.up(k, message(own, ctx.dtype), phase="statistics"))
            yield Progress("statistics", k + 1, ctx.clients_count)
        # Server: the sums of all clients, then Bayes' rule.
        with ctx.server():
            each = [received(sent, kind) for sent in arrived]
            whole = sum(each[1:], each[0])
            made = scores(whole, self.head, self.shrinkage)
            return HeadModel(frozen, lambda f: made(f).to(f.dtype), made.parameters, report_of(each, whole, self.head))


def report_of(each: Sequence[ClassSums], whole: ClassSums, head: str) -> GaussReport:
    """What the server knows, for pictures."""
    made = {
        "counts": torch.stack([own.counts for own in each]).int(),
        "client_means": torch.stack([own.means for own in each]),
        "means": whole.means,
    }
    if head == "nb":
        made["deviations"] = whole.variances().sqrt()
    elif head != "means":
        group = whole.covariances() if head == "qda" else (whole.within() if head == "lda" else whole.total())[None]
        made["covariances"] = group
        made["deviations"] = group.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
    small = {name: part for name, part in made.items() if part.numel() <= SHOWN}
    narrow = {name: part.float() if part.is_floating_point() else part for name, part in small.items()}
    return GaussReport(**{name: part.cpu().numpy() for name, part in narrow.items()})
